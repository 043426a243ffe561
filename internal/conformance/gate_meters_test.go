package conformance

import (
	"slices"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// told empties the outbox, tells the gates, and returns what they heard, as "<gate> <what>" in order of that.
func (g *gates) told() []string {
	g.Helper()
	entries, _, err := g.e.ReadOutbox(g.ctx, g.p, "")
	g.no(err)
	var list []string
	for _, x := range entries {
		for _, n := range x.News {
			list = append(list, n.Gate+" "+n.What)
		}
	}
	g.deliver()
	slices.Sort(list)
	return list
}

// remembers is what a route remembers of what its gates measure.
func (g *gates) remembers(route uint64) string {
	g.Helper()
	return g.hash(g.k.Closings())["m"+strconv.FormatUint(route, 10)]
}

// broken fails an execution for good.
func (w *env) broken(f flowfabric.Fence) {
	w.Helper()
	_, err := w.e.FailExecution(w.ctx, f, engine.Failure{Category: "broken", Permanent: true})
	w.no(err)
	w.check()
}

var meterScenarios = []scenario{
	{name: "each of a gate's three meters refuses by itself, says so, and wakes who waits for it", run: func(w *env) {
		g := newGates(w)
		limits := admission.Gate{Limits: hardLimit(100), Rate: 3, Window: flowfabric.Millis(time.Minute),
			Concurrency: 2}
		q := g.gate(limits)
		limits.Name = q
		w.createN(9, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		waits := func(what string, amounts, slots, rate, closed int) {
			w.Helper()
			x := g.record(q)
			w.all(what+": who waits", eq(x.ForAmounts, amounts), eq(x.ForSlots, slots), eq(x.ForRate, rate),
				eq(x.Waiting, amounts+slots+rate), eq(len(g.closings()), closed))
		}
		refused := func(why, line string, list []engine.Grant) engine.Admitted {
			w.Helper()
			a := g.admit(q, 0, list...)
			w.all("refused", eq(a.Why, why), eq(a.Meters, "ah"))
			g.refuse(k, false, a.Retry, line, list...)
			same(w, "granted while it is closed", len(k.grants(9)), 0)
			return a
		}

		list := k.grants(9)
		a := g.admit(q, 2, list...)
		w.all("of nine", eq(a.Why, "cap"), eq(a.Dimension, ""), eq(a.Used, 0), eq(a.Limit, 0))
		running := k.granted(list[:2]...)
		refused("cap", "gate "+q+" cap", list[2:])
		waits("cap", 0, 1, 0, 1)
		w.complete(running[0].Fence, "")
		g.deliver()
		waits("a slot is free", 0, 0, 0, 0)

		list = k.grants(9)
		same(w, "why", g.admit(q, 1, list...).Why, "rate")
		running = append(running[1:], k.granted(list[0])...)
		same(w, "window and slots", g.holds(q), occupied{2, 3})
		a = refused("rate", "gate "+q+" rate", list[1:])
		same(w, "retry", a.Retry > 30*time.Second && a.Retry <= 61*time.Second, true)
		waits("rate", 0, 0, 1, 1)
		limits.Rate = 100
		g.put(limits, 1)
		waits("more may start", 0, 0, 0, 0)

		w.complete(running[0].Fence, "")
		g.deliver()
		g.spend(q, "all-of-it", tokens(100))
		a = refused("amount", "gate "+q+" amount tokens 100 100", k.grants(9))
		w.all("amount", eq(a.Dimension, "tokens"), eq(a.Used, 100), eq(a.Limit, 100), eq(a.Refused, 0))
		waits("amount", 1, 0, 0, 1)
		same(w, "no start was counted", g.holds(q), occupied{1, 3})
		_, wake, err := g.e.AdjustUsage(w.ctx, q, tokens(-60))
		w.no(err)
		g.wake(wake)
		waits("room", 0, 0, 0, 0)

		list = k.grants(1)
		g.admit(q, 1, list...)
		f := k.granted(list...)[0].Fence
		r, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: q, Execution: f.Execution, Epoch: f.Epoch, Sequence: 1,
			Amounts: tokens(7)})
		w.no(err)
		g.decides("a spend", r, "OK", true)
		x := g.record(q)
		w.all("one record of all", eq(x.Used["tokens"], 47), eq(x.Headroom["tokens"], 53), eq(len(x.Spenders), 1),
			eq(x.Spenders[0].Execution, f.Execution), eq(x.Held, 2), eq(*x.Free, 0), eq(len(x.Slots),
				2), eq(x.Started, 4),
			eq(x.Revision, 2), eq(x.CountsAmounts(), true))
	}},
	{name: "a gate asks for amounts before starts, and admits those in front of what does not fit", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Limits: hardLimit(100), OnHard: admission.HardBlock, Rate: 9,
			Window: flowfabric.Millis(time.Hour), Concurrency: 3, Refund: []string{"failed"}})
		w.createN(3, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		list := k.grants(3)
		g.spend(q, "others", tokens(50))
		r, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: q, Execution: list[1].Execution, Epoch: 1, Sequence: 1,
			Amounts: tokens(70)})
		w.no(err)
		w.all("refused", eq(r.Applied, false), eq(r.Action, admission.HardBlock))
		a := g.look(q, list[0].Route, list[0].Execution, list[1].Execution)
		w.all("a look", eq(a.Why, "amount"), eq(a.Refused, 70))
		same(w, "a look admits nothing", g.holds(q), occupied{0, 0})
		a = g.admit(q, 1, list...)
		w.all("why", eq(a.Why, "amount"), eq(a.Refused, 70), eq(a.Used, 50), eq(a.Retry, 30*time.Second))
		same(w, "the first one", g.holds(q), occupied{1, 1})
		g.refuse(k, false, a.Retry, "gate "+q+" amount tokens 50 100 70", list[1:]...)
		f := k.granted(list[0])[0].Fence
		_, err = g.e.ReportUsage(w.ctx, admission.Usage{Gate: q, Execution: f.Execution, Epoch: f.Epoch, Sequence: 1,
			Amounts: tokens(50)})
		w.no(err)
		same(w, "all is used", g.look(q, 77).Why, "amount")
		w.broken(f)
		sameList(w, "told", g.told(), q+" failed", q+" gone")
		w.all("the slot and the amount are back, the start is not", eq(g.holds(q), occupied{0, 1}),
			eq(g.spent(q, "tokens"), 50))
		w.all("woken by the refund", eq(g.record(q).Waiting, 0), eq(len(g.closings()), 0))
	}},
	{name: "an end is told to the gates that hold or count what ended, and until they are known to all",
		run: func(w *env) {
			g := newGates(w)
			b, q, key := g.budget(nil), g.gate(admission.Gate{Concurrency: 9}), g.limited("9.0.0", g.name+"/key")
			k := g.asker("w1")
			run := func(measured ...wire.ClaimGrantedRoute) (engine.Claim, uint64) {
				w.Helper()
				id := w.create(asking(flowfabric.Gate(b), flowfabric.Gate(q), flowfabric.Gate(key)))
				list := k.grants(1)
				w.all("granted", eq(len(list), 1), eq(list[0].Execution, id))
				g.admit(q, 1, list...)
				g.admit(key, 1, list...)
				for i := range measured {
					measured[i].Route = int(list[0].Route)
				}
				_, claims, err := w.e.ClaimGranted(w.ctx, w.p, k.session, k.number, list, measured)
				w.no(err)
				w.check()
				return claims[0], list[0].Route
			}
			c, route := run()
			same(w, "nobody has told", g.remembers(route), "")
			w.broken(c.Fence)
			all := []string{key + " gone", b + " failed", b + " gone", q + " failed", q + " gone"}
			sameList(w, "told to all", g.told(), all...)

			c, _ = run(wire.ClaimGrantedRoute{Meters: q + "=h"})
			same(w, "of one of them", g.remembers(route), q+"=h")
			w.complete(c.Fence, "")
			sameList(w, "the other one is not known", g.told(), key+" gone", b+" gone", q+" gone")

			c, _ = run(wire.ClaimGrantedRoute{Meters: b + "=a," + q + "=h"})
			same(w, "known", g.remembers(route), b+"=a,"+q+"=h")
			w.broken(c.Fence)
			sameList(w, "failed", g.told(), key+" gone", b+" failed", q+" gone")
			c, _ = run(wire.ClaimGrantedRoute{Meters: b + "=a"})
			same(w, "what others told stays", g.remembers(route), b+"=a,"+q+"=h")
			w.complete(c.Fence, "")
			sameList(w, "completed", g.told(), key+" gone", q+" gone")
			_, err := w.e.PurgeExecution(w.ctx, c.Fence.Execution, 0)
			w.no(err)
			sameList(w, "purged", g.told(), b+" purged")
			w.all("slots", eq(g.held(q), 0), eq(g.held(key), 0))
		}},
	{name: "what a route remembers of its gates grows when one gets another meter, and never shrinks",
		run: func(w *env) {
			g := newGates(w)
			limits := admission.Gate{Concurrency: 9}
			q := g.gate(limits)
			limits.Name = q
			k := g.asker("w1")
			run := func(want string) flowfabric.Fence {
				w.Helper()
				w.create(asking(flowfabric.Gate(q)))
				list := k.grants(1)
				g.admit(q, 1, list...)
				f := k.granted(list...)[0].Fence
				same(w, "remembered", g.remembers(list[0].Route), q+"="+want)
				return f
			}
			w.broken(run("h"))
			sameList(w, "told", g.told(), q+" gone")
			limits.Limits, limits.Refund = hardLimit(100), []string{"failed"}
			g.put(limits, 1)
			f := run("ah")
			_, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: q, Execution: f.Execution, Epoch: f.Epoch,
				Sequence: 1,
				Amounts:  tokens(40)})
			w.no(err)
			same(w, "used", g.spent(q, "tokens"), 40)
			w.broken(f)
			sameList(w, "told", g.told(), q+" failed", q+" gone")
			same(w, "given back", g.spent(q, "tokens"), 0)
			limits.Concurrency = 0
			g.put(limits, 2)
			w.broken(run("ah"))
			sameList(w, "told still", g.told(), q+" failed", q+" gone")
		}},
	{name: "a gate that begins to hold hears of what never ran before any claim has told so", run: func(w *env) {
		g := newGates(w)
		limits := admission.Gate{Limits: hardLimit(100)}
		q := g.gate(limits)
		limits.Name = q
		k := g.asker("w1")
		w.create(asking(flowfabric.Gate(q)))
		list := k.grants(1)
		w.complete(k.granted(list...)[0].Fence, "")
		same(w, "remembered", g.remembers(list[0].Route), q+"=a")
		sameList(w, "told", g.told())
		limits.Rate, limits.Window = 1, flowfabric.Millis(time.Hour)
		g.put(limits, 1)
		w.create(asking(flowfabric.Gate(q)))
		for range 3 { // another gate refuses it each time
			list = k.grants(1)
			g.admit(q, 1, list...)
			g.no(g.e.ReleaseGrants(w.ctx, w.p, k.session, []engine.GrantReturn{{Grant: list[0], Reserved: true}}, nil))
			sameList(w, "told", g.told(), q+" never")
			same(w, "the start is back", g.holds(q), occupied{0, 0})
		}
	}},
	{name: "a gate that limits starts alone counts no spend, and keeps what it counted before", run: func(w *env) {
		g := newGates(w)
		limits := admission.Gate{Rate: 5, Window: flowfabric.Millis(time.Hour), Concurrency: 1}
		q := g.gate(limits)
		limits.Name = q
		id := mint.ID(w.p)
		of := func(sequence uint64, key string, n int64) admission.Usage {
			u := admission.Usage{Gate: q, Execution: id, Sequence: sequence, Key: key, Amounts: tokens(n)}
			if sequence > 0 {
				u.Epoch = 5
			}
			return u
		}
		g.still(q, "a spend that is not counted", func() {
			for _, u := range []admission.Usage{of(1, "", 1<<52), of(0, "k", 7), of(2, "k", 7)} {
				r, err := g.e.ReportUsage(w.ctx, u)
				w.no(err)
				g.decides("not counted", r, "OK", false)
				w.all("nor known again", eq(r.Replayed, false), eq(r.Late, false), eq(r.Action, ""), eq(r.Left, 0))
			}
			undone, wake, err := g.e.UndoUsage(w.ctx, of(1, "", 1))
			w.no(err)
			w.all("nothing to undo", eq(undone, false), eqList(wake))
		})
		x := g.record(q)
		w.all("record", eq(x.CountsAmounts(), false), eq(len(x.Used), 0), eq(len(x.Spenders), 0))

		limits.Limits = hardLimit(100)
		g.put(limits, 1)
		r, err := g.e.ReportUsage(w.ctx, of(3, "", 30))
		w.no(err)
		g.decides("counted now", r, "OK", true)
		g.spend(q, "others", tokens(50))
		limits.Limits = nil
		g.put(limits, 2)
		r, err = g.e.ReportUsage(w.ctx, of(4, "", 30))
		w.no(err)
		g.decides("no more", r, "OK", false)
		undone, _, err := g.e.UndoUsage(w.ctx, of(3, "", 30))
		w.no(err)
		w.all("what it counted is taken back, and that alone", eq(undone, true), eq(g.spent(q, "tokens"), 50))
		limits.Limits = hardLimit(100)
		g.put(limits, 3)
		same(w, "used", g.spent(q, "tokens"), 50)
		_, err = g.e.ReportUsage(w.ctx, of(5, "", 20))
		w.no(err)
		limits.Limits = nil
		g.put(limits, 4)
		given, _ := g.tell(refundOf(q, id))
		w.all("given back", eq(given, true), eq(g.spent(q, "tokens"), 50))
		w.lives(g.gateRoot(q).Ledger(q, strconv.Itoa(int(id.Partition()))+"."+ids.UUID(id).String()), 7*24*time.Hour)
		g.sound()
	}},
}
