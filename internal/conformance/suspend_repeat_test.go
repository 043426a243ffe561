package conformance

import (
	"context"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Suspending again, in vain, and on the word of an operator.
var suspendRepeatScenarios = []scenario{
	{name: "a suspension repeated after a lost reply is recognised by its request", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		turn := func() engine.Suspension { return suspension(asked("turn"), awaiting("it"), within(time.Hour, "fail")) }
		q := turn()
		first := w.repeats(c.Fence, q, turn()) // what the second try minted does not count
		w.refuses("another request", denied.NotActive, "S1", w.suspending(c.Fence, asked("other")))
		for what, stranger := range everyStranger(c.Fence) {
			w.refuses("the request of another "+what, denied.NotActive, "S1", w.suspending(stranger, asked("turn")))
		}
		w.signal(id, q.Bindings[0].Minted, "go", waitwords.EffectSatisfied)
		w.unchanged("the same again, after it was resumed", func() {
			again, err := w.e.SuspendExecution(w.ctx, c.Fence, turn())
			w.no(err)
			w.all("suspension", eq(again.Already, true), eq(again.Satisfied, false),
				eq(again.Suspension, first.Suspension))
		})
		next := k.one(id)
		again, err := w.e.SuspendExecution(w.ctx, next.Fence, turn())
		w.no(err)
		w.check()
		w.all("the next turn", eq(again.Already, false), eq(again.Suspension == first.Suspension, false))
		w.refuses("the first turn's repeat", denied.NotActive, "S1", w.suspending(c.Fence, asked("turn")))
	}},
	{name: "a repeated suspension is recognised by its id, also if early signals satisfied it", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		q := suspension(within(time.Hour, "fail"))
		again := suspension()
		again.ID = q.ID
		w.repeats(c.Fence, q, again)
		_, c = w.holder()
		p := w.pend(c.Fence, "wp")
		w.signal(c.Fence.Execution, p, "go", waitwords.EffectBuffered)
		first := w.repeats(c.Fence, suspension(asked("turn"), onPending(p)), suspension(asked("turn"), onPending(p)))
		w.all("satisfied", eq(first.Satisfied, true), eq(told(&first.Resume), "already_satisfied: go"))
		w.no(w.complete(c.Fence, "").Err)
	}},
	{name: "a refused suspension leaves the record of the last one unchanged", run: func(w *env) {
		w.seed()
		k, c, m := w.waiting(awaiting("it"))
		id := c.Fence.Execution
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		c = k.one(id)
		pending := w.pend(c.Fence, "p")
		w.refuses("an unknown waitpoint", denied.NoWaitpoint, "x", w.suspending(c.Fence, onPending(minted("x"))))
		w.refuses("the second waitpoint", denied.NoWaitpoint, "x",
			w.suspending(c.Fence, waitFor(count(1, "w", "", 1, 2)), onPending(pending, minted("x"))))
		w.refuses("the wrong key", denied.WaitpointKey, "q", w.suspending(c.Fence, func(q *engine.Suspension) {
			p := pending
			p.Key = "q"
			q.Bindings = []engine.Binding{{Minted: p, Pending: true}}
		}))
		w.refuses("an id that was used", denied.WaitpointExists, "wp",
			w.suspending(c.Fence, waitFor(names(1, 1, "go"), m)))
		w.refuses("an unknown key", denied.KidNotCurrent, kid,
			w.suspending(c.Fence, waitFor(names(1, 1, "go"), mintedBy("k9", "wp"))))
		same(w, "still", w.closing(id), "resumed signal signal signal: go")
		w.release(c.Fence)
		again := k.one(id)
		same(w, "told", told(again.Resume), "signal: go")
		_, kept := again.Steps[engine.StepAwait+"it"]
		same(w, "a step yet", kept, false)
		w.suspend(again.Fence)
		w.resume(id)
		step, err := engine.DecodeResume(k.one(id).Steps[engine.StepAwait+"it"])
		w.no(err)
		w.all("a step", eq(told(&step), "signal: go"), eq(step.Name, "it"))
	}},
	{name: "no signal meets a condition that waits only for an operator or a timeout", run: func(w *env) {
		w.seed()
		for what, condition := range map[string]string{"operator": operatorOnly, "timeout": timeoutOnly} {
			_, c := w.holder()
			id := c.Fence.Execution
			w.suspend(c.Fence, waitFor(condition), within(time.Hour, "auto_resume"),
				because("waiting_for_operator_review"))
			same(w, what+" has waitpoints", len(w.record(id).Waitpoints), 0)
			w.resume(id)
			c = w.claims(id)
			w.all(what, eq(told(c.Resume), "operator:"), eq(c.Resume.By, "op"), eq(c.Resume.Reason, "told to"))
			w.complete(c.Fence, "")
		}
		s := w.sleeps(waitFor(names(1, 2, "", ""), minted("wp")))
		for _, name := range []string{"__operator_only__", "__timeout_only__", "__timeout", "__", ""} {
			w.refuses(name, flowfabric.ErrInvalidInput, "signal name",
				w.delivering(s.id, s.wp, suspend.SentSignal{Name: name}))
			w.refuses(name+" of an operator", flowfabric.ErrInvalidInput, "signal name", func() error {
				_, err := w.e.ApproveWaitpoint(w.ctx, s.id, s.wp.Key, suspend.SentSignal{Name: name, Source: "op"})
				return err
			})
		}
		w.signal(s.id, s.wp, "_one", waitwords.EffectAppended)
	}},
	{name: "an operator resumes a suspension once, and only the one that the request names", run: func(w *env) {
		w.seed()
		s := w.sleeps(waitFor(names(1, 2, "", ""), minted("wp")))
		w.signal(s.id, s.wp, "go", waitwords.EffectAppended)
		resuming := func(q engine.ResumeRequest) func() error {
			return func() error { _, err := w.e.ResumeExecution(trail.As(w.ctx, "op", ""), s.id, q); return err }
		}
		w.refuses("another suspension", denied.SuspensionChanged, w.record(s.id).ID.String(),
			resuming(engine.ResumeRequest{Suspension: mint.UUID()}))
		request := engine.ResumeRequest{Request: mint.UUID(), Suspension: w.record(s.id).ID}
		for _, again := range []bool{false, true} {
			already, err := w.e.ResumeExecution(trail.As(w.ctx, "op", ""), s.id, request)
			w.no(err)
			w.check()
			same(w, "already", already, again)
		}
		w.refuses("twice", denied.NotSuspended, "R1i", resuming(engine.ResumeRequest{}))
		same(w, "what came before did not resume it", told(w.claims(s.id).Resume), "operator:")
		w.refuses("while it runs", denied.NotSuspended, "A1", resuming(engine.ResumeRequest{}))
	}},
	{name: "nobody resumes a suspension or gives a waitpoint a new token without a name", run: func(w *env) {
		w.seed()
		s := w.sleeps(waitFor(names(1, 2, "", ""), minted("wp")))
		for what, ctx := range map[string]context.Context{"no note": w.ctx, "no name": trail.As(w.ctx, "", "why")} {
			w.refuses(what, flowfabric.ErrInvalidInput, "by: 1..64 bytes", func() error {
				_, err := w.e.ResumeExecution(ctx, s.id, engine.ResumeRequest{})
				return err
			})
			w.refuses(what, flowfabric.ErrInvalidInput, "by: 1..64 bytes", func() error {
				_, err := w.e.ReissueToken(ctx, s.id, anew(s.wp.Kid, s.wp))
				return err
			})
		}
		resume, reissue := wireResume(s.id, mint.UUID().String()), wireReissue(s.id, s.wp)
		named := func(name string) string { return proto + "\x1f1\x1f" + name + strings.Repeat("\x1f", 7) }
		resume[0], reissue[0] = named("a\tb"), named("a\tb")
		w.unchanged("a name in two parts", func() {
			same(w, "resume", w.fcall("ff_resume_execution", resume...).code, "invalid_input")
			same(w, "reissue", w.fcall("ff_reissue_token", reissue...).code, "invalid_input")
		})
		resume[0], reissue[0] = named("a b"), named("a b")
		w.must("ff_reissue_token", reissue...)
		w.must("ff_resume_execution", resume...)
		history, err := w.e.ReadHistory(w.ctx, s.id)
		w.no(err)
		var by []string
		for _, e := range history {
			if e.By != "" {
				by = append(by, e.Kind+" "+e.By)
			}
		}
		sameList(w, "who", by, "token_reissued a b", "resumed a b")
	}},
}

// repeats suspends, and makes the call again in a second form: it must be answered like the first and change nothing.
func (w *env) repeats(f flowfabric.Fence, q, again engine.Suspension) engine.Suspended {
	w.Helper()
	first, err := w.e.SuspendExecution(w.ctx, f, q)
	w.no(err)
	w.check()
	w.unchanged("the same again", func() {
		second, err := w.e.SuspendExecution(w.ctx, f, again)
		w.no(err)
		w.all("already", eq(first.Already, false), eq(second.Already, true))
		second.Already = false
		sameDeep(w, "answer", second, first)
	})
	return first
}
