package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// How flows end, and what stays of them.
var flowEndScenarios = []scenario{
	{name: "a flow is completed when each of its final members has succeeded", run: func(w *env) {
		for what, c := range map[string]struct {
			build func() *graph
			fails []string
			want  flowfabric.FlowState
		}{
			"a lost race": {func() *graph { return w.flow().fan(2, anyOf) }, []string{"r0"},
				flowfabric.FlowCompleted},
			"a tolerated loss": {func() *graph { return w.flow().fan(3, quorum(2)) }, []string{"r1"},
				flowfabric.FlowCompleted},
			"one end of two": {func() *graph { return w.flow().node("a", nil).node("b", nil) }, []string{"b"},
				flowfabric.FlowFailed},
			"an end was skipped": {func() *graph { return w.flow().node("a", nil).node("b", []string{"a"}) },
				[]string{"a"}, flowfabric.FlowFailed},
			"everything": {func() *graph { return w.flow().fan(2) }, nil, flowfabric.FlowCompleted},
		} {
			g := c.build().submit(engine.SealClosed)
			for range 3 {
				for node, claim := range g.claim() {
					fails := false
					for _, f := range c.fails {
						fails = fails || f == node
					}
					if fails {
						g.fail(claim)
					} else {
						g.complete(claim, "")
					}
				}
			}
			same(w, what, g.header().State, c.want)
		}
	}},
	{name: "the end of a flow is published on its channel", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil).submit(engine.SealClosed)
		ear := w.listen(engine.EventChannel(flowfabric.ExecutionID(g.id)))
		c := g.claim()
		g.complete(c["a"], "")
		g.complete(c["b"], "")
		ear.hears("F2 1")
	}},
	{name: "members and their results stay until their flow has ended", run: func(w *env) {
		g := w.flow().node("a", nil, as(retention(time.Minute))).node("b", []string{"a"}).submit(engine.SealClosed)
		a := g.id.Member("a")
		g.complete(g.claim()["a"], "kept")
		w.unchanged("purged too early", func() {
			_, err := w.e.PurgeExecution(w.ctx, a, 0)
			w.is(err, denied.FlowOpen)
		})
		w.advance(48 * time.Hour)
		w.settleTime()
		w.code(a, "T1")
		g.w = w.worker("later")
		b := g.claim()["b"]
		same(w, "input", string(b.Inputs["from-a"]), "kept")
		g.complete(b, "")
		w.advance(time.Hour) // they are looked at again
		w.settleTime()
		_, err := w.e.ReadExecution(w.ctx, a)
		w.is(err, flowfabric.ErrResultPurged)
		w.code(g.id.Member("b"), "T1")
		h := g.header()
		w.all("header", eq(h.State, "completed"), eq(h.Members, 2), eq(h.Purged, 1))
		page, err := w.e.FlowMembers(w.ctx, g.id, 0, 10, true)
		w.no(err)
		w.all("left", eq(len(page.Members), 1), eq(page.Members[0].Node, "b"), eq(page.Next, -1))
	}},
	{name: "a flow is removed with its last member and leaves a tombstone", run: func(w *env) {
		q := engine.NewFlow{ID: flowfabric.FlowID(mint.ID(w.p)), Namespace: "default", Kind: "test",
			Digest: "d1", Tags: map[string]string{"a.b": "c"}}
		_, err := w.e.CreateFlow(w.ctx, q)
		w.no(err)
		g := &graph{env: w, id: q.ID, w: w.worker("flow")}
		g.node("a", nil).node("b", []string{"a"}).node("c", []string{"a"}, as(retention(10*time.Hour)))
		_, err = w.e.StageFlow(w.ctx, g.id, nil, g.nodes)
		w.no(err)
		g.submitted(engine.SealClosed)
		c := g.claim()
		g.complete(c["a"], "")
		for _, c := range g.claim() {
			g.complete(c, "")
		}
		for _, node := range []string{"b", "a"} {
			_, err := w.e.PurgeExecution(w.ctx, g.id.Member(node), 0)
			w.no(err)
			w.check()
		}
		w.all("purged", eq(g.header().Purged, 2), eqDeep(g.header().Tags, map[string]string{"a.b": "c"}))
		w.advance(10 * time.Hour)
		w.settleTime()
		_, err = w.e.DescribeFlow(w.ctx, g.id)
		w.is(err, flowfabric.ErrResultPurged)
		for _, key := range w.keys() {
			if key == w.k.Flow(ids.UUID(g.id)) || key == w.k.FlowTags(ids.UUID(g.id)) || key == w.k.Flows() ||
				key == w.k.FlowDue() {
				w.Fatalf("%s stays", key)
			}
		}
		_, err = w.e.CreateFlow(w.ctx, q)
		w.is(err, flowfabric.ErrResultPurged) // the key leads nowhere, and is taken
		q.Digest = "d2"
		_, err = w.e.CreateFlow(w.ctx, q)
		w.is(err, denied.FlowConflict)
		w.advance(24 * time.Hour)
		_, err = w.e.DescribeFlow(w.ctx, g.id)
		w.is(err, denied.NoFlow)
		made, err := w.e.CreateFlow(w.ctx, q)
		w.no(err)
		w.all("free again", eq(made.Already, false), eq(made.State, "staging"))
	}},
	{name: "a member that was purged no longer counts when others are replayed", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		g.fail(g.claim()["a"])
		_, err := w.e.PurgeExecution(w.ctx, g.id.Member("a"), 0)
		w.no(err)
		w.check()
		w.replay(g.id.Member("b"), engine.Replay{})
		w.code(g.id.Member("b"), "R3p") // what it waits for is gone: it ends by hand alone
		g.ends(flowfabric.FlowOpen)
		w.cancel(g.id.Member("b"))
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "the counters of a flow of 300 members are exact at any time, and the flow ends", run: func(w *env) {
		w.quiet = true
		g := w.flow()
		n := max(60, 300/max(1, w.srv.Share))
		for i := range n / 3 {
			root, a := fmt.Sprint("r", i), fmt.Sprint("a", i)
			g.node(root, nil).node(a, []string{root}, unnamed).node(fmt.Sprint("b", i), []string{root, a}, unnamed)
		}
		g.submit(engine.SealClosed)
		done := 0
		for claims := g.w.claim(50); len(claims) > 0; claims = g.w.claim(50) {
			for _, c := range claims {
				g.complete(c, "")
				done++
				if done%50 == 0 {
					h := g.header()
					unended := 0
					for state, count := range h.Count {
						if !state.Terminal() {
							unended += count
						}
					}
					w.all("counted", eq(h.Count[flowfabric.Completed], done), eq(unended, n-done))
				}
			}
		}
		w.quiet = false
		w.check()
		h := g.header()
		w.all("header", eq(h.State, flowfabric.FlowCompleted), eq(h.Count[flowfabric.Completed], n), eq(h.Failing, 0),
			eq(h.Backlog, 0), eq(len(h.Count), 1))
	}},
	{name: "an audit finds siblings that a decided race should have cancelled", run: func(w *env) {
		w.quiet = true
		g, names := w.flow(), nodesOf("n", 90)
		for _, name := range names {
			g.node(name, nil)
		}
		g.node("race", names, anyOf, cancelRest, unnamed).submit(engine.SealClosed)
		won := g.w.claim(1)[0]
		g.complete(won, "")
		w.set("DEL", w.k.Backlog(), w.k.Work())
		w.set("HDEL", w.k.Flow(ids.UUID(g.id)), "bl")
		same(w, "forgotten", strings.Contains(found(w.audit(true)), "missing work s:"), true)
		g.drain()
		g.are(flowfabric.Cancelled, slices.DeleteFunc(names, func(name string) bool { return name == won.Node })...)
		w.quiet = false
		w.check()
	}},
	{name: "ticks work off what calls about a flow left behind", run: func(w *env) {
		w.quiet = true
		g, names := w.flow(), nodesOf("n", 90)
		for _, name := range names {
			g.node(name, nil)
		}
		g.submit(engine.SealClosed)
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll)
		w.no(err)
		w.settleTime()
		g.are(flowfabric.Cancelled, names...)
		g.ends(flowfabric.FlowCancelled)
	}},
	{name: "3,000 siblings are all cancelled, and none is lost", run: func(w *env) {
		w.quiet = true
		g := w.flow()
		n := 3000 / max(1, w.srv.Share)
		for _, node := range nodesOf("n", n) {
			g.node(node, nil)
		}
		for first := 0; first < n; first += 1000 { // fan-in is at most 1,000: three races of one member each
			some := nodesOf("n", n)[first:min(first+1000, n)]
			g.node(fmt.Sprint("race", first), some, anyOf, cancelRest, unnamed)
		}
		g.begin()
		for first := 0; first < n; first += 100 {
			_, err := w.e.StageFlow(w.ctx, g.id, nil, g.nodes[first:min(first+100, n)])
			w.no(err)
		}
		w.age()
		for _, race := range g.nodes[n:] {
			_, err := w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{race})
			w.no(err)
		}
		g.submitted(engine.SealClosed)
		races := len(g.nodes) - n
		first := map[string]bool{"n0": true, "n1000": true, "n2000": true}
		won := 0
		for won < races {
			for _, c := range g.w.claim(100) {
				if first[c.Node] {
					g.complete(c, "")
					won++
				}
			}
		}
		g.drain()
		w.quiet = false
		w.check()
		h := g.header()
		w.all("header", eq(h.Count[flowfabric.Cancelled], n-races), eq(h.Siblings.Cancelled, n-races),
			eq(h.Count[flowfabric.Waiting], races), eq(h.Backlog, 0))
	}},
}
