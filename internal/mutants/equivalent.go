package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// equivalentFile lists the mutants of operators that no test can notice, one a line: its name, blanks, and the
// reason. Lines that begin with # are comments.
const equivalentFile = "internal/mutants/testdata/equivalent.txt"

// readEquivalent returns the reasons by name. A mutant that does not exist is an error: the statement has changed,
// and so may the reason.
func readEquivalent(root string, all []Mutant) (map[string]string, error) {
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(equivalentFile)))
	if err != nil {
		return nil, err
	}
	reasons, err := parseEquivalent(string(source))
	if err != nil {
		return nil, err
	}
	for _, listed := range slices.Sorted(maps.Keys(reasons)) {
		if !slices.ContainsFunc(all, func(m Mutant) bool { return m.Name == listed }) {
			return nil, fmt.Errorf(
				"%s lists %s, which does not exist: its statement has changed. Remove the line, and run the mutants of the function",
				equivalentFile, listed)
		}
	}
	return reasons, nil
}

func parseEquivalent(source string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		listed, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("%s: %s has no reason", equivalentFile, listed)
		}
		if reasons[listed] != "" {
			return nil, fmt.Errorf("%s: %s is there twice", equivalentFile, listed)
		}
		reasons[listed] = reason
	}
	return reasons, nil
}
