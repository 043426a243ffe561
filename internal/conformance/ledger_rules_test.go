package conformance

import (
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
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
	{name: "who has ended leaves the line, and those behind it are woken, unless a later attempt has asked",
		run: func(w *env) {
			for _, what := range []string{"failed", "cancelled", "expired", engine.NewsPurged} {
				g := newGates(w)
				b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
				id := func(number uint64) engine.Reservation {
					return engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: number, Number: 1,
						Since: time.UnixMilli(int64(number))}
				}
				holder, big, small := id(1), id(2), id(3)
				g.reserve(holder, 60, true)
				g.reserve(big, 70, false)
				g.reserve(small, 10, false)
				same(w, "why", g.look(b, 7, small.Execution).Why, "amount")
				if what != engine.NewsPurged {
					_, wake := g.tell(engine.News{Gate: b, Execution: big.Execution, Epoch: 1, What: what})
					w.all("of an earlier attempt: woken, in line", eq(len(wake), 0), eq(len(g.record(b).Line), 2))
				}
				done, wake := g.tell(engine.News{Gate: b, Execution: big.Execution, Epoch: 2, What: what})
				sameList(w, what+": woken", wake, engine.Waiter{Partition: w.p, Route: 7})
				w.all(what, eq(done, false), eq(len(g.record(b).Line), 1))
				small.Number = 2
				g.reserve(small, 10, true)
				g.sound()
			}
		}},
	{name: "an execution that is cancelled while it waits for amounts leaves the line", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
		k := g.asker("w1")
		id := w.create(asking(flowfabric.Gate(b)))
		list := k.grants(1)
		g.admit(b, 1, list...)
		f := k.granted(list...)[0].Fence
		x := reservationOf(b, f, 1)
		x.Since = time.UnixMilli(1)
		g.reserve(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}, 60, true)
		g.reserve(x, 70, false)
		_, err := w.e.ReleaseExecution(w.ctx, f)
		w.no(err)
		g.deliver()
		same(w, "in line", len(g.record(b).Line), 1)
		w.cancel(id)
		g.deliver()
		same(w, "in line", len(g.record(b).Line), 0)
	}},
	{name: "who has not asked for two minutes is passed over, however long it may pause, until it asks again",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
			id := func(number uint64) engine.Reservation {
				return engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: number, Number: 1,
					Since: time.UnixMilli(int64(number))}
			}
			holder, big := id(1), id(2)
			g.reserve(holder, 60, true)
			for range 8 { // it pauses for an hour then
				g.reserve(big, 70, false)
				big.Number++
			}
			a := g.look(b, 7, big.Execution)
			w.all("asks again", eq(a.Why, "amount"), eq(a.Retry, time.Minute))
			g.advance(2 * time.Minute)
			g.reserve(id(3), 1, false)
			g.advance(time.Millisecond)
			g.reserve(id(4), 1, true)
			same(w, "why", g.look(b, 7, big.Execution).Why, "amount")
			g.reserve(id(5), 1, false)
			g.settled(holder, 40, 41, 1)
			only := id(6) // whom only a new period can serve
			for range 8 {
				g.reserve(only, 99, false)
				only.Number++
			}
			same(w, "asks again", g.look(b, 7, only.Execution).Retry, time.Hour)
			g.sound()
		}},
	{name: "who waits for one gate is passed over in the line of another one above it", run: func(w *env) {
		g := newGates(w)
		org := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
		team := g.budget(func(b *admission.Gate) { b.OnHard, b.Parent = admission.HardBlock, org })
		entry := func(age uint64, n int64, own string) *ledger.Entry {
			return &ledger.Entry{Fence: flowfabric.Fence{Execution: mint.ID(w.p), Epoch: age}, Number: 1,
				Since: time.UnixMilli(int64(age)), Own: []string{own}, Amounts: tokens(n)}
		}
		ask := func(x *ledger.Entry, want string) {
			w.Helper()
			refused, err := ledger.Reserve(w.ctx, g.e, x)
			w.no(err)
			got := ""
			if refused != nil {
				got = refused.Gate
			}
			same(w, "refused by", got, want)
			x.Number++
		}
		ask(entry(1, 60, org), "")
		big := entry(2, 70, team)
		ask(big, org)
		small := entry(3, 10, org)
		ask(small, org)
		for range 3 { // it asks the gate below at each claim, and that one refuses
			g.look(team, 1, big.Fence.Execution)
			g.advance(50 * time.Second)
		}
		ask(small, "")
		ask(big, org) // it is in its place again
		ask(entry(4, 10, org), org)
		g.sound()
	}},
	{name: "how old epochs settled is forgotten after ten minutes, and a settlement of one charges nothing twice",
		run: func(w *env) {
			g := newGates(w)
			b, other := g.budget(func(b *admission.Gate) { b.Limits = hardLimit(1000) }), g.budget(nil)
			x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
			mine := func(epoch uint64) engine.Reservation {
				x.Epoch = epoch
				return x
			}
			ledgerKey := g.gateRoot(b).Ledger(b, strconv.Itoa(int(w.p))+"."+ids.UUID(x.Execution).String())
			for n := range uint64(20) {
				g.reserve(mine(n+1), 3, true)
				g.settled(mine(n+1), 2, int64(2*n+2), 0)
				if n%2 == 1 {
					g.advance(10 * time.Minute)
				}
			}
			size, err := w.do("HLEN", ledgerKey).AsInt64()
			w.no(err)
			same(w, "fields", size < 18, true)
			for range 2 {
				r := g.settled(mine(1), 50, 40, 0)
				w.all("too late", eq(r.Late, true), eq(r.Replayed, true), eq(r.Applied, true))
			}
			same(w, "of the second newest", g.settled(mine(19), 50, 40, 0).Late, false)
			r, _, err := g.e.Unreserve(w.ctx, mine(1))
			w.no(err)
			w.all("nothing to give back", eq(r.Late, true), eq(r.Replayed, true))
			held := mine(1)
			held.Gate, held.Last = other, b
			g.reserve(held, 30, true)
			g.resolve(held, 30, 0) // the gate whose word decides does not know: in full
			g.stands(b, 40, 0)
			g.sound()
		}},
	{name: "a ledger lasts as long as a reservation in it is vouched for", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		g.reserve(x, 10, true)
		key := g.gateRoot(b).Ledger(b, strconv.Itoa(int(w.p))+"."+ids.UUID(x.Execution).String())
		lasts := func(week bool) {
			w.Helper()
			ms, err := w.do("PTTL", key).AsInt64()
			w.no(err)
			same(w, "lasts a week", ms > (6*24*time.Hour).Milliseconds(), week)
		}
		lasts(true)
		w.set("PEXPIRE", key, "3600000") // as if a week were nearly over
		lasts(false)
		g.pass(61 * time.Second)
		w.no(g.e.Vouch(w.ctx, suspect(x)))
		lasts(true)
		g.settled(x, 5, 5, 0)
		w.set("PEXPIRE", key, "3600000")
		w.no(g.e.Vouch(w.ctx, suspect(x))) // of one that is over
		lasts(false)
		g.sound()
	}},
}
