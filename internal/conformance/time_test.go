package conformance

import (
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

var timeScenarios = []scenario{
	{name: "only the tick's owner can give up the tick", run: func(w *env) {
		w.create(delay(time.Minute))
		w.tick()
		owner := w.root()["owner"]
		a := w.fcall("ff_tick", proto, "stranger", "1")
		w.all("a stranger", eq(a.code, "ALREADY_SATISFIED"), eq(a.slots[0], owner))
		same(w, "owner", w.root()["owner"], owner)
		a = w.fcall("ff_tick", proto, owner, "1")
		w.all("the owner", eq(a.code, "OK"), eq(w.root()["owner"], ""))
	}},
	{name: "work of a dead session is requeued and claimed by another worker", run: func(w *env) {
		id := w.create(timeout(2*ttl), retries(1))
		k := w.worker("w1")
		c := k.one(id)
		w.frames(c.Fence, 1, 2)
		w.advance(ttl)
		same(w, "requeued", w.tick().Requeued, 1)
		s := w.code(id, "R1r")
		w.all("requeued", eq(s.State.Public, "waiting"), eq(s.Phase().AttemptState, "attempt_interrupted"),
			eq(s.Reclaims, 1), eq(s.Retries, 0))
		w.all("its record", eq(s.AttemptLog[0].State, "interrupted_reclaimed"),
			eq(s.AttemptLog[0].Category, "lease_expired"), eq(s.AttemptLog[0].Worker, "w1"))
		held, err := w.e.SessionHeld(w.ctx, w.p, k.session)
		w.no(err)
		same(w, "the old session", len(held), 0)
		two := w.worker("w2")
		n := two.one(id)
		w.all("claim", eq(n.Type, "reclaim"), eq(n.Fence.Attempt, 2), eq(n.Fence.Epoch > c.Fence.Epoch, true),
			eq(n.Reclaims, 1), eq(n.Retries, 0), eq(n.TimeLeft, time.Minute), eq(n.LastSequence, 0))
		w.frames(n.Fence, 1, 1)
		w.no(w.complete(n.Fence, "").Err)
	}},
	{name: "after a takeover, every call of the former holder is refused", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		f := k.one(id).Fence
		w.advance(ttl)
		w.tick()
		for name, call := range w.everyFencedCall(f) {
			w.unchanged(name, func() { w.is(call(), denied.NotActive) })
		}
		w.worker("w2").one(id)
		for name, call := range w.everyFencedCall(f) {
			want := denied.StaleLease
			if name == "append" {
				want = denied.StaleAppend
			}
			w.unchanged(name, func() { w.is(call(), want) })
		}
		_, err := w.e.RenewSession(w.ctx, w.p, k.session, ttl, 0)
		w.is(err, denied.LeaseExpired)
	}},
	{name: "a tick requeues only executions whose lease expired or was revoked", run: func(w *env) {
		for _, code := range reachable {
			if code == "A2" || code == "A3" {
				continue
			}
			w.reset()
			x := w.state(code)
			same(w, "requeued "+string(code), w.tick().Requeued, 0)
			w.code(x.id, code)
		}
	}},
	{name: "an execution fails when it exceeds its limit of reclaims, and the reason names the worker",
		run: func(w *env) {
			id := w.create(reclaims(2), retries(3), deadline(time.Hour))
			for i := range 3 {
				k := w.worker("w1")
				c := k.one(id)
				same(w, "reclaims", c.Reclaims, i)
				w.frames(c.Fence, 1, 1)
				w.advance(ttl)
				r := w.tick()
				w.all("requeued or exhausted", eq(r.Requeued == 1, i < 2), eq(r.Exhausted == 1, i == 2))
				w.advance(time.Second)
				w.settleTime()
			}
			s := w.code(id, "T2")
			w.all("end", eq(s.Failure.Category, "max_reclaims_exceeded"), eq(s.Attempts, 3), eq(s.Reclaims, 2),
				eq(s.Retries, 0), eq(len(s.AttemptLog), 3))
			same(w, "the suspect", s.Failure.Message,
				"worker w1 was lost while it ran this, loss 3 of a worker: its handler may be the cause")
			m, err := w.e.ReadAttemptStream(w.ctx, id, 3)
			w.no(err)
			same(w, "stream", m.ClosedReason, "lease_expired")
		}},
	{name: "work that keeps losing its workers pauses longer each time and fails after ten reclaims",
		run: func(w *env) {
			id := w.create()
			for i, pause := range []time.Duration{0, 1, 2, 4, 8, 16, 32, 60, 60, 60} {
				pause *= time.Second
				same(w, "reclaims", w.worker("w1").one(id).Reclaims, i)
				w.advance(ttl)
				before := w.now()
				same(w, "requeued", w.tick().Requeued, 1)
				after := w.now()
				if pause == 0 {
					w.code(id, "R1r")
					continue
				}
				s := w.code(id, "R2r")
				if at := s.DelayUntil.Add(-pause).UnixMilli(); at < before || at > after {
					w.Errorf("reclaim %d is due %d ms before or %d ms after a pause of %v", i+1, before-at, at-after,
						pause)
				}
				w.advance(pause)
				same(w, "promoted", w.tick().Promoted, 1)
				w.code(id, "R1r")
			}
			same(w, "the type of what follows", w.worker("w1").one(id).Type, flowfabric.AttemptReclaim)
			w.advance(ttl)
			w.settleTime()
			s := w.code(id, "T2")
			w.all("end", eq(s.Failure.Category, "max_reclaims_exceeded"), eq(s.Reclaims, 10))
		}},
	{name: "work that pauses after lost workers is not dispatched, but can be cancelled and can expire",
		run: func(w *env) {
			for code, end := range map[codes.Code]func(flowfabric.ExecutionID){
				"T3": w.cancel,
				"T4": func(flowfabric.ExecutionID) { w.advance(time.Hour); w.settleTime() },
			} {
				x := w.state("R2r", deadline(30*time.Minute))
				w.worker("w2").nothing()
				page, err := w.e.ListExecutions(w.ctx, w.p, engine.ListQuery{Index: engine.IndexDelayed, Limit: 100})
				w.no(err)
				w.all("delayed", eq(len(page.Executions), 1), eq(page.Executions[0].ID, x.id))
				end(x.id)
				s := w.code(x.id, code)
				same(w, "delay", s.DelayUntil.IsZero(), true)
			}
		}},
	{name: "a revoked lease is requeued without a pause, however many workers were lost before", run: func(w *env) {
		x := w.state("R2r")
		w.advance(time.Minute)
		w.settleTime()
		w.worker("w2").one(x.id)
		w.revoke(x.id)
		w.settleTime()
		same(w, "reclaims", w.code(x.id, "R1r").Reclaims, 6)
	}},
	{name: "a replay resets the count of lost workers", run: func(w *env) {
		x := w.state("R2r")
		w.cancel(x.id)
		w.replay(x.id, engine.Replay{})
		w.worker("w2").one(x.id)
		w.advance(ttl)
		w.settleTime()
		same(w, "reclaims", w.code(x.id, "R1r").Reclaims, 1)
	}},
	{name: "an attempt that exceeds its timeout is retried, and the last one ends expired", run: func(w *env) {
		id := w.create(timeout(10*time.Second), retries(1))
		k := w.worker("w1")
		f := k.one(id).Fence
		w.advance(10 * time.Second)
		same(w, "timed out", w.tick().TimedOut, 1)
		s := w.code(id, "R2b")
		w.all("retry", eq(s.Retries, 1), eq(s.Failure.Category, "attempt_timeout"),
			eq(s.AttemptLog[0].State, "ended_failure"))
		w.unchanged("the holder", func() { w.is(w.complete(f, "").Err, denied.NotActive) })
		w.advance(time.Second)
		same(w, "promoted", w.tick().Promoted, 1)
		w.renew(k, 0)
		c := k.one(id)
		same(w, "a full timer", c.TimeLeft, 10*time.Second)
		w.advance(10 * time.Second)
		same(w, "timed out", w.tick().TimedOut, 1)
		s = w.code(id, "T4")
		w.all("the end", eq(s.State.Public, "expired"), eq(s.Failure.Category, "attempt_timeout"))
	}},
	{name: "a timeout of the last attempt ends as expired, also if the holder reports it", run: func(w *env) {
		id := w.create(timeout(10 * time.Second))
		f := w.worker("w1").one(id).Fence
		w.advance(10 * time.Second)
		out, err := w.e.FailExecution(w.ctx, f,
			engine.Failure{Category: "attempt_timeout", Reason: "the holder's own timer"})
		w.no(err)
		same(w, "retry", out.Retry, false)
		w.code(id, "T4")

		early := w.create(timeout(10 * time.Second))
		f = w.worker("w2").one(early).Fence
		_, err = w.e.FailExecution(w.ctx, f, engine.Failure{Category: "attempt_timeout"})
		w.no(err)
		w.code(early, "T2") // it is not true yet
	}},
	{name: "an attempt's timer never fires on a later attempt", run: func(w *env) {
		id := w.create(timeout(20*time.Second),
			retry(flowfabric.RetryPolicy{MaxRetries: 3, Max: time.Second, Multiplier: 2}))
		k := w.worker("w1")
		f := k.one(id).Fence
		w.advance(15 * time.Second)
		w.renew(k, 0)
		w.fail(f, "x") // at once
		k.one(id)
		w.advance(15 * time.Second)
		w.renew(k, 0)
		same(w, "the first attempt's timer", w.tick().TimedOut, 0)
		w.code(id, "A1")
		// After a reclaim too.
		w.advance(ttl)
		w.all("a timer of a dead holder is a requeue", eq(w.tick().TimedOut, 0), eq(w.core(id)["s"], "R1r"))
		two := w.worker("w2")
		two.one(id)
		w.advance(15 * time.Second)
		same(w, "not due", w.tick().TimedOut, 0)
		w.code(id, "A1")
	}},
	{name: "a crash never uses up a retry", run: func(w *env) {
		// The timer and the death of the session are due in the same call, in either order.
		for _, limit := range []time.Duration{ttl - time.Second, ttl + time.Second} {
			w.reset()
			id := w.create(timeout(limit), retries(1))
			w.worker("w1").one(id)
			w.advance(2 * ttl)
			r := w.tick()
			w.all("outcome", eq(r.Requeued, 1), eq(r.TimedOut, 0))
			s := w.code(id, "R1r")
			w.all("retries", eq(s.Retries, 0), eq(s.Reclaims, 1))
		}
	}},
	{name: "a deadline expires an execution in every state", run: func(w *env) {
		for _, code := range reachable {
			if code[0] == 'T' {
				continue
			}
			w.reset()
			x := w.state(code, deadline(2*time.Hour))
			if code != "A2" && code != "A3" { // which a tick requeues
				w.tick()
				w.code(x.id, code) // not due: untouched
			}
			w.advance(2 * time.Hour)
			if x.worker != nil && code == "A1" { // the holder lives through it
				w.set("HSET", w.k.Session(x.worker.session), "exp", fmt.Sprint(w.now()+ttl.Milliseconds()))
			}
			sum, _ := w.settleTime()
			want := codes.Code("T4")
			if x.worker == nil {
				want = "T4n"
			}
			s := w.code(x.id, want)
			w.all(string(code)+" category", eq(s.Failure.Category, "execution_deadline"), eq(sum.Expired, 1))
			if code == "A1" {
				same(w, "told", w.renew(x.worker, 0).Lost[0].Cause, "expired")
			}
		}
	}},
	{name: "one owner ticks a partition, and another takes over only when it is late", run: func(w *env) {
		r, err := w.e.Tick(w.ctx, w.p, "a", false)
		w.no(err)
		w.all("nothing to do", eq(r.Owner, true), eq(r.Idle, true), eq(r.More, false))
		w.unchanged("somebody else", func() {
			r, err := w.e.Tick(w.ctx, w.p, "b", false)
			w.no(err)
			same(w, "owner", r.Owner, false)
		})
		w.create(delay(300 * time.Millisecond))
		r, err = w.e.Tick(w.ctx, w.p, "a", false)
		w.no(err)
		if r.Idle || r.Next > 300*time.Millisecond || r.Next <= 0 {
			w.Fatalf("next %+v", r)
		}
		w.create(delay(time.Hour))
		w.advance(300 * time.Millisecond)
		r, err = w.e.Tick(w.ctx, w.p, "a", false)
		w.no(err)
		w.all("rings again in a second", eq(r.Promoted, 1), eq(r.Next, time.Second))
		k := w.worker("w1")
		k.poll(1)
		r, err = w.e.Tick(w.ctx, w.p, "a", false)
		w.no(err)
		same(w, "looks every ten seconds at what waits for its time", r.Next, 10*time.Second)
		// The owner is late; only then may another take over.
		w.advance(11500 * time.Millisecond)
		same(w, "not yet overdue", w.renew(k, 0).TickOverdue, false)
		w.unchanged("somebody else", func() {
			_, err := w.e.Tick(w.ctx, w.p, "b", false)
			w.no(err)
		})
		w.advance(1600 * time.Millisecond)
		same(w, "overdue", k.nothing().TickOverdue, true)
		same(w, "renewals say so", w.renew(k, 0).TickOverdue, true)
		r, err = w.e.Tick(w.ctx, w.p, "b", false)
		w.no(err)
		same(w, "taken over", r.Owner, true)
		same(w, "no longer overdue", w.renew(k, 0).TickOverdue, false)
		w.unchanged("the former owner", func() {
			r, err := w.e.Tick(w.ctx, w.p, "a", true)
			w.no(err)
			same(w, "release of nothing", r.Owner, false)
		})
		_, err = w.e.Tick(w.ctx, w.p, "b", true)
		w.no(err)
		w.check()
		same(w, "nobody", w.root()["owner"], "")
		w.advance(time.Second)
		same(w, "at once overdue without an owner", w.renew(k, 0).TickOverdue, true)
	}},
	{name: "a partition with only distant timers is ticked about six times a minute", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		w.create(delay(time.Hour))
		k.one(id)
		ticks := 0
		for until := w.now() + 60_000; w.now() < until; ticks++ {
			r, err := w.e.Tick(w.ctx, w.p, "a", false)
			w.no(err)
			if ticks%2 == 1 {
				w.renew(k, 0)
			}
			w.check()
			w.advance(max(r.Next, time.Millisecond))
		}
		if ticks > 8 {
			w.Fatalf("%d ticks in a minute", ticks)
		}
	}},
	{name: "a tick request wakes a live owner and replaces a missing one at once", run: func(w *env) {
		ask := func(who string) engine.TickReply {
			w.Helper()
			r, err := w.e.AskTick(w.ctx, w.p, who)
			w.no(err)
			return r
		}
		w.all("nobody owns it", eq(ask("a").Owner, true), eq(w.root()["owner"], "a"))
		same(w, "the owner itself", ask("a").Owner, true)
		w.all("nobody listens as a", eq(ask("b").Owner, true), eq(w.root()["owner"], "b"))
		ear := w.listen(engine.BellChannel(w.p, "b"))
		w.all("somebody listens as b", eq(ask("c").Owner, false), eq(w.root()["owner"], "b"))
		ear.hears("t")
		w.create(delay(time.Minute))
		ear.silent() // it was rung for what is due before
		r, err := w.e.Tick(w.ctx, w.p, "b", false)
		w.no(err)
		same(w, "it ticks", r.Owner, true)
		w.advance(1500 * time.Millisecond)
		same(w, "a late one is rung, too", ask("c").Owner, false)
		ear.hears("t")
		r, err = w.e.Tick(w.ctx, w.p, "b", false)
		w.no(err)
		same(w, "it ticks again", r.Owner, true)
		same(w, "and is asked", ask("c").Owner, false)
		ear.hears("t")
		w.advance(2001 * time.Millisecond) // it hangs
		r, err = w.e.Tick(w.ctx, w.p, "d", false)
		w.no(err)
		same(w, "two seconds later anybody takes over", r.Owner, true)
		w.check()
	}},
	{name: "an idle partition's tick is overdue two seconds after its owner ignored a request", run: func(w *env) {
		_, err := w.e.Tick(w.ctx, w.p, "a", false)
		w.no(err)
		w.listen(engine.BellChannel(w.p, "a"))
		w.advance(time.Hour)
		p, _, err := w.e.Poll(w.ctx, []uint16{w.p})
		w.no(err)
		same(w, "nothing is due", p[0].TickOverdue, false)
		_, err = w.e.AskTick(w.ctx, w.p, "b")
		w.no(err)
		w.advance(2001 * time.Millisecond)
		p, _, err = w.e.Poll(w.ctx, []uint16{w.p})
		w.no(err)
		same(w, "who polls hears of it", p[0].TickOverdue, true)
		w.check()
	}},
	{name: "when a tick owner leaves or is declared dead, another worker is woken at once", run: func(w *env) {
		name := w.homed("a")
		neighbour := w.listen(engine.BellChannel(w.p, "w2"))
		for what, leave := range map[string]func(k *worker) error{
			"released":    func(*worker) error { _, err := w.e.Tick(w.ctx, w.p, name, true); return err },
			"worker dead": func(*worker) error { _, err := w.e.MarkWorkerDead(w.ctx, name); return err },
			"session dead": func(k *worker) error {
				_,
					err := w.e.MarkSessionDead(w.ctx, w.p, k.session)
				return err
			},
		} {
			for _, busy := range []bool{false, true} {
				w.reset()
				w.register(name, "t")
				k := w.worker(name)
				k.one(w.create())
				_, err := w.e.Tick(w.ctx, w.p, name, false)
				w.no(err)
				if two := w.worker("w2"); busy {
					two.one(w.create())
				} else {
					two.nothing()
				}
				neighbour.count()
				w.no(leave(k))
				same(w, what+", owner", w.root()["owner"], "")
				neighbour.hears("t")
				w.check()
			}
		}
	}},
	{name: "a tick is overdue when it is more than two seconds late, to the millisecond", run: func(w *env) {
		w.tick()
		start := w.now()
		w.create(delay(500 * time.Millisecond))
		for after, want := range map[time.Duration]bool{2500 * time.Millisecond: false, 2501 * time.Millisecond: true} {
			w.clockAt(start + after.Milliseconds())
			p, _, err := w.e.Poll(w.ctx, []uint16{w.p})
			w.no(err)
			same(w, after.String(), p[0].TickOverdue, want)
			r, err := w.e.Tick(w.ctx, w.p, "other", false)
			w.no(err)
			same(w, "taken over "+after.String(), r.Owner, want)
			if want {
				return
			}
		}
	}},
	{name: "one poll reports the ready routes of all partitions", run: func(w *env) {
		p, _, err := w.e.Poll(w.ctx, []uint16{w.p})
		w.no(err)
		sameList(w, "empty", p, engine.PollState{Partition: w.p})
		w.create(kind("a"))
		w.create(kind("a"))
		w.create(kind("b"))
		p, _, err = w.e.Poll(w.ctx, []uint16{w.p})
		w.no(err)
		same(w, "two routes are ready", p[0].Ready, 2)
		if !w.srv.Features.Cluster {
			all := make([]uint16, partitions)
			for i := range all {
				all[i] = uint16(i)
			}
			// the first of them tells the time of all
			w.set("HSET", keys.Root(0), "clock_pin", strconv.FormatInt(w.now(), 10))
			p, _, err = w.e.Poll(w.ctx, all)
			w.no(err)
			w.all("all at once", eq(len(p), partitions), eq(p[w.p].Ready, 2))
		}
		_, _, err = w.e.Poll(w.ctx, []uint16{partitions})
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "a tick that requeued a dead session's work comes again within a second", run: func(w *env) {
		k := w.worker("w1")
		id := k.one(w.create()).Fence.Execution
		w.tick()
		w.advance(ttl + time.Millisecond)
		r := w.tick()
		same(w, "requeued", r.Requeued, 1)
		w.code(id, codes.WaitingReclaim)
		w.all("in a second", eq(r.Idle, false), eq(r.Next <= time.Second, true))
	}},
	{name: "a poll reports ready routes, live workers and an overdue tick", run: func(w *env) {
		poll := func() []string {
			w.Helper()
			return w.must("ff_poll", proto).slots
		}
		sameList(w, "nothing", poll(), "0", "0")
		w.create(kind("a"))
		sameList(w, "one route is ready", poll(), "0", "1", "1", "1", "0")
		w.register(w.homed("w"), "t")
		w.register(w.homed("v"), "t")
		sameList(w, "two workers", poll(), "2", "1", "1", "1", "0")
		w.advance(3500 * time.Millisecond)
		sameList(w, "nobody ticks", poll(), "2", "1", "1", "1", "1")
		w.advance(ttl)
		_, workers, err := w.e.Poll(w.ctx, []uint16{w.p})
		w.no(err)
		same(w, "those that ran out", workers, 0)
	}},
}

// reachable are the states that the functions so far can produce. A member that ran is not skipped: its group was
// satisfied, and stays so (T5).
var reachable = []codes.Code{"R1f", "R1t", "R1p", "R1i", "R1r", "R2af", "R2ai", "R2b", "R2r", "R2c", "A1", "A2",
	"A3", "S1", "S2", "S5", "T1", "T2", "T3", "T3n", "T4", "T4n", "R3f", "R3p", "S8", "T5n", "R4f", "R4i", "G1f",
	"G1i"}

// placed is an execution that was brought into a state, with the fence of its last claim.
type placed struct {
	id     flowfabric.ExecutionID
	fence  flowfabric.Fence
	worker *worker

	waitpoint  engine.Minted     // that it waits on, or that was handed out
	suspension engine.Suspension // the last
	flow       flowfabric.FlowID // that it is a member of

	upstream map[string]engine.Claim // what it waits for, if it is a member of a flow

	grant engine.Grant // that a worker has of it, who asks its gates
	asker *worker
}

// halt suspends what is held until the signal go comes.
func (w *env) halt(x *placed, opts ...suspending) {
	w.Helper()
	x.suspension, _ = w.suspend(x.fence, append([]suspending{awaiting("it")}, opts...)...)
	x.waitpoint = x.suspension.Bindings[0].Minted
}

// place creates an execution: alone, or as a member of a flow that may grow, behind an upstream if its state needs one.
func (w *env) place(code codes.Code, opts []option) placed {
	w.Helper()
	behind := code == "R3f" || code == "R3p" || code == "T5n"
	if !w.members && !behind {
		return placed{id: w.create(opts...)}
	}
	g := w.flow()
	if behind {
		g.node("up", nil, as(delay(time.Hour)))
		g.node("x", []string{"up"}, as(opts...))
	} else {
		g.node("x", nil, as(opts...))
	}
	g.submit(engine.SealGrowing)
	x := placed{id: g.id.Member("x"), flow: g.id}
	if code == "R3p" || code == "T5n" {
		w.cancel(g.id.Member("up"))
	}
	if code == "R3p" {
		w.replay(x.id, engine.Replay{})
	}
	return x
}

// state brings a new execution into a state, in a partition with a token key. Only A2, R1r, R2r, T4 and T4n move the
// clock.
func (w *env) state(code codes.Code, opts ...option) placed {
	w.Helper()
	opts = append([]option{retries(3)}, opts...)
	switch code {
	case "R2af":
		opts = append(opts, delay(time.Hour))
	case "T2", "R1p":
		opts = append(opts, retries(0))
	case "T4", "T4n":
		opts = append(opts, deadline(time.Second))
	case "R1t":
		opts = append(opts, retry(flowfabric.RetryPolicy{MaxRetries: 1, Max: time.Second, Multiplier: 2}))
	case "G1f", "G1i":
		opts = append(opts, asking(flowfabric.Gate("q")))
	case "R2b":
		opts = append(opts, retry(flowfabric.RetryPolicy{MaxRetries: 1, Initial: time.Hour, Max: time.Hour}))
	}
	w.setKey("seed", kid, 0, false)
	x := w.place(code, opts)
	switch code {
	case "R1f", "R2af", "R3f", "R3p", "T5n", "R4f", "G1f":
	case "T3n":
		w.cancel(x.id)
	case "T4n":
		w.advance(time.Second)
		w.settleTime()
	default:
		x.worker = w.worker("w1")
		x.worker.gates = code == "G1i"
		x.fence = x.worker.one(x.id).Fence
		w.frames(x.fence, 1, 1)
		if w.hands {
			x.waitpoint = w.pend(x.fence, "handed")
		}
	}
	switch code {
	case "S1":
		w.halt(&x)
	case "S2":
		w.halt(&x, because("waiting_for_approval"))
	case "S5":
		w.halt(&x, because("manual_pause"))
	case "R2c":
		w.halt(&x, resumedAfter(time.Hour))
		w.signal(x.id, x.waitpoint, "go", waitwords.EffectSatisfied)
	case "R1t", "R2b", "T2":
		w.fail(x.fence, "x")
	case "R1p":
		w.fail(x.fence, "x")
		w.replay(x.id, engine.Replay{})
	case "A3":
		w.revoke(x.id)
	case "S8":
		_, err := childtest.Wait(w.ctx, w.e, x.fence, engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
			Children: []engine.FlowMember{w.child(x.id, "wait", "child", delay(time.Hour))}})
		w.no(err)
		w.check()
		if x.flow.IsZero() {
			x.flow = flowfabric.FlowID(x.id)
		}
	case "R1i", "R4i", "G1i":
		w.release(x.fence)
	case "R2ai":
		w.delay(x.fence, time.Hour)
	case "R1r":
		w.advance(ttl)
		w.settleTime()
	case "R2r": // five times, for a pause of 8 s
		for i := range 5 {
			if i > 0 {
				x.worker = w.worker("w1")
				x.fence = x.worker.one(x.id).Fence
			}
			w.advance(ttl)
			w.settleTime()
			if i < 4 {
				w.advance(time.Minute)
				w.settleTime()
			}
		}
	case "A2":
		w.advance(ttl)
	case "T1":
		w.complete(x.fence, "r")
	case "T3":
		w.cancel(x.id)
	case "T4":
		w.advance(time.Second)
		w.settleTime()
	}
	switch code {
	case "R4f", "R4i":
		_, err := w.e.HoldExecution(w.ctx, x.id)
		w.no(err)
		w.check()
	case "G1f", "G1i":
		x.asker = w.worker("g1")
		x.asker.gates = true
		x.grant = x.asker.grants(1)[0]
	}
	w.code(x.id, code)
	return x
}
