package conformance

import (
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// service makes the gate of a service that lets 600 requests and 60,000 tokens pass in a minute: a bucket of 15 and one
// of 1,500.
func (g *gates) service(change func(*admission.Service)) string {
	g.Helper()
	s := &admission.Service{PerMinute: map[string]int64{"requests": 600, "tokens": 60_000}}
	if change != nil {
		change(s)
	}
	return g.gate(admission.Gate{Service: s})
}

// caller is a new execution that wants to call a service.
func (g *gates) caller(service, namespace string, n int64) engine.ServiceCall {
	return engine.ServiceCall{Service: service, Fence: flowfabric.Fence{Execution: mint.ID(g.p), Epoch: 1}, Number: 1,
		Namespace: namespace, Since: time.UnixMilli(1), Estimate: tokens(n)}
}

// acquire asks for the turn of a call, and fails unless it is let through or not.
func (g *gates) acquire(x engine.ServiceCall, want bool) engine.Turn {
	g.Helper()
	turn, err := g.e.Acquire(g.ctx, x)
	g.no(err)
	if turn.Admitted != want {
		g.Fatalf("let through: %v, want %v: %+v", turn.Admitted, want, turn)
	}
	return turn
}

// calls lets a caller through as often as there is room, at most most times, and ends each.
func (g *gates) calls(x engine.ServiceCall, most int) (n int) {
	g.Helper()
	for ; n < most; n++ {
		x.Number++
		turn, err := g.e.Acquire(g.ctx, x)
		g.no(err)
		if !turn.Admitted {
			return n
		}
		g.ended(x, engine.CallSettled, false)
	}
	return n
}

func (g *gates) ended(x engine.ServiceCall, how engine.CallEnd, already bool) {
	g.Helper()
	if how == engine.CallSettled && x.Used == nil {
		x.Used = x.Estimate
	}
	got, err := g.e.EndCall(g.ctx, x, how)
	g.no(err)
	same(g.env, "ended before", got, already)
}

var serviceScenarios = []scenario{
	{name: "no minute of a service lets more through than it has, however calls come", run: func(w *env) {
		g := newGates(w)
		s := g.service(nil)
		x := g.caller(s, "acme", 0)
		x.Estimate = nil
		same(w, "at once", g.calls(x, 100), 15)
		passed := 15
		for range 60 {
			w.advance(time.Second)
			n := g.calls(x, 100)
			if n > 15 {
				w.Fatalf("%d in a second", n)
			}
			passed += n
		}
		if passed > 600 || passed < 590 {
			w.Fatalf("%d in a minute, want at most 600 and not much less", passed)
		}
	}},
	{name: "what was estimated and not used is given back, once", run: func(w *env) {
		g := newGates(w)
		s := g.service(nil)
		x := g.caller(s, "acme", 1500)
		g.acquire(x, true)
		g.acquire(x, true) // the answer was lost
		y := g.caller(s, "acme", 500)
		g.acquire(y, false)
		x.Used = tokens(900)
		g.ended(x, engine.CallSettled, false)
		g.ended(x, engine.CallSettled, true)
		g.acquire(y, true)
		g.ended(y, engine.CallReleased, false)
		r := g.record(s)
		w.all("room", eq(r.State.Room["tokens"], 600), eq(r.State.UnderWay, 0), eq(r.State.Room["requests"], 14))
	}},
	{name: "namespaces share a service by weight, whoever asks more often", run: func(w *env) {
		g := newGates(w)
		s := g.service(func(s *admission.Service) { // nobody is away
			s.Weights, s.Patience = map[string]int{"b": 2, "c": 3}, flowfabric.Millis(time.Minute)
		})
		g.calls(g.caller(s, "a", 100), 100) // there is no room now
		waiting, got := map[string][]engine.ServiceCall{}, map[string]int{}
		for i := range 120 { // a has many more callers than the others
			name := []string{"a", "a", "a", "b", "c", "c"}[i%6]
			x := g.caller(s, name, 100)
			waiting[name] = append(waiting[name], x)
			g.acquire(x, false)
		}
		for range 15 {
			w.advance(300 * time.Millisecond)
			for name, list := range waiting {
				for i := 0; i < len(list); {
					turn, err := w.e.Acquire(w.ctx, list[i])
					w.no(err)
					if !turn.Admitted {
						i++
						continue
					}
					got[name]++
					g.ended(list[i], engine.CallSettled, false)
					list = append(list[:i], list[i+1:]...)
				}
				waiting[name] = list
			}
		}
		sum := got["a"] + got["b"] + got["c"]
		for name, weight := range map[string]int{"a": 1, "b": 2, "c": 3} {
			if want := sum * weight / 6; got[name] < want-3 || got[name] > want+3 {
				w.Fatalf("%v of %d, want by weights 1, 2 and 3", got, sum)
			}
		}
		if sum < 40 {
			w.Fatalf("%d calls in 4.5 s, want nearly 44", sum)
		}
	}},
	{name: "in a namespace it goes by priority, then by age, and no large call is overtaken for ever",
		run: func(w *env) {
			g := newGates(w)
			s := g.service(nil)
			g.acquire(g.caller(s, "acme", 1500), true)
			large, small, urgent := g.caller(s, "acme", 1400), g.caller(s, "acme", 10), g.caller(s, "acme", 10)
			small.Since, urgent.Since, urgent.Priority = time.UnixMilli(2), time.UnixMilli(3), 5
			same(w, "place", g.acquire(large, false).Place, 1)
			same(w, "place", g.acquire(small, false).Place, 2)
			same(w, "place", g.acquire(urgent, false).Place, 1)
			w.advance(500 * time.Millisecond) // 487 tokens
			g.acquire(small, false)
			g.acquire(large, false)
			g.acquire(urgent, true)
			g.acquire(small, false)
			for range 3 {
				w.advance(250 * time.Millisecond)
				g.acquire(small, false)
				g.acquire(large, false)
			}
			w.advance(250 * time.Millisecond)
			g.acquire(large, true)
			g.acquire(small, true)
		}},
	{name: "who is away stops nobody, and is woken when its turn is near", run: func(w *env) {
		g := newGates(w)
		k := w.worker("w1")
		s := g.service(nil)
		g.acquire(g.caller(s, "acme", 1500), true)
		first, second, away := g.caller(s, "acme", 1500), g.caller(s, "acme", 1500), g.caller(s, "acme", 1500)
		away.Fence, second.Since, away.Since = g.running(k), time.UnixMilli(2), time.UnixMilli(3)
		same(w, "stays", g.acquire(first, false).Stay, true)
		g.acquire(second, false)
		turn := g.acquire(away, false)
		w.all("turn", eq(turn.Stay, false), eq(turn.Place, 3), eq(turn.Waiting, 3),
			eq(turn.Retry, 4615*time.Millisecond))
		_, err := w.e.DelayExecution(w.ctx, away.Fence, turn.Retry, s)
		w.no(err)
		same(w, "state", w.stateOf(away.Fence.Execution), "R2ai")
		line := g.record(s).Line
		w.all("line", eq(len(line), 3), eq(line[2].Away, true), eq(line[2].Namespace, "acme"),
			eq(line[2].Waits["tokens"], int64(1500)))
		said := w.why(away.Fence.Execution)
		same(w, "reason", said.Reason, explain.WhyWaitingTurn)
		if !strings.Contains(said.Sentence,
			"It waits for its turn at service "+s+", for 1500 tokens: 3rd of 3, about 5s.") {
			w.Fatalf("it says %q", said.Sentence)
		}
		w.advance(1539 * time.Millisecond)
		g.acquire(first, true)
		same(w, "state", w.stateOf(away.Fence.Execution), "R2ai")
		w.advance(1539 * time.Millisecond)
		g.acquire(second, true)
		w.advance(600 * time.Millisecond)
		g.ended(second, engine.CallSettled, false)
		same(w, "state", w.stateOf(away.Fence.Execution), "R1i")
		w.advance(940 * time.Millisecond)
		if said := w.why(away.Fence.Execution); !strings.Contains(said.Sentence, "which is near") {
			w.Fatalf("it says %q", said.Sentence)
		}
		again := k.one(away.Fence.Execution)
		w.all("attempt, retries", eq(again.Fence.Attempt, away.Fence.Attempt), eq(again.Retries, 0))
		away.Fence = again.Fence
		g.acquire(away, true)
	}},
	{name: "who waits for long gives its slot up sooner while other namespaces wait, too", run: func(w *env) {
		g := newGates(w)
		s := g.service(nil)
		g.acquire(g.caller(s, "acme", 1500), true)
		first, second := g.caller(s, "acme", 900), g.caller(s, "acme", 900)
		second.Since = time.UnixMilli(2)
		same(w, "stays", g.acquire(first, false).Stay, true) // 924 ms
		same(w, "stays", g.acquire(second, false).Stay, true)
		other := g.caller(s, "other", 900)
		same(w, "stays", g.acquire(other, false).Stay, false)
		same(w, "stays", g.acquire(first, false).Stay, false)
		w.advance(500 * time.Millisecond)
		same(w, "stays", g.acquire(other, false).Stay, true) // 424 ms
	}},
	{name: "only who waits for a service is woken for it", run: func(w *env) {
		g := newGates(w)
		k := w.worker("w1")
		s := g.service(nil)
		first, away := g.caller(s, "acme", 1500), g.caller(s, "acme", 1500)
		g.acquire(first, true)
		g.acquire(g.caller(s, "acme", 1500), false)
		away.Fence, away.Since = g.running(k), time.UnixMilli(2)
		same(w, "stays", g.acquire(away, false).Stay, false)
		must(w.e.DelayExecution(w.ctx, away.Fence, time.Hour, ""))
		w.advance(3 * time.Second)
		g.ended(first, engine.CallSettled, false)
		same(w, "state", w.stateOf(away.Fence.Execution), "R2ai")
	}},
	{name: "a refusal closes a service for everybody, and its rate falls and comes back", run: func(w *env) {
		g := newGates(w)
		s := g.service(nil)
		x, y := g.caller(s, "acme", 10), g.caller(s, "other", 10)
		g.acquire(x, true)
		x.Pause = 7 * time.Second
		g.ended(x, engine.CallRefused, false)
		turn := g.acquire(y, false)
		w.all("closed", eq(turn.Stay, false), eq(turn.Retry, 7*time.Second))
		place := must(w.e.TurnOf(w.ctx, s, y.Fence.Execution))
		w.all("place", eq(place.Place, 1), eq(place.Waiting, 1), eq(place.Retry, 7*time.Second),
			eq(place.Wants["tokens"], int64(10)), eq(place.ClosedUntil.IsZero(), false))
		place = must(w.e.TurnOf(w.ctx, s, x.Fence.Execution))
		w.all("no place", eq(place.Place, 0), eq(place.Retry, 0), eq(len(place.Wants), 0))
		r := g.record(s)
		w.all("state", eq(r.State.Share, 700), eq(r.State.Refused, uint64(1)), eq(r.State.ClosedUntil.IsZero(), false))
		w.advance(7 * time.Second)
		g.acquire(y, true)
		g.ended(y, engine.CallSettled, false)
		w.advance(3 * time.Second)
		same(w, "share", g.record(s).State.Share, 750)
		w.advance(50 * time.Second)
		same(w, "share", g.record(s).State.Share, 1000)
	}},
	{name: "a service that is down is tried by one call at a time, at longer and longer pauses", run: func(w *env) {
		g := newGates(w)
		s := g.service(nil)
		for i := range 8 {
			x := g.caller(s, "acme", 10)
			g.acquire(x, true)
			if i >= 2 {
				g.acquire(g.caller(s, "acme", 10), false) // one tries
			}
			g.ended(x, engine.CallRefused, false)
			pause := min(time.Minute, time.Second<<i)
			w.advance(pause - time.Millisecond)
			g.acquire(x, false)
			w.advance(2*time.Minute - pause + time.Millisecond) // whoever waited has been forgotten
		}
		x := g.caller(s, "acme", 10)
		g.acquire(x, true)
		g.ended(x, engine.CallSettled, false)
		g.acquire(g.caller(s, "acme", 10), true)
		g.acquire(g.caller(s, "acme", 10), true)
	}},
	{name: "no more calls are under way than allowed, and those of dead leases are given back", run: func(w *env) {
		g := newGates(w)
		k := w.worker("w1")
		s := g.service(func(s *admission.Service) { s.PerMinute, s.Calls = nil, 2 })
		dead, alive := g.caller(s, "acme", 10), g.caller(s, "acme", 10)
		alive.Fence = g.running(k)
		g.acquire(dead, true)
		g.acquire(alive, true)
		next := g.caller(s, "acme", 10)
		g.acquire(next, false)
		g.pass(61*time.Second, k)
		g.reckon(s, 1)
		g.acquire(next, true)
		g.acquire(g.caller(s, "acme", 10), false)
		g.ended(dead, engine.CallSettled, true)
	}},
	{name: "what cannot be called is refused with the reason", run: func(w *env) {
		g := newGates(w)
		s := g.service(nil)
		_, err := w.e.Acquire(w.ctx, g.caller(s, "acme", 60_001))
		w.is(err, flowfabric.ErrInvalidInput)
		_, err = w.e.Acquire(w.ctx, g.caller(g.name+"/nobody", "acme", 1))
		w.is(err, denied.NoGate)
		_, err = w.e.Acquire(w.ctx, g.caller(g.budget(nil), "acme", 1))
		w.is(err, flowfabric.ErrInvalidInput)
		for _, bad := range []admission.Service{
			{},
			{PerMinute: map[string]int64{"tokens": 1}},
			{PerMinute: map[string]int64{"tokens": 10}, Burst: map[string]int64{"tokens": 6}},
			{Calls: -1},
			{Calls: 1, Weights: map[string]int{"a": 1001}},
		} {
			_, _, _, err := w.e.PutGate(w.ctx, admission.Gate{Name: g.fresh(), Service: &bad}, 0)
			w.is(err, denied.GateSpec)
		}
		_, _, _, err = w.e.PutGate(w.ctx, admission.Gate{Name: g.name + "/x", Rate: 1, Window: 1e9}, 0)
		w.is(err, denied.GateSpec)
		_, _, _, err = w.e.PutGate(w.ctx, admission.Gate{Name: g.fresh(), Rate: 1, Window: 1e9,
			Service: &admission.Service{Calls: 1}}, 0)
		w.is(err, denied.GateSpec)
	}},
	{name: "a service is changed while calls wait, and forgotten with all that waits", run: func(w *env) {
		g := newGates(w)
		s := g.service(nil)
		g.acquire(g.caller(s, "acme", 1500), true)
		x := g.caller(s, "acme", 1400)
		g.acquire(x, false)
		r := g.record(s)
		r.Service.PerMinute["tokens"], r.Service.Burst["tokens"] = 6_000_000, 0
		g.put(r.Gate, r.Revision)
		w.advance(time.Second)
		g.acquire(x, true)
		g.put(g.record(s).Gate, 0) // it is so already
		_, err := w.e.RemoveGate(w.ctx, s)
		w.no(err)
		_, err = w.e.Acquire(w.ctx, x)
		w.is(err, denied.NoGate)
	}},
	{name: "a clock that steps back gives nothing and closes nothing for long", run: func(w *env) {
		g := newGates(w)
		s := g.service(nil)
		x := g.caller(s, "acme", 1500)
		g.acquire(x, true)
		w.advance(-30 * time.Second)
		y := g.caller(s, "acme", 1000)
		g.acquire(y, false)
		w.advance(2 * time.Second)
		g.acquire(y, true)
	}},
}
