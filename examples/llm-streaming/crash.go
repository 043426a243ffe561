package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/runtime"
)

const (
	crashWorkers = 3
	crashAfter   = 40              // tokens of the first prompt before its worker is killed
	crashTTL     = 2 * time.Second // lease: how long a dead worker's work stays with it
)

// fleet is a set of worker processes: this program again, with -worker.
type fleet struct {
	mu       sync.Mutex
	children map[string]*child // by instance
	waits    conc.WaitGroup
}

type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer // closing it asks the worker to stop; it closes by itself should this process die
	wanted bool      // its end is no surprise
}

// startFleet starts the workers. fail is called when one ends that nobody asked to.
func startFleet(o options, slots int, fail func(error)) (*fleet, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	f := &fleet{children: map[string]*child{}}
	for n := range crashWorkers {
		name := fmt.Sprintf("worker-%d", n+1)
		cmd := exec.Command(program, "-worker", "-name", name, "-slots", fmt.Sprint(slots), "-pace", o.pace.String())
		if o.verbose {
			cmd.Args = append(cmd.Args, "-v")
		}
		cmd.Env = append(os.Environ(), "FLOWFABRIC_URL="+o.url) // not as an argument: it may hold a password
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			f.stop()
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
		c := &child{cmd: cmd, stdin: stdin}
		f.mu.Lock()
		f.children[name] = c
		f.mu.Unlock()
		f.waits.Go(func() {
			_ = cmd.Wait() // the state says it too
			f.mu.Lock()
			wanted := c.wanted
			f.mu.Unlock()
			if !wanted {
				fail(fmt.Errorf("%s ended by itself (%s)", name, cmd.ProcessState))
			}
		})
	}
	return f, nil
}

// stop asks all workers to drain and waits for them.
func (f *fleet) stop() {
	f.mu.Lock()
	for _, c := range f.children {
		c.wanted = true
		_ = c.stdin.Close()
	}
	f.mu.Unlock()
	f.waits.Wait()
}

// kill ends a worker process at once, without a chance to clean up (SIGKILL where there are signals).
func (f *fleet) kill(instance string) (pid int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.children[instance]
	if c == nil {
		return 0, fmt.Errorf("%q is no worker of this demo", instance)
	}
	c.wanted = true
	return c.cmd.Process.Pid, c.cmd.Process.Kill()
}

// killer returns a token hook that, once, kills the worker that holds the first prompt when that is under way.
func (f *fleet) killer(view View) func(context.Context, *client.Execution[Answer], int, int) {
	var once sync.Once
	return func(ctx context.Context, exec *client.Execution[Answer], i, tokens int) {
		if i != 0 || tokens < crashAfter {
			return
		}
		once.Do(func() {
			snapshot, err := exec.Get(ctx)
			if err != nil {
				view.Notice("no worker killed: " + err.Error())
				return
			}
			holder := snapshot.Worker
			pid, err := f.kill(holder)
			if err != nil {
				view.Notice("no worker killed: " + err.Error())
				return
			}
			view.Notice(fmt.Sprintf("killed %s (pid %d), which holds prompt 1, after %s; its lease runs out in %s",
				holder, pid, plural(tokens, "token"), crashTTL))
		})
	}
}

// runWorker is what a child process does until stdin closes.
func runWorker(ctx context.Context, o options, stdin io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watch conc.WaitGroup // not waited for: stdin may stay open until this process has ended
	watch.Go(func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	})
	return serve(ctx, o, runtime.Config{Instance: o.name, Concurrency: o.slots, LeaseTTL: crashTTL})
}
