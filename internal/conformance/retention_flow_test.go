package conformance

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// briefly keeps a member for a minute after its end.
func briefly(m *engine.FlowMember) {
	m.Kind, m.NewExecution.Policy.Retention = "node", valid.RetainAll(time.Minute)
}

var flowRetentionScenarios = []scenario{
	{name: "a parent is purged when its retention is over and its children are gone", run: func(w *env) {
		// With the same retention the tick may meet the parent first; with a shorter one it does.
		for _, own := range []time.Duration{5 * time.Second, time.Second} {
			w.reset()
			f := w.family(retention(own))
			q := engine.ChildWait{Name: "wait", Mode: engine.WaitAll}
			for i := range 3 {
				q.Children = append(q.Children, w.child(f.parent, "wait", fmt.Sprint("c", i), retention(5*time.Second)))
			}
			_, err := childtest.Wait(w.ctx, w.e, f.fence, q)
			w.no(err)
			for _, c := range f.claim() {
				f.complete(c, "")
			}
			f.resumed(engine.WaitAll)
			w.no(w.complete(f.fence, "").Err)
			w.advance(4500 * time.Millisecond)
			w.settleTime() // the parent must stay for its children
			w.code(f.parent, "T1")
			w.check()
			w.advance(1500 * time.Millisecond)
			w.settleTime()
			w.advance(time.Second) // the children are gone, and the parent is due
			w.settleTime()
			d := w.describe()
			same(w, own.String()+": what is left", d.Ended.Count, 0)
			w.check()
		}
	}},
	{name: "after its flow ends, a member stays at most as long again as it had to", run: func(w *env) {
		g := w.flowOfNodes().node("slow", nil, ofNodes).node("fast", nil, func(m *engine.FlowMember) {
			ofNodes(m)
			m.NewExecution.Policy.Retention = valid.RetainAll(time.Second)
		})
		g.submit(engine.SealClosed)
		claims := g.claim()
		g.complete(claims["fast"], "")
		for range 10 {
			w.advance(time.Second)
			w.settleTime()
			w.renew(g.w, 0)
		}
		g.complete(claims["slow"], "")
		w.advance(20 * time.Second)
		w.settleTime()
		_, err := w.e.ReadExecution(w.ctx, claims["fast"].Fence.Execution)
		w.is(err, flowfabric.ErrResultPurged)
		w.check()
	}},
	{name: "members stay until their flow ends, then its header goes and a tombstone keeps the id", run: func(w *env) {
		g := w.flowOfNodes().node("a", nil, briefly).node("b", []string{"a"}, briefly).node("c", []string{"b"},
			ofNodes).submit(engine.SealClosed)
		g.complete(g.claim()["a"], "a")
		for range 3 { // a's time comes again and again
			w.advance(61 * time.Minute)
			w.settleTime()
		}
		later := func(name string) { // the lease of the one before has run out
			g.w = w.worker(name)
			g.w.can = func(r engine.Route) bool { return r.Kind == "node" }
		}
		later("second")
		_, err := w.e.PurgeExecution(w.ctx, g.id.Member("a"), 0)
		w.is(err, denied.FlowOpen)
		g.complete(g.claim()["b"], "b")
		c := g.claim()["c"]
		same(w, "input of an upstream that was to be purged", string(c.Inputs["from-b"]), "b")
		w.complete(c.Fence, "c")
		g.ends(flowfabric.FlowCompleted)
		w.advance(62 * time.Minute)
		w.settleTime()
		record, err := w.e.DescribeFlow(w.ctx, g.id)
		w.no(err)
		w.all("a and b are gone, c is kept for a day", eq(record.State, "completed"), eq(record.Members, 3),
			eq(record.Purged, 2), eq(w.exists(g.id.Member("c")), true))
		_, err = w.e.ReplayExecution(w.ctx, g.id.Member("c"), engine.Replay{Force: true})
		w.no(err)
		w.check()
		g.ends(flowfabric.FlowOpen)
		later("third")
		g.complete(g.claim()["c"], "again")
		same(w, "sound with gaps", found(w.audit(true)), "")
		w.advance(25 * time.Hour)
		w.settleTime()
		_, err = w.e.DescribeFlow(w.ctx, g.id)
		w.is(err, flowfabric.ErrResultPurged)
		keys, _ := w.lasting()
		sameList(w, "nothing of the flow is left", keys, string(w.k))
		_, err = w.e.CreateFlow(w.ctx, engine.NewFlow{ID: g.id, Namespace: "default", Kind: "test"})
		w.is(err, flowfabric.ErrResultPurged) // nobody is led to a flow that is gone
		w.advance(25 * time.Hour)
		out, err := w.e.CreateFlow(w.ctx, engine.NewFlow{ID: g.id, Namespace: "default", Kind: "test"})
		w.no(err)
		w.all("a day later the id is free", eq(out.Already, false), eq(out.State, "staging"))
	}},
	{name: "a tick purges half as many members of flows as single executions", run: func(w *env) {
		for purged, members := range map[int]bool{100: false, 50: true} {
			w.reset()
			g := w.flow()
			for i := range 110 {
				g.node(fmt.Sprint("n", i), nil, briefly)
			}
			if members {
				g.submit(engine.SealClosed)
			} else {
				w.createN(110, kept(time.Minute))
			}
			w.quiet = true
			for range 11 {
				for _, c := range g.w.claim(10) {
					w.complete(c.Fence, "")
				}
			}
			w.no(w.e.CloseSession(w.ctx, w.p, g.w.session))
			w.advance(time.Hour)
			same(w, "purged", w.tick().Purged, purged)
		}
	}},
	{name: "members that are kept for an open flow are checked less and less often, in bounded calls",
		run: func(w *env) {
			n := 2000 / max(1, w.srv.Share)
			w.quiet = true
			g := w.flowOfNodes().node("slow", nil, ofNodes)
			for i := range n {
				g.node(fmt.Sprint("n", i), nil, briefly)
			}
			g.submit(engine.SealClosed)
			for left := n; left > 0; {
				claims := g.w.claim(100)
				var done []engine.Completion
				for _, c := range claims {
					if c.Node != "slow" {
						done = append(done, engine.Completion{Fence: c.Fence})
					}
				}
				out, _, err := w.e.CompleteExecutions(w.ctx, w.p, done, nil)
				w.no(err)
				left -= len(out)
			}
			w.settleTime()
			w.advance(2 * time.Minute)
			purged, calls := 0, 0
			began := time.Now()
			for {
				r := w.tickOnce()
				purged, calls = purged+r.Purged, calls+1
				if !r.More {
					break
				}
				if calls > n {
					w.Fatal("the tick never comes to an end")
				}
			}
			w.Logf("%d members were filed anew in %d calls, %s", n, calls, time.Since(began))
			if purged > 0 || calls < n/100 || calls > n/10 {
				w.Fatalf("%d purged in %d calls", purged, calls)
			}
			next := w.tickOnce() // they have stayed two minutes
			if next.More || w.describe().Ended.Head.Sub(w.describe().Now) < time.Minute {
				w.Fatalf("%+v, %+v", next, w.describe().Ended)
			}
			w.quiet = false
			w.check()
		}},
}
