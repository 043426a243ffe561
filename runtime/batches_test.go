package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/runtime"
)

type greetings = []*handler.Item[string, string]

// sizes notes how many items each call got.
type sizes struct {
	mu  sync.Mutex
	all []int
}

func (s *sizes) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, n)
}

func (s *sizes) most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Max(append(s.all, 0))
}

// submitTogether creates executions of the kind greet in one partition, in one call.
func (w *env) submitTogether(n int, change ...func(*engine.NewExecution)) []flowfabric.ExecutionID {
	w.Helper()
	items, ids := make([]engine.NewExecution, n), make([]flowfabric.ExecutionID, n)
	for i := range items {
		in, _ := json.Marshal(fmt.Sprint("i", i))
		items[i] = engine.NewExecution{ID: mint.ID(1),
			Start: flowfabric.Start{Namespace: "default", Lane: "default",
				Kind: "greet"}, Payload: in}
		for _, c := range change {
			c(&items[i])
		}
		ids[i] = items[i].ID
	}
	created, err := w.engine.CreateExecutions(w.ctx, 1, items)
	must.No(w, err)
	for _, c := range created {
		if c.Err != nil {
			w.Fatal(c.Err)
		}
	}
	return ids
}

// Executions of a batch are settled one by one: of ten in one call the one that fails is tried again, and no other.
// What a batch is, metrics, traces and middleware tell.
func TestBatchHandlerSettlesEachAlone(t *testing.T) {
	w, reg, spans := newEnv(t), prometheus.NewRegistry(), &recorder{}
	var n sizes
	var mu sync.Mutex
	attempts, wrapped := map[string]int{}, 0
	ids := w.submitTogether(10, retries(2))
	w.start(runtime.Config{Registerer: reg, TracerProvider: spans,
		Middleware: []handler.Middleware{func(next handler.Handler) handler.Handler {
			return func(ctx context.Context, task *handler.Task) handler.Outcome {
				mu.Lock()
				wrapped++
				mu.Unlock()
				return next(ctx, task)
			}
		}}}, handler.BindBatch(greet, func(ctx context.Context, items greetings) error {
		n.add(len(items))
		mu.Lock()
		defer mu.Unlock()
		for _, item := range items {
			attempts[item.In]++
			if item.In == "i3" && item.Task.Attempt() == 1 {
				item.Fail(errors.New("not yet"))
				continue
			}
			item.Complete("hello " + item.In)
		}
		return nil
	}, handler.Batch{Size: 10, Wait: 3 * time.Second}))
	for i, id := range ids {
		if i != 3 {
			w.reach(id, codes.Completed)
		}
	}
	if n.most() != 10 {
		t.Errorf("calls of %v items, want one of ten", n.all)
	}
	s := w.reach(ids[3], codes.Completed) // by itself, after the wait for others
	if s.Attempts != 2 || s.Retries != 1 {
		t.Errorf("the one that failed had %d attempts, %d retries", s.Attempts, s.Retries)
	}
	raw, _, err := w.engine.ReadResult(w.ctx, ids[3], 2)
	if err != nil || string(raw) != `"hello i3"` {
		t.Errorf("result %q, %v", raw, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for in, times := range attempts {
		if want := map[bool]int{true: 2, false: 1}[in == "i3"]; times != want {
			t.Errorf("%s ran %d times, want %d", in, times, want)
		}
	}
	if wrapped != 11 {
		t.Errorf("middleware saw %d runs, want one for each run of an item", wrapped)
	}
	if got := reading(t, reg, "batch_size", "kind=greet"); got != 2 {
		t.Errorf("batch_size observed %v calls, want 2", got)
	}
	if got := reading(t, reg, "batch_wait_seconds", "kind=greet"); got != 2 {
		t.Errorf("batch_wait_seconds observed %v calls, want 2", got)
	}
	w.eventually("the spans are there", func() bool {
		return len(spans.of("batch greet")) == 2 && len(spans.of("process greet")) == 11
	})
	first := spans.of("batch greet")[0]
	if count := first.attrs["messaging.batch.message_count"].AsInt64(); count != 10 || len(first.links) != 10 {
		t.Errorf("the span of the call has %d items and %d links, want 10", count, len(first.links))
	}
}

// of lists what has ended under a name.
func (r *recorder) of(name string) (all []*recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.ended {
		if s.name == name {
			all = append(all, s)
		}
	}
	return all
}

// A drain lets a call end: what it has ended counts. What waits for others goes back at once, and uses up nothing.
func TestBatchHandlerDrains(t *testing.T) {
	w := newEnv(t)
	started := make(chan struct{})
	ids := w.submitTogether(3)
	r := w.start(runtime.Config{DrainTimeout: -1},
		handler.BindBatch(greet, func(ctx context.Context, items greetings) error {
			items[0].Complete("done")
			close(started)
			<-ctx.Done()
			return context.Cause(ctx)
		}, handler.Batch{Size: 3, Wait: time.Minute}))
	<-started
	waits := w.submit("late")
	w.reach(waits, codes.Active)
	must.No(t, r.stop())
	var done, back int
	for _, id := range append(ids, waits) {
		s, err := w.engine.ReadExecution(w.ctx, id)
		must.No(t, err)
		switch s.Code {
		case codes.Completed:
			done++
		case "R1i":
			back++
			if s.Attempts != 1 || s.Retries != 0 {
				t.Errorf("%s was handed back with %d attempts, %d retries", id, s.Attempts, s.Retries)
			}
		}
	}
	if done != 1 || back != 3 {
		t.Errorf("%d completed and %d handed back, want 1 and 3", done, back)
	}
}

// A cancellation in the middle of a call concerns that item alone.
func TestBatchHandlerLosesOne(t *testing.T) {
	w := newEnv(t)
	started := make(chan struct{})
	ids := w.submitTogether(4)
	w.start(runtime.Config{}, handler.BindBatch(greet, func(ctx context.Context, items greetings) error {
		close(started)
		for _, item := range items {
			if item.In == "i2" {
				<-item.Context().Done()
				if !errors.Is(context.Cause(item.Context()), flowfabric.ErrCancelled) || ctx.Err() != nil {
					t.Errorf("cause %v, the call %v", context.Cause(item.Context()), ctx.Err())
				}
			}
		}
		for _, item := range items {
			item.Complete("x")
		}
		return nil
	}, handler.Batch{Size: 4, Wait: time.Minute}))
	<-started
	if _, err := w.engine.CancelExecution(w.ctx, ids[2],
		engine.Cancellation{Source: engine.CancelOperator}); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if i == 2 {
			w.reach(id, codes.Cancelled)
		} else {
			w.reach(id, codes.Completed)
		}
	}
}

type bulk struct{ prefix string }

func (b *bulk) Handle(_ context.Context, items []*handler.Item[string, string]) error {
	for _, item := range items {
		item.Complete(b.prefix + item.In)
	}
	return nil
}

func (*bulk) Batch() handler.Batch { return handler.Batch{Size: 2} }

// Batch handlers are bound with fx as others are, and a batch that the worker has no slots for is refused at the start.
func TestBatchHandlersOfAnApplication(t *testing.T) {
	for name, opt := range map[string]struct {
		opt  fx.Option
		want string
	}{
		"too large":  {runtime.HandleBatch(greet, (&bulk{}).Handle, handler.Batch{Size: 65}), "Concurrency is 64"},
		"no size":    {runtime.HandleBatch(greet, (&bulk{}).Handle, handler.Batch{}), "Batch.Size is 0"},
		"nil":        {runtime.HandleBatch[string, string](greet, nil, handler.Batch{Size: 1}), "is nil"},
		"no of both": {runtime.Provide(greet, func() int { return 0 }), "which has no such method"},
	} {
		err := runtime.Run(t.Context(), runtime.Config{URL: "embedded://", Logger: quiet}, opt.opt)
		if !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), opt.want) {
			t.Errorf("%s: %v, want %q", name, err, opt.want)
		}
	}
	w := newEnv(t)
	ids := w.submitTogether(2)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() {
		done <- runtime.Run(ctx, runtime.Config{URL: w.url, Logger: quiet},
			runtime.Provide(greet, func() *bulk { return &bulk{"ciao "} }))
	})
	for i, id := range ids {
		w.reach(id, codes.Completed)
		if raw, _, err := w.engine.ReadResult(w.ctx, id, 1); err != nil || string(raw) != fmt.Sprintf(`"ciao i%d"`, i) {
			t.Errorf("result %q, %v", raw, err)
		}
	}
	cancel()
	running.Wait()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
