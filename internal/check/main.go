// Command check holds the source against the project's own rules, the ones no general linter knows: which
// package may import which, which library belongs to which package, that every goroutine has an owner, that
// what waits does not look at the wall clock, that no function has too many parameters, and how much the public packages export.
// `make check` runs it; it prints one line per breach and exits 1 if there was any, 2 if it could not look.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

func main() {
	write := flag.Bool("exported", false, "write how many identifiers each public package exports to "+surface)
	flag.Parse()
	if *write {
		if err := writeSurface(); err != nil {
			fmt.Fprintln(os.Stderr, "check:", err)
			os.Exit(2)
		}
		return
	}
	breaches, err := check()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	slices.Sort(breaches)
	for _, b := range breaches {
		fmt.Println(b)
	}
	if len(breaches) > 0 {
		os.Exit(1)
	}
}

func check() ([]string, error) {
	packages, err := list()
	if err != nil {
		return nil, err
	}
	breaches := append(arrows(packages), libraries(packages)...)
	tree := os.DirFS(".")
	bare, err := goStatements(tree)
	if err != nil {
		return nil, err
	}
	clocks, err := wallClocks(tree, byDuration)
	if err != nil {
		return nil, err
	}
	long, err := longParameters(tree)
	if err != nil {
		return nil, err
	}
	found, err := exported(tree)
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(surface)
	if err != nil {
		return nil, err
	}
	return slices.Concat(breaches, bare, clocks, long, surfaceBreaches(found, file)), nil
}

func writeSurface() error {
	found, err := exported(os.DirFS("."))
	if err != nil {
		return err
	}
	return os.WriteFile(surface, written(found), 0o644)
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
