package conformance

import (
	"errors"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// limited is the name of a limit of a key: numbers are "<at once>.<starts>.<window, ms>".
func (g *gates) limited(numbers, key string) string {
	name := "@" + numbers + "@" + key
	root := g.limitRoot(name)
	if !g.moving[root] {
		// it boots its partition, which then gets the clock
		_, err := g.e.Admit(g.ctx, name, engine.Waiter{Partition: g.p, Route: 1}, time.Second, false, nil)
		g.no(err)
		g.follow(root)
	}
	return name
}

func (g *gates) limitRoot(name string) string {
	return keys.GateRoot(ids.GatePartition(name, limits.DefaultGatePartitions))
}

// of is those grants that are of a route with this gate.
func of(list []engine.Grant, id ...flowfabric.ExecutionID) (out []engine.Grant) {
	for _, x := range list {
		for _, want := range id {
			if x.Execution == want {
				out = append(out, x)
			}
		}
	}
	return out
}

var limitScenarios = []scenario{
	{name: "a limit of a key admits as many at once as it says, and other keys go on", run: func(w *env) {
		g := newGates(w)
		busy, calm := g.limited("2.0.0", g.name+"/busy"), g.limited("2.0.0", g.name+"/calm")
		many, one := w.createN(4, asking(flowfabric.Gate(busy))), w.createN(1, asking(flowfabric.Gate(calm)))
		k := g.asker("w1")
		list := k.grants(10)
		crowd, alone := of(list, many...), of(list, one...)
		w.all("granted", eq(len(crowd), 4), eq(len(alone), 1))
		a := g.admit(busy, 2, crowd...)
		same(w, "why", a.Why, "cap")
		g.admit(calm, 1, alone...)
		running := k.granted(append(crowd[:2:2], alone...)...)
		g.refuse(k, false, a.Retry, "gate "+busy+" cap", crowd[2:]...)
		same(w, "closed", len(k.grants(10)), 0)
		w.all("holds", eq(g.holds(busy), occupied{2, 0}), eq(g.holds(calm), occupied{1, 0}))
		w.complete(running[0].Fence, "")
		g.deliver() // wakes who waits for the slot
		list = k.grants(10)
		same(w, "granted", len(list), 2)
		g.admit(busy, 1, list...)
		k.granted(list[0])
		g.refuse(k, false, time.Second, "gate "+busy+" cap", list[1])
	}},
	{name: "limits of one key count together, whatever each of them says, and starts by their window",
		run: func(w *env) {
			g := newGates(w)
			key := g.name + "/tenant"
			two, three := g.limited("2.0.0", key), g.limited("3.0.0", key)
			minute, hour := g.limited("0.1.60000", key), g.limited("0.2.3600000", key)
			ids := w.createN(3, asking(flowfabric.Gate(two)))
			k := g.asker("w1")
			list := k.grants(3)
			sameList(w, "granted", grantees(list), ids...)
			g.admit(three, 1, list[:1]...)
			g.admit(two, 1, list[1:]...)
			w.all("both count", eq(g.record(two).Held, 2), eq(g.record(three).Held, 2))
			g.admit(three, 1, list[2:]...)
			g.admit(minute, 1, list[:2]...)
			g.admit(hour, 2, list[:2]...)
			w.all("windows", eq(g.record(minute).Started, 1), eq(g.record(hour).Started, 2),
				eq(g.record(two).Started, 0))
			g.advance(time.Minute)
			g.admit(minute, 1, list[2:]...) // and forgets what has left its own window
			w.all("windows", eq(g.record(minute).Started, 1), eq(g.record(hour).Started, 2))
			for _, name := range []string{two, three, minute, hour} {
				for _, x := range list {
					g.tell(news(name, holdOf(x), engine.NewsNever))
				}
			}
			w.all("released", eq(g.holds(two), occupied{0, 0}), eq(g.record(hour).Started, 0))
		}},
	{name: "a key that nobody uses keeps nothing", run: func(w *env) {
		g := newGates(w)
		name := g.limited("1.5.60000", g.name+"/idle")
		root := g.limitRoot(name)
		w.createN(2, asking(flowfabric.Gate(name)))
		k := g.asker("w1")
		list := k.grants(2)
		a := g.admit(name, 1, list...)
		running := k.granted(list[0])
		g.refuse(k, false, a.Retry, "gate "+name+" cap", list[1])
		left, err := g.below(root, ":*"+g.name+"*")
		w.no(err)
		for _, key := range left {
			ttl, err := g.do("PTTL", key).AsInt64()
			w.no(err)
			if slots := strings.HasPrefix(key, root+":gs:"); slots != (ttl < 0) || ttl > 130000 {
				w.Errorf("%s stays for %d ms", key, ttl)
			}
		}
		same(w, "keys", len(left), 3) // a slot, a start, who waits
		w.complete(running[0].Fence, "")
		g.deliver()
		list = k.grants(1)
		g.admit(name, 1, list...)
		w.complete(k.granted(list...)[0].Fence, "")
		g.deliver()
		left, err = g.below(root, ":g[sdhu]:*"+g.name+"*")
		w.no(err)
		same(w, "nothing but what ends by itself", len(left), 0)
		names, err := g.e.GateNames(w.ctx)
		w.no(err)
		for _, n := range names {
			if strings.HasPrefix(n, "@") {
				w.Errorf("a limit is listed: %s", n)
			}
		}
	}},
	{name: "a limit whose numbers or key cannot be is refused, and cannot be made or removed as a gate",
		run: func(w *env) {
			g := newGates(w)
			long := strings.Repeat("k", limits.MaxLimitKey)
			for _, good := range []string{"@1.0.0@" + long, "@0.1.1@a%20b@c/d:e+f=g", "@1000000.1000000.2592000000@x"} {
				_, err := g.e.Admit(w.ctx, good, engine.Waiter{Partition: w.p, Route: 1}, time.Second, false, nil)
				w.no(err)
				x := w.create(asking(flowfabric.Gate(good)))
				sameList(w, "gates", w.read(x).Route.Gates, flowfabric.Gate(good))
			}
			for _, bad := range []string{"@1.0.0@" + long + "k", "@1.0.0@", "@1.0@k", "@1.0.0.0@k", "@01.0.0@k",
				"@-1.0.0@k", "@1000001.0.0@k", "@0.1000001.5@k", "@0.1.0@k", "@0.0.1@k", "@0.1.2592000001@k",
				"@1.0.0@a b", "@1.0.0@a,b", "@1.0.0@a\x1fb", ".0.0@k", "@@k", "@"} {
				_, err := g.e.Admit(w.ctx, bad, engine.Waiter{Partition: w.p, Route: 1}, time.Second, false, nil)
				if !errors.Is(err, flowfabric.ErrInvalidInput) && !errors.Is(err, denied.NoGate) {
					// the latter where no gate ever was
					w.Errorf("%q: %v", bad, err)
				}
				if !strings.Contains(bad, ",") {
					w.unchanged(bad, func() {
						made, err := w.e.CreateExecutions(w.ctx, w.p,
							[]engine.NewExecution{w.item(asking(flowfabric.Gate(bad)))})
						w.no(err)
						w.is(made[0].Err, flowfabric.ErrInvalidInput)
					})
				}
			}
			_, _, _, err := g.e.PutGate(w.ctx, admission.Gate{Name: "@1.0.0@k", Concurrency: 1}, 0)
			w.is(err, flowfabric.ErrInvalidInput)
			_, err = g.e.RemoveGate(w.ctx, "@1.0.0@k")
			w.is(err, flowfabric.ErrInvalidInput)
		}},
	{name: "work that a gate or a limit of a key keeps waiting says so in snapshots, lists and explanations alike",
		run: func(w *env) {
			g := newGates(w)
			b, q, key := g.budget(nil), g.gate(admission.Gate{Concurrency: 1}), g.limited("1.0.0", g.name+"/k")
			k := g.asker("w1")
			for _, x := range []struct {
				gate  flowfabric.Gate
				why   string
				state flowfabric.PublicState
				cause string
			}{
				{flowfabric.Gate(b), "gate " + b + " amount tokens 100 100", flowfabric.WaitingGate,
					explain.WhyWaitingAmount},
				{flowfabric.Gate(q), "gate " + q + " cap", flowfabric.WaitingGate, explain.WhyWaitingSlot},
				{flowfabric.Gate(q), "gate " + q + " rate", flowfabric.WaitingGate, explain.WhyWaitingRate},
				{flowfabric.Gate(key), "gate " + key + " cap", flowfabric.WaitingGate, explain.WhyWaitingSlot},
				{flowfabric.Gate(b), "gate_not_found " + b, flowfabric.WaitingGate, explain.WhyNoGate},
				{flowfabric.Gate(b), "unavailable gate " + b, flowfabric.WaitingGate, explain.WhyUnavailable},
				{flowfabric.Gate(q), "unavailable gate " + q, flowfabric.WaitingGate, explain.WhyUnavailable},
				{flowfabric.Gate(key), "unavailable gate " + key, flowfabric.WaitingGate, explain.WhyUnavailable},
				{flowfabric.Gate(q), "unavailable route", flowfabric.WaitingGate, explain.WhyUnavailable},
			} {
				id := w.create(asking(x.gate))
				agree := func(what string, want flowfabric.PublicState) engine.Snapshot {
					w.Helper()
					s := w.read(id)
					page, err := w.e.ListExecutions(w.ctx, w.p,
						engine.ListQuery{Index: engine.IndexWaiting, Key: strconv.FormatUint(s.Route.ID, 10), Limit: 1})
					w.no(err)
					w.all(x.why+": "+what, eq(s.State.Public, want), eq(page.Executions[0].State.Public, want),
						eq(w.why(id).State, want))
					return s
				}
				agree("before", flowfabric.Waiting)
				list := k.grants(1)
				g.refuse(k, false, time.Hour, x.why, list...)
				s := agree("closed", x.state)
				same(w, "why", w.why(id).Reason, x.cause)
				g.open(s.Route.ID)
				agree("opened", flowfabric.Waiting)
				w.cancel(id)
			}
		}},
	{name: "a snapshot tells of the wait, the flow and the last change", run: func(w *env) {
		_, c := w.holder(timeout(time.Hour))
		id := c.Fence.Execution
		w.all("changed", eq(w.read(id).ChangedAt.Equal(w.read(id).ClaimedAt), true),
			eq(w.read(id).ChangedAt.IsZero(), false))
		w.seed()
		w.suspend(c.Fence)
		s := w.read(id)
		w.all("waits", eq(s.Wait.Since.IsZero(), false), eq(s.Wait.Since.Equal(s.ChangedAt), true),
			eq(s.Flow.IsZero(), true))
		f := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		m := w.read(f.id.Member("b"))
		w.all("member", eq(m.Flow, f.id), eq(m.Node, "b"))
	}},
	{name: "a stray hold of a key is asked about when somebody wants the slot", run: func(w *env) {
		g := newGates(w)
		name := g.limited("1.0.0", g.name+"/stray")
		ids := w.createN(2, asking(flowfabric.Gate(name)))
		stray := engine.Hold{Execution: ids[0], Epoch: 9} // of a call that came too late
		_, err := g.e.Admit(w.ctx, name, engine.Waiter{Partition: w.p, Route: 1}, time.Second, false,
			[]engine.Hold{stray})
		w.no(err)
		k := g.asker("w1")
		list := k.grants(1)
		g.advance(2 * time.Second)
		a := g.admit(name, 0, list...)
		sameList(w, "suspects", a.Suspects, stray.String())
		_, freed := g.settle(name, stray)
		same(w, "freed", freed, 1)
		g.admit(name, 1, list...)
		k.granted(list...)
	}},
}
