package model_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	stored "github.com/flowfabric/flowfabric-go/internal/record"
	"github.com/flowfabric/flowfabric-go/internal/testgate"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// TestGates has simulated workers take work with gates through all its calls: claim, admit, claim what was
// granted, finish. Calls of all of them take turns; workers die between any two calls, replies are lost, calls are
// repeated, even long after, time passes, operators interfere. After every call: what runs has its slots, no slot was
// given above the cap in force, no start above the rate, no unit above a hard limit, and the partitions are sound. At
// the end all work ends, no slot is left, and the window has exactly what started. 16 runs, or FLOWFABRIC_SOAK/10;
// FLOWFABRIC_SEED runs one.
func TestGates(t *testing.T) {
	t.Parallel()
	s := redisOf(t, gateParts)
	did := map[string]int{}
	for seed := range seeds(max(16, soak()/10)) {
		newGateRun(t, s, seed, did).run()
	}
	t.Log(did)
	happened(t, did, "claim", "admit", "granted", "complete", "fail", "delay", "release", "report", "kill",
		"lost reply", "twice", "long after", "cancel", "revoke", "pause", "dead", "suspects", "killed grant",
		"delivered", "refused by cap", "refused by rate", "refused by amount", "look", "stale grant", "given up",
		"refunded")
}

const (
	gateParts = 2
	rateSpan  = 5000 // ms, the window of the second gate of starts
	gateHard  = 40
)

// task is one call; what it returns is what its caller makes of the reply, if it comes.
type task func() (then func())

// actor makes calls one after the other.
type actor struct{ todo []task }

func (a *actor) first(list ...task) { a.todo = append(list, a.todo...) }
func (a *actor) later(list ...task) { a.todo = append(a.todo, list...) }

type gateWorker struct {
	actor
	n         int
	partition uint16
	session   string
	number    uint64
}

// share is what was granted of one route.
type share struct {
	route    uint64
	gates    []string
	measured []string // what those that were asked measure
	grants   []engine.Grant
}

type gateRun struct {
	*bounds
	e       *engine.Engine
	checker *invariant.Checker
	dumps   [gateParts]*invariant.Dump
	digest  [gateParts]string
	workers []*gateWorker
	owner   actor  // delivers outboxes
	past    []task // calls that may come once more
	late    bool   // … in this run
	faults  bool
	caps    map[string]admission.Gate
	most    map[string]int   // the highest cap there was
	started map[string]int64 // in the window of that gate, by hold
	ids     []flowfabric.ExecutionID
	period  uint64
	used    map[string]int64 // accepted in this period, by execution
	dirty   [gateParts]bool  // what check has to read again
	steps   int
	kids    int
}

// at is the partition that a call is about to change.
func (x *gateRun) at(p uint16) uint16 {
	x.dirty[p] = true
	return p
}

func (x *gateRun) everywhere() {
	for p := range uint16(gateParts) {
		x.at(p)
	}
}

var gateNames = map[string]string{"b": nameIn(1, limits.DefaultGatePartitions, "gc"),
	"q1": nameIn(1, limits.DefaultGatePartitions, "ga"), "q2": nameIn(2, limits.DefaultGatePartitions, "gb")}

func newGateRun(t *testing.T, s *server, seed uint64, did map[string]int) *gateRun {
	x := &gateRun{checker: invariant.NewChecker(), faults: true, late: seed%2 == 0, caps: map[string]admission.Gate{},
		most: map[string]int{}, started: map[string]int64{}, used: map[string]int64{}}
	roots := []string{keys.GateRoot(1), keys.GateRoot(2)}
	for p := range uint16(gateParts) {
		roots = append(roots, keys.Root(p))
	}
	x.bounds = newBounds(t, s, seed, did, roots...)
	x.e = s.e
	for _, root := range roots {
		_, code, _, err := s.fcall(x.ctx, s.raw, root, "ff_boot", strconv.Itoa(limits.Protocol))
		x.no(err)
		x.same(code, "OK")
	}
	_, _, _, err := x.e.PutGate(x.ctx,
		admission.Gate{Name: gateNames["b"], Reset: flowfabric.Millis(45 * time.Second), Refund: []string{"failed",
			"cancelled"},
			Limits: map[string]admission.Limit{"tokens": {Hard: gateHard}}}, 0)
	x.no(err)
	x.cap("q1", admission.Gate{Concurrency: 1 + x.r.IntN(3)})
	x.cap("q2", admission.Gate{Concurrency: 1 + x.r.IntN(4), Rate: 2 + x.r.IntN(5),
		Window: flowfabric.Millis(rateSpan * time.Millisecond)})
	for p := range uint16(gateParts) {
		x.create(p)
	}
	x.everywhere()
	for i := range 4 {
		w := &gateWorker{n: i}
		x.born(w)
		x.workers = append(x.workers, w)
	}
	return x
}

// cap makes or changes a gate of starts.
func (x *gateRun) cap(which string, q admission.Gate) {
	x.t.Helper()
	q.Name = gateNames[which]
	old, err := x.e.ReadGate(x.ctx, q.Name, 0, 0, 0)
	if err != nil && !errors.Is(err, denied.NoGate) {
		x.fatal("%v", err)
	}
	_, _, wake, err := x.e.PutGate(x.ctx, q, old.Revision)
	x.no(err)
	x.caps[q.Name], x.most[q.Name] = q, max(x.most[q.Name], q.Concurrency)
	x.say("cap of %s %d, rate %d", which, q.Concurrency, q.Rate)
	x.owner.later(x.wake(wake)...)
}

// create makes executions of every combination of gates.
func (x *gateRun) create(p uint16) {
	b, q1, q2 := flowfabric.Gate(gateNames["b"]), flowfabric.Gate(gateNames["q1"]),
		flowfabric.Gate(gateNames["q2"])
	var items []engine.NewExecution
	for _, gates := range [][]flowfabric.Gate{{q1}, {q1, q2}, {b, q1, q2}, {b}, {q2}, nil} {
		for range 2 + x.r.IntN(3) {
			e := engine.NewExecution{ID: mint.Join(p, ids.UUID(x.id())),
				Start: testgate.Asks(flowfabric.Start{Namespace: "default",
					Lane: "default", Kind: "k"}, gates...)}
			e.Policy.Retry = flowfabric.RetryPolicy{MaxRetries: 1, Fixed: true, Initial: 2 * time.Second}
			e.Policy.MaxReclaims = 100
			items, x.ids = append(items, e), append(x.ids, e.ID)
		}
	}
	out, err := x.e.CreateExecutions(x.ctx, p, items)
	x.no(err)
	for _, c := range out {
		x.no(c.Err)
	}
	var all []uint64
	for i := range uint64(10) {
		all = append(all, i+1)
	}
	x.digest[p], err = x.e.SetSubscription(x.ctx, p, engine.Subscription{Classes: all})
	x.no(err)
}

// born gives a worker a new session.
func (x *gateRun) born(w *gateWorker) {
	x.kids++
	w.partition, w.session, w.number, w.todo = uint16(x.r.IntN(gateParts)),
		engine.NewSessionID(fmt.Sprint("w", w.n, "-", x.kids)), 0, nil
}

// run is one run: calls in random turns, and an end.
func (x *gateRun) run() {
	for range 500 {
		x.steps++
		switch n := x.r.IntN(100); {
		case n < 68:
			w := x.workers[x.r.IntN(len(x.workers))]
			if len(w.todo) == 0 {
				w.later(x.claim(w))
			}
			x.call(&w.actor)
		case n < 76:
			if len(x.owner.todo) == 0 {
				x.owner.later(x.outbox(uint16(x.r.IntN(gateParts))))
			}
			x.call(&x.owner)
		case n < 82:
			x.tick(uint16(x.r.IntN(gateParts)))
		case n < 89:
			ms := int64(x.r.IntN(4)) * int64(x.r.IntN(3000))
			if x.chance(10) {
				ms = 12_000
			}
			x.pass(ms)
			x.say("%+d ms", ms)
		case n < 92:
			w := x.workers[x.r.IntN(len(x.workers))]
			x.say("worker %d dies with %d calls to make", w.n, len(w.todo))
			x.did["kill"]++
			x.born(w)
		case n < 95:
			x.operate()
		case len(x.past) > 0 && x.late:
			x.say("long after:")
			x.past[x.r.IntN(len(x.past))]()
			x.did["long after"]++
		}
		x.check()
	}
	x.drain()
}

// call makes the next call of somebody. It may be made twice, or its reply be lost, and then it is made again.
func (x *gateRun) call(a *actor) {
	t := a.todo[0]
	if x.faults && x.chance(4) {
		t()
		x.did["twice"]++
	}
	then := t()
	if len(x.past) < 200 {
		x.past = append(x.past, t)
	} else {
		x.past[x.r.IntN(len(x.past))] = t
	}
	if x.faults && x.chance(6) {
		x.say("  … and the reply is lost")
		x.did["lost reply"]++
		return
	}
	a.todo = a.todo[1:]
	if then != nil {
		then()
	}
}

func (x *gateRun) claim(w *gateWorker) task {
	q := engine.ClaimRequest{Partition: w.partition, Session: w.session, Number: w.number + 1,
		TTL: lease * time.Millisecond, Max: 1 + x.r.IntN(5), Subscription: x.digest[w.partition], Gates: true,
		Rotation: uint64(x.r.IntN(10))}
	return func() func() {
		x.at(q.Partition)
		out, err := x.e.ClaimNext(x.ctx, q)
		x.say("worker %d claims in %d: %d claims, %d grants, %v", w.n, q.Partition, len(out.Claims), len(out.Grants),
			err)
		x.did["claim"]++
		return func() {
			if errors.Is(err, denied.LeaseExpired) {
				x.born(w)
				return
			}
			x.no(err)
			if len(out.Claims)+len(out.Grants) > 0 {
				w.number = q.Number
			}
			by := map[uint64]*share{}
			for _, g := range out.Grants {
				if by[g.Route] == nil {
					by[g.Route] = x.share(out.Others, g.Route)
				}
				by[g.Route].grants = append(by[g.Route].grants, g)
			}
			for _, route := range slices.Sorted(maps.Keys(by)) {
				w.later(x.admit(w, by[route], 0))
			}
			for _, c := range out.Claims {
				w.later(x.finish(w, c, nil)...)
			}
		}
	}
}

func (x *gateRun) share(rows []engine.Route, route uint64) *share {
	for _, r := range rows {
		if r.ID == route {
			s := &share{route: route}
			for _, g := range r.Gates {
				s.gates = append(s.gates, g.Name())
			}
			return s
		}
	}
	x.fatal("route %d is in no table", route)
	return nil
}

// admit asks the gates of a share from the i-th on, and then claims what is left of it.
func (x *gateRun) admit(w *gateWorker, s *share, i int) task {
	if i == len(s.gates) {
		return x.granted(w, s)
	}
	name, grants := s.gates[i], s.grants
	holds := make([]engine.Hold, len(grants))
	for n, g := range grants {
		holds[n] = engine.Hold{Execution: g.Execution, Epoch: g.Epoch}
	}
	return func() func() {
		before := x.gate(name)
		a, err := x.e.Admit(x.ctx, name, engine.Waiter{Partition: w.partition, Route: s.route}, 10*time.Second, false,
			holds)
		x.no(err)
		after := x.gate(name)
		q := x.caps[name]
		x.say("worker %d asks %s for %v: %+v", w.n, name, holdTexts(holds), a)
		if after.Held > before.Held && after.Held > q.Concurrency ||
			q.Rate > 0 && after.Started > before.Started && after.Started > q.Rate {
			x.fatal("%s admitted up to %d at once, %d starts: cap %d, rate %d", name, after.Held, after.Started,
				q.Concurrency,
				q.Rate)
		}
		x.did["admit"]++
		return func() {
			refused := grants[a.Count:]
			s.grants, s.measured = grants[:a.Count], append(s.measured[:i:i], name+"="+a.Meters)
			if len(s.grants) > 0 {
				w.first(x.admit(w, s, i+1))
			}
			if len(refused) > 0 {
				x.did["refused by "+a.Why]++
				w.first(x.back(w, refused, i > 0, engine.RouteClosing{Route: s.route, For: min(a.Retry, 30*time.Second),
					Why: a.Why, Wakes: refused[0].Wakes}), x.look(w, name, s.route, holds[a.Count:]))
			}
			if len(a.Suspects) > 0 {
				x.did["suspects"]++
				w.first(x.inquire(&w.actor, name, a.Suspects)...)
			}
		}
	}
}

// look opens a route that was just closed if there is room now.
func (x *gateRun) look(w *gateWorker, name string, route uint64, holds []engine.Hold) task {
	p := w.partition
	return func() func() {
		a, err := x.e.Admit(x.ctx, name, engine.Waiter{Partition: p, Route: route}, 10*time.Second, true, holds)
		x.no(err)
		x.say("worker %d looks at %s for route %d: %+v", w.n, name, route, a)
		x.did["look"]++
		if a.Why != "" {
			return nil
		}
		return func() { w.first(x.wake([]engine.Waiter{{Partition: p, Route: route}})...) }
	}
}

func (x *gateRun) gate(name string) admission.GateRecord {
	x.t.Helper()
	q, err := x.e.ReadGate(x.ctx, name, 0, 1000, 0)
	x.no(err)
	return q
}

// inquire asks about suspects, and tells the gate.
func (x *gateRun) inquire(a *actor, name string, suspects []string) (list []task) {
	by := map[uint16][]engine.Hold{}
	for _, text := range suspects {
		h := x.hold(text)
		by[h.Execution.Partition()] = append(by[h.Execution.Partition()], h)
	}
	for p, holds := range by {
		list = append(list, func() func() {
			states, err := x.e.CheckHolds(x.ctx, x.at(p), holds)
			x.no(err)
			x.say("holds %v are %v", holdTexts(holds), states)
			for i, h := range holds {
				x.judge(h, states[i])
			}
			if slices.Contains(states, engine.NewsNever) {
				x.did["killed grant"]++
			}
			return func() {
				a.first(func() func() {
					var news []engine.News
					for i, h := range holds {
						news = append(news, engine.News{Gate: name, Execution: h.Execution, Epoch: h.Epoch,
							What: states[i]})
					}
					_, wake, err := x.e.SettleGates(x.ctx, news)
					x.no(err)
					x.say("%s is told of %v: %v", name, holdTexts(holds), states)
					return func() { a.first(x.wake(wake)...) }
				})
			}
		})
	}
	return list
}

// judge holds an answer about a hold against its execution as it is read after the call.
func (x *gateRun) judge(h engine.Hold, state string) {
	x.t.Helper()
	c := map[string]string{}
	raw, err := x.s.raw.Do(x.ctx,
		x.s.raw.B().Get().Key(keys.Of(h.Execution.Partition()).Core(ids.UUID(h.Execution))).Build()).ToString()
	if !rueidis.IsRedisNil(err) {
		x.no(err)
		r, err := stored.Decode(raw)
		x.no(err)
		c = r.Fields
	}
	epoch := text(int64(h.Epoch))
	want := engine.NewsNever
	switch {
	case (c["s"] == "A1" || c["s"] == "A3") && c["e"] == epoch, strings.HasPrefix(c["s"], "G1") && c["ge"] == epoch:
		want = engine.NewsHeld
	case x.ran(holdText(h)), c["e"] != "" && len(c["e"]) == len(epoch) && c["e"] > epoch:
		// of one that is older, nobody knows
		want = engine.NewsGone
	}
	if state != want {
		x.fatal("hold %s is said to be %s, want %s: %v", holdText(h), state, want, c)
	}
}

func (x *gateRun) hold(text string) engine.Hold {
	x.t.Helper()
	h, err := engine.ParseHold(text)
	x.no(err)
	return h
}

func (x *gateRun) wake(list []engine.Waiter) (out []task) {
	for _, who := range list {
		out = append(out, func() func() {
			_, err := x.e.OpenRoutes(x.ctx, x.at(who.Partition), []uint64{who.Route})
			x.no(err)
			x.say("open route %d of %d", who.Route, who.Partition)
			return nil
		})
	}
	return out
}

// back returns grants and closes their route.
func (x *gateRun) back(w *gateWorker, grants []engine.Grant, reserved bool, closing ...engine.RouteClosing) task {
	p, session := w.partition, w.session
	list := make([]engine.GrantReturn, len(grants))
	for i, g := range grants {
		list[i] = engine.GrantReturn{Grant: g, Reserved: reserved}
	}
	return func() func() {
		x.no(x.e.ReleaseGrants(x.ctx, x.at(p), session, list, closing))
		x.say("worker %d returns %v, closes %v", w.n, list, closing)
		return nil
	}
}

func (x *gateRun) granted(w *gateWorker, s *share) task {
	grants, p, session, number := s.grants, w.partition, w.session, w.number
	measured := []wire.ClaimGrantedRoute{{Route: int(s.route), Meters: strings.Join(s.measured, ",")}}
	return func() func() {
		answers, claims, err := x.e.ClaimGranted(x.ctx, x.at(p), session, number, grants, measured)
		x.say("worker %d claims what was granted, %v: %v %v", w.n, grants, answers, err)
		x.did["granted"]++
		return func() {
			if x.faults && x.chance(5) { // he gives up instead of asking again
				x.say("  … of which worker %d knows nothing", w.n)
				w.first(x.back(w, grants, len(s.gates) > 0))
				x.did["given up"]++
				return
			}
			if errors.Is(err, denied.LeaseExpired) {
				x.born(w)
				return
			}
			x.no(err)
			for i, a := range answers {
				if a.Err != nil {
					x.did["stale grant"]++
					w.first(x.back(w, grants[i:i+1], len(s.gates) > 0))
				}
			}
			for _, c := range claims {
				w.later(x.finish(w, c, s)...)
			}
		}
	}
}

// finish ends an attempt in one of many ways; sometimes the worker forgets about it.
func (x *gateRun) finish(w *gateWorker, c engine.Claim, s *share) (list []task) {
	if s != nil && slices.Contains(s.gates, gateNames["b"]) {
		list = append(list, x.report(c, gateNames["b"]))
	}
	how := []string{"complete", "complete", "complete", "fail", "delay", "release", "forget"}[x.r.IntN(7)]
	if !x.faults {
		how = "complete"
	}
	if how == "forget" {
		return list
	}
	span, last := time.Duration(x.r.IntN(3000))*time.Millisecond, x.chance(60)
	return append(list, func() func() {
		x.at(c.Fence.Execution.Partition())
		var err error
		switch how {
		case "complete":
			var out []engine.Settled
			if out, _, err = x.e.CompleteExecutions(x.ctx, c.Fence.Execution.Partition(),
				[]engine.Completion{{Fence: c.Fence}}, nil); err == nil {
				err = out[0].Err
			}
		case "fail":
			_, err = x.e.FailExecution(x.ctx, c.Fence, engine.Failure{Category: "c1", Permanent: last})
		case "delay":
			_, err = x.e.DelayExecution(x.ctx, c.Fence, span, "")
		case "release":
			_, err = x.e.ReleaseExecution(x.ctx, c.Fence)
		}
		x.say("worker %d: %s %s: %v", w.n, how, c.Fence, err)
		x.did[how]++
		if err != nil && !x.faults {
			x.fatal("%v", err)
		}
		return nil
	})
}

// report spends; what is beyond the limit is refused, and no matter.
func (x *gateRun) report(c engine.Claim, name string) task {
	u := admission.Usage{Gate: name, Execution: c.Fence.Execution, Epoch: c.Fence.Epoch, Sequence: 1,
		Amounts: map[string]int64{"tokens": int64(1 + x.r.IntN(15))}}
	return func() func() {
		r, err := x.e.ReportUsage(x.ctx, u)
		x.no(err)
		x.say("report %v of %s: %+v", u.Amounts, c.Fence, r)
		if !r.Replayed {
			if r.Period != x.period {
				x.period, x.used = r.Period, map[string]int64{}
			}
			if r.Applied {
				x.used[ids.UUID(u.Execution).String()] += u.Amounts["tokens"]
			}
		}
		x.did["report"]++
		return nil
	}
}

// outbox reads what a partition has to tell, tells it, and trims it, a call each.
func (x *gateRun) outbox(p uint16) task {
	return func() func() {
		entries, _, err := x.e.ReadOutbox(x.ctx, p, "")
		x.no(err)
		return func() {
			for _, entry := range entries {
				for _, n := range entry.News {
					x.owner.later(func() func() {
						done, wake, err := x.e.SettleGates(x.ctx, []engine.News{n})
						x.no(err)
						x.say("%s is told that %s:%d is %s: %v", n.Gate, n.Execution, n.Epoch, n.What, done)
						if done[0] && n.Gate == gateNames["b"] {
							delete(x.used, ids.UUID(n.Execution).String())
							x.did["refunded"]++
						}
						return func() { x.owner.first(x.wake(wake)...) }
					})
				}
				x.owner.later(func() func() {
					_, err := x.e.TrimOutbox(x.ctx, x.at(p), []string{entry.ID})
					x.no(err)
					x.did["delivered"]++
					return nil
				})
			}
		}
	}
}

func (x *gateRun) tick(p uint16) {
	x.t.Helper()
	for more := true; more; {
		r, err := x.e.Tick(x.ctx, x.at(p), "ticker", false)
		x.no(err)
		more = r.More
	}
	x.say("tick of %d", p)
}

// operate does something to an execution, a session, or a limit.
func (x *gateRun) operate() {
	id := x.ids[x.r.IntN(len(x.ids))]
	x.everywhere()
	var err error
	switch x.r.IntN(8) {
	case 0:
		_, err = x.e.CancelExecution(x.ctx, id, engine.Cancellation{Source: engine.CancelOperator})
		x.say("cancel %s: %v", id, err)
		x.did["cancel"]++
	case 1, 2:
		for _, each := range x.ids {
			if x.code2(each) == "A1" && x.chance(50) {
				id = each
			}
		}
		_, err = x.e.RevokeLease(x.ctx, id, "")
		x.say("revoke %s: %v", id, err)
		x.did["revoke"] += bool01(err == nil)
	case 3:
		_, err = x.e.HoldExecution(x.ctx, id)
		x.say("hold %s: %v", id, err)
		x.did["pause"] += bool01(err == nil)
	case 4:
		_, err = x.e.UnholdExecution(x.ctx, id)
		x.say("unhold %s: %v", id, err)
	case 5:
		if w := x.workers[x.r.IntN(len(x.workers))]; w.number > 0 {
			_, err = x.e.MarkSessionDead(trail.As(x.ctx, "", "test"), w.partition, w.session)
			x.say("session of worker %d is dead: %v", w.n, err)
			x.did["dead"]++
		}
	case 6:
		x.cap("q1", admission.Gate{Concurrency: 1 + x.r.IntN(3)})
	case 7:
		x.cap("q2", admission.Gate{Concurrency: 1 + x.r.IntN(4), Rate: 2 + x.r.IntN(5),
			Window: flowfabric.Millis(rateSpan * time.Millisecond)})
	}
}

func (x *gateRun) code2(id flowfabric.ExecutionID) string {
	if d := x.dumps[id.Partition()]; d != nil {
		return d.Hashes[":x:"+ids.UUID(id).String()]["s"]
	}
	return ""
}

// check looks at everything.
func (x *gateRun) check() {
	x.t.Helper()
	running := map[string][]string{}
	for p := range uint16(gateParts) {
		if x.dirty[p] {
			d, err := invariant.Read(x.ctx, x.s.raw, p)
			x.no(err)
			if bad := x.checker.Violations(d); len(bad) > 0 {
				x.fatal("partition %d is not sound: %q", p, bad)
			}
			x.dumps[p], x.dirty[p] = d, false
		}
		d := x.dumps[p]
		for key, c := range d.Hashes {
			id, ok := strings.CutPrefix(key, ":x:")
			if !ok || c["s"] != "A1" && c["s"] != "A3" {
				continue
			}
			row := strings.Split(d.Hashes[":routes"][c["r"]], "\x1f")
			for g := range strings.SplitSeq(row[len(row)-1], ",") {
				if g == gateNames["q1"] || g == gateNames["q2"] {
					running[g] = append(running[g], fmt.Sprint(p, ".", id, ":", c["e"]))
				}
			}
		}
	}
	for name, list := range running {
		q := x.gate(name)
		for _, hold := range list {
			if !slices.Contains(q.Holds, hold) {
				x.fatal("%s runs and has no slot of %s", hold, name)
			}
		}
		if len(list) > x.most[name] {
			x.fatal("%d run at once under %s, whose cap never was above %d", len(list), name, x.most[name])
		}
	}
	x.window(running[gateNames["q2"]])
	b, err := x.e.ReadGate(x.ctx, gateNames["b"], 0, 0, 0)
	x.no(err)
	total := int64(0)
	for _, n := range x.used {
		total += n
	}
	if b.Period != x.period {
		total = 0
	}
	if b.Used["tokens"] != total || total > gateHard {
		x.fatal("%d used of %d, accepted %d", b.Used["tokens"], gateHard, total)
	}
}

// starts is the window of the second gate of starts as it is now.
func (x *gateRun) starts() map[string]int64 {
	x.t.Helper()
	list, err := x.s.raw.Do(x.ctx, x.s.raw.B().Zrange().Key(
		keys.Partition(keys.GateRoot(2)).Window(gateNames["q2"])).Min("0").Max("-1").Withscores().Build()).AsZScores()
	if err != nil && !rueidis.IsRedisNil(err) {
		x.fatal("%v", err)
	}
	out := map[string]int64{}
	for _, z := range list {
		if int64(z.Score) > x.now-rateSpan {
			out[z.Member] = int64(z.Score)
		}
	}
	return out
}

// window holds what started against the window: whatever ran is in it until its time is over.
func (x *gateRun) window(running []string) {
	x.t.Helper()
	now := x.starts()
	for _, hold := range running {
		if _, known := x.started[hold]; !known {
			x.started[hold] = now[hold]
		}
	}
	for hold, at := range x.started {
		if _, in := now[hold]; !in && at > x.now-rateSpan {
			x.fatal("%s started at %d and is not in the window", hold, at-begin)
		}
	}
}

// drain ends all faults, and then all work.
func (x *gateRun) drain() {
	x.say("drain")
	x.faults = false
	for _, w := range x.workers {
		x.born(w)
	}
	x.owner.todo = nil
	for round := 0; x.open() > 0; round++ {
		if round == 300 {
			x.fatal("%d executions do not end", x.open())
		}
		x.pass(1500)
		for p := range uint16(gateParts) {
			x.tick(p)
			x.deliver(p)
		}
		for _, w := range x.workers[:gateParts] {
			x.born(w)
			w.partition = uint16((round + w.n) % gateParts)
			w.later(x.claim(w))
			for len(w.todo) > 0 {
				x.call(&w.actor)
			}
		}
		for _, id := range x.ids {
			if strings.HasPrefix(x.code2(id), "R4") {
				_, err := x.e.UnholdExecution(x.ctx, id)
				x.at(id.Partition())
				x.no(err)
			}
		}
		x.check()
	}
	for p := range uint16(gateParts) {
		x.deliver(p)
	}
	x.settled()
}

func (x *gateRun) deliver(p uint16) {
	x.owner.later(x.outbox(p))
	for len(x.owner.todo) > 0 {
		x.call(&x.owner)
	}
}

func (x *gateRun) open() (n int) {
	for _, id := range x.ids {
		n += bool01(!strings.HasPrefix(x.code2(id), "T"))
	}
	return n
}

// settled: what is left of slots are holds of dead workers, which were asked for after their grants were over, and
// asking about them frees them; then the window has exactly what started.
func (x *gateRun) settled() {
	x.t.Helper()
	for _, name := range []string{gateNames["q1"], gateNames["q2"]} {
		left := x.gate(name).Holds
		x.did["left over"] += len(left)
		var a actor
		a.later(x.inquire(&a, name, left)...)
		for len(a.todo) > 0 {
			x.call(&a)
		}
		if q := x.gate(name); q.Held != 0 {
			x.fatal("%s has slots at the end: %v", name, q.Holds)
		}
	}
	x.check()
	if x.late {
		return // what was asked for long after was counted, and nobody came to say that it never ran
	}
	for hold, at := range x.starts() {
		if _, known := x.started[hold]; !known && !x.ran(hold) {
			x.fatal("%s is in the window since %d and never ran", hold, at-begin)
		}
	}
}

// ran tells whether a hold became a lease: one that began and ended within a single step is not seen by check.
func (x *gateRun) ran(hold string) bool {
	h := x.hold(hold)
	snap, err := x.e.ReadExecution(x.ctx, h.Execution)
	x.no(err)
	return snap.Epoch == h.Epoch || slices.ContainsFunc(snap.AttemptLog, func(a engine.AttemptRecord) bool {
		return a.Epoch == h.Epoch
	})
}
