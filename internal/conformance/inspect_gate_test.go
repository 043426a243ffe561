package conformance

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

var inspectGateScenarios = []scenario{
	{name: "a partition reports its closed routes, held executions and outbox", run: func(w *env) {
		s := w.gateShapes()
		p, err := w.e.DescribePartition(w.ctx, w.p)
		w.no(err)
		w.all("closed, paused", eq(p.Closed.Count, 1), eq(p.Held.Count, 2))
		same(w, "opens", p.Closed.Head.UnixMilli(), w.closedUntil(w.routeOf(s.closed)))
		same(w, "ready", p.Ready, 1) // the class of what waits with gates, also of the other namespace
		if p.Outbox.Count == 0 || p.Outbox.Head.IsZero() || p.Undelivered < 0 || p.Lag != 0 {
			w.Errorf("outbox %+v, undelivered for %s, lag %s", p.Outbox, p.Undelivered, p.Lag)
		}
		w.no(w.e.FreezePartition(trail.As(w.ctx, "", "look"), w.p))
		_, err = w.e.DescribePartition(w.ctx, w.p)
		w.no(err)
		w.no(w.e.ThawPartition(w.ctx, w.p))
	}},
	{name: "held and granted executions are listed in their own indexes", run: func(w *env) {
		s := w.gateShapes()
		list := func(index engine.Index, key string) map[flowfabric.ExecutionID]engine.Listed {
			page, err := w.e.ListExecutions(w.ctx, w.p, engine.ListQuery{Index: index, Key: key, Limit: 100})
			w.no(err)
			out := map[flowfabric.ExecutionID]engine.Listed{}
			for _, x := range page.Executions {
				same(w, "drift", x.Drift, "")
				out[x.ID] = x
			}
			return out
		}
		paused := list(engine.IndexHeld, "")
		same(w, "paused", len(paused), 2)
		x := paused[s.paused]
		w.all("paused", eq(x.Code, "R4f"), eq(x.State.Public, "waiting"), eq(x.Since.UnixMilli(), x.Score),
			eqList(x.Route.Gates, flowfabric.Gate("acme"), flowfabric.Gate("openai")))
		held := list(engine.IndexActive, s.worker.session)
		w.all("held", eq(held[s.granted].Code, "G1f"), eq(held[s.active].Code, "A1"))
		waiting := list(engine.IndexWaiting, s.route)
		w.all("waiting", eq(len(waiting), 1), eq(waiting[s.waiting].Code, "R1f"))
	}},
}

// routeOf is the route of an execution.
func (w *env) routeOf(id flowfabric.ExecutionID) uint64 {
	w.Helper()
	return w.read(id).Route.ID
}
