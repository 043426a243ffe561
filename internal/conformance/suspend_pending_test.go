package conformance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var pendingScenarios = []scenario{
	{name: "signals that arrive before the wait can satisfy it at once", run: func(w *env) {
		w.seed()
		k, c := w.holder(retries(1))
		id := c.Fence.Execution
		m := w.pend(c.Fence, "p")
		p := w.waitpoint(id, m)
		w.all("pending", eq(p.State, "pending"), eq(p.Key, "p"), eq(p.Suspension, flowfabric.UUID{}),
			eq(p.ExpiresAt.Sub(p.CreatedAt), time.Hour))
		x := w.dump()
		sameDeep(w, "due", x.ZSets[":pending"],
			map[string]float64{ids.UUID(id).String() + ":" + m.ID.String(): float64(p.ExpiresAt.UnixMilli())})
		d := w.send(id, m, suspend.SentSignal{Name: "go", Payload: []byte("early")}, waitwords.EffectBuffered)
		same(w, "open", d.Open, true)
		w.send(id, m, suspend.SentSignal{Name: "go", Payload: []byte("second")}, waitwords.EffectBuffered)
		q := suspension(onPending(m), within(time.Hour, "fail"))
		s, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
		w.no(err)
		w.check()
		w.all("answer", eq(s.Satisfied, true), eq(s.Already, false), eq(s.Suspension, q.ID),
			eq(told(&s.Resume), "already_satisfied: go"), eq(s.Resume.Closer, fmt.Sprint(d.Signal)),
			eq(string(s.Resume.Signals[0].Payload), "early"))
		w.code(id, "A1")
		same(w, "renewed", len(w.renew(k, 0).Lost), 0)
		_, err = w.e.RecordStep(w.ctx, c.Fence, "s", nil, 0)
		w.no(err)
		w.unchanged("a lost reply", func() {
			again, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
			w.no(err)
			s.Already = true
			sameDeep(w, "again", again, s)
		})
		p = w.waitpoint(id, m) // in what is remembered of the execution, so that a purge finds it
		w.all("waitpoint", eq(p.State, "closed"), eq(p.CloseReason, "resumed"), eq(p.Suspension, q.ID),
			eq(p.Signals, 2), eq(p.Matched, 1))
		r := w.record(id)
		w.all("record", eq(r.ID, q.ID), eq(r.ClosedAt.IsZero(), false), eq(r.CloseReason, "resumed"),
			eq(r.Cause, "already_satisfied"), eq(told(r.Result), "already_satisfied: go"), eq(r.Signals, 2),
			eq(r.Matched, 1))
		same(w, "log", w.logged(id, m), "go resume_condition_satisfied, go buffered_for_pending_waitpoint")
		x = w.dump()
		w.all("indexes", eq(len(x.ZSets[":pending"]), 0), eq(len(x.ZSets[":open:"+kid]), 0),
			eq(len(x.ZSets[":alarms"]), 0))
		w.tooLate("a later signal", id, m, "resumed")
		// It does not resume the next one either, and the answer stays with the attempt until then.
		w.fail(c.Fence, "x")
		w.advance(time.Second)
		w.settleTime()
		n := k.one(id)
		same(w, "told to the next attempt", told(n.Resume), "already_satisfied: go")
		w.suspend(n.Fence)
		w.tooLate("under the next suspension", id, m, "resumed")
	}},
	{name: "signals that arrive before the wait count toward its condition", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		m := w.pend(c.Fence, "p")
		w.signal(id, m, "other", waitwords.EffectBuffered)
		w.suspend(c.Fence, onPending(m))
		p, r := w.waitpoint(id, m), w.record(id)
		w.all("counted", eq(p.State, "active"), eq(p.Signals, 1), eq(p.Matched, 0), eq(r.Signals, 1), eq(r.Matched, 0))
		same(w, "log", w.logged(id, m), "other no_op")
		same(w, "not pending", len(w.dump().ZSets[":pending"]), 0)
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		n := k.one(id)
		same(w, "told", told(n.Resume), "signal: go")
		// A part of the condition may be met before the suspension.
		two := w.pend(n.Fence, "two")
		w.send(id, two, suspend.SentSignal{Name: "b", IdempotencyKey: "k"}, waitwords.EffectBuffered)
		w.suspend(n.Fence, waitFor(conditionOf(names(1, 2, "a", "b"))), onPending(two))
		d, err := w.deliver(id, two, suspend.SentSignal{Name: "b", IdempotencyKey: "k"})
		w.no(err)
		w.all("a repeat is told what became of the first", eq(d.Duplicate, true),
			eq(d.Effect, waitwords.EffectAppended))
		w.signal(id, two, "b", waitwords.EffectNone)
		w.advance(time.Millisecond) // signals of one millisecond are told in the order of their ids
		w.signal(id, two, "a", waitwords.EffectSatisfied)
		same(w, "told", told(k.one(id).Resume), "signal: b a")
	}},
	{name: "a pending waitpoint expires at its exact time", run: func(w *env) {
		w.stop()
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		m, early := minted("p"), minted("q")
		for _, x := range []engine.Minted{m, early} {
			_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", x, 5*time.Second)
			w.no(err)
		}
		w.pass(5*time.Second - time.Millisecond)
		w.signal(id, m, "stay", waitwords.EffectBuffered) // what came in time does not suffice
		w.signal(id, early, "other", waitwords.EffectBuffered)
		w.pass(time.Millisecond)
		refused := func() {
			w.unchanged("suspend", func() {
				_, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(onPending(m)))
				w.is(err, denied.WaitpointExpired)
				same(w, "which", detail(err, 0), "p")
			})
			w.tooLate("deliver", id, m, "pending_expired")
		}
		refused() // by the clock, before the tick has seen it
		same(w, "open", w.waitpoint(id, m).State, "pending")
		same(w, "expired", w.tick().Waitpoints, 2)
		p := w.waitpoint(id, m)
		w.all("closed", eq(p.State, "expired"), eq(p.CloseReason, "pending_expired"), eq(p.Signals, 1))
		same(w, "what came stays readable", w.logged(id, m), "stay buffered_for_pending_waitpoint")
		refused()
		w.suspend(c.Fence)
	}},
	{name: "signals that race with the suspension are neither lost nor counted twice", run: func(w *env) {
		soak := number("FLOWFABRIC_SOAK", 1000)
		rounds, senders := max(3, int(soak)/100/max(1, w.srv.Share)), 50
		if soak > 10000 {
			senders = 200
		}
		for range rounds {
			w.reset() // what is checked again and again stays small
			w.seed()
			w.race(senders)
		}
	}},
	{name: "a repeated delivery gets the answer of the first and counts once", run: func(w *env) {
		w.seed()
		_, c, m := w.waiting()
		id := c.Fence.Execution
		key := suspend.SentSignal{Name: "go", IdempotencyKey: "once"}
		var first atomic.Pointer[suspend.Delivered]
		var repeats atomic.Int32
		together(5, func(int) {
			d, err := w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest, key)
			switch {
			case err != nil || d.Effect != waitwords.EffectSatisfied || d.Open:
				w.Errorf("%+v %v", d, err)
			case d.Duplicate:
				repeats.Add(1)
			default:
				first.Store(&d)
			}
		})
		w.check()
		same(w, "repeats", repeats.Load(), 4)
		again := func(when string) {
			w.unchanged(when, func() {
				d, err := w.deliver(id, m, suspend.SentSignal{Name: "other", IdempotencyKey: "once"})
				w.no(err)
				w.all(when, eq(d.Signal, first.Load().Signal), eq(d.Effect, waitwords.EffectSatisfied),
					eq(d.Duplicate, true), eq(d.Open, false))
			})
		}
		same(w, "counted once", w.waitpoint(id, m).Signals, 1)
		again("while it waits to be claimed")
		n := w.worker("w2").one(id)
		again("while it is claimed")
		next := w.stopped(n.Fence)
		again("suspended anew")
		w.tooLate("another signal", id, m, "resumed")
		w.signal(id, next, "other", waitwords.EffectNone)
		w.cancel(id)
		again("after the end")
		_, err := w.deliver(id, next, suspend.SentSignal{Name: "go"})
		w.is(err, denied.NotSignalable)
		same(w, "end", detail(err, 0), "T3")
		// Without a key a signal is known by its own id, so that a call may be repeated after a lost reply.
		_, c, m = w.waiting()
		s := suspend.SentSignal{ID: mint.UUID(), Name: "go"}
		w.send(c.Fence.Execution, m, s, waitwords.EffectSatisfied)
		w.unchanged("a repeated call", func() { w.send(c.Fence.Execution, m, s, waitwords.EffectSatisfied) })
	}},
}

// race is one round: senders bring signals to a pending waitpoint, one of them the one that is waited for, while its
// holder suspends on it. Whichever comes first, none that was accepted is lost.
func (w *env) race(senders int) {
	w.Helper()
	k, c := w.holder()
	id := c.Fence.Execution
	m := w.pend(c.Fence, "p")
	effects := make([]suspend.Effect, senders)
	var suspended engine.Suspended
	together(senders+1, func(i int) {
		if i == senders {
			s, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(onPending(m)))
			if err != nil {
				w.Error(err)
			}
			suspended = s
			return
		}
		name := "other"
		if i == senders/2 {
			name = "go"
		}
		d, err := w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest,
			suspend.SentSignal{Name: name, Payload: []byte(strconv.Itoa(i))})
		if err == nil {
			effects[i] = d.Effect
		} else if !errors.Is(err, flowfabric.ErrWaitpointClosed) || name == "go" {
			w.Errorf("%s: %v", name, err)
		}
	})
	w.check()
	seen := map[suspend.Effect]int{}
	accepted := 0
	for _, e := range effects {
		seen[e]++
		if e != "" {
			accepted++
		}
	}
	p, r := w.waitpoint(id, m), w.record(id)
	log := w.logged(id, m)
	w.all("accepted", eq(p.Signals, accepted), eq(r.Signals, accepted), eq(strings.Count(log, ",")+1, accepted))
	w.all("matched", eq(p.State, "closed"), eq(p.CloseReason, "resumed"), eq(p.Matched, 1), eq(r.Matched, 1),
		eq(strings.Count(log, string("go "+waitwords.EffectSatisfied)), 1))
	if suspended.Satisfied {
		w.all("satisfied at once", eq(told(&suspended.Resume), "already_satisfied: go"),
			eq(seen[waitwords.EffectSatisfied]+seen[waitwords.EffectNone], 0))
		w.code(id, "A1")
		w.no(w.complete(c.Fence, "").Err)
		return
	}
	// Everything that was buffered was replayed, whether or not the wanted signal came later.
	same(w, "never evaluated", strings.Count(log, string(waitwords.EffectBuffered)), 0)
	same(w, "told", told(r.Result), "signal: go")
	w.code(id, "R1i")
	n := k.one(id)
	same(w, "told to the claim", told(n.Resume), "signal: go")
	w.no(w.complete(n.Fence, "").Err)
}

// timeoutRow is a behaviour and what its timeout leads to.
type timeoutRow struct {
	behaviour, code, reason string // what the execution becomes, why the suspension closed
	attempt, stream         string // how the attempt ends ("" if it goes on), why its stream closed
	late                    error  // what a late signal is told
}

var timeoutRows = []timeoutRow{
	{"fail", "T2", "timed_out_fail", "ended_failure", "suspension_timeout", denied.NotSignalable},
	{"cancel", "T3", "timed_out_cancel", "ended_cancelled", "suspension_timeout", denied.NotSignalable},
	{"expire", "T4", "timed_out_expire", "ended_failure", "suspension_timeout", denied.NotSignalable},
	{"auto_resume", "R1i", "timed_out_auto_resume", "", "", flowfabric.ErrWaitpointClosed},
	{"auto_resume_with_timeout_signal", "R1i", "timed_out_auto_resume", "", "", flowfabric.ErrWaitpointClosed},
	{"escalate", "S5", "", "", "", nil},
}

var suspensionTimeScenarios = []scenario{
	{name: "a resumed execution becomes claimable after its resume delay", run: func(w *env) {
		w.stop()
		w.seed()
		k, c := w.holder()
		k.ttl = time.Hour
		id := c.Fence.Execution
		for cycle := range 2 {
			m := w.stopped(c.Fence, resumedAfter(500*time.Millisecond))
			same(w, "recorded", w.record(id).ResumeDelay, flowfabric.Millis(500*time.Millisecond))
			w.signal(id, m, "go", waitwords.EffectSatisfied)
			s := w.code(id, "R2c")
			w.all("shown", eq(s.State.Public, "delayed"), eq(s.Phase().Eligibility, "not_eligible_until_time"),
				eq(s.State.BlockingReason, "waiting_for_resume_delay"), eq(s.Phase().AttemptState,
					"attempt_interrupted"),
				eq(s.DelayUntil.Sub(w.record(id).ClosedAt), 500*time.Millisecond))
			k.nothing()
			w.pass(400 * time.Millisecond)
			same(w, "not yet", w.tick().Promoted, 0)
			w.pass(99 * time.Millisecond)
			same(w, "not yet", w.tick().Promoted, 0)
			w.pass(time.Millisecond)
			same(w, "promoted", w.tick().Promoted, 1)
			s = w.code(id, "R1i")
			same(w, "no delay is left", s.DelayUntil.IsZero(), true)
			c = k.one(id)
			w.all("cycle "+strconv.Itoa(cycle), eq(c.Type, "resumed"), eq(c.Fence.Attempt, 1),
				eq(told(c.Resume), "signal: go"))
		}
		w.stopped(c.Fence, resumedAfter(time.Hour))
		_, err := w.e.ResumeExecution(trail.As(w.ctx, "op", ""), id, engine.ResumeRequest{Delay: 2 * time.Second})
		w.no(err)
		w.check()
		w.code(id, "R2c")
		w.pass(2*time.Second - time.Millisecond)
		same(w, "an operator says when", w.tick().Promoted, 0)
		w.pass(time.Millisecond)
		same(w, "promoted", w.tick().Promoted, 1)
		c = k.one(id)
		m := w.stopped(c.Fence, resumedAfter(time.Hour))
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		w.cancel(id)
		same(w, "nothing is delayed", len(w.dump().ZSets[":delayed"]), 0)
	}},
	{name: "each timeout behaviour of a suspension leads to its own state", run: func(w *env) {
		for _, row := range timeoutRows {
			w.reset()
			w.stop()
			w.seed()
			row.verify(w)
		}
	}},
}

// verify suspends with a condition that is half met, lets the timeout pass and holds what follows against the row.
func (row timeoutRow) verify(w *env) {
	w.Helper()
	_, c := w.holder(retries(3), timeout(time.Hour), deadline(24*time.Hour))
	id := c.Fence.Execution
	w.frames(c.Fence, 1, 1)
	m := minted("wp")
	q, _ := w.suspend(c.Fence, waitFor(conditionOf(names(1, 2, "a", "b")), m), within(10*time.Second, row.behaviour))
	w.signal(id, m, "a", waitwords.EffectAppended)
	w.pass(10*time.Second - time.Millisecond)
	same(w, row.behaviour+" is not due", w.tick().Suspensions, 0)
	w.set("ZADD", w.k.Alarms(), "5", ids.UUID(id).String()) // the record decides, not the index
	same(w, row.behaviour+" is not due", w.tick().Suspensions, 0)
	w.code(id, "S1")
	w.pass(time.Millisecond)
	same(w, row.behaviour+" is due", w.tick().Suspensions, 1)
	same(w, "once", w.tick().Suspensions, 0)
	s, r := w.code(id, codes.Code(row.code)), w.record(id)
	p, meta := w.waitpoint(id, m), w.streamOf(id)
	w.all(row.behaviour+" stream", eq(meta.Closed, row.stream != ""), eq(meta.ClosedReason, row.stream))
	w.all("retries", eq(s.Retries, 0), eq(s.Attempts, 1)) // the retry policy is not asked
	x := w.dump()
	switch {
	case row.attempt != "":
		a := s.AttemptLog[0]
		w.all(row.behaviour+" attempt", eq(a.State, row.attempt), eq(a.Category, "suspension_timeout"),
			eq(a.Message, "no answer within the time limit (on timeout: "+row.behaviour+")"),
			eq(s.Failure.Category, "suspension_timeout"), eq(len(x.ZSets[":alarms"]), 0), eq(len(x.ZSets[":done"]), 1))
		if row.behaviour == "cancel" {
			same(w, "cancelled by", s.CancelSource, "system_timeout_policy")
		}
	default:
		same(w, row.behaviour+" alarm", x.ZSets[":alarms"][ids.UUID(id).String()], float64(s.DeadlineAt.UnixMilli()))
		same(w, "attempts in the log", len(s.AttemptLog), 0)
	}
	if row.behaviour == "escalate" {
		row.escalated(w, id, m)
		return
	}
	w.all(row.behaviour+" suspension", eq(r.ID, q.ID), eq(r.ClosedAt.Equal(r.TimeoutAt), true),
		eq(r.CloseReason, row.reason), eq(r.Cause, "timeout"), eq(r.Trigger, "timeout"))
	w.all(row.behaviour+" waitpoint", eq(p.State, "closed"), eq(p.CloseReason, row.reason))
	same(w, "parts", x.Hashes[":us:"+ids.UUID(id).String()] == nil && len(x.ZSets[":open:"+kid]) == 0, true)
	w.unchanged("a late signal", func() {
		_, err := w.deliver(id, m, suspend.SentSignal{Name: "b"})
		w.is(err, row.late)
	})
	if row.attempt != "" {
		return
	}
	n := w.worker("w2").one(id)
	w.all("the same attempt", eq(n.Type, "resumed"), eq(n.Fence.Attempt, 1), eq(n.LastSequence, 1),
		eq(n.Resume.TimeoutAt.Equal(r.TimeoutAt), true))
	if row.behaviour == "auto_resume" {
		same(w, "told", told(n.Resume), "timeout:") // not even the signal that was taken
		return
	}
	same(w, "told", told(n.Resume), "timeout: __timeout")
	g := n.Resume.Signals[0]
	w.all("the signal", eq(g.SourceType, "system"), eq(g.Effect, "timeout"), eq(g.AcceptedAt.Equal(r.TimeoutAt), true),
		eq(len(g.Payload), 0))
}

// escalated is what an operator finds; the signals that are still wanted go on counting.
func (row timeoutRow) escalated(w *env, id flowfabric.ExecutionID, m engine.Minted) {
	w.Helper()
	s, r, p := w.read(id), w.record(id), w.waitpoint(id, m)
	w.all("shown", eq(s.State.Public, "suspended"), eq(s.State.BlockingReason, "paused_by_operator"),
		eq(r.Reason, "waiting_for_operator_review"), eq(r.TimeoutAt.IsZero(), true), eq(r.Behaviour, ""),
		eq(r.ClosedAt.IsZero(), true), eq(r.Matched, 1))
	w.all("waitpoint", eq(p.State, "active"), eq(p.ExpiresAt.IsZero(), true))
	same(w, "history", strings.HasSuffix(w.kinds(id), " escalated"), true)
	w.signal(id, m, "b", waitwords.EffectSatisfied)
	same(w, "told", told(w.worker("w2").one(id).Resume), "signal: a b")
}

func (w *env) streamOf(id flowfabric.ExecutionID) engine.StreamMeta {
	w.Helper()
	m, err := w.e.ReadAttemptStream(w.ctx, id, 1)
	w.no(err)
	return m
}
