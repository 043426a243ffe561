package conformance

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// What becomes of the members of a flow that is cancelled.
var flowCancelScenarios = []scenario{
	{name: "every cancellation policy cancels exactly the member states that it covers", run: func(w *env) {
		w.members, w.hands = true, true
		defer func() { w.members = false }()
		for _, policy := range []flowfabric.CancellationPolicy{flowfabric.CancelAll, flowfabric.CancelPending,
			flowfabric.CancelFlow} {
			for _, code := range reachable {
				w.reset()
				x := w.state(code)
				before := w.read(x.id)
				out, err := w.e.CancelFlow(trail.As(w.ctx, "me", "no more"), x.flow, policy)
				what := fmt.Sprintf("%s, %s", policy, code)
				g := &graph{env: w, id: x.flow}
				if g.header().State != flowfabric.FlowCancelled { // it had ended
					w.is(err, denied.FlowTerminal)
					same(w, what, g.header().State.Terminal(), true)
					continue
				}
				w.no(err)
				w.check()
				w.all(what, eq(out.Policy, policy), eq(out.Reason, "no more"), eq(out.More, false),
					eq(out.Already, false))
				covered := !before.State.Terminal() &&
					(policy == flowfabric.CancelAll || policy == flowfabric.CancelPending && code[0] != 'A')
				if !covered {
					if code != "A2" {
						w.code(x.id, code)
					}
					w.all(what+" lives on", eq(out.Unended > 0, !before.State.Terminal()),
						eq(g.header().EndedAt.IsZero(), !before.State.Terminal()))
					continue
				}
				s := w.read(x.id)
				w.all(what, eq(s.State.Public, "cancelled"), eq(s.CancelledBy, ""), eq(s.CancelSource, "flow_cascade"),
					eq(s.CancelReason, "no more"))
				w.all(what+" unended", eq(out.Unended, 0), eq(g.header().EndedAt.IsZero(), false))
				if code == "A1" {
					r := w.renew(x.worker, 0)
					w.all(what, eq(len(r.Lost), 1), eq(r.Lost[0].Cause, "cancelled"))
				}
				_, err = w.e.ReplayExecution(w.ctx, x.id, engine.Replay{})
				w.is(err, denied.FlowCancelled)
			}
		}
	}},
	{name: "cancelling the pending members lets active ones finish their attempt", run: func(w *env) {
		w.seed()
		for name, then := range map[string]struct {
			settle func(g *graph, c engine.Claim)
			want   flowfabric.PublicState
		}{
			"completes": {func(g *graph, c engine.Claim) { g.complete(c, "") }, flowfabric.Completed},
			"fails":     {func(g *graph, c engine.Claim) { g.fail(c) }, flowfabric.Failed},
			"retries":   {func(g *graph, c engine.Claim) { w.fail(c.Fence, "x") }, flowfabric.Cancelled},
			"delays": {func(g *graph, c engine.Claim) {
				_, err := w.e.DelayExecution(w.ctx, c.Fence, time.Hour, "")
				w.no(err)
			}, flowfabric.Cancelled},
			"is handed back": {func(g *graph, c engine.Claim) {
				_, err := w.e.ReleaseExecution(w.ctx, c.Fence)
				w.no(err)
			}, flowfabric.Cancelled},
			"suspends": {func(g *graph, c engine.Claim) { w.stopped(c.Fence, awaiting("it")) },
				flowfabric.Cancelled},
			"loses its lease": {func(g *graph, c engine.Claim) { w.advance(ttl) }, flowfabric.Cancelled},
			"is revoked":      {func(g *graph, c engine.Claim) { w.revoke(c.Fence.Execution) }, flowfabric.Cancelled},
		} {
			w.reset()
			w.seed()
			g := w.flow().node("a", nil, as(retries(2))).node("b", []string{"a"}).node("c", nil,
				as(delay(time.Hour))).submit(engine.SealClosed)
			a := g.claim()["a"]
			out := g.abort(flowfabric.CancelPending)
			same(w, "unended", out.Unended, 1)
			g.are(flowfabric.Cancelled, "b", "c")
			g.are(flowfabric.Active, "a")
			same(w, "not yet", g.header().EndedAt.IsZero(), true)
			then.settle(g, a)
			w.check()
			w.settleTime()
			g.are(then.want, "a")
			h := g.header()
			w.all(name, eq(h.State, "cancelled"), eq(h.EndedAt.IsZero(), false), eq(h.Backlog, 0))
		}
	}},
	{name: "cancelling only the flow lets its members continue and resolve each other", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).node("c", []string{"b"}).submit(engine.SealOpen)
		out := g.abort(flowfabric.CancelFlow)
		w.all("unended", eq(out.Unended, 3), eq(out.Policy, "flow_only"))
		g.complete(g.claim()["a"], "r")
		b := g.claim()["b"]
		same(w, "input", string(b.Inputs["from-a"]), "r")
		g.fail(b)
		g.are(flowfabric.Skipped, "c")
		g.ends(flowfabric.FlowCancelled)
		same(w, "ended", g.header().EndedAt.IsZero(), false)
		w.replay(g.id.Member("b"), engine.Replay{}) // nothing forbids it
		g.ends(flowfabric.FlowCancelled)
		same(w, "open again", g.header().EndedAt.IsZero(), true)
	}},
	{name: "a cancelled flow reports its cancellation, and a second one changes nothing", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", nil).submit(engine.SealClosed)
		g.complete(g.claim()["a"], "")
		w.unchanged("what is refused", func() {
			for _, bad := range []flowfabric.CancellationPolicy{"", "all", "cancel_flow_only"} {
				_, err := w.e.CancelFlow(w.ctx, g.id, bad)
				w.is(err, denied.CancellationPolicy)
			}
			_, err := w.e.CancelFlow(w.ctx, flowfabric.FlowID(mint.ID(w.p)), flowfabric.CancelAll)
			w.is(err, denied.NoFlow)
		})
		out := g.abort(flowfabric.CancelPending) // one member has ended: that is no failure
		w.all("cancelled", eq(out.Already, false), eq(out.Policy, "cancel_pending"), eq(out.Unended, 1))
		w.unchanged("again", func() {
			again, err := w.e.CancelFlow(trail.As(w.ctx, "you", "other"), g.id, flowfabric.CancelAll)
			w.no(err)
			w.all("again", eq(again.Already, true), eq(again.Policy, "cancel_pending"), eq(again.Reason, "no more"),
				eq(again.Unended, 1), eq(again.More, false))
		})
		h := g.header()
		w.all("header", eq(h.State, "cancelled"), eq(h.Policy, "cancel_pending"), eq(h.CancelBy, "me"),
			eq(h.Reason, "no more"), eq(h.Cancelled.IsZero(), false))
		silent := w.flow().node("a", nil).submit(engine.SealClosed)
		_, err := w.e.CancelFlow(w.ctx, silent.id, flowfabric.CancelAll)
		w.no(err)
		w.check()
		same(w, "a reason there is", silent.header().Reason, "flow_cancelled")
	}},
	{name: "no member of a large flow can be claimed while the flow is being cancelled", run: func(w *env) {
		g := w.flow()
		for _, node := range nodesOf("n", 100) {
			g.node(node, nil)
		}
		g.submit(engine.SealClosed)
		k := w.worker("w1")
		k.nothingYet()
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll)
		w.no(err)
		h := g.header()
		w.all("in steps", eq(h.Count[flowfabric.Cancelled], 64), eq(h.Count[flowfabric.Waiting], 36))
		same(w, "claimed", len(k.claim(10)), 0)
		same(w, "cancelled on the spot", g.header().Count[flowfabric.Waiting] < 36, true)
		other := w.create() // each call cancels a few of those that are in front of it
		claims := k.claim(1)
		for range 10 {
			if len(claims) == 0 {
				claims = k.claim(1)
			}
		}
		w.all("claimed", eq(len(claims), 1), eq(claims[0].Fence.Execution, other))
		g.drain()
		h = g.header()
		w.all("all", eq(h.Count[flowfabric.Cancelled], 100), eq(h.EndedAt.IsZero(), false))
	}},
	{name: "under racing claims, no member starts once the cancellation has been answered", run: func(w *env) {
		g := w.flow()
		for _, node := range nodesOf("n", 300) {
			g.node(node, nil)
		}
		g.submit(engine.SealClosed)
		var answered atomic.Bool
		var before atomic.Int32
		k := w.worker("w")
		k.nothingYet()
		together(5, func(i int) {
			if i == 0 {
				for before.Load() < 20 {
					runtime.Gosched()
				}
				_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll)
				answered.Store(true)
				if err != nil {
					w.Errorf("cancel: %v", err)
				}
				return
			}
			q := engine.ClaimRequest{Partition: w.p, Session: engine.NewSessionID(fmt.Sprint("w", i)), TTL: ttl, Max: 1,
				Subscription: k.subscription, Table: k.table}
			for late := 0; late < 20; {
				told := answered.Load()
				q.Number++
				r, err := w.e.ClaimNext(w.ctx, q)
				if err != nil {
					w.Errorf("claim: %v", err)
					answered.Store(true)
					return
				}
				if len(r.Claims) == 0 {
					q.Number--
				}
				if told {
					late++
					if len(r.Claims) > 0 {
						w.Errorf("%v started late", r.Claims)
					}
				} else {
					before.Add(1)
				}
			}
		})
		w.check()
		g.drain()
		same(w, "cancelled", g.header().Count[flowfabric.Cancelled], 300)
	}},
	{name: "a member that would retry while its flow is being cancelled is cancelled too", run: func(w *env) {
		g := w.flow()
		for i := range 100 {
			g.node(fmt.Sprint("n", i), nil)
		}
		g.node("slow", nil, as(retries(2))).submit(engine.SealClosed)
		var slow engine.Claim
		for _, c := range append(g.w.claim(100), g.w.claim(100)...) {
			if c.Node == "slow" {
				slow = c
			}
		}
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll)
		w.no(err)
		_, err = w.e.FailExecution(w.ctx, slow.Fence, engine.Failure{Category: "x"}) // it would be retried
		w.no(err)
		w.check()
		g.are(flowfabric.Cancelled, "slow")
		g.drain()
		same(w, "cancelled", g.header().Count[flowfabric.Cancelled], 101)
	}},
	{name: "a flow that is staged and never released is cancelled after a day", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).stage()
		w.advance(23 * time.Hour)
		w.settleTime()
		same(w, "not yet", g.header().State, flowfabric.FlowStaging)
		g.join("c", nil) // it is still being staged
		w.advance(23 * time.Hour)
		w.settleTime()
		same(w, "not yet", g.header().State, flowfabric.FlowStaging)
		w.advance(time.Hour)
		w.settleTime()
		h := g.header()
		w.all("given up", eq(h.State, "cancelled"), eq(h.Policy, "cancel_all"), eq(h.CancelBy, "tick"),
			eq(h.Reason, "flow_abandoned"), eq(h.Count[flowfabric.Cancelled], 3))
		w.unchanged("too late", func() {
			_, _, err := w.e.SealFlow(w.ctx, g.id, engine.SealClosed, 3, 1)
			w.is(err, denied.FlowTerminal)
		})
		w.advance(14*day + time.Hour)
		w.settleTime()
		_, err := w.e.DescribeFlow(w.ctx, g.id)
		w.is(err, flowfabric.ErrResultPurged)
		empty := w.flow().begin()
		w.advance(24 * time.Hour)
		w.settleTime()
		same(w, "an empty one too", empty.header().State, flowfabric.FlowCancelled)
		w.advance(25 * time.Hour)
		w.settleTime()
		_, err = w.e.DescribeFlow(w.ctx, empty.id)
		w.is(err, flowfabric.ErrResultPurged)
	}},
	{name: "cancelling a staged flow cancels all its members", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).stage()
		out := g.abort(flowfabric.CancelFlow) // nothing of it could ever run
		w.all("cancelled", eq(out.Policy, "cancel_all"), eq(out.Unended, 0))
		g.are(flowfabric.Cancelled, "a", "b")
	}},
}
