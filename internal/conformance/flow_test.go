package conformance

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

var flowScenarios = []scenario{
	{name: "in a diamond, the join runs once, after both branches", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).node("c", []string{"a"}).node("d",
			[]string{"b", "c"}).submit(engine.SealClosed)
		c := g.claim()
		same(w, "claimed", len(c), 1)
		g.are(flowfabric.WaitingChildren, "b", "c", "d")
		g.complete(c["a"], "1")
		c = g.claim()
		same(w, "claimed", len(c), 2)
		same(w, "input", string(c["b"].Inputs["from-a"]), "1")
		g.complete(c["b"], "2")
		same(w, "claimed", len(g.claim()), 0)
		g.complete(c["c"], "")
		c = g.claim()
		same(w, "inputs", fmt.Sprintf("%q", c["d"].Inputs), `map["from-b":"2" "from-c":""]`)
		g.ends(flowfabric.FlowOpen)
		g.complete(c["d"], "")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "a failure at the head of a chain of 200 skips all the others", run: func(w *env) {
		g := w.flow().node("n0", nil)
		for i := 1; i < 200; i++ {
			g.node(fmt.Sprint("n", i), []string{fmt.Sprint("n", i-1)})
		}
		g.submit(engine.SealClosed)
		g.fail(g.claim()["n0"])
		for range 10 {
			g.tick()
		}
		g.are(flowfabric.Skipped, "n1", "n100", "n199")
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "the first success of any-of-100 cancels the other 99", run: func(w *env) {
		g, all := w.flow(), []string{}
		for i := range 100 {
			all = append(all, fmt.Sprint("r", i))
			g.node(all[i], nil)
		}
		g.node("end", all, anyOf, cancelRest).submit(engine.SealClosed)
		c := g.claim()
		same(w, "claimed", len(c), 100)
		g.complete(c["r7"], "seven")
		g.drain()
		g.are(flowfabric.Cancelled, "r0", "r99")
		end := g.claim()["end"]
		same(w, "inputs", fmt.Sprintf("%q", end.Inputs), `map["from-r7":"seven"]`)
		g.complete(end, "")
		g.ends(flowfabric.FlowCompleted)
		record, err := w.e.DescribeFlow(w.ctx, g.id)
		w.no(err)
		same(w, "dispositions", record.Siblings, engine.SiblingCancels{Cancelled: 99})
	}},
	{name: "60 members with 2,000 edges complete in one call, and all 40 joins run", run: func(w *env) {
		g, all := w.flow(), []string{}
		for i := range 60 {
			all = append(all, fmt.Sprint("r", i))
			g.node(all[i], nil)
		}
		for i := range 40 {
			g.node(fmt.Sprint("j", i), all[:50])
		}
		g.submit(engine.SealClosed)
		c := g.claim()
		same(w, "claimed", len(c), 60)
		var done []engine.Completion
		for _, n := range all {
			done = append(done, engine.Completion{Fence: c[n].Fence, Result: []byte(n)})
		}
		_, _, err := w.e.CompleteExecutions(w.ctx, w.p, done, nil)
		w.no(err)
		for more := true; more; {
			more, err = w.e.DrainFlows(w.ctx, w.p)
			w.no(err)
		}
		w.check()
		c = g.claim()
		same(w, "joins", len(c), 40)
		for i := range 40 { // more inputs than a claim brings along are read beside it
			same(w, "inputs", len(c[fmt.Sprint("j", i)].Inputs), 50)
			same(w, "input", string(c[fmt.Sprint("j", i)].Inputs["from-r49"]), "r49")
		}
	}},
	{name: "a decided race spares members that others still wait for and cancels the rest", run: func(w *env) {
		g, all := w.flow(), []string{}
		for i := range 40 {
			all = append(all, fmt.Sprint("r", i))
			g.node(all[i], nil)
		}
		g.node("end", all, anyOf, cancelRest)
		for i := range 20 { // ten of them are waited for, ten lead to one that has had enough
			g.node(fmt.Sprint("d", i), []string{all[i], all[i+20]}, func(m *engine.FlowMember) {
				if i >= 10 {
					m.Policy = codes.AnyOf
				}
			})
		}
		g.submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["r39"], "")
		g.drain()
		g.are(flowfabric.Active, "r0", "r20", "r9", "r29")
		g.are(flowfabric.Active, "r10", "r30", "r18")
		g.are(flowfabric.Cancelled, "r19")
		record, err := w.e.DescribeFlow(w.ctx, g.id)
		w.no(err)
		same(w, "dispositions", record.Siblings, engine.SiblingCancels{Cancelled: 1, Spared: 38})
	}},
	{name: "one call replays 41 members with 3,200 edges", run: func(w *env) {
		g, all, ends := w.flow(), []string{}, []flowfabric.ExecutionID{}
		for i := range 80 {
			all = append(all, fmt.Sprint("r", i))
			g.node(all[i], nil)
		}
		for i := range 40 {
			g.node(fmt.Sprint("j", i), all)
			ends = append(ends, g.id.Member(fmt.Sprint("j", i)))
		}
		g.submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["r0"])
		g.drain()
		var rest []engine.Completion
		for _, n := range all[1:] {
			rest = append(rest, engine.Completion{Fence: c[n].Fence})
		}
		_, _, err := w.e.CompleteExecutions(w.ctx, w.p, rest, nil)
		w.no(err)
		for more := true; more; {
			more, err = w.e.DrainFlows(w.ctx, w.p)
			w.no(err)
		}
		w.check()
		g.ends(flowfabric.FlowFailed)
		out, err := w.e.ReplayFlow(w.ctx, g.id, engine.Replay{}, append(ends, g.id.Member("r0")))
		w.no(err)
		w.check()
		same(w, "answers", len(out), 41)
		for i := range ends {
			same(w, "state", out[i].State, flowfabric.WaitingChildren)
		}
		g.complete(g.claim()["r0"], "")
		g.drain()
		same(w, "claimed", len(g.claim()), 40)
	}},
	{name: "a failed member and the member that it skipped can be replayed", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		g.fail(g.claim()["a"])
		g.ends(flowfabric.FlowFailed)
		for _, node := range []string{"b", "a"} {
			_, err := w.e.ReplayExecution(w.ctx, g.id.Member(node), engine.Replay{})
			w.no(err)
			w.check()
		}
		g.ends(flowfabric.FlowOpen)
		g.complete(g.claim()["a"], "again")
		b := g.claim()["b"]
		same(w, "input", string(b.Inputs["from-a"]), "again")
		g.complete(b, "")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "cancelling a flow cancels every member, skips none and leaves none claimable", run: func(w *env) {
		g := w.flow().node("n0", nil)
		for i := 1; i < 150; i++ {
			g.node(fmt.Sprint("n", i), []string{fmt.Sprint("n", i-1)})
		}
		for i := range 100 {
			g.node(fmt.Sprint("r", i), nil)
		}
		g.submit(engine.SealClosed)
		out, err := w.e.CancelFlow(trail.As(w.ctx, "me", "no more"), g.id, flowfabric.CancelAll)
		w.no(err)
		w.check()
		same(w, "more", out.More, true)
		same(w, "claimed", len(g.claim()), 0)
		w.check()
		g.drain()
		states, _ := g.states()
		for node, s := range states {
			same(w, node, s, flowfabric.Cancelled)
		}
		again, err := w.e.CancelFlow(trail.As(w.ctx, "you", ""), g.id, flowfabric.CancelFlow)
		w.no(err)
		w.all("again", eq(again.Already, true), eq(again.Policy, "cancel_all"), eq(again.Reason, "no more"),
			eq(again.Unended, 0))
		_, err = w.e.ReplayExecution(w.ctx, g.id.Member("n0"), engine.Replay{})
		w.is(err, denied.FlowCancelled)
	}},
	{name: "tags of a flow follow the rules of execution tags, in any state", run: func(w *env) {
		g := w.flow().node("a", nil).submit(engine.SealClosed)
		tags := func() map[string]string {
			record, err := w.e.DescribeFlow(w.ctx, g.id)
			w.no(err)
			return record.Tags
		}
		w.no(w.e.SetFlowTags(w.ctx, g.id, map[string]string{"a.b": "1", "c.d": "2"}, nil))
		w.check()
		w.no(w.e.SetFlowTags(w.ctx, g.id, map[string]string{"a.b": "3", "e.f": ""}, []string{"c.d", "no.such"}))
		w.check()
		sameDeep(w, "tags", tags(), map[string]string{"a.b": "3", "e.f": ""})
		w.unchanged("again",
			func() { w.no(w.e.SetFlowTags(w.ctx, g.id, map[string]string{"a.b": "3"}, []string{"c.d"})) })
		w.unchanged("refused", func() {
			w.is(w.e.SetFlowTags(w.ctx, g.id, map[string]string{"ab": "v"}, nil), denied.TagKey)
			w.is(w.e.SetFlowTags(w.ctx, flowfabric.FlowID(mint.ID(w.p)),
				map[string]string{"a.b": "v"}, nil), denied.NoFlow)
		})
		g.complete(g.claim()["a"], "")
		w.no(w.e.SetFlowTags(w.ctx, g.id, nil, []string{"a.b", "e.f"}))
		w.check()
		same(w, "tags", len(tags()), 0)
	}},
	{name: "a parent waits for the children it made and resumes when they have ended", run: func(w *env) {
		id := w.create()
		k := w.worker("k")
		parent := k.one(id)
		child := func(name string) engine.FlowMember {
			x := w.item()
			x.ID = id.Child("wait", name)
			return engine.FlowMember{NewExecution: x, Node: name}
		}
		wait := engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
			Children: []engine.FlowMember{child("a"), child("b")}}
		out, err := childtest.Wait(w.ctx, w.e, parent.Fence, wait)
		w.no(err)
		w.check()
		same(w, "parked", out.Parked, true)
		out, err = childtest.Wait(w.ctx, w.e, parent.Fence, wait)
		w.no(err)
		same(w, "parked again", out.Parked && out.Already, true)
		g := &graph{env: w, id: flowfabric.FlowID(id), w: k}
		c := g.claim()
		same(w, "children", len(c), 2)
		g.complete(c["a"], "x")
		same(w, "nothing", len(g.claim()), 0)
		g.fail(c["b"])
		w.advance(time.Second)
		again := g.claim()["root"]
		w.all("resumed", eq(again.Type, "resumed"), eq(again.Fence.Attempt, 1))
		out, err = childtest.Wait(w.ctx, w.e, again.Fence, wait)
		w.no(err)
		w.check()
		same(w, "satisfied", out.Satisfied, true)
		got := map[string]flowfabric.PublicState{}
		for _, o := range out.Outcomes {
			got[o.Node] = o.Outcome
		}
		sameDeep(w, "outcomes", got, map[string]flowfabric.PublicState{"a": "completed", "b": "failed"})
		g.complete(again, "")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "the answer of an earlier wait is kept as a step by a wait for children", run: func(w *env) {
		w.seed()
		k, c, m := w.waiting(awaiting("approve"))
		id := c.Fence.Execution
		w.signal(id, m, "go", "resume_condition_satisfied")
		again := k.claim(1)[0]
		same(w, "resumed by", again.Resume.Name, "approve")
		x := w.item()
		x.ID = id.Child("kids", "a")
		wait := engine.ChildWait{Name: "kids", Mode: engine.WaitAll,
			Children: []engine.FlowMember{{NewExecution: x, Node: "a"}}}
		out, err := childtest.Wait(w.ctx, w.e, again.Fence, wait)
		w.no(err)
		w.check()
		same(w, "parked", out.Parked, true)
		g := &graph{env: w, id: flowfabric.FlowID(id), w: k}
		g.complete(g.claim()["a"], "")
		last := g.claim()["root"]
		w.all("told", eq(last.Resume.Name, "kids"), eq(len(last.Steps[engine.StepAwait+"approve"]) > 0, true))
	}},
}
