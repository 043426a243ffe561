package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// runWorker is what a worker process does until stdin closes, or until it is killed.
func runWorker(ctx context.Context, o options, stdin io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watch conc.WaitGroup // not waited for: stdin may stay open until this process has ended
	watch.Go(func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	})
	return runtime.Run(ctx, runtime.Config{URL: o.url, TokenKeys: o.keys, Instance: o.name, LeaseTTL: o.lease,
		DrainTimeout: -1, Logger: o.log},
		runtime.Provide(Talk, NewTalker),
		fx.Provide(
			func() (agent.Model, error) { return choose(os.Getenv, o.pace) },
			func() []agent.Tool { return newTools(o.published) },
			func() blob.Store { return blob.Folder(o.published) }))
}

// restart is the pause before a worker process that ended is replaced. A supervisor such as systemd or Kubernetes
// does this in production.
const restart = 300 * time.Millisecond

// keeper keeps one worker process alive: this program again, with -worker.
type keeper struct {
	options

	mu     sync.Mutex
	number int // of the process, from 1
	child  *exec.Cmd
}

// workerView is what the page shows of the worker.
type workerView struct {
	Name string `json:"name"`
	PID  int    `json:"pid,omitempty"` // none: it is being started
}

// run starts one worker after another until ctx ends.
func (k *keeper) run(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	for fast := 0; ctx.Err() == nil; {
		began := time.Now()
		err := k.once(ctx, program)
		if time.Since(began) > time.Second {
			fast = 0
		} else if fast++; fast == 5 && ctx.Err() == nil {
			return fmt.Errorf("the worker process does not stay up: %w", err)
		}
		select {
		case <-time.After(restart):
		case <-ctx.Done():
		}
	}
	return nil
}

// once runs one worker process to its end, however that comes about.
func (k *keeper) once(ctx context.Context, program string) error {
	k.mu.Lock()
	k.number++
	name := fmt.Sprintf("worker-%d", k.number)
	k.mu.Unlock()
	args := []string{"-worker", "-name", name, "-pace", k.pace.String(), "-lease", k.lease.String(), "-published",
		k.published}
	if k.verbose {
		args = append(args, "-v")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	// not as arguments: both may hold a secret
	cmd.Env = append(os.Environ(), "FLOWFABRIC_URL="+k.url, suspend.EnvTokenKeys+"="+k.keys)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // closing it asks the worker to stop; it closes by itself should this process die
	if err != nil {
		return err
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, 5*time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	k.set(cmd)
	defer k.set(nil)
	return cmd.Wait()
}

func (k *keeper) set(child *exec.Cmd) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.child = child
}

// view is the worker of now.
func (k *keeper) view() workerView {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := workerView{Name: fmt.Sprintf("worker-%d", k.number)}
	if k.child != nil {
		v.PID = k.child.Process.Pid
	}
	return v
}

// kill ends the worker process without a chance to clean up: SIGKILL, where there are signals.
func (k *keeper) kill() (workerView, error) {
	v := k.view()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.child == nil {
		return v, errors.New("the worker is being started")
	}
	return v, k.child.Process.Kill()
}
