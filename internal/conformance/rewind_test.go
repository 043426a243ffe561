package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// rewound rewinds an execution.
func (w *env) rewound(id flowfabric.ExecutionID, q engine.Rewind) engine.Rewound {
	w.Helper()
	r, err := w.e.RewindExecution(trail.As(w.ctx, "me", "another way"), id, q)
	w.no(err)
	same(w, "rewound already", r.Already, false)
	w.check()
	return r
}

// handed opens a waitpoint, as a step.
func (w *env) handed(f flowfabric.Fence, key string) engine.Minted {
	w.Helper()
	m := minted(key)
	_, err := w.e.CreatePendingWaitpoint(w.ctx, f, key, m, time.Hour)
	w.no(err)
	w.check()
	return m
}

// rewindStates are the ways to be in a state with the steps a b c: from an execution that is held to its code.
var rewindStates = []struct {
	code codes.Code
	do   func(w *env, k *worker, f flowfabric.Fence)
	held bool // its attempt is open
}{
	{"A1", func(*env, *worker, flowfabric.Fence) {}, true},
	{"A3", func(w *env, _ *worker, f flowfabric.Fence) { w.revoke(f.Execution) }, false},
	{"S1", func(w *env, _ *worker, f flowfabric.Fence) { w.stopped(f) }, true},
	{"S5", func(w *env, _ *worker, f flowfabric.Fence) {
		w.stopped(f, within(time.Second, "escalate"))
		w.advance(2 * time.Second)
		w.settleTime()
	}, true},
	{"R1i", func(w *env, _ *worker, f flowfabric.Fence) { w.release(f) }, true},
	{"R2ai", func(w *env, _ *worker, f flowfabric.Fence) { w.delay(f, time.Hour) }, true},
	{"R2b", func(w *env, _ *worker, f flowfabric.Fence) { w.fail(f, "x") }, false},
	{"R1t", func(w *env, _ *worker, f flowfabric.Fence) {
		w.fail(f, "x")
		w.advance(time.Minute)
		w.settleTime()
	}, false},
	{"R1r", func(w *env, k *worker, f flowfabric.Fence) {
		w.revoke(f.Execution)
		w.settleTime()
	}, false},
	{"R2r", func(w *env, k *worker, f flowfabric.Fence) {
		for range 3 {
			_, err := w.e.MarkSessionDead(trail.As(w.ctx, "", "test"), w.p, f.Session)
			w.no(err)
			w.settleTime()
			if w.read(f.Execution).Phase().Code == "R2r" {
				return
			}
			f = w.worker("again").one(f.Execution).Fence
		}
	}, false},
	{"R4i", func(w *env, _ *worker, f flowfabric.Fence) {
		w.release(f)
		_, err := w.e.HoldExecution(w.ctx, f.Execution)
		w.no(err)
	}, true},
	{"R1p", func(w *env, _ *worker, f flowfabric.Fence) {
		w.fail(f, "permanent")
		w.replay(f.Execution, engine.Replay{})
	}, false},
	{"T1", func(w *env, _ *worker, f flowfabric.Fence) { w.complete(f, "r") }, false},
	{"T2", func(w *env, _ *worker, f flowfabric.Fence) { w.fail(f, "permanent") }, false},
	{"T3", func(w *env, _ *worker, f flowfabric.Fence) { w.cancel(f.Execution) }, false},
}

// Executions that go on again from a recorded step on.
var rewindScenarios = []scenario{
	{name: "an execution in any state goes on again from a step, in a new attempt, and its holder has lost it",
		run: func(w *env) {
			w.seed()
			for _, x := range rewindStates {
				id := w.create(retries(3))
				k := w.worker("w-" + string(x.code))
				f := k.one(id).Fence
				w.stepping(f, "a", "b", "c")
				x.do(w, k, f)
				w.check()
				before := w.code(id, x.code)
				r := w.rewound(id, engine.Rewind{Step: "b"})
				w.all(string(x.code), eq(strings.Join(r.Dropped, " "), "b c"), eq(r.Attempt, before.Attempts+1))
				want := codes.Code("R1p")
				if x.code == "R4i" {
					want = "R4p"
				}
				s := w.code(id, want)
				w.all(string(x.code), eq(s.Retries, 0), eq(s.Reclaims, 0))
				if last := s.AttemptLog[len(s.AttemptLog)-1]; (last.State == "rewound") != x.held ||
					x.held && last.Message != "another way" {
					w.Errorf("%s: attempt %d ended as %s: %s", x.code, last.Index, last.State, last.Message)
				}
				w.unchanged("a step of the old holder", func() {
					_, err := w.e.RecordStep(w.ctx, f, "d", nil, 0)
					w.is(err, flowfabric.ErrState)
				})
				if want == "R4p" {
					_, err := w.e.UnholdExecution(w.ctx, id)
					w.no(err)
				}
				c := w.worker("next").one(id)
				w.all(string(x.code), eq(c.Type, flowfabric.AttemptReplay), eq(stepNames(c), "a"),
					eq(c.Fence.Attempt, r.Attempt), eq(told(c.Resume), "nothing"))
				w.unchanged("a step of the old holder", func() {
					_, err := w.e.RecordStep(w.ctx, f, "d", nil, 0)
					w.is(err, denied.StaleLease)
				})
				w.stepping(c.Fence, "b")
				same(w, "the end", w.complete(c.Fence, "r").Err, nil)
			}
		}},
	{name: "a rewind tells the holder, the trail of the attempt, and the history", run: func(w *env) {
		k, c := w.holder()
		f := c.Fence
		w.stepping(f, "a", "b")
		w.frames(f, 1, 2)
		w.rewound(f.Execution, engine.Rewind{Step: "b"})
		r := w.renew(k, 0)
		same(w, "notices", fmt.Sprint(r.Lost), fmt.Sprint([]engine.Lost{{Execution: f.Execution, Epoch: f.Epoch,
			Cause: "rewound"}}))
		w.is(r.Lost[0].Err(), flowfabric.ErrLeaseLost)
		m := w.meta(f)
		w.all("its stream", eq(m.Closed, true), eq(m.ClosedReason, "rewound"), eq(m.Message, "another way"),
			eq(m.By, "me"))
		events, err := w.e.ReadHistory(w.ctx, f.Execution)
		w.no(err)
		at := slices.IndexFunc(events, func(e flowfabric.Event) bool { return e.Kind == "rewound" })
		if at < 0 || events[at].By != "me" || events[at].Reason != "another way" || events[at].Detail != "b" {
			w.Errorf("%d of %+v", at, events)
		}
	}},
	{name: "of two that rewind what they saw, one wins and the other is told", run: func(w *env) {
		_, c := w.holder()
		id := c.Fence.Execution
		w.stepping(c.Fence, "a", "b")
		first := engine.Rewind{Request: flowfabric.UUID{1}, Step: "b", Attempt: 1}
		same(w, "the first", w.rewound(id, first).Attempt, uint32(2))
		w.unchanged("the second", func() {
			_, err := w.e.RewindExecution(w.ctx, id, engine.Rewind{Step: "a", Attempt: 1})
			w.is(err, denied.OtherAttempt)
			w.is(err, flowfabric.ErrConflict)
		})
		w.unchanged("a repeat of the first", func() {
			r, err := w.e.RewindExecution(w.ctx, id, first)
			w.no(err)
			w.all("repeat", eq(r.Already, true), eq(r.Attempt, uint32(2)))
		})
		same(w, "who saw the next", w.rewound(id, engine.Rewind{Step: "a", Attempt: 2}).Attempt, uint32(2))
		w.unchanged("a step that nobody recorded", func() {
			_, err := w.e.RewindExecution(w.ctx, id, engine.Rewind{Step: "a"})
			w.is(err, denied.NoStep)
		})
		same(w, "takes", w.worker("w2").one(id).Takes, 2)
	}},
	{name: "a message of a rewind is a receipt that later rewinds of the step keep or replace", run: func(w *env) {
		k, c := w.holder()
		id := c.Fence.Execution
		w.stepping(c.Fence, "a", "b")
		say := func(step, text string) engine.Claim {
			w.Helper()
			q := engine.Rewind{Step: step}
			if text != "" {
				q.Encoding, q.Message = "utf8", []byte(text)
			}
			w.rewound(id, q)
			c := k.one(id)
			w.stepping(c.Fence, "b")
			return c
		}
		edited := func(c engine.Claim) string {
			w.Helper()
			value, ok := c.Steps[engine.StepReceipt+engine.EditName("b")]
			if !ok {
				return "-"
			}
			r, err := engine.DecodeReceipt(value)
			w.no(err)
			return mailed(r.Messages) + " by " + r.Messages[0].By
		}
		same(w, "edited", edited(say("b", "hello \x1f")), "0 edit hello \x1f by me")
		same(w, "kept", edited(say("b", "")), "0 edit hello \x1f by me")
		same(w, "edited again", edited(say("b", "bye")), "0 edit bye by me")
		same(w, "from an earlier step", edited(say("a", "")), "-")
	}},
	{name: "an answer and a rewind of the question: the first counts", run: func(w *env) {
		w.seed()
		answer := func(id flowfabric.ExecutionID) error {
			_, err := w.e.ApproveWaitpoint(w.ctx, id, "gate", suspend.SentSignal{Name: "go", Source: "op"})
			return err
		}
		for _, first := range []string{"answer", "rewind"} {
			k, c := w.holder()
			id := c.Fence.Execution
			w.stepping(c.Fence, "a")
			handed := w.handed(c.Fence, "handed") // before the step: it stays open
			w.stepping(c.Fence, "b")
			late := w.handed(c.Fence, "late")
			w.stopped(c.Fence, waitFor(conditionOf(names(1, 1, "go")), minted("gate")))
			if first == "answer" {
				w.no(answer(id))
				w.check()
			}
			w.rewound(id, engine.Rewind{Step: "b"})
			if first == "rewind" {
				w.unchanged("a late answer", func() { w.is(answer(id), flowfabric.ErrWaitpointClosed) })
			}
			w.signal(id, handed, "go", waitwords.EffectBuffered)
			_, err := w.deliver(id, late, suspend.SentSignal{Name: "go"})
			w.is(err, flowfabric.ErrWaitpointClosed)
			c = k.one(id)
			w.all(first, eq(stepNames(c), ":w:handed a"), eq(told(c.Resume), "nothing"))
			w.stopped(c.Fence, waitFor(conditionOf(names(1, 1, "go")), minted("gate")))
			w.no(answer(id))
			c = k.one(id)
			same(w, "asked again", told(c.Resume), "signal: go")
		}
	}},
	{name: "a waitpoint that a step before has handed out stays open, also when the wait on it is rewound",
		run: func(w *env) {
			w.seed()
			k, c := w.holder()
			id := c.Fence.Execution
			m := w.handed(c.Fence, "handed")
			w.stepping(c.Fence, "b")
			w.stopped(c.Fence, onPending(m))
			w.rewound(id, engine.Rewind{Step: "b"})
			w.signal(id, m, "go", waitwords.EffectBuffered)
			c = k.one(id)
			same(w, "kept", stepNames(c), ":w:handed")
			s, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(onPending(m)))
			w.no(err)
			same(w, "answered already", s.Satisfied, true)
		}},
	{name: "a waitpoint before the step is opened anew if the answer of its wait is forgotten", run: func(w *env) {
		w.seed()
		for _, how := range []string{"answered", "stopped", "held", "kept", "remembered", "ended"} {
			k, c := w.holder()
			id := c.Fence.Execution
			m := w.handed(c.Fence, "handed")
			w.stepping(c.Fence, "a")
			w.stopped(c.Fence, awaiting("it"), onPending(m))
			if how == "stopped" {
				w.halted(id, "anna", mint.UUID())
			} else {
				w.signal(id, m, "go", waitwords.EffectSatisfied)
			}
			step, want, value := "a", "", "nothing"
			if how != "answered" && how != "stopped" {
				c = k.one(id)
				w.stepping(c.Fence, "b")
			}
			switch how {
			case "kept":
				step, want, value = "b", ":w:handed a", "signal: go"
			case "remembered":
				w.stopped(c.Fence, awaiting("more"))
				step, want = "b", ":a:it :w:handed a"
			case "ended":
				same(w, "the end", w.complete(c.Fence, "").Err, nil)
			}
			w.rewound(id, engine.Rewind{Step: step})
			c = k.one(id)
			w.all(how, eq(stepNames(c), want), eq(told(c.Resume), value))
			if want == "" {
				w.stopped(c.Fence, awaiting("it"), onPending(w.handed(c.Fence, "handed")))
			}
		}
	}},
	{name: "another input starts the count of rewinds anew", run: func(w *env) {
		k, c := w.holder()
		id := c.Fence.Execution
		for link := range 2 {
			w.stepping(c.Fence, "a")
			w.rewound(id, engine.Rewind{Step: "a"})
			c = k.one(id)
			same(w, "takes", c.Takes, 1)
			w.goOn(c.Fence, "x")
			c = k.one(id)
			w.all("another link", eq(c.Takes, 0), eq(c.Continues, link+1))
		}
	}},
	{name: "a rewind cancels the children that its execution waits for", run: func(w *env) {
		for _, waits := range []bool{true, false} { // or has only made them
			f := w.family()
			w.stepping(f.fence, "a")
			f.wait(engine.WaitAll, waits, "x", "y")
			w.rewound(f.parent, engine.Rewind{Step: "a"})
			f.settleTime()
			for _, name := range []string{"x", "y"} {
				same(w, name, w.read(f.child(f.parent, "wait", name).ID).State.Public, flowfabric.Cancelled)
			}
			var c engine.Claim
			for _, c = range f.w.claim(100) {
				same(w, "claimed", c.Fence.Execution, f.parent)
			}
			w.all("the parent", eq(c.Type, flowfabric.AttemptReplay), eq(len(c.Steps), 0))
			same(w, "the end", w.complete(c.Fence, "r").Err, nil)
		}
	}},
	{name: "frames of forgotten steps are covered no more, those before stay", run: func(w *env) {
		k, c := w.holder()
		f := c.Fence
		w.frames(f, 1, 2)
		w.stepping(f, "a")
		w.frames(f, 3, 3)
		w.stepping(f, "b", "c")
		same(w, "covered", w.meta(f).Recorded.Sequence, uint64(5))
		w.rewound(f.Execution, engine.Rewind{Step: "c"})
		same(w, "of the second of two that cover the same", w.meta(f).Recorded.Sequence, uint64(5))
		g := k.one(f.Execution).Fence
		w.frames(g, 1, 4)
		w.stepping(g, "c")
		w.rewound(f.Execution, engine.Rewind{Step: "b"})
		w.all("of two attempts", eq(w.meta(f).Recorded.Sequence, uint64(2)), eq(w.meta(g).Recorded.Sequence, uint64(0)))
		w.rewound(f.Execution, engine.Rewind{Step: "a"})
		same(w, "of the first", w.meta(f).Recorded.Sequence, uint64(0))
	}},
}
