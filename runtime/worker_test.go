package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

func TestCompletes(t *testing.T) {
	w := newEnv(t)
	reg := prometheus.NewRegistry()
	w.start(runtime.Config{Registerer: reg}, greetBinding())
	before := w.submit("ada")
	w.reach(before, codes.Completed)
	result, ok, err := w.engine.ReadResult(w.ctx, before, 1)
	if err != nil || !ok || string(result) != `"hello ada"` {
		t.Errorf("result %q, %v, %v", result, ok, err)
	}
	w.eventually("the worker counts it", func() bool {
		n, err := testutil.GatherAndCount(reg, "flowfabric_settled_total", "flowfabric_claim_seconds",
			"flowfabric_in_flight")
		return err == nil && n == 3
	})
}

// Many executions over all partitions, more than there are slots: all are run, never more than Concurrency at once.
func TestConcurrencyIsABound(t *testing.T) {
	w := newEnv(t)
	var now, peak atomic.Int64
	w.start(runtime.Config{Concurrency: 3},
		handler.Bind(greet, func(ctx context.Context, task *handler.Task, in string) (string, error) {
			n := now.Add(1)
			for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
			}
			defer now.Add(-1)
			return hello(ctx, task, in)
		}))
	var ids []flowfabric.ExecutionID
	for range 60 {
		ids = append(ids, w.submit("x"))
	}
	for _, id := range ids {
		w.reach(id, codes.Completed)
	}
	if peak.Load() > 3 {
		t.Errorf("%d handlers ran at once, want at most 3", peak.Load())
	}
}

// Every way to end badly keeps its category.
func TestFailureCategories(t *testing.T) {
	w := newEnv(t)
	unchecked := handler.Define[string, string]("greet", handler.NoSchema())
	w.start(runtime.Config{}, handler.Bind(unchecked, func(_ context.Context, _ *handler.Task,
		in string) (string, error) {
		if in == "panic" {
			panic("boom")
		}
		if in == "goexit" { // as a test's FailNow does
			goruntime.Goexit()
		}
		return "", errors.New("no")
	}))
	for in, want := range map[any]string{"panic": causes.Panic, "goexit": causes.Panic,
		"error": causes.HandlerError, 7: causes.Decode} {
		got := w.reach(w.submit(in), codes.Failed)
		if string(got.Failure.Category) != want {
			t.Errorf("%v: category %q, want %q", in, got.Failure.Category, want)
		}
	}
}

// blocking is a handler that runs until its context ends, and tells why that was.
func blocking() (b handler.Binding, started chan struct{}, causes chan error) {
	started, causes = make(chan struct{}, 8), make(chan error, 8)
	return handler.Bind(greet, func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
		started <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "", ctx.Err()
	}), started, causes
}

// An operator's cancel reaches a running handler by the doorbell, long before the next renewal.
func TestCancelReachesTheHandler(t *testing.T) {
	w := newEnv(t)
	b, started, causes := blocking()
	w.start(runtime.Config{}, b)
	id := w.submit("x")
	<-started
	if _, err := w.engine.CancelExecution(w.ctx, id,
		engine.Cancellation{Source: engine.CancelOperator}); err != nil {
		t.Fatal(err)
	}
	if cause := <-causes; !errors.Is(cause, flowfabric.ErrCancelled) {
		t.Errorf("cause %v", cause)
	}
	w.reach(id, codes.Cancelled)
}

// A recorded step is not repeated by the next attempt, and frames are stored before the attempt ends.
func TestStepsAndFrames(t *testing.T) {
	w := newEnv(t)
	var steps atomic.Int64
	w.start(runtime.Config{},
		handler.Bind(greet, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			draft, err := handler.Step(ctx, task, "draft", func(ctx context.Context) (string, error) {
				steps.Add(1)
				return "text", task.Frame(ctx, "token", "t")
			})
			if err != nil || task.Attempt() == 1 {
				return "", errors.Join(err, errors.New("again"))
			}
			return draft, task.Frame(ctx, "token", "u")
		}))
	id := w.submit("x", retries(1))
	if got := w.reach(id, codes.Completed); got.Steps != 1 || steps.Load() != 1 {
		t.Errorf("%d steps recorded, run %d times", got.Steps, steps.Load())
	}
	for attempt, want := range []string{"t", "u"} {
		frames, err := w.engine.ReadFrames(w.ctx, id, uint32(attempt+1), stream.Cursor{}, 10)
		if err != nil || len(frames) != 1 || string(frames[0].Payload) != want {
			t.Errorf("attempt %d: frames %v, %v", attempt, frames, err)
		}
	}
}

// A goroutine that outlives its handler appends nothing, though there was no frame before: the attempt is over.
func TestFrameAfterTheHandler(t *testing.T) {
	w := newEnv(t)
	tasks := make(chan *handler.Task, 1)
	w.start(runtime.Config{},
		handler.Bind(greet, func(_ context.Context, task *handler.Task, _ string) (string, error) {
			tasks <- task
			return "done", nil
		}))
	id := w.submit("x")
	w.reach(id, codes.Completed)
	if err := (<-tasks).Frame(t.Context(), "token", "late"); !errors.Is(err, denied.TaskConsumed) {
		t.Errorf("a frame after the handler: %v, want ErrTaskConsumed", err)
	}
	if frames, err := w.engine.ReadFrames(w.ctx, id, 1, stream.Cursor{}, 10); err != nil || len(frames) > 0 {
		t.Errorf("frames %v, %v", frames, err)
	}
}

// A middleware that makes up an outcome that waits has nothing to wait for: the attempt fails, and says so.
func TestMiddlewareThatWaitsForNothing(t *testing.T) {
	w := newEnv(t)
	worker := w.start(runtime.Config{Worker: "pool", Middleware: []handler.Middleware{
		func(handler.Handler) handler.Handler {
			return func(_ context.Context, task *handler.Task) handler.Outcome {
				if string(task.Input()) == `"signal"` {
					return handler.Outcome{Kind: codes.OutcomeSuspend}
				}
				return handler.Outcome{Kind: codes.OutcomeChildren}
			}
		},
	}}, greetBinding())
	for _, input := range []string{"signal", "children"} {
		if got := w.reach(w.submit(input), codes.Failed); !strings.Contains(got.Failure.Message, "what to wait for") {
			t.Errorf("%s: %q", input, got.Failure.Message)
		}
	}
	must.No(t, worker.stop())
}

// Middleware sees every run; its panic fails the attempt instead of holding the execution for ever.
func TestMiddleware(t *testing.T) {
	w := newEnv(t)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	worker := w.start(runtime.Config{Worker: "pool", Logger: logger, Middleware: []handler.Middleware{
		handler.Logging(nil),
		func(next handler.Handler) handler.Handler {
			return func(ctx context.Context, task *handler.Task) handler.Outcome {
				if string(task.Input()) == `"panic"` {
					panic("middleware")
				}
				return next(ctx, task)
			}
		},
	}}, greetBinding())
	ok, bad := w.submit("x"), w.submit("panic")
	w.reach(ok, codes.Completed)
	if got := w.reach(bad, codes.Failed); got.Failure.Category != causes.Panic {
		t.Errorf("category %q", got.Failure.Category)
	}
	must.No(t, worker.stop())
	want := "outcome=complete"
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, want) {
			for _, attr := range []string{"worker=pool", "execution=" + `"` + ok.String(), "attempt=1", "kind=greet",
				"lane=default"} {
				if !strings.Contains(line, strings.ReplaceAll(attr, `"`, "")) && !strings.Contains(line, attr) {
					t.Errorf("line %q lacks %s", line, attr)
				}
			}
			return
		}
	}
	t.Errorf("no line with %s in %s", want, log.String())
}

// A drain hands unfinished work back at once: no retry, no new attempt, and the next worker goes on.
func TestDrainReleases(t *testing.T) {
	w := newEnv(t)
	b, started, causes := blocking()
	first := w.start(runtime.Config{DrainTimeout: -1}, b)
	id := w.submit("x", retries(3))
	<-started
	must.No(t, first.stop())
	if cause := <-causes; !errors.Is(cause, flowfabric.ErrDraining) {
		t.Errorf("cause %v", cause)
	}
	if got := w.reach(id, codes.WaitingInterrupted); got.Retries != 0 || got.Reclaims != 0 {
		t.Errorf("%d retries, %d reclaims", got.Retries, got.Reclaims)
	}
	if err := first.Ready(); err == nil {
		t.Error("a stopped worker says it is ready")
	}
	w.start(runtime.Config{}, greetBinding())
	if got := w.reach(id, codes.Completed); got.Attempts != 1 {
		t.Errorf("%d attempts, want the same one", got.Attempts)
	}
}

// A drain lets running work finish within DrainTimeout.
func TestDrainWaits(t *testing.T) {
	w := newEnv(t)
	started, finish := make(chan struct{}), make(chan struct{})
	worker := w.start(runtime.Config{},
		handler.Bind(greet, func(ctx context.Context, _ *handler.Task, _ string) (string, error) {
			close(started)
			<-finish
			return "done", ctx.Err()
		}))
	id := w.submit("x")
	<-started
	time.AfterFunc(50*time.Millisecond, func() { close(finish) })
	must.No(t, worker.stop())
	w.reach(id, codes.Completed)
}

// A handler that ignores its context is abandoned by name, and Run says so.
func TestDrainAbandons(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	started, finish := make(chan struct{}), make(chan struct{})
	defer close(finish)
	worker := w.start(runtime.Config{DrainTimeout: -1},
		handler.Bind(greet, func(context.Context, *handler.Task, string) (string, error) {
			close(started)
			<-finish
			return "", nil
		}))
	w.submit("x")
	<-started
	if err := worker.stop(); err == nil || !strings.Contains(err.Error(), "1 handler") {
		t.Errorf("stop: %v", err)
	}
}

// A worker is given only what it can run: lane, kind and capabilities are its own.
func TestOnlyWhatItServes(t *testing.T) {
	w := newEnv(t)
	w.start(runtime.Config{Lanes: []string{"default", "fast"}, Capabilities: []string{"gpu", "eu"}}, greetBinding())
	lane := func(l string) func(*engine.NewExecution) { return func(x *engine.NewExecution) { x.Lane = l } }
	needs := func(c ...string) func(*engine.NewExecution) {
		return func(x *engine.NewExecution) { x.Capabilities = c }
	}
	other := []flowfabric.ExecutionID{
		w.submit("x", lane("slow")), w.submit("x", needs("arm", "gpu")),
		w.submit("x", func(x *engine.NewExecution) { x.Kind = "other" }),
		w.submit("x", func(x *engine.NewExecution) { x.Namespace = "other" }),
	}
	for _, id := range []flowfabric.ExecutionID{w.submit("x", lane("fast")), w.submit("x", needs("gpu")),
		w.submit("x", needs("eu", "gpu"))} {
		w.reach(id, codes.Completed)
	}
	for _, id := range other {
		w.reach(id, codes.WaitingFirst)
	}
}

func TestRunsOnce(t *testing.T) {
	w := newEnv(t)
	worker := w.start(runtime.Config{}, greetBinding())
	if err := worker.Run(w.ctx); err == nil || !strings.Contains(err.Error(), "only once") {
		t.Errorf("second run: %v", err)
	}
}

func TestNoServer(t *testing.T) {
	worker, err := runtime.New(runtime.Config{URL: "redis://127.0.0.1:1", Logger: quiet}, greetBinding())
	must.No(t, err)
	if err := worker.Run(t.Context()); !errors.Is(err, flowfabric.ErrTransport) ||
		!strings.HasPrefix(err.Error(), "flowfabric: start worker: ") {
		t.Errorf("no server: %v", err)
	}
}
