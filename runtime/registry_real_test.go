package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// registered is the row of an instance, if there is one.
func (w *env) registered(instance string) (flowfabric.Worker, bool) {
	w.Helper()
	for _, p := range w.engine.Workers(w.ctx) {
		if p.Err != nil {
			w.Fatal(p.Err)
		}
		for _, r := range p.Reply {
			if r.Instance == instance {
				return r, true
			}
		}
	}
	return flowfabric.Worker{}, false
}

// On a server: what a worker says of itself, what it holds, and that it leaves.
func TestRegistrationIsListed(t *testing.T) {
	w := newEnv(t)
	hold, held := make(chan struct{}), make(chan struct{}, 100)
	r := w.start(runtime.Config{Instance: "one", LeaseTTL: time.Second, Lanes: []string{"default", "fast"},
		Capabilities: []string{"gpu"}, AppVersion: "v1"},
		handler.Bind(greet, func(context.Context, *handler.Task, string) (string, error) {
			held <- struct{}{}
			<-hold
			return "", nil
		}))
	var row flowfabric.Worker
	w.eventually("it is registered", func() bool { row, _ = w.registered("one"); return row.Alive })
	if i := row.WorkerInfo; len(i.Lanes) != 2 || i.Kinds[0] != "greet" || i.Capabilities[0] != "gpu" ||
		i.Version != "v1" ||
		i.Revision == 0 || i.Host == "" {
		t.Errorf("row %+v", row)
	}
	w.submit("x")
	<-held
	w.eventually("it says what it holds",
		func() bool { row, _ := w.registered("one"); return row.Reported == 1 && row.Alive })
	again, _ := w.registered("one")
	if again.RegisteredAt != row.RegisteredAt || !again.SeenAt.After(row.SeenAt) {
		t.Errorf("first %+v, later %+v", row, again)
	}
	close(hold)
	must.No(t, r.stop())
	if row, ok := w.registered("one"); ok {
		t.Errorf("it left %+v", row)
	}
}

// A worker that was marked dead while it lives registers again.
func TestMarkedDeadWhileAlive(t *testing.T) {
	w := newEnv(t)
	w.start(runtime.Config{Instance: "one", LeaseTTL: time.Second}, greetBinding())
	if _, err := w.engine.MarkWorkerDead(trail.As(w.ctx, "", "mistaken"), "one"); err != nil {
		t.Fatal(err)
	}
	if row, _ := w.registered("one"); !row.Alive && row.Reason != "mistaken" { // it may have registered again
		t.Errorf("row %+v", row)
	}
	w.eventually("it registers again", func() bool { row, _ := w.registered("one"); return row.Alive })
	w.reach(w.submit("x"), codes.Completed)
}

// The duplicate of a live worker, as a program and as a part of an application: the start does not wait for the
// verdict, which takes a third of the lease, longer than applications may take to start; then it ends with the
// reason.
func TestDuplicateInstanceEndsTheApplication(t *testing.T) {
	w := newEnv(t)
	w.start(runtime.Config{Instance: "one", LeaseTTL: 2 * time.Second}, greetBinding())
	cfg := runtime.Config{URL: w.url, Instance: "one", LeaseTTL: 2 * time.Second, Logger: quiet}
	provide := runtime.Provide(greet, func() *greeter { return &greeter{"hi "} })
	var both conc.WaitGroup
	both.Go(func() {
		if err := runtime.Run(w.ctx, cfg, provide); !errors.Is(err, denied.InstanceInUse) {
			t.Errorf("Run: %v", err)
		}
	})
	both.Go(func() {
		var worker *runtime.Worker
		app := fx.New(fx.NopLogger, runtime.Module(cfg), provide, fx.Populate(&worker))
		if err := app.Start(w.ctx); err != nil {
			t.Errorf("start: %v", err)
			return
		}
		if worker.Ready() == nil {
			t.Error("ready under another's name")
		}
		if signal := <-app.Wait(); signal.ExitCode != 1 {
			t.Errorf("exit code %d", signal.ExitCode)
		}
		if err := app.Stop(w.ctx); !errors.Is(err, denied.InstanceInUse) {
			t.Errorf("stop: %v", err)
		}
	})
	both.Wait()
	w.reach(w.submit("x"), codes.Completed) // the first is undisturbed
}
