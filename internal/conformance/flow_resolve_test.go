package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// fan is n roots that a member of the given kind depends on.
func (g *graph) fan(n int, opts ...nodeOption) *graph {
	all := nodesOf("r", n)
	for _, node := range all {
		g.node(node, nil)
	}
	return g.node("end", all, opts...)
}

// reason is why a member was cancelled.
func (g *graph) reason(node string) string {
	g.Helper()
	return g.read(g.shown(node).ID).CancelReason
}

// What the end of a member does to those that depend on it.
var flowResolveScenarios = []scenario{
	{name: "a paused lane keeps a member from being claimed, not from being resolved", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}, as(lane("slow"))).submit(engine.SealClosed)
		a := g.claim()["a"]
		same(w, "paused", w.setLane("slow", flowfabric.LanePaused, "").code, "OK")
		g.complete(a, "")
		g.are(flowfabric.Waiting, "b")
		same(w, "nothing", len(g.claim()), 0)
		same(w, "open", w.setLane("slow", flowfabric.LaneActive, "").code, "OK")
		g.complete(g.claim()["b"], "")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "the first success decides any-of-three, and later ends only move counters", run: func(w *env) {
		g := w.flow().fan(3, anyOf).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["r1"], "one")
		same(w, "group", g.group("end"), "1 0 0 of 3 satisfied")
		end := g.claim()["end"]
		g.fail(c["r0"])
		g.complete(c["r2"], "two")
		same(w, "group", g.group("end"), "2 1 0 of 3 satisfied")
		g.are(flowfabric.Active, "end")
		same(w, "inputs", fmt.Sprintf("%q", end.Inputs), `map["from-r1":"one"]`)
		g.complete(end, "")
		g.ends(flowfabric.FlowCompleted) // r0's failure was tolerated
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{})
	}},
	{name: "the third failure makes a quorum of three of five impossible and cancels the rest", run: func(w *env) {
		g := w.flow().fan(5, quorum(3), cancelRest).submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["r0"])
		g.fail(c["r1"])
		same(w, "group", g.group("end"), "0 2 0 of 5 pending")
		g.fail(c["r2"])
		g.drain()
		g.are(flowfabric.Skipped, "end")
		g.are(flowfabric.Cancelled, "r3", "r4")
		same(w, "reason", g.reason("r3"), "sibling_quorum_impossible")
		same(w, "group", g.group("end"), "0 5 0 of 5 impossible")
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{Cancelled: 2})
		g.ends(flowfabric.FlowFailed)
		r := w.renew(g.w, 0)
		w.all("the holders are told", eq(len(r.Lost), 2), eq(r.Lost[0].Cause, "cancelled"))
	}},
	{name: "two failures do not decide a quorum of three of five", run: func(w *env) {
		// A member comes with all its edges, so a group never has fewer than it will have.
		g := w.flow().fan(5, quorum(3)).submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["r0"])
		g.fail(c["r1"])
		g.are(flowfabric.WaitingChildren, "end")
		for i, node := range []string{"r2", "r3", "r4"} {
			same(w, "succeeded", g.shown("end").Group.Succeeded, i)
			g.complete(c[node], "")
		}
		g.are(flowfabric.Waiting, "end")
	}},
	{name: "a group that does not cancel the rest leaves them running, however it is decided", run: func(w *env) {
		for _, ends := range []string{"success", "failure"} {
			g := w.flow().fan(3, quorum(2)).submit(engine.SealClosed)
			c := g.claim()
			for _, node := range []string{"r0", "r1"} {
				if ends == "success" {
					g.complete(c[node], "")
				} else {
					g.fail(c[node])
				}
			}
			g.drain()
			g.are(flowfabric.Active, "r2")
			same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{})
			g.complete(c["r2"], "")
			if ends == "success" {
				g.complete(g.claim()["end"], "")
				g.ends(flowfabric.FlowCompleted)
			} else {
				g.are(flowfabric.Skipped, "end")
				g.ends(flowfabric.FlowFailed)
			}
		}
	}},
	{name: "siblings are cancelled in steps, and those that ended meanwhile are counted apart", run: func(w *env) {
		g := w.flow().fan(150, anyOf, cancelRest).submit(engine.SealClosed)
		c := g.claim() // 100 of them
		g.complete(c["r0"], "")
		g.are(flowfabric.Waiting, "end")
		h := g.header()
		w.all("backlog", eq(h.Backlog > 0, true), eq(h.Siblings.Cancelled > 0, true),
			eq(h.Siblings.Cancelled < 149, true))
		var raced string
		states, _ := g.states()
		for node := range c {
			if states[node] == flowfabric.Active {
				raced = node
			}
		}
		g.complete(c[raced], "late") // before the rest of the work comes to it
		g.drain()
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{Cancelled: 148, AlreadyTerminal: 1})
		same(w, "nothing is left", g.header().Backlog, 0)
		for range 2 { // a second drain finds nothing
			more, err := w.e.DrainFlows(w.ctx, w.p)
			w.no(err)
			same(w, "more", more, false)
		}
		same(w, "reason", g.reason("r149"), "sibling_quorum_satisfied")
		same(w, "group", g.group("end"), "2 148 0 of 150 satisfied")
	}},
	{name: "a shared upstream is cancelled only when no pending group needs it any more", run: func(w *env) {
		g := w.flow().node("a", nil).node("shared", nil).node("free", nil).node("race", []string{"a", "shared", "free"},
			anyOf, cancelRest).
			node("other", []string{"shared"}).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["a"], "")
		g.drain()
		g.are(flowfabric.Active, "shared")
		g.are(flowfabric.Cancelled, "free")
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{Cancelled: 1, Spared: 1})
		for _, e := range g.shown("race").Edges {
			same(w, "spared", e.Spared, e.From == g.id.Member("shared"))
		}
		g.complete(c["shared"], "for the other")
		same(w, "the other's input", string(g.claim()["other"].Inputs["from-shared"]), "for the other")

		decided := w.flow().node("a", nil).node("shared", nil).node("one", []string{"a", "shared"}, anyOf).
			node("two", []string{"a", "shared"}, anyOf, cancelRest).submit(engine.SealClosed)
		decided.complete(decided.claim()["a"], "") // decides both: nobody needs the shared one
		decided.drain()
		decided.are(flowfabric.Cancelled, "shared")
		same(w, "dispositions", decided.header().Siblings, engine.SiblingCancels{Cancelled: 1})
	}},
	{name: "an upstream of 92 groups is spared because one of them still needs it", run: func(w *env) {
		g := w.flow().node("a", nil).node("shared", nil)
		for i := range 90 { // decided together with the race: they need it no more
			g.node(fmt.Sprint("d", i), []string{"a", "shared"}, anyOf, unnamed)
		}
		g.node("race", []string{"a", "shared"}, anyOf, cancelRest).node("last",
			[]string{"shared"}).submit(engine.SealClosed)
		g.complete(g.claim()["a"], "")
		g.drain()
		g.are(flowfabric.Active, "shared")
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{Spared: 1})
	}},
	{name: "inputs are delivered by name, and an empty result is an input", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil).node("c", nil).node("d", []string{"a", "b", "c"},
			func(m *engine.FlowMember) {
				m.Edges[0].Input, m.Edges[1].Input, m.Edges[2].Input = "left", "right", ""
			}, as(payload([]byte("own")))).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["a"], "1")
		g.complete(c["b"], "")
		g.complete(c["c"], "not asked for")
		d := g.claim()["d"]
		same(w, "claimed", fmt.Sprintf("%s %q %s %s", d.Input, d.Inputs, d.Node, d.Flow),
			fmt.Sprintf(`own map["left":"1" "right":""] d %s`, g.id))
		w.release(d.Fence)
		same(w, "and again", fmt.Sprintf("%q", g.claim()["d"].Inputs), `map["left":"1" "right":""]`)
	}},
	{name: "inputs that do not fit into a claim are read separately", run: func(w *env) {
		for _, c := range []struct{ n, bytes int }{{65, 10}, {3, 300 << 10}} {
			w.quiet = true
			g := w.flow().fan(c.n).submit(engine.SealClosed)
			for node, claim := range g.claim() {
				g.complete(claim, node+strings.Repeat(".", c.bytes))
			}
			w.quiet = false
			end := g.claim()["end"]
			same(w, "inputs", len(end.Inputs), c.n)
			for _, node := range nodesOf("r", c.n) {
				same(w, node, string(end.Inputs["from-"+node]), node+strings.Repeat(".", c.bytes))
			}
			g.complete(end, "")
		}
	}},
	{name: "a success after the decision is recorded as a late input and not delivered", run: func(w *env) {
		g := w.flow().fan(3, quorum(2)).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["r0"], "0")
		g.complete(c["r1"], "1")
		end := g.claim()["end"]
		g.complete(c["r2"], "2")
		w.release(end.Fence)
		same(w, "inputs", fmt.Sprintf("%q", g.claim()["end"].Inputs), `map["from-r0":"0" "from-r1":"1"]`)
		events, err := w.e.ReadHistory(w.ctx, g.id.Member("end"))
		w.no(err)
		late := slices.IndexFunc(events, func(e flowfabric.Event) bool { return e.Kind == "late_input" })
		if late < 0 || !strings.Contains(fmt.Sprint(events[late]), "from-r2") {
			w.Fatalf("the history does not tell of the late input: %v", events)
		}
		for _, e := range g.shown("end").Edges {
			same(w, "late", e.Late, e.From == g.id.Member("r2"))
		}
		silent := w.flow().fan(2, anyOf, unnamed).submit(engine.SealClosed)
		c = silent.claim()
		silent.complete(c["r0"], "")
		silent.complete(c["r1"], "")
		same(w, "nobody asked for it", strings.Contains(w.kinds(silent.id.Member("end")), "late_input"), false)
	}},
	{name: "a skipped member is in no index and has no alarm and no lease", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"},
			as(deadline(time.Hour), delay(time.Hour), tags(map[string]string{"a.b": "c"}))).submit(engine.SealClosed)
		g.fail(g.claim()["a"])
		s := w.code(g.id.Member("b"), "T5n")
		w.all("shown", eq(s.State.Public, "skipped"), eq(s.Phase().AttemptState, "none"),
			eq(s.Failure.Category, "dependency_impossible"), eq(s.Attempts, 0))
		same(w, "history", w.kinds(g.id.Member("b")), "created skipped ended")
		for _, key := range []string{w.k.Blocked(), w.k.Delayed(), w.k.Alarms(), w.k.Parked()} {
			n, err := w.do("ZCARD", key).AsInt64()
			w.no(err)
			same(w, key, n, 0)
		}
	}},
	{name: "a success has released its dependants even if it is replayed at once", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		g.complete(g.claim()["a"], "first")
		w.replay(g.id.Member("a"), engine.Replay{Force: true})
		c := g.claim()
		same(w, "input", string(c["b"].Inputs["from-a"]), "first")
		g.fail(c["a"]) // a success stays one
		same(w, "group", g.group("b"), "1 0 0 of 1 satisfied")
		g.complete(c["b"], "")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "every way in which a member can end reaches its dependants", run: func(w *env) {
		for name, end := range map[string]struct {
			opts    []option
			end     func(g *graph, c engine.Claim)
			outcome flowfabric.PublicState
		}{
			"completed": {nil, func(g *graph, c engine.Claim) { g.complete(c, "") }, flowfabric.Completed},
			"failed":    {nil, func(g *graph, c engine.Claim) { g.fail(c) }, flowfabric.Failed},
			"retries exhausted": {[]option{retries(0)}, func(g *graph, c engine.Claim) { w.fail(c.Fence, "x") },
				flowfabric.Failed},
			"cancelled by an operator": {nil, func(g *graph, c engine.Claim) { w.cancel(c.Fence.Execution) },
				flowfabric.Cancelled},
			"cancelled by its holder": {nil, func(g *graph, c engine.Claim) {
				_, err := w.e.CancelExecution(w.ctx, c.Fence.Execution,
					engine.Cancellation{Source: engine.CancelOwner, Fence: &c.Fence})
				w.no(err)
			}, flowfabric.Cancelled},
			"deadline": {[]option{deadline(10 * time.Second)},
				func(*graph, engine.Claim) { w.advance(10 * time.Second) }, flowfabric.Expired},
			"attempt timeout": {[]option{retries(0), timeout(10 * time.Second)},
				func(*graph, engine.Claim) { w.advance(10 * time.Second) }, flowfabric.Expired},
			"suspension fails": {nil, func(g *graph, c engine.Claim) {
				w.stopped(c.Fence, within(10*time.Second, "fail"))
				w.advance(10 * time.Second)
			}, flowfabric.Failed},
			"suspension is cancelled": {nil, func(g *graph, c engine.Claim) {
				w.stopped(c.Fence, within(10*time.Second, "cancel"))
				w.advance(10 * time.Second)
			}, flowfabric.Cancelled},
			"suspension expires": {nil, func(g *graph, c engine.Claim) {
				w.stopped(c.Fence, within(10*time.Second, "expire"))
				w.advance(10 * time.Second)
			}, flowfabric.Expired},
			"reclaims exhausted": {[]option{reclaims(1)}, func(g *graph, c engine.Claim) {
				w.advance(ttl)
				w.settleTime()
				same(w, "claimed again", len(w.worker("second").claim(1)), 1)
				w.advance(ttl)
			}, flowfabric.Failed},
			"revocations exhausted": {[]option{reclaims(1)}, func(g *graph, c engine.Claim) {
				w.revoke(c.Fence.Execution)
				w.settleTime()
				same(w, "claimed again", len(w.worker("second").claim(1)), 1)
				w.revoke(c.Fence.Execution)
			}, flowfabric.Failed},
		} {
			w.reset()
			w.seed()
			g := w.flow().node("a", nil, as(end.opts...)).node("all", []string{"a"}).node("chain",
				[]string{"all"}).submit(engine.SealClosed)
			end.end(g, g.claim()["a"])
			w.settleTime()
			want := map[bool]flowfabric.PublicState{true: flowfabric.Waiting,
				false: flowfabric.Skipped}[end.outcome == flowfabric.Completed]
			states, flow := g.states()
			w.all(name, eq(states["a"], end.outcome), eq(states["all"], want),
				eq(g.shown("all").Edges[0].Outcome, end.outcome))
			if want == flowfabric.Skipped {
				w.all(name, eq(states["chain"], flowfabric.Skipped), eq(flow, flowfabric.FlowFailed),
					eq(g.shown("chain").Edges[0].Outcome, flowfabric.Skipped))
			}
		}
	}},
	{name: "retries, delays, suspensions and lost leases decide nothing for dependants", run: func(w *env) {
		w.seed()
		g := w.flow().node("a", nil, as(retries(2))).node("b", []string{"a"}).submit(engine.SealClosed)
		id, counted := g.id.Member("a"), func(want flowfabric.PublicState) {
			w.Helper()
			h := g.header()
			w.all("counted", eq(h.Count[want], 1), eq(h.Count[flowfabric.WaitingChildren], 1), eq(h.Backlog, 0))
			same(w, "group", g.group("b"), "0 0 0 of 1 pending")
		}
		counted(flowfabric.Waiting)
		c := g.claim()["a"]
		counted(flowfabric.Active)
		w.fail(c.Fence, "x")
		counted(flowfabric.Delayed)
		w.advance(2 * time.Second)
		w.settleTime()
		counted(flowfabric.Waiting)
		c = g.claim()["a"]
		w.delay(c.Fence, time.Second)
		counted(flowfabric.Delayed)
		w.advance(2 * time.Second)
		w.settleTime()
		m := w.stopped(g.claim()["a"].Fence, awaiting("it"))
		counted(flowfabric.Suspended)
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		counted(flowfabric.Waiting)
		g.claim()
		w.advance(ttl)
		w.settleTime()
		counted(flowfabric.Waiting)
		k := w.worker("second")
		k.claim(1)
		w.revoke(id)
		counted(flowfabric.Active)
		w.settleTime()
		counted(flowfabric.Waiting)
		w.release(k.claim(1)[0].Fence)
		counted(flowfabric.Waiting)
		w.complete(k.claim(1)[0].Fence, "")
		g.are(flowfabric.Waiting, "b")
	}},
	{name: "a completion can claim the members that it releases in the same call", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).node("c", []string{"a"},
			as(deadline(time.Hour))).submit(engine.SealClosed)
		a := g.claim()["a"]
		q := g.w.request(10)
		out, next, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: a.Fence, Result: []byte("r")}},
			&q)
		w.no(err)
		w.no(out[0].Err)
		g.w.number++
		w.check()
		w.all("claimed", eq(len(next.Claims), 2), eq(string(next.Claims[0].Inputs["from-a"]), "r"),
			eq(next.Claims[0].Flow, g.id))
	}},
	{name: "a claim brings along at most 512 KiB of inputs, and the others are read by themselves", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil).node("end", []string{"a", "b"}).submit(engine.SealClosed)
		large := strings.Repeat("x", 300_000)
		for _, c := range g.claim() {
			g.complete(c, large)
		}
		q := g.w.request(1)
		bytes := 0
		for _, slot := range w.must("ff_claim_next", claimArgs(q)...).slots {
			bytes += len(slot)
		}
		same(w, "all are left out", bytes < 1000, true)
		r, err := w.e.ClaimNext(w.ctx, q) // once more
		w.no(err)
		for _, name := range []string{"from-a", "from-b"} {
			same(w, name, string(r.Claims[0].Inputs[name]) == large, true)
		}
	}},
	{name: "a member whose deadline has passed is not claimed with the completion that releases it", run: func(w *env) {
		late := as(func(x *engine.NewExecution) { x.Deadline = flowfabric.Millis(time.Second) })
		g := w.flow().node("a", nil).node("late", []string{"a"}, late).node("b",
			[]string{"a"}).submit(engine.SealClosed)
		a := g.claim()["a"]
		w.advance(time.Second)
		q := g.w.request(10)
		out, next, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: a.Fence}}, &q)
		w.no(err)
		w.no(out[0].Err)
		g.w.number++
		w.check()
		same(w, "claimed", len(next.Claims), 1)
		same(w, "which", next.Claims[0].Fence.Execution, g.id.Member("b"))
	}},
	{name: "a claim with a completion is served first, and other workers are woken for the rest", run: func(w *env) {
		for _, c := range []struct{ max, claimed, rung int }{{10, 3, 0}, {1, 1, 2}, {0, 0, 2}} {
			// 0: the claim is refused
			w.reset()
			g := w.flow().node("a", nil).node("b", []string{"a"}).node("c", []string{"a"}).node("d",
				[]string{"a"}).submit(engine.SealClosed)
			a := g.claim()["a"]
			var ears []*ear
			for _, name := range []string{"idle1", "idle2"} {
				w.worker(name).nothing()
				ears = append(ears, w.listen(engine.BellChannel(w.p, name)))
			}
			q := g.w.request(max(c.max, 1))
			if c.max == 0 {
				q.Number += 7
			}
			out, next, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: a.Fence}}, &q)
			w.no(out[0].Err)
			if c.max == 0 {
				w.is(err, denied.ClaimOrder)
			} else {
				w.no(err)
				g.w.number++
				same(w, "claimed", len(next.Claims), c.claimed)
			}
			w.check()
			h := g.header()
			w.all("header", eq(h.Count[flowfabric.Waiting], 3-c.claimed), eq(h.Count[flowfabric.Active], c.claimed),
				eq(h.Count[flowfabric.Completed], 1))
			for _, e := range ears {
				if c.rung > 0 {
					e.hears("w")
				} else {
					e.silent()
				}
			}
		}
	}},
	{name: "released members are claimed in queue order, and only by a worker that serves their route",
		run: func(w *env) {
			for what, c := range map[string]struct {
				other, claimed string
				max            int
				rung           string
				blind          bool
			}{
				"the best": {claimed: "d", max: 1, rung: "w1"},
				"all":      {claimed: "d c b", max: 3},
				// by which idle was rung
				"more important work of the same route comes first": {other: "node", claimed: "other d", max: 2},
				"more important work of another route comes first": {other: "other", claimed: "other d", max: 2,
					rung: "w1"},
				"nothing is left beside other work": {other: "other", claimed: "other d c b", max: 4},
				"the completer serves other routes": {blind: true, max: 3, rung: "w2"},
			} {
				w.reset()
				g := w.flow().node("a", nil)
				for i, name := range []string{"b", "c", "d"} {
					g.node(name, []string{"a"}, as(priority(i), kind("node")))
				}
				g.submit(engine.SealClosed)
				g.w.can = func(r engine.Route) bool { return r.Kind != "node" || !c.blind }
				a := g.claim()["a"]
				idle := w.worker("idle")
				idle.can = func(r engine.Route) bool { return r.Kind == "node" }
				idle.nothing()
				if c.other != "" {
					w.create(kind(c.other), priority(9))
					q := g.w.request(1)
					q.Subscription = ""
					r, err := w.e.ClaimNext(w.ctx, q)
					w.no(err)
					g.w.learn(r)
					if c.other == "other" {
						idle.nothing() // the new route rang it
					}
				}
				e := w.listen(engine.BellChannel(w.p, "idle"))
				q := g.w.request(c.max)
				out, next, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: a.Fence}}, &q)
				w.no(err)
				w.no(out[0].Err)
				w.check()
				var claimed []string
				for _, x := range next.Claims {
					claimed = append(claimed, cmp.Or(x.Node, "other"))
				}
				same(w, what, strings.Join(claimed, " "), c.claimed)
				if c.rung != "" {
					e.hears(c.rung)
				} else {
					e.silent()
				}
			}
		}},
	{name: "an end with many dependants continues in the backlog, which the tick works off in order",
		run: func(w *env) {
			g := w.flow().node("a", nil).node("b", nil)
			for i := range 100 {
				g.node(fmt.Sprint("x", i), []string{"a"}, unnamed).node(fmt.Sprint("y", i), []string{"b"}, unnamed)
			}
			g.submit(engine.SealClosed)
			c := g.claim()
			g.complete(c["a"], "")
			g.fail(c["b"])
			h := g.header()
			w.all("backlog", eq(h.Backlog, 2), eq(h.Count[flowfabric.Waiting] >= 60, true),
				eq(h.Count[flowfabric.Waiting] < 100, true))
			for range 20 {
				w.tick()
			}
			h = g.header()
			w.all("done", eq(h.Backlog, 0), eq(h.Count[flowfabric.Waiting], 100), eq(h.Count[flowfabric.Skipped], 100),
				eq(h.Failing, 100))
			g.ends(flowfabric.FlowOpen)
		}},
	{name: "a member that may run wakes an idle worker", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		a := g.claim()["a"]
		idle := w.worker("idle")
		idle.nothing()
		ear := w.listen(engine.BellChannel(w.p, "idle"))
		g.complete(a, "")
		ear.hears("w")
		same(w, "claimed", len(idle.claim(10)), 1)
	}},
}
