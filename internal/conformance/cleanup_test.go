package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/record"
)

func allEnded(m *engine.FlowMember)  { m.Policy = codes.AllEnded }
func anyFailed(m *engine.FlowMember) { m.Policy = codes.AnyFailed }

// told is what a member reads of its upstreams, by node.
func (g *graph) told(node string) string {
	g.Helper()
	list, err := g.e.Upstreams(g.ctx, g.id.Member(node))
	g.no(err)
	var out []string
	for _, up := range list {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s:%s %s", up.Node, up.Outcome, up.Category)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Nodes that run whatever those they depend on came to, and flows that fail fast.
var cleanupScenarios = []scenario{
	{name: "cleanup runs once all its upstreams have ended, in whatever way, and is told how", run: func(w *env) {
		g := w.flow().node("good", nil).node("bad", nil).node("stopped", nil).node("late", nil,
			as(func(x *engine.NewExecution) { x.Deadline = flowfabric.Millis(time.Minute) })).
			node("behind", []string{"bad"}).
			node("cleanup", []string{"good", "bad", "stopped", "late", "behind"}, allEnded).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["good"], "result")
		g.fail(c["bad"])
		same(w, "group", g.group("cleanup"), "1 1 1 of 5 pending")
		g.are(flowfabric.Skipped, "behind")
		_, err := w.e.CancelExecution(w.ctx, g.id.Member("stopped"), engine.Cancellation{Source: engine.CancelOperator})
		w.no(err)
		g.are(flowfabric.WaitingChildren, "cleanup")
		e := w.why(g.id.Member("cleanup"))
		w.all("why", eq(e.Reason, explain.WhyAwaitingOthers),
			eq(strings.Contains(e.Sentence,
				"4 of 5 have (1 succeeded, 2 failed, were cancelled or expired, 1 were skipped). 1 upstream is open"),
				true))
		g.w = w.worker("later") // the lease of the first is over by then
		w.advance(2 * time.Minute)
		w.tick()
		same(w, "group", g.group("cleanup"), "1 3 1 of 5 satisfied")
		cleanup := g.claim()["cleanup"]
		same(w, "inputs", fmt.Sprintf("%q", cleanup.Inputs), `map["from-good":"result"]`)
		same(w, "told", g.told("cleanup"),
			"bad:failed broken, behind:skipped dependency_impossible, good:completed, late:expired execution_deadline, stopped:cancelled")
		g.complete(cleanup, "")
	}},
	{name: "a flow whose work failed has failed, although its cleanup succeeded", run: func(w *env) {
		g := w.flow().node("work", nil).node("cleanup", []string{"work"}, allEnded).submit(engine.SealClosed)
		g.fail(g.claim()["work"])
		g.ends(flowfabric.FlowOpen)
		g.complete(g.claim()["cleanup"], "")
		g.ends(flowfabric.FlowFailed)
		same(w, "failing", g.header().Failing, 1)
	}},
	{name: "a flow whose cleanup failed has failed, although its work succeeded", run: func(w *env) {
		g := w.flow().node("work", nil).node("cleanup", []string{"work"}, allEnded).submit(engine.SealClosed)
		g.complete(g.claim()["work"], "")
		g.fail(g.claim()["cleanup"])
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "a failure that a quorum tolerates fails no flow because cleanup sees it", run: func(w *env) {
		g := w.flow().fan(2, anyOf).node("cleanup", []string{"r0", "r1"}, allEnded).node("page", []string{"r0", "r1"},
			anyFailed).submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["r0"])
		g.complete(c["r1"], "")
		for _, c := range g.claim() {
			g.complete(c, "")
		}
		g.are(flowfabric.Completed, "end", "cleanup", "page")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "what is for failures is skipped when all succeeded, with what is behind it, and fails nothing",
		run: func(w *env) {
			g := w.flow().node("work", nil).node("undo", []string{"work"}, anyFailed).node("tell",
				[]string{"undo", "work"}).
				node("page", []string{"undo", "tell"}, anyFailed).node("close", []string{"page", "work"},
				allEnded).submit(engine.SealClosed)
			g.complete(g.claim()["work"], "")
			g.are(flowfabric.Skipped, "undo", "tell", "page")
			for _, node := range []string{"undo", "tell", "page"} {
				w.all(node, eq(g.shown(node).Category, "not_needed"), eq(g.shown(node).Group.Optional, true))
			}
			w.all("not optional", eq(g.shown("close").Group.Optional, false), eq(g.shown("work").Group == nil, true))
			e := w.why(g.id.Member("undo"))
			w.all("why", eq(e.Reason, explain.WhySkipped),
				eq(strings.Contains(e.Sentence, "nothing that it depends on failed"), true))
			g.complete(g.claim()["close"], "")
			g.ends(flowfabric.FlowCompleted)
			same(w, "failing", g.header().Failing, 0)
		}},
	{name: "what is for failures runs when one failed, and what is behind it after that", run: func(w *env) {
		g := w.flow().node("work", nil).node("next", []string{"work"}).node("undo", []string{"next"},
			anyFailed).node("tell", []string{"undo"}).
			node("page", []string{"tell"}, anyFailed).submit(engine.SealClosed)
		g.fail(g.claim()["work"])
		undo := g.claim()["undo"]
		same(w, "told", g.told("undo"), "next:skipped dependency_impossible")
		g.fail(undo)
		g.are(flowfabric.Skipped, "tell")
		same(w, "why", g.shown("tell").Category, "dependency_impossible")
		g.complete(g.claim()["page"], "")
		g.ends(flowfabric.FlowFailed)
		same(w, "failing", g.header().Failing, 3) // next, undo and tell
	}},
	{name: "what waits for work and for what failures need hides no failure of the work", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil).node("undo", []string{"a"}, anyFailed).node("join",
			[]string{"undo", "b"}).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["a"], "")
		g.are(flowfabric.Skipped, "undo", "join")
		g.fail(c["b"]) // after join was skipped because nothing had failed
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "cancelling a flow cancels its cleanup", run: func(w *env) {
		g := w.flow().node("work", nil).node("cleanup", []string{"work"}, allEnded).submit(engine.SealClosed)
		g.claim()
		g.abort(flowfabric.CancelAll)
		g.are(flowfabric.Cancelled, "work", "cleanup")
		g.ends(flowfabric.FlowCancelled)
	}},
	{name: "cancelling a node leaves its cleanup to run", run: func(w *env) {
		g := w.flow().node("work", nil).node("next", []string{"work"}).node("cleanup", []string{"work", "next"},
			allEnded).submit(engine.SealClosed)
		g.claim()
		_, err := w.e.CancelExecution(w.ctx, g.id.Member("work"), engine.Cancellation{Source: engine.CancelOperator})
		w.no(err)
		g.complete(g.claim()["cleanup"], "")
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "cleanup that is not ready waits for what is replayed, a success as well", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil).node("c", nil).node("cleanup", []string{"a", "b", "c"},
			allEnded).submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["a"])
		g.complete(c["b"], "first")
		same(w, "group", g.group("cleanup"), "1 1 0 of 3 pending")
		w.replay(g.id.Member("a"), engine.Replay{})
		w.replay(g.id.Member("b"), engine.Replay{Force: true})
		same(w, "open again", g.group("cleanup"), "0 0 0 of 3 pending")
		g.complete(c["c"], "")
		again := g.claim()
		g.complete(again["a"], "repaired")
		g.are(flowfabric.WaitingChildren, "cleanup")
		g.complete(again["b"], "second")
		cleanup := g.claim()["cleanup"]
		same(w, "inputs", fmt.Sprintf("%q", cleanup.Inputs), `map["from-a":"repaired" "from-b":"second" "from-c":""]`)
		g.complete(cleanup, "")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "cleanup that ran waits, when it is replayed, for what runs again", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil).node("cleanup", []string{"a", "b"}, allEnded).node("page",
			[]string{"a", "b"}, anyFailed).submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["a"])
		g.complete(c["b"], "")
		c = g.claim()
		g.complete(c["cleanup"], "")
		g.fail(c["page"])
		g.ends(flowfabric.FlowFailed)
		same(w, "failing", g.header().Failing, 2)
		w.replay(g.id.Member("a"), engine.Replay{})
		same(w, "it has run", g.group("cleanup"), "1 1 0 of 2 satisfied")
		w.replay(g.id.Member("cleanup"), engine.Replay{Force: true})
		w.replay(g.id.Member("page"), engine.Replay{})
		same(w, "it waits", g.group("cleanup"), "1 0 0 of 2 pending")
		g.are(flowfabric.WaitingChildren, "cleanup", "page")
		g.complete(g.claim()["a"], "")
		g.are(flowfabric.Skipped, "page") // it ran before, and nothing is left that failed
		same(w, "category", g.shown("page").Category, "not_needed")
		g.complete(g.claim()["cleanup"], "")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "behind what is for failures, on replay, a failure waits for it and a success stays", run: func(w *env) {
		g := w.flow().node("work", nil).node("undo", []string{"work"}, anyFailed).node("tell",
			[]string{"undo"}).node("log", []string{"undo"}).submit(engine.SealClosed)
		g.fail(g.claim()["work"])
		g.complete(g.claim()["undo"], "first")
		c := g.claim()
		g.fail(c["tell"])
		g.complete(c["log"], "logged")
		g.ends(flowfabric.FlowFailed)
		again := func() {
			w.Helper()
			w.replay(g.id.Member("work"), engine.Replay{})
			w.replay(g.id.Member("undo"), engine.Replay{Force: true})
			w.replay(g.id.Member("tell"), engine.Replay{})
			same(w, "it waits", g.group("tell"), "0 0 0 of 1 pending")
			g.are(flowfabric.WaitingChildren, "undo", "tell")
			g.are(flowfabric.Completed, "log")
		}
		again()
		g.fail(g.claim()["work"])
		g.complete(g.claim()["undo"], "second")
		tell := g.claim()["tell"]
		same(w, "inputs", fmt.Sprintf("%q", tell.Inputs), `map["from-undo":"second"]`)
		g.fail(tell)
		again()
		g.complete(g.claim()["work"], "")
		g.are(flowfabric.Skipped, "undo", "tell")
		same(w, "why", g.shown("tell").Category, "not_needed")
		g.are(flowfabric.Completed, "log") // what it did is done
		g.ends(flowfabric.FlowCompleted)
		w.replay(g.id.Member("log"), engine.Replay{Force: true}) // who asks has it judged anew
		g.are(flowfabric.Skipped, "log")
		same(w, "why", g.shown("log").Category, "not_needed")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "what is for failures is skipped again by a replay while nothing failed", run: func(w *env) {
		g := w.flow().node("work", nil).node("undo", []string{"work"}, anyFailed).submit(engine.SealClosed)
		g.complete(g.claim()["work"], "")
		g.ends(flowfabric.FlowCompleted)
		w.replay(g.id.Member("undo"), engine.Replay{})
		g.are(flowfabric.Skipped, "undo")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "cleanup that is ready before the release waits for it", run: func(w *env) {
		g := w.flow().node("work", nil).node("cleanup", []string{"work"}, allEnded).stage()
		_, err := w.e.CancelExecution(w.ctx, g.id.Member("work"), engine.Cancellation{Source: engine.CancelOperator})
		w.no(err)
		g.check()
		g.are(flowfabric.WaitingChildren, "cleanup")
		same(w, "nothing", len(g.claim()), 0)
		g.submitted(engine.SealClosed)
		g.complete(g.claim()["cleanup"], "")
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "cleanup that joins after all have ended runs at once, and what is for failures is skipped",
		run: func(w *env) {
			g := w.flow().node("work", nil).submit(engine.SealOpen)
			g.complete(g.claim()["work"], "done")
			g.join("cleanup", []string{"work"}, allEnded)
			g.join("undo", []string{"work"}, anyFailed)
			g.join("tell", []string{"undo"})
			g.are(flowfabric.Waiting, "cleanup")
			g.are(flowfabric.Skipped, "undo", "tell")
			g.submitted(engine.SealClosed)
			g.complete(g.claim()["cleanup"], "")
			g.ends(flowfabric.FlowCompleted)
		}},
	{name: "cleanup of a thousand upstreams runs after the last", run: func(w *env) {
		const n = 1000
		all := nodesOf("r", n)
		g := w.flow().node("root", nil)
		for _, node := range all {
			g.node(node, []string{"root"}, unnamed)
		}
		g.node("cleanup", all, unnamed, allEnded).submit(engine.SealClosed)
		g.fail(g.claim()["root"])
		g.drain()
		same(w, "group", g.group("cleanup"), fmt.Sprintf("0 0 %d of %d satisfied", n, n))
		g.complete(g.claim()["cleanup"], "")
		g.ends(flowfabric.FlowFailed)
		same(w, "failing", g.header().Failing, n)
	}},
	{name: "a node with many dependants knows how many of them stand aside", run: func(w *env) {
		g := w.flow().node("work", nil)
		for _, node := range nodesOf("cleanup", 20) {
			g.node(node, []string{"work"}, allEnded)
		}
		g.submit(engine.SealClosed)
		g.fail(g.claim()["work"])
		for _, c := range g.claim() {
			g.complete(c, "")
		}
		same(w, "failing", g.header().Failing, 1)
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "a flow fails fast: the first failure cancels what an all-of needs no more", run: func(w *env) {
		g := w.flow().fan(4, cancelRest).node("cleanup", nodesOf("r", 4), allEnded).submit(engine.SealClosed)
		c := g.claim()
		g.complete(c["r0"], "")
		g.fail(c["r1"])
		g.drain()
		g.are(flowfabric.Skipped, "end")
		g.are(flowfabric.Cancelled, "r2", "r3") // cleanup needs nobody to succeed
		same(w, "reason", g.reason("r2"), "sibling_quorum_impossible")
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{Cancelled: 2})
		same(w, "the holders are told", len(w.renew(g.w, 0).Lost), 2)
		g.complete(g.claim()["cleanup"], "")
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "a flow that fails fast spares what another undecided node needs", run: func(w *env) {
		g := w.flow().fan(3, cancelRest).node("other", []string{"r2"}).submit(engine.SealClosed)
		c := g.claim()
		g.fail(c["r0"])
		g.drain()
		g.are(flowfabric.Cancelled, "r1")
		g.are(flowfabric.Active, "r2")
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{Cancelled: 1, Spared: 1})
		g.complete(c["r2"], "")
		g.complete(g.claim()["other"], "")
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "an audit lets cleanup run that was not told of an end, and knows which failures count", run: func(w *env) {
		w.quiet = true
		g := w.flow().node("work", nil).node("good", nil).node("cleanup", []string{"work", "good"},
			allEnded).node("undo", []string{"good"}, anyFailed).submit(engine.SealClosed)
		c := g.claim()
		w.editLinks(ids.UUID(g.id.Member("work")), func(l *record.Links) { l.To = nil }) // the work of its end is lost
		g.fail(c["work"])
		g.complete(c["good"], "")
		g.are(flowfabric.WaitingChildren, "cleanup")
		g.are(flowfabric.Skipped, "undo")
		w.set("HINCRBY", w.k.Flow(ids.UUID(g.id)), "lv", "1")
		r := w.audit(true)
		if !r.Sound || r.Kinds[engine.FindingMissing] != 2 || r.Kinds[engine.FindingCount] != 1 {
			w.Fatalf("found %s", found(r))
		}
		w.quiet = false
		w.check()
		same(w, "failing", g.header().Failing, 1)
		same(w, "again", found(w.audit(true)), "")
		g.complete(g.claim()["cleanup"], "")
		g.ends(flowfabric.FlowFailed)
	}},
	{name: "children may have cleanup", run: func(w *env) {
		parent := w.create()
		c := w.worker("parent").one(parent)
		work := w.child(parent, "w", "work")
		cleanup := w.child(parent, "w", "cleanup")
		cleanup.Policy, cleanup.Edges = codes.AllEnded, []engine.FlowEdge{{From: work.ID}}
		_, err := childtest.Wait(w.ctx, w.e, c.Fence,
			engine.ChildWait{Name: "w", Mode: engine.WaitAll, Children: []engine.FlowMember{work, cleanup}})
		w.no(err)
		g := &graph{env: w, id: flowfabric.FlowID(parent), w: w.worker("children")}
		g.fail(g.claim()["work"])
		g.complete(g.claim()["cleanup"], "")
		w.code(parent, "R1i")
	}},
}
