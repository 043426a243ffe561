package conformance

import (
	"fmt"
	"slices"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/childtest"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// start is granted, admitted by gates and claimed, all of up to max.
func (g *gates) start(k *worker, max int, gates ...string) []engine.Claim {
	g.Helper()
	list := k.grants(max)
	if len(list) == 0 {
		g.Fatal("nothing is granted")
	}
	for _, q := range gates {
		g.admit(q, len(list), list...)
	}
	return k.granted(list...)
}

// occupied is how many slots of a gate are taken and how many starts are in its window.
type occupied struct{ held, started int }

func (g *gates) holds(name string) occupied {
	g.Helper()
	q := g.record(name)
	return occupied{q.Held, q.Started}
}

// pass lets time go by in which workers renew.
func (g *gates) pass(d time.Duration, workers ...*worker) {
	g.Helper()
	for d > 0 {
		step := min(d, 20*time.Second)
		g.advance(step)
		for _, k := range workers {
			g.renew(k, 0)
		}
		d -= step
	}
}

func holdOf(x engine.Grant) engine.Hold { return engine.Hold{Execution: x.Execution, Epoch: x.Epoch} }

// settle asks about suspects and tells the gate.
func (g *gates) settle(gate string, holds ...engine.Hold) (states []string, freed int) {
	g.Helper()
	states, err := g.e.CheckHolds(g.ctx, g.p, holds)
	g.no(err)
	g.check()
	all := make([]engine.News, len(holds))
	for i, h := range holds {
		all[i] = news(gate, h, states[i])
	}
	done, wake, err := g.e.SettleGates(g.ctx, all)
	g.no(err)
	g.wake(wake)
	for _, one := range done {
		if one {
			freed++
		}
	}
	return states, freed
}

var slotScenarios = []scenario{
	{name: "a rate of ten a minute admits ten, and the next when the first leaves the window", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 10, Window: flowfabric.Millis(time.Minute),
			Jitter: flowfabric.Millis(2 * time.Second)})
		w.createN(12, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		for _, c := range g.start(k, 4, q) {
			w.complete(c.Fence, "") // a start is a start
		}
		g.deliver()
		g.advance(20 * time.Second)
		list := k.grants(10)
		a := g.admit(q, 6, list...)
		same(w, "why", a.Why, "rate")
		same(w, "retry", a.Retry > 39*time.Second && a.Retry <= 42*time.Second, true)
		g.refuse(k, false, a.Retry, "gate "+q+" rate", list[6:]...)
		k.granted(list[:6]...)
		same(w, "closed", len(k.grants(1)), 0)
		same(w, "window", g.holds(q), occupied{0, 10})
		g.pass(a.Retry, k)
		w.tick()
		list = k.grants(2)
		g.admit(q, 2, list...)
		k.granted(list...)
		same(w, "window", g.holds(q), occupied{0, 8})
	}},
	{name: "if rate and cap both refuse, the rate is the reason", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 1, Window: flowfabric.Millis(time.Minute), Concurrency: 1})
		w.createN(2, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		list := k.grants(2)
		same(w, "why", g.admit(q, 1, list...).Why, "rate")
		g.advance(time.Minute)
		a := g.admit(q, 0, list[1])
		w.all("why", eq(a.Why, "cap"), eq(len(a.Suspects), 1),
			eq(a.Retry >= 250*time.Millisecond && a.Retry <= 11*time.Second, true))
	}},
	{name: "an execution that runs longer than the rate's window keeps its slot", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 5, Window: flowfabric.Millis(time.Second), Concurrency: 1})
		w.createN(2, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		c := g.start(k, 1, q)[0]
		for range 10 {
			g.advance(time.Second + time.Millisecond)
			w.tick()
			list := k.grants(1)
			if len(list) == 0 {
				continue
			}
			a := g.admit(q, 0, list...)
			same(w, "why", a.Why, "cap")
			for _, text := range a.Suspects { // it was claimed, so nobody told the gate, which asks
				states, freed := g.settle(q, engine.Hold{Execution: c.Fence.Execution, Epoch: c.Fence.Epoch})
				w.all(text, eqList(states, "held"), eq(freed, 0))
			}
			g.refuse(k, false, a.Retry, "gate "+q+" cap", list...)
		}
		w.complete(c.Fence, "")
		g.deliver()
		g.start(k, 1, q)
	}},
	{name: "releasing a slot that the execution does not hold changes nothing", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 5, Window: flowfabric.Millis(time.Minute), Concurrency: 2})
		w.create(asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		c := g.start(k, 1, q)[0]
		for _, what := range []string{engine.NewsGone, engine.NewsNever} {
			for _, h := range []engine.Hold{{Execution: mint.ID(w.p), Epoch: 7},
				{Execution: c.Fence.Execution, Epoch: c.Fence.Epoch + 1}} {
				done, _ := g.tell(news(q, h, what))
				w.all("released", eq(done, false), eq(g.holds(q), occupied{1, 1}))
			}
		}
		h := engine.Hold{Execution: c.Fence.Execution, Epoch: c.Fence.Epoch}
		for _, want := range []bool{true, false} {
			done, _ := g.tell(news(q, h, engine.NewsGone))
			w.all("its own, once", eq(done, want), eq(g.holds(q), occupied{0, 1}))
		}
		for range 40 { // wherever it would be, also where nothing ever was
			gone := g.fresh()
			for _, what := range []string{engine.NewsNever, engine.NewsAsked} {
				done, _ := g.tell(news(gone, h, what))
				same(w, "what is gone", done, false)
			}
		}
	}},
	{name: "an admission that never starts returns its slot and its start", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 2, Window: flowfabric.Millis(time.Hour), Concurrency: 2})
		w.createN(3, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		list := k.grants(2)
		g.admit(q, 2, list...)
		same(w, "both", g.holds(q), occupied{2, 2})
		w.cancel(list[0].Execution) // between admission and claim
		answers, claims, err := k.claimGranted(k.number, list)
		w.no(err)
		w.is(answers[0].Err, denied.StaleLease)
		w.all("claimed", eq(len(claims), 1), eq(claims[0].Fence.Execution, list[1].Execution))
		other := g.asker("w2").grants(5)
		a := g.admit(q, 0, other...)
		same(w, "why", a.Why, "rate")
		same(w, "to be asked again when the window is over", a.Retry > 59*time.Minute, true)
		// the worker returns it, too
		g.no(g.e.ReleaseGrants(w.ctx, w.p, k.session, []engine.GrantReturn{{Grant: list[0], Reserved: true}}, nil))
		w.all("who waits", eq(g.record(q).ForRate, 1), eq(g.record(q).ForSlots, 0))
		g.deliver()
		w.all("slot and start are back, who waited is told", eq(g.holds(q), occupied{1, 1}),
			eq(g.record(q).ForRate, 0))
		g.admit(q, 1, other...)
	}},
	{name: "a grant that ends without a claim returns its slot and its start", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 9, Window: flowfabric.Millis(time.Hour), Concurrency: 9})
		id := w.create(asking(flowfabric.Gate(q)))
		for what, back := range map[string]func(*worker, engine.Grant){
			"session": func(k *worker, _ engine.Grant) {
				_, err := g.e.MarkSessionDead(trail.As(w.ctx, "", "test"), w.p, k.session)
				w.no(err)
				w.settleTime()
			},
			"time": func(*worker, engine.Grant) {
				g.advance(5 * time.Second)
				w.tick()
			},
			"worker": func(k *worker, x engine.Grant) {
				g.no(g.e.ReleaseGrants(w.ctx, w.p, k.session, []engine.GrantReturn{{Grant: x, Reserved: true}}, nil))
				w.check()
				w.sameBut("again", func() {
					g.no(g.e.ReleaseGrants(w.ctx, w.p, k.session, []engine.GrantReturn{{Grant: x}}, nil))
				})
			},
			"pause": func(*worker, engine.Grant) {
				_, err := g.e.HoldExecution(w.ctx, id)
				w.no(err)
				w.check()
				_, err = g.e.UnholdExecution(w.ctx, id)
				w.no(err)
			},
		} {
			k := g.asker("w1")
			list := k.grants(1)
			g.admit(q, 1, list...)
			same(w, what, g.holds(q), occupied{1, 1})
			back(k, list[0])
			g.deliver()
			s := w.code(id, "R1f")
			w.all(what, eq(g.holds(q), occupied{0, 0}), eq(s.Reclaims, 0), eq(s.Retries, 0))
		}
	}},
	{name: "two workers that ask for one execution get one grant, which only its owner can release", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		w.create(asking(flowfabric.Gate(q)))
		workers := []*worker{g.asker("w1"), g.asker("w2")}
		for _, k := range workers {
			r, err := w.e.ClaimNext(w.ctx, k.request(1))
			w.no(err)
			k.learn(r)
		}
		var mu sync.Mutex
		var winner, loser *worker
		var won []engine.Grant
		together(2, func(i int) {
			r, err := w.e.ClaimNext(w.ctx, workers[i].request(1))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				w.Error(err)
			} else if len(r.Grants) == 1 {
				winner, won = workers[i], append(won, r.Grants...)
				winner.number++
			} else {
				loser = workers[i]
			}
		})
		if len(won) != 1 || loser == nil {
			w.Fatalf("%d grants", len(won))
		}
		g.admit(q, 1, won...)
		g.admit(q, 1, won...) // the same admission
		same(w, "one slot", g.holds(q), occupied{1, 0})
		_, _, err := loser.claimGranted(1, won)
		w.is(err, denied.LeaseExpired)
		for range 2 { // granted, then claimed
			g.no(g.e.ReleaseGrants(w.ctx, w.p, loser.session, []engine.GrantReturn{{Grant: won[0], Reserved: true}},
				nil))
			g.deliver()
			same(w, "the winner's slot", g.holds(q), occupied{1, 0})
			answers, _, err := winner.claimGranted(winner.number, won)
			w.no(err)
			w.no(answers[0].Err)
		}
		g.no(g.e.ReleaseGrants(w.ctx, w.p, winner.session, []engine.GrantReturn{{Grant: won[0], Reserved: true}}, nil))
		g.deliver()
		same(w, "what runs is not returned", g.holds(q), occupied{1, 0})
	}},
	{name: "the slot of a worker that died after admission is free five seconds after the grant's time",
		run: func(w *env) {
			g := newGates(w)
			q := g.gate(admission.Gate{Rate: 5, Window: flowfabric.Millis(time.Hour), Concurrency: 1})
			w.createN(2, asking(flowfabric.Gate(q)))
			dead := g.asker("dead").grants(1)
			g.admit(q, 1, dead...)
			g.advance(9 * time.Second) // and nobody ticks
			k := g.asker("w1")
			list := k.grants(1)
			a := g.admit(q, 0, list...)
			w.all("not yet", eq(a.Why, "cap"), eq(len(a.Suspects), 0))
			g.advance(1500 * time.Millisecond)
			a = g.admit(q, 0, list...)
			sameList(w, "suspects", a.Suspects, holdOf(dead[0]).String())
			states, freed := g.settle(q, holdOf(dead[0]))
			w.all("killed", eqList(states, "never"), eq(freed, 1))
			w.code(dead[0].Execution, "R1f")
			same(w, "slot and start", g.holds(q), occupied{0, 0})
			answers, _, err := g.e.ClaimGranted(w.ctx, w.p, "dead~x", 1, dead, nil)
			w.is(err, denied.LeaseExpired)
			same(w, "answers", len(answers), 0)
			g.admit(q, 1, list...)
			k.granted(list...)
			states, freed = g.settle(q, holdOf(dead[0]), holdOf(list[0]))
			w.all("asked again", eqList(states, "never", "held"), eq(freed, 0))
		}},
	{name: "a release that arrives before its admission leaves no slot occupied", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 5, Window: flowfabric.Millis(time.Hour), Concurrency: 1})
		w.createN(2, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		late := k.grants(1)
		g.advance(5 * time.Second)
		w.tick() // the grant is over
		g.deliver()
		same(w, "nothing to release", g.holds(q), occupied{0, 0})
		g.admit(q, 1, late...) // and its admission comes now
		answers, claims, err := k.claimGranted(k.number, late)
		w.no(err)
		w.is(answers[0].Err, denied.StaleLease)
		same(w, "claimed", len(claims), 0)
		again := k.grants(1)
		w.all("granted anew", eq(again[0].Execution, late[0].Execution), eq(again[0].Epoch > late[0].Epoch, true))
		same(w, "not yet suspect", len(g.admit(q, 0, again...).Suspects), 0)
		g.advance(10*time.Second + time.Millisecond)
		w.tick()
		other := k.grants(1)
		a := g.admit(q, 0, other...)
		same(w, "suspect", len(a.Suspects), 1)
		states, freed := g.settle(q, holdOf(late[0]))
		w.all("nobody's, and it never ran", eqList(states, "never"), eq(freed, 1), eq(g.holds(q), occupied{0, 0}))
		g.admit(q, 1, other...)
		k.granted(other...)
		for range 2 { // a live holder says so at once
			g.no(g.e.ReleaseGrants(w.ctx, w.p, k.session, []engine.GrantReturn{{Grant: late[0], Reserved: true}}, nil))
			g.deliver()
			same(w, "the other's slot stays, and never less than none", g.held(q), 1)
		}
	}},
	{name: "work that does not run holds no slot and needs a new admission to continue", run: func(w *env) {
		g := newGates(w)
		w.seed()
		q := g.gate(admission.Gate{Concurrency: 1})
		k := g.asker("w1")
		for what, part := range map[string]struct {
			leave func(engine.Claim)
			back  func(engine.Claim)
			kind  flowfabric.AttemptType
		}{
			"suspended": {func(c engine.Claim) { w.stopped(c.Fence, awaiting("it")) },
				func(c engine.Claim) { w.resume(c.Fence.Execution) }, flowfabric.AttemptResumed},
			"delayed": {func(c engine.Claim) { w.delay(c.Fence, time.Minute) }, func(engine.Claim) {
				g.pass(time.Minute, k)
				w.tick()
			}, flowfabric.AttemptResumed},
			"handed back": {func(c engine.Claim) { w.release(c.Fence) }, func(engine.Claim) {},
				flowfabric.AttemptResumed},
			"to retry": {func(c engine.Claim) { w.fail(c.Fence, "x") }, func(engine.Claim) {
				g.advance(time.Second)
				w.tick()
			}, flowfabric.AttemptRetry},
			"waiting for children": {func(c engine.Claim) {
				r, err := childtest.Wait(w.ctx, w.e, c.Fence,
					engine.ChildWait{Name: "wait", Mode: engine.WaitAll,
						Children: []engine.FlowMember{w.child(c.Fence.Execution, "wait", "one", lane("children"))}})
				w.no(err)
				same(w, "parked", r.Parked, true)
				w.check()
			}, func(c engine.Claim) {
				child := w.worker("child")
				child.can = func(r engine.Route) bool { return r.Lane == "children" }
				w.complete(child.one(c.Fence.Execution.Child("wait", "one")).Fence, "")
			}, flowfabric.AttemptResumed},
			"revoked": {func(c engine.Claim) { w.revoke(c.Fence.Execution) }, func(engine.Claim) {},
				flowfabric.AttemptReclaim},
			"of a dead worker": {func(c engine.Claim) {
				_, err := g.e.MarkSessionDead(trail.As(w.ctx, "", "test"), w.p, c.Fence.Session)
				w.no(err)
			}, func(engine.Claim) { k = g.asker("w1") }, flowfabric.AttemptReclaim},
		} {
			id := w.create(asking(flowfabric.Gate(q)), retries(2), timeout(time.Hour), deadline(10*time.Hour))
			c := g.start(k, 1, q)[0]
			w.all(what, eq(c.Fence.Execution, id), eq(g.held(q), 1))
			epoch := c.Fence.Epoch
			part.leave(c)
			if what != "revoked" && what != "of a dead worker" {
				same(w, what+": told in the same call", w.tick().Outbox, 1)
			} else {
				g.deliver()
				same(w, what+": its slot is taken until it is requeued", g.held(q), 1)
				w.settleTime()
			}
			g.deliver()
			same(w, what+": free", g.held(q), 0)
			part.back(c)
			list := k.grants(1)
			w.all(what+": granted", eq(len(list), 1), eq(list[0].Execution, id), eq(list[0].Epoch > epoch, true))
			same(w, what+": not yet", g.held(q), 0)
			g.admit(q, 1, list...)
			c = k.granted(list...)[0]
			w.all(what+": claimed", eq(c.Type, part.kind), eq(c.TimeLeft > 0 && c.TimeLeft <= time.Hour, true),
				eq(c.DeadlineIn > 0, true))
			w.cancel(id)
			g.deliver()
			same(w, what+": free in the end", g.held(q), 0)
		}
	}},
	{name: "a malformed rate or concurrency is refused", run: func(w *env) {
		g := newGates(w)
		name := g.gate(admission.Gate{Concurrency: 1})
		root := g.gateRoot(name)
		_, err := g.e.RemoveGate(w.ctx, name)
		w.no(err)
		refuses := func(rate, window, cap, jitter string) {
			w.Helper()
			before := g.content(root, root.Gate(name))
			same(w, fmt.Sprintf("%v %v %v %v", rate, window, cap, jitter),
				w.fcallOn([]string{string(root)}, "ff_put_gate", putStarts(name, "", "", rate, window, cap,
					jitter)...).code,
				"invalid_gate_spec")
			same(w, "content", g.content(root, root.Gate(name)), before)
		}
		refuses("1", "0", "1", "0")
		for _, q := range []admission.Gate{{Rate: -1, Window: flowfabric.Millis(time.Second)}, {Concurrency: -1},
			{Rate: 1},
			{Rate: 1, Window: flowfabric.Millis(time.Microsecond)}, {Concurrency: 1,
				Jitter: flowfabric.Millis(time.Nanosecond)}} {
			q.Name = name
			_, _, _, err := g.e.PutGate(w.ctx, q, 0)
			w.is(err, denied.GateSpec)
		}
		_, err = g.e.ReadGate(w.ctx, name, 0, 0, 0)
		w.is(err, denied.NoGate)
		q := admission.Gate{Name: name, Rate: 1, Window: flowfabric.Millis(30 * 24 * time.Hour), Concurrency: 1000000,
			Jitter: flowfabric.Millis(time.Minute)}
		ctx := trail.As(w.ctx, "op", "")
		for _, want := range []bool{false, true} {
			_, already, _, err := g.e.PutGate(ctx, q, 0)
			w.no(err)
			same(w, "already", already, want)
		}
		q.Concurrency = 2
		_, _, _, err = g.e.PutGate(w.ctx, q, 0)
		w.is(err, denied.GateConflict)
		_, _, _, err = g.e.PutGate(ctx, q, 1)
		w.no(err)
		w.all("changed", eq(g.record(name).Concurrency, 2), eq(g.record(name).Revision, 2))
		var actions []string
		for _, e := range g.record(name).Audit {
			actions = append(actions, e.What+" by "+e.By)
		}
		sameList(w, "log", actions, "created by op", "changed by op")
	}},
	{name: "gates are listed in pages, the last of which says so", run: func(w *env) {
		w.beside()
		for _, name := range []string{"a", "b", "c"} {
			w.must("ff_put_gate", putStarts(name, "", "", "1", "1000", "0", "0")...)
		}
		for _, x := range []struct{ after, limit, more, count string }{
			{"", "2", "1", "2"}, {"", "3", "0", "3"}, {"a", "2", "0", "2"}, {"a", "1", "1", "1"},
			{"c", "1", "0", "0"}} {
			a := w.fcallOn([]string{w.seat("ff_put_gate")}, "ff_list_gates", proto, x.after, x.limit)
			sameList(w, "page", a.slots[:2], x.more, x.count)
		}
	}},
	{name: "a route that waits for a rate's window stays closed until its time", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 1, Window: flowfabric.Millis(20 * time.Second)})
		w.createN(3, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		c := g.start(k, 1, q)[0]
		list := k.grants(2)
		a := g.admit(q, 0, list...)
		g.refuse(k, false, a.Retry, "gate "+q+" rate", list...)
		w.complete(c.Fence, "") // frees no start
		g.deliver()
		before := g.closings()[0]
		opens := before.Until.UnixMilli()
		for w.now() < opens-1000 {
			w.tick()
			w.create(asking(flowfabric.Gate(q)))
			same(w, "granted before its time", len(k.grants(10)), 0)
			now := g.closings()
			w.all("closed all the time", eq(len(now), 1), eq(now[0].Until, before.Until), eq(now[0].Why, before.Why))
			g.advance(time.Second)
		}
		g.advance(time.Second)
		w.tick()
		list = k.grants(1)
		g.admit(q, 1, list...)
		k.granted(list...)
	}},
	{name: "freed slots wake as many waiting routes and two more, the longest waiting first", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		for i := range 6 {
			w.create(asking(flowfabric.Gate(q)), kind(fmt.Sprint("k", i)))
		}
		k := g.asker("w1")
		c := g.start(k, 1, q)[0]
		var order []uint64
		for range 5 {
			list := k.grants(1)
			a := g.admit(q, 0, list...)
			g.refuse(k, false, a.Retry, "gate "+q+" cap", list...)
			order = append(order, list[0].Route)
			g.advance(2 * time.Millisecond)
		}
		w.complete(c.Fence, "")
		g.deliver()
		w.all("closed, waiting", eq(len(g.closings()), 2), eq(g.record(q).ForSlots, 2))
		var woken []uint64
		for _, x := range k.grants(10) {
			woken = append(woken, x.Route)
		}
		slices.Sort(order[:3])
		slices.Sort(woken)
		sameList(w, "woken", woken, order[:3]...)
		raised := admission.Gate{Name: q, Concurrency: 5}
		_, _, wake, err := g.e.PutGate(w.ctx, raised, 1)
		w.no(err)
		g.wake(wake)
		w.all("a larger gate wakes who waits", eq(len(g.closings()), 0), eq(len(k.grants(10)), 2))
	}},
	{name: "a closed route is woken though what had been granted before was admitted", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		w.createN(3, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		early := g.asker("w2")
		first := g.start(early, 1, q)[0]
		late, refused := early.grants(1), k.grants(1)
		refuse := func(list []engine.Grant) {
			a := g.admit(q, 0, list...)
			g.refuse(k, false, a.Retry, "gate "+q+" cap", list...)
			g.advance(2 * time.Millisecond)
		}
		for i := range 3 { // who has waited longest; a free slot wakes three
			w.create(asking(flowfabric.Gate(q)), kind(fmt.Sprint("k", i)))
			refuse(k.grants(1))
		}
		refuse(refused)
		w.complete(first.Fence, "")
		g.deliver()
		g.admit(q, 1, late...)
		second := early.granted(late...)[0]
		w.all("the route is closed still", eq(len(g.closings()), 1), eq(g.closings()[0].Route.ID, late[0].Route))
		w.complete(second.Fence, "")
		g.deliver()
		same(w, "closed", len(g.closings()), 0)
	}},
	{name: "an execution asks every gate and holds a slot of all or of none", run: func(w *env) {
		g := newGates(w)
		a, b := g.gate(admission.Gate{Concurrency: 2}), g.gate(admission.Gate{Rate: 1,
			Window: flowfabric.Millis(time.Hour)})
		w.createN(2, asking(flowfabric.Gate(a), flowfabric.Gate(b)))
		k := g.asker("w1")
		list := k.grants(2)
		g.admit(a, 2, list...)
		refused := g.admit(b, 1, list...)
		g.refuse(k, true, refused.Retry, "gate "+b+" rate", list[1])
		c := k.granted(list[0])[0]
		w.all("held", eq(g.holds(a), occupied{2, 0}), eq(g.holds(b), occupied{0, 1}))
		g.deliver()
		w.all("given back", eq(g.holds(a), occupied{1, 0}), eq(g.holds(b), occupied{0, 1}))
		w.complete(c.Fence, "")
		g.deliver()
		w.all("in the end", eq(g.holds(a), occupied{0, 0}), eq(g.holds(b), occupied{0, 1}))
	}},
	{name: "a cap of three never has more than three running, and every end frees its slot", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 100, Window: flowfabric.Millis(time.Minute), Concurrency: 3})
		w.createN(9, asking(flowfabric.Gate(q)), deadline(2*time.Hour), reclaims(0))
		k := g.asker("w1")
		fill := func(want int) []engine.Claim {
			w.Helper()
			list := k.grants(10)
			a := g.admit(q, min(want, len(list)), list...)
			if len(list) > want {
				g.refuse(k, false, a.Retry, "gate "+q+" cap", list[want:]...)
			}
			return k.granted(list[:want]...)
		}
		running := fill(3)
		ends := []func(engine.Claim){
			func(c engine.Claim) { w.complete(c.Fence, "") },
			func(c engine.Claim) {
				_, err := w.e.FailExecution(w.ctx, c.Fence, engine.Failure{Category: "x", Permanent: true})
				w.no(err)
			},
			func(c engine.Claim) { w.cancel(c.Fence.Execution) },
			func(c engine.Claim) { w.revoke(c.Fence.Execution) },
		}
		for _, end := range ends {
			for range 10 { // ten minutes, a minute at a time: the worker renews, the others are refused
				g.pass(time.Minute, k)
				w.tick()
				if list := k.grants(10); len(list) > 0 {
					a := g.admit(q, 0, list...)
					for range a.Suspects {
						for _, c := range running {
							states, _ := g.settle(q, engine.Hold{Execution: c.Fence.Execution, Epoch: c.Fence.Epoch})
							same(w, "held", states[0], engine.NewsHeld)
						}
					}
					g.refuse(k, false, a.Retry, "gate "+q+" cap", list...)
				}
				same(w, "held", g.held(q), 3)
			}
			end(running[0])
			w.settleTime()
			g.deliver()
			same(w, "free", g.held(q), 2)
			running = append(running[1:], fill(1)...)
		}
		g.advance(2 * time.Hour) // deadlines, of what runs too
		w.settleTime()
		g.deliver()
		same(w, "expired", g.held(q), 0)
	}},
	{name: "no admission is lost and the cap holds, whatever happens between request and reply", run: func(w *env) {
		d := newDrill(w)
		steps := int(number("FLOWFABRIC_SOAK", 1500)) / max(1, w.srv.Share)
		for range steps {
			d.step()
		}
		d.end()
		w.Logf("seed %d: %d steps, %v", d.seed, steps, d.did)
		if steps >= 1500 {
			for _, what := range []string{"claimed", "refused", "audited", "killed", "session died", "came late",
				"told twice"} {
				same(w, what+" at least once", d.did[what] > 0, true)
			}
		}
	}},
}
