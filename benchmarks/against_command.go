package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/flowfabric/flowfabric-go/benchmarks/report"
)

// measureAgainst measures this program and that of an earlier revision in turns, so that a slow hour of the machine
// meets both.
func measureAgainst(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	revision, rounds, path := "95db65ef", 5, ""
	rest, err := command("against", "[-revision 95db65ef] [-rounds 5] [-json run.json] [-- options of a run]", args,
		progress, func(f *flag.FlagSet) {
			f.StringVar(&revision, "revision", revision,
				"revision of this repository that is measured in turns with this program")
			f.IntVar(&rounds, "rounds", rounds, "rounds of each program")
			f.StringVar(&path, "json", path, "file for the JSON document with the rounds of both, which report reads")
		})
	if err != nil {
		return err
	}
	if rounds < 1 {
		return fmt.Errorf("against: -rounds %d, want 1 or more", rounds)
	}
	dir, err := os.MkdirTemp("", "ff")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own, err := os.Executable()
	if err != nil {
		return err
	}
	old, remove, err := built(ctx, revision, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	programs, runs := [2]string{own, old}, [2][]report.Document{}
	for i := range rounds {
		for k := range programs {
			which := (i + k) % 2 // each is the first one in every other round
			fmt.Fprintf(progress, "round %d of %d: %s …\n", i+1, rounds, [2]string{"this program", revision}[which])
			d, err := round(ctx, programs[which], rest, filepath.Join(dir, "run.json"))
			if err != nil {
				return fmt.Errorf("%s: %w", [2]string{"this program", revision}[which], err)
			}
			runs[which] = append(runs[which], d)
		}
	}
	d := report.InTurns(runs[0], runs[1])
	if path != "" {
		if err := d.Write(path); err != nil {
			return err
		}
	}
	return report.PrintTurns(out, d)
}

// built builds the program of a revision in a work tree of its own, which remove ends.
func built(ctx context.Context, revision, dir string) (program string, remove func() error, err error) {
	tree := filepath.Join(dir, "tree")
	if err := output(exec.CommandContext(ctx, "git", "worktree", "add", "--detach", tree, revision)); err != nil {
		return "", nil, err
	}
	remove = func() error { return output(exec.Command("git", "worktree", "remove", "--force", tree)) }
	program = filepath.Join(dir, "before")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(tree, "benchmarks")
	if err := output(build); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return program, remove, nil
}

// round is one round of a program.
func round(ctx context.Context, program string, options []string, path string) (report.Document, error) {
	args := append([]string{"-system", report.Subject}, options...)
	if err := output(exec.CommandContext(ctx, program, append(args, "-rounds", "1", "-json", path)...)); err != nil {
		return report.Document{}, err
	}
	return report.Read(path)
}

// output runs a command; what it wrote is part of its error.
func output(cmd *exec.Cmd) error {
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}
