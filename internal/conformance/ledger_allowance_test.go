package conformance

import (
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// allow lets one execution alone pass the limit of a gate, and returns what its allowance is then, and who is woken.
func (g *gates) allow(gate string, id flowfabric.ExecutionID, n int64) (int64, []engine.Waiter) {
	g.Helper()
	raised, wake, err := g.e.RaiseLimits(g.ctx, engine.Raise{Gate: gate, Execution: id, By: tokens(n)})
	g.no(err)
	return raised["tokens"], wake
}

// raisedBy is by how much the limit of a gate is higher.
func (g *gates) raisedBy(gate string, want int64) {
	g.Helper()
	same(g.env, "raised of "+gate, g.record(gate).Raised["tokens"], want)
}

var allowanceScenarios = []scenario{
	{name: "an execution passes a limit by its allowance, and raises the limit by what is lacking", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		other := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		g.reserve(other, 80, true)
		n, _ := g.allow(b, x.Execution, 40)
		m, _ := g.allow(b, x.Execution, 10)
		w.all("allowance", eq(n, 40), eq(m, 50))
		last := g.record(b).Audit
		w.all("the audit log", eq(last[len(last)-1].What, "allowed"), eq(last[len(last)-1].Amounts["tokens"], 10),
			eq(last[len(last)-1].Execution, x.Execution.String()))
		g.raisedBy(b, 0)
		other.Number = 2
		g.reserve(other, 21, false)
		g.reserve(x, 71, false) // 51 are lacking
		x.Number = 2
		g.reserve(x, 50, true) // 30 are
		g.raisedBy(b, 30)
		g.stands(b, 130, 130)
		x.Number = 3
		g.reserve(x, 21, false)
		r, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: x.Execution, Epoch: 1, Sequence: 1,
			Amounts: tokens(15)})
		w.no(err)
		w.all("a report", eq(r.Applied, true), eq(len(r.Breaches), 0))
		g.raisedBy(b, 45)
		x.Number = 2
		g.settled(x, 10, 105, 80)
		x.Number = 4
		g.reserve(x, 45, true) // 40 are free, 5 are left
		g.raisedBy(b, 50)
		x.Number = 5
		g.reserve(x, 1, false)
		g.sound()
	}},
	{name: "an allowance is once for a request, of a period, and not of dimensions without a limit", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		request := uuid.New()
		for range 2 {
			raised, _, err := w.e.RaiseLimits(w.ctx, engine.Raise{Gate: b, Request: request, Execution: x.Execution,
				By: map[string]int64{"tokens": 50, "other": 9}})
			w.no(err)
			sameDeep(w, "allowance", raised, tokens(50))
		}
		_, _, err := w.e.RaiseLimits(w.ctx, engine.Raise{Gate: b, Execution: x.Execution, By: tokens(-1)})
		w.is(err, denied.Delta)
		_, _, err = w.e.RaiseLimits(w.ctx, engine.Raise{Gate: "nobody", Execution: x.Execution, By: tokens(1)})
		w.is(err, denied.NoGate)
		g.resetUsage(b)
		g.reserve(x, 101, false)
		n, _ := g.allow(b, x.Execution, 1)
		same(w, "allowance", n, 1)
		x.Number = 2
		g.reserve(x, 101, true)
		g.raisedBy(b, 1)
		g.sound()
	}},
	{name: "an execution with an allowance passes the line, and takes nothing from the first in it", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardBlock })
		at := func(ms int64) engine.Reservation {
			return engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1, Since: time.UnixMilli(ms)}
		}
		busy, first, x := at(1), at(2), at(3)
		g.reserve(busy, 60, true)
		g.reserve(first, 90, false)
		g.reserve(x, 30, false) // there is room, but not beside the first one
		same(w, "it waits", g.look(b, 7, x.Execution).Why, "amount")
		_, wake := g.allow(b, x.Execution, 30)
		sameList(w, "woken", wake, engine.Waiter{Partition: w.p, Route: 7})
		same(w, "it may start", g.look(b, 7, x.Execution).Why, "")
		same(w, "the first may not", g.look(b, 8, first.Execution).Why, "amount")
		x.Number = 2
		g.reserve(x, 30, true)
		g.raisedBy(b, 30)
		g.settled(busy, 0, 30, 30)
		first.Number = 2
		g.reserve(first, 90, true)
		g.stands(b, 120, 120)
		g.sound()
	}},
	{name: "what is used is told by the hour, whatever the period, less what is given back", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		told := func(want int64) {
			w.Helper()
			sum, list := int64(0), g.record(b).Hours["tokens"]
			for _, n := range list {
				sum += n
			}
			w.all("by the hour", eq(sum, want), eq(len(list), 25))
		}
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}
		g.reserve(x, 70, true)
		told(70)
		g.settled(x, 40, 40, 0)
		told(40)
		u := admission.Usage{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Sequence: 1, Amounts: tokens(30)}
		_, err := g.e.ReportUsage(w.ctx, u)
		w.no(err)
		u.Sequence, u.Amounts = 2, tokens(31)
		_, err = g.e.ReportUsage(w.ctx, u) // it does not fit
		w.no(err)
		told(70)
		u.Sequence, u.Amounts = 3, tokens(5)
		_, err = g.e.ReportUsage(w.ctx, u)
		w.no(err)
		_, _, err = g.e.UndoUsage(w.ctx, u)
		w.no(err)
		told(70)
		g.resetUsage(b)
		told(70)
		u.Sequence = 4
		_, err = g.e.ReportUsage(w.ctx, u)
		w.no(err)
		told(75)
		_, _, err = g.e.SettleGates(w.ctx, []engine.News{{Gate: b, Execution: u.Execution, What: engine.NewsAsked}})
		w.no(err)
		told(70)
		g.sound()
	}},
	{name: "a gate that asks says so, has no line, and lets work start though it is used up", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.OnHard = admission.HardAsk })
		x := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1, Since: time.UnixMilli(1)}
		g.reserve(x, 100, true)
		next := engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1, Since: time.UnixMilli(2)}
		for _, n := range []int64{1, 101} {
			same(w, "action", g.reserve(next, n, false).Action, admission.HardAsk)
			next.Number++
		}
		r, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: next.Execution, Epoch: 1, Sequence: 1,
			Amounts: tokens(5)})
		w.no(err)
		w.all("a report", eq(r.Applied, false), eq(r.Action, admission.HardAsk))
		w.all("it starts", eq(g.look(b, 7, next.Execution).Why, ""), eq(len(g.record(b).Line), 0),
			eq(g.record(b).Exhausted[0], "tokens"))
		g.sound()
	}},
	{name: "an execution with an allowance starts though a gate is used up", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		g.reserve(engine.Reservation{Gate: b, Execution: mint.ID(w.p), Epoch: 1, Number: 1}, 100, true)
		x, other := mint.ID(w.p), mint.ID(w.p)
		same(w, "before", g.look(b, 7, x).Why, "amount")
		_, wake := g.allow(b, x, 5)
		sameList(w, "woken", wake, engine.Waiter{Partition: w.p, Route: 7})
		w.all("it alone", eq(g.look(b, 7, x).Why, ""), eq(g.look(b, 7, other).Why, "amount"))
		a, err := g.e.Admit(w.ctx, b, engine.Waiter{Partition: w.p, Route: 7}, time.Minute, false,
			[]engine.Hold{{Execution: x, Epoch: 1}, {Execution: other, Epoch: 1}})
		w.no(err)
		w.all("those in front", eq(a.Count, 1), eq(a.Why, "amount"))
		g.reserve(engine.Reservation{Gate: b, Execution: x, Epoch: 1, Number: 1}, 5, true)
		same(w, "it has none left", g.look(b, 7, x).Why, "amount")
		g.sound()
	}},
}
