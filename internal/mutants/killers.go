package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// killersFile remembers which test noticed a bug the last time, one line a bug: its name, a tab, the test. That test is tried first and
// alone, which takes a second where all the tests of the bug take ten. It decides nothing: where it passes, all of them run.
const killersFile = "internal/mutants/testdata/killers.tsv"

// killers may be used concurrently.
type killers struct {
	mu   sync.Mutex
	test map[string]string // by the name of the bug
}

// readKillers starts empty where there is no file.
func readKillers(root string) (*killers, error) {
	k := &killers{test: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(killersFile)))
	if os.IsNotExist(err) {
		return k, nil
	} else if err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		bug, test, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			return nil, fmt.Errorf("%s: %q has no tab", killersFile, lines.Text())
		}
		k.test[bug] = test
	}
	return k, nil
}

// of is the test that noticed the bug the last time.
func (k *killers) of(m Mutant) (test Test, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := k.test[m.Name]
	if name == "" {
		return Test{}, false
	}
	return Test{m.By.Package, exactly(name)}, true
}

func (k *killers) caught(m Mutant, test string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.test[m.Name] = test
}

// write keeps what it knows of the bugs of the catalogue, in the order of their names.
func (k *killers) write(root string, all []Mutant) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := map[string]bool{}
	for _, m := range all {
		known[m.Name] = true
	}
	var b strings.Builder
	for _, bug := range slices.Sorted(maps.Keys(k.test)) {
		if known[bug] {
			fmt.Fprintf(&b, "%s\t%s\n", bug, k.test[bug])
		}
	}
	file := filepath.Join(root, filepath.FromSlash(killersFile))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// exactly is the pattern of one test.
func exactly(name string) string {
	levels := strings.Split(name, "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	return strings.Join(levels, "/")
}
