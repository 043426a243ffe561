package conformance

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// reuseScenarios are about what comes a second time: requests, approvals, keys, and waits on what has run out.
var reuseScenarios = []scenario{
	{name: "a repeated resume request does not resume the next suspension", run: func(w *env) {
		w.stop()
		w.seed()
		s := w.sleeps(waitFor(names(1, 1, "go"), minted("one")))
		request := engine.ResumeRequest{Request: mint.UUID()}
		already, err := w.e.ResumeExecution(trail.As(w.ctx, "anna", ""), s.id, request)
		w.no(err)
		same(w, "first", already, false)
		w.suspend(w.claims(s.id).Fence, waitFor(names(1, 1, "go"), minted("two")))
		already, err = w.e.ResumeExecution(trail.As(w.ctx, "anna", ""), s.id, request)
		w.no(err)
		w.check()
		w.all("repeated", eq(already, true), eq(w.public(s.id), flowfabric.Suspended))
	}},
	{name: "a repeated approval does not answer the next wait", run: func(w *env) {
		w.stop()
		w.seed()
		s := w.sleeps(waitFor(names(1, 1, "go"), minted("gate")))
		approval := suspend.SentSignal{ID: mint.UUID(), Name: "go", Source: "anna"}
		first, err := w.e.ApproveWaitpoint(w.ctx, s.id, "gate", approval)
		w.no(err)
		w.suspend(w.claims(s.id).Fence, waitFor(names(1, 1, "go"), minted("gate")))
		again, err := w.e.ApproveWaitpoint(w.ctx, s.id, "gate", approval)
		w.no(err)
		w.check()
		w.all("repeated", eq(again.Signal, first.Signal), eq(again.Effect, first.Effect), eq(again.Open, false),
			eq(w.public(s.id), flowfabric.Suspended))
	}},
	{name: "signals that were accepted in time still count after the waitpoint expired", run: func(w *env) {
		for _, ticked := range []bool{false, true} {
			w.stop()
			w.seed()
			_, c := w.holder()
			m := minted("p")
			_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", m, 2*time.Second)
			w.no(err)
			w.signal(c.Fence.Execution, m, "go", waitwords.EffectBuffered)
			w.pass(3 * time.Second)
			if ticked {
				w.tick()
			}
			got, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(waitFor(names(1, 1, "go")), onPending(m)))
			w.no(err)
			w.check()
			w.all("satisfied", eq(got.Satisfied, true), eq(len(got.Resume.Signals), 1),
				eq(w.waitpoint(c.Fence.Execution, m).State, "closed"))
			w.reset()
		}
	}},
	{name: "a forgotten key id cannot be used again while it has open waitpoints", run: func(w *env) {
		w.stop()
		w.seed()
		w.sleeps(waitFor(names(1, 1, "go"), minted("one")))
		same(w, "forced", w.setKey("rotate", "k2", time.Millisecond, true).code, "OK")
		w.pass(time.Second)
		same(w, "another", w.setKey("rotate", "k3", time.Hour, true).code, "OK") // reaps the first
		same(w, "the first again", w.setKey("rotate", kid, time.Hour, true).code, "rotation_conflict")
	}},
	{name: "a rotated key issues tokens only for waitpoints that end before its grace", run: func(w *env) {
		w.stop()
		w.seed()
		_, c := w.holder()
		same(w, "rotated", w.setKey("rotate", "k2", time.Minute, false).code, "OK")
		for life, want := range map[time.Duration]error{time.Minute - time.Second: nil,
			time.Minute: denied.KidNotCurrent} {
			_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", minted("p"+life.String()), life)
			w.is(err, want)
		}
		_, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(waitFor(names(1, 1, "go"), minted("for ever"))))
		w.is(err, denied.KidNotCurrent)
		w.check()
	}},
	{name: "a suspension with a missing record does not stop other timers", run: func(w *env) {
		w.stop()
		w.seed()
		w.quiet = true // the checker rightly complains
		for _, behaviour := range []string{"fail", "escalate"} {
			broken := w.sleeps(waitFor(names(1, 1, "go"), minted("one")), within(time.Second, behaviour))
			other := w.sleeps(waitFor(names(1, 1, "go"), minted("two")), within(2*time.Second, "auto_resume"))
			w.no(w.raw.Do(w.ctx, w.raw.B().Del().Key(w.k.Waits(ids.UUID(broken.id))).Build()).Error())
			w.pass(3 * time.Second)
			w.tick()
			same(w, "the other", w.public(other.id), flowfabric.Waiting)
			w.reset()
			w.stop()
			w.seed()
		}
	}},
}

// public is the state that producers see.
func (w *env) public(id flowfabric.ExecutionID) flowfabric.PublicState {
	w.Helper()
	x, err := w.e.ReadExecution(w.ctx, id)
	w.no(err)
	return x.State.Public
}
