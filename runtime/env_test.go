package runtime_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
)

func TestMain(m *testing.M) {
	// sleeps for five seconds
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// greet is the handler that most tests run.
var greet = handler.Define[string, string]("greet")

func greetBinding() handler.Binding { return handler.Bind(greet, hello) }

func hello(_ context.Context, _ *handler.Task, name string) (string, error) {
	return "hello " + name, nil
}

// env is an embedded server, an engine to submit and look with, and the workers that a test starts.
type env struct {
	*testing.T
	ctx    context.Context
	url    string
	engine *engine.Engine
}

func newEnv(t *testing.T) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, context.Background())
	t.Cleanup(cancel)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	t.Cleanup(func() { server.Close() })
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: server.URL(), Partitions: 4, Logger: quiet})
	must.No(t, err)
	t.Cleanup(e.Close)
	return &env{T: t, ctx: ctx, url: server.URL(), engine: e}
}

// running is a worker of a test. stop asks it to drain and returns what Run returned.
type running struct {
	*runtime.Worker
	stop func() error
}

// start runs a worker until the test ends or stops it.
func (w *env) start(cfg runtime.Config, bindings ...handler.Binding) *running {
	w.Helper()
	cfg.URL, cfg.LeaseTTL = w.url, cmp.Or(cfg.LeaseTTL, time.Hour)
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	worker, err := runtime.New(cfg, bindings...)
	must.No(w, err)
	ctx, cancel := context.WithCancel(w.ctx)
	var wg conc.WaitGroup
	var result error
	wg.Go(func() { result = worker.Run(ctx) })
	r := &running{worker, func() error { cancel(); wg.Wait(); return result }}
	w.Cleanup(func() { _ = r.stop() })
	w.eventually("the worker is ready", func() bool { return worker.Ready() == nil })
	return r
}

// submit creates one execution of the kind greet.
func (w *env) submit(in any, change ...func(*engine.NewExecution)) flowfabric.ExecutionID {
	w.Helper()
	payload, err := json.Marshal(in)
	must.No(w, err)
	x := engine.NewExecution{ID: mint.ID(uint16(time.Now().UnixNano() % 4)),
		Start: flowfabric.Start{Namespace: "default",
			Lane: "default", Kind: "greet"}, Payload: payload}
	for _, c := range change {
		c(&x)
	}
	created, err := w.engine.CreateExecutions(w.ctx, x.ID.Partition(), []engine.NewExecution{x})
	if err != nil || created[0].Err != nil {
		w.Fatal(err, created)
	}
	return x.ID
}

func retries(n int) func(*engine.NewExecution) {
	return func(x *engine.NewExecution) {
		x.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: n, Fixed: true, Initial: time.Millisecond, Max: time.Second}
	}
}

// reach waits until an execution has one of the given codes.
func (w *env) reach(id flowfabric.ExecutionID, codes ...codes.Code) engine.Snapshot {
	w.Helper()
	var last engine.Snapshot
	testwait.Progress(w.T, "the execution reaches "+string(codes[0]), func() (bool, any) {
		var err error
		if last, err = w.engine.ReadExecution(w.ctx, id); err != nil {
			w.Fatal(err)
		}
		return slices.Contains(codes, last.Code), fmt.Sprintf("%s, attempt %d", last.Code, last.Attempts)
	})
	return last
}

// eventually polls a condition.
func (w *env) eventually(what string, ok func() bool) {
	w.Helper()
	testwait.Until(w.T, what, ok)
}

func (w *env) submitKind(kind string, in any) flowfabric.ExecutionID {
	w.Helper()
	return w.submit(in, func(x *engine.NewExecution) { x.Kind = kind })
}
