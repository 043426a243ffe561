package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var suspendScenarios = slices.Concat(suspensionScenarios, tokenScenarios, pendingScenarios, suspensionTimeScenarios)

// reasons are why executions wait.
var reasons = []struct {
	reason string
	code   codes.Code
	shown  string
}{
	{"waiting_for_signal", "S1", "waiting_for_signal"}, {"step_boundary", "S1", "waiting_for_signal"},
	{"waiting_for_approval", "S2", "waiting_for_approval"}, {"waiting_for_callback", "S3", "waiting_for_callback"},
	{"waiting_for_tool_result", "S4", "waiting_for_tool_result"},
	{"waiting_for_operator_review", "S5", "paused_by_operator"},
	{"manual_pause", "S5", "paused_by_operator"}, {"paused_by_policy", "S6", "paused_by_policy"},
	{"paused_by_budget", "S7", "waiting_for_gate"},
	{"waiting_for_children", "S8", "waiting_for_children"},
}

// suspendArgs is the wire form of a suspension. Positions: 1..5 fence, 6 suspension, 7 request, 8 name, 9 reason, 10
// timeout, 11 behaviour, 12 delay, 13 condition, 14 count, then six a waitpoint.
func suspendArgs(fence []string, q engine.Suspension) []string {
	return slices.Concat([]string{proto}, fence, wireSuspend(q))
}

// waitpointCalls are the three calls by which a holder deals with waitpoints; pending is one that it may close.
func (w *env) waitpointCalls(f flowfabric.Fence, pending flowfabric.UUID) map[string]func() error {
	return map[string]func() error{
		"suspend": func() error { _, err := w.e.SuspendExecution(w.ctx, f, suspension()); return err },
		"pend": func() error {
			_, err := w.e.CreatePendingWaitpoint(w.ctx, f, "", minted("other"), time.Hour)
			return err
		},
		"close": func() error { _, err := w.e.CloseWaitpoint(w.ctx, f, pending); return err },
	}
}

// tooLate fails unless a delivery with the right token is refused because the waitpoint is closed for the wanted
// reason.
func (w *env) tooLate(what string, id flowfabric.ExecutionID, m engine.Minted, reason string) {
	w.Helper()
	w.unchanged(what, func() {
		_, err := w.deliver(id, m, suspend.SentSignal{Name: "go"})
		w.is(err, flowfabric.ErrWaitpointClosed)
		same(w, what, detail(err, 0), reason)
	})
}

// detail is a slot of a server's refusal.
func detail(err error, slot int) string {
	if coded, ok := errors.AsType[*flowfabric.Error](err); ok {
		return denied.Slot(coded, slot)
	}
	return ""
}

var suspensionScenarios = []scenario{
	{name: "a suspension gives up the lease, and no session holds the execution", run: func(w *env) {
		w.seed()
		for _, row := range reasons {
			k, c := w.holder()
			id := c.Fence.Execution
			q, s := w.suspend(c.Fence, because(row.reason))
			x := w.code(id, row.code)
			w.all(row.reason, eq(x.Phase().LifecyclePhase, "suspended"), eq(x.Phase().OwnershipState, "unowned"),
				eq(x.Phase().Eligibility, "not_applicable"), eq(x.State.BlockingReason, row.shown),
				eq(x.Phase().AttemptState, "attempt_interrupted"), eq(x.State.Public, "suspended"), eq(x.Attempts, 1),
				eq(x.Epoch, c.Fence.Epoch))
			held, err := w.e.SessionHeld(w.ctx, w.p, k.session)
			w.no(err)
			same(w, "held", len(held), 0)
			r := w.record(id)
			w.all("record", eq(r.State, flowfabric.Suspended), eq(r.ID, q.ID), eq(r.Reason, row.reason),
				eq(r.Behaviour, "fail"),
				eq(r.TimeoutAt.IsZero(), true), eq(r.ClosedAt.IsZero(), true), eq(r.Cause, ""),
				eq(r.Result == nil, true))
			// What a token is made of comes back; the token (kid:64 hex digits) is the business of who holds the
			// secret.
			m := q.Bindings[0].Minted
			w.all("waitpoints", eqList(s.Waitpoints, engine.Opened{ID: m.ID, Key: "wp", Kid: kid, Nonce: m.Nonce}),
				eq(s.Kid, kid))
			p := w.waitpoint(id, m)
			w.all("waitpoint", eq(p.State, "active"), eq(p.Key, "wp"), eq(p.Kid, kid), eq(p.Suspension, q.ID),
				eq(p.ExpiresAt.IsZero(), true), eq(p.Signals, 0))
			if strings.Contains(w.digest(), tokenOf(m)[len(kid)+1:]) {
				w.Fatal("the token is stored")
			}
		}
		same(w, "nothing without a timeout is due", len(w.dump().ZSets[":alarms"]), 0)
		_, c := w.holder()
		id := c.Fence.Execution
		_, s := w.suspend(c.Fence, within(time.Minute, "cancel"))
		r := w.record(id)
		w.all("timeout", eq(r.TimeoutAt.Sub(r.CreatedAt), time.Minute), eq(r.TimeoutAt.Equal(s.TimeoutAt), true),
			eq(r.Behaviour, "cancel"))
		sameDeep(w, "alarm", w.dump().ZSets[":alarms"],
			map[string]float64{ids.UUID(id).String(): float64(s.TimeoutAt.UnixMilli())})
		for name, call := range w.everyFencedCall(c.Fence) {
			w.unchanged(name, func() {
				if err := call(); err == nil {
					w.Fatal("a holder that suspended may still " + name)
				}
			})
		}
		f := w.worker("w9").one(w.create()).Fence
		for _, q := range []engine.Suspension{suspension(because("")), suspension(because("tired")),
			suspension(within(time.Minute, "")), suspension(within(time.Minute, "explode"))} {
			w.unchanged(q.Reason+q.Behaviour, func() {
				_, err := w.e.SuspendExecution(w.ctx, f, q)
				w.is(err, flowfabric.ErrInvalidInput)
			})
		}
	}},
	// An expired holder is refused and not marked: only the tick writes that. A session, claim or attempt that is
	// not the holder's are all a stale lease; no separate code says which attempt a suspension belongs to.
	{name: "waits and waitpoint calls under another fence are refused", run: func(w *env) {
		w.seed()
		_, c := w.holder(retries(1))
		f := c.Fence
		pending := w.pend(f, "p").ID
		for name, stale := range everyStranger(f) {
			for call, try := range w.waitpointCalls(stale, pending) {
				w.unchanged(name+" "+call, func() { w.is(try(), denied.StaleLease) })
			}
		}
		fence := fenceArgs(f)
		for from := range 4 {
			half := slices.Clone(fence)
			half[1+from] = ""
			w.unchanged("half a fence", func() {
				same(w, "code", w.fcall("ff_suspend_execution", suspendArgs(half, suspension())...).code,
					"partial_fence")
			})
		}
		w.unchanged("no fence", func() {
			none := []string{fence[0], "", "", "", ""}
			same(w, "code", w.fcall("ff_suspend_execution", suspendArgs(none, suspension())...).code, "fence_required")
		})
		w.unchanged("no execution", func() {
			lost := f
			lost.Execution = mint.ID(w.p)
			_, err := w.e.SuspendExecution(w.ctx, lost, suspension())
			w.is(err, flowfabric.ErrNotFound)
		})
		w.advance(ttl)
		for call, try := range w.waitpointCalls(f, pending) {
			w.unchanged("expired "+call, func() { w.is(try(), denied.LeaseExpired) })
		}
		w.code(f.Execution, "A2")
		_, c = w.holder()
		pending = w.pend(c.Fence, "p").ID
		w.revoke(c.Fence.Execution)
		for call, try := range w.waitpointCalls(c.Fence, pending) {
			w.unchanged("revoked "+call, func() { w.is(try(), denied.LeaseRevoked) })
		}
	}},
	{name: "a second suspension is refused, and a repeat of the first is recognised", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		q, first := w.suspend(c.Fence)
		w.unchanged("another suspension", func() {
			_, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension())
			w.is(err, denied.NotActive)
			same(w, "code", detail(err, 0), "S1")
		})
		w.unchanged("the same after a lost reply", func() {
			again, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
			w.no(err)
			first.Already = true
			sameDeep(w, "answer", again, first)
		})
		w.signal(id, q.Bindings[0].Minted, "go", waitwords.EffectSatisfied)
		w.unchanged("the same after it was resumed", func() {
			again, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
			w.no(err)
			w.all("already", eq(again.Already, true), eq(again.Satisfied, false))
		})
	}},
	{name: "the awaited signal resumes the execution in the same attempt", run: func(w *env) {
		w.seed()
		_, c := w.holder(timeout(time.Minute), deadline(24*time.Hour))
		id := c.Fence.Execution
		w.frames(c.Fence, 1, 2)
		w.advance(20 * time.Second)
		q, _ := w.suspend(c.Fence, within(2*time.Hour, "fail"))
		m := q.Bindings[0].Minted
		w.advance(time.Hour)
		d := w.send(id, m, suspend.SentSignal{Name: "go", Category: "human", SourceType: "person", Source: "ann",
			Correlation: "c1", Payload: []byte(`{"a":1}`)}, waitwords.EffectSatisfied)
		same(w, "open", d.Open, false)
		s := w.code(id, "R1i")
		w.all("state", eq(s.State.BlockingReason, "waiting_for_worker"), eq(s.Phase().Eligibility, "eligible_now"),
			eq(s.Phase().AttemptState, "attempt_interrupted"), eq(s.State.Public, "waiting"), eq(s.Attempts, 1))
		r := w.record(id)
		w.all("suspension", eq(r.ClosedAt.IsZero(), false), eq(r.CloseReason, "resumed"), eq(r.Cause, "signal"),
			eq(r.Trigger, "signal"), eq(r.Signals, 1), eq(r.Matched, 1))
		p := w.waitpoint(id, m)
		w.all("waitpoint", eq(p.State, "closed"), eq(p.CloseReason, "resumed"), eq(p.ClosedAt.Equal(r.ClosedAt), true),
			eq(p.Signals, 1), eq(p.Matched, 1), eq(p.LastSignalAt.Equal(r.LastSignalAt), true))
		x := w.dump()
		w.all("indexes", eq(len(x.ZSets[":open:"+kid]), 0), eq(len(x.ZSets[":pending"]), 0),
			eq(x.ZSets[":alarms"][ids.UUID(id).String()], float64(s.DeadlineAt.UnixMilli())),
			eq(x.Hashes[":us:"+ids.UUID(id).String()] == nil, true))
		n := w.worker("w2").one(id)
		w.all("the same attempt", eq(n.Type, "resumed"), eq(n.Fence.Attempt, 1), eq(n.LastSequence, 2),
			eq(n.Fence.Epoch > c.Fence.Epoch, true))
		if n.TimeLeft > 40*time.Second || n.TimeLeft < 30*time.Second {
			w.Fatalf("the attempt has %s left of 60 s after 20 s", n.TimeLeft)
		}
		g := n.Resume.Signals[0]
		w.all("told", eq(told(n.Resume), "signal: go"), eq(n.Resume.Suspension, q.ID),
			eq(n.Resume.Closer, fmt.Sprint(d.Signal)), eq(g.ID, d.Signal), eq(g.Category, "human"),
			eq(g.SourceType, "person"), eq(g.Source, "ann"), eq(g.Correlation, "c1"), eq(g.Encoding, "json"),
			eq(string(g.Payload), `{"a":1}`), eq(g.Waitpoint, m.ID), eq(g.WaitpointKey, "wp"))
		w.no(w.complete(n.Fence, "").Err)
	}},
	{name: "a signal that does not match is recorded and resumes nothing", run: func(w *env) {
		w.seed()
		_, c, m := w.waiting(within(time.Hour, "fail"))
		id := c.Fence.Execution
		d := w.signal(id, m, "other", waitwords.EffectNone)
		same(w, "open", d.Open, true)
		w.code(id, "S1")
		p, r := w.waitpoint(id, m), w.record(id)
		w.all("counted", eq(p.State, "active"), eq(p.Signals, 1), eq(p.Matched, 0), eq(r.Signals, 1), eq(r.Matched, 0),
			eq(r.LastSignalAt.Equal(p.LastSignalAt), true))
		same(w, "recorded", w.logged(id, m), "other no_op")
		same(w, "still due", len(w.dump().ZSets[":alarms"]), 1)
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		same(w, "recorded", w.logged(id, m), "other no_op, go resume_condition_satisfied")
		same(w, "told", told(w.record(id).Result), "signal: go")
	}},
	{name: "a condition on two names needs both, and a repeated name counts once", run: func(w *env) {
		w.seed()
		m := minted("wp")
		_, c, _ := w.waiting(waitFor(conditionOf(names(1, 2, "a", "b")), m))
		id := c.Fence.Execution
		w.signal(id, m, "a", waitwords.EffectAppended)
		w.code(id, "S1")
		w.signal(id, m, "a", waitwords.EffectNone)
		w.code(id, "S1")
		p := w.waitpoint(id, m)
		w.all("counted", eq(p.Signals, 2), eq(p.Matched, 1))
		w.advance(time.Millisecond) // signals of one millisecond are told in the order of their ids
		w.signal(id, m, "b", waitwords.EffectSatisfied)
		w.code(id, "R1i")
		same(w, "log", w.logged(id, m), "a appended_to_waitpoint, a no_op, b resume_condition_satisfied")
		same(w, "told", told(w.record(id).Result), "signal: a b")
	}},
	{name: "a signal fills a slot of its exact name before a wildcard", run: func(w *env) {
		w.seed()
		for _, x := range []struct {
			what, condition string
			signals         []suspend.Effect // name and effect
		}{
			{"two slots of one name", names(1, 2, "a", "a"),
				[]suspend.Effect{"a", waitwords.EffectAppended, "b", waitwords.EffectNone, "a",
					waitwords.EffectSatisfied}},
			{"any name", names(1, 1, ""), []suspend.Effect{"whatever", waitwords.EffectSatisfied}},
			{"the exact name goes before the wildcard", names(1, 2, "", "a"),
				[]suspend.Effect{"a", waitwords.EffectAppended, "x", waitwords.EffectSatisfied}},
			{"the wildcard takes what is left", names(1, 2, "", "a"),
				[]suspend.Effect{"x", waitwords.EffectAppended, "x", waitwords.EffectNone, "a",
					waitwords.EffectSatisfied}},
			{"also the same name", names(1, 2, "", "a"),
				[]suspend.Effect{"a", waitwords.EffectAppended, "a", waitwords.EffectSatisfied}},
			{"two of three", names(1, 2, "a", "b", "c"),
				[]suspend.Effect{"c", waitwords.EffectAppended, "c", waitwords.EffectNone, "a",
					waitwords.EffectSatisfied}},
		} {
			m := minted("wp")
			_, c, _ := w.waiting(waitFor(conditionOf(x.condition), m))
			for i := 0; i < len(x.signals); i += 2 {
				w.code(c.Fence.Execution, "S1")
				w.signal(c.Fence.Execution, m, string(x.signals[i]), x.signals[i+1])
			}
			w.code(c.Fence.Execution, "R1i")
			same(w, x.what, w.read(c.Fence.Execution).State.Public, flowfabric.Waiting)
			w.cancel(c.Fence.Execution)
		}
	}},
	{name: "a condition that can never be met is refused", run: func(w *env) {
		w.seed()
		f := w.worker("w1").one(w.create()).Fence
		for _, bad := range []string{names(1, 2, "v"), names(1, 3, "a", "b"), names(1, 0, "a"),
			names(1, 1, "__operator_only__"), names(2, 1, "a"), names(1, 1), names(1, 1, "a\x00"),
			names(1, 1, strings.Repeat("n", 129)), timeoutOnly, operatorOnly, "", "X",
			names(1, 1, "a") + "\x1e" + names(1, 1, "b")} {
			w.unchanged(bad, func() {
				_, err := w.e.SuspendExecution(w.ctx, f, suspension(waitFor(bad, minted("wp"))))
				w.is(err, denied.Condition)
			})
		}
		w.unchanged("the timeout only, without one", func() {
			_, err := w.e.SuspendExecution(w.ctx, f, suspension(waitFor(timeoutOnly)))
			w.is(err, denied.Condition)
			same(w, "why", detail(err, 0), "timeout_only_without_deadline")
		})
		w.suspend(f, waitFor(timeoutOnly), within(time.Minute, "auto_resume"))
	}},
}

// everyStranger are fences that differ from one in a single part.
func everyStranger(f flowfabric.Fence) map[string]flowfabric.Fence {
	all := strangers(f)
	older, newer, next := f, f, f
	older.Epoch--
	newer.Epoch++
	next.Attempt++
	all["older epoch"], all["newer epoch"], all["attempt"] = older, newer, next
	return all
}
