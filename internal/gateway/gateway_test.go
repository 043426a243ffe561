package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counted is an engine that notes what was asked of it, and hides what polls find.
type counted struct {
	*engine.Engine
	blind bool // polls find nothing

	between func() // what is done before anybody is told what is held

	mu        sync.Mutex
	forwarded int
	fail      error // of claims
}

func (c *counted) Poll(ctx context.Context, partitions []uint16) ([]engine.PollState, int, error) {
	if c.blind {
		return nil, 0, nil
	}
	return c.Engine.Poll(ctx, partitions)
}

func (c *counted) ForwardRing(ctx context.Context, partition uint16, subscription string) (int, error) {
	c.mu.Lock()
	c.forwarded++
	c.mu.Unlock()
	return c.Engine.ForwardRing(ctx, partition, subscription)
}

func (c *counted) SessionHeld(ctx context.Context, partition uint16, session string) ([]engine.Held, error) {
	if c.between != nil {
		c.between()
	}
	return c.Engine.SessionHeld(ctx, partition, session)
}

func (c *counted) ClaimNext(ctx context.Context, q engine.ClaimRequest) (engine.ClaimReply, error) {
	c.mu.Lock()
	err := c.fail
	c.mu.Unlock()
	if err != nil {
		return engine.ClaimReply{}, err
	}
	return c.Engine.ClaimNext(ctx, q)
}

func (c *counted) failing(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

func (c *counted) forwards() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forwarded
}

type env struct {
	*testing.T
	ctx context.Context
	e   *counted
	g   *Gateway

	urgent atomic.Int64 // how often it was told of urgent work
}

func start(t *testing.T) *env {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	e, err := engine.Open(ctx, engine.Config{CallTimeout: time.Hour, URL: testserver.Redis(t), Partitions: 4,
		Logger: quiet})
	must.No(t, err)
	c := &counted{Engine: e, blind: true}
	w := &env{T: t, ctx: ctx, e: c}
	w.g = polling(c, quiet, time.Hour, w.woken) // no poll stands in for what should be said
	t.Cleanup(func() {
		w.g.Close()
		e.Close()
	})
	return w
}

func (w *env) woken(what string, _ int) {
	if what == "urgent" {
		w.urgent.Add(1)
	}
}

func (w *env) submit(partition uint16, kind string) flowfabric.ExecutionID {
	w.Helper()
	x := engine.NewExecution{ID: mint.ID(partition), Start: flowfabric.Start{Namespace: "n",
		Lane: "l", Kind: kind}}
	if _, err := w.e.CreateExecutions(w.ctx, partition, []engine.NewExecution{x}); err != nil {
		w.Fatal(err)
	}
	return x.ID
}

func asking(worker string, max int, wait time.Duration, kinds ...string) Request {
	return Request{Worker: worker, Offer: offer.New([]string{"n"}, []string{"l"}, kinds, nil), Max: max, Wait: wait,
		TTL: time.Hour}
}

func (w *env) claim(q Request) []Claim {
	w.Helper()
	got, err := w.g.Claim(w.ctx, q)
	must.No(w, err)
	return got
}

// waits until n claims wait and every partition rings.
func (w *env) waits(n int) {
	w.Helper()
	for {
		w.g.mu.Lock()
		asks, rings := 0, 0
		for _, p := range w.g.pools {
			asks += len(p.asks)
			rings += p.source.Registered()
		}
		done := asks == n && rings == 4*len(w.g.pools)
		w.g.mu.Unlock()
		if done {
			return
		}
		if w.ctx.Err() != nil {
			w.Fatalf("%d claims, want %d; %d ring", asks, n, rings)
		}
		time.Sleep(time.Millisecond)
	}
}

// Work that comes while somebody waits is heard of by a ring, in whichever partition it is, also for the first time.
func TestRing(t *testing.T) {
	w := start(t)
	for i := range 8 {
		var waiting conc.WaitGroup
		var got []Claim
		waiting.Go(func() { got = w.claim(asking("w", 1, time.Minute, "k")) })
		w.waits(1)
		id := w.submit(uint16(i%4), "k")
		waiting.Wait()
		if len(got) != 1 || got[0].Fence.Execution != id || got[0].Route.Kind != "k" {
			t.Fatalf("%d: %+v", i, got)
		}
	}
}

// A claim that got what it wanted lets the next one have what is left; nobody rings for that again.
func TestWhatIsLeft(t *testing.T) {
	w := start(t)
	w.submit(0, "k") // so that the route is known
	w.claim(asking("w", 1, 0, "k"))
	got := make(chan []Claim, 3)
	var waiting conc.WaitGroup
	for i := range 3 {
		waiting.Go(func() { got <- w.claim(asking(fmt.Sprint("w", i), 1, time.Minute, "k")) })
	}
	w.waits(3)
	var batch []engine.NewExecution
	for range 3 {
		batch = append(batch, engine.NewExecution{ID: mint.ID(2),
			Start: flowfabric.Start{Namespace: "n", Lane: "l",
				Kind: "k"}})
	}
	if _, err := w.e.CreateExecutions(w.ctx, 2, batch); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	for range 3 {
		if list := <-got; len(list) != 1 {
			t.Errorf("%d executions, want one each", len(list))
		}
	}
}

// A ring for work that nobody waits for any more is passed on to other workers.
func TestRingForNobody(t *testing.T) {
	w := start(t)
	if list := w.claim(asking("w", 1, 300*time.Millisecond, "k")); len(list) != 0 {
		t.Fatalf("%+v", list)
	}
	w.waits(0)
	for i := 0; w.e.forwards() == 0; i++ { // a new route rings for itself: that is no work yet
		w.submit(1, "k")
		if w.ctx.Err() != nil || i > 2000 {
			t.Fatal("the ring was not passed on")
		}
		time.Sleep(10 * time.Millisecond)
		w.drain()
	}
}

// drain takes what is there, and registers.
func (w *env) drain() {
	w.Helper()
	for len(w.claim(asking("w", 100, 0, "k"))) > 0 {
	}
}

// A partition that does not answer is an error for who asks, and is asked again.
func TestStoreThatFails(t *testing.T) {
	w := start(t)
	w.submit(0, "k")
	away := denied.New("ff_claim_next", flowfabric.CodeOf(denied.PartitionMissing))
	w.e.failing(away)
	if list, err := w.g.Claim(w.ctx, asking("w", 1, 0, "k")); err == nil || len(list) != 0 || !errors.Is(err,
		denied.PartitionMissing) {
		t.Fatalf("%v %v", list, err)
	}
	w.e.failing(nil)
	if list := w.claim(asking("w", 1, time.Minute, "k")); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

// Each execution has a session of its own, whose worker is the one that asked; it can be renewed alone.
func TestLeasesAreAlone(t *testing.T) {
	w := start(t)
	for range 3 {
		w.submit(0, "k")
	}
	list := w.claim(asking("python-1", 3, 0, "k"))
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	sessions := map[string]bool{}
	for _, c := range list {
		sessions[c.Fence.Session] = true
		if ids.Worker(c.Fence.Session) != "python-1" {
			t.Errorf("session %s", c.Fence.Session)
		}
		if _, err := w.g.Renew(w.ctx, c.Fence, time.Minute); err != nil {
			t.Error(err)
		}
	}
	if len(sessions) != 3 {
		t.Errorf("%d sessions", len(sessions))
	}
	w.g.Return(list[:1])
	if _, err := w.g.Renew(w.ctx, list[0].Fence, time.Minute); !errors.Is(err, flowfabric.ErrLeaseLost) {
		t.Errorf("after it was given back: %v", err)
	}
	if _, err := w.g.Renew(w.ctx, list[1].Fence, time.Minute); err != nil {
		t.Error(err)
	}
}

// What is lost while a renewal is under way is told with its reason.
func TestALossDuringARenewalHasItsReason(t *testing.T) {
	w := start(t)
	w.submit(0, "k")
	f := w.claim(asking("python-1", 1, 0, "k"))[0].Fence
	w.e.between = func() {
		w.e.between = nil
		_, err := w.e.CancelExecution(w.ctx, f.Execution, engine.Cancellation{Source: engine.CancelOperator})
		must.No(t, err)
	}
	if _, err := w.g.Renew(w.ctx, f, time.Minute); !errors.Is(err, flowfabric.ErrCancelled) {
		t.Errorf("cancelled between the two looks of a renewal: %v", err)
	}
}

// A stop takes nothing away: the lease is held, and each renewal tells which stop was asked for last, also when there
// are more notices than one answer has.
func TestStopsAreTold(t *testing.T) {
	w := start(t)
	w.submit(0, "k")
	f := w.claim(asking("python-1", 1, 0, "k"))[0].Fence
	renews := func(want string) {
		t.Helper()
		for range 2 {
			if stop, err := w.g.Renew(w.ctx, f, time.Minute); err != nil || stop != want {
				t.Fatalf("%q, %v; want %q", stop, err, want)
			}
		}
	}
	renews("")
	for i := range 102 {
		s, err := w.e.StopTurn(w.ctx, f.Execution, mint.UUID())
		must.No(t, err)
		if i == 0 || i > 99 {
			renews(s.Request)
		}
		_, err = w.e.RecordTurn(w.ctx, f, engine.Step{Name: fmt.Sprint("stopped ", i), Value: []byte("1"),
			Turn: engine.TurnStopped})
		must.No(t, err)
		_, err = w.e.RecordTurn(w.ctx, f, engine.Step{Name: fmt.Sprint("begin ", i), Value: []byte("1"),
			Turn: engine.TurnBegins})
		must.No(t, err)
	}
	_, err := w.e.CancelExecution(w.ctx, f.Execution, engine.Cancellation{Source: engine.CancelOperator})
	must.No(t, err)
	if _, err := w.g.Renew(w.ctx, f, time.Minute); !errors.Is(err, flowfabric.ErrCancelled) {
		t.Errorf("%v", err)
	}
}

// Close ends claims that wait, and later ones.
func TestClose(t *testing.T) {
	w := start(t)
	var waiting conc.WaitGroup
	waiting.Go(func() {
		if _, err := w.g.Claim(w.ctx, asking("w", 1, time.Hour, "k")); !errors.Is(err, flowfabric.ErrDraining) {
			t.Errorf("%v", err)
		}
	})
	w.waits(1)
	w.g.Close()
	waiting.Wait()
	if _, err := w.g.Claim(w.ctx, asking("w", 1, 0, "k")); !errors.Is(err, flowfabric.ErrDraining) {
		t.Errorf("%v", err)
	}
}
