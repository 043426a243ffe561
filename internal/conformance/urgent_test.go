package conformance

import (
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// alarmed is a worker with nothing left to do and an ear for what all workers are told, in a partition with one
// route, 1.
func (w *env) alarmed() (*worker, *ear) {
	w.Helper()
	k := w.worker("w1")
	w.complete(k.one(w.create()).Fence, "")
	return k, w.listen(engine.UrgentChannel(w.p))
}

var urgentScenarios = []scenario{
	{name: "work that should come next is told to all workers when nobody waits for it", run: func(w *env) {
		k, ear := w.alarmed()
		w.create()
		w.create(delay(time.Hour), priority(9))
		ear.silent() // without priority, or not yet
		w.create(priority(5))
		ear.hears("5 1")
		w.advance(time.Second)
		w.create(priority(5))
		w.create(priority(4))
		w.create()
		ear.silent() // it comes behind others of its queue
		w.createN(3, priority(9))
		ear.hears("9 1")
		w.create(priority(9000), kind("other"), namespace("n"))
		route := w.core(w.create(priority(1), kind("other"), namespace("n")))["r"]
		ear.hears("9000 " + route)
		k.claim(50) // of the route that it knows
		k.claim(50)
		k.nothing()
		bell := w.listen(engine.BellChannel(w.p, "w1"))
		w.create(priority(9))
		bell.hears("w9")
		ear.silent() // somebody waited
	}},
	{name: "who is woken for urgent work is told its priority", run: func(w *env) {
		k, ear := w.alarmed()
		bell := w.listen(engine.BellChannel(w.p, "w1"))
		for _, x := range []struct {
			priority int
			hears    string
		}{{0, "w"}, {7, "w7"}, {9000, "w9000"}} {
			k.nothing()
			id := w.create(priority(x.priority))
			bell.hears(x.hears)
			k.one(id)
		}
		ear.silent()
	}},
	{name: "work is urgent whichever way it becomes claimable", run: func(w *env) {
		for _, way := range []string{"release", "retry at once", "retry later", "requeue", "delay over",
			"changed priority", "resumed lane", "replay", "held no more", "delay ended"} {
			w.reset()
			k, ear := w.alarmed()
			id := w.create(retries(1), priority(8))
			ear.hears("8 1")
			w.advance(time.Second)
			var f flowfabric.Fence
			if way != "changed priority" && way != "resumed lane" && way != "held no more" {
				f = k.one(id).Fence
			}
			switch way {
			case "delay ended":
				w.delay(f, time.Hour)
				_, err := w.e.SetDelay(w.ctx, id, engine.DelayChange{})
				w.no(err)
			case "changed priority":
				other := w.create(priority(2))
				_, _, err := w.e.ChangePriority(w.ctx, id, 3)
				w.no(err)
				ear.silent() // lower than it was
				_, _, err = w.e.ChangePriority(w.ctx, id, 1)
				w.no(err)
				_, _, err = w.e.ChangePriority(w.ctx, id, 2)
				w.no(err)
				ear.hears("2 1") // the older of two
				_, _, err = w.e.ChangePriority(w.ctx, other, 8)
				w.no(err)
			case "resumed lane":
				w.setLane("default", flowfabric.LanePaused, "")
				_, _, err := w.e.ChangePriority(w.ctx, id, 10)
				w.no(err)
				w.cancel(w.create(priority(100)))
				_, _, err = w.e.ChangePriority(w.ctx, id, 8)
				w.no(err)
				ear.silent()
				w.setLane("default", flowfabric.LaneActive, "")
			case "replay":
				w.complete(f, "")
				w.replay(id, engine.Replay{Force: true})
			case "held no more":
				_, err := w.e.HoldExecution(w.ctx, id)
				w.no(err)
				_, err = w.e.UnholdExecution(w.ctx, id)
				w.no(err)
			default:
				w.frees(way, f, ear)
			}
			ear.hears("8 1")
		}
	}},
	{name: "a waiter that is full passes urgent work on, and when nobody waits all workers are told",
		run: func(w *env) {
			for _, space := range []string{"default", "other"} {
				w.reset()
				k, told := w.alarmed()
				if space != "default" {
					w.complete(k.one(w.create(namespace(space))).Fence, "")
				}
				other := w.worker("w2")
				other.nothingYet()
				k.nothing()
				other.nothing()
				bells := []*ear{w.listen(engine.BellChannel(w.p, "w1")), w.listen(engine.BellChannel(w.p, "w2"))}
				id := w.create(priority(6), namespace(space))
				var rung []string
				for range bells {
					for _, b := range bells {
						b.mark()
						message := b.next()
						if message == mark {
							continue
						}
						rung = append(rung, message)
						b.next()
						_, err := w.e.ForwardRing(w.ctx, w.p, k.subscription)
						w.no(err)
						if len(rung) < len(bells) {
							told.silent() // somebody else waits
						}
					}
				}
				sameList(w, "rung, and rung for it", rung, "w6", "w6")
				told.hears("6 " + w.core(id)["r"])
				k.one(id)
			}
		}},
	{name: "of one route all workers are told at most every 10 ms, of a higher priority or another route at once",
		run: (*env).toldAlone},
	{name: "with ageing, work counts for more the longer it waits", run: func(w *env) {
		k, ear := w.alarmed()
		w.ageing(time.Minute)
		id := w.create(priority(4), retries(3))
		ear.hears("4 1")
		f := k.one(id).Fence
		w.advance(10 * time.Second)
		w.release(f)
		ear.hears("4 1")
		k.one(id)
		w.advance(10*time.Minute - 10*time.Second)
		w.tick() // the worker's lease is over
		ear.hears("14 1")
	}},
	{name: "work that a gate held back is urgent when its route opens", run: func(w *env) {
		g := newGates(w)
		k := g.asker("w1")
		id := w.create(priority(3), asking(flowfabric.Gate(g.gate(admission.Gate{Concurrency: 1}))))
		route, err := strconv.ParseUint(w.core(id)["r"], 10, 64)
		w.no(err)
		ear := w.listen(engine.UrgentChannel(w.p))
		g.refuse(k, false, time.Hour, "no room", k.grants(1)...)
		g.advance(time.Second)
		ear.silent()
		g.open(route)
		ear.hears(fmt.Sprint("3 ", route))
	}},
	{name: "what a completion releases and its claim leaves behind is urgent", run: func(w *env) {
		k, ear := w.alarmed()
		g := w.flow()
		g.node("a", nil).node("b", []string{"a"}, as(priority(4))).node("c", []string{"a"}, as(priority(4)))
		g.submit(engine.SealClosed)
		f := k.one(g.id.Member("a")).Fence
		w.create() // something is ready, so that the queue has their order
		q := k.request(1)
		_, r, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f}}, &q)
		w.no(err)
		same(w, "claimed", len(r.Claims) == 1 && r.Claims[0].Priority == 4, true)
		w.check()
		ear.hears("4 1")
	}},
}

// toldAlone is the scenario of messages that do for others.
func (w *env) toldAlone() {
	w.Helper()
	k, ear := w.alarmed()
	start := w.now()
	at := start
	told := func(what string, n int) {
		w.Helper()
		w.clockAt(at)
		w.create(priority(n))
		if what == "" {
			ear.silent()
		} else {
			ear.hears(what)
		}
		k.claim(9)
	}
	told("5 1", 5)
	told("", 5)
	told("6 1", 6)
	w.clockAt(at)
	w.create(priority(6), kind("other"))
	ear.hears("6 2")
	told("6 1", 6)
	at = start + 9
	told("", 6)
	at = start + 10
	told("6 1", 6)
	at = start
	told("6 1", 6) // the clock stepped back
}
