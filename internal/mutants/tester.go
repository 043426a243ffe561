package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// limit bounds the tests of one bug. A bug that makes them hang is caught when it has passed.
const limit = 3 * time.Minute

// Tester runs tests on changed sources. It may be used concurrently.
type Tester struct {
	Root    string // directory of the module
	Temp    string // where changed copies go; the caller removes it
	Sources *Sources
	Killers *killers

	compiling sync.Mutex
	binaries  map[string]string // by package, see loose.go
}

// Result is what became of one bug.
type Result struct {
	Verdict Verdict
	Detail  string // what was noticed, or why there is no answer
	Took    time.Duration
}

// Baseline runs the tests of all the bugs on the unchanged sources, in the way in which the bugs are tested, and tells
// which fails.
func (t *Tester) Baseline(ctx context.Context, mutants []Mutant) error {
	type group struct {
		pkg   string
		loose bool
	}
	var groups []group
	patterns := map[group][]string{}
	for _, m := range mutants {
		g := group{m.By.Package, t.Sources.inLua(m)}
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
		if !slices.Contains(patterns[g], m.By.Run) {
			patterns[g] = append(patterns[g], m.By.Run)
		}
	}
	for _, g := range groups {
		which := Test{g.pkg, strings.Join(patterns[g], "|")}
		run := func() ([]byte, error) { return t.goTest(ctx, which, 4*limit) }
		if g.loose {
			run = func() ([]byte, error) {
				dir, err := t.looseLua("", "")
				if err != nil {
					return nil, err
				}
				return t.looseTest(ctx, which, 4*limit, dir)
			}
		}
		out, err := run()
		if err != nil {
			return err
		}
		if verdict, detail, _ := judge(out, 1); verdict != Survived {
			return fmt.Errorf("%s: %s", g.pkg, detail)
		}
	}
	return nil
}

// Try applies one bug and runs its tests, the one that noticed it the last time before all others.
func (t *Tester) Try(ctx context.Context, m Mutant) Result {
	start := time.Now()
	verdict, detail, err := t.attempt(ctx, m)
	if err != nil {
		verdict, detail = Broken, err.Error()
	}
	return Result{Verdict: verdict, Detail: detail, Took: time.Since(start)}
}

func (t *Tester) attempt(ctx context.Context, m Mutant) (verdict Verdict, detail string, err error) {
	run, err := t.with(m)
	if err != nil {
		return "", "", err
	}
	if last, known := t.Killers.of(m); known {
		out, err := run(ctx, last)
		if err != nil {
			return "", "", err
		}
		if verdict, detail, _ := judge(out, 1); verdict == Caught {
			return verdict, detail, nil
		}
	}
	out, err := run(ctx, m.By)
	if err != nil {
		return "", "", err
	}
	verdict, detail, test := judge(out, depth(m.By.Run))
	if test != "" {
		t.Killers.caught(m, test)
	}
	return verdict, detail, nil
}

// with applies a bug and returns what runs tests on it.
func (t *Tester) with(m Mutant) (run func(context.Context, Test) ([]byte, error), err error) {
	file, changed, err := t.Sources.Change(m)
	if err != nil {
		return nil, err
	}
	if inLua(file) {
		if err := parses(file, changed); err != nil {
			return nil, err
		}
		dir, err := t.looseLua(file, changed)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, which Test) ([]byte, error) { return t.looseTest(ctx, which, limit, dir) }, nil
	}
	overlay, err := t.overlay(map[string]string{filepath.Join(t.Root, filepath.FromSlash(file)): changed})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, which Test) ([]byte, error) {
		return t.goTest(ctx, which, limit, "-failfast", "-overlay="+overlay)
	}, nil
}

// goTest runs go test and returns its events. That tests fail is no error here.
func (t *Tester) goTest(ctx context.Context, which Test, limit time.Duration, flags ...string) ([]byte, error) {
	args := append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout=" + limit.String(), "-run=" + which.Run}, flags...)
	return t.events(ctx, t.command(ctx, t.Root, "go", append(args, which.Package)...))
}

// looseTest runs the compiled tests of a package on the Lua files of a directory.
func (t *Tester) looseTest(ctx context.Context, which Test, limit time.Duration, dir string) ([]byte, error) {
	bin, err := t.looseBinary(ctx, which.Package)
	if err != nil {
		return nil, err
	}
	cmd := t.command(ctx, filepath.Join(t.Root, filepath.FromSlash(which.Package)), "go", "tool", "test2json", bin,
		"-test.v=test2json", "-test.failfast", "-test.timeout="+limit.String(), "-test.run="+which.Run)
	cmd.Env = append(os.Environ(), directory+"="+dir)
	return t.events(ctx, cmd)
}

// command makes a command whose whole process group is interrupted with ctx, servers of the tests included.
func (t *Tester) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

func (t *Tester) events(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && (!exited || out.Len() == 0) {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[:2], " "), err, strings.TrimSpace(complaints.String()))
	}
	return out.Bytes(), nil
}
