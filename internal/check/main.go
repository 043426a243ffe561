// Command check holds the source against the project's own rules, the ones no general linter knows: which
// package may import which, which library belongs to which package, that every goroutine has an owner, that
// what waits does not look at the wall clock, that no function has too many parameters, that no test ends because a
// fixed time has passed, how much the public packages export, and how much source there is.
// `make check` runs it; it prints one line per breach and exits 1 if there was any, 2 if it could not look.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
)

func main() {
	surfaceToo := flag.Bool("exported", false, "write how many identifiers each public package exports to "+surface)
	size := flag.Bool("size", false, "print how much source there is, in the directory given or else here")
	cpu := flag.Bool("cpu", false, "hold the processor time of the tests that ran here against "+cpuTable)
	write := flag.Bool("write", false, "with -size or -cpu: write the committed table")
	flag.Parse()
	var breaches []string
	var err error
	switch {
	case *surfaceToo:
		err = writeSurface()
	case *size:
		err = showSize(cmp.Or(flag.Arg(0), "."), *write)
	case *cpu:
		breaches, err = processorTime(*write)
	default:
		breaches, err = check()
	}
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
	fixed, err := totals(tree)
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
	source, err := measure(tree)
	if err != nil {
		return nil, err
	}
	allowed, err := readBounds()
	if err != nil {
		return nil, err
	}
	return slices.Concat(breaches, bare, clocks, long, fixed, surfaceBreaches(found, file),
		sizeBreaches(source, allowed)), nil
}

func readBounds() (map[string]bound, error) {
	file, err := os.ReadFile(sizes)
	if err != nil {
		return nil, err
	}
	return bounds(file)
}

func showSize(dir string, write bool) error {
	source, err := measure(os.DirFS(dir))
	if err != nil {
		return err
	}
	fmt.Print(table(source))
	if !write {
		return nil
	}
	before, err := readBounds()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(sizes, writtenSizes(source, before), 0o644)
}

// processorTime compares the records of a run with the table, or makes them the table.
func processorTime(write bool) ([]string, error) {
	taken, err := cpuTaken(os.DirFS("."))
	if err != nil {
		return nil, err
	}
	if write {
		return nil, os.WriteFile(cpuTable, cpuShares(taken), 0o644)
	}
	text, err := os.ReadFile(cpuTable)
	if err != nil {
		return nil, err
	}
	shares, err := cpuRows(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cpuTable, err)
	}
	return cpuBreaches(taken, shares), nil
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
