package runtime

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// aheadEnv is an embedded server of one partition, and workers of two slots that claim two executions ahead of them.
type aheadEnv struct {
	*testing.T
	ctx    context.Context
	url    string
	engine *engine.Engine
}

const aheadSlots, aheadMost = 2, 2

func newAheadEnv(t *testing.T) *aheadEnv {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	ctx, cancel := testwait.Context(t, context.Background())
	t.Cleanup(cancel)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	must.No(t, err)
	t.Cleanup(func() { server.Close() })
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: server.URL(), Partitions: 1, Logger: quiet})
	must.No(t, err)
	t.Cleanup(e.Close)
	return &aheadEnv{T: t, ctx: ctx, url: server.URL(), engine: e}
}

// aheadWorker is a worker whose handlers wait until they are let go.
type aheadWorker struct {
	worker *Worker
	letGo  chan struct{}
	stop   func() error

	mu   sync.Mutex
	runs map[flowfabric.ExecutionID]int
	now  int
	most int
}

func (w *aheadWorker) Handle(ctx context.Context, t *handler.Task, _ string) (string, error) {
	w.mu.Lock()
	w.runs[t.ID()]++
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.now--
		w.mu.Unlock()
	}()
	select {
	case <-w.letGo:
		return "done", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (w *aheadWorker) ran(id flowfabric.ExecutionID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[id]
}

// count is how many executions it has begun.
func (w *aheadWorker) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}

// worker starts a worker. wrap, if there is one, stands between it and its store.
func (e *aheadEnv) worker(cfg Config, wait time.Duration, wrap func(store) store) *aheadWorker {
	e.Helper()
	out := &aheadWorker{letGo: make(chan struct{}), runs: map[flowfabric.ExecutionID]int{}}
	cfg.URL, cfg.Concurrency, cfg.Logger = e.url, aheadSlots, slog.New(slog.DiscardHandler)
	cfg.LeaseTTL = cmp.Or(cfg.LeaseTTL, time.Hour)
	w, err := New(cfg, handler.Bind(handler.Define[string, string]("k"), out.Handle))
	if err != nil {
		e.Fatal(err)
	}
	out.worker = w
	w.pace = pace{fixed: aheadMost, patience: wait}
	if wrap != nil {
		w.open = func(ctx context.Context, cfg Config) (store, func(), error) {
			s, release, err := open(ctx, cfg)
			if err != nil {
				return nil, nil, err
			}
			return wrap(s), release, nil
		}
	}
	ctx, cancel := context.WithCancel(e.ctx)
	var running conc.WaitGroup
	var result error
	running.Go(func() { result = w.Run(ctx) })
	out.stop = func() error { cancel(); running.Wait(); return result }
	e.Cleanup(func() { _ = out.stop() })
	e.until("the worker is ready", func() bool { return w.Ready() == nil })
	return out
}

func (e *aheadEnv) submit(n int) (ids []flowfabric.ExecutionID) {
	e.Helper()
	items := make([]engine.NewExecution, n)
	for i := range items {
		items[i] = engine.NewExecution{ID: mint.ID(0), Payload: []byte(`"x"`),
			Start: flowfabric.Start{Namespace: "default", Lane: "default",
				Kind: "k", Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}}
		ids = append(ids, items[i].ID)
	}
	for batch := range slices.Chunk(items, limits.MaxBatch) {
		if _, err := e.engine.CreateExecutions(e.ctx, 0, batch); err != nil {
			e.Fatal(err)
		}
	}
	return ids
}

func (e *aheadEnv) until(what string, ok func() bool) {
	e.Helper()
	testwait.Until(e.T, what, ok)
}

// in is which of the executions are in a state.
func (e *aheadEnv) in(state flowfabric.PublicState, ids []flowfabric.ExecutionID) (out []engine.Snapshot) {
	e.Helper()
	for _, id := range ids {
		s, err := e.engine.ReadExecution(e.ctx, id)
		if err != nil {
			e.Fatal(err)
		}
		if s.State.Public == state {
			out = append(out, s)
		}
	}
	return out
}

// full waits until a worker's slots are taken and as much waits ahead as may, and returns what waits.
func (e *aheadEnv) full(w *aheadWorker, ids []flowfabric.ExecutionID) (ahead []flowfabric.ExecutionID) {
	e.Helper()
	e.until("all that may be claimed is", func() bool {
		return len(e.in(flowfabric.Active, ids)) == aheadSlots+aheadMost && w.count() == aheadSlots
	})
	for _, s := range e.in(flowfabric.Active, ids) {
		if w.ran(s.ID) == 0 {
			ahead = append(ahead, s.ID)
		}
	}
	return ahead
}

func (e *aheadEnv) completed(ids []flowfabric.ExecutionID, attempts uint32) {
	e.Helper()
	e.until("all are completed", func() bool { return len(e.in(flowfabric.Completed, ids)) == len(ids) })
	for _, s := range e.in(flowfabric.Completed, ids) {
		if uint32(s.Attempts) != attempts || s.Retries != 0 {
			e.Errorf("%s took %d attempts and %d retries, want %d and none", s.ID, s.Attempts, s.Retries, attempts)
		}
	}
}

// Concurrency is what handlers see of each other, exactly, however much is claimed ahead; and all of it runs once.
func TestClaimsAheadRunNoMoreHandlers(t *testing.T) {
	e := newAheadEnv(t)
	w := e.worker(Config{}, time.Minute, nil)
	close(w.letGo)
	ids := e.submit(300)
	e.completed(ids, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.most > aheadSlots {
		t.Errorf("%d handlers ran at once, want at most %d", w.most, aheadSlots)
	}
	for _, id := range ids {
		if w.runs[id] != 1 {
			t.Errorf("%s ran %d times", id, w.runs[id])
		}
	}
}

// A drain gives back at once what waits for a slot, while handlers still run, without a retry or a new attempt.
func TestDrainGivesBackWhatIsAhead(t *testing.T) {
	e := newAheadEnv(t)
	w := e.worker(Config{DrainTimeout: time.Hour}, time.Hour, nil)
	ids := e.submit(7)
	ahead := e.full(w, ids)
	var stopping conc.WaitGroup
	stopping.Go(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	e.until("what waited is back in its queue", func() bool {
		return len(e.in(flowfabric.Waiting, ahead)) == aheadMost
	})
	if running := e.in(flowfabric.Active, ids); len(running) != aheadSlots {
		t.Errorf("%d are active, want the %d whose handlers run", len(running), aheadSlots)
	}
	other := e.worker(Config{}, time.Minute, nil)
	close(other.letGo)
	e.completed(ahead, 1)
	close(w.letGo)
	stopping.Wait()
	e.completed(ids, 1)
	for _, id := range ids {
		if n := w.ran(id) + other.ran(id); n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
}

// What waits longer than a moment goes to a worker that is idle, and stays an untouched first attempt.
func TestWhatWaitsTooLongGoesElsewhere(t *testing.T) {
	e := newAheadEnv(t)
	w := e.worker(Config{}, 300*time.Millisecond, nil)
	ids := e.submit(aheadSlots + aheadMost)
	ahead := e.full(w, ids)
	other := e.worker(Config{}, time.Minute, nil)
	close(other.letGo)
	e.completed(ahead, 1)
	for _, id := range ahead {
		if w.ran(id) != 0 || other.ran(id) != 1 {
			t.Errorf("%s ran %d times here and %d times there", id, w.ran(id), other.ran(id))
		}
	}
	close(w.letGo)
	e.completed(ids, 1)
}

// What was claimed before its lane was paused runs; what goes back waits for the lane, and nothing else is claimed.
func TestPauseWhileSomethingIsAhead(t *testing.T) {
	for _, back := range []bool{false, true} {
		t.Run(fmt.Sprintf("goes back %v", back), func(t *testing.T) {
			e := newAheadEnv(t)
			wait := time.Minute
			if back {
				wait = 500 * time.Millisecond
			}
			w := e.worker(Config{}, wait, nil)
			ids := e.submit(8)
			ahead := e.full(w, ids)
			c, err := client.Connect(e.ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: e.url,
				Logger: slog.New(slog.DiscardHandler)})
			must.No(t, err)
			defer c.Close()
			must.No(t, admin.New(c).SetLane(e.ctx, "default", admin.LaneChange{State: flowfabric.LanePaused}))
			want := aheadSlots + aheadMost
			if back {
				e.until("what waited is back", func() bool { return len(e.in(flowfabric.Waiting, ahead)) == aheadMost })
				want = aheadSlots
			}
			close(w.letGo)
			e.until("what was begun ends", func() bool { return len(e.in(flowfabric.Completed, ids)) == want })
			if n := len(e.in(flowfabric.Waiting, ids)); n != len(ids)-want || w.count() != want {
				t.Errorf("%d wait and %d have begun, want %d and %d", n, w.count(), len(ids)-want, want)
			}
			must.No(t, admin.New(c).SetLane(e.ctx, "default", admin.LaneChange{State: flowfabric.LaneActive}))
			e.completed(ids, 1)
		})
	}
}

// What is revoked or cancelled while it waits for a slot never begins under its lost claim.
func TestTakenAwayWhileAhead(t *testing.T) {
	e := newAheadEnv(t)
	w := e.worker(Config{}, time.Minute, nil)
	ids := e.submit(aheadSlots + aheadMost)
	ahead := e.full(w, ids)
	if _, err := e.engine.RevokeLease(e.ctx, ahead[0], ""); err != nil {
		t.Fatal(err)
	}
	if _, err := e.engine.CancelExecution(e.ctx, ahead[1],
		engine.Cancellation{Source: engine.CancelOperator}); err != nil {
		t.Fatal(err)
	}
	e.until("the worker has heard of both", func() bool { return testutil.CollectAndCount(w.worker.metrics.lost) == 2 })
	e.until("the revoked one is requeued", func() bool { return len(e.in(flowfabric.Waiting, ahead[:1])) == 1 })
	if n := w.ran(ahead[0]); n != 0 {
		t.Errorf("the revoked one ran %d times", n)
	}
	close(w.letGo)
	e.completed(ahead[:1], 2)
	if w.ran(ahead[0]) != 1 || w.ran(ahead[1]) != 0 {
		t.Errorf("the revoked one ran %d times, the cancelled one %d times; want once and never", w.ran(ahead[0]),
			w.ran(ahead[1]))
	}
}

// gone is a store that can lose its server, and that can hold completions back.
type gone struct {
	store
	lost atomic.Bool
	held chan struct{} // completions wait until it is closed; nil: they do not
}

func (g *gone) out() error {
	if g.lost.Load() {
		return fmt.Errorf("%w: gone", flowfabric.ErrTransport)
	}
	return nil
}

func (g *gone) ClaimNext(ctx context.Context, req engine.ClaimRequest) (engine.ClaimReply, error) {
	if err := g.out(); err != nil {
		return engine.ClaimReply{}, err
	}
	return g.store.ClaimNext(ctx, req)
}

func (g *gone) RenewSession(ctx context.Context, p uint16, session string, ttl time.Duration,
	processed uint64) (engine.Renewal, error) {
	if err := g.out(); err != nil {
		return engine.Renewal{}, err
	}
	return g.store.RenewSession(ctx, p, session, ttl, processed)
}

func (g *gone) ReleaseExecution(ctx context.Context, fence flowfabric.Fence) (bool, error) {
	if err := g.out(); err != nil {
		return false, err
	}
	return g.store.ReleaseExecution(ctx, fence)
}

func (g *gone) CompleteExecutions(ctx context.Context, p uint16, items []engine.Completion,
	next *engine.ClaimRequest) ([]engine.Settled, *engine.ClaimReply, error) {
	if g.held != nil {
		select {
		case <-g.held:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	if err := g.out(); err != nil {
		return nil, nil, err
	}
	return g.store.CompleteExecutions(ctx, p, items, next)
}

// A worker that is cut off loses what waits ahead and what it has begun: another runs all of it, nothing twice to the
// end, and what waited never begins here once its lease is gone.
func TestCutOffWithSomethingAhead(t *testing.T) {
	e := newAheadEnv(t)
	cut := &gone{}
	w := e.worker(Config{LeaseTTL: time.Second, DisableMaintenance: true, DrainTimeout: -1}, time.Minute,
		func(s store) store { cut.store = s; return cut })
	ids := e.submit(6)
	ahead := e.full(w, ids)
	cut.lost.Store(true)
	other := e.worker(Config{}, time.Minute, nil)
	close(other.letGo)
	e.until("another has done it all", func() bool { return len(e.in(flowfabric.Completed, ids)) == len(ids) })
	close(w.letGo)
	for _, s := range e.in(flowfabric.Completed, ids) {
		if s.Retries != 0 {
			t.Errorf("%s took %d retries", s.ID, s.Retries)
		}
	}
	_ = w.stop()
	for _, id := range ahead {
		if w.ran(id) != 0 || other.ran(id) != 1 {
			t.Errorf("%s ran %d times here and %d times there, want never and once", id, w.ran(id), other.ran(id))
		}
	}
}

// A slot is free when its handler returns: others run while completions are under way, as many as may be unsettled,
// and no more.
func TestSlotsAreFreeBeforeCompletionsAreAnswered(t *testing.T) {
	e := newAheadEnv(t)
	slow := &gone{held: make(chan struct{})}
	w := e.worker(Config{}, time.Minute, func(s store) store { slow.store = s; return slow })
	close(w.letGo)
	ids := e.submit(100)
	bound := minSettling + aheadSlots + aheadMost
	e.until("as much was begun as may be unsettled", func() bool { return w.count() >= minSettling })
	// One of those is taken away before its completion arrives: it is refused, and the work runs again.
	var revoked flowfabric.ExecutionID
	for _, s := range e.in(flowfabric.Active, ids) {
		if w.ran(s.ID) == 1 {
			revoked = s.ID
		}
	}
	if _, err := e.engine.RevokeLease(e.ctx, revoked, ""); err != nil {
		t.Fatal(err)
	}
	if n := w.count(); n > bound {
		t.Errorf("%d have begun although nothing is settled, want at most %d", n, bound)
	}
	close(slow.held)
	e.until("all are completed", func() bool { return len(e.in(flowfabric.Completed, ids)) == len(ids) })
	for _, id := range ids {
		want := 1
		if id == revoked {
			want = 2
		}
		if n := w.ran(id); n != want {
			t.Errorf("%s ran %d times, want %d", id, n, want)
		}
	}
}

// A drain waits for completions of handlers that have returned.
func TestDrainWaitsForCompletions(t *testing.T) {
	e := newAheadEnv(t)
	slow := &gone{held: make(chan struct{})}
	w := e.worker(Config{}, time.Minute, func(s store) store { slow.store = s; return slow })
	close(w.letGo)
	ids := e.submit(aheadSlots)
	e.until("the handlers have returned", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.runs) == len(ids) && w.now == 0
	})
	time.AfterFunc(50*time.Millisecond, func() { close(slow.held) })
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if n := len(e.in(flowfabric.Completed, ids)); n != len(ids) {
		t.Errorf("%d are completed after the drain, want %d", n, len(ids))
	}
}

// Nothing is claimed ahead in a partition with gates, or that has nothing more, or when handlers take long.
func TestWhatIsClaimedAhead(t *testing.T) {
	now := time.Now()
	s := testScheduler(1, newSlots(8))
	s.slots.pace.fixed = 4
	take := func(what string, want int, waits bool, reply engine.ClaimReply) {
		t.Helper()
		s.source.RingAll()
		p, n, _ := s.pick(now)
		if n != want || p != nil && p.Waits() != waits {
			t.Errorf("%s: %d were asked for, want %d", what, n, want)
		}
		if p == nil {
			return
		}
		again, err := s.source.Answered(p, n, reply, nil, nil)
		if err != nil || !again { // the table was read anew
			t.Fatalf("%s: again %v, %v", what, again, err)
		}
		must.No(t, s.source.Declare(t.Context(), p))
		s.slots.put(n)
		s.ended(p)
	}
	take("idle slots, and four ahead", 4+4, true, engine.ClaimReply{}) // half of the slots for one claim round
	s.slots.take(8)
	take("no idle slot", 4, false, engine.ClaimReply{})
	s.slots.put(8)
	take("an answer that tells of gates", 4+4, true, engine.ClaimReply{Gated: true})
	take("gates", 4, true, engine.ClaimReply{})
	s.slots.take(8)
	take("gates and no idle slot", 0, false, engine.ClaimReply{})

	s = testScheduler(1, newSlots(8))
	s.slots.pace.fixed = 4
	take("it is known", 4+4, true, engine.ClaimReply{})
	s.slots.take(8)
	p, n, _ := s.pick(now)
	if again, err := s.source.Answered(p, n, engine.ClaimReply{}, nil, nil); again || err != nil {
		t.Fatalf("again %v, %v", again, err)
	}
	s.slots.put(n)
	s.ended(p)
	if q, _, _ := s.pick(now); q != nil {
		t.Error("asked again for what is not there")
	}
	s.slots.put(1)
	if q, n, _ := s.pick(now); q != p || n != 1+4 || !p.Waits() {
		t.Errorf("with an idle slot: %d, waits %v", n, p.Waits())
	}
}

// The pace is the rate at which handlers return, for as long as a claim takes.
func TestPace(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		slots, want int
		work, trip  time.Duration
	}{
		{64, 12, 10 * time.Millisecond, time.Millisecond},
		{64, 64, 100 * time.Microsecond, time.Millisecond}, // never more than slots
		{64, 32, 10 * time.Millisecond, time.Second},       // never more than for five milliseconds
		{64, 0, time.Second, time.Millisecond},
		{1, 0, 10 * time.Millisecond, time.Millisecond},
	} {
		p := pace{patience: patience}
		p.claimed(c.trip)
		at, every := now, c.work/time.Duration(c.slots)
		for range 10_000 {
			at = at.Add(every)
			p.returned(at)
		}
		if got := p.ahead(at, c.slots); got < c.want-1 || got > c.want {
			t.Errorf("%d slots, %v of work, claims of %v: %d ahead, want %d", c.slots, c.work, c.trip, got, c.want)
		}
		p.mistaken(at)
		if got := p.ahead(at, c.slots); got != 0 {
			t.Errorf("%d ahead after something went back", got)
		}
		if got := p.ahead(at.Add(2*mistakePause), c.slots); got != 0 {
			t.Errorf("%d ahead after a long silence", got)
		}
	}
}
