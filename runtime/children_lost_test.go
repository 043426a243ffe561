package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

// between stands between a worker and the server when it makes children: meanwhile runs before the call that suspends.
type between struct {
	store
	meanwhile func(ctx context.Context, fence flowfabric.Fence)
	lose      bool // the replies to the first of two calls of each kind are lost
	made      atomic.Int64
	parked    atomic.Int64
	read      atomic.Int64
}

func (b *between) lost(count *atomic.Int64, err error) error {
	if n := count.Add(1); err == nil && b.lose && n%2 == 1 {
		return fmt.Errorf("%w: cut", flowfabric.ErrTransport)
	}
	return err
}

func (b *between) MakeChildren(ctx context.Context, fence flowfabric.Fence,
	q engine.ChildWait) (engine.MadeChildren, error) {
	made, err := b.store.MakeChildren(ctx, fence, q)
	return made, b.lost(&b.made, err)
}

func (b *between) SuspendExecution(ctx context.Context, fence flowfabric.Fence,
	q engine.Suspension) (engine.Suspended, error) {
	if b.meanwhile != nil {
		b.meanwhile(ctx, fence)
	}
	suspended, err := b.store.SuspendExecution(ctx, fence, q)
	return suspended, b.lost(&b.parked, err)
}

func (b *between) ReadResult(ctx context.Context, id flowfabric.ExecutionID,
	attempt uint32) ([]byte, bool, error) {
	result, ok, err := b.store.ReadResult(ctx, id, attempt)
	return result, ok, b.lost(&b.read, err)
}

func (b *between) ReadFrames(ctx context.Context, id flowfabric.ExecutionID, attempt uint32, after stream.Cursor,
	limit int) ([]stream.Frame, error) {
	page, err := b.store.ReadFrames(ctx, id, attempt, after, limit)
	return page, b.lost(&b.read, err)
}

func (b *between) ReadExecution(ctx context.Context, id flowfabric.ExecutionID) (engine.Snapshot, error) {
	s, err := b.store.ReadExecution(ctx, id)
	return s, b.lost(&b.read, err)
}

// many is a handler that waits for 120 children, two calls' worth, and counts its runs.
func many(runs *atomic.Int64) []handler.Binding {
	child := handler.Define[int, int]("child")
	return []handler.Binding{
		handler.Bind(handler.Define[string, string]("k"),
			func(ctx context.Context, task *handler.Task, _ string) (string, error) {
				runs.Add(1)
				set := flow.Children("w")
				kids := make([]*flow.ChildNode[int], 120)
				for i := range kids {
					kids[i] = flow.Child(set, fmt.Sprint("c", i), child, i)
				}
				if err := task.WaitChildren(ctx, set); err != nil {
					return "", err
				}
				sum := 0
				for _, k := range kids {
					v, err := handler.ChildResult(ctx, task, k)
					if err != nil {
						return "", err
					}
					sum += v
				}
				return fmt.Sprint(sum), nil
			}),
		handler.Bind(child, func(_ context.Context, _ *handler.Task, in int) (int, error) { return in, nil }),
	}
}

func (b *bench) ofChildren(t *testing.T, wrap *between) (runs *atomic.Int64, ended chan struct{}) {
	t.Helper()
	runs = &atomic.Int64{}
	return runs, b.behind(t, wrap, many(runs)...)
}

// behind puts wrap between a worker with these handlers and its store; ended is closed when the execution has completed.
func (b *bench) behind(t *testing.T, wrap *between, handlers ...handler.Binding) (ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{})
	worker, err := New(Config{URL: b.worker.target().URL, Logger: quiet}, handlers...)
	must.No(t, err)
	worker.open = func(ctx context.Context, cfg Config) (store, func(), error) {
		s, release, err := open(ctx, cfg)
		wrap.store = &watched{store: s, id: b.id, ended: ended}
		return wrap, release, err
	}
	b.worker = worker
	return ended
}

// watched closes ended when an execution has completed.
type watched struct {
	store
	id    flowfabric.ExecutionID
	ended chan struct{}
	once  sync.Once
}

func (w *watched) CompleteExecutions(ctx context.Context, p uint16, items []engine.Completion,
	next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error) {
	s, c, err := w.store.CompleteExecutions(ctx, p, items, next)
	for i, x := range items {
		if err == nil && x.Fence.Execution == w.id && s[i].Err == nil {
			w.once.Do(func() { close(w.ended) })
		}
	}
	return s, c, err
}

// sum is what the parent of many ends with.
func (b *bench) sum(t *testing.T, s engine.Snapshot) {
	t.Helper()
	raw, _, err := b.engine.ReadResult(t.Context(), b.id, s.Attempts)
	if err != nil || string(raw) != `"7140"` {
		t.Errorf("%s: result %s, %v", s.Code, raw, err)
	}
	r, err := b.engine.DescribeFlow(t.Context(), flowfabric.FlowID(b.id))
	if err != nil || r.Members != 121 || r.State != flowfabric.FlowCompleted {
		t.Errorf("flow %s of %d members, %v", r.State, r.Members, err)
	}
}

// A worker that loses the execution when its children were made and it was about to wait: the next one makes none of
// them twice.
func TestLostBetweenMakingAndWaiting(t *testing.T) {
	var b *bench
	wrap := &between{}
	wrap.meanwhile = func(ctx context.Context, fence flowfabric.Fence) {
		if fence.Attempt > 1 {
			return
		}
		r, err := b.engine.DescribeFlow(ctx, flowfabric.FlowID(b.id))
		if err != nil || r.Members != 121 {
			t.Errorf("%d members before the wait, %v", r.Members, err)
		}
		if _, err := b.engine.RevokeLease(ctx, b.id, ""); err != nil && !errors.Is(err, denied.NotActive) {
			t.Error(err)
		}
	}
	b = newBench(t, quiet, func(s store) store { return s })
	runs, ended := b.ofChildren(t, wrap)
	s := b.run(t, ended)
	b.sum(t, s)
	// Children that had ended before the second attempt waited answer it at once; a further call asks how they did.
	if made := wrap.made.Load(); s.Attempts != 2 || s.Reclaims != 1 || wrap.parked.Load() != 2 || made < 4 ||
		made > 5 ||
		runs.Load() < 3 {
		t.Errorf("%d attempts, %d reclaims, %d and %d calls, %d runs", s.Attempts, s.Reclaims, wrap.made.Load(),
			wrap.parked.Load(), runs.Load())
	}
}

// Replies to the calls that make children, wait for them and read their results are lost: the children are there once,
// and so is the wait, and no attempt is used up.
func TestLostRepliesOfChildren(t *testing.T) {
	b := newBench(t, quiet, func(s store) store { return s })
	wrap := &between{lose: true}
	runs, ended := b.ofChildren(t, wrap)
	s := b.run(t, ended)
	b.sum(t, s)
	made := wrap.made.Load() // the last two ask for the outcomes, if all had ended before it waited
	// The call that suspends is not repeated if the execution is claimed anew before: the newer hold ends the older.
	if s.Attempts != 1 || made != 4 && made != 6 || wrap.parked.Load() < 1 || wrap.parked.Load() > 2 ||
		runs.Load() != 2 || wrap.read.Load() != 240 {
		t.Errorf("%d attempts, %d and %d calls, %d reads, %d runs", s.Attempts, made, wrap.parked.Load(),
			wrap.read.Load(), runs.Load())
	}
}

// Answers to what a handler reads of its own execution are lost: it reads again, and no attempt is used up.
func TestLostRepliesOfReads(t *testing.T) {
	b := newBench(t, quiet, func(s store) store { return s })
	wrap := &between{lose: true}
	ended := b.behind(t, wrap, handler.Bind(handler.Define[string, string]("k"),
		func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			if err := task.Frame(ctx, "word", "hello"); err != nil {
				return "", err
			}
			frames := 0
			for _, err := range task.Stream(ctx) {
				if frames++; err != nil {
					return "", err
				}
			}
			if frames != 1 {
				t.Errorf("%d frames", frames)
			}
			_, _, err := task.RetryIn(ctx, handler.Failure{Category: "no"})
			return "", err
		}))
	if s := b.run(t, ended); s.Attempts != 1 || s.State.Public != flowfabric.Completed || wrap.read.Load() != 4 {
		t.Errorf("%s after %d attempts and %d reads", s.State.Public, s.Attempts, wrap.read.Load())
	}
}
