package conformance

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

const step = time.Hour // by which the server's clock steps in these scenarios

// overdue tells whether a poll says that nobody ticks.
func (w *env) overdue() bool {
	w.Helper()
	p, _, err := w.e.Poll(w.ctx, []uint16{w.p})
	w.no(err)
	return p[0].TickOverdue
}

// takeOver ticks as another process than the one that did before, and that is gone.
func (w *env) takeOver() engine.TickReply {
	w.Helper()
	r, err := w.e.Tick(w.ctx, w.p, "successor", false)
	w.no(err)
	same(w, "owner of the tick", r.Owner, true)
	w.check()
	return r
}

var clockScenarios = []scenario{
	{name: "the clock steps back: a dead worker's work is free one lease time later", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		f := k.one(id).Fence
		w.tick()
		w.advance(-step)
		same(w, "a poll notices that the tick's owner is gone", w.overdue(), true)
		same(w, "so does a claim", w.worker("w2").nothing().TickOverdue, true)
		same(w, "requeued", w.takeOver().Requeued, 0)
		same(w, "overdue after the tick", w.overdue(), false)
		w.code(id, "A1")
		s := w.sessions()[0]
		same(w, "the session ends within one ttl", s.Alive && s.ExpiresAt.UnixMilli() <= w.now()+ttl.Milliseconds(),
			true)
		w.advance(ttl)
		same(w, "requeued", w.takeOver().Requeued, 1)
		w.code(id, "R1r")
		same(w, "sessions", len(w.sessions()), 0)
		n := w.worker("w2").one(id)
		w.all("claim", eq(n.Type, "reclaim"), eq(n.Fence.Epoch > f.Epoch, true))
		w.is(w.complete(f, "").Err, denied.StaleLease)
		w.no(w.complete(n.Fence, "").Err)
	}},
	{name: "the clock steps back: what was revoked behind its deadline waits for nothing but the deadline",
		run: func(w *env) {
			id := w.create(deadline(10 * time.Second))
			due := w.now() + 10_000
			w.worker("w1").one(id)
			w.advance(11 * time.Second)
			w.revoke(id)
			w.advance(-5 * time.Second)
			w.check()
			same(w, "its alarm", int64(w.dump().ZSets[":alarms"][ids.UUID(id).String()]) <= due, true)
			w.tick()
			w.code(id, "A3")
			w.advance(5 * time.Second)
			w.tick()
			w.code(id, "T4")
		}},
	{name: "the clock steps back: ticks alone do not keep a dead worker's session alive", run: func(w *env) {
		id := w.create()
		w.worker("w1").one(id)
		w.tick()
		w.advance(-step)
		requeued := 0
		for range 4 {
			requeued += w.tick().Requeued
			w.advance(ttl / 3)
			w.advance(-2 * time.Second) // and once more
		}
		for range 4 {
			requeued += w.tick().Requeued
			w.advance(ttl / 3)
		}
		same(w, "requeued", requeued, 1)
	}},
	{name: "the clock steps back and forward again: what ended in between is purged on time", run: func(w *env) {
		id := w.create(retention(time.Minute))
		k := w.worker("w1")
		f := k.one(id).Fence
		w.tick() // says that nothing comes due for a while
		w.advance(-step)
		w.no(w.complete(f, "").Err)
		w.advance(step)
		same(w, "purged", w.tick().Purged, 1)
	}},
	{name: "the clock runs normally: a tick that checks a live session does not extend it", run: func(w *env) {
		w.create()
		k := w.worker("w1")
		k.claim(1)
		w.advance(ttl / 2)
		w.renew(k, 0)
		w.advance(ttl / 2)
		same(w, "requeued", w.tick().Requeued, 0) // its index entry is due, it is not
		w.advance(ttl / 2)
		same(w, "requeued", w.tick().Requeued, 1)
	}},
	{name: "the clock steps back: a live worker keeps its work, whether it renews before the tick or after",
		run: func(w *env) {
			ids := w.createN(3)
			workers := []*worker{w.worker("w1"), w.worker("w2"), w.worker("w3")}
			var fences []flowfabric.Fence
			for _, k := range workers {
				fences = append(fences, k.claim(1)[0].Fence)
			}
			w.tick()
			w.advance(-step)
			w.renew(workers[0], 0)
			w.tick()
			w.advance(ttl / 3)
			w.renew(workers[0], 0)
			w.renew(workers[1], 0)
			w.tick()
			w.advance(ttl - time.Second - ttl/3)
			w.no(w.complete(fences[2], "").Err) // one that has not renewed at all is good for one ttl
			w.tick()
			w.renew(workers[0], 0)
			w.renew(workers[1], 0)
			w.advance(ttl - time.Second)
			same(w, "requeued", w.tick().Requeued, 0)
			w.no(w.complete(fences[0], "").Err)
			w.no(w.complete(fences[1], "").Err)
			for _, id := range ids {
				w.code(id, "T1")
			}
		}},
	{name: "the clock steps back: any number of sessions is corrected, a bounded number a call", run: func(w *env) {
		const many = 150
		w.createN(many)
		for i := range many {
			w.worker(fmt.Sprintf("w%03d", i)).claim(1)
		}
		w.tick()
		w.advance(-step)
		_, calls := w.settleTime()
		same(w, "calls", calls > 1 && calls < 10, true)
		for _, s := range w.sessions() {
			same(w, "the session ends within one ttl", s.Alive && s.ExpiresAt.UnixMilli() <= w.now()+ttl.Milliseconds(),
				true)
		}
		w.advance(ttl)
		sum, _ := w.settleTime()
		same(w, "requeued", sum.Requeued, many)
	}},
	{name: "the clock steps back a little: the dead worker's work is requeued, the live one's is not",
		run: func(w *env) {
			for _, back := range []time.Duration{time.Millisecond, 900 * time.Millisecond, 2 * time.Second, ttl / 2,
				ttl, 2 * ttl} {
				w.reset()
				dead, live := w.create(), w.create(kind("other"))
				w.worker("w1").one(dead)
				k := w.worker("w2")
				f := k.one(live).Fence
				w.tick()
				w.advance(-back)
				for range 2 {
					w.renew(k, 0)
					w.tick()
					w.advance(ttl / 2)
				}
				w.renew(k, 0)
				w.advance(time.Second) // a step of up to a second is waited for
				same(w, "requeued after "+back.String(), w.tick().Requeued, 1)
				w.no(w.complete(f, "").Err)
			}
		}},
	{name: "the clock steps back: a lost worker is not shown alive, and its name is free", run: func(w *env) {
		dead, live := w.homed("dead"), w.homed("live")
		w.register(dead, "t")
		w.register(live, "t")
		w.advance(-step)
		w.register(live, "t")
		rows := map[string]flowfabric.Worker{}
		for _, r := range w.workers() {
			rows[r.Instance] = r
		}
		w.all("alive", eq(rows[dead].Alive, false), eq(rows[live].Alive, true))
		same(w, "seen in the future", rows[dead].SeenAt.UnixMilli() > w.now()+1000, false)
		_, err := w.e.RegisterWorker(w.ctx, engine.Registration{Instance: live, Token: "another", TTL: ttl})
		w.is(err, denied.InstanceInUse)
		_, err = w.e.RegisterWorker(w.ctx, engine.Registration{Instance: dead, Token: "another", TTL: ttl})
		w.no(err)
	}},
	{name: "the clock steps back: a gate with a rate admits at once, and no more than its rate", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 2, Window: flowfabric.Millis(time.Minute)})
		w.createN(6, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		g.start(k, 2, q)
		list := k.grants(2)
		a := g.admit(q, 0, list...)
		g.refuse(k, false, a.Retry, "gate "+q+" rate", list...)
		w.tick()
		same(w, "closed", len(k.grants(2)), 0)
		g.advance(-step)
		same(w, "the window is that of the clock", g.holds(q), occupied{0, 0})
		w.tick() // opens what was closed until a time of the other clock
		list = k.grants(4)
		a = g.admit(q, 2, list...)
		same(w, "why", a.Why, "rate")
		same(w, "retry", a.Retry > 0 && a.Retry <= time.Minute+time.Second, true)
		k.granted(list[:2]...)
		same(w, "window", g.holds(q), occupied{0, 2})
		g.refuse(k, false, a.Retry, "gate "+q+" rate", list[2:]...)
		g.pass(a.Retry, k)
		w.tick()
		g.admit(q, 2, k.grants(2)...)
		g.pass(step+10*time.Second-a.Retry, k) // the starts of before do not come back
		same(w, "window", g.holds(q), occupied{0, 0})
		g.sound()
	}},
	{name: "the clock steps back: new waiters for a rate do not queue behind earlier ones", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 10, Window: flowfabric.Millis(10 * time.Second)})
		w.createN(30, asking(flowfabric.Gate(q)))
		for i := range 9 {
			w.create(asking(flowfabric.Gate(q)), kind(fmt.Sprint("k", i)))
		}
		k := g.asker("w1")
		g.start(k, 10, q)
		for range 10 { // routes wait for the rate
			list := k.grants(100)
			if len(list) == 0 {
				break
			}
			a := g.admit(q, 0, list[0])
			g.refuse(k, false, a.Retry, "gate "+q+" rate", list...)
		}
		w.tick()
		g.advance(-step)
		w.tick()
		for range 10 {
			g.start(k, 1, q)
			g.advance(500 * time.Millisecond)
		}
		list := k.grants(1)
		a := g.admit(q, 0, list...)
		same(w, "retry", a.Retry > 0 && a.Retry <= 7*time.Second, true) // five seconds, less what the machine took
	}},
	{name: "the clock steps back: a slot that nobody returns becomes suspect and is checked", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		first := w.create(asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		c := g.start(k, 1, q)[0]
		second := w.create(asking(flowfabric.Gate(q)))
		w.tick()
		g.advance(-step)
		w.tick()
		list := k.grants(1)
		a := g.admit(q, 0, list...)
		w.all("suspects", eq(a.Why, "cap"),
			eqList(a.Suspects, holdOf(engine.Grant{Execution: first, Epoch: c.Fence.Epoch}).String()))
		states, freed := g.settle(q, holdOf(engine.Grant{Execution: first, Epoch: c.Fence.Epoch}))
		w.all("it runs", eqList(states, "held"), eq(freed, 0))
		same(w, "suspects", len(g.admit(q, 0, list...).Suspects), 0)
		w.complete(c.Fence, "")
		g.deliver()
		g.admit(q, 1, list...)
		same(w, "started", k.granted(list...)[0].Fence.Execution, second)
	}},
	{name: "the clock steps back: a route that a cap closed opens again", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		w.createN(2, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		g.start(k, 1, q)
		list := k.grants(1)
		g.refuse(k, false, 5*time.Second, "gate "+q+" cap", list...)
		w.tick()
		g.advance(-step)
		w.tick()
		same(w, "granted", len(k.grants(1)), 1)
	}},
	{name: "the clock steps back: delays, timeouts and deadlines fire later by the step, never earlier",
		run: func(w *env) {
			late, limited, ending := w.create(delay(time.Minute)), w.create(kind("b"), timeout(2*ttl)),
				w.create(kind("c"), delay(2*step), deadline(90*time.Minute))
			k := w.worker("w1")
			k.can = func(r engine.Route) bool { return r.Kind == "b" }
			f := k.one(limited).Fence
			w.tick()
			w.advance(-step)
			pass := func(d time.Duration) (sum engine.TickReply) {
				for ; d > 0; d -= ttl / 2 {
					w.advance(min(d, ttl/2))
					if w.read(limited).Code == "A1" {
						w.renew(k, 0)
					}
					add(&sum, w.tick())
				}
				return sum
			}
			pass(step - time.Minute)
			w.code(late, "R2af")
			w.code(limited, "A1")
			sum := pass(2*time.Minute + 2*ttl)
			w.all("came due", eq(sum.Promoted, 1), eq(sum.TimedOut, 1))
			w.code(late, "R1f")
			w.is(w.complete(f, "").Err, denied.NotActive)
			same(w, "expired", pass(90*time.Minute).Expired, 1)
			w.code(ending, "T4n")
		}},
	{name: "the clock steps back: a schedule continues at its next instant and fires none twice", run: func(w *env) {
		w.put(w.named("s"), w.clock().Add(time.Second), "in")
		w.tick()
		w.advance(-step)
		same(w, "due", w.tick().Schedules, 0)
		w.advance(step - time.Minute)
		same(w, "due", w.tick().Schedules, 0)
		w.advance(time.Minute + 2*time.Second)
		same(w, "due", w.tick().Schedules, 1)
	}},
	{name: "the clock steps forward: leases end, work runs again once, and a later step back changes nothing",
		run: func(w *env) {
			ids := w.createN(2)
			k := w.worker("w1")
			fences := []flowfabric.Fence{k.claim(1)[0].Fence, k.claim(1)[0].Fence}
			waits := w.create(delay(time.Minute))
			w.tick()
			w.advance(step)
			same(w, "overdue", w.overdue(), true)
			_, err := w.e.RenewSession(w.ctx, w.p, k.session, ttl, 0)
			w.is(err, denied.LeaseExpired)
			sum := w.takeOver()
			w.all("tick", eq(sum.Requeued, 2), eq(sum.Promoted, 1))
			w.code(waits, "R1f")
			w.is(w.complete(fences[0], "").Err, denied.NotActive)
			two := w.worker("w1")
			again := two.claim(3)
			same(w, "claimed", len(again), 3)
			w.advance(-step)
			same(w, "overdue", w.overdue(), true)
			w.takeOver()
			w.renew(two, 0)
			w.advance(ttl - time.Second)
			same(w, "requeued", w.takeOver().Requeued, 0)
			for _, c := range again {
				w.no(w.complete(c.Fence, "").Err)
			}
			for _, id := range append(ids, waits) {
				w.code(id, "T1")
			}
			id := w.create()
			n := w.worker("w3").one(id)
			w.no(w.complete(n.Fence, "").Err)
		}},
	{name: "the clock steps forward: a gate with a rate begins a new window, and a closed route opens",
		run: func(w *env) {
			g := newGates(w)
			q := g.gate(admission.Gate{Rate: 1, Window: flowfabric.Millis(10 * time.Minute), Concurrency: 1})
			w.createN(2, asking(flowfabric.Gate(q)))
			k := g.asker("w1")
			c := g.start(k, 1, q)[0]
			list := k.grants(1)
			a := g.admit(q, 0, list...)
			g.refuse(k, false, a.Retry, "gate "+q+" rate", list...)
			w.tick()
			g.advance(step)
			w.tick() // the session is over, and so is what it held
			g.deliver()
			w.is(w.complete(c.Fence, "").Err, denied.NotActive)
			n := g.asker("w2")
			list = n.grants(1)
			g.admit(q, 1, list...)
			same(w, "started", len(n.granted(list...)), 1)
			same(w, "holds", g.holds(q), occupied{1, 1})
		}},
}
