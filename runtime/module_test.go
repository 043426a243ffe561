package runtime_test

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// forwarding submits what it is given to another kind.
type forwarding struct{ client *client.Client }

func (f *forwarding) Handle(ctx context.Context, _ *handler.Task, name string) (string, error) {
	x, err := client.Submit(ctx, f.client, handler.Define[string, string]("part"), name)
	if err != nil {
		return "", err
	}
	return x.Result(ctx)
}

// A handler has the application's client injected, and the worker takes its logger and registerer from the application.
func TestModuleSharesWithTheApplication(t *testing.T) {
	w := newEnv(t)
	var logged atomic.Int32
	registry := prometheus.NewRegistry()
	app := fx.New(fx.NopLogger, fx.StopTimeout(25*time.Second),
		runtime.Module(runtime.Config{URL: w.url}),
		runtime.Provide(greet, func(c *client.Client) *forwarding { return &forwarding{c} }),
		runtime.Handle(handler.Define[string, string]("part"), hello),
		fx.Supply(fx.Annotate(registry, fx.As(new(prometheus.Registerer)))),
		fx.Provide(func() *slog.Logger { return slog.New(slog.NewTextHandler(counting{&logged}, nil)) }))
	must.No(t, app.Start(w.ctx))
	id := w.submit("ada")
	w.reach(id, codes.Completed)
	if got, _, err := w.engine.ReadResult(w.ctx, id, 1); err != nil || string(got) != `"hello ada"` {
		t.Errorf("result %q, %v", got, err)
	}
	must.No(t, app.Stop(w.ctx))
	if families, err := registry.Gather(); err != nil || len(families) == 0 || logged.Load() == 0 {
		t.Errorf("%d families of metrics, %v; %d lines logged", len(families), err, logged.Load())
	}
}

type counting struct{ n *atomic.Int32 }

func (c counting) Write(p []byte) (int, error) { c.n.Add(1); return len(p), nil }

var _ io.Writer = counting{}

// lowered are slots that an application has lowered.
type lowered struct {
	runtime.Slots
	limit, asked atomic.Int32
}

func (l *lowered) Limit() int {
	l.asked.Add(1)
	return min(l.Slots.Limit(), int(l.limit.Load()))
}

// An application that decorates the slots says how many handlers run; what waits meanwhile is not claimed.
func TestSlotsAreDecorated(t *testing.T) {
	w := newEnv(t)
	var slots lowered
	slots.limit.Store(1)
	var mu sync.Mutex
	var running, most int
	release := make(chan struct{}) // takes one for each handler that may end
	app := fx.New(fx.NopLogger, fx.StopTimeout(25*time.Second),
		runtime.Module(runtime.Config{URL: w.url, Logger: quiet, Concurrency: 4}),
		fx.Decorate(func(s runtime.Slots) runtime.Slots { slots.Slots = s; return &slots }),
		runtime.Handle(greet, func(ctx context.Context, _ *handler.Task, name string) (string, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() { mu.Lock(); running--; mu.Unlock() }()
			select {
			case <-release:
			case <-ctx.Done():
			}
			return name, context.Cause(ctx)
		}))
	must.No(t, app.Start(w.ctx))
	ids := []flowfabric.ExecutionID{w.submit("a"), w.submit("b"), w.submit("c")}
	before := slots.asked.Load()
	testwait.Until(t, "the worker looks again for work", func() bool { return slots.asked.Load() >= before+2 })
	for range ids { // one after the other, in whichever order
		release <- struct{}{}
	}
	for _, id := range ids {
		w.reach(id, codes.Completed)
	}
	if most != 1 {
		t.Errorf("%d handlers ran at once, want 1", most)
	}
	slots.limit.Store(10) // more than Concurrency counts as that
	ids = []flowfabric.ExecutionID{w.submit("d"), w.submit("e"), w.submit("f"), w.submit("g")}
	for _, id := range ids {
		w.reach(id, codes.Active) // all at once: nothing is released
	}
	for range ids {
		release <- struct{}{}
	}
	for _, id := range ids {
		w.reach(id, codes.Completed)
	}
	must.No(t, app.Stop(w.ctx))
}
