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
)

// What is left of flows when members are purged, replayed or end at a bad time.
var flowPurgeScenarios = []scenario{
	{name: "a purged upstream gives no input rather than an empty one", run: func(w *env) {
		g := w.flow()
		for i := range 70 { // more than come with a claim
			g.node(fmt.Sprint("r", i), nil)
		}
		g.node("few", []string{"r0", "r1"}).node("many", nodesOf("r", 70)).submit(engine.SealClosed)
		for _, c := range g.claim() {
			g.complete(c, "")
		}
		for _, c := range g.claim() {
			g.fail(c)
		}
		_, err := w.e.PurgeExecution(w.ctx, g.id.Member("r0"), 0)
		w.no(err)
		w.check()
		g.replays(engine.Replay{}, "few", "many")
		c := g.claim()
		same(w, "few", fmt.Sprintf("%q", c["few"].Inputs), `map["from-r1":""]`)
		_, given := c["many"].Inputs["from-r0"]
		w.all("many", eq(len(c["many"].Inputs), 69), eq(given, false))
	}},
	{name: "a replayed upstream counts again for groups that are still pending", run: func(w *env) {
		g := w.flow().fan(2, anyOf).submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["r0"])
		same(w, "failed", g.group("end"), "0 1 0 of 2 pending")
		w.replay(g.id.Member("r0"), engine.Replay{})
		same(w, "open again", g.group("end"), "0 0 0 of 2 pending")
		again := g.claim()["r0"]
		g.fail(c["r1"])
		g.are(flowfabric.WaitingChildren, "end")
		g.complete(again, "won")
		same(w, "input", string(g.claim()["end"].Inputs["from-r0"]), "won")
	}},
	{name: "an upstream of 150 members that is replayed and fails again counts once for each", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil)
		for _, n := range nodesOf("n", 150) {
			g.node(n, []string{"a", "b"}, anyOf)
		}
		g.submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["a"])
		g.drain()
		w.replay(g.id.Member("a"), engine.Replay{Request: mint.UUID()})
		g.fail(g.claim()["a"])
		g.drain()
		w.all("the first and the last", eq(g.group("n0"), "0 1 0 of 2 pending"),
			eq(g.group("n149"), "0 1 0 of 2 pending"))
		g.fail(c["b"])
		g.drain()
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "a parent that fails before it waits cancels its children, unless told to leave them", run: func(w *env) {
		for _, leave := range []bool{false, true} {
			w.reset()
			f := w.family()
			q := engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Leave: leave,
				Children: []engine.FlowMember{f.child(f.parent, "wait", "a"), f.child(f.parent, "wait", "b")}}
			_, err := childtest.Make(w.ctx, w.e, f.fence, q)
			w.no(err)
			w.check()
			_, err = w.e.FailExecution(w.ctx, f.fence, engine.Failure{Category: "broken", Permanent: true})
			w.no(err)
			w.check()
			f.drain()
			f.are(map[bool]flowfabric.PublicState{false: flowfabric.Cancelled, true: flowfabric.Waiting}[leave], "a",
				"b")
		}
	}},
	{name: "a race among new children spares those that their parent will wait for", run: func(w *env) {
		f := w.family()
		race := f.child(f.parent, "wait", "end")
		race.Policy, race.CancelRest = codes.AnyOf, true
		for _, n := range []string{"a", "b"} {
			race.Edges = append(race.Edges, engine.FlowEdge{From: f.parent.Child("wait", n)})
		}
		q := engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
			Children: []engine.FlowMember{f.child(f.parent, "wait", "a"), f.child(f.parent, "wait", "b"), race}}
		_, err := childtest.Make(w.ctx, w.e, f.fence, q)
		w.no(err)
		f.complete(f.claim()["a"], "")
		f.drain()
		f.are(flowfabric.Active, "b")
	}},
	{name: "the execution that founded a flow stays as long as the flow", run: func(w *env) {
		f := w.family(retention(time.Minute))
		q := engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
			Children: []engine.FlowMember{f.child(f.parent, "wait", "a", retention(100*time.Hour))}}
		_, err := childtest.Wait(w.ctx, w.e, f.fence, q)
		w.no(err)
		f.complete(f.claim()["a"], "")
		f.complete(f.claim()["root"], "")
		f.ends(flowfabric.FlowCompleted)
		w.unchanged("purged by hand", func() {
			_, err := w.e.PurgeExecution(w.ctx, f.parent, 0)
			w.is(err, denied.FlowOpen)
		})
		for range 3 {
			w.advance(30 * time.Hour)
			w.settleTime()
		}
		w.code(f.parent, "T1")
		w.advance(11 * time.Hour)
		w.settleTime()
		w.advance(time.Hour)
		w.settleTime()
		_, err = w.e.DescribeFlow(w.ctx, f.id)
		w.is(err, flowfabric.ErrResultPurged)
	}},
	{name: "one claim cancels at most 64 members of a cancelled flow", run: func(w *env) {
		g := w.flow()
		for i, n := range nodesOf("n", 300) {
			g.node(n, nil, func(m *engine.FlowMember) { m.Kind = fmt.Sprint("k", i%40) })
		}
		g.submit(engine.SealClosed)
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll)
		w.no(err)
		w.check()
		same(w, "cancelled", g.header().Count[flowfabric.Cancelled], 64)
		same(w, "claimed", len(g.claim()), 0)
		same(w, "cancelled", g.header().Count[flowfabric.Cancelled], 128)
		g.drain()
		g.ends(flowfabric.FlowCancelled)
		same(w, "all", g.header().Count[flowfabric.Cancelled], 300)
	}},
}
