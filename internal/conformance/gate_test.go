package conformance

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

var gateScenarios = []scenario{
	{name: "a slot is returned when its execution completes", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 2})
		for range 3 {
			w.create(asking(flowfabric.Gate(q)))
		}
		k := g.asker("w1")
		list := k.grants(10)
		same(w, "granted", len(list), 3)
		a := g.admit(q, 2, list...)
		same(w, "why", a.Why, "cap")
		g.refuse(k, false, a.Retry, "cap", list[2])
		claims := k.granted(list[:2]...)
		same(w, "claimed", len(claims), 2)
		same(w, "while it is closed", len(k.grants(10)), 0)
		same(w, "held", g.held(q), 2)
		w.complete(claims[0].Fence, "")
		same(w, "outbox", w.tick().Outbox, 1)
		g.deliver()
		same(w, "held after the release", g.held(q), 1)
		list = k.grants(10)
		same(w, "granted again", len(list), 1)
		g.admit(q, 1, list...)
		k.granted(list...)
	}},
	{name: "a grant returns to the queue when its time or its session ends", run: func(w *env) {
		g := newGates(w)
		id := w.create(asking(flowfabric.Gate(g.gate(admission.Gate{Concurrency: 1}))))
		k := g.asker("w1")
		same(w, "granted", len(k.grants(5)), 1)
		w.code(id, "G1f")
		g.advance(5 * time.Second)
		w.tick()
		w.code(id, "R1f")
		list := k.grants(5)
		same(w, "granted again", len(list), 1)
		_, err := w.e.MarkSessionDead(trail.As(w.ctx, "", "test"), w.p, k.session)
		w.no(err)
		w.settleTime()
		s := w.code(id, "R1f")
		same(w, "reclaims", s.Reclaims, 0)
		g.deliver()
		old := w.worker("w2") // it understands no grants
		old.nothing()
	}},
	{name: "a budget accepts usage up to exactly its limit, and the next report is a breach", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		same(w, "report", g.spend(b, "a", map[string]int64{"tokens": 100}).Verdict, codes.WithinBudget)
		r := g.spend(b, "b", map[string]int64{"tokens": 1})
		g.decides("breach", r, "HARD_BREACH", false, breach("tokens", true, 100, 100, false))
		same(w, "used", g.spent(b, "tokens"), 100)
	}},
	{name: "an exhausted budget closes the route until its reset", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Reset = flowfabric.Millis(time.Minute) })
		g.spend(b, "a", map[string]int64{"tokens": 100})
		w.create(asking(flowfabric.Gate(b)))
		k := g.asker("w1")
		list := k.grants(5)
		a := g.look(b, list[0].Route)
		w.all("room", eq(a.Why, "amount"), eq(a.Dimension, "tokens"), eq(a.Used, 100), eq(a.Limit, 100),
			eq(a.Retry, 30*time.Second))
		g.refuse(k, false, time.Minute, "gate "+b+" amount tokens 100 100", list...)
		same(w, "closed", len(k.grants(5)), 0)
		g.advance(time.Minute + time.Millisecond)
		w.tick()
		k = g.asker("w1")
		list = k.grants(5)
		same(w, "granted", len(list), 1)
		same(w, "open", g.room(b, list[0].Route), true)
		k.granted(list...)
	}},
	{name: "an operator holds and unholds a waiting execution", run: func(w *env) {
		id := w.create()
		already, err := w.e.HoldExecution(w.ctx, id)
		w.no(err)
		same(w, "already", already, false)
		w.check()
		k := w.worker("w1")
		k.nothing()
		w.code(id, "R4f")
		already, err = w.e.HoldExecution(w.ctx, id)
		w.no(err)
		same(w, "already", already, true)
		_, err = w.e.UnholdExecution(w.ctx, id)
		w.no(err)
		k.one(id)
		_, err = w.e.HoldExecution(w.ctx, id)
		w.is(err, denied.NotEligible)
	}},
	{name: "work that is created in a scope gets the gates of the scope", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		attach := func(scope, gates string) { w.must("ff_attach", proto, scope, gates, "set") }
		attach("n\x1fdefault", q)
		attach("t\x1fapp.tenant\x1facme", "acme")
		w.create()
		w.create(tags(map[string]string{"app.tenant": "acme"}))
		w.create(tags(map[string]string{"app.tenant": "other"}))
		k := g.asker("w1")
		got := map[string]int{}
		for _, x := range k.grants(10) {
			got[fmt.Sprint(k.routes[x.Route].Gates)]++
		}
		sameDeep(w, "routes", got, map[string]int{"[gate acme gate " + q + "]": 1, "[gate " + q + "]": 2})
	}},
	{name: "namespaces share a lane by weight", run: func(w *env) {
		for range 30 {
			w.create(namespace("big"))
		}
		for range 6 {
			w.create(namespace("small"))
		}
		k := w.worker("w1")
		got := map[string]int{}
		for range 10 {
			for _, c := range k.claim(1) {
				got[k.routes[c.Route].Namespace]++
			}
		}
		sameDeep(w, "shares", got, map[string]int{"big": 5, "small": 5})
		w.must("ff_set_share", proto, "big", "default", "4")
		for range 5 {
			for _, c := range k.claim(1) {
				got[k.routes[c.Route].Namespace]++
			}
		}
		sameDeep(w, "shares by weight", got, map[string]int{"big": 9, "small": 6})
	}},
}

func namespace(name string) option { return func(x *engine.NewExecution) { x.Namespace = name } }
