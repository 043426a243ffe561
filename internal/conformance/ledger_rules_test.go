package conformance

import (
	"time"

	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// suspect is a reservation as Suspects lists it.
func suspect(x engine.Reservation) engine.SuspectReservation {
	return engine.SuspectReservation{Hold: engine.Hold{Execution: x.Execution, Epoch: x.Epoch}, Gate: x.Gate,
		Number: x.Number, Last: x.Last}
}

// resolve ends a reservation whose lease is over.
func (g *gates) resolve(x engine.Reservation, used, reserved int64) {
	g.Helper()
	wake, err := g.e.Resolve(g.ctx, suspect(x))
	g.no(err)
	g.wake(wake)
	g.stands(x.Gate, used, reserved)
}

// suspected is how many reservations of a gate are to be asked about.
func (g *gates) suspected(gate string) (n int) {
	g.Helper()
	list, err := g.e.Suspects(g.ctx, ids.GatePartition(gate, limits.DefaultGatePartitions))
	g.no(err)
	for _, x := range list {
		if x.Gate == gate {
			n++
		}
	}
	return n
}

var ledgerRuleScenarios = []scenario{
	{name: "who waits behind the first in line is told of the dimension without room, and is not failed",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(func(b *admission.Gate) {
				b.OnHard, b.Limits = admission.HardBlock,
					map[string]admission.Limit{"tokens": {Hard: 100}, "zeros": {Hard: 100}}
			})
			id := func(number uint64) engine.Reservation {
				return engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: number, Number: 1,
					Since: time.UnixMilli(int64(number))}
			}
			g.reserve(id(1), 60, true)
			g.reserve(id(2), 70, false)
			small := id(3)
			small.Amounts = map[string]int64{"calls": 5, "tokens": 10, "zeros": 1}
			for range 2 {
				r, _, err := g.e.Reserve(w.ctx, small)
				w.no(err)
				g.decides("it fits, and waits behind", r, "HARD_BREACH", false, breach("tokens", true, 60, 100, false))
				same(w, "action", r.Action, admission.HardBlock)
			}
			a := g.look(b, 1, small.Execution)
			w.all("why", eq(a.Why, "amount"), eq(a.Dimension, "tokens"), eq(a.Used, 60), eq(a.Limit, 100),
				eq(a.Refused, 10))
			small.Amounts = map[string]int64{"tokens": 95, "zeros": 99, "calls": 1}
			_, _, err := g.e.Reserve(w.ctx, small)
			w.no(err)
			a = g.look(b, 1, small.Execution)
			w.all("what has no room", eq(a.Dimension, "tokens"), eq(a.Refused, 95))
			g.sound()
		}},
	{name: "who was created earlier is before others of its priority, and comes again in its place", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
		id := func(age, number uint64) engine.Reservation {
			return engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: number, Number: 1,
				Since: time.UnixMilli(int64(age))}
		}
		holder, young, old := id(1, 1), id(9, 2), id(5, 3)
		g.reserve(holder, 60, true)
		g.reserve(young, 50, false)
		g.reserve(old, 90, false)
		g.settled(holder, 5, 5, 0)
		young.Number, old.Number = 2, 2
		g.reserve(young, 50, false) // it fits, but not beside the older one
		g.reserve(old, 90, true)
		g.sound()
	}},
	{name: "what was given back is not given back again by a late settlement", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		y := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		g.reserve(y, 20, true)
		g.settled(y, 20, 20, 0)
		g.reserve(x, 70, true)
		g.resolve(x, 90, 0)
		done, _ := g.tell(engine.News{Gate: b, Execution: x.Execution, What: engine.NewsAsked})
		same(w, "given back", done, true)
		g.stands(b, 20, 0)
		g.settled(x, 10, 20, 0)
		g.sound()
	}},
	{name: "a gate that counts amounts no more ends what was reserved", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		y := x
		y.Number = 2
		g.reserve(x, 30, true)
		g.reserve(y, 40, true)
		g.put(admission.Gate{Name: b, Concurrency: 1}, 1)
		g.settled(y, 10, 40, 30)
		none := x
		none.Number = 3
		g.settled(none, 5, 40, 30)
		g.pass(61 * time.Second)
		same(w, "suspects", g.suspected(b), 1)
		g.resolve(x, 40, 0)
		same(w, "suspects", g.suspected(b), 0)
		g.sound()
	}},
	{name: "what was reserved in an earlier period takes nothing from this one", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		y, z := x, x
		y.Number, z.Number = 2, 3
		g.reserve(x, 30, true)
		g.reserve(y, 60, true)
		g.resetUsage(b)
		g.reserve(z, 40, true)
		g.settled(x, 10, 40, 40)
		_, _, err := w.e.Unreserve(w.ctx, y)
		w.no(err)
		g.stands(b, 40, 40)
		g.settled(z, 40, 40, 0)
		g.sound()
	}},
	{name: "what gives something back passes no limit", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		y := x
		y.Number = 2
		g.reserve(x, 40, true)
		g.reserve(y, 50, true)
		g.put(admission.Gate{Name: b, Limits: hardLimit(20)}, 1)
		g.decides("less", g.settled(x, 30, 80, 50), "OK", true)
		g.decides("all of it", g.settled(y, 50, 80, 0), "OK", true)
		same(w, "breaches", g.record(b).HardBreaches, 0)
		g.sound()
	}},
	{name: "who vouches for a reservation wakes nobody", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Concurrency = 1 })
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		g.reserve(x, 10, true)
		ask := func(route uint64, execution engine.Hold) {
			w.Helper()
			_, err := g.e.Admit(w.ctx, b, engine.Waiter{Partition: w.p, Route: route}, 10*time.Second, false,
				[]engine.Hold{execution})
			w.no(err)
		}
		first := engine.Hold{Execution: mint.ID(w.p), Epoch: 1}
		ask(1, first)
		for route := range uint64(5) {
			ask(route+2, engine.Hold{Execution: mint.ID(w.p), Epoch: 1})
		}
		_, wake := g.tell(engine.News{Gate: b, Execution: first.Execution, Epoch: first.Epoch, What: engine.NewsGone})
		w.all("woken, waiting", eq(len(wake), 3), eq(g.record(b).ForSlots, 2))
		w.no(g.e.Vouch(w.ctx, suspect(x)))
		same(w, "waiting", g.record(b).ForSlots, 2)
		g.sound()
	}},
	{name: "a reservation is suspect a minute after somebody vouched for it", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		g.reserve(x, 10, true)
		for range 2 {
			g.pass(59 * time.Second)
			same(w, "suspects", g.suspected(b), 0)
			g.pass(2 * time.Second)
			same(w, "suspects", g.suspected(b), 1)
			w.no(g.e.Vouch(w.ctx, suspect(x)))
			same(w, "suspects", g.suspected(b), 0)
		}
		g.sound()
	}},
	{name: "queues are woken when there is room for the first in line, not before", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
		id := func(number uint64) engine.Reservation {
			return engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: number, Number: 1,
				Since: time.UnixMilli(int64(number))}
		}
		one, two, big := id(1), id(2), id(3)
		g.reserve(one, 30, true)
		g.reserve(two, 40, true)
		g.reserve(big, 80, false)
		same(w, "why", g.look(b, 1, big.Execution).Why, "amount")
		g.settled(one, 0, 40, 40)
		same(w, "waiting", g.record(b).ForAmounts, 1)
		g.settled(two, 0, 0, 0)
		same(w, "waiting", g.record(b).ForAmounts, 0)
		g.sound()
	}},
}
