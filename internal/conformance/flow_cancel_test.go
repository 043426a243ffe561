package conformance

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// What becomes of the members of a flow that is cancelled.
var flowCancelScenarios = []scenario{
	{name: "every cancellation policy cancels exactly the member states that it covers", run: func(w *env) {
		w.members, w.hands = true, true
		defer func() { w.members = false }()
		for _, policy := range []flowfabric.CancellationPolicy{flowfabric.CancelAll, flowfabric.CancelPending, flowfabric.CancelFlow} {
			for _, code := range reachable {
				w.reset()
				x := w.state(code)
				before := w.read(x.id)
				out, err := w.e.CancelFlow(w.ctx, x.flow, policy, "me", "no more")
				what := fmt.Sprintf("%s, %s", policy, code)
				g := &graph{env: w, id: x.flow}
				if g.header().State != flowfabric.FlowCancelled { // it had ended
					w.is(err, denied.FlowTerminal)
					same(w, what, g.header().State.Terminal(), true)
					continue
				}
				w.no(err)
				w.check()
				same(w, what, words(out.Policy, out.Reason, out.More, out.Already), words(policy, "no more", false, false))
				covered := !before.State.Terminal() && (policy == flowfabric.CancelAll || policy == flowfabric.CancelPending && code[0] != 'A')
				if !covered {
					if code != "A2" {
						w.code(x.id, code)
					}
					same(w, what+" lives on", words(out.Unended > 0, g.header().EndedAt.IsZero()), words(!before.State.Terminal(), !before.State.Terminal()))
					continue
				}
				s := w.read(x.id)
				same(w, what, words(s.State.Public, s.CancelledBy, s.CancelReason), "cancelled flow_cascade no more")
				same(w, what+" unended", words(out.Unended, g.header().EndedAt.IsZero()), "0 false")
				if code == "A1" {
					r := w.renew(x.worker, 0)
					same(w, what, words(len(r.Lost), r.Lost[0].Cause), "1 cancelled")
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
				_, err := w.e.DelayExecution(w.ctx, c.Fence, time.Hour)
				w.no(err)
			}, flowfabric.Cancelled},
			"is handed back": {func(g *graph, c engine.Claim) {
				_, err := w.e.ReleaseExecution(w.ctx, c.Fence)
				w.no(err)
			}, flowfabric.Cancelled},
			"suspends":        {func(g *graph, c engine.Claim) { w.stopped(c.Fence, awaiting("it")) }, flowfabric.Cancelled},
			"loses its lease": {func(g *graph, c engine.Claim) { w.advance(ttl) }, flowfabric.Cancelled},
			"is revoked":      {func(g *graph, c engine.Claim) { w.revoke(c.Fence.Execution) }, flowfabric.Cancelled},
		} {
			w.reset()
			w.seed()
			g := w.flow().node("a", nil, as(retries(2))).node("b", []string{"a"}).node("c", nil, as(delay(time.Hour))).submit(engine.SealClosed)
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
			same(w, name, words(h.State, h.EndedAt.IsZero(), h.Backlog), "cancelled false 0")
		}
	}},
	{name: "cancelling only the flow lets its members continue and resolve each other", run: func(w *env) {
		g := w.flow().node("a", nil).node("b", []string{"a"}).node("c", []string{"b"}).submit(engine.SealOpen)
		out := g.abort(flowfabric.CancelFlow)
		same(w, "unended", words(out.Unended, out.Policy), "3 flow_only")
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
				_, err := w.e.CancelFlow(w.ctx, g.id, bad, "me", "")
				w.is(err, denied.CancellationPolicy)
			}
			_, err := w.e.CancelFlow(w.ctx, flowfabric.FlowID(flowfabric.NewExecutionID(w.p)), flowfabric.CancelAll, "me", "")
			w.is(err, denied.NoFlow)
		})
		out := g.abort(flowfabric.CancelPending) // one member has ended: that is no failure
		same(w, "cancelled", words(out.Already, out.Policy, out.Unended), "false cancel_pending 1")
		w.unchanged("again", func() {
			again, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll, "you", "other")
			w.no(err)
			same(w, "again", words(again.Already, again.Policy, again.Reason, again.Unended, again.More), "true cancel_pending no more 1 false")
		})
		h := g.header()
		same(w, "header", words(h.State, h.Policy, h.CancelBy, h.Reason, h.Cancelled.IsZero()), "cancelled cancel_pending me no more false")
		silent := w.flow().node("a", nil).submit(engine.SealClosed)
		_, err := w.e.CancelFlow(w.ctx, silent.id, flowfabric.CancelAll, "", "")
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
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll, "me", "no more")
		w.no(err)
		h := g.header()
		same(w, "in steps", words(h.Count[flowfabric.Cancelled], h.Count[flowfabric.Waiting]), "64 36")
		same(w, "claimed", len(k.claim(10)), 0)
		same(w, "cancelled on the spot", g.header().Count[flowfabric.Waiting] < 36, true)
		other := w.create() // each call cancels a few of those that are in front of it
		claims := k.claim(1)
		for range 10 {
			if len(claims) == 0 {
				claims = k.claim(1)
			}
		}
		same(w, "claimed", words(len(claims), claims[0].Fence.Execution == other), "1 true")
		g.drain()
		h = g.header()
		same(w, "all", words(h.Count[flowfabric.Cancelled], h.EndedAt.IsZero()), "100 false")
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
				_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll, "me", "no more")
				answered.Store(true)
				if err != nil {
					w.Errorf("cancel: %v", err)
				}
				return
			}
			q := engine.ClaimRequest{Partition: w.p, Session: engine.NewSessionID(fmt.Sprint("w", i)), TTL: ttl, Max: 1, Subscription: k.subscription, Table: k.table}
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
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll, "me", "no more")
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
		same(w, "given up", words(h.State, h.Policy, h.CancelBy, h.Reason, h.Count[flowfabric.Cancelled]), "cancelled cancel_all tick flow_abandoned 3")
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
		same(w, "cancelled", words(out.Policy, out.Unended), "cancel_all 0")
		g.are(flowfabric.Cancelled, "a", "b")
	}},
}
