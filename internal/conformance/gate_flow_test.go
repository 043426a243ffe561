package conformance

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// gatedFlow is a flow and the worker that asks for its members.
type gatedFlow struct {
	*graph
	g     *gates
	k     *worker
	slots string // a gate
}

func newGatedFlow(w *env, cap int) *gatedFlow {
	g := newGates(w)
	return &gatedFlow{graph: w.flow(), g: g, k: g.asker("gated"), slots: g.gate(admission.Gate{Concurrency: cap})}
}

// gated gives a node the gate of the flow.
func (f *gatedFlow) gated() nodeOption { return as(asking(flowfabric.Gate(f.slots))) }

// grantsBy are grants by node, of those that are named.
func (f *gatedFlow) grantsBy(nodes ...string) map[string]engine.Grant {
	f.Helper()
	list, by := f.k.grants(100), map[string]engine.Grant{}
	for _, x := range list {
		for _, n := range nodes {
			if x.Execution == f.id.Member(n) {
				by[n] = x
			}
		}
	}
	if len(by) != len(nodes) || len(list) != len(nodes) {
		f.Fatalf("granted %v, want %v", grantees(list), nodes)
	}
	return by
}

var gateFlowScenarios = []scenario{
	{name: "a held member stays held whatever else ends, until an operator unholds it", run: func(w *env) {
		f := newGatedFlow(w, 9)
		f.node("a", nil).node("x", nil).node("b", []string{"a", "x"}, anyOf).node("c", []string{"b"},
			f.gated()).submit(engine.SealClosed)
		_, err := w.e.HoldExecution(w.ctx, f.id.Member("b"))
		w.is(err, denied.NotEligible) // it waits for others already; what is to come is kept by its lane
		c := f.claim()
		f.complete(c["a"], "r")
		f.g.hold(f.id.Member("b"))
		same(w, "nothing", len(f.claim()), 0)
		f.complete(c["x"], "") // another edge of it
		w.code(f.id.Member("b"), "R4f")
		f.are(flowfabric.Waiting, "b")
		same(w, "counted as waiting", f.header().Count[flowfabric.Waiting], 1)
		f.g.unhold(f.id.Member("b"))
		b := f.claim()["b"]
		same(w, "input", string(b.Inputs["from-a"]), "r")
		f.complete(b, "")
		list := f.grantsBy("c")
		f.g.hold(f.id.Member("c"))
		f.g.expects(f.k, []engine.Grant{list["c"]}, denied.StaleLease)
		f.g.unhold(f.id.Member("c"))
		f.complete(f.g.start(f.k, 9, f.slots)[0], "")
		f.ends(flowfabric.FlowCompleted)
	}},
	{name: "a gated member counts as waiting while granted, and gets its inputs with the claim", run: func(w *env) {
		f := newGatedFlow(w, 1)
		f.node("a", nil, f.gated()).node("b", []string{"a"}, f.gated()).node("c", []string{"a"},
			f.gated()).submit(engine.SealClosed)
		x := f.grantsBy("a")["a"]
		counts := func(what string, waiting, active, completed int) {
			w.Helper()
			h := f.header().Count
			w.all(what, eq(h[flowfabric.Waiting], waiting), eq(h[flowfabric.Active], active),
				eq(h[flowfabric.Completed], completed))
		}
		same(w, "granted", f.shown("a").State.Public, "waiting")
		counts("granted", 1, 0, 0)
		f.g.admit(f.slots, 1, x)
		a := f.k.granted(x)[0]
		same(w, "claimed", f.shown("a").State.Public, "active")
		counts("claimed", 0, 1, 0)
		f.complete(a, "from a")
		f.g.deliver()
		by := f.grantsBy("b", "c")
		f.g.admit(f.slots, 1, by["b"])
		refused := f.g.admit(f.slots, 0, by["c"])
		f.g.refuse(f.k, false, refused.Retry, "gate "+f.slots+" cap", by["c"])
		b := f.k.granted(by["b"])[0]
		w.all("node and input", eq(b.Node, "b"), eq(string(b.Inputs["from-a"]), "from a"))
		counts("one of two", 1, 1, 1)
		f.complete(b, "")
		f.g.deliver() // wakes the other
		c := f.g.start(f.k, 9, f.slots)[0]
		w.all("node and input", eq(c.Node, "c"), eq(string(c.Inputs["from-a"]), "from a"))
		f.complete(c, "")
		f.ends(flowfabric.FlowCompleted)
		f.g.deliver()
		same(w, "held", f.g.held(f.slots), 0)
	}},
	{name: "a flow can be cancelled while members are granted, admitted, claimed and held", run: func(w *env) {
		for _, policy := range []flowfabric.CancellationPolicy{flowfabric.CancelAll, flowfabric.CancelPending,
			flowfabric.CancelFlow} {
			w.reset()
			f := newGatedFlow(w, 9)
			f.node("granted", nil, f.gated()).node("admitted", nil, f.gated()).node("claimed", nil,
				f.gated()).node("paused", nil, f.gated()).
				node("after", []string{"granted", "admitted", "claimed", "paused"}, f.gated()).submit(engine.SealClosed)
			by := f.grantsBy("granted", "admitted", "claimed", "paused")
			f.g.admit(f.slots, 2, by["admitted"], by["claimed"])
			claimed := f.k.granted(by["claimed"])[0]
			f.g.hold(f.id.Member("paused"))
			f.abort(policy)
			stale := denied.StaleLease
			two := []engine.Grant{by["granted"], by["admitted"]}
			switch policy {
			case flowfabric.CancelAll:
				f.are(flowfabric.Cancelled, "granted", "admitted", "claimed", "paused", "after")
				f.g.expects(f.k, two, stale, stale)
				r := w.renew(f.k, 0)
				same(w, "told", len(r.Lost), 1)
			case flowfabric.CancelPending:
				f.are(flowfabric.Cancelled, "granted", "admitted", "paused", "after")
				f.are(flowfabric.Active, "claimed")
				f.g.expects(f.k, two, stale, stale)
				f.complete(claimed, "")
			default:
				f.g.unhold(f.id.Member("paused"))
				for _, c := range append(f.k.granted(two...), claimed) {
					f.complete(c, "")
				}
				f.complete(f.g.start(f.k, 9, f.slots)[0], "")
				f.g.admit(f.slots, 1, by["granted"]) // its hold comes late, and is released
				f.g.no(w.e.ReleaseGrants(w.ctx, w.p, f.k.session,
					[]engine.GrantReturn{{Grant: by["granted"], Reserved: true}}, nil))
				after := f.g.start(f.k, 9, f.slots)[0]
				same(w, "the one that waited for them", after.Node, "after")
				f.complete(after, "")
			}
			f.ends(flowfabric.FlowCancelled)
			f.g.deliver()
			if policy != flowfabric.CancelFlow {
				same(w, string(policy)+": slots", f.g.held(f.slots), 0)
			}
			same(w, string(policy)+": nothing to claim", len(f.k.grants(9)), 0)
		}
	}},
	{name: "no granted member of a cancelled flow can be claimed, even before the backlog reaches it",
		run: func(w *env) {
			f := newGatedFlow(w, 200)
			for _, n := range nodesOf("n", 100) {
				f.node(n, nil, f.gated())
			}
			f.submit(engine.SealClosed)
			list := f.k.grants(32)
			f.g.admit(f.slots, len(list), list...)
			out, err := w.e.CancelFlow(w.ctx, f.id, flowfabric.CancelAll)
			w.no(err)
			same(w, "some are left for later", out.More, true)
			last := list[len(list)-1:]
			answers, claims, err := f.k.claimGranted(f.k.number, list)
			w.no(err)
			same(w, "claimed", len(claims), 0)
			for _, a := range answers {
				w.is(a.Err, denied.StaleLease)
			}
			f.g.no(w.e.ReleaseGrants(w.ctx, w.p, f.k.session, []engine.GrantReturn{{Grant: last[0], Reserved: true}},
				nil))
			f.drain()
			same(w, "cancelled", f.header().EndedAt.IsZero(), false)
			f.g.deliver()
			same(w, "slots", f.g.held(f.slots), 0)
		}},
	{name: "a granted member of a cancelled flow goes back and is cancelled by the next claim", run: func(w *env) {
		f := newGatedFlow(w, 200)
		for _, n := range nodesOf("n", 100) {
			f.node(n, nil, as(lane("free")))
		}
		f.node("last", nil, f.gated()).submit(engine.SealClosed)
		f.k.can = func(r engine.Route) bool { return r.Lane != "free" }
		x := f.grantsBy("last")["last"]
		f.g.admit(f.slots, 1, x)
		out, err := w.e.CancelFlow(w.ctx, f.id, flowfabric.CancelAll)
		w.no(err)
		same(w, "some are left for later", out.More, true)
		w.code(f.id.Member("last"), "G1f")
		f.g.expects(f.k, []engine.Grant{x}, denied.StaleLease)
		w.code(f.id.Member("last"), "G1f")
		f.g.no(w.e.ReleaseGrants(w.ctx, w.p, f.k.session, []engine.GrantReturn{{Grant: x, Reserved: true}}, nil))
		w.code(f.id.Member("last"), "R1f")
		same(w, "not granted again", len(f.k.grants(9)), 0)
		w.code(f.id.Member("last"), "T3n")
		f.drain()
		f.g.deliver()
		same(w, "slots", f.g.held(f.slots), 0)
	}},
	{name: "granted and held siblings are cancelled when their group is decided", run: func(w *env) {
		f := newGatedFlow(w, 9)
		f.node("a", nil, f.gated()).node("b", nil, f.gated()).node("c", nil, f.gated()).node("end",
			[]string{"a", "b", "c"}, anyOf, cancelRest, f.gated()).submit(engine.SealClosed)
		by := f.grantsBy("a", "b", "c")
		f.g.admit(f.slots, 2, by["a"], by["b"])
		f.g.hold(f.id.Member("c"))
		a := f.k.granted(by["a"])[0]
		f.complete(a, "first")
		f.drain()
		f.are(flowfabric.Cancelled, "b", "c")
		f.g.expects(f.k, []engine.Grant{by["b"]}, denied.StaleLease)
		f.g.deliver()
		same(w, "slots", f.g.held(f.slots), 0)
		end := f.g.start(f.k, 9, f.slots)[0]
		same(w, "input", string(end.Inputs["from-a"]), "first")
		_, err := w.e.FailExecution(w.ctx, end.Fence, engine.Failure{Category: "x", Permanent: true})
		w.no(err)
		f.ends(flowfabric.FlowFailed)
		w.replay(f.id.Member("end"), engine.Replay{})
		f.g.deliver()
		f.g.advance(time.Second)
		f.complete(f.g.start(f.k, 9, f.slots)[0], "")
		f.ends(flowfabric.FlowCompleted)
	}},
	{name: "a parent returns its slot while it waits for children that need the same one", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		id := w.create(asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		c := g.start(k, 1, q)[0]
		q2 := engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Children: []engine.FlowMember{
			w.child(id, "wait", "one", asking(flowfabric.Gate(q))),
			w.child(id, "wait", "two", asking(flowfabric.Gate(q)))}}
		r, err := childtest.Wait(w.ctx, w.e, c.Fence, q2)
		w.no(err)
		same(w, "parked", r.Parked, true)
		w.check()
		for range 2 {
			g.deliver()
			list := k.grants(1)
			g.admit(q, 1, list...)
			w.complete(k.granted(list...)[0].Fence, "")
		}
		g.deliver()
		c = g.start(k, 9, q)[0]
		w.all("resumed", eq(c.Fence.Execution, id), eq(c.Type, flowfabric.AttemptResumed))
		w.complete(c.Fence, "")
		g.deliver()
		same(w, "slots", g.held(q), 0)
	}},
}
