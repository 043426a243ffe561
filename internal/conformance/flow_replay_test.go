package conformance

import (
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// replays replays members in one call and tells what became of each.
func (g *graph) replays(q engine.Replay, nodes ...string) (out []string) {
	g.Helper()
	var ids []flowfabric.ExecutionID
	for _, node := range nodes {
		ids = append(ids, g.id.Member(node))
	}
	answers, err := g.e.ReplayFlow(g.ctx, g.id, q, ids)
	g.no(err)
	g.check()
	for _, a := range answers {
		text := string(a.State)
		if a.Err != nil {
			text = flowfabric.CodeOf(a.Err)
		}
		if a.Already {
			text += " already"
		}
		out = append(out, text)
	}
	return out
}

// How members run again, and with them the flow that had ended.
var flowReplayScenarios = []scenario{
	{name: "a race that nobody won can be replayed", run: func(w *env) {
		g := w.flow().fan(3, anyOf).submit(engine.SealClosed)
		for _, c := range g.claim() {
			g.fail(c)
		}
		g.are(flowfabric.Skipped, "end")
		g.ends(flowfabric.FlowFailed)
		same(w, "group", g.group("end"), "0 3 0 of 3 impossible")
		w.replay(g.id.Member("end"), engine.Replay{})
		same(w, "open again", g.group("end"), "0 0 0 of 3 pending")
		w.code(g.id.Member("end"), "R3p")
		w.replay(g.id.Member("r1"), engine.Replay{})
		g.complete(g.claim()["r1"], "won")
		end := g.claim()["end"]
		same(w, "claimed", fmt.Sprintf("%s %q", end.Type, end.Inputs), `replay map["from-r1":"won"]`)
		g.complete(end, "")
		g.ends(flowfabric.FlowCompleted) // the others' failures are tolerated
	}},
	{name: "one call replays a member and everything that it skipped", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).node("c", []string{"b"}).node("d",
			[]string{"a", "c"}).node("other", nil).submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["a"])
		g.complete(c["other"], "")
		g.ends(flowfabric.FlowFailed)
		same(w, "failing", g.header().Failing, 1)
		q := engine.Replay{Request: mint.UUID()}
		sameList(w, "replayed", g.replays(q, "a", "b", "c", "d"), "waiting", "waiting_children", "waiting_children",
			"waiting_children")
		w.unchanged("again", func() {
			sameList(w, "replayed", g.replays(q, "a", "b", "c", "d"), "waiting already", "waiting_children already",
				"waiting_children already", "waiting_children already")
		})
		g.ends(flowfabric.FlowOpen)
		w.all("header", eq(g.header().Failing, 0), eq(g.header().EndedAt.IsZero(), true))
		for _, node := range []string{"a", "b", "c", "d"} {
			g.complete(g.claim()[node], node)
		}
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "each member in a replay call is accepted or refused alone", run: func(w *env) {
		g := w.flow().node("a", nil).node("f", nil).node("s", nil).submit(engine.SealOpen)
		other := w.flow().node("theirs", nil).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["a"], "")
		g.fail(c["f"])
		ids := []flowfabric.ExecutionID{g.id.Member("a"), g.id.Member("f"), g.id.Member("s"), other.id.Member("theirs"),
			g.id.Member("nobody"), g.id.Member("f")}
		answers, err := w.e.ReplayFlow(w.ctx, g.id, engine.Replay{}, ids)
		w.no(err)
		w.check()
		for i, want := range []struct {
			state   flowfabric.PublicState
			already bool
			err     string
		}{{err: "replay_not_allowed"}, {state: "waiting"}, {err: "execution_not_terminal"},
			{err: "execution_not_in_flow"}, {err: "execution_not_found"},
			{state: "waiting", already: true}} {
			a := answers[i]
			w.all(fmt.Sprint("answer ", i), eq(a.State, want.state), eq(a.Already, want.already),
				eq(flowfabric.CodeOf(a.Err), want.err))
		}
		same(w, "answers", len(answers), len(ids))
		w.unchanged("what is refused", func() {
			_, err := w.e.ReplayFlow(w.ctx, flowfabric.FlowID(mint.ID(w.p)), engine.Replay{}, ids[:1])
			w.is(err, denied.NoFlow)
			_, err = w.e.ReplayFlow(w.ctx, g.id, engine.Replay{}, nil)
			w.is(err, flowfabric.ErrInvalidInput)
			_, err = w.e.ReplayFlow(w.ctx, g.id, engine.Replay{}, make([]flowfabric.ExecutionID, 65))
			w.is(err, flowfabric.ErrInvalidInput)
		})
		sameList(w, "forced", g.replays(engine.Replay{Force: true, DropSteps: true}, "a"), "waiting")
	}},
	{name: "replays of a member are limited, and a cancelled flow allows none", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		for range 10 {
			g.fail(g.claim()["a"])
			w.replay(g.id.Member("a"), engine.Replay{})
		}
		g.fail(g.claim()["a"])
		sameList(w, "11th", g.replays(engine.Replay{}, "a"), "max_replays_exhausted")
		over := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		over.fail(over.claim()["a"])
		over.are(flowfabric.Skipped, "b")
		open := w.flow().node("a", nil).node("b", nil).submit(engine.SealClosed)
		open.fail(open.claim()["a"])
		open.abort(flowfabric.CancelAll)
		sameList(w, "cancelled", open.replays(engine.Replay{Force: true}, "a", "b"), "flow_cancelled", "flow_cancelled")
	}},
	{name: "on replay, a member that ran keeps its group, and a skipped one waits for failed upstreams",
		run: func(w *env) {
			g := w.flow().node("a", nil).node("b", nil).node("c", []string{"a", "b"}).node("d",
				[]string{"c"}).submit(engine.SealClosed)
			c := g.claim()
			g.complete(c["a"], "kept")
			g.fail(c["b"])
			g.are(flowfabric.Skipped, "c", "d")
			w.replay(g.id.Member("c"), engine.Replay{})
			same(w, "group", g.group("c"), "1 0 0 of 2 pending")
			w.replay(g.id.Member("d"), engine.Replay{})
			w.replay(g.id.Member("b"), engine.Replay{})
			g.fail(g.claim()["b"]) // fails again, and skips them again
			g.are(flowfabric.Skipped, "c", "d")
			g.ends(flowfabric.FlowFailed)
			w.all("counted", eq(g.header().Count[flowfabric.Skipped], 2), eq(g.header().Failing, 1))
			for _, node := range []string{"b", "c", "d"} {
				w.replay(g.id.Member(node), engine.Replay{})
			}
			g.complete(g.claim()["b"], "new")
			first := g.claim()["c"]
			same(w, "inputs", fmt.Sprintf("%q", first.Inputs), `map["from-a":"kept" "from-b":"new"]`)
			g.fail(first)
			g.are(flowfabric.Skipped, "d")
			w.replay(g.id.Member("c"), engine.Replay{})
			w.replay(g.id.Member("d"), engine.Replay{})
			again := g.claim()["c"] // its group is satisfied: it runs at once
			same(w, "inputs", fmt.Sprintf("%s %q", again.Type, again.Inputs),
				`replay map["from-a":"kept" "from-b":"new"]`)
			g.complete(again, "")
			g.complete(g.claim()["d"], "")
			g.ends(flowfabric.FlowCompleted)
		}},
	{name: "a late input is delivered when the member is replayed", run: func(w *env) {
		g := w.flow().fan(2, anyOf).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["r0"], "0")
		g.complete(c["r1"], "1")
		g.fail(g.claim()["end"])
		g.ends(flowfabric.FlowFailed)
		w.replay(g.id.Member("end"), engine.Replay{})
		same(w, "inputs", fmt.Sprintf("%q", g.claim()["end"].Inputs), `map["from-r0":"0" "from-r1":"1"]`)
	}},
	{name: "an input that came late stays late when its member completes again", run: func(w *env) {
		g := w.flow().fan(2, anyOf).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["r0"], "0")
		g.complete(c["r1"], "1")
		before := g.group("end")
		end := g.claim()["end"]
		w.replay(g.id.Member("r1"), engine.Replay{Force: true})
		g.complete(g.claim()["r1"], "2")
		same(w, "group", g.group("end"), before)
		w.release(end.Fence)
		same(w, "inputs", fmt.Sprintf("%q", g.claim()["end"].Inputs), `map["from-r0":"0"]`)
	}},
	{name: "a member that watches a staged one is replayed, and runs when the flow is released", run: func(w *env) {
		g := w.flow().node("a", nil).node("watch", []string{"a"}, allEnded).stage()
		w.cancel(g.id.Member("watch"))
		w.cancel(g.id.Member("a"))
		w.replay(g.id.Member("watch"), engine.Replay{})
		g.submitted(engine.SealClosed)
		g.complete(g.claim()["watch"], "")
	}},
	{name: "a flow refuses replays until its backlog of ends is resolved", run: func(w *env) {
		g := w.flow().node("a", nil)
		for i := range 100 {
			g.node(fmt.Sprint("n", i), []string{"a"}, unnamed)
		}
		g.submit(engine.SealClosed)
		g.fail(g.claim()["a"])
		w.unchanged("pending", func() {
			_, err := w.e.ReplayExecution(w.ctx, g.id.Member("a"), engine.Replay{})
			w.is(err, denied.ResolutionPending)
			sameList(w, "each", g.replays(engine.Replay{}, "a", "n0"), "resolution_pending", "resolution_pending")
		})
		g.drain()
		w.replay(g.id.Member("n99"), engine.Replay{})
		w.replay(g.id.Member("a"), engine.Replay{})
		g.complete(g.claim()["a"], "")
		g.drain()
		g.are(flowfabric.Waiting, "n99")
		g.are(flowfabric.Skipped, "n0") // nobody replayed it
	}},
	{name: "replayed siblings do not decide a group again", run: func(w *env) {
		g := w.flow().fan(3, anyOf, cancelRest).submit(engine.SealClosed)
		g.complete(g.claim()["r0"], "0")
		g.complete(g.claim()["end"], "")
		g.ends(flowfabric.FlowCompleted)
		w.replay(g.id.Member("r1"), engine.Replay{})
		g.ends(flowfabric.FlowOpen)
		g.complete(g.claim()["r1"], "1")
		same(w, "group", g.group("end"), "2 1 0 of 3 satisfied")
		g.are(flowfabric.Completed, "end")
		g.ends(flowfabric.FlowCompleted)
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{Cancelled: 2})
	}},
}
