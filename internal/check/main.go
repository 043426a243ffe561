// Command check holds the source against the project's own rules, the ones no general linter knows: which
// package may import which, which library belongs to which package, that every goroutine has an owner, and that
// what waits does not look at the wall clock.
// `make check` runs it; it prints one line per breach and exits 1 if there was any, 2 if it could not look.
//
// Design §3 (import arrows), style rule 11 (no bare go statement).
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

func main() {
	packages, err := list()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	breaches := append(arrows(packages), libraries(packages)...)
	bare, err := goStatements(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	breaches = append(breaches, bare...)
	clocks, err := wallClocks(os.DirFS("."), byDuration)
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	breaches = append(breaches, clocks...)
	slices.Sort(breaches)
	for _, b := range breaches {
		fmt.Println(b)
	}
	if len(breaches) > 0 {
		os.Exit(1)
	}
}

// list asks the go tool for every package of the module in the working directory.
func list() ([]Package, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	var packages []Package
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}
