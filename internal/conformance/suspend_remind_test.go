package conformance

import (
	"errors"
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// remind is the timeout that leaves the waitpoints of the handler open.
const remind = "auto_resume_open"

// opensFor opens a waitpoint that is kept as a step under its key, under a new claim of a new execution.
func (w *env) opensFor(keys ...string) (flowfabric.ExecutionID, flowfabric.Fence, []engine.Minted) {
	w.Helper()
	id := w.create()
	f := w.holds(id)
	var all []engine.Minted
	for _, key := range keys {
		m := minted(key)
		_, err := w.openNamed(f, m, time.Hour)
		w.no(err)
		all = append(all, m)
	}
	return id, f, all
}

// timesOut lets a wait on waitpoints of the handler run into its time limit, and claims what goes on.
func (w *env) timesOut(id flowfabric.ExecutionID, f flowfabric.Fence, opts ...suspending) flowfabric.Fence {
	w.Helper()
	w.suspend(f, opts...)
	w.advance(time.Minute)
	w.settleTime()
	w.tick()
	w.code(id, "R1i")
	return w.holds(id)
}

// pointState is the state of a waitpoint, how many signals it has, and how many of them matched.
type pointState struct {
	state            string
	signals, matched int
}

func (w *env) stateOfPoint(id flowfabric.ExecutionID, m engine.Minted) pointState {
	w.Helper()
	r, err := w.e.ReadSuspension(w.ctx, id)
	w.no(err)
	for _, p := range r.Waitpoints {
		if p.ID == m.ID {
			return pointState{p.State, p.Signals, p.Matched}
		}
	}
	return pointState{state: "gone"}
}

// anySignal is a condition that any signal meets.
var anySignal = waitFor(conditionOf(names(1, 1, "")), minted("fresh"))

// Waitpoints that serve several waits.
var remindScenarios = []scenario{
	{name: "a link still works after a reminder, and what came in between answers the next wait", run: func(w *env) {
		w.seed()
		id, f, m := w.opensFor("editor")
		f = w.timesOut(id, f, anySignal, onPending(m[0]), awaiting("first"), within(time.Minute, remind))
		same(w, "between", w.stateOfPoint(id, m[0]), pointState{"pending", 0, 0})
		w.signal(id, m[0], "yes", waitwords.EffectBuffered)
		s, err := w.e.SuspendExecution(w.ctx, f, suspension(anySignal, onPending(m[0]), awaiting("second")))
		w.no(err)
		w.check()
		w.all("answered at once", eq(s.Satisfied, true), eq(s.Resume.Signals[0].Name, "yes"))
		_, err = w.deliver(id, m[0], suspend.SentSignal{Name: "late"})
		same(w, "one answer counts", errors.Is(err, flowfabric.ErrWaitpointClosed), true)
	}},
	{name: "a waitpoint serves any number of waits, each with its own question and time", run: func(w *env) {
		w.seed()
		id, f, m := w.opensFor("editor")
		for i := range 5 {
			f = w.timesOut(id, f, anySignal, onPending(m[0]), awaiting(fmt.Sprint("wait", i)),
				within(time.Minute, remind))
			c, err := w.e.ReadSuspension(w.ctx, id)
			w.no(err)
			w.all("told", eq(c.Cause, "timeout"), eq(c.Result != nil, true))
		}
		w.suspend(f, anySignal, onPending(m[0]), awaiting("last"))
		w.signal(id, m[0], "yes", waitwords.EffectSatisfied)
		same(w, "steps", len(w.worker("x").one(id).Steps), 1+5)
	}},
	{name: "signals of a wait that was not met count for the next one, once, and what it passed over does not",
		run: func(w *env) {
			w.seed()
			for name, size := range map[string]int{"small": 1, "large": 5000} {
				id, f, m := w.opensFor("a", "b", "c")
				w.suspend(f, waitFor(count(2, "w", "yes", 1, 2, 3)), onPending(m...), within(time.Minute, remind))
				payload := []byte(strings.Repeat("x", size))
				w.send(id, m[0], suspend.SentSignal{Name: "yes", IdempotencyKey: "k", Encoding: "utf8",
					Payload: payload},
					waitwords.EffectAppended)
				w.send(id, m[1], suspend.SentSignal{Name: "other", Encoding: "utf8", Payload: payload},
					waitwords.EffectUnmatched)
				w.advance(time.Minute)
				w.settleTime()
				w.tick()
				f = w.holds(id)
				w.all(name, eq(w.stateOfPoint(id, m[0]), pointState{"pending", 1, 0}),
					eq(w.stateOfPoint(id, m[1]), pointState{"pending", 1, 0}))
				d, err := w.deliver(id, m[0], suspend.SentSignal{Name: "yes", IdempotencyKey: "k", Encoding: "utf8",
					Payload: payload})
				w.no(err)
				same(w, "a repeat", d.Duplicate, true)
				w.suspend(f, waitFor(count(2, "w", "", 1, 2, 3)), onPending(m...), awaiting("second"))
				w.signal(id, m[2], "yes", waitwords.EffectSatisfied)
				c := w.worker("x" + name).one(id)
				w.complete(c.Fence, "r")
				w.all(name+" answer", eq(len(c.Resume.Signals), 2),
					eq(len(c.Resume.Signals[0].Payload)+len(c.Resume.Signals[1].Payload), size))
			}
		}},
	{name: "a wait for more than 256 KiB of signals that came before is refused, and nothing is cut",
		run: func(w *env) {
			w.seed()
			id, f, m := w.opensFor("old", "new")
			large := suspend.SentSignal{Name: "part", Encoding: "bytes", Payload: make([]byte, 60_000)}
			for range 4 {
				w.send(id, m[0], large, waitwords.EffectBuffered)
			}
			w.refuses("one more", denied.SignalLimit, "buffered bytes: at most 262144", func() error {
				_, err := w.e.DeliverSignal(w.ctx, id, m[0].ID, m[0].Digest, large)
				return err
			})
			w.release(f)
			w.advance(time.Hour)
			w.tick() // what was buffered counts still, and the other one has room of its own
			f = w.holds(id)
			m[1] = minted("newer")
			_, err := w.openNamed(f, m[1], time.Hour)
			w.no(err)
			w.send(id, m[1], large, waitwords.EffectBuffered)
			wait := []suspending{waitFor(count(5, "s", "", 1, 2)), onPending(m...)}
			w.refuses("all of them", denied.SignalLimit,
				"bytes of the signals that came before the wait and that it takes: at most 262144",
				w.suspending(f, wait...))
			s, err := w.e.SuspendExecution(w.ctx, f, suspension(waitFor(count(4, "s", "", 1, 2)), onPending(m...)))
			w.no(err)
			w.check()
			w.all("those that fit", eq(s.Satisfied, true), eq(len(s.Resume.Signals), 4),
				eq(len(s.Resume.Signals[0].Payload), 60000))
		}},
	{name: "a wait that ends otherwise closes its waitpoints, and fresh ones never stay", run: func(w *env) {
		w.seed()
		id, f, m := w.opensFor("editor")
		w.suspend(f, anySignal, onPending(m[0]), awaiting("first"), within(time.Minute, remind))
		w.resume(id)
		same(w, "an operator", w.stateOfPoint(id, m[0]), pointState{"closed", 0, 0})
		f = w.holds(id)
		q, _ := w.suspend(f, anySignal, awaiting("other"), within(time.Minute, remind), awaiting("second"))
		w.advance(time.Minute)
		w.settleTime()
		w.tick()
		same(w, "a fresh one", w.stateOfPoint(id, q.Bindings[0].Minted), pointState{"closed", 0, 0})
	}},
	{name: "a wait that goes on otherwise when its time is over closes its waitpoints", run: func(w *env) {
		w.seed()
		for _, behaviour := range []string{"auto_resume", "auto_resume_with_timeout_signal"} {
			other, held, n := w.opensFor("editor")
			w.release(w.timesOut(other, held, anySignal, onPending(n[0]), awaiting("first"),
				within(time.Minute, behaviour)))
			same(w, behaviour, w.stateOfPoint(other, n[0]), pointState{"closed", 0, 0})
			_, err := w.e.CancelExecution(w.ctx, other, engine.Cancellation{Source: engine.CancelOperator})
			w.no(err)
		}
	}},
	{name: "a waitpoint stays open for seven days after a wait, and its execution's end closes it", run: func(w *env) {
		w.seed()
		id, f, m := w.opensFor("editor")
		f = w.timesOut(id, f, anySignal, onPending(m[0]), awaiting("first"), within(time.Minute, remind))
		w.release(f)
		w.advance(7*24*time.Hour - time.Minute)
		w.tick()
		same(w, "before", w.stateOfPoint(id, m[0]), pointState{"pending", 0, 0})
		w.advance(2 * time.Minute)
		w.tick()
		same(w, "after", w.stateOfPoint(id, m[0]), pointState{"expired", 0, 0})
		_, err := w.e.CancelExecution(w.ctx, id, engine.Cancellation{Source: engine.CancelOperator})
		w.no(err)
		id, f, m = w.opensFor("editor")
		f = w.timesOut(id, f, anySignal, onPending(m[0]), awaiting("first"), within(time.Minute, remind))
		w.complete(f, "r")
		same(w, "the end", w.stateOfPoint(id, m[0]), pointState{"closed", 0, 0})
	}},
}
