package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// crashes are the deaths of the demo, one for each worker process but the last.
var crashes = []struct {
	steps int // that the process records before it dies
	when  string
}{
	{1, "the build was recorded"},
	{1 + len(approvers), "the links were mailed"}, // the plan, then the links
}

// entry is how a worker process tells of what it did, one JSON text a line, before the step is recorded.
type entry struct{ Effect, Token string }

// fleet is a row of worker processes, each one started after the death of the one before.
type fleet struct {
	options
	did  func(effect string, token suspend.Token) error
	mu   sync.Mutex
	dead map[string]int // by instance, which of the crashes it was
}

// run starts the workers, this program again with -worker, until ctx ends. Only the last one must live.
func (f *fleet) run(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	for n := range len(crashes) + 1 {
		name := fmt.Sprintf("worker-%d", n+1)
		args := []string{"-worker", "-name", name, "-pace", f.pace.String(), "-lease", f.lease.String()}
		if n < len(crashes) {
			args = append(args, "-die-after", fmt.Sprint(crashes[n].steps))
		}
		state, err := f.child(exec.CommandContext(ctx, program, args...))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		case n == len(crashes) || state.Success():
			return fmt.Errorf("%s ended by itself (%s)", name, state)
		}
		f.mu.Lock()
		f.dead[name] = n
		f.mu.Unlock()
	}
	return nil
}

// death tells which of the crashes a worker has died of, once.
func (f *fleet) death(instance string) (n int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok = f.dead[instance]
	delete(f.dead, instance)
	return n, ok
}

// child runs one worker process to its end, however that comes about.
func (f *fleet) child(cmd *exec.Cmd) (*os.ProcessState, error) {
	// Not as arguments: both may hold a secret.
	cmd.Env = append(os.Environ(), "FLOWFABRIC_URL="+f.url, suspend.EnvTokenKeys+"="+f.keys)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // closing it asks the worker to stop; it closes by itself should this process die
	if err != nil {
		return nil, err
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, 10*time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	heard := hear(stdout, f.did)
	if heard != nil {
		_ = stdin.Close()
	}
	_ = cmd.Wait() // the state says it too
	return cmd.ProcessState, heard
}

// hear reads what a worker process did, to the end of its output.
func hear(stdout io.Reader, did func(effect string, token suspend.Token) error) error {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("read what it did: %w", err)
		}
		token := suspend.Token{}
		if e.Token != "" {
			var err error
			if token, err = suspend.ParseToken(e.Token); err != nil {
				return err
			}
		}
		if err := did(e.Effect, token); err != nil {
			return err
		}
	}
	return nil
}

// runWorker is what a worker process does until stdin closes or its time to die has come.
func runWorker(ctx context.Context, o options, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watch conc.WaitGroup // not waited for: stdin may stay open until this process has ended
	watch.Go(func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	})
	out := json.NewEncoder(stdout) // the handlers of one execution never run at once
	return serve(ctx, o, runtime.Config{Instance: o.name, LeaseTTL: o.lease, OnCall: dieAfter(o.dieAfter)},
		func(effect string, token suspend.Token) error { return out.Encode(entry{effect, token.Reveal()}) })
}

// dieAfter ends this process, without a chance to clean up (SIGKILL where there are signals), as soon as the server has
// recorded so many steps.
func dieAfter(steps int) func(function string, took time.Duration, err error) {
	var recorded atomic.Int64
	return func(function string, _ time.Duration, err error) {
		if err != nil || function != "ff_record_step" || recorded.Add(1) != int64(steps) {
			return
		}
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {} // the handler must not see another instant
	}
}
