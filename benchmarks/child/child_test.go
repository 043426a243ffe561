package child_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/child"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// The children of these tests are this test binary, with a system that makes up its jobs.
func TestMain(m *testing.M) {
	task, asked, err := child.Asked()
	if !asked {
		goleak.VerifyTestMain(m)
		return
	}
	if err == nil && task.System == "silent" {
		os.Exit(0)
	}
	if err == nil {
		err = child.Work(context.Background(), system{task}, task, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// system has as many jobs as its task has partitions, and hands them out once its worker starts.
type system struct{ task child.Task }

func (s system) Name() string    { return s.task.System }
func (s system) Version() string { return "1" }
func (s system) Serve(context.Context, driver.Serving) (driver.Server, error) {
	return nil, errors.ErrUnsupported
}

func (s system) Open(ctx context.Context, srv driver.Server, cfg driver.Settings) (driver.Store, error) {
	if srv.URL() != "unix:///s.sock" || cfg.Partitions != s.task.Partitions {
		return nil, fmt.Errorf("opened at %q with %+v", srv.URL(), cfg)
	}
	if srv.Reset(ctx) == nil {
		return nil, errors.New("a child can reset the server")
	}
	return store(s), nil
}

type store struct{ task child.Task }

func (store) Submit(context.Context, []byte) error       { return errors.ErrUnsupported }
func (store) SubmitMany(context.Context, [][]byte) error { return errors.ErrUnsupported }
func (store) Close()                                     {}

func (s store) Work(ctx context.Context, w driver.Worker) (func() error, error) {
	if s.task.System == "lame" {
		return nil, errors.New("cannot work")
	}
	for range s.task.Partitions {
		w.Handle(ctx, nil)
	}
	return func() error { w.Handle(ctx, nil); return nil }, nil // one more while it stops
}

func task(system string) child.Task {
	return child.Task{System: system, URL: "unix:///s.sock", Partitions: 100, Concurrency: 1}
}

func TestChildTellsEveryJob(t *testing.T) {
	var handled atomic.Int64
	all := make(chan struct{})
	c, err := child.Start(t.Context(), task("plain"), func(n int) {
		if handled.Add(int64(n)) == 100 {
			close(all)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.PID == os.Getpid() || c.PID < 2 {
		t.Errorf("process %d", c.PID)
	}
	if n := handled.Load(); n != 0 {
		t.Errorf("%d jobs handled before it was let go", n)
	}
	if err := c.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-all:
	case <-testwait.End(t):
		t.Fatalf("%d of 100 jobs told", handled.Load())
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := handled.Load(); n != 101 {
		t.Errorf("%d jobs told, want 101 with the one that was running when it was stopped", n)
	}
}

func TestChildThatIsNeverLetGo(t *testing.T) {
	c, err := child.Start(t.Context(), task("plain"), func(int) { t.Error("a job was handled") })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestChildThatFails(t *testing.T) {
	c, err := child.Start(t.Context(), task("lame"), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Begin(t.Context())
	if err := c.Stop(); err == nil || !strings.Contains(err.Error(), "cannot work") {
		t.Errorf("%v, want what the process said", err)
	}
	wrong := task("plain")
	wrong.URL = "elsewhere"
	for system, t2 := range map[string]child.Task{"elsewhere": wrong, "ready": task("silent")} {
		if _, err := child.Start(t.Context(), t2, func(int) {}); err == nil || !strings.Contains(err.Error(), system) {
			t.Errorf("%v, want an error with %q", err, system)
		}
	}
}
