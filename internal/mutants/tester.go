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

// limit bounds the tests of a change in Go, which may make them wait for ever. It is far above what they take.
const limit = 3 * time.Minute

// longest bounds the measurement, which runs the whole suite.
const longest = 2 * time.Hour

// patience bounds a round of scenarios: a mutant may make the library loop without end. Their calls fail shortly before
// (internal/testwait). It is far above what the round takes on a busy machine.
func patience(round time.Duration) time.Duration { return time.Minute + 20*round }

// Tester runs tests on changed sources. It may be used concurrently once Baseline has returned.
type Tester struct {
	Project  *Project
	Temp     string // where changed copies go; the caller removes it
	Coverage *Coverage

	compiling sync.Mutex
}

// Result is what became of one mutant.
type Result struct {
	Verdict Verdict
	Detail  string // what noticed it, or why there is no answer
	Took    time.Duration
}

// Baseline runs the tests of the mutants on the unchanged sources and tells which fails.
func (t *Tester) Baseline(ctx context.Context, mutants []Mutant) error {
	patterns := map[string][]string{}
	for _, m := range mutants {
		if !inLua(m.File) && !slices.Contains(patterns[m.By.Package], m.By.Run) {
			patterns[m.By.Package] = append(patterns[m.By.Package], m.By.Run)
		}
	}
	for pkg, runs := range patterns {
		out, err := t.goTest(ctx, Test{pkg, strings.Join(runs, "|")}, 20*limit)
		if err != nil {
			return err
		}
		if verdict, detail, _ := judge(out, 1); verdict != Survived {
			return fmt.Errorf("%s: %s", pkg, detail)
		}
	}
	if slices.ContainsFunc(mutants, func(m Mutant) bool { return inLua(m.File) }) {
		return t.measure(ctx)
	}
	return nil
}

// Try applies one mutant and runs its tests.
func (t *Tester) Try(ctx context.Context, m Mutant) Result {
	start := time.Now()
	try := t.tryGo
	if inLua(m.File) {
		try = t.tryLua
	}
	verdict, detail, err := try(ctx, m)
	if err != nil {
		verdict, detail = Broken, err.Error()
	}
	return Result{Verdict: verdict, Detail: detail, Took: time.Since(start)}
}

func (t *Tester) tryGo(ctx context.Context, m Mutant) (verdict Verdict, detail string, err error) {
	changed, err := t.Project.Apply(m)
	if err != nil {
		return "", "", err
	}
	overlay, err := t.overlay(filepath.Join(t.Project.Root, filepath.FromSlash(m.File)), changed)
	if err != nil {
		return "", "", err
	}
	out, err := t.goTest(ctx, m.By, limit, "-failfast", "-overlay="+overlay)
	if err != nil {
		return "", "", err
	}
	if verdict, detail, _ = judge(out, depth(m.By.Run)); verdict == Hung {
		verdict = Caught
	}
	return verdict, detail, nil
}

// rounds are how long the scenarios of each round took together without a mutant. Most mutants are noticed in the
// first. Of 188 that were noticed none took scenarios of more than nine seconds, so what would come behind the last
// round is left out: a survivor would cost the whole suite.
var rounds = []time.Duration{400 * time.Millisecond, 4 * time.Second, 15 * time.Second}

func (t *Tester) tryLua(ctx context.Context, m Mutant) (verdict Verdict, detail string, err error) {
	changed, err := t.Project.Apply(m)
	if err != nil {
		return "", "", err
	}
	dir, err := t.looseLua(map[string]string{m.File: changed})
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	all := t.Coverage.of(m, t.Project.Chunks[m.File])
	if len(all) == 0 {
		return Survived, "no scenario runs it", nil
	}
	for _, round := range rounds {
		n, sum := 0, time.Duration(0)
		for n < len(all) && (n == 0 || sum+t.Coverage.Scenarios[all[n]].Took <= round) {
			sum += t.Coverage.Scenarios[all[n]].Took
			n++
		}
		if n == 0 {
			break
		}
		out, err := t.looseTest(ctx, t.Coverage.pattern(all[:n]), dir, "", patience(max(round, sum)))
		if err != nil {
			return "", "", err
		}
		verdict, detail, test := judge(out, 3)
		if verdict != Survived {
			t.Coverage.noticed(m, test)
			return verdict, detail, nil
		}
		all = all[n:]
	}
	return Survived, "", nil
}

// goTest runs go test and returns its events. That tests fail is no error here.
func (t *Tester) goTest(ctx context.Context, which Test, limit time.Duration, flags ...string) ([]byte, error) {
	args := append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout=" + limit.String(), "-run=" + which.Run},
		flags...)
	return t.events(ctx, t.command(ctx, t.Project.Root, "go", append(args, which.Package)...))
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
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[:2], " "), err,
			strings.TrimSpace(complaints.String()))
	}
	return out.Bytes(), nil
}
