package conformance

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// shared sets a share aside for an execution.
func (g *gates) shared(x engine.Reservation, n int64, want bool) engine.Reservation {
	g.Helper()
	x.Epoch, x.Number = 0, 1
	g.reserve(x, n, want)
	return x
}

// unshared gives back what is left of it.
func (g *gates) unshared(x engine.Reservation, used, reserved int64) {
	g.Helper()
	x.Amounts = nil
	_, wake, err := g.e.Unreserve(g.ctx, x)
	g.no(err)
	g.wake(wake)
	g.stands(x.Gate, used, reserved)
}

var shareScenarios = []scenario{
	{name: "an execution uses its share, whatever room there is, and no more", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		share := g.shared(x, 60, true)
		g.stands(b, 60, 60)
		same(w, "again", g.reserve(share, 60, true).Replayed, true)
		share.Amounts = tokens(61)
		_, _, err := w.e.Reserve(w.ctx, share)
		w.is(err, denied.Idempotency)
		g.reserve(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}, 40, true)
		g.stands(b, 100, 100)
		g.reserve(x, 40, true) // the gate is full
		g.stands(b, 100, 100)
		x.Number = 2
		r := g.reserve(x, 21, false)
		g.decides("more than is left", r, "HARD_BREACH", false, breach("tokens", true, 40, 60, false))
		same(w, "the handler decides", r.Action, admission.HardReject)
		x.Number = 1
		g.settled(x, 10, 100, 90) // 30 are in the share again
		spend := admission.Usage{Gate: b, Execution: x.Execution, Epoch: 1, Sequence: 1, Amounts: tokens(51)}
		r, err = g.e.ReportUsage(w.ctx, spend)
		w.no(err)
		g.decides("a report of more", r, "HARD_BREACH", false, breach("tokens", true, 10, 60, false))
		spend.Sequence, spend.Amounts = 2, tokens(5)
		_, err = g.e.ReportUsage(w.ctx, spend)
		w.no(err)
		g.stands(b, 100, 85)
		_, _, err = g.e.UndoUsage(w.ctx, spend)
		w.no(err)
		g.stands(b, 100, 90)
		x.Number = 3
		g.reserve(x, 45, true)
		g.settled(x, 55, 105, 40) // 5 of the 10 more are in the share
		x.Number = 4
		g.reserve(x, 1, false)
		g.unshared(share, 105, 40)
		g.unshared(share, 105, 40)
		_, _, err = w.e.Reserve(w.ctx, share)
		w.is(err, denied.StaleLease) // it has begun
		for _, s := range g.record(b).Spenders {
			if s.Execution == x.Execution {
				same(w, "ledger", s.Used["tokens"], 65)
			}
		}
		g.sound()
	}},
	{name: "a share lasts as long as its execution, and that of one that was never made ends, too", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		never := g.shared(engine.Reservation{Gate: b, Execution: mint.ID(w.p)}, 10, true)
		id := g.create()
		g.shared(engine.Reservation{Gate: b, Execution: id}, 60, true)
		g.reckon(b, 0)
		g.pass(61 * time.Second)
		g.reckon(b, 1)
		g.stands(b, 60, 60)
		k := w.worker("w1")
		g.shared(never, 20, true) // it may be made after all
		f := k.one(id).Fence
		g.reserve(reservationOf(b, f, 1), 15, true)
		g.settled(reservationOf(b, f, 1), 15, 80, 65)
		w.complete(f, "")
		g.unshared(never, 60, 45)
		g.pass(61*time.Second, k)
		g.reckon(b, 1)
		g.stands(b, 15, 0)
		g.sound()
	}},
	{name: "a share of an earlier period is a bound, and no room", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		share := g.shared(x, 60, true)
		g.resetUsage(b)
		g.stands(b, 0, 0)
		g.reserve(x, 61, false)
		x.Number = 2
		g.reserve(x, 40, true)
		g.stands(b, 40, 40)
		g.settled(x, 10, 10, 0)
		g.reserve(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}, 70, true)
		x.Number = 3
		g.reserve(x, 21, false) // there is no room
		x.Number = 4
		g.reserve(x, 20, true)
		x.Number = 5
		g.reserve(x, 31, false) // 30 are left of the share
		g.unshared(share, 100, 90)
		g.sound()
	}},
	{name: "a share of a share is a part of it, and goes back there", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		below := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Of: x.Execution}
		share := g.shared(x, 60, true)
		g.reserve(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}, 40, true)
		r := g.reserve(engine.Reservation{Gate: b, Execution: below.Execution, Of: x.Execution, Number: 1}, 61, false)
		g.decides("more than the parent has", r, "HARD_BREACH", false, breach("tokens", true, 0, 60, false))
		part := g.shared(below, 50, true) // the gate is full
		same(w, "again", g.reserve(part, 50, true).Replayed, true)
		g.stands(b, 100, 100)
		g.reserve(x, 11, false)
		x.Number = 2
		g.reserve(x, 10, true)
		below.Epoch, below.Number, below.Of = 1, 1, flowfabric.ExecutionID{}
		g.reserve(below, 20, true)
		g.settled(below, 15, 100, 85)
		part.Of = flowfabric.ExecutionID{}
		g.unshared(part, 100, 85) // 35 are the parent's again
		g.unshared(part, 100, 85)
		x.Number = 3
		g.reserve(x, 36, false)
		x.Number = 4
		g.reserve(x, 35, true)
		g.settled(x, 0, 100, 85)
		g.unshared(share, 65, 50)
		g.sound()
		part.Of = part.Execution
		_, _, err := w.e.Reserve(w.ctx, part)
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "a share of a share in a later period takes room and goes back to the bound", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		share := g.shared(x, 60, true)
		early := g.shared(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Of: x.Execution}, 20, true)
		g.resetUsage(b)
		late := g.shared(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Of: x.Execution}, 30, true)
		g.stands(b, 30, 30)
		g.reserve(x, 11, false)
		early.Of, late.Of = flowfabric.ExecutionID{}, flowfabric.ExecutionID{}
		g.unshared(early, 30, 30)
		g.unshared(late, 0, 0)
		x.Number = 2
		g.reserve(x, 61, false)
		x.Number = 3
		g.reserve(x, 60, true)
		g.stands(b, 60, 60)
		g.unshared(share, 60, 60)
		g.sound()
	}},
	{name: "who has set shares aside is started though the gate is full, to give them back", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
		parent := mint.ID(w.p)
		one := g.shared(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Of: parent}, 60, true)
		two := g.shared(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Of: parent}, 40, true)
		same(w, "all is set aside", g.look(b, 1, parent).Why, "")
		one.Of, two.Of = flowfabric.ExecutionID{}, flowfabric.ExecutionID{}
		g.unshared(one, 40, 40)
		g.reserve(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}, 60, true)
		same(w, "one is open", g.look(b, 1, parent).Why, "")
		g.unshared(two, 60, 60)
		g.unshared(two, 60, 60)
		g.reserve(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}, 40, true)
		same(w, "none is", g.look(b, 1, parent).Why, "amount")
		g.sound()
	}},
	{name: "who has a share is started though the gate is full, and who has none is not", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		g.shared(x, 100, true)
		other := mint.ID(w.p)
		w.all("why", eq(g.look(b, 1, x.Execution).Why, ""), eq(g.look(b, 1, other).Why, "amount"))
		g.reserve(x, 100, true)
		same(w, "nothing is left", g.look(b, 1, x.Execution).Why, "amount")
		g.settled(x, 99, 100, 1)
		same(w, "something is", g.look(b, 1, x.Execution).Why, "")
		x.Number = 2
		same(w, "who is beyond it does not wait", g.reserve(x, 2, false).Action, admission.HardReject)
		g.sound()
	}},
}
