package conformance

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// What a flow may look like, and how it is put together. Edges enter with the member they lead into, and come from
// members that are there before it, so there is no call that adds an edge.
var flowBuildScenarios = []scenario{
	{name: "a flow created twice exists once, and another definition is a conflict", run: func(w *env) {
		q := engine.NewFlow{ID: flowfabric.FlowID(mint.ID(w.p)), Namespace: "default", Kind: "k",
			Creator: "me", Digest: "d1", Tags: map[string]string{"a.b": "c"}}
		made, err := w.e.CreateFlow(w.ctx, q)
		w.no(err)
		w.all("made", eq(made.Already, false), eq(made.State, "staging"), eq(made.Revision, 0), eq(made.Members, 0))
		w.unchanged("again", func() {
			again, err := w.e.CreateFlow(w.ctx, q)
			w.no(err)
			w.all("again", eq(again.Already, true), eq(again.State, "staging"))
		})
		for what, change := range map[string]func(*engine.NewFlow){"kind": func(q *engine.NewFlow) { q.Kind = "other" },
			"namespace": func(q *engine.NewFlow) { q.Namespace = "other" },
			"digest":    func(q *engine.NewFlow) { q.Digest = "d2" },
			"no digest": func(q *engine.NewFlow) { q.Digest = "" }} {
			other := q
			change(&other)
			w.unchanged(what, func() {
				_, err := w.e.CreateFlow(w.ctx, other)
				w.is(err, denied.FlowConflict)
			})
		}
		g := &graph{env: w, id: q.ID}
		h := g.header()
		w.all("header", eq(h.State, "staging"), eq(h.Namespace, "default"), eq(h.Kind, "k"), eq(h.Creator, "me"),
			eq(h.Digest, "d1"), eqDeep(h.Tags, map[string]string{"a.b": "c"}), eq(h.Revision, 0), eq(h.Members, 0),
			eq(h.Edges, 0), eq(h.ReleasedAt.IsZero(), true), eq(h.EndedAt.IsZero(), true))
		taken := w.create()
		w.unchanged("the id of an execution", func() {
			_, err := w.e.CreateFlow(w.ctx,
				engine.NewFlow{ID: flowfabric.FlowID(taken), Namespace: "default", Kind: "k"})
			w.is(err, flowfabric.ErrInvalidInput)
		})
		w.unchanged("a bad tag", func() {
			_, err := w.e.CreateFlow(w.ctx, engine.NewFlow{ID: flowfabric.FlowID(mint.ID(w.p)),
				Namespace: "default", Kind: "k", Tags: map[string]string{"A": "c"}})
			w.is(err, denied.TagKey)
		})
	}},
	{name: "one call makes a flow of up to 100 members and releases it, and made again it changes nothing",
		run: func(w *env) {
			g := w.flow().node("a", nil).node("b", []string{"a"}).node("c", []string{"a", "b"}, quorum(1),
				cancelRest).node("later", nil, as(delay(time.Minute)))
			q := g.whole(engine.SealClosed)
			q.Creator, q.Digest, q.Tags = "me", "d", map[string]string{"a.b": "c"}
			made, err := w.e.CreateFlow(w.ctx, q)
			w.no(err)
			w.check()
			w.all("made", eq(made.Already, false), eq(made.State, "open"), eq(made.Revision, 1), eq(made.Members, 4),
				eq(made.Edges, 3), eq(made.More, false))
			h := g.header()
			w.all("header", eq(h.State, "open"), eq(h.Seal, "seal"), eq(h.Creator, "me"), eq(h.Digest, "d"),
				eqDeep(h.Tags, map[string]string{"a.b": "c"}), eq(h.Members, 4), eq(h.Edges, 3),
				eq(h.ReleasedAt.Equal(h.CreatedAt), true), eq(h.EndedAt.IsZero(), true))
			g.are(flowfabric.WaitingChildren, "b", "c")
			g.are(flowfabric.Delayed, "later")
			again := func(state string) {
				w.unchanged("again: "+state, func() {
					made, err := w.e.CreateFlow(w.ctx, q)
					w.no(err)
					w.all("again", eq(made.Already, true), eq(made.State, flowfabric.FlowState(state)))
					other := q
					other.Digest = "d2"
					_, err = w.e.CreateFlow(w.ctx, other)
					w.is(err, denied.FlowConflict)
				})
			}
			again("open")
			w.advance(25 * time.Hour) // nobody gives it up
			w.settleTime()
			for range 3 {
				for _, c := range g.claim() {
					g.complete(c, "")
				}
			}
			g.ends(flowfabric.FlowCompleted)
			again("completed")
			full := w.flow()
			for _, node := range nodesOf("n", 100) {
				full.node(node, nil)
			}
			full.submit(engine.SealGrowing)
			w.all("roots", eq(len(full.claim()), 100), eq(full.header().Seal, "grow"))
			open := w.flow().node("a", nil).submit(engine.SealOpen)
			open.join("b", []string{"a"})
			w.cancel(open.id.Member("a"))
			open.ends(flowfabric.FlowOpen)
		}},
	{name: "a flow that is refused in its first call leaves nothing", run: func(w *env) {
		other := w.flow().node("theirs", nil).stage()
		g := w.flow().node("a", nil)
		bad := func(m engine.FlowMember) []engine.FlowMember { return []engine.FlowMember{g.nodes[0], m} }
		self := g.node("self", []string{"self"}).last()
		unknown := g.node("unknown", []string{"nobody"}).last()
		foreign := g.node("foreign", nil, as(func(x *engine.NewExecution) { x.Namespace = "other" })).last()
		taken := g.node("taken", nil).last()
		taken.ID = w.create()
		theirs := g.node("theirs", nil).last()
		theirs.ID = other.id.Member("theirs")
		many := make([]engine.FlowMember, 101)
		for i, node := range nodesOf("n", len(many)) {
			many[i] = g.node(node, nil).last()
		}
		var dense []engine.FlowMember // 8 * 39 and 780 edges: more than 1,000
		for i, node := range nodesOf("dense", 40) {
			dense = append(dense, g.node(node, nodesOf("dense", i)).last())
		}
		q := g.whole(engine.SealClosed)
		for _, c := range []struct {
			what, node string
			want       error
			change     func(q *engine.NewFlow)
		}{
			{"itself", "", denied.SelfEdge, func(q *engine.NewFlow) { q.Members = bad(self) }},
			{"nobody", "unknown", denied.NotInFlow, func(q *engine.NewFlow) { q.Members = bad(unknown) }},
			{"namespace", "foreign", denied.Namespace, func(q *engine.NewFlow) { q.Members = bad(foreign) }},
			{"taken", "taken", denied.Idempotency, func(q *engine.NewFlow) { q.Members = bad(taken) }},
			{"theirs", "theirs", denied.OtherFlow, func(q *engine.NewFlow) { q.Members = bad(theirs) }},
			{"101 members", "", flowfabric.ErrInvalidInput, func(q *engine.NewFlow) { q.Members = many }},
			{"too dear", "", flowfabric.ErrInvalidInput, func(q *engine.NewFlow) { q.Members = dense }},
			{"mode", "", flowfabric.ErrInvalidInput, func(q *engine.NewFlow) { q.Mode = "other" }},
			{"tag", "", denied.TagKey, func(q *engine.NewFlow) { q.Tags = map[string]string{"A": "c"} }},
			{"kind", "", flowfabric.ErrInvalidInput, func(q *engine.NewFlow) { q.Kind = "" }},
		} {
			x := q
			c.change(&x)
			w.unchanged(c.what, func() {
				_, err := w.e.CreateFlow(w.ctx, x)
				w.is(err, c.want)
				if e, ok := errors.AsType[*flowfabric.Error](err); c.node != "" &&
					(!ok || e.Detail[len(e.Detail)-1] != c.node) {
					w.Fatalf("%s: %v does not name %s", c.what, err, c.node)
				}
			})
		}
		w.usualLane(flowfabric.LaneDraining, "me")
		w.unchanged("a closed lane", func() {
			_, err := w.e.CreateFlow(w.ctx, q)
			w.is(err, flowfabric.ErrLaneClosed)
		})
		w.usualLane(flowfabric.LaneActive, "me")
		made, err := w.e.CreateFlow(w.ctx, q)
		w.no(err)
		w.check()
		w.all("made", eq(made.Already, false), eq(made.State, "open"), eq(made.Members, 1))
	}},
	{name: "a flow that was cut short is completed by the call that makes all of it", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"})
		part := g.whole("")
		part.Members = g.nodes[:1]
		first, err := w.e.CreateFlow(w.ctx, part)
		w.no(err)
		w.check()
		w.all("first", eq(first.Already, false), eq(first.State, "staging"), eq(first.Members, 1))
		w.unchanged("the same part again", func() {
			again, err := w.e.CreateFlow(w.ctx, part)
			w.no(err)
			w.all("again", eq(again.Already, true), eq(again.State, "staging"), eq(again.Members, 1))
		})
		w.settleTime()
		same(w, "claimable", len(g.claim()), 0)
		w.advance(23 * time.Hour)
		g.node("c", nil)
		part.Members = g.nodes
		more, err := w.e.CreateFlow(w.ctx, part)
		w.no(err)
		w.check()
		w.all("more", eq(more.Already, false), eq(more.State, "staging"), eq(more.Revision, 2), eq(more.Members, 3),
			eq(more.Edges, 1))
		w.advance(23 * time.Hour) // the day begins anew with every part
		w.settleTime()
		g.node("d", nil)
		whole, err := w.e.CreateFlow(w.ctx, g.whole(engine.SealClosed))
		w.no(err)
		w.check()
		w.all("whole", eq(whole.Already, false), eq(whole.State, "open"), eq(whole.Members, 4), eq(whole.Edges, 1),
			eq(whole.More, false))
		w.unchanged("it is released once", func() {
			again, err := w.e.CreateFlow(w.ctx, g.whole(engine.SealGrowing))
			w.no(err)
			w.all("again", eq(again.Already, true), eq(again.State, "open"))
		})
		same(w, "roots", len(g.claim()), 3)
		w.advance(25 * time.Hour)
		w.settleTime()
		g.ends(flowfabric.FlowOpen)
	}},
	{name: "members staged twice count once, and a writer at a stale revision is refused", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).stage()
		w.unchanged("again", func() {
			again, err := w.e.StageFlow(w.ctx, g.id, nil, g.nodes)
			w.no(err)
			w.all("again", eq(again.Already, true), eq(again.Revision, 1), eq(again.Members, 2), eq(again.Edges, 1))
		})
		revision := uint64(1)
		c := g.node("c", []string{"a"}).last()
		added, err := w.e.StageFlow(w.ctx, g.id, &revision, []engine.FlowMember{c})
		w.no(err)
		w.check()
		w.all("added", eq(added.Already, false), eq(added.Revision, 2), eq(added.Members, 3), eq(added.Edges, 2))
		d := g.node("d", []string{"a"}).last()
		w.refuses("stale", denied.StaleRevision, "2", func() error {
			_, err := w.e.StageFlow(w.ctx, g.id, &revision, []engine.FlowMember{d})
			return err
		})
		w.unchanged("the one that won asks again", func() {
			again, err := w.e.StageFlow(w.ctx, g.id, &revision, []engine.FlowMember{c})
			w.no(err)
			same(w, "again", again.Already, true)
		})
		some, err := w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{c, d})
		w.no(err)
		w.check()
		w.all("one of two is new", eq(some.Already, false), eq(some.Revision, 3), eq(some.Members, 4),
			eq(some.Edges, 3))
	}},
	{name: "one invalid member refuses the whole call, and the error names it", run: func(w *env) {
		other := w.flow().node("theirs", nil).stage()
		g := w.flow().node("a", nil).stage()
		good := g.node("good", nil).last()
		theirs := g.node("theirs", nil).last()
		theirs.ID = other.id.Member("theirs")
		lone := g.node("lone", nil).last()
		lone.ID = w.create()
		twice := g.node("a", nil).last()
		twice.Node = "b"
		unknown := g.node("x", []string{"nobody"}).last()
		later := g.node("later", []string{"good"}).last()
		double := g.node("x", []string{"a"}).last()
		double.Edges = append(double.Edges, double.Edges[0])
		double.Edges[1].Input = "other"
		foreign := g.node("x", nil, as(func(x *engine.NewExecution) { x.Namespace = "other" })).last()
		names := g.node("x", []string{"a", "good"}).last()
		names.Edges[1].Input = names.Edges[0].Input
		for _, c := range []struct {
			want error
			node string
			bad  []engine.FlowMember
		}{
			{denied.OtherFlow, "theirs", []engine.FlowMember{good, theirs}},
			{denied.Idempotency, "lone", []engine.FlowMember{good, lone}},
			{denied.Idempotency, "b", []engine.FlowMember{good, twice}},
			{denied.NotInFlow, "x", []engine.FlowMember{good, unknown}},
			{denied.NotInFlow, "later", []engine.FlowMember{later, good}},
			{denied.DuplicateEdge, "", []engine.FlowMember{good, double}},
			{denied.Namespace, "x", []engine.FlowMember{good, foreign}},
			{flowfabric.ErrInvalidInput, "good", []engine.FlowMember{good, good}},
			{flowfabric.ErrInvalidInput, "", []engine.FlowMember{good, names}},
		} {
			g.rejects(c.want, c.node, c.bad...)
		}
		w.refuses("another flow's", denied.OtherFlow, ids.UUID(other.id).String(), func() error {
			_, err := w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{theirs})
			return err
		})
		w.unchanged("no such flow", func() {
			_, err := w.e.StageFlow(w.ctx, flowfabric.FlowID(mint.ID(w.p)), nil,
				[]engine.FlowMember{good})
			w.is(err, denied.NoFlow)
		})
	}},
	{name: "a call stages at most 1,000 edges, eight less for a further member, one for each tag", run: func(w *env) {
		g := w.flow().node("a", nil).submit(engine.SealGrowing)
		strangers := make([]string, 1001)
		for i := range strangers {
			strangers[i] = fmt.Sprint("n", i)
		}
		tagged := as(tags(map[string]string{"a.b": "c"}))
		for n, code := range map[int]string{991: "execution_not_in_flow", 992: "invalid_input"} {
			b, c := g.node("b", strangers[:n], unnamed).last(), g.node("c", nil, tagged).last()
			w.unchanged(code, func() { same(w, code, w.fcall("ff_flow_stage", wireStage(g.id, b, c)...).code, code) })
		}
	}},
	{name: "a member of a flow that is not released is explained by that", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).stage()
		same(w, "staged", w.why(g.id.Member("b")).Reason, explain.WhyFlowStaging)
		g.submitted(engine.SealClosed)
		same(w, "released", w.why(g.id.Member("b")).Reason, explain.WhyAwaitingOthers)
	}},
	{name: "a member that joins late is told how others ended, in whatever way", run: func(w *env) {
		g := w.flow().node("good", nil).node("bad", nil).node("stopped", nil).node("behind", []string{"bad"}).
			node("late", nil, as(deadline(time.Minute))).node("open", nil).submit(engine.SealGrowing)
		c := g.claim()
		g.join("early", []string{"good", "open"}, allEnded)
		same(w, "before", g.group("early"), "0 0 0 of 2 pending")
		g.complete(c["good"], "")
		g.fail(c["bad"])
		w.cancel(g.id.Member("stopped"))
		w.advance(2 * time.Minute)
		w.tick()
		g.are(flowfabric.Skipped, "behind")
		g.join("last", []string{"good", "bad", "stopped", "behind", "late", "open"}, allEnded)
		same(w, "after", g.group("last"), "1 3 1 of 6 pending")
	}},
	{name: "ended, sealed and cancelled flows accept no new member", run: func(w *env) {
		for what, c := range map[string]struct {
			mode engine.SealMode
			end  func(*graph)
			want error
		}{
			"sealed":    {engine.SealClosed, func(*graph) {}, denied.FlowSealed},
			"cancelled": {engine.SealOpen, func(g *graph) { g.abort(flowfabric.CancelFlow) }, denied.FlowTerminal},
			"completed": {engine.SealGrowing, func(g *graph) { g.complete(g.claim()["a"], "") }, denied.FlowTerminal},
			"failed":    {engine.SealGrowing, func(g *graph) { g.fail(g.claim()["a"]) }, denied.FlowTerminal},
		} {
			g := w.flow().node("a", nil).submit(c.mode)
			c.end(g)
			g.rejects(c.want, "", g.node("b", []string{"a"}).last())
			w.unchanged(what+", those that are there", func() {
				again, err := w.e.StageFlow(w.ctx, g.id, nil, g.nodes)
				w.no(err)
				same(w, "already", again.Already, true)
			})
			if what != "sealed" {
				w.unchanged(what+", sealed again", func() {
					_, _, err := w.e.SealFlow(w.ctx, g.id, engine.SealClosed, 1, 0)
					w.is(err, denied.FlowTerminal)
				})
			}
		}
	}},
	{name: "a member cannot depend on itself or on a later one", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).stage()
		g.rejects(denied.SelfEdge, "", g.node("x", []string{"x"}).last())
		g.rejects(denied.SelfEdge, "", g.node("c", nil).last(), g.node("x", []string{"x"}).last())
		// A cycle would need an edge into a member that is there: it is never added.
		a := g.node("a", []string{"b"}).last()
		w.unchanged("a cycle", func() {
			again, err := w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{a})
			w.no(err)
			same(w, "already", again.Already, true)
		})
		same(w, "edges", len(g.shown("a").Edges), 0)
	}},
	{name: "each step of a chain of 1,000 members is one call, however long the chain is", run: func(w *env) {
		w.quiet = true
		g := w.flow().begin()
		n := max(200, 1000/max(1, w.srv.Share))
		for i := range n {
			if i == 0 {
				g.node("n0", nil)
			} else {
				g.node(fmt.Sprint("n", i), []string{fmt.Sprint("n", i-1)})
			}
		}
		for first := 0; first < n; first += 100 {
			_, err := w.e.StageFlow(w.ctx, g.id, nil, g.nodes[first:first+100])
			w.no(err)
		}
		w.quiet = false
		_, _, err := w.e.SealFlow(w.ctx, g.id, engine.SealClosed, n, n-1)
		w.no(err)
		w.check()
		for i := range 20 { // each step is one call, however long the chain is
			c := g.w.claim(100)
			w.all("claimed", eq(len(c), 1), eq(c[0].Node, fmt.Sprint("n", i)))
			g.complete(c[0], "")
		}
		h := g.header()
		w.all("header", eq(h.Members, n), eq(h.Edges, n-1), eq(h.Count[flowfabric.Completed], 20),
			eq(h.Count[flowfabric.WaitingChildren], n-21))
	}},
	{name: "interrupted staging leaves whole calls, and another client can finish it", run: func(w *env) {
		g := w.flow().begin()
		for i := range 25 {
			root := fmt.Sprint("r", i)
			g.node(root, nil).node(fmt.Sprint("d", i), []string{root})
		}
		_, err := w.e.StageFlow(w.ctx, g.id, nil, g.nodes[:20])
		w.no(err)
		w.check()
		k := w.worker("w1")
		same(w, "claimable", len(k.claim(100)), 0)
		w.unchanged("released too early", func() {
			_, _, err := w.e.SealFlow(w.ctx, g.id, engine.SealClosed, len(g.nodes), g.edges)
			w.is(err, denied.FlowIncomplete)
			_, _, err = w.e.SealFlow(w.ctx, g.id, engine.SealClosed, 20, 11)
			w.is(err, denied.FlowIncomplete)
			_, _, err = w.e.SealFlow(w.ctx, g.id, engine.SealClosed, 21, 10)
			w.is(err, denied.FlowIncomplete)
		})
		_, err = w.e.StageFlow(w.ctx, g.id, nil, g.nodes) // another process, from the start
		w.no(err)
		w.check()
		state, more, err := w.e.SealFlow(w.ctx, g.id, engine.SealClosed, len(g.nodes), g.edges)
		w.no(err)
		w.check()
		w.all("released", eq(state, "open"), eq(more, false))
		same(w, "roots", len(k.claim(100)), 25)
		h := g.header()
		w.all("counted", eq(h.Members, 50), eq(h.Edges, 25), eq(h.Count[flowfabric.Active], 25),
			eq(h.Count[flowfabric.WaitingChildren], 25))
	}},
	{name: "a member can be added when its upstreams are running or have ended", run: func(w *env) {
		g := w.flow().node("a", nil).node("f", nil).node("s", nil).node("x", nil,
			as(delay(time.Hour))).submit(engine.SealOpen)
		c := g.claim()
		g.complete(c["a"], "result")
		g.fail(c["f"])
		g.ends(flowfabric.FlowOpen)
		g.join("after", []string{"a"})
		after := g.claim()["after"]
		same(w, "input", string(after.Inputs["from-a"]), "result")
		g.join("skipped", []string{"a", "f"})
		g.are(flowfabric.Skipped, "skipped")
		g.join("chained", []string{"skipped"})
		g.are(flowfabric.Skipped, "chained")
		g.join("behind", []string{"s"}) // its upstream is active: no matter, the edge is the new member's
		g.are(flowfabric.WaitingChildren, "behind")
		g.join("race", []string{"a", "x"}, anyOf, cancelRest)
		g.are(flowfabric.Cancelled, "x")
		g.join("one", []string{"f", "behind"}, anyOf)
		same(w, "group", g.group("one"), "0 1 0 of 2 pending")
		same(w, "dispositions", g.header().Siblings, engine.SiblingCancels{Cancelled: 1})
		for _, node := range []string{"race"} {
			g.complete(g.claim()[node], "")
		}
		g.complete(after, "")
		g.complete(c["s"], "")
		for range 2 {
			for _, c := range g.claim() {
				g.complete(c, "")
			}
		}
		g.ends(flowfabric.FlowOpen) // until it is sealed
		_, _, err := w.e.SealFlow(w.ctx, g.id, engine.SealClosed, 0, 0)
		w.no(err)
		w.check()
		g.ends(flowfabric.FlowFailed) // chained was skipped, and nobody depends on it
	}},
	{name: "a quorum must be between one and the number of edges", run: func(w *env) {
		g := w.flow()
		for _, node := range nodesOf("n", 5) {
			g.node(node, nil)
		}
		g.stage()
		five := nodesOf("n", 5)
		for _, k := range []int{0, 6, -1} {
			g.rejects(flowfabric.ErrInvalidInput, "", g.node("x", five, quorum(k)).last())
		}
		// k belongs to quorum
		g.rejects(flowfabric.ErrInvalidInput, "", g.node("x", five, func(m *engine.FlowMember) { m.K = 2 }).last())
		// nothing remains
		g.rejects(flowfabric.ErrInvalidInput, "", g.node("x", five, allEnded, cancelRest).last())
		g.rejects(flowfabric.ErrInvalidInput, "", g.node("x", five, anyFailed, cancelRest).last())
		g.rejects(flowfabric.ErrInvalidInput, "", g.node("x", nil, allEnded).last())
		g.rejects(flowfabric.ErrInvalidInput, "", g.node("x", nil, anyFailed).last())
		g.rejects(flowfabric.ErrInvalidInput, "", g.node("x", nil, anyOf).last())
		g.rejects(flowfabric.ErrInvalidInput, "", g.node("x", nil, quorum(1)).last())
		g.rejects(flowfabric.ErrInvalidInput, "",
			g.node("x", five, func(m *engine.FlowMember) { m.Policy = "most" }).last())
		g.join("one", five, quorum(1))
		g.join("five", five, quorum(5), cancelRest)
	}},
	{name: "a member keeps the policy that it was added with", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil).node("x", []string{"a", "b"}, quorum(1)).stage()
		other := g.nodes[2]
		other.K, other.CancelRest = 2, true
		w.unchanged("another policy", func() {
			again, err := w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{other})
			w.no(err)
			same(w, "already", again.Already, true)
		})
		w.all("group", eq(g.shown("x").Group.Policy, "quorum"), eq(g.shown("x").Group.K, 1),
			eq(g.shown("x").Group.CancelRest, false))
		// What tells definitions apart is the digest of the flow and of the members.
		digest := func(x *engine.NewExecution) { x.Digest = "d1" }
		g.join("y", []string{"a"}, as(digest))
		changed := g.nodes[3]
		changed.Digest = "d2"
		g.rejects(denied.Idempotency, "y", changed)
	}},
	{name: "a call adds at most 100 members and 1,000 edges, and a member has at most 1,000", run: func(w *env) {
		w.quiet = true
		g := w.flow()
		many := nodesOf("n", 1000)
		for _, node := range many {
			g.node(node, nil)
		}
		g.stage()
		w.quiet = false
		_, err := w.e.StageFlow(w.ctx, g.id, nil, g.nodes[:101])
		w.is(err, flowfabric.ErrInvalidInput)
		_, err = w.e.StageFlow(w.ctx, g.id, nil, nil)
		w.is(err, flowfabric.ErrInvalidInput)
		full := g.node("full", many, unnamed).last()
		one := g.node("one", []string{"n0"}).last()
		w.unchanged("1,001 edges in a call", func() {
			same(w, "code", w.fcall("ff_flow_stage", wireStage(g.id, full, one)...).code, "invalid_input")
		})
		labels := map[string]string{}
		for i := range 64 {
			labels[fmt.Sprint("app.k", i)] = "v"
		}
		var labelled []engine.FlowMember // each but the first takes the room of 8 + 64 edges
		for _, node := range nodesOf("labelled", 15) {
			labelled = append(labelled, g.node(node, nil, as(tags(labels))).last())
		}
		w.unchanged("960 tags beside 15 members", func() {
			same(w, "code", w.fcall("ff_flow_stage", wireStage(g.id, labelled...)...).code, "invalid_input")
		})
		_, err = w.e.StageFlow(w.ctx, g.id, nil, labelled) // in two calls
		w.no(err)
		full.Tags = labels // the first has none of its tags counted
		over := full
		over.Edges = append(append([]engine.FlowEdge{}, over.Edges...),
			engine.FlowEdge{From: mint.ID(w.p)})
		g.rejects(denied.FanIn, "", over)
		_, err = w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{full})
		w.no(err)
		same(w, "total", g.shown("full").Group.Total, 1000)
		big := g.node("big", nil, as(payload(make([]byte, limits.MaxPayload+1)))).last()
		_, err = w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{big})
		w.is(err, flowfabric.ErrPayloadTooLarge)
	}},
	{name: "a flow has at most 10,000 members and 50,000 edges", damaged: "it sets the counters of a flow",
		run: func(w *env) {
			g := w.flow().node("a", nil).node("b", nil).stage()
			next := g.node("c", []string{"a"}).last()
			full := func(field, value string, run func()) {
				key, old := w.k.Flow(ids.UUID(g.id)), w.hash(w.k.Flow(ids.UUID(g.id)))[field]
				w.set("HSET", key, field, value) // as if it had that many
				run()
				if old == "" {
					w.set("HDEL", key, field)
				} else {
					w.set("HSET", key, field, old)
				}
			}
			full("nn", "10000", func() { g.rejects(denied.FlowTooLarge, "", next) })
			full("ne", "50000", func() { g.rejects(denied.FlowTooLarge, "", next) })
			w.quiet = true
			full("nn", strconv.Itoa(limits.MaxFlowMembers-1), func() {
				full("ne", strconv.Itoa(limits.MaxFlowEdges-1), func() {
					_, err := w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{next})
					w.no(err)
				})
			})
		}},
	{name: "a closed lane accepts no new members", run: func(w *env) {
		g := w.flow().node("a", nil).stage()
		next := g.node("b", []string{"a"}).last()
		w.usualLane(flowfabric.LaneDraining, "me")
		g.rejects(flowfabric.ErrLaneClosed, "b", next)
		w.unchanged("those that are there", func() {
			_, err := w.e.StageFlow(w.ctx, g.id, nil, g.nodes)
			w.no(err)
		})
		w.usualLane(flowfabric.LaneActive, "me")
		_, err := w.e.StageFlow(w.ctx, g.id, nil, []engine.FlowMember{next})
		w.no(err)
		w.check()
	}},
	{name: "a released flow can switch between open and growing until it is sealed", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealOpen)
		seal := func(mode engine.SealMode) error {
			_, _, err := w.e.SealFlow(w.ctx, g.id, mode, 2, 1)
			w.check()
			return err
		}
		w.unchanged("as it is", func() { w.no(seal(engine.SealOpen)) })
		w.no(seal(engine.SealGrowing))
		same(w, "seal", g.header().Seal, string(engine.SealGrowing))
		w.no(seal(engine.SealOpen))
		same(w, "seal", g.header().Seal, string(engine.SealOpen))
		w.no(seal(engine.SealClosed))
		w.unchanged("sealed is for good", func() {
			w.is(seal(engine.SealGrowing), denied.FlowSealed)
			w.is(seal(engine.SealOpen), denied.FlowSealed)
			w.no(seal(engine.SealClosed))
		})
		w.unchanged("what is refused", func() {
			_, _, err := w.e.SealFlow(w.ctx, g.id, "other", 2, 1)
			w.is(err, flowfabric.ErrInvalidInput)
			_, _, err = w.e.SealFlow(w.ctx, flowfabric.FlowID(mint.ID(w.p)), engine.SealClosed, 0, 0)
			w.is(err, denied.NoFlow)
			_, err = w.e.DescribeFlow(w.ctx, flowfabric.FlowID(mint.ID(w.p)))
			w.is(err, denied.NoFlow)
			_, err = w.e.FlowMembers(w.ctx, flowfabric.FlowID(mint.ID(w.p)), 0, 10, false)
			w.is(err, denied.NoFlow)
		})
		// A flow that ended while it was open ends when it is sealed; an empty one too.
		done := w.flow().node("a", nil).submit(engine.SealOpen)
		done.complete(done.claim()["a"], "")
		done.ends(flowfabric.FlowOpen)
		done.submitted(engine.SealGrowing)
		done.ends(flowfabric.FlowCompleted)
		empty := w.flow().submit(engine.SealClosed)
		empty.ends(flowfabric.FlowCompleted)
	}},
	{name: "a flow of 150 roots is released in steps, and each root once", run: func(w *env) {
		g := w.flow()
		for _, node := range nodesOf("n", 150) {
			g.node(node, nil)
		}
		g.stage()
		_, more, err := w.e.SealFlow(w.ctx, g.id, engine.SealClosed, 150, 0)
		w.no(err)
		w.check()
		same(w, "more", more, true)
		same(w, "released", g.header().Count[flowfabric.Waiting], 64)
		w.unchanged("again", func() {
			_, more, err := w.e.SealFlow(w.ctx, g.id, engine.SealClosed, 150, 0)
			w.no(err)
			same(w, "more", more, true)
		})
		g.drain()
		seen := map[string]bool{}
		for _, c := range append(g.w.claim(100), g.w.claim(100)...) {
			seen[c.Node] = true
		}
		same(w, "claimed", len(seen), 150)
	}},
	{name: "a member's delay starts when the member may run", run: func(w *env) {
		g := w.flow().node("a", nil, as(delay(10*time.Second))).node("b", []string{"a"},
			as(delay(10*time.Second))).stage()
		w.advance(time.Minute)
		w.settleTime()
		same(w, "nothing", len(g.claim()), 0)
		g.submitted(engine.SealClosed)
		g.are(flowfabric.Delayed, "a")
		w.advance(10 * time.Second)
		w.settleTime()
		a := g.claim()["a"]
		w.advance(5 * time.Second)
		g.complete(a, "")
		g.are(flowfabric.Delayed, "b")
		w.advance(9 * time.Second)
		w.settleTime()
		same(w, "too early", len(g.claim()), 0)
		w.advance(time.Second)
		w.settleTime()
		same(w, "due", len(g.claim()), 1)
	}},
	{name: "flows are listed in pages, newest or oldest first", run: func(w *env) {
		var ids []flowfabric.FlowID
		for range 5 {
			ids = append(ids, w.flow().node("a", nil).submit(engine.SealClosed).id)
			w.advance(time.Second)
		}
		w.set("ZADD", w.k.Flows(), "1", "nobody")
		for _, newest := range []bool{false, true} {
			var got []string
			after := engine.Position{}
			for {
				page, err := w.e.ListFlows(w.ctx, w.p, newest, after, 2)
				w.no(err)
				same(w, "size", page.Size, 6)
				for _, f := range page.Flows {
					if f.Member == "nobody" {
						w.all("drift", eq(f.ID.IsZero(), true), eq(string(f.State), ""))
						continue
					}
					w.all("flow", eq(f.State, "open"), eq(f.Kind, "test"), eq(f.Members, 1),
						eq(f.Count[flowfabric.Waiting], 1))
					got = append(got, f.ID.String())
				}
				if !page.More {
					break
				}
				last := page.Flows[len(page.Flows)-1]
				after = engine.Position{Score: last.CreatedAt.UnixMilli(), Member: last.Member}
			}
			want := fmt.Sprint(ids)
			if newest {
				want = fmt.Sprint([]flowfabric.FlowID{ids[4], ids[3], ids[2], ids[1], ids[0]})
			}
			same(w, "order", fmt.Sprint(got), want)
		}
		w.set("ZREM", w.k.Flows(), "nobody")
	}},
}
