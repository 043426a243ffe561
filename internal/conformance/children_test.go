package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// of waits for children, as changed, under the name wait; those that are named are made.
func (f *family) of(change func(*engine.ChildWait), names ...string) childtest.Waited {
	f.Helper()
	return f.by(childtest.Wait, change, names...)
}

// make makes children for that wait.
func (f *family) make(change func(*engine.ChildWait), names ...string) childtest.Waited {
	f.Helper()
	return f.by(childtest.Make, change, names...)
}

func (f *family) by(do func(context.Context, *engine.Engine, flowfabric.Fence, engine.ChildWait) (childtest.Waited,
	error), change func(*engine.ChildWait), names ...string) childtest.Waited {
	f.Helper()
	q := engine.ChildWait{Name: "wait", Mode: engine.WaitAll}
	change(&q)
	for _, name := range names {
		q.Children = append(q.Children, f.child(f.parent, "wait", name))
	}
	r, err := do(f.ctx, f.e, f.fence, q)
	f.no(err)
	f.check()
	f.age()
	return r
}

// until makes children and suspends the parent until enough of them have ended or something else happens.
func (f *family) until(change func(*engine.ChildWait), opts []suspending,
	names ...string) (engine.Suspension, engine.Suspended) {
	f.Helper()
	f.make(change, names...)
	q := suspension(append([]suspending{waitFor("K"), because("waiting_for_children"), awaiting("wait")}, opts...)...)
	s, err := f.e.SuspendExecution(f.ctx, f.fence, q)
	f.no(err)
	f.check()
	return q, s
}

// over claims the parent and tells what ended its wait, and how the children were then.
func (f *family) over() string {
	f.Helper()
	for _, c := range f.w.claim(100) {
		if c.Fence.Execution == f.parent {
			same(f.env, "claim", c.Type, flowfabric.AttemptResumed)
			f.fence = c.Fence
			cause := "nothing"
			if c.Resume != nil {
				cause = fmt.Sprint(c.Resume.Name, " ", c.Resume.Cause)
			}
			kids, err := engine.DecodeChildren(f.p, c.Steps[engine.StepChildren+"wait"])
			f.no(err)
			got := map[string]flowfabric.PublicState{}
			for _, o := range kids {
				got[o.Node] = o.Outcome
			}
			return fmt.Sprint(cause, " ", got)
		}
	}
	f.Fatal("the parent cannot be claimed")
	return ""
}

// held claims the parent.
func (f *family) held() engine.Claim {
	f.Helper()
	for _, c := range f.w.claim(100) {
		if c.Fence.Execution == f.parent {
			f.fence = c.Fence
			return c
		}
	}
	f.Fatal("the parent cannot be claimed")
	return engine.Claim{}
}

// replayed fails the parent for good and replays it with its steps.
func (f *family) replayed() {
	f.Helper()
	f.fail(engine.Claim{Fence: f.fence})
	f.drain()
	f.replay(f.parent, engine.Replay{})
}

func failFast(q *engine.ChildWait)  { q.Mode = engine.WaitFailFast }
func firstOf(q *engine.ChildWait)   { q.Mode, q.CancelRemaining = engine.WaitFirst, true }
func allOrNone(q *engine.ChildWait) { q.CancelRemaining = true }
func allOf(*engine.ChildWait)       {}

// orSignal waits for children or for a signal on one waitpoint.
func orSignal(m engine.Minted) suspending {
	return waitFor(conditionOf(names(1, 1, ""), "K", group(1, 1, 2)), m)
}

// Richer ends of waits for children: fail-fast, what becomes of the rest, limits, and other things that end them.
var childrenScenarios = []scenario{
	{name: "a fail-fast wait for children is over when one did not succeed, or all have", run: func(w *env) {
		for ends, wants := range map[string]string{
			"+-":  "map[a:completed b:failed c:]",
			"-":   "map[a:failed b: c:]",
			"x":   "map[a:cancelled b: c:]",
			"+++": "map[a:completed b:completed c:completed]",
		} {
			w.reset()
			f := w.family()
			f.of(failFast, "a", "b", "c")
			kids := f.claim()
			for i, end := range ends {
				w.code(f.parent, "S8")
				switch kid := kids[nodeAt(i)]; end {
				case '+':
					f.complete(kid, "")
				case '-':
					f.fail(kid)
				default:
					w.cancel(kid.Fence.Execution)
				}
			}
			same(w, ends, f.over(), "wait children "+wants)
			for name := range kids {
				if i := strings.Index("abc", name); i >= len(ends) {
					f.are(flowfabric.Active, name)
				}
			}
		}
		early := w.family() // it has failed before the parent waits
		early.make(failFast, "a", "b")
		early.fail(early.claim()["a"])
		same(w, "at once", outcomes(early.of(failFast)), "true false map[a:failed1 b:0]")
	}},
	{name: "the children that a wait does not need are cancelled when it is over, whatever ended it",
		run: func(w *env) {
			for what, end := range map[string]func(f *family, kids map[string]engine.Claim){
				"the first end": func(f *family, kids map[string]engine.Claim) { f.complete(kids["a"], "") },
				"a limit": func(f *family, kids map[string]engine.Claim) {
					w.advance(3 * time.Second)
					w.settleTime()
				},
				"an operator": func(f *family, kids map[string]engine.Claim) { w.resume(f.parent) },
			} {
				w.reset()
				f := w.family()
				f.until(firstOf, []suspending{within(3*time.Second, "auto_resume")}, "a", "b", "c")
				w.code(f.parent, "S8")
				kids := f.claim()
				end(f, kids)
				f.drain()
				if what == "the first end" {
					f.are(flowfabric.Cancelled, "b", "c")
					f.are(flowfabric.Completed, "a")
				} else {
					f.are(flowfabric.Cancelled, "a", "b", "c")
				}
				same(w, what, f.reason("b"), "wait_over")
			}
			w.reset()
			plain := w.family()
			plain.of(firstOf, "a", "b")
			plain.complete(plain.claim()["b"], "")
			plain.drain()
			plain.are(flowfabric.Cancelled, "a")
			same(w, "what the handler is told", plain.over(), "wait children map[a: b:completed]")
			atOnce := w.family()
			atOnce.make(firstOf, "a", "b")
			atOnce.complete(atOnce.claim()["a"], "")
			same(w, "at once", outcomes(atOnce.of(firstOf)), "true false map[a:completed1 b:0]")
			atOnce.are(flowfabric.Cancelled, "b")
		}},
	{name: "of two hundred children that a wait does not need, those that others depend on are cancelled, too",
		run: func(w *env) {
			f := w.family()
			first := engine.ChildWait{Name: "wait", Mode: engine.WaitFirst, CancelRemaining: true}
			for i := range 200 {
				kid := f.child(f.parent, "wait", fmt.Sprintf("c%03d", i))
				if i > 0 && i%2 == 1 {
					kid.Edges = []engine.FlowEdge{{From: f.parent.Child("wait", fmt.Sprintf("c%03d", i-1))}}
				}
				first.Children = append(first.Children, kid)
			}
			for _, batch := range engine.Batches(first.Children) {
				q := first
				q.Children = batch
				_, err := childtest.Make(w.ctx, w.e, f.fence, q)
				w.no(err)
			}
			first.Children = nil
			_, err := childtest.Wait(w.ctx, w.e, f.fence, first)
			w.no(err)
			f.check()
			kids := f.claim()
			f.complete(kids["c000"], "")
			w.code(f.parent, "R1i")
			// the parent goes on and waits for others while the backlog still cancels
			f.over()
			q := engine.ChildWait{Name: "second", Mode: engine.WaitAll,
				Children: []engine.FlowMember{f.child(f.parent, "second", "other")}}
			_, err = childtest.Wait(w.ctx, w.e, f.fence, q)
			w.no(err)
			f.drain()
			f.check()
			for i := 1; i < 200; i++ {
				f.are(flowfabric.Cancelled, fmt.Sprintf("c%03d", i))
			}
			f.are(flowfabric.Waiting, "other")
			w.code(f.parent, "S8")
		}},
	{name: "limits of seventy waits for children that pass at once cancel their children, and not those of the next waits", run: func(w *env) {
		var all []*family
		for range 70 {
			all = append(all, w.family())
		}
		for _, f := range all {
			f.until(allOrNone, []suspending{within(3*time.Second, "auto_resume")}, "first")
		}
		w.advance(3 * time.Second)
		k := w.worker("goes on")
		for parked := 0; parked < len(all); { // the backlog is not worked off meanwhile
			_, err := w.e.Tick(w.ctx, w.p, "ticker", false)
			w.no(err)
			for _, c := range k.claim(100) {
				q := engine.ChildWait{Name: "second", Mode: engine.WaitAll,
					Children: []engine.FlowMember{all[0].child(c.Fence.Execution, "second", "second")}}
				if c.Node == "root" {
					_, err := childtest.Wait(w.ctx, w.e, c.Fence, q)
					w.no(err)
					parked++
				}
			}
			w.check()
		}
		all[0].drain()
		for _, f := range all {
			f.are(flowfabric.Cancelled, "first")
			same(w, "second", f.shown("second").State.Public == flowfabric.Cancelled, false)
		}
	}},
	{name: "a child that is spared after its parent began another wait stays out of that one", run: func(w *env) {
		g := w.flow().node("p", nil).submit(engine.SealOpen)
		f := &family{graph: g, parent: g.id.Member("p"), fence: g.claim()["p"].Fence}
		for first := 0; first < 200; first += 100 {
			f.make(firstOf, nodesOf("c", 200)[first:first+100]...)
		}
		need := f.child(f.parent, "none", "need")
		need.Edges = []engine.FlowEdge{{From: f.parent.Child("wait", "c1")}}
		_, err := w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{need})
		w.no(err)
		f.of(firstOf)
		f.complete(f.claim()["c0"], "")
		f.fence = f.held().Fence
		_, err = childtest.Wait(w.ctx, w.e, f.fence, engine.ChildWait{Name: "second", Mode: engine.WaitAll,
			Children: []engine.FlowMember{f.child(f.parent, "second", "other")}})
		w.no(err)
		f.drain()
		f.check()
		f.are(flowfabric.Cancelled, nodesOf("c", 200)[2:]...)
		same(w, "listed", len(w.hash(w.k.Children(ids.UUID(f.parent)))), 2)
		f.complete(f.claim()["other"], "")
		w.code(f.parent, "R1i")
	}},
	{name: "a child that an undecided node of the flow needs is spared", run: func(w *env) {
		f := w.family()
		f.make(firstOf, "a", "b", "c")
		need := f.child(f.parent, "wait", "after")
		need.Edges = []engine.FlowEdge{{From: f.parent.Child("wait", "b")}}
		need.ID = mint.ID(w.p)
		kids := f.claim()
		same(w, "a member stages it", len(kids), 3)
		q := engine.ChildWait{Name: "own", Mode: engine.WaitAll, Children: []engine.FlowMember{need}}
		_, err := childtest.Wait(w.ctx, w.e, kids["c"].Fence, q)
		w.no(err)
		f.of(firstOf)
		f.complete(kids["a"], "")
		f.drain()
		f.are(flowfabric.Active, "b")
		f.are(flowfabric.Cancelled, "c")
		same(w, "spared", f.header().Siblings.Spared >= 1, true)
	}},
	{name: "a time limit of a wait for children does what it says, and tells how each child was then",
		run: func(w *env) {
			for behaviour, want := range map[string]codes.Code{
				"fail": "T2", "cancel": "T3", "expire": "T4", "auto_resume": "R1i",
				"auto_resume_with_timeout_signal": "R1i", "escalate": "S5",
			} {
				for _, leave := range []bool{false, true} {
					w.reset()
					f := w.family()
					f.until(func(q *engine.ChildWait) { q.Leave = leave },
						[]suspending{within(3*time.Second, behaviour)}, "a", "b")
					kids := f.claim()
					f.complete(kids["a"], "")
					w.advance(2 * time.Second)
					w.settleTime()
					w.code(f.parent, "S8")
					w.advance(time.Second)
					w.settleTime()
					w.code(f.parent, want)
					f.drain()
					b := flowfabric.Active
					if want[0] == 'T' && !leave {
						b = flowfabric.Cancelled
					}
					f.are(b, "b")
					switch want {
					case "R1i":
						same(w, behaviour, f.over(), "wait timeout map[a:completed b:]")
					case "S5": // it goes on waiting
						f.complete(kids["b"], "")
						same(w, behaviour, f.over(), "wait children map[a:completed b:completed]")
					}
				}
			}
		}},
	{name: "a handler waits for children or a signal, whichever comes first", run: func(w *env) {
		w.seed()
		stop := minted("stop")
		f := w.family()
		f.until(allOf, []suspending{orSignal(stop)}, "a", "b")
		kids := f.claim()
		f.complete(kids["a"], "")
		w.code(f.parent, "S8")
		w.signal(f.parent, stop, "now", "resume_condition_satisfied")
		same(w, "a signal", f.over(), "wait signal map[a:completed b:]")
		f.are(flowfabric.Active, "b")
		f.complete(kids["b"], "") // which nobody waits for any more
		w.code(f.parent, "A1")

		both := w.family()
		late := minted("stop")
		both.until(allOf, []suspending{orSignal(late)}, "a")
		both.complete(both.claim()["a"], "")
		w.code(both.parent, "R1i")
		_, err := w.deliver(both.parent, late, suspend.SentSignal{Name: "late"})
		w.is(err, flowfabric.ErrWaitpointClosed)
		same(w, "the children", both.over(), "wait children map[a:completed]")

		all := w.family() // both are needed
		m := minted("go")
		all.until(allOf, []suspending{waitFor(conditionOf(names(1, 1, ""), "K", group(2, 1, 2)), m)}, "a")
		all.complete(all.claim()["a"], "")
		w.code(all.parent, "S8")
		w.signal(all.parent, m, "now", "resume_condition_satisfied")
		same(w, "both", all.over(), "wait signal map[a:completed]")

		turned := w.family()
		n := minted("go")
		turned.until(allOf, []suspending{waitFor(conditionOf(names(1, 1, ""), "K", group(2, 1, 2)), n)}, "a")
		w.signal(turned.parent, n, "now", "appended_to_waitpoint")
		turned.complete(turned.claim()["a"], "")
		same(w, "both, the signal first", turned.over(), "wait children map[a:completed]")
	}},
	{name: "a wait for children that is over before it begins keeps the lease and records the outcomes",
		run: func(w *env) {
			f := w.family()
			f.make(firstOf, "a", "b")
			f.complete(f.claim()["a"], "")
			_, s := f.until(firstOf, nil)
			w.all("satisfied", eq(s.Satisfied, true), eq(s.Resume.Cause, "already_satisfied"))
			w.code(f.parent, "A1")
			f.are(flowfabric.Cancelled, "b")
			same(w, "recorded", outcomes(f.of(firstOf)), "true false map[a:completed1 b:0]")
		}},
	{name: "messages and children end a wait together with other conditions", run: func(w *env) {
		w.seed()
		orMail := waitFor(conditionOf(spelled("M", "user"), "K", group(1, 1, 2)))
		f := w.family()
		f.until(allOf, []suspending{orMail}, "a")
		w.mail(f.parent, "other", "x")
		w.code(f.parent, "S8")
		w.mail(f.parent, "user", "stop")
		same(w, "a message", f.over(), "wait message map[a:]")
		same(w, "it is there", w.take(f.fence, "user·1", "user", 1, ""), "2 user stop")

		k, c := w.holder() // a message or a signal, without children
		m := minted("wp")
		w.suspend(c.Fence, waitFor(conditionOf(spelled("M", "user"), names(1, 1, ""), group(1, 1, 2)), m))
		w.mail(c.Fence.Execution, "user", "1")
		w.code(c.Fence.Execution, "R1i")
		c = k.one(c.Fence.Execution)
		same(w, "cause", c.Resume.Cause, "message")
		m = minted("wp2") // the message is still there
		s, err := w.e.SuspendExecution(w.ctx, c.Fence,
			suspension(waitFor(conditionOf(spelled("M", "user"), names(1, 1, ""), group(1, 1, 2)), m)))
		w.no(err)
		w.all("at once", eq(s.Satisfied, true), eq(s.Resume.Cause, "already_satisfied"))
		w.check()
		m = minted("wp3") // a message and a signal, in both orders
		w.suspend(c.Fence, waitFor(conditionOf(spelled("M", "user"), names(1, 1, ""), group(2, 1, 2)), m))
		w.signal(c.Fence.Execution, m, "x", "resume_condition_satisfied")
		c = k.one(c.Fence.Execution)
		same(w, "taken", w.take(c.Fence, "user·1", "user", 1, ""), "1 user 1")
		m = minted("wp4")
		w.suspend(c.Fence, waitFor(conditionOf(spelled("M", "user"), names(1, 1, ""), group(2, 1, 2)), m))
		w.signal(c.Fence.Execution, m, "x", "appended_to_waitpoint")
		w.mail(c.Fence.Execution, "user", "2")
		w.code(c.Fence.Execution, "R1i")
	}},
	{name: "a wait for children as a part of a condition needs children of its name", run: func(w *env) {
		f, over := w.family(), w.family()
		refused := func(name string, opts ...suspending) {
			w.unchanged(name, func() {
				_, err := w.e.SuspendExecution(w.ctx, f.fence,
					suspension(append([]suspending{waitFor("K"), awaiting(name)}, opts...)...))
				w.is(err, denied.Condition)
			})
		}
		refused("wait")
		f.make(func(*engine.ChildWait) {}, "a")
		refused("other")
		refused("wait", waitFor(spelled("K", "x")))
		refused("wait", waitFor(conditionOf("K", "O", group(1, 1, 2))))
		refused("wait", waitFor(conditionOf(spelled("M", ""), "K", group(1, 1, 2))))
		over.make(failFast, "a")
		w.cancel(over.parent.Child("wait", "a"))
		same(w, "over", over.of(failFast).Satisfied, true)
		_, err := w.e.SuspendExecution(w.ctx, over.fence, suspension(waitFor("K"), awaiting("wait")))
		w.is(err, denied.Condition)
		f.until(allOf, nil)
		_, err = w.e.SuspendExecution(w.ctx, f.fence,
			suspension(waitFor("K"), awaiting("wait"), func(q *engine.Suspension) { q.ID = mint.UUID() }))
		w.is(err, denied.NotActive)
	}},
	{name: "a suspended parent that ends takes its children along, and a cancelled flow ends both", run: func(w *env) {
		for _, leave := range []bool{false, true} {
			w.reset()
			f := w.family()
			f.until(func(q *engine.ChildWait) { q.Leave = leave }, nil, "a")
			w.cancel(f.parent)
			f.drain()
			f.are(map[bool]flowfabric.PublicState{false: flowfabric.Cancelled, true: flowfabric.Waiting}[leave], "a")
		}
		w.reset()
		f := w.family()
		f.until(allOf, nil, "a")
		f.abort(flowfabric.CancelAll)
		f.are(flowfabric.Cancelled, "a")
		w.code(f.parent, "T3")
	}},
	{name: "children that a parent leaves to run do so, although its wait is decided after its end", run: func(w *env) {
		f := w.family()
		f.of(func(q *engine.ChildWait) { q.Mode, q.CancelRemaining, q.Leave = engine.WaitFailFast, true, true }, "a",
			"b")
		kids := f.claim()
		w.cancel(f.parent)
		f.drain()
		f.fail(kids["a"]) // decides the wait of a parent that is over
		f.drain()
		f.check()
		f.are(flowfabric.Active, "b")
		f.complete(kids["b"], "")
	}},
	{name: "a replay asks again for children that did not succeed, and forgets what ended that wait",
		run: func(w *env) {
			w.seed()
			f := w.family()
			m := minted("stop")
			f.until(allOf, []suspending{orSignal(m)}, "a", "b")
			f.complete(f.claim()["a"], "")
			w.signal(f.parent, m, "now", "resume_condition_satisfied")
			f.over()
			f.replayed()
			c := f.held()
			w.all("kept", eq(len(c.Steps), 0), eq(c.Resume == nil, true))

			good := w.family() // all succeeded: that is kept
			good.until(allOf, nil, "a")
			good.complete(good.claim()["a"], "")
			good.over()
			good.replayed()
			same(w, "kept", len(good.held().Steps) > 0, true)
		}},
	{name: "two waits for children in a row are told apart, and each is kept as a step", run: func(w *env) {
		f := w.family()
		f.until(allOf, nil, "a")
		f.complete(f.claim()["a"], "")
		same(w, "first", f.over(), "wait children map[a:completed]")
		_, err := childtest.Make(w.ctx, w.e, f.fence, engine.ChildWait{Name: "second", Mode: engine.WaitAll,
			Children: []engine.FlowMember{f.child(f.parent, "second", "b")}})
		w.no(err)
		q := suspension(waitFor("K"), because("waiting_for_children"), awaiting("second"))
		_, err = w.e.SuspendExecution(w.ctx, f.fence, q)
		w.no(err)
		f.check()
		f.complete(f.claim()["b"], "")
		c := f.held()
		w.all("kept", eq(c.Resume.Name, "second"), eq(len(c.Steps[engine.StepAwait+"wait"]) > 0, true),
			eq(len(c.Steps[engine.StepChildren+"second"]) > 0, true))
	}},
	{name: "the read of a suspension tells who made an execution, up to the one that nobody made", run: func(w *env) {
		f := w.family()
		line := func(id flowfabric.ExecutionID) string {
			r, err := w.e.ReadSuspension(w.ctx, id)
			w.no(err)
			return fmt.Sprint(r.Root, " ", strings.Join(r.Path, "/"))
		}
		nobody := fmt.Sprint(flowfabric.ExecutionID{}, " ")
		same(w, "alone", line(f.parent), nobody)
		f.until(allOf, nil, nodesOf("a", 20)...)
		a := f.parent.Child("wait", "a7")
		held := f.claim()["a7"]
		var below []engine.FlowMember
		for _, name := range nodesOf("b", 20) { // all but the first depend on that one
			b := f.child(a, "deep", name)
			if len(below) > 0 {
				b.Edges = []engine.FlowEdge{{From: below[0].ID}}
			}
			below = append(below, b)
		}
		_, err := childtest.Wait(w.ctx, w.e, held.Fence, engine.ChildWait{Name: "deep", Mode: engine.WaitAll,
			Children: below})
		w.no(err)
		for i, b := range below[:2] {
			same(w, "below", line(b.ID), fmt.Sprint(f.parent, " a7/b", i))
		}
		w.all("above", eq(line(a), fmt.Sprint(f.parent, " a7")), eq(line(f.parent), nobody))
	}},
	{name: "children that nobody cancelled, and a wait whose end was lost, are found by an audit", run: func(w *env) {
		w.quiet = true
		f := w.family()
		f.until(allOf, nil, "a", "b")
		w.editRecord(ids.UUID(f.parent), func(f fields) { f["wt"] = "all 2 1 1 run p cancel" }) // it counts wrong
		same(w, "counted", strings.HasPrefix(found(w.audit(true)), "flag x "), true)
		a, b := f.parent.Child("wait", "a"), f.parent.Child("wait", "b")
		w.set("HSET", w.k.Children(ids.UUID(f.parent)), ids.UUID(a).String(), "f,0,a", ids.UUID(b).String(), "f,0,b")
		same(w, "over", strings.HasPrefix(found(w.audit(true)), "phantom blocked "), true)
		w.code(f.parent, "R1i")

		w.reset()
		g := w.family()
		g.of(firstOf, nodesOf("c", 100)...)
		g.complete(g.claim()["c0"], "")
		w.set("DEL", w.k.Backlog(), w.k.Work())
		w.set("HDEL", w.k.Flow(ids.UUID(g.parent)), "bl")
		same(w, "forgotten", strings.Contains(found(w.audit(true)), "missing work o:"), true)
		g.drain()
		g.are(flowfabric.Cancelled, nodesOf("c", 100)[1:]...)
		w.quiet = false
		w.check()
	}},
}
