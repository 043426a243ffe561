package conformance

import (
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

var leaseScenarios = []scenario{
	{name: "a renewal extends the session and nothing else", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		c := k.one(id)
		w.advance(ttl / 3)
		before := w.read(id)
		w.sameBut("the renewal", func() { w.renew(k, 0) }, ":s:")
		after := w.read(id)
		if gain := after.LeaseExpiresAt.Sub(before.LeaseExpiresAt); gain < ttl/3 || gain > ttl/3+10*time.Second {
			w.Fatalf("gained %s", gain)
		}
		same(w, "epoch", after.Epoch, c.Fence.Epoch)
		w.advance(ttl - time.Second)
		w.settleTime()
		w.code(id, "A1") // the index entry of the session was refreshed, not believed
		for _, bad := range []time.Duration{0, 999 * time.Millisecond, time.Hour + time.Millisecond} {
			w.unchanged(bad.String(), func() {
				_, err := w.e.RenewSession(w.ctx, w.p, k.session, bad, 0)
				w.is(err, flowfabric.ErrInvalidInput)
			})
		}
	}},
	{name: "a renewal with a shorter TTL takes effect at once", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		k.ttl = time.Hour
		k.one(id)
		k.ttl = time.Second
		w.renew(k, 0)
		w.advance(2 * time.Second)
		sum, _ := w.settleTime()
		same(w, "requeued", sum.Requeued, 1)
	}},
	{name: "an expired lease refuses renewals, claims and completions", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		c := k.one(id)
		w.advance(ttl)
		for range 2 {
			w.unchanged("a renewal too late", func() {
				_, err := w.e.RenewSession(w.ctx, w.p, k.session, ttl, 0)
				w.is(err, denied.LeaseExpired)
			})
		}
		w.code(id, "A2")
		w.unchanged("a claim of the dead session", func() {
			_, err := w.e.ClaimNext(w.ctx, k.request(1))
			w.is(err, denied.LeaseExpired)
		})
		w.is(w.complete(c.Fence, "x").Err, denied.LeaseExpired)
		sum, _ := w.settleTime()
		same(w, "requeued once", sum.Requeued, 1)
		sum, _ = w.settleTime()
		same(w, "and only once", sum.Requeued, 0)
	}},
	{name: "leases and delays end at their exact millisecond", run: func(w *env) {
		x := w.create()
		k := w.worker("w1")
		start := w.now()
		f := k.one(x).Fence
		id := w.create(delay(time.Minute))
		w.clockAt(start + ttl.Milliseconds() - 1)
		w.renewable(k, f, true)
		w.clockAt(start + ttl.Milliseconds())
		w.renewable(k, f, false)
		w.clockAt(start + time.Minute.Milliseconds() - 1)
		same(w, "too early", w.tick().Promoted, 0)
		w.clockAt(start + time.Minute.Milliseconds())
		same(w, "due", w.tick().Promoted, 1)
		w.code(id, "R1f")
	}},
	{name: "a stale fence writes nothing", run: func(w *env) {
		id := w.create(retries(3))
		k := w.worker("w1")
		f := k.one(id).Fence
		w.advance(time.Second)
		other := w.worker("w2")
		other.one(w.create()) // so that its session lives
		for what, change := range map[string]func(*flowfabric.Fence){
			"session": func(f *flowfabric.Fence) { f.Session = other.session },
			"claim":   func(f *flowfabric.Fence) { f.Claim++ },
			"epoch":   func(f *flowfabric.Fence) { f.Epoch-- }, "attempt": func(f *flowfabric.Fence) { f.Attempt++ },
			"dead session": func(f *flowfabric.Fence) { f.Session = "gone~1" },
		} {
			stale := f
			change(&stale)
			for name, err := range w.everyFencedCall(stale) {
				want := denied.StaleLease
				if name == "append" {
					want = denied.StaleAppend
				}
				w.unchanged(what+" "+name, func() { w.is(err(), want) })
			}
		}
		w.renew(k, 0)
		w.advance(ttl / 2)
		w.settleTime()
		w.code(id, "A1") // #29: a renewed lease is left alone
		w.no(w.complete(f, "").Err)
		w.advance(ttl)
		sum, _ := w.settleTime()
		same(w, "and a completed execution too", sum.Requeued, 0+1) // w2's
		w.code(id, "T1")
	}},
	{name: "201 dead sessions do not keep a tick from firing delays and deadlines", run: func(w *env) {
		w.createN(201)
		all := w.everything()
		for i := range 201 {
			k := w.worker("w" + strconv.Itoa(i))
			k.subscription = all
			r, err := w.e.ClaimNext(w.ctx, k.request(1))
			w.no(err)
			same(w, "claimed", len(r.Claims), 1)
		}
		late := w.create(delay(ttl))
		due := w.create(deadline(ttl))
		w.advance(ttl)
		first := w.tick()
		if !first.More || first.Requeued == 0 || first.Promoted != 1 || first.Expired != 1 {
			w.Fatalf("the first tick starves something: %+v", first)
		}
		w.code(late, "R1f")
		w.code(due, "T4n")
		sum, calls := w.settleTime()
		same(w, "requeued", sum.Requeued+first.Requeued, 201)
		if calls > 8 {
			w.Fatalf("%d calls", calls)
		}
	}},
	{name: "a dead session with 250 executions is requeued over several bounded ticks", run: func(w *env) {
		w.createN(250)
		k := w.worker("w1")
		for range 3 {
			k.claim(100)
		}
		w.advance(ttl)
		first := w.tick()
		if !first.More || first.Requeued < 50 || first.Requeued > 100 {
			w.Fatalf("first tick: %+v", first)
		}
		w.unchanged("a claim in between", func() {
			_, err := w.e.ClaimNext(w.ctx, k.request(1))
			w.is(err, denied.LeaseExpired)
		})
		sum, calls := w.settleTime()
		same(w, "requeued", sum.Requeued+first.Requeued, 250)
		if calls > 5 {
			w.Fatalf("%d calls", calls)
		}
		same(w, "all claimable", len(w.worker("w2").claim(100)), 100)
	}},
	{name: "the next claim or poll reports that the tick is overdue", run: func(w *env) {
		id := w.create()
		w.worker("w1").one(id)
		w.advance(ttl + 2100*time.Millisecond)
		k := w.worker("w2")
		r := k.nothing()
		same(w, "the claim says so", r.TickOverdue, true)
		p, _, err := w.e.Poll(w.ctx, []uint16{w.p})
		w.no(err)
		same(w, "the poll says so", p[0].TickOverdue, true)
		same(w, "requeued", w.tick().Requeued, 1)
		same(w, "type", k.one(id).Type, flowfabric.AttemptReclaim)
	}},
	{name: "a dead session is never revived", run: func(w *env) {
		ids := w.createN(2)
		k := w.worker("w1")
		c := k.one(ids[0])
		w.advance(ttl)
		w.settleTime()
		dead := k.session
		for _, number := range []uint64{1, 2} {
			q := k.request(1)
			q.Number = number
			w.unchanged("a claim", func() {
				_, err := w.e.ClaimNext(w.ctx, q)
				w.is(err, denied.LeaseExpired)
			})
		}
		w.unchanged("a renewal", func() {
			_, err := w.e.RenewSession(w.ctx, w.p, dead, ttl, 0)
			w.is(err, denied.LeaseExpired)
		})
		again := w.worker("w1") // the same instance, a new session
		fresh := again.claim(2)
		same(w, "both", len(fresh), 2)
		same(w, "the old fence", w.complete(c.Fence, "").Err != nil, true)
		w.is(w.complete(c.Fence, "").Err, denied.StaleLease)
		w.no(w.complete(fresh[0].Fence, "").Err)
	}},
	{name: "a renewal of a forgotten session is refused as expired", run: func(w *env) {
		w.unchanged("a renewal", func() {
			_, err := w.e.RenewSession(w.ctx, w.p, "w1~gone", ttl, 7)
			w.is(err, denied.LeaseExpired)
		})
	}},
	{name: "a session closes only when it holds nothing, and then accepts no late claims", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		f := k.one(id).Fence
		w.unchanged("closing what holds", func() { w.is(w.e.CloseSession(w.ctx, w.p, k.session), denied.SessionHeld) })
		w.complete(f, "")
		w.no(w.e.CloseSession(w.ctx, w.p, k.session))
		w.check()
		w.unchanged("closing twice", func() { w.no(w.e.CloseSession(w.ctx, w.p, k.session)) })
		w.create()
		for _, number := range []uint64{1, 2} { // a claim that was still on its way
			q := k.request(1)
			q.Number = number
			w.unchanged("a late claim", func() {
				_, err := w.e.ClaimNext(w.ctx, q)
				w.is(err, denied.LeaseExpired)
			})
		}
		w.unchanged("closing what never was", func() { w.no(w.e.CloseSession(w.ctx, w.p, "never~1")) })
		w.unchanged("a first claim with another number", func() {
			q := w.worker("w9").request(1)
			q.Number = 2
			_, err := w.e.ClaimNext(w.ctx, q)
			w.is(err, denied.LeaseExpired)
		})
	}},
	{name: "renewals return notices of lost executions, 100 at a time, until acknowledged", run: func(w *env) {
		ids := w.createN(130)
		k := w.worker("w1")
		epochs := map[flowfabric.ExecutionID]uint64{}
		for range 2 {
			for _, c := range k.claim(65) {
				epochs[c.Fence.Execution] = c.Fence.Epoch
			}
		}
		for _, id := range ids {
			_, err := w.e.CancelExecution(w.ctx, id, engine.Cancellation{Source: engine.CancelOperator})
			w.no(err)
		}
		w.check()
		r := w.renew(k, 0)
		w.all("first hundred", eq(len(r.Lost), 100), eq(r.Generation, 100), eq(r.MoreLost, true))
		again := w.renew(k, 0) // the reply was lost: nothing is forgotten
		sameList(w, "again", again.Lost, r.Lost...)
		for i, l := range r.Lost {
			same(w, "notice", l, engine.Lost{Execution: ids[i], Epoch: epochs[ids[i]], Cause: "cancelled"})
		}
		rest := w.renew(k, r.Generation)
		w.all("the rest", eq(len(rest.Lost), 30), eq(rest.Generation, 130), eq(rest.MoreLost, false))
		same(w, "no longer kept", len(w.dump().Lists[":l:"+k.session]), 30)
		last := w.renew(k, rest.Generation)
		w.all("nothing left", eq(len(last.Lost), 0), eq(last.Generation, 130))
		same(w, "an old generation", len(w.renew(k, 0).Lost), 0)
		// A holder that knows more than the server has lived through a failover that lost notices: it is told all there
		// are, and none is forgotten.
		one := w.create()
		k.one(one)
		w.cancel(one)
		ahead := w.renew(k, 140)
		w.all("ahead", eq(len(ahead.Lost), 1), eq(ahead.Generation, 131))
		same(w, "still kept", len(w.dump().Lists[":l:"+k.session]), 1)
	}},
	{name: "every execution that a holder loses leaves a notice, one that it settles leaves none", run: func(w *env) {
		w.tick()
		k := w.worker("w1")
		cancelled, expired, slow := w.create(), w.create(deadline(time.Second)),
			w.create(timeout(2*time.Second), retries(1))
		done := w.create()
		owned := w.create()
		var fences []flowfabric.Fence
		for _, id := range []flowfabric.ExecutionID{cancelled, expired, slow, done, owned} {
			fences = append(fences, k.one(id).Fence)
		}
		w.complete(fences[3], "")
		_, err := w.e.CancelExecution(w.ctx, owned, engine.Cancellation{Source: engine.CancelOwner, Fence: &fences[4]})
		w.no(err)
		w.cancel(cancelled)
		w.advance(time.Second)
		w.settleTime()
		w.advance(time.Second)
		w.settleTime()
		causes := map[flowfabric.ExecutionID]string{}
		for _, l := range w.renew(k, 0).Lost {
			causes[l.Execution] = l.Cause
		}
		w.all("causes", eq(len(causes), 3), eq(causes[cancelled], "cancelled"), eq(causes[expired], "expired"),
			eq(causes[slow], "attempt_timeout"))
		w.unchanged("the holder's complete", func() { w.is(w.complete(fences[0], "").Err, denied.NotActive) })
	}},
}

// everything stores a subscription in all routes of the partition.
func (w *env) everything() string {
	w.Helper()
	k := w.worker("probe")
	k.nothingYet()
	return k.subscription
}

// renewable tells whether the session lives, by what every call says.
func (w *env) renewable(k *worker, f flowfabric.Fence, alive bool) {
	w.Helper()
	_, err := w.e.SessionHeld(w.ctx, w.p, k.session)
	w.no(err)
	same(w, "alive", w.must("ff_session_held", proto, k.session, "0").slots[0] == "1", alive)
	_, err = w.e.RecordStep(w.ctx, f, "s", nil, 0)
	if alive {
		w.no(err)
		w.code(f.Execution, "A1")
	} else {
		w.is(err, denied.LeaseExpired)
		w.code(f.Execution, "A2")
	}
}

// everyFencedCall is each call that a holder makes, under a fence.
func (w *env) everyFencedCall(f flowfabric.Fence) map[string]func() error {
	return map[string]func() error{
		"complete": func() error {
			s, _, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f, Result: []byte("r")}}, nil)
			if err != nil {
				return err
			}
			return s[0].Err
		},
		"fail": func() error {
			_, err := w.e.FailExecution(w.ctx, f, engine.Failure{Category: "c", Reason: "r"})
			return err
		},
		"delay":   func() error { _, err := w.e.DelayExecution(w.ctx, f, time.Second, ""); return err },
		"release": func() error { _, err := w.e.ReleaseExecution(w.ctx, f); return err },
		"cancel": func() error {
			_, err := w.e.CancelExecution(w.ctx, f.Execution,
				engine.Cancellation{Source: engine.CancelOwner, Fence: &f})
			return err
		},
		"step": func() error { _, err := w.e.RecordStep(w.ctx, f, "s", []byte("v"), 0); return err },
		"append": func() error {
			_, err := w.e.AppendFrames(w.ctx, f, 1, []stream.Frame{{Payload: []byte("x")}})
			return err
		},
	}
}
