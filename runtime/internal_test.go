package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/source"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// A lone completion goes alone and at once; those that come while it is under way go together, at most a
// call's worth, each with its own answer.
func TestCompleterBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var batches []int
		answers := map[string]string{}
		c := newCompleter(func(_ uint16, items []engine.Completion, _ bool, _ int) ([]engine.Settled, error) {
			mu.Lock()
			batches = append(batches, len(items))
			mu.Unlock()
			time.Sleep(time.Millisecond)
			out := make([]engine.Settled, len(items))
			for i, it := range items {
				out[i].Err = fmt.Errorf("item %s", it.Result)
			}
			return out, nil
		}, func(batch []completion, settled []engine.Settled, err error) {
			mu.Lock()
			defer mu.Unlock()
			for i, x := range batch {
				answers[string(x.item.Result)] = settled[i].Err.Error()
			}
			if err != nil {
				t.Error(err)
			}
		})
		var wg conc.WaitGroup
		send := func(result string) {
			wg.Go(func() {
				c.complete(completion{item: engine.Completion{
					Fence: flowfabric.Fence{Execution: mint.ID(1)}, Result: []byte(result)}})
			})
		}
		send("first")
		synctest.Wait()
		for i := range 150 {
			send(fmt.Sprint(i))
		}
		wg.Wait()
		if !slices.Equal(batches, []int{1, 100, 50}) {
			t.Errorf("batches of %v", batches)
		}
		for result, answer := range answers {
			if answer != "item "+result {
				t.Errorf("item %s was answered %s", result, answer)
			}
		}
		if len(answers) != 151 {
			t.Errorf("%d answers", len(answers))
		}
	})
}

// Two handlers of one execution, an old and a new one, never settle in the same call.
func TestCompletionBatchNamesNoExecutionTwice(t *testing.T) {
	q := &completions{}
	one, two := mint.ID(0), mint.ID(0)
	for i, id := range []flowfabric.ExecutionID{one, two, one, two} {
		q.waiting = append(q.waiting,
			completion{item: engine.Completion{Fence: flowfabric.Fence{Execution: id, Epoch: uint64(i)}}})
	}
	for range 2 {
		if got := len(q.take()); got != 2 {
			t.Fatalf("a batch of %d, want 2", got)
		}
	}
	if len(q.waiting) != 0 {
		t.Errorf("%d are left", len(q.waiting))
	}
}

func TestCompletionBatchBytes(t *testing.T) {
	q := &completions{}
	for range 5 {
		q.waiting = append(q.waiting,
			completion{item: engine.Completion{Fence: flowfabric.Fence{Execution: mint.ID(0)},
				Result: make([]byte, 400<<10)}})
	}
	q.waiting = append(q.waiting,
		completion{item: engine.Completion{Fence: flowfabric.Fence{Execution: mint.ID(0)},
			Result: make([]byte, limits.MaxPayload)}})
	var sizes []int
	for len(q.waiting) > 0 {
		sizes = append(sizes, len(q.take()))
	}
	if !slices.Equal(sizes, []int{2, 2, 1, 1}) {
		t.Errorf("batches of %v", sizes)
	}
}

// Slots are taken before a claim round, at most half of them for one, and never exceeded. A claim round that would get
// fewer waits a moment while other claim rounds are under way.
func TestSchedulerSharesSlots(t *testing.T) {
	s := testScheduler(3, newSlots(8))
	now := time.Now()
	if p, _, _ := s.pick(now); p != nil {
		t.Fatal("claims from a partition that is not hot")
	}
	s.source.RingAll()
	picked := []*source.Partition{}
	expect := func(what string, at time.Time, want int, again time.Duration) {
		t.Helper()
		p, n, pause := s.pick(at)
		if n != want || pause != again {
			t.Errorf("%s: %d slots, looks again in %v; want %d, %v", what, n, pause, want, again)
		}
		if p != nil {
			picked = append(picked, p)
		}
	}
	end := func(how func(p *source.Partition)) {
		for _, p := range picked {
			how(p)
			s.ended(p)
		}
		picked = nil
	}
	left := func(*source.Partition) {}
	expect("the first", now, 4, 0)
	s.slots.take(2)
	expect("two are left", now, 0, gather)
	expect("and more may be freed", now.Add(gather/2), 0, gather/2)
	expect("but were not", now.Add(gather), 2, 0)
	expect("none is left", now.Add(2*gather), 0, time.Hour)
	s.slots.put(1)
	expect("the wait begins anew", now.Add(2*gather), 0, gather)
	s.slots.put(3)
	expect("enough are free", now.Add(2*gather), 4, 0)
	end(left)
	s.slots.put(1)
	expect("nothing is under way", now, 1, 0)
	end(left)
	s.slots.put(8)
	for range 3 {
		p, n, _ := s.pick(now)
		s.slots.put(n)
		picked = append(picked, p)
		now = now.Add(gather)
	}
	end(func(p *source.Partition) { s.source.Failed(p, now) })
	if p, _, pause := s.pick(now); p != nil || pause <= 0 || pause > time.Second {
		t.Errorf("picked %v during backoff, pause %v", p, pause)
	}
	if _, n, _ := s.pick(now.Add(time.Second)); n != 1 {
		t.Errorf("%d slots for a failing partition, want 1", n)
	}
}

func TestCategoryLabelsAreCapped(t *testing.T) {
	m := newMetrics(defaultPrefix)
	for i := range maxCategoryLabels {
		if c := fmt.Sprint(i); m.category(c) != c {
			t.Fatalf("category %s is folded", c)
		}
	}
	if m.category("one more") != "other" || m.category("3") != "3" {
		t.Error("the cap does not hold")
	}
}

// faulty loses the reply of the first try of each settling call, after it has taken effect.
type faulty struct {
	store
	lose atomic.Bool
	lost atomic.Int64
	seen sync.Map
}

func (f *faulty) cut(key any, err error) error {
	if _, again := f.seen.LoadOrStore(key, true); f.lose.Load() && !again && err == nil {
		f.lost.Add(1)
		return fmt.Errorf("%w: cut", flowfabric.ErrTransport)
	}
	return err
}

func (f *faulty) ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error) {
	r, err := f.store.ClaimNext(ctx, req)
	if len(r.Claims) > 0 {
		err = f.cut(req.Session+fmt.Sprint(req.Number), err)
	}
	return r, err
}

func (f *faulty) CompleteExecutions(ctx context.Context, p uint16, items []engine.Completion,
	next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error) {
	s, c, err := f.store.CompleteExecutions(ctx, p, items, next)
	return s, c, f.cut(items[0].Fence, err)
}

func (f *faulty) FailExecution(ctx context.Context, fence flowfabric.Fence,
	failure engine.Failure) (engine.FailOutcome, error) {
	o, err := f.store.FailExecution(ctx, fence, failure)
	return o, f.cut(fence, err)
}

func (f *faulty) DelayExecution(ctx context.Context, fence flowfabric.Fence, d time.Duration,
	service string) (bool, error) {
	already, err := f.store.DelayExecution(ctx, fence, d, service)
	return already, f.cut(fence, err)
}

func (f *faulty) ContinueExecution(ctx context.Context, fence flowfabric.Fence, input []byte) (bool, error) {
	already, err := f.store.ContinueExecution(ctx, fence, input)
	return already, f.cut(fence, err)
}

func (f *faulty) ReleaseExecution(ctx context.Context, fence flowfabric.Fence) (bool, error) {
	already, err := f.store.ReleaseExecution(ctx, fence)
	return already, f.cut(fence, err)
}

func (f *faulty) CancelExecution(ctx context.Context, id flowfabric.ExecutionID, c engine.Cancellation) (bool, error) {
	already, err := f.store.CancelExecution(ctx, id, c)
	return already, f.cut(*c.Fence, err)
}

// The lost-reply matrix: every claim and every settling call takes effect and loses its first reply; every
// execution ends exactly as its handler decided.
func TestLostReplies(t *testing.T) {
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	defer server.Close()
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: server.URL(), Partitions: 2, Logger: quiet})
	must.No(t, err)
	defer e.Close()
	var runs sync.Map
	kind := handler.Define[string, string]("k")
	w, err := New(Config{URL: server.URL(), Logger: quiet, LeaseTTL: time.Hour},
		handler.Bind(kind, func(_ context.Context, task *handler.Task, in string) (string, error) {
			n, _ := runs.LoadOrStore(task.ID(), new(atomic.Int64))
			if n.(*atomic.Int64).Add(1) > 1 {
				return "second run", nil
			}
			switch in {
			case "retry":
				return "", errors.New("once")
			case "fail":
				return "", errors.New("for good")
			case "delay":
				return "", handler.Delay(time.Millisecond)
			case "cancel":
				return "", handler.Cancel("why")
			}
			return "first run", nil
		}))
	must.No(t, err)
	f := &faulty{}
	f.lose.Store(true)
	w.open = func(ctx context.Context, cfg Config) (store, func(), error) {
		s, release, err := open(ctx, cfg)
		f.store = s
		return f, release, err
	}
	run, stop := context.WithCancel(ctx)
	var wg conc.WaitGroup
	wg.Go(func() {
		if err := w.Run(run); err != nil {
			t.Error(err)
		}
	})
	defer wg.Wait()
	defer stop()

	want := map[string]struct {
		code codes.Code
		runs int64
	}{
		"complete": {codes.Completed, 1}, "retry": {codes.Completed, 2}, "fail": {codes.Failed, 1},
		"delay": {codes.Completed, 2}, "cancel": {codes.Cancelled, 1},
	}
	for in, expected := range want {
		x := engine.NewExecution{ID: mint.ID(0), Start: flowfabric.Start{Namespace: "default",
			Lane: "default", Kind: "k"},
			Payload: []byte(`"` + in + `"`)}
		if in == "retry" {
			x.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: 5, Initial: time.Millisecond, Max: time.Millisecond}
		}
		if created, err := e.CreateExecutions(ctx, 0, []engine.NewExecution{x}); err != nil || created[0].Err != nil {
			t.Fatal(err, created)
		}
		var got engine.Snapshot
		testwait.Progress(t, in, func() (bool, any) {
			if got, err = e.ReadExecution(ctx, x.ID); err != nil {
				t.Fatal(err)
			}
			return got.Code == expected.code, got.Code
		})
		n, _ := runs.Load(x.ID)
		if n.(*atomic.Int64).Load() != expected.runs {
			t.Errorf("%s: %s after %v runs, want %d", in, got.Code, n, expected.runs)
		}
	}
	if f.lost.Load() < 10 {
		t.Errorf("only %d replies were lost", f.lost.Load())
	}
}
