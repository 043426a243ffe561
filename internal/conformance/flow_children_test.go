package conformance

import (
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// family is an execution that makes children, and its holder.
type family struct {
	*graph
	parent flowfabric.ExecutionID
	fence  flowfabric.Fence
}

// family is an execution that is held.
func (w *env) family(opts ...option) *family {
	w.Helper()
	id := w.create(opts...)
	k := w.worker("k")
	return &family{graph: &graph{env: w, id: flowfabric.FlowID(id), w: k}, parent: id, fence: k.one(id).Fence}
}

// wait waits for children of these names, or makes them.
func (f *family) wait(mode engine.WaitMode, park bool, names ...string) childtest.Waited {
	f.Helper()
	r, err := f.try(mode, park, names...)
	f.no(err)
	f.check()
	return r
}

func (f *family) try(mode engine.WaitMode, park bool, names ...string) (childtest.Waited, error) {
	q := engine.ChildWait{Name: "wait", Mode: mode}
	for _, name := range names {
		q.Children = append(q.Children, f.child(f.parent, "wait", name))
	}
	if !park {
		return childtest.Make(f.ctx, f.e, f.fence, q)
	}
	return childtest.Wait(f.ctx, f.e, f.fence, q)
}

// resumed claims the parent and returns the outcomes of its wait.
func (f *family) resumed(mode engine.WaitMode) string {
	f.Helper()
	c := f.w.claim(100)
	for _, c := range c {
		if c.Fence.Execution == f.parent {
			same(f.env, "claim", c.Type, flowfabric.AttemptResumed)
			f.fence = c.Fence
			return outcomes(f.wait(mode, true))
		}
	}
	f.Fatalf("the parent is not among %d claims", len(c))
	return ""
}

func outcomes(r childtest.Waited) string {
	got := map[string]string{}
	for _, o := range r.Outcomes {
		got[o.Node] = fmt.Sprint(o.Outcome, o.Attempt)
	}
	return fmt.Sprint(r.Satisfied, " ", r.Parked, " ", got)
}

// How an execution waits for children that it makes.
var flowChildrenScenarios = []scenario{
	{name: "a wait for children that have all ended keeps the lease", run: func(w *env) {
		f := w.family(timeout(time.Hour))
		made := f.wait(engine.WaitAll, false, "a", "b")
		w.all("made", eq(made.Parked, false), eq(made.Satisfied, false), eq(made.Already, false))
		w.unchanged("again", func() { f.wait(engine.WaitAll, false, "a", "b") })
		for _, c := range f.w.claim(10) {
			f.complete(c, c.Node)
		}
		same(w, "satisfied", outcomes(f.wait(engine.WaitAll, true, "a", "b")),
			"true false map[a:completed1 b:completed1]")
		w.code(f.parent, "A1")
		step := w.hash(w.k.Steps(ids.UUID(f.parent)))[engine.StepChildren+"wait"]
		kids, err := engine.DecodeChildren(w.p, []byte(step))
		w.no(err)
		same(w, "recorded", len(kids), 2)
		w.unchanged("asked again", func() {
			same(w, "satisfied", outcomes(f.wait(engine.WaitAll, true)), "true false map[a:completed1 b:completed1]")
		})
		w.no(w.complete(f.fence, "").Err)
		f.ends(flowfabric.FlowCompleted)
		nobody := w.family()
		w.refuses("no children", denied.Condition, "",
			func() error { _, err := nobody.try(engine.WaitAll, true); return err })
		_, err = w.e.DescribeFlow(w.ctx, nobody.id)
		w.is(err, denied.NoFlow)
	}},
	{name: "a wait for children ends with all, the first or the first success, by its mode", run: func(w *env) {
		for _, c := range []struct {
			mode  engine.WaitMode
			ends  string // how a, b, c end in turn, until the parent runs: + success, - failure
			wants string
		}{
			{engine.WaitAll, "+-+", "map[a:completed1 b:failed1 c:completed1]"},
			{engine.WaitAll, "---", "map[a:failed1 b:failed1 c:failed1]"},
			{engine.WaitFirst, "-", "map[a:failed1 b:0 c:0]"},
			{engine.WaitFirst, "+", "map[a:completed1 b:0 c:0]"},
			{engine.WaitFirstSuccess, "--+", "map[a:failed1 b:failed1 c:completed1]"},
			{engine.WaitFirstSuccess, "-+", "map[a:failed1 b:completed1 c:0]"},
			{engine.WaitFirstSuccess, "---", "map[a:failed1 b:failed1 c:failed1]"},
		} {
			w.reset()
			f := w.family()
			same(w, "parked", f.wait(c.mode, true, "a", "b", "c").Parked, true)
			w.code(f.parent, "S8")
			kids := f.claim()
			same(w, "children", len(kids), 3)
			for i, end := range c.ends {
				w.code(f.parent, "S8")
				kid := kids[nodeAt(i)]
				if end == '+' {
					f.complete(kid, "")
				} else {
					f.fail(kid)
				}
			}
			w.code(f.parent, "R1i")
			same(w, fmt.Sprintf("%v %v", c.mode, c.ends), f.resumed(c.mode), "true false "+c.wants)
			w.all("attempt", eq(f.fence.Attempt, 1), eq(w.read(f.parent).Attempts, 1))
		}
	}},
	{name: "children left from an earlier wait do not resume a later one", run: func(w *env) {
		f := w.family()
		f.wait(engine.WaitFirst, true, "a", "b")
		kids := f.claim()
		f.complete(kids["a"], "")
		f.resumed(engine.WaitFirst)
		q := engine.ChildWait{Name: "second", Mode: engine.WaitAll,
			Children: []engine.FlowMember{f.child(f.parent, "second", "c")}}
		r, err := childtest.Wait(w.ctx, w.e, f.fence, q)
		w.no(err)
		w.check()
		same(w, "parked", r.Parked, true)
		f.complete(kids["b"], "") // of the first wait: nobody waits for it any more
		w.code(f.parent, "S8")
		f.complete(f.claim()["c"], "")
		w.code(f.parent, "R1i")
		w.all("members", eq(f.header().Members, 4), eq(f.header().Edges, 3))
	}},
	{name: "a parent that ends while it waits cancels its children, unless told to leave them", run: func(w *env) {
		for name, end := range map[string]func(f *family){
			"cancelled": func(f *family) { w.cancel(f.parent) },
			"expired":   func(f *family) { w.advance(time.Minute); w.settleTime() },
		} {
			for _, leave := range []bool{false, true} {
				w.reset()
				f := w.family(deadline(time.Minute))
				q := engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Leave: leave}
				for _, child := range nodesOf("c", 3) {
					q.Children = append(q.Children, f.child(f.parent, "wait", child, delay(time.Hour)))
				}
				_, err := childtest.Wait(w.ctx, w.e, f.fence, q)
				w.no(err)
				w.check()
				w.cancel(f.parent.Child("wait", "c0"))
				end(f)
				f.drain()
				want := map[bool]flowfabric.PublicState{false: flowfabric.Cancelled, true: flowfabric.Delayed}[leave]
				f.are(want, "c1", "c2")
				if !leave {
					w.all(name, eq(f.reason("c1"), "parent_ended"),
						eq(f.header().Siblings, engine.SiblingCancels{Cancelled: 2}))
					f.ends(flowfabric.FlowFailed)
				} else {
					f.ends(flowfabric.FlowOpen)
				}
			}
		}
	}},
	{name: "a child that has ended keeps its outcome when its parent is cancelled", run: func(w *env) {
		f := w.family()
		f.wait(engine.WaitAll, true, "a", "b")
		f.complete(f.claim()["a"], "")
		w.cancel(f.parent)
		f.drain()
		f.are(flowfabric.Completed, "a")
		f.are(flowfabric.Cancelled, "b")
		decided := w.family() // one that waits no more takes nobody along
		decided.wait(engine.WaitFirst, true, "a", "b")
		decided.complete(decided.claim()["a"], "")
		w.cancel(decided.parent)
		decided.drain()
		decided.are(flowfabric.Active, "b")
	}},
	{name: "a parent's attempt timeout stops while it waits for children, its deadline does not", run: func(w *env) {
		f := w.family(timeout(10*time.Second), deadline(10*time.Minute))
		w.advance(4 * time.Second)
		f.wait(engine.WaitAll, true, "a")
		w.advance(ttl)
		w.settleTime()
		w.code(f.parent, "S8")
		f.w = w.worker("later")
		f.complete(f.claim()["a"], "")
		c := f.claim()["root"]
		same(w, "left", c.TimeLeft > 5*time.Second && c.TimeLeft <= 6*time.Second, true)
		same(w, "shown", w.kinds(f.parent), "created claimed suspended resumed claimed")
		late := w.family(deadline(time.Second))
		late.wait(engine.WaitAll, true, "a")
		w.advance(time.Second)
		w.settleTime()
		s := w.code(late.parent, "T4")
		same(w, "attempt", s.AttemptLog[0].Category, "execution_deadline")
	}},
	{name: "members of a growing flow can add children, and the flow ends when none is left", run: func(w *env) {
		g := w.flow().node("a", nil).node("last", []string{"a"}).submit(engine.SealGrowing)
		a := g.claim()["a"]
		q := engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
			Children: []engine.FlowMember{w.child(a.Fence.Execution, "wait", "kid")}}
		_, err := childtest.Wait(w.ctx, w.e, a.Fence, q)
		w.no(err)
		w.check()
		kid := g.claim()["kid"]
		same(w, "flow", kid.Flow, g.id)
		inner := engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
			Children: []engine.FlowMember{w.child(kid.Fence.Execution, "wait", "grandkid")}}
		_, err = childtest.Wait(w.ctx, w.e, kid.Fence, inner)
		w.no(err)
		w.check()
		g.complete(g.claim()["grandkid"], "")
		g.complete(g.claim()["kid"], "")
		g.complete(g.claim()["a"], "")
		g.ends(flowfabric.FlowOpen)
		g.complete(g.claim()["last"], "")
		g.ends(flowfabric.FlowCompleted)
		h := g.header()
		w.all("header", eq(h.Members, 4), eq(h.Edges, 3), eq(h.Count[flowfabric.Completed], 4), eq(h.Seal, "grow"))
	}},
	{name: "a wait for children that cannot be, or beyond its limits, is refused", run: func(w *env) {
		g := w.flow().node("a", nil).submit(engine.SealClosed)
		sealed := &family{graph: g, parent: g.id.Member("a"), fence: g.claim()["a"].Fence}
		w.refuses("sealed", denied.FlowSealed, "",
			func() error { _, err := sealed.try(engine.WaitAll, true, "x"); return err })
		done := w.flow().node("a", nil).submit(engine.SealGrowing)
		cancelled := &family{graph: done, parent: done.id.Member("a"), fence: done.claim()["a"].Fence}
		done.abort(flowfabric.CancelPending)
		w.refuses("cancelled", denied.FlowCancelled, "",
			func() error { _, err := cancelled.try(engine.WaitAll, true, "x"); return err })

		f := w.family()
		stale := f.fence
		stale.Epoch--
		w.unchanged("a stale fence", func() {
			_, err := childtest.Wait(w.ctx, w.e, stale, engine.ChildWait{Name: "wait", Mode: engine.WaitAll})
			w.is(err, denied.StaleLease)
		})
		foreign := f.child(f.parent, "wait", "x", func(x *engine.NewExecution) { x.Namespace = "other" })
		w.unchanged("another namespace", func() {
			_, err := childtest.Wait(w.ctx, w.e, f.fence,
				engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Children: []engine.FlowMember{foreign}})
			w.is(err, denied.Namespace)
		})
		w.quiet = true
		for first := 0; first < 1000; first += 100 {
			q := engine.ChildWait{Name: "many", Mode: engine.WaitAll}
			for i := range 100 {
				q.Children = append(q.Children, f.child(f.parent, "many", fmt.Sprint("c", first+i), delay(time.Hour)))
			}
			_, err := childtest.Make(w.ctx, w.e, f.fence, q)
			w.no(err)
		}
		w.quiet = false
		one := engine.ChildWait{Name: "many", Mode: engine.WaitAll,
			Children: []engine.FlowMember{f.child(f.parent, "many", "more")}}
		w.refuses("1,001 children", denied.FanIn, "1000",
			func() error { _, err := childtest.Wait(w.ctx, w.e, f.fence, one); return err })
		w.quiet = true
		for free, want := range []error{denied.StepLimit, nil} { // 7 bytes of the name, and 120 of an outcome
			large := w.family()
			w.editRecord(ids.UUID(large.parent), func(f fields) { f["sb"] = strconv.Itoa(8388608 - 126 - free) })
			_, err := large.try(engine.WaitAll, true, "x")
			w.is(err, want)
		}
		full := w.family()
		for i := range 1000 {
			_, err := w.e.RecordStep(w.ctx, full.fence, fmt.Sprint("s", i), nil, 0)
			w.no(err)
		}
		w.quiet = false
		w.refuses("no room for what it learns", denied.StepLimit, "",
			func() error { _, err := full.try(engine.WaitAll, true, "x"); return err })
	}},
	{name: "a wait refuses members of another flow, or of none, as children", run: func(w *env) {
		f, other := w.family(), w.family()
		other.wait(engine.WaitAll, false, "theirs")
		theirs := f.child(f.parent, "wait", "theirs")
		theirs.ID = other.parent.Child("wait", "theirs")
		w.unchanged("another flow's", func() {
			_, err := childtest.Wait(w.ctx, w.e, f.fence,
				engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Children: []engine.FlowMember{theirs}})
			w.is(err, denied.OtherFlow)
		})
		lone := f.child(f.parent, "wait", "lone")
		lone.ID = w.create()
		w.unchanged("in no flow", func() {
			_, err := childtest.Wait(w.ctx, w.e, f.fence,
				engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Children: []engine.FlowMember{lone}})
			w.is(err, denied.Idempotency)
		})
	}},
	{name: "a reclaimed parent creates its children only once", run: func(w *env) {
		f := w.family(reclaims(3))
		f.wait(engine.WaitAll, false, "a", "b")
		w.advance(ttl)
		w.settleTime()
		f.w = w.worker("other")
		for _, c := range f.w.claim(10) {
			if c.Fence.Execution == f.parent {
				f.fence = c.Fence
			} else {
				f.complete(c, "")
			}
		}
		same(w, "attempt", f.fence.Attempt, uint32(2))
		same(w, "outcomes", outcomes(f.wait(engine.WaitAll, true, "a", "b")),
			"true false map[a:completed1 b:completed1]")
		same(w, "members", f.header().Members, 3)
	}},
}

func nodeAt(i int) string { return string(rune('a' + i)) }
