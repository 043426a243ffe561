package model_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Random calls to a service pass only when there is room by a bucket of plain Go, and for those before them; whoever is
// alone passes as soon as there is; and what the gate says of itself is what the bucket has.
func TestServices(t *testing.T) {
	randomly(t, func(t *testing.T, s *server, seed uint64, did map[string]int) { newServices(t, s, seed, did).run() },
		"passed", "passed alone", "passed beside those before it", "waits for those before it", "waits in its slot",
		"is away", "passed before", "settled", "gave more back", "used more", "released", "refused", "over",
		"ended before", "closed", "one tries", "too large", "in debt", "at once", "slower")
}

// bucket is what there is of a dimension, in parts of which one has 60,000.
type bucket struct{ minute, burst, level int64 }

// asking is one that waits: until it asks again, and for a second more, it is there if it is in a slot.
type asking struct {
	x     engine.ServiceCall
	due   int64
	stays bool
}

type services struct {
	*bounds
	name    string
	def     admission.Service
	by      map[string]*bucket
	at      int64 // when the buckets were filled
	share   int64 // per mille, since its time
	shared  int64
	closed  int64 // until
	refused int   // in a row
	last    int64 // refusal
	waiting map[flowfabric.ExecutionID]*asking
	calls   []engine.ServiceCall // under way
	ended   []engine.ServiceCall
	ids     []flowfabric.ExecutionID
	number  uint64
}

func newServices(t *testing.T, s *server, seed uint64, did map[string]int) *services {
	x := &services{name: nameIn(3, limits.DefaultGatePartitions, "models"), share: 1000, at: begin - int64(time.Hour),
		waiting: map[flowfabric.ExecutionID]*asking{}, by: map[string]*bucket{}}
	x.bounds = newBounds(t, s, seed, did, keys.GateRoot(3))
	_, err := s.e.RemoveGate(x.ctx, x.name)
	x.no(err)
	x.def = admission.Service{PerMinute: map[string]int64{"requests": 100 + x.r.Int64N(500),
		"tokens": 1000 + x.r.Int64N(9000)}, Calls: x.r.IntN(6), Weights: map[string]int{"b": 3},
		Patience: flowfabric.Millis(time.Duration(1+x.r.IntN(60)) * time.Second)}
	if x.chance(30) {
		delete(x.def.PerMinute, "requests")
	}
	if x.chance(50) {
		x.def.Burst = map[string]int64{"tokens": 1 + x.r.Int64N(400)}
	}
	for dim, minute := range x.def.PerMinute {
		burst := max(x.def.Burst[dim], 0)
		if burst == 0 {
			burst = max(1, minute/40)
		}
		x.by[dim] = &bucket{minute, burst, burst * 60_000}
	}
	x.put()
	for range 8 {
		x.ids = append(x.ids, x.id())
	}
	return x
}

func (x *services) put() {
	_, _, _, err := x.s.e.PutGate(x.ctx, admission.Gate{Name: x.name, Service: &x.def}, 0)
	x.no(err)
}

func (x *services) run() {
	for step := range 500 {
		switch n := x.r.IntN(100); {
		case n < 55:
			x.acquire()
		case n < 75:
			x.end()
		case n < 78 && len(x.ended) > 0:
			x.endAgain()
		default:
			x.pass([]int64{1, 20, 100, 300, 300, 700, 1500, 7000, 70_000}[x.r.IntN(9)])
		}
		if step%5 == 0 {
			x.look()
		}
	}
}

// factor is how much of the rate there is now.
func (x *services) factor() int64 { return min(1000, x.share+50*((x.now-x.shared)/10_000)) }

// fill is what time has brought, as a call that writes notes it.
func (x *services) fill() {
	for _, b := range x.by {
		b.level = x.filled(b)
	}
	x.at = x.now
}

func (x *services) filled(b *bucket) int64 {
	refill := max(1, (b.minute-b.burst)*x.factor()/1000)
	return min(b.burst*60_000, b.level+refill*min(x.now-x.at, 3_600_000))
}

func (x *services) cap() int {
	if x.refused >= 2 {
		return 1
	}
	return x.def.Calls
}

// need is what a call takes of the dimensions that are limited.
func (x *services) need(c engine.ServiceCall) map[string]int64 {
	out := map[string]int64{}
	for dim := range x.by {
		out[dim] = c.Estimate[dim]
		if _, said := c.Estimate[dim]; dim == "requests" && !said {
			out[dim] = 1
		}
	}
	return out
}

// fits tells whether there is room for a call beside amounts of others, n of them.
func (x *services) fits(c engine.ServiceCall, beside map[string]int64, n int) bool {
	for dim, b := range x.by {
		if b.level-beside[dim]*60_000 < min(x.need(c)[dim], b.burst)*60_000 {
			return false
		}
	}
	return x.now >= x.closed && (x.cap() == 0 || len(x.calls)+n < x.cap())
}

// before are those that wait in the namespace of a call, are there, and come before it; others tells of anybody else.
func (x *services) before(c engine.ServiceCall) (list []engine.ServiceCall, others bool) {
	for id, w := range x.waiting {
		if id == c.Fence.Execution || !w.stays || x.now > w.due+1000 {
			continue
		}
		others = true
		key := func(c engine.ServiceCall) int64 { return c.Since.UnixMilli() - int64(c.Priority)*1_000_000_000_000 }
		if w.x.Namespace == c.Namespace && key(w.x) < key(c) {
			list = append(list, w.x)
		}
	}
	return list, others
}

func (x *services) acquire() {
	i := x.r.IntN(len(x.ids))
	x.number++
	c := engine.ServiceCall{Service: x.name, Fence: flowfabric.Fence{Execution: x.ids[i], Epoch: 1}, Number: x.number,
		Namespace: []string{"a", "b"}[i%2], Priority: i / 4, Since: time.UnixMilli(int64(1000 + i)),
		Estimate: map[string]int64{"tokens": x.r.Int64N(300), "other": 5}}
	if x.chance(5) {
		c.Estimate["tokens"] = x.by["tokens"].minute - 1 + x.r.Int64N(3)
	}
	if len(x.calls) > 0 && x.chance(5) { // the answer of one was lost
		c = x.calls[x.r.IntN(len(x.calls))]
		turn, err := x.s.e.Acquire(x.ctx, c)
		x.no(err)
		x.same(turn.Admitted, true)
		x.did["passed before"]++
		return
	}
	turn, err := x.s.e.Acquire(x.ctx, c)
	x.say("acquire %s %v: %+v %v", c.Namespace, c.Estimate, turn, err)
	if c.Estimate["tokens"] > x.by["tokens"].minute {
		x.same(x.code(err), "invalid_input")
		x.did["too large"]++
		return
	}
	x.no(err)
	x.fill()
	list, others := x.before(c)
	beside := map[string]int64{}
	for _, w := range list {
		for dim, n := range x.need(w) {
			beside[dim] += n
		}
	}
	if turn.Admitted {
		if !x.fits(c, beside, len(list)) {
			x.fatal("there is no room for it beside %d before it: %+v", len(list), x.by["tokens"])
		}
		x.passed(c, len(list), others)
		return
	}
	if !others && x.fits(c, nil, 0) {
		x.fatal("it is alone, and there is room")
	}
	if x.fits(c, nil, 0) {
		x.did["waits for those before it"]++
	}
	x.waits(c, turn)
}

func (x *services) passed(c engine.ServiceCall, before int, others bool) {
	x.did["passed"]++
	switch {
	case before > 0:
		x.did["passed beside those before it"]++
	case !others:
		x.did["passed alone"]++
	}
	if x.refused >= 2 {
		x.did["one tries"]++
	}
	if x.factor() < 1000 {
		x.did["slower"]++
	}
	delete(x.waiting, c.Fence.Execution)
	x.calls = append(x.calls, c)
	for dim, n := range x.need(c) {
		if x.by[dim].level -= n * 60_000; x.by[dim].level < 0 {
			x.did["in debt"]++
		}
	}
}

func (x *services) waits(c engine.ServiceCall, turn engine.Turn) {
	if turn.Retry < 10*time.Millisecond || turn.Retry > time.Hour || turn.Place < 1 || turn.Waiting < turn.Place {
		x.fatal("waits: %+v", turn)
	}
	if x.now < x.closed {
		x.did["closed"]++
	} else if x.cap() > 0 && len(x.calls) >= x.cap() {
		x.did["at once"]++
	}
	x.waiting[c.Fence.Execution] = &asking{c, x.now + turn.Retry.Milliseconds(), turn.Stay}
	if turn.Stay {
		x.did["waits in its slot"]++
	} else {
		x.did["is away"]++
	}
}

func (x *services) end() {
	if len(x.calls) == 0 {
		return
	}
	x.fill()
	i := x.r.IntN(len(x.calls))
	c := x.calls[i]
	how := []engine.CallEnd{engine.CallSettled, engine.CallSettled, engine.CallSettled, engine.CallReleased,
		engine.CallRefused, engine.CallOver}[x.r.IntN(6)]
	used := map[string]int64{}
	switch how {
	case engine.CallSettled:
		c.Used = map[string]int64{"tokens": x.r.Int64N(400)}
		used["requests"], used["tokens"] = 1, c.Used["tokens"]
		x.did["settled"]++
		if c.Used["tokens"] < c.Estimate["tokens"] {
			x.did["gave more back"]++
		} else if c.Used["tokens"] > c.Estimate["tokens"] {
			x.did["used more"]++
		}
	case engine.CallReleased:
		x.did["released"]++
	case engine.CallRefused:
		c.Pause = []time.Duration{0, 0, 2 * time.Second}[x.r.IntN(3)]
		used["requests"] = 1
		x.did["refused"]++
	case engine.CallOver:
		used = x.need(c)
		x.did["over"]++
	}
	already, err := x.s.e.EndCall(x.ctx, c, how)
	x.say("%s %v of %v: %v %v", how, c.Used, c.Estimate, already, err)
	x.no(err)
	x.same(already, false)
	x.calls = slices.Delete(x.calls, i, i+1)
	x.ended = append(x.ended, c)
	for dim, b := range x.by {
		b.level = max(-10*b.minute*60_000, min(b.burst*60_000, b.level+(x.need(c)[dim]-used[dim])*60_000))
	}
	switch {
	case how == engine.CallRefused:
		x.refuse(c.Pause.Milliseconds())
	case how == engine.CallSettled && x.now >= x.closed:
		x.refused = 0
	}
}

// refuse closes the service, and takes its rate down.
func (x *services) refuse(pause int64) {
	open := x.now >= x.closed
	if open {
		x.refused++
	}
	if x.now >= x.last+1000 {
		x.share, x.shared = max(50, x.factor()*7/10), x.now
	}
	if pause == 0 && open {
		pause = min(60_000, int64(1000)<<min(x.refused-1, 6))
	}
	x.closed, x.last = max(x.closed, x.now+pause), x.now
}

func (x *services) endAgain() {
	already, err := x.s.e.EndCall(x.ctx, x.ended[x.r.IntN(len(x.ended))], engine.CallSettled)
	x.no(err)
	x.same(already, true)
	x.did["ended before"]++
}

// look compares what the gate says of itself, and holds what it stored against the rules.
func (x *services) look() {
	g, err := x.s.e.ReadGate(x.ctx, x.name, 32, 10, 0)
	x.no(err)
	room := map[string]int64{}
	for dim, b := range x.by {
		level := x.filled(b)
		if room[dim] = level / 60_000; level < 0 && level%60_000 != 0 {
			room[dim]--
		}
	}
	if !maps.Equal(g.State.Room, room) || g.State.UnderWay != len(x.calls) || int64(g.State.Share) != x.factor() ||
		g.State.ClosedUntil.IsZero() != (x.now >= x.closed) {
		x.fatal("the gate says %+v\nwant %v, %d under way, share %d, closed until %d", *g.State, room, len(x.calls),
			x.factor(), x.closed-begin)
	}
	bad, err := invariant.CheckAdmission(x.ctx, x.s.raw, x.roots[0])
	x.no(err)
	if len(bad) > 0 {
		x.fatal("%s", strings.Join(bad, "\n"))
	}
}
