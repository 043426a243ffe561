package conformance

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// reserve sets tokens aside, and fails unless the gate answers want.
func (g *gates) reserve(x engine.Reservation, n int64, want bool) admission.Reported {
	g.Helper()
	x.Amounts = tokens(n)
	r, wake, err := g.e.Reserve(g.ctx, x)
	g.no(err)
	g.wake(wake)
	same(g.env, "reserved", r.Applied, want)
	return r
}

// settle says what was used, and how much is used and reserved then.
func (g *gates) settled(x engine.Reservation, n, used, reserved int64) admission.Reported {
	g.Helper()
	x.Amounts = tokens(n)
	r, wake, err := g.e.Settle(g.ctx, x)
	g.no(err)
	g.wake(wake)
	g.stands(x.Gate, used, reserved)
	return r
}

func (g *gates) stands(gate string, used, reserved int64) {
	g.Helper()
	b := g.record(gate)
	g.all("used, reserved of "+gate, eq(b.Used["tokens"], used), eq(b.Reserved["tokens"], reserved))
}

// reckon ends the reservations of a gate whose leases are over.
func (g *gates) reckon(gate string, want int) {
	g.Helper()
	n, err := admit.Reckon(g.ctx, g.e, ids.GatePartition(gate, limits.DefaultGatePartitions))
	g.no(err)
	same(g.env, "reckoned", n, want)
}

// running is an execution that a worker runs, which asks no gate before.
func (g *gates) running(k *worker) flowfabric.Fence {
	g.Helper()
	id := g.create()
	return k.one(id).Fence
}

func reservationOf(gate string, f flowfabric.Fence, number uint64) engine.Reservation {
	return engine.Reservation{Gate: gate, Execution: f.Execution, Epoch: f.Epoch, Number: number}
}

var ledgerScenarios = []scenario{
	{name: "of 200 concurrent reservations against a limit of 100, exactly 100 are made, and can be given back",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(nil)
			var made, refused atomic.Int64
			each := make([]engine.Reservation, 200)
			for i := range each {
				each[i] = engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1, Amounts: tokens(1)}
			}
			var held [200]bool
			together(200, func(i int) {
				r, _, err := g.e.Reserve(w.ctx, each[i])
				switch {
				case err != nil:
					w.Error(err)
				case r.Applied:
					held[i] = true
					made.Add(1)
				default:
					refused.Add(1)
				}
			})
			w.all("made, refused", eq(made.Load(), 100), eq(refused.Load(), 100))
			g.stands(b, 100, 100)
			together(200, func(i int) {
				if held[i] {
					x := each[i]
					x.Amounts = nil
					if _, _, err := g.e.Settle(w.ctx, x); err != nil {
						w.Error(err)
					}
				}
			})
			g.stands(b, 0, 0)
		}},
	{name: "a reservation counts as used, and is settled once: less is given back, more counts", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 3, Number: 1}
		g.reserve(x, 70, true)
		g.stands(b, 70, 70)
		same(w, "again", g.reserve(x, 70, true).Replayed, true)
		g.stands(b, 70, 70)
		x.Amounts = tokens(60)
		_, _, err := w.e.Reserve(w.ctx, x)
		w.is(err, denied.Idempotency)
		next := x
		next.Number = 2
		g.decides("no room", g.reserve(next, 40, false), "HARD_BREACH", false, breach("tokens", true, 70, 100, false))
		g.settled(x, 50, 50, 0)
		same(w, "again", g.settled(x, 99, 50, 0).Replayed, true)
		_, _, err = w.e.Reserve(w.ctx, x)
		w.is(err, denied.StaleLease)
		next.Number = 3
		g.reserve(next, 50, true)
		g.decides("more than reserved", g.settled(next, 80, 130, 0), "HARD_BREACH", true,
			breach("tokens", true, 100, 100, false))
		same(w, "ledger", g.record(b).Spenders[0].Used["tokens"], 130)
		next.Number = 4
		g.settled(next, 5, 135, 0) // there is none: it is charged
		same(w, "once", g.settled(next, 5, 135, 0).Replayed, true)
		g.sound()
	}},
	{name: "what is given back was never used, and cannot be reserved under its number again", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 3, Number: 1}
		g.reserve(x, 70, true)
		for range 2 {
			_, _, err := w.e.Unreserve(w.ctx, x)
			w.no(err)
			g.stands(b, 0, 0)
		}
		x.Amounts = tokens(70)
		_, _, err := w.e.Reserve(w.ctx, x)
		w.is(err, denied.StaleLease)
		x.Number, x.Epoch = 1, 2
		_, _, err = w.e.Reserve(w.ctx, x) // of a lease that another one followed
		w.is(err, denied.StaleLease)
		g.sound()
	}},
	{name: "a reservation stays while the lease lasts, is charged in full after it, and corrected by a late settlement",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(nil)
			k := w.worker("w1")
			f := g.running(k)
			x := reservationOf(b, f, 1)
			g.reserve(x, 70, true)
			g.reckon(b, 0)
			g.pass(90*time.Second, k)
			g.reckon(b, 0)
			g.stands(b, 70, 70)
			_, _, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f}}, nil)
			w.no(err)
			g.pass(61*time.Second, k)
			g.reckon(b, 1)
			g.stands(b, 70, 0)
			same(w, "who used it", g.record(b).Spenders[0].Used["tokens"], 70)
			g.reckon(b, 0)
			g.settled(x, 20, 20, 0)
			same(w, "who used it", g.record(b).Spenders[0].Used["tokens"], 20)
			same(w, "once", g.settled(x, 30, 20, 0).Replayed, true)
			g.sound()
		}},
	{name: "a charge that was refunded is not corrected by a late settlement", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		others := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 3, Number: 1}
		g.reserve(others, 30, true)
		g.settled(others, 30, 30, 0)
		k := w.worker("w1")
		f := g.running(k)
		x := reservationOf(b, f, 1)
		g.reserve(x, 70, true)
		_, _, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f}}, nil)
		w.no(err)
		g.pass(61*time.Second, k)
		g.reckon(b, 1)
		g.stands(b, 100, 0)
		done, wake, err := w.e.SettleGates(w.ctx, []engine.News{{Gate: b, Execution: f.Execution,
			What: engine.NewsAsked}})
		w.no(err)
		g.wake(wake)
		same(w, "given back", done[0], true)
		g.stands(b, 30, 0)
		same(w, "it is over", g.settled(x, 20, 30, 0).Replayed, true)
		g.sound()
	}},
	{name: "a reservation in several gates is held by all or by none, whatever dies", run: func(w *env) {
		g := newGates(w)
		org, team, own := g.budget(nil), g.budget(nil), g.budget(nil)
		k := w.worker("w1")
		f := g.running(k)
		at := func(gate string, number uint64) engine.Reservation {
			x := reservationOf(gate, f, number)
			if gate != own {
				x.Last = own
			}
			return x
		}
		// 1 died before the last gate was asked, 2 after it, 3 while it settled
		g.reserve(at(org, 1), 10, true)
		g.reserve(at(team, 1), 10, true)
		for n := range uint64(2) {
			for _, gate := range []string{org, team, own} {
				g.reserve(at(gate, n+2), 10, true)
			}
		}
		g.settled(at(own, 3), 4, 14, 10)
		g.stands(org, 30, 30)
		g.pass(10 * time.Minute) // the worker is dead
		w.tick()
		for _, gate := range []string{org, team, own} {
			for range 3 {
				_, err := admit.Reckon(w.ctx, g.e, ids.GatePartition(gate, limits.DefaultGatePartitions))
				w.no(err)
			}
		}
		for _, gate := range []string{org, team, own} {
			g.stands(gate, 14, 0) // 1 was given back, 2 charged in full, 3 as it was settled
		}
		late := at(own, 1)
		late.Amounts = tokens(10)
		_, _, err := w.e.Reserve(w.ctx, late) // a call that was under way for long
		w.is(err, denied.StaleLease)
		g.stands(own, 14, 0)
		g.sound()
	}},
	{name: "a deciding gate that does not count what is reserved decides all the same", run: func(w *env) {
		g := newGates(w)
		strict := g.budget(func(b *admission.Gate) {
			b.StrictDimensions, b.Limits = true, map[string]admission.Limit{"cents": {Hard: 100}}
		})
		b := g.budget(nil)
		k := w.worker("w1")
		f := g.running(k)
		entry := func(number uint64) *ledger.Entry {
			x := &ledger.Entry{Fence: f, Number: number, Own: []string{strict, b}, Amounts: tokens(30)}
			refused, err := ledger.Reserve(w.ctx, g.e, x)
			w.no(err)
			w.all("made, held", eq(refused == nil, true), eq(len(x.Held), 2))
			return x
		}
		entry(1) // the process dies in the call
		x := entry(2)
		x.Held = []string{strict} // it dies while it settles
		_, err := ledger.Settle(w.ctx, g.e, x, tokens(20))
		w.no(err)
		y := entry(3)
		w.no(ledger.Release(w.ctx, g.e, y))
		_, err = ledger.Settle(w.ctx, g.e, entry(4), tokens(5))
		w.no(err)
		g.stands(b, 65, 60)
		g.pass(10 * time.Minute)
		w.tick()
		for range 3 {
			for _, gate := range []string{b, strict} {
				_, err := admit.Reckon(w.ctx, g.e, ids.GatePartition(gate, limits.DefaultGatePartitions))
				w.no(err)
			}
		}
		g.stands(b, 55, 0) // 1 was charged in full, 2 settled with 20, 4 with 5
		g.sound()
	}},
	{name: "a reservation belongs to the period that it was made in", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 3, Number: 1}
		g.reserve(x, 60, true)
		y := x
		y.Number = 2
		g.reserve(y, 40, true)
		g.resetUsage(b)
		g.stands(b, 0, 0)
		g.settled(x, 10, 0, 0)
		g.settled(y, 45, 5, 0) // what it used beyond is of the new one
		log := g.record(b).Audit
		same(w, "the period that ended", log[len(log)-1].Amounts["tokens"], 100)
		g.sound()
	}},
	{name: "who waits for amounts is in line by priority and age, and no small one overtakes one that can be served",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
			id := func(number uint64, priority int) engine.Reservation {
				return engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: number, Number: 1,
					Priority: priority,
					Since:    time.UnixMilli(int64(number))}
			}
			holder, big, small, urgent := id(1, 0), id(2, 0), id(3, 0), id(4, 5)
			g.reserve(holder, 60, true)
			g.reserve(big, 70, false)
			g.advance(time.Second)
			g.decides("it fits, and waits behind", g.reserve(small, 10, false), "HARD_BREACH", false,
				breach("tokens", true, 60, 100, false))
			more := holder
			more.Number = 2
			g.reserve(more, 20, true) // who holds something passes the line
			g.advance(time.Second)
			g.reserve(urgent, 50, false)
			x := g.record(b)
			w.all("line", eq(len(x.Line), 3), eq(x.Line[0].Execution, urgent.Execution),
				eq(x.Line[1].Execution, big.Execution), eq(x.Line[1].Waits["tokens"], 70), eq(x.Line[2].Refusals, 1))
			sameDeep(w, "who reserved", x.Spenders[0].Reserved, tokens(80))
			g.settled(more, 0, 60, 60)
			g.settled(holder, 30, 30, 0)
			look := func(x engine.Reservation, want string) {
				w.Helper()
				same(w, "why", g.look(b, 1, x.Execution).Why, want)
			}
			look(big, "amount") // it would fit, but the urgent one is before it
			look(small, "")     // it fits beside it
			look(urgent, "")
			urgent.Number = 2
			g.reserve(urgent, 50, true)
			look(big, "amount")
			g.settled(urgent, 0, 30, 0)
			look(small, "amount")
			look(big, "")
			big.Number = 2
			g.reserve(big, 70, true)
			g.settled(big, 70, 100, 0)
			look(small, "amount")
			g.resetUsage(b)
			look(small, "")
			small.Number = 2
			g.reserve(small, 10, true)
			g.sound()
		}},
	{name: "one that this period cannot serve keeps nobody waiting, and one that nobody hears of leaves the line",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
			id := func(number uint64) engine.Reservation {
				return engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: number, Number: 1,
					Since: time.UnixMilli(int64(number))}
			}
			first := id(1)
			g.reserve(first, 50, true)
			g.settled(first, 50, 50, 0)
			g.reserve(id(2), 60, false) // only a new period has room for it
			next := id(3)
			g.reserve(next, 50, true)
			g.settled(next, 10, 60, 0)
			holder := id(4)
			g.reserve(holder, 40, true)
			g.reserve(id(5), 35, false) // it waits for what is reserved
			g.settled(holder, 0, 60, 0)
			g.reserve(id(6), 6, false)
			g.advance(time.Hour)
			g.reserve(id(7), 6, true)
			g.sound()
		}},
	{name: "gates above a gate count what it counts, up to eight, and refuse for all", run: func(w *env) {
		g := newGates(w)
		org := g.budget(func(b *admission.Gate) { b.Limits = hardLimit(50) })
		team := g.budget(func(b *admission.Gate) { b.Parent = org })
		user := g.budget(func(b *admission.Gate) { b.Parent, b.Limits = team, hardLimit(1000) })
		entry := func(number uint64, n int64) *ledger.Entry {
			return &ledger.Entry{Fence: flowfabric.Fence{Execution: mint.ID(w.p), Epoch: 1}, Number: number,
				Own: []string{user}, Amounts: tokens(n)}
		}
		all := func(used, reserved int64) {
			w.Helper()
			for _, gate := range []string{org, team, user} {
				g.stands(gate, used, reserved)
			}
		}
		for round := range int64(2) { // at first it is not known what is above
			x := entry(1, 30)
			refused, err := ledger.Reserve(w.ctx, g.e, x)
			w.no(err)
			w.all("held", eq(refused == nil, true), eq(len(x.Held), 3))
			all(10*round+30, 30)
			y := entry(1, 30)
			refused, err = ledger.Reserve(w.ctx, g.e, y)
			w.no(err)
			w.all("refused by", eq(refused != nil && refused.Gate == org, true), eq(len(y.Held), 0))
			all(10*round+30, 30)
			_, err = ledger.Settle(w.ctx, g.e, x, tokens(10))
			w.no(err)
			all(10*round+10, 0)
		}
		a, err := w.e.Admit(w.ctx, user, engine.Waiter{Partition: w.p, Route: 1}, 10*time.Second, true, nil)
		w.no(err)
		same(w, "who is asked next", a.Parent, team)
		last := user
		for range 7 {
			above := last
			last = g.budget(func(b *admission.Gate) { b.Parent, b.Limits = above, nil })
		}
		x := entry(1, 1)
		x.Own = []string{last}
		_, err = ledger.Reserve(w.ctx, g.e, x)
		w.is(err, flowfabric.ErrInvalidInput)
		all(20, 0)
		g.sound()
	}},
	{name: "an end is told to the gates above those of a route", run: func(w *env) {
		g := newGates(w)
		org := g.gate(admission.Gate{Concurrency: 1})
		team := g.budget(func(b *admission.Gate) { b.Parent = org })
		k := g.asker("w1")
		w.create(asking(flowfabric.Gate(team)))
		list := k.grants(1)
		same(w, "above", g.admit(team, 1, list...).Parent, org)
		g.admit(org, 1, list...)
		_, claims, err := w.e.ClaimGranted(w.ctx, w.p, k.session, k.number, list,
			[]wire.ClaimGrantedRoute{{Route: int(list[0].Route), Meters: org + "=h," + team + "=a"}})
		w.no(err)
		same(w, "held", g.held(org), 1)
		w.complete(claims[0].Fence, "")
		g.deliver()
		same(w, "held", g.held(org), 0)
	}},
	{name: "an estimate is what nine of ten of the last calls of a label used, by gate, once there are eight",
		run: func(w *env) {
			g := newGates(w)
			b, other := g.budget(func(b *admission.Gate) { b.Limits = nil }), g.budget(nil)
			n := uint64(0)
			used := func(gate, label string, amounts map[string]int64) {
				w.Helper()
				n++
				_, _, err := w.e.Settle(w.ctx, engine.Reservation{Gate: gate, Execution: mint.ID(w.p), Epoch: 1,
					Number: n, Label: label, Amounts: amounts})
				w.no(err)
			}
			for i := range int64(7) {
				used(b, "draft", tokens(10+i))
			}
			same(w, "too few", len(w.e.EstimateOf(b, "draft")), 0)
			used(b, "draft", map[string]int64{"tokens": 100, "calls": 1})
			sameDeep(w, "of eight", w.e.EstimateOf(b, "draft"), map[string]int64{"tokens": 100, "calls": 1})
			for range 2 {
				used(b, "draft", tokens(5))
			}
			sameDeep(w, "of ten", w.e.EstimateOf(b, "draft"), map[string]int64{"tokens": 16, "calls": 0})
			for range 64 {
				used(b, "draft", tokens(3))
			}
			sameDeep(w, "of the last 64", w.e.EstimateOf(b, "draft"), tokens(3))
			used(other, "draft", tokens(3))
			w.all("others", eq(len(w.e.EstimateOf(other, "draft")), 0), eq(len(w.e.EstimateOf(b, "other")), 0))
			g.sound()
		}},
	{name: "limits are raised once for a request, wake who waits, and are what they were in the next period",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
			x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1, Since: time.UnixMilli(1)}
			g.reserve(x, 90, true)
			next := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1, Since: time.UnixMilli(2)}
			g.reserve(next, 50, false)
			same(w, "no room", g.look(b, 7, next.Execution).Why, "amount")
			request := uuid.New()
			for range 2 {
				raised, wake, err := w.e.RaiseLimits(w.ctx, engine.Raise{Gate: b, Request: request,
					By: map[string]int64{"tokens": 50, "other": 9}})
				w.no(err)
				sameDeep(w, "raised", raised, tokens(50))
				sameList(w, "woken", wake, engine.Waiter{Partition: w.p, Route: 7})
			}
			r := g.record(b)
			w.all("limit", eq(r.Limits["tokens"].Hard, 100), eq(r.Raised["tokens"], 50), eq(r.Headroom["tokens"], 60),
				eq(len(r.Raised), 1), eq(r.Audit[len(r.Audit)-1].What, "raised"))
			next.Number = 2
			g.reserve(next, 50, true)
			next.Number = 3
			g.reserve(next, 11, false)
			_, _, err := w.e.RaiseLimits(w.ctx, engine.Raise{Gate: b, By: tokens(-1)})
			w.is(err, denied.Delta)
			g.resetUsage(b)
			w.all("the next period", eq(len(g.record(b).Raised), 0), eq(g.record(b).Headroom["tokens"], 100))
			g.sound()
		}},
	{name: "what nobody asks about any more is forgotten from a ledger", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		id := mint.ID(w.p)
		for n := range uint64(20) {
			x := engine.Reservation{Gate: b, Execution: id, Epoch: 1, Number: n + 1, Below: n + 1}
			g.reserve(x, 2, true)
			g.settled(x, 1, int64(n+1), 0)
		}
		size, err := w.do("HLEN", g.gateRoot(b).Ledger(b, strconv.Itoa(int(id.Partition()))+"."+ids.UUID(id).String())).
			AsInt64()
		w.no(err)
		same(w, "fields", size < 12, true)
		g.sound()
	}},
}
