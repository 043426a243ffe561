package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// outbox is how many notices about holds wait to be delivered.
func (g *gates) outbox() (n int) {
	g.Helper()
	entries, _, err := g.e.ReadOutbox(g.ctx, g.p, "")
	g.no(err)
	for _, x := range entries {
		for _, about := range x.News {
			if about.What == engine.NewsGone || about.What == engine.NewsNever {
				n++
			}
		}
	}
	return n
}

func (g *gates) hold(id flowfabric.ExecutionID) {
	g.Helper()
	already, err := g.e.HoldExecution(g.ctx, id)
	g.no(err)
	same(g.env, "hold already", already, false)
	g.check()
}

func (g *gates) unhold(id flowfabric.ExecutionID) {
	g.Helper()
	already, err := g.e.UnholdExecution(g.ctx, id)
	g.no(err)
	same(g.env, "unhold already", already, false)
	g.check()
}

func (g *gates) open(routes ...uint64) {
	g.Helper()
	_, err := g.e.OpenRoutes(g.ctx, g.p, routes)
	g.no(err)
	g.check()
}

// prefer changes the priority of an execution.
func (g *gates) prefer(id flowfabric.ExecutionID, n int) {
	g.Helper()
	a := g.must("ff_change_priority", proto, ids.UUID(id).String(), strconv.Itoa(n))
	same(g.env, "priority", a.slots[1], strconv.Itoa(n))
	g.check()
}

// grantees is the made of grants, in order.
func grantees(list []engine.Grant) (made []flowfabric.ExecutionID) {
	for _, x := range list {
		made = append(made, x.Execution)
	}
	return made
}

// expects fails unless the answers to ClaimGranted are these errors, in order.
func (g *gates) expects(k *worker, list []engine.Grant, want ...error) []engine.Claim {
	g.Helper()
	answers, claims, err := k.claimGranted(k.number, list)
	g.no(err)
	g.check()
	for i, a := range answers {
		if want[i] == nil {
			g.no(a.Err)
		} else {
			g.is(a.Err, want[i])
		}
	}
	return claims
}

var gateLifeScenarios = []scenario{
	{name: "an execution that is blocked, delayed, suspended, active or ended cannot be held", run: func(w *env) {
		for _, code := range reachable {
			if code == "A2" {
				continue
			}
			w.reset()
			w.seed()
			w.hands = true
			x := w.state(code)
			w.hands = false
			want := denied.NotEligible
			switch {
			case code[:2] == "R1" || code[:2] == "G1" || code[:2] == "R4":
				continue
			case code[0] == 'T':
				want = denied.NotActive
			}
			w.unchanged(string(code), func() {
				_, err := w.e.HoldExecution(w.ctx, x.id)
				w.is(err, want)
				_, err = w.e.UnholdExecution(w.ctx, x.id)
				w.is(err, want)
			})
		}
		w.reset()
		g := w.flow().node("a", nil).node("b", []string{"a"}).submit(engine.SealClosed)
		_, err := w.e.HoldExecution(w.ctx, g.id.Member("b"))
		w.is(err, denied.NotEligible)
		g.are(flowfabric.Waiting, "a")
		w.code(g.id.Member("b"), "R3f")
		g.complete(g.claim()["a"], "")
		g.complete(g.claim()["b"], "")
		g.ends(flowfabric.FlowCompleted)
	}},
	{name: "held work and closed routes are released only by their own unhold or opening", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		made := w.createN(3, asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		list := k.grants(3)
		g.refuse(k, false, time.Hour, "gate "+q+" cap", list...)
		g.hold(made[0])
		// the lane was never closed
		same(w, "open", w.setLane("default", flowfabric.LaneActive, "").code, "ALREADY_SATISFIED")
		w.unchanged("an unhold of what a gate keeps", func() {
			already, err := w.e.UnholdExecution(w.ctx, made[1])
			w.no(err)
			same(w, "already", already, true)
		})
		same(w, "closed", len(k.grants(3)), 0)
		g.open(list[0].Route)
		sameList(w, "opened, but for what the operator keeps", grantees(k.grants(3)), made[1:]...)
		w.code(made[0], "R4f")
		g.unhold(made[0])
		sameList(w, "unheld", grantees(k.grants(3)), made[:1]...)
		w.unchanged("no reason at all", func() {
			sameList(w, "nobody's route", w.fcall("ff_open_route", proto, "1", "").slots, "1", "0")
		})
		_, err := w.e.UnholdExecution(w.ctx, mint.ID(w.p))
		w.is(err, flowfabric.ErrNotFound)
	}},
	{name: "a lane that is paused and resumed dispatches in the old order, with gates or without", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 9})
		for _, opts := range [][]option{{}, {asking(flowfabric.Gate(q))}} {
			var want []flowfabric.ExecutionID
			for _, n := range []int{0, 5, 9} {
				want = append(want, w.create(append(opts, priority(n))...))
				w.advance(2 * time.Millisecond)
				want = append(want, w.create(append(opts, priority(n))...))
			}
			want = slices.Concat(want[4:], want[2:4], want[:2])
			w.setLane("default", flowfabric.LanePaused, "")
			k := g.asker("w1")
			r := k.poll(10)
			same(w, "paused", len(r.Claims)+len(r.Grants), 0)
			g.hold(want[3])
			g.unhold(want[3])
			same(w, "nothing", len(k.poll(10).Grants), 0)
			w.setLane("default", flowfabric.LaneActive, "")
			r = k.poll(10)
			got := grantees(r.Grants)
			for _, c := range r.Claims {
				got = append(got, c.Fence.Execution)
			}
			sameList(w, "order", got, want...)
		}
	}},
	{name: "a held execution keeps its state and its place in the queue, and can expire", run: func(w *env) {
		g := newGates(w)
		w.seed()
		for _, code := range []codes.Code{"R1f", "R1t", "R1p", "R1i", "R1r"} {
			w.reset()
			w.seed()
			x := w.state(code, deadline(time.Hour))
			g.hold(x.id)
			w.code(x.id, "R4"+code[2:])
			g.asker("w").nothing()
			g.prefer(x.id, 7)
			g.unhold(x.id)
			w.code(x.id, code)
			g.asker("w2").one(x.id)
		}
		w.reset()
		made := []flowfabric.ExecutionID{w.create(deadline(time.Minute)), w.create(), w.create()}
		for _, id := range made {
			g.hold(id)
		}
		g.prefer(made[2], 5)
		w.cancel(made[1])
		g.advance(time.Minute)
		w.settleTime()
		w.all("expired", eq(w.code(made[0], "T4n").State.Public, "expired"),
			eq(w.code(made[1], "T3n").State.Public, "cancelled"))
		g.unhold(made[2])
		late := w.create(priority(4))
		k := w.worker("w1")
		k.one(made[2])
		k.one(late)
		_, err := w.e.HoldExecution(w.ctx, made[0])
		w.is(err, denied.NotActive)
	}},
	{name: "a claim that asks for no grants never gets gated work", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 9})
		gated, free := w.create(asking(flowfabric.Gate(q)), priority(9)), w.create()
		k := w.worker("old")
		k.one(free)
		r := k.nothing()
		w.all("it waits", eq(r.Registered, true), eq(r.More, false))
		k.nothingYet()
		a := w.must("ff_claim_next", claimArgs(k.request(5))...)
		w.all("claimed on the wire", eq(a.slots[1], "1"), eqList(a.slots[8:], "0", "0", "0"))
		w.code(gated, "R1f")
		next := k.request(5)
		c := w.create()
		f := k.one(c).Fence
		next.Number++
		settled, reply, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f}}, &next)
		w.no(err)
		w.no(settled[0].Err)
		same(w, "with its completion", len(reply.Claims)+len(reply.Grants), 0)
		same(w, "for one who asks", len(g.asker("new").grants(5)), 1)
	}},
	{name: "a worker that serves both alternates between work with gates and without", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 99})
		w.createN(20, asking(flowfabric.Gate(q)), priority(9))
		w.createN(20, kind("free"))
		k := g.asker("w1")
		k.nothingYet()
		for i := range 6 {
			request := k.request(2)
			request.Rotation = uint64(i)
			r, err := w.e.ClaimNext(w.ctx, request)
			w.no(err)
			k.number++
			w.check()
			same(w, "more", r.More, true)
			w.all(fmt.Sprint("claims and grants of round ", i), eq(len(r.Claims), 2*(1-i%2)),
				eq(len(r.Grants), 2*(i%2)))
		}
		for i := range 2 { // one kind alone comes whatever the turn
			k := g.asker("alone")
			k.can = func(r engine.Route) bool { return r.Kind != "free" }
			k.nothingYet()
			request := k.request(2)
			request.Rotation = uint64(i)
			r, err := w.e.ClaimNext(w.ctx, request)
			w.no(err)
			same(w, "granted", len(r.Grants), 2)
		}
	}},
	{name: "claims and grants repeated after lost replies return the same grants and claims", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 9})
		w.createN(3, asking(flowfabric.Gate(q)), payload([]byte("x")))
		k := g.asker("w1")
		k.nothingYet()
		request := k.request(3)
		first, err := w.e.ClaimNext(w.ctx, request)
		w.no(err)
		again, err := w.e.ClaimNext(w.ctx, request)
		w.no(err)
		w.check()
		w.all("duplicate", eq(first.Duplicate, false), eq(again.Duplicate, true), eq(len(again.Claims), 0))
		same(w, "the same grants", sameGrants(first.Grants, again.Grants), true)
		k.number++
		g.admit(q, 3, again.Grants...)
		claims := k.granted(again.Grants[:2]...)
		same(w, "claimed", len(claims), 2)
		answers, repeated, err := k.claimGranted(k.number, again.Grants[:2])
		w.no(err)
		w.check()
		w.all("claimed again", eq(answers[0].Already, true), eq(answers[1].Already, true),
			eq(repeated[0].Fence, claims[0].Fence), eq(repeated[1].Fence, claims[1].Fence),
			eq(string(repeated[0].Input), "x"))
		third, err := w.e.ClaimNext(w.ctx, request)
		w.no(err)
		w.check()
		w.all("what has become of the number", eq(third.Duplicate, true), eq(len(third.Claims), 2),
			eq(len(third.Grants), 1))
		for _, c := range third.Claims {
			w.complete(c.Fence, "")
		}
		g.expects(k, again.Grants[:2], denied.StaleLease, denied.StaleLease)
		answers, _, err = k.claimGranted(k.number, []engine.Grant{third.Grants[0], third.Grants[0]})
		w.no(err)
		w.no(answers[0].Err)
		w.is(answers[1].Err, flowfabric.ErrInvalidInput)
		w.check()
		g.deliver()
		same(w, "held", g.held(q), 1)
	}},
	{name: "an expired grant can be claimed until the tick takes it back", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		id := w.create(asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		list := k.grants(1)
		g.admit(q, 1, list...)
		g.advance(5 * time.Second)
		c := k.granted(list...)[0] // nobody has taken it back, so it is good
		w.tick()
		w.code(id, "A1")
		w.release(c.Fence)
		g.deliver()
		list = k.grants(1)
		g.admit(q, 1, list...)
		g.advance(5 * time.Second)
		w.tick()
		g.expects(k, list, denied.StaleLease)
		r, err := w.e.ClaimNext(w.ctx, engine.ClaimRequest{Partition: w.p, Session: k.session, Number: k.number,
			TTL: ttl, Max: 1, Subscription: k.subscription, Table: k.table, Gates: true})
		w.no(err)
		w.all("nor is it told again", eq(r.Duplicate, true), eq(len(r.Claims), 0), eq(len(r.Grants), 0))
		g.deliver()
		same(w, "held", g.held(q), 0)
	}},
	{name: "a granted execution that is cancelled, expired or held cannot be claimed", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Rate: 99, Window: flowfabric.Millis(time.Hour), Concurrency: 9})
		made := w.createN(4, asking(flowfabric.Gate(q)), deadline(time.Hour))
		short := w.create(asking(flowfabric.Gate(q)), deadline(3*time.Second))
		k := g.asker("w1")
		list := k.grants(9)
		sameList(w, "granted", grantees(list), append(slices.Clone(made), short)...)
		g.admit(q, 5, list...)
		w.cancel(made[0])
		g.hold(made[1])
		g.prefer(made[2], 9)
		g.advance(3 * time.Second)
		stale := denied.StaleLease
		g.expects(k, list[4:], stale) // its time is over, though nobody has said so yet
		w.tick()
		w.code(short, "T4n")
		claims := g.expects(k, list, stale, stale, nil, nil, stale)
		w.all("claimed, of the priority it was given", eq(len(claims), 2), eq(claims[0].Priority, 9),
			eq(claims[0].DeadlineIn > 59*time.Minute, true))
		same(w, "told once each", g.outbox(), 3)
		g.deliver()
		same(w, "held, started", g.holds(q), occupied{2, 2})
		g.unhold(made[1])
		w.release(claims[0].Fence)
		g.deliver()
		again := k.grants(9)
		sameList(w, "the new priority comes first", grantees(again), made[2], made[1])
		w.cancel(made[3])
		g.deliver()
		g.refuse(k, false, time.Minute, "gate "+q+" cap", again...)
		g.prefer(made[1], 10)
		g.open(again[0].Route)
		sameList(w, "while its route was closed, too", grantees(k.grants(9)), made[1], made[2])
	}},
	{name: "a revoked lease returns its slot once, when its execution is requeued or cancelled", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		id := w.create(asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		c := g.start(k, 1, q)[0]
		w.revoke(id)
		same(w, "not yet", g.outbox(), 0)
		states, freed := g.settle(q, engine.Hold{Execution: id, Epoch: c.Fence.Epoch})
		w.all("held", eqList(states, "held"), eq(freed, 0))
		w.settleTime()
		w.settleTime()
		same(w, "once", g.outbox(), 1)
		g.deliver()
		g.start(k, 1, q)
		w.cancel(id) // A1, taken for good
		same(w, "once", g.outbox(), 1)
		g.deliver()
		id = w.create(asking(flowfabric.Gate(q)))
		g.start(k, 1, q)
		w.revoke(id)
		w.cancel(id) // before the tick
		same(w, "once", g.outbox(), 1)
		g.deliver()
		same(w, "held", g.held(q), 0)
	}},
	{name: "a replayed execution asks its gates again", run: func(w *env) {
		g := newGates(w)
		w.seed()
		b, q := g.budget(nil), g.gate(admission.Gate{Concurrency: 1})
		id := w.create(asking(flowfabric.Gate(b), flowfabric.Gate(q)))
		k := g.asker("w1")
		ends := []func(engine.Claim){
			func(c engine.Claim) { w.complete(c.Fence, "r") },
			func(c engine.Claim) {
				_, err := w.e.FailExecution(w.ctx, c.Fence, engine.Failure{Category: "x", Permanent: true})
				w.no(err)
			},
			func(c engine.Claim) { w.cancel(id) },
		}
		c := g.start(k, 1, q)[0]
		epoch := c.Fence.Epoch
		for i, end := range ends {
			end(c)
			g.deliver()
			same(w, "free", g.held(q), 0)
			w.replay(id, engine.Replay{Force: true})
			w.code(id, "R1p")
			list := k.grants(1)
			w.code(id, "G1p")
			same(w, "room", g.room(b, list[0].Route), true)
			g.admit(q, 1, list...)
			c = k.granted(list...)[0]
			w.all("claimed", eq(c.Type, flowfabric.AttemptReplay), eq(c.Fence.Attempt, uint32(i+2)),
				eq(c.Fence.Epoch > epoch, true))
			epoch = c.Fence.Epoch
		}
	}},
	{name: "a route opens only when its lane and its gate are both open, in whatever order", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		id := w.create(asking(flowfabric.Gate(q)))
		route := g.asker("w0").grants(1)[0].Route
		steps := map[string]func(){
			"pause": func() { w.setLane("default", flowfabric.LanePaused, "") },
			"close": func() {
				g.no(g.e.ReleaseGrants(w.ctx, w.p, "nobody~x", nil,
					[]engine.RouteClosing{{Route: route, For: time.Minute, Why: "test"}}))
				w.check()
			},
			"resume": func() { w.setLane("default", flowfabric.LaneActive, "") },
			"open":   func() { g.open(route) },
			"time": func() {
				g.advance(time.Minute)
				w.settleTime()
			},
		}
		g.advance(5 * time.Second)
		w.tick()
		for _, order := range [][]string{{"pause", "close", "resume", "open"}, {"pause", "close", "open", "resume"},
			{"close", "pause", "resume", "open"},
			{"close", "pause", "open", "resume"}, {"pause", "close", "time", "resume"},
			{"close", "pause", "resume", "time"}} {
			for i, step := range order {
				k := g.asker("w1")
				list := k.grants(1)
				same(w, fmt.Sprintf("before %v of %v", step, order), len(list), map[bool]int{true: 1}[i == 0])
				if len(list) > 0 {
					g.no(g.e.ReleaseGrants(w.ctx, w.p, k.session, []engine.GrantReturn{{Grant: list[0]}}, nil))
				}
				steps[step]()
			}
			k := g.asker("w1")
			list := k.grants(1)
			sameList(w, fmt.Sprintf("after %v", order), grantees(list), id)
			g.no(g.e.ReleaseGrants(w.ctx, w.p, k.session, []engine.GrantReturn{{Grant: list[0]}}, nil))
		}
	}},
	{name: "a route that is removed with its last execution leaves no closing behind", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		id := w.create(asking(flowfabric.Gate(q)), retention(time.Second))
		k := g.asker("w1")
		list := k.grants(1)
		g.refuse(k, false, time.Hour, "gate "+q+" cap", list...)
		w.cancel(id)
		same(w, "closed", len(g.closings()), 1)
		g.advance(2 * time.Second)
		w.settleTime()
		w.all("purged", eq(w.exists(id), false), eq(len(g.closings()), 0), eq(len(w.hash(w.k.Closings())), 0))
		g.open(list[0].Route) // who is woken too late finds nothing
		again := w.create(asking(flowfabric.Gate(q)))
		next := g.asker("w2").grants(1)
		w.all("a new route, open", eqList(grantees(next), again), eq(next[0].Route > list[0].Route, true))
		w.cancel(again)
		_, err := w.e.PurgeExecution(w.ctx, again, 0)
		w.no(err)
		w.check()
		g.deliver()
		w.all("nothing is left", eq(g.outbox(), 0), eq(len(g.closings()), 0))
	}},
	{name: "a session with grants cannot close until they are returned", run: func(w *env) {
		g := newGates(w)
		id := w.create(asking(flowfabric.Gate(g.gate(admission.Gate{Concurrency: 1}))))
		k := g.asker("w1")
		list := k.grants(1)
		held, err := w.e.SessionHeld(w.ctx, w.p, k.session)
		w.no(err)
		same(w, "held", len(held), 1)
		w.is(w.e.CloseSession(w.ctx, w.p, k.session), denied.SessionHeld)
		w.unchanged("what only a holder may do", func() {
			f := flowfabric.Fence{Execution: id, Session: k.session, Claim: k.number, Epoch: list[0].Epoch,
				Attempt: 1}
			_, err := w.e.ReleaseExecution(w.ctx, f)
			w.is(err, denied.NotActive)
			out, _, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f}}, nil)
			w.no(err)
			w.is(out[0].Err, denied.NotActive)
			_, err = w.e.RevokeLease(w.ctx, id, "")
			w.is(err, denied.NotActive)
			_, err = w.e.PurgeExecution(w.ctx, id, 0)
			w.is(err, denied.NotTerminal)
		})
		g.no(g.e.ReleaseGrants(w.ctx, w.p, k.session, []engine.GrantReturn{{Grant: list[0]}}, nil))
		w.no(w.e.CloseSession(w.ctx, w.p, k.session))
		w.check()
		same(w, "claimable", len(g.asker("w2").grants(1)), 1)
	}},
	{name: "gates of a scope can refuse, and a refused grant restores every counter", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		g.spend(b, "k", tokens(100))
		q := g.gate(admission.Gate{Rate: 1, Window: flowfabric.Millis(time.Hour), Concurrency: 1})
		w.must("ff_attach", proto, "n\x1fdefault", b+","+q, "set")
		w.create()
		w.create(asking(flowfabric.Gate(q)))
		w.worker("old").nothing()
		k := g.asker("w1")
		list := k.grants(9)
		w.all("one route", eq(len(list), 2), eq(list[0].Route, list[1].Route),
			eqList(k.routes[list[0].Route].Gates, flowfabric.Gate(b), flowfabric.Gate(q)))
		same(w, "room", g.room(b, list[0].Route), false)
		held, spent, breaches := g.holds(q), g.spent(b, "tokens"), g.record(b).HardBreaches
		same(w, "admitted all the same, as by one who asks in another order", g.admit(q, 1, list...).Why, "rate")
		g.refuse(k, true, time.Minute, "gate "+b+" amount tokens 100 100", list...)
		g.deliver()
		w.all("every counter", eq(g.holds(q), held), eq(g.spent(b, "tokens"), spent),
			eq(g.record(b).HardBreaches, breaches))
		w.must("ff_attach", proto, "n\x1fdefault", "", "set")
		w.worker("old").one(w.create())
		list = k.grants(9) // the start that did not happen woke them
		w.all("what was created keeps its gates", eq(len(list), 2), eq(g.room(b, list[0].Route), false))
	}},
}

// sameGrants tells whether two replies grant the same, in whatever order.
func sameGrants(a, b []engine.Grant) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x engine.Grant) bool { return !slices.Contains(b, x) })
}
