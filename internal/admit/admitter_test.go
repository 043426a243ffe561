package admit_test

import (
	"context"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// A slot is its execution's until it ends, however short the window and however long it runs, although the gate asks
// after it time and again.
func TestSlotIsHeldForAsLongAsItsExecutionRuns(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "one", Concurrency: 1, Rate: 1, Window: flowfabric.Millis(time.Second)})
		w.create(0, q)
		w.create(1, q)
		k, other := w.worker(w.e, 0), w.worker(w.e, 1)
		c := k.one()
		for _, pause := range []time.Duration{0, 2 * time.Second, 10 * time.Second, 11 * time.Second, time.Minute,
			11 * time.Minute, 40 * time.Minute} {
			w.advance(pause)
			w.no2(w.e.RenewSession(w.ctx, 0, k.session, time.Hour, 0))
			w.tick(1)
			other.nothing()
			if why := w.why(1); !slices.Contains([]string{"gate one cap", "gate one rate"}, why[0]) {
				t.Fatalf("closed: %q", why)
			}
		}
		w.complete(c)
		same(w, "delivered", w.deliver(0), 1)
		w.complete(other.one()) // without another tick: it was woken
	})
}

// What an attempt spent is given back once, although the owner of the tick died before it forgot that it had told: a
// replay's usage stays counted.
func TestRefundToldAgainLeavesTheReplayAlone(t *testing.T) {
	servers(t, func(w *env) {
		g := w.budget(admission.Gate{Name: "b", Refund: []string{"failed"}})
		id := w.create(0, g)
		k := w.worker(w.e, 0)
		spend := func(n, used int64) flowfabric.Fence {
			w.Helper()
			f := k.one().Fence
			w.no2(w.e.ReportUsage(w.ctx, admission.Usage{Gate: "b", Execution: id, Epoch: f.Epoch, Sequence: 1,
				Amounts: map[string]int64{"tokens": n}}))
			same(w, "used", w.used("b"), used)
			return f
		}
		fail := func(f flowfabric.Fence) {
			w.Helper()
			w.no2(w.e.FailExecution(w.ctx, f, engine.Failure{Category: "x", Permanent: true}))
		}
		fail(spend(10, 10))
		dies := &process{Engine: w.e, at: 3}
		if _, err := admit.Deliver(w.ctx, dies, 0); err == nil || !dies.dead {
			t.Fatalf("%v after %q", err, dies.names)
		}
		same(w, "given back", w.used("b"), 0)
		w.no2(w.e.ReplayExecution(w.ctx, id, engine.Replay{Request: mint.UUID()}))
		f := spend(50, 50)
		same(w, "told again", w.deliver(0), 1)
		same(w, "used", w.used("b"), 50)
		fail(f)
		w.deliver(0)
		same(w, "used after the replay's own end", w.used("b"), 0)
	})
}

// used is what was used of a gate's tokens.
func (w *env) used(name string) int64 {
	w.Helper()
	b, err := w.e.ReadGate(w.ctx, name, 0, 0, 0)
	w.no(err)
	return b.Used["tokens"]
}

// no2 fails on the error of a call that answers something as well.
func (w *env) no2(_ any, err error) {
	w.Helper()
	w.no(err)
}

// Two workers want the same slot: one gets it, and the other takes nothing from him.
func TestOneSlotTwoWorkers(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "one", Concurrency: 1})
		for range 3 {
			w.create(0, q)
			w.create(1, q)
		}
		a, b := w.worker(w.e, 0), w.worker(w.e, 1)
		c := a.one()
		b.nothing()
		a.nothing()
		same(w, "slots", w.held(q), 1)
		for done := 1; ; done++ {
			w.complete(c)
			w.deliver(0)
			w.deliver(1)
			if done == 6 {
				break
			}
			claims := append(a.claim(10), b.claim(10)...)
			same(w, "at once", len(claims), 1)
			c = claims[0]
		}
		same(w, "slots at the end", w.held(q), 0)
	})
}

// The server dies between the end of an execution and the word of it: the slot is free after the restart, once.
func TestOutboxOutlivesTheServer(t *testing.T) {
	srv := testserver.Start(t, testserver.ServerRedis, testserver.AOF())
	w := realEnv(t, srv.URL())
	q := w.gate(admission.Gate{Name: "two", Concurrency: 2})
	first, second := w.create(0, q), w.create(0, q)
	k := w.worker(w.e, 0)
	claims := k.claim(10)
	same(w, "run", len(claims), 2)
	w.complete(claims[0])
	srv.Kill()
	srv.Restart()
	same(w, "slots before", w.held(q), 2)
	p := &process{Engine: w.e, at: 3} // it dies after it has told the gate
	if n, err := admit.Deliver(w.ctx, p, 0); err == nil || n != 0 {
		t.Fatal(n, err)
	}
	same(w, "slots", w.held(q), 1)
	same(w, "delivered again", w.deliver(0), 1)
	same(w, "slots after", w.held(q), 1)
	same(w, "ended", w.code(first) == codes.Completed || w.code(second) == codes.Completed, true)
}

// A gate that is not there stops work visibly, and does so for as long as it is not.
func TestUnknownGateStopsWork(t *testing.T) {
	servers(t, func(w *env) {
		w.create(0, flowfabric.Gate("no-a"), flowfabric.Gate("no-b"))
		k := w.worker(w.e, 0)
		closed := func(why string) {
			t.Helper()
			k.nothing()
			if got := w.why(0); len(got) != 1 || got[0] != why {
				t.Fatalf("closed: %q, want %q", got, why)
			}
			w.advance(29 * time.Second)
			w.tick(0)
			k.nothing()
			same(w, "still closed", len(w.why(0)), 1)
			w.advance(time.Second)
			w.tick(0)
		}
		closed("gate_not_found no-a")
		w.budget(admission.Gate{Name: "no-a"})
		closed("gate_not_found no-b")
		same(w, "nothing to tell", w.deliver(0), 0)

		k.digest = "" // a repeat for nothing gives the grant back unasked, and tells the gate, which is not there
		if _, err := w.e.ClaimNext(w.ctx, engine.ClaimRequest{Partition: 0, Session: k.session, Number: k.number + 1,
			TTL: leaseTTL, Max: 1, Gates: true,
			Subscription: w.subscription(k)}); err != nil {
			t.Fatal(err)
		}
		if claims, err := k.repeat(); err != nil || len(claims) > 0 {
			t.Fatal(claims, err)
		}
		w.tick(0)
		same(w, "told to nobody", w.deliver(0), 1)
		w.gate(admission.Gate{Name: "no-b"})
		k.one()
	})
}

func (w *env) subscription(k *worker) string {
	w.Helper()
	digest, err := w.e.SetSubscription(w.ctx, k.partition, engine.Subscription{Classes: k.routes})
	w.no(err)
	return digest
}

// repeat asks for what the last number brought, and nothing else.
func (k *worker) repeat() ([]engine.Claim, error) {
	reply, err := k.admitter.ClaimNext(k.ctx,
		engine.ClaimRequest{Partition: k.partition, Session: k.session, Number: k.number + 1, TTL: leaseTTL, Max: 1})
	if err == nil && (reply.Duplicate || reply.Granted) {
		k.number++
	}
	k.digest = k.subscription(k)
	return reply.Claims, err
}

// As many start as may in the window, the others when it has room again and not before.
func TestRateIsKept(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "rate", Rate: 3, Window: flowfabric.Millis(time.Minute), Concurrency: 3})
		for range 4 {
			w.create(0, q)
		}
		k := w.worker(w.e, 0)
		claims := k.claim(10)
		same(w, "started", len(claims), 3)
		if why := w.why(0); len(why) != 1 || why[0] != "gate rate rate" {
			t.Fatalf("closed: %q", why)
		}
		for _, c := range claims {
			w.complete(c)
		}
		w.deliver(0)
		for range 3 {
			w.advance(19 * time.Second)
			w.tick(0)
			k.nothing()
			same(w, "closed", len(w.why(0)), 1)
		}
		w.advance(4 * time.Second)
		w.tick(0)
		w.no2(w.e.RenewSession(w.ctx, 0, k.session, leaseTTL, 0))
		k = w.worker(w.e, 0)
		k.one()
	})
}

// A failover lost the word that a slot is free: a worker that wants it finds out, though not by time alone. What is
// held stays held.
func TestLostWordOfARelease(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "two", Concurrency: 2})
		for range 2 {
			w.create(0, q)
		}
		k := w.worker(w.e, 0)
		claims := k.claim(10)
		w.complete(claims[0])
		entries, _, err := w.e.ReadOutbox(w.ctx, 0, "")
		w.no(err)
		w.no2(w.e.TrimOutbox(w.ctx, 0, []string{entries[0].ID}))
		w.create(1, q)
		w.create(1, q)
		other := w.worker(w.e, 1)
		other.nothing()
		w.advance(9 * time.Second)
		w.tick(1)
		other.nothing()
		w.advance(2 * time.Second)
		w.tick(1)
		other.one()
		same(w, "slots", w.held(q), 2)
		other.nothing()
	})
}

// A grant whose worker is gone before it claimed is taken back by who wants its slot, even if nobody ticks its
// partition.
func TestDeadGrantIsKilled(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "one", Concurrency: 1, Rate: 2, Window: flowfabric.Millis(time.Hour)})
		lost := w.create(0, q)
		p := &process{Engine: w.e, at: 4} // ClaimNext for the table, ClaimNext, Admit, ClaimGranted
		if _, err := w.worker(p, 0).try(10); err == nil || p.names[3] != "ClaimGranted" {
			t.Fatalf("%q: %v", p.names, err)
		}
		w.create(1, q)
		other := w.worker(w.e, 1)
		other.nothing()
		w.advance(11 * time.Second)
		w.tick(1)
		other.one()
		same(w, "its state", w.code(lost), "R1f")
		same(w, "starts", w.started(q), 1)
	})
}

// Room that is made between a refusal and the closing of the route wakes nobody, so the gate looks again.
func TestRoomBetweenRefusalAndClosing(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "one", Concurrency: 1})
		b := w.budget(admission.Gate{Name: "b"})
		w.no2(w.e.ReportUsage(w.ctx, admission.Usage{Gate: "b", Key: "k", Amounts: map[string]int64{"tokens": 100}}))
		w.create(1, q)
		runs := w.worker(w.e, 1).one()
		for _, gate := range []flowfabric.Gate{q, b} {
			w.create(0, gate)
		}
		k := w.worker(&meanwhile{Engine: w.e, first: func() {
			w.complete(runs)
			w.deliver(1)
			_, _, wake, err := w.e.ResetUsage(w.ctx, "b", false)
			w.no(err)
			w.no(admit.Wake(w.ctx, w.e, wake))
		}}, 0)
		k.nothing()
		same(w, "more", k.more, true)
		same(w, "refusals", len(k.refusals), 2)
		same(w, "closed", len(w.why(0)), 0)
		same(w, "run", len(k.claim(10))+len(k.claim(10)), 2)
	})
}

// meanwhile does something before grants go back for the first time.
type meanwhile struct {
	*engine.Engine
	first func()
}

func (m *meanwhile) ReleaseGrants(ctx context.Context, partition uint16, session string, grants []engine.GrantReturn,
	closings []engine.RouteClosing) error {
	if m.first != nil {
		m.first()
		m.first = nil
	}
	return m.Engine.ReleaseGrants(ctx, partition, session, grants, closings)
}

// What a gate admitted, and refuses when it is asked once more, goes back: an amount may be used up in between.
func TestRefusedWhenAskedOnceMore(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "q", Concurrency: 2, Rate: 9, Window: flowfabric.Millis(time.Hour),
			Limits: map[string]admission.Limit{"tokens": {Hard: 100}}})
		// whose worker died
		w.no2(w.e.Admit(w.ctx, "q", engine.Waiter{Partition: 1, Route: 1}, 10*time.Second, false,
			[]engine.Hold{{Execution: w.create(1), Epoch: 7}}))
		w.advance(11 * time.Second)
		w.create(0, q)
		w.create(0, q)
		k := w.worker(&spending{Engine: w.e}, 0)
		k.nothing() // and it is woken by the slot that it freed
		same(w, "slots", w.held(q), 1)
		w.deliver(0)
		same(w, "slots after", w.held(q), 0)
		same(w, "starts", w.started(q), 0)
		k.nothing()
		same(w, "closed", w.why(0)[0], "gate q amount tokens 100 100")
	})
}

// spending uses all tokens of a gate whenever somebody asks about holds.
type spending struct{ *engine.Engine }

func (s *spending) CheckHolds(ctx context.Context, partition uint16, holds []engine.Hold) ([]string, error) {
	_, err := s.ReportUsage(ctx, admission.Usage{Gate: "q", Key: "k", Amounts: map[string]int64{"tokens": 100}})
	if err != nil {
		return nil, err
	}
	return s.Engine.CheckHolds(ctx, partition, holds)
}

// A gate that does not answer stops work for a second, and says so.
func TestGateThatDoesNotAnswer(t *testing.T) {
	w := newEnv(t)
	w.create(0, w.gate(admission.Gate{Name: "one", Concurrency: 1}))
	p := &process{Engine: w.e, at: 3, executed: true, survives: true}
	k := w.worker(p, 0)
	k.nothing()
	same(w, "closed", w.why(0)[0], "unavailable gate one")
	w.advance(time.Second)
	same(w, "outbox", w.tick(0), 1)
	same(w, "slots", w.held(flowfabric.Gate("one")), 1)
	w.deliver(0)
	same(w, "slots after", w.held(flowfabric.Gate("one")), 0)
	k.one()
}

// A caller that goes away while gates are asked gets its grants back, and no route is closed for it.
func TestCallerGoesAway(t *testing.T) {
	w := newEnv(t)
	id := w.create(0, w.gate(admission.Gate{Name: "one", Concurrency: 1}))
	ctx, leave := context.WithCancel(w.ctx)
	k := w.worker(&leaving{w.e, leave}, 0)
	stays := w.ctx
	w.ctx = ctx
	claims, err := k.try(10)
	w.ctx = stays
	if err != nil || len(claims) > 0 {
		t.Fatal(claims, err)
	}
	same(w, "its state", w.code(id), "R1f")
	same(w, "closed", len(w.why(0)), 0)
	w.deliver(0)
	same(w, "slots", w.held(flowfabric.Gate("one")), 0)
}

// leaving ends its caller's context when a gate is asked.
type leaving struct {
	*engine.Engine
	leave context.CancelFunc
}

func (l *leaving) Admit(ctx context.Context, name string, at engine.Waiter, ttl time.Duration, look bool,
	holds []engine.Hold) (engine.Admitted, error) {
	l.leave()
	<-ctx.Done()
	return engine.Admitted{}, ctx.Err()
}

// What a slot is offered to may have gone: then it is offered on. Here the first partition that waits has nothing left.
func TestSlotIsOfferedOn(t *testing.T) {
	servers(t, func(w *env) {
		q := w.gate(admission.Gate{Name: "one", Concurrency: 1})
		w.create(0, q)
		k := w.worker(w.e, 0)
		c := k.one()
		gone := w.create(0, q)
		k.nothing()
		w.advance(time.Millisecond)
		w.create(1, q)
		other := w.worker(w.e, 1)
		other.nothing()
		same(w, "its state", w.code(gone), "R1f")
		w.no2(w.e.CancelExecution(w.ctx, gone, engine.Cancellation{Source: "operator_override"}))
		w.complete(c)
		w.deliver(0)
		other.one()
	})
}

// A slot that is freed now and then does not move all that waits for it to and fro; where gates let everything pass,
// more is asked for.
func TestFewGrantsForOneSlot(t *testing.T) {
	w := newEnv(t)
	q := w.gate(admission.Gate{Name: "one", Concurrency: 1})
	for range 60 {
		w.create(0, q)
	}
	k := w.worker(w.e, 0)
	var granted []int
	k.admitter = admit.New(admit.Config{Engine: w.e,
		OnAsked: func(n, _ int, _ time.Duration) { granted = append(granted, n) }})
	next := func(max int) (claims []engine.Claim) {
		t.Helper()
		claims = k.claim(max)
		for _, c := range claims {
			w.complete(c)
		}
		w.deliver(0)
		return claims
	}
	for range 4 {
		same(w, "claimed", len(next(100)), 1)
	}
	_, _, wake, err := w.e.PutGate(w.ctx, admission.Gate{Name: "one"}, 1)
	w.no(err)
	w.no(admit.Wake(w.ctx, w.e, wake))
	for range 4 {
		next(100)
	}
	if want := []int{32, 3, 3, 3, 3, 6, 12, 24}; !slices.Equal(granted, want) {
		t.Errorf("granted %v, want %v", granted, want)
	}
}
