package conformance

import (
	"fmt"
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// gateway brings an execution with gates into a state in which it waits.
func (w *env) gateway(code codes.Code) flowfabric.ExecutionID {
	w.Helper()
	opts := []option{asking(flowfabric.Gate("openai"), flowfabric.Gate("acme"))}
	switch code {
	case "R1t":
		opts = append(opts, retry(flowfabric.RetryPolicy{MaxRetries: 1, Max: time.Second, Multiplier: 2}))
	case "R1p":
		opts = append(opts, retries(0))
	}
	id := w.create(opts...)
	if code != "R1f" {
		g := &gates{env: w}
		k := g.asker("w1")
		f := k.granted(k.grants(1)...)[0].Fence
		switch code {
		case "R1t":
			w.fail(f, "x")
		case "R1p":
			w.fail(f, "x")
			w.replay(id, engine.Replay{})
		case "R1i":
			w.release(f)
		case "R1r":
			w.advance(ttl)
			w.settleTime()
		}
	}
	w.code(id, code)
	return id
}

// askedBy is one whose gates a worker asks.
func askedBy(from codes.Code, came string) explained {
	return explained{cause: explain.WhyGranted, to: from, at: field("gx"), move: due,
		says: both(stored("gx"), text(`asking whether there is room for it (gate acme, gate openai)`, `"w9"`, came)),
		place: func(w *env, _ *placed) placed {
			x := placed{id: w.gateway(from)}
			same(w, "granted", len((&gates{env: w}).asker("w9").grants(1)), 1)
			return x
		}}
}

// held is one that an operator paused.
func held(from codes.Code, came string) explained {
	return explained{cause: explain.WhyExecutionHeld, to: from,
		says: func(w *env, x placed) []string {
			at, err := w.do("ZSCORE", w.k.Paused(), ids.UUID(x.id).String()).AsInt64()
			w.no(err)
			return []string{spoken(at), `Operator "anna" holds it because of "look first"`, came, "admin.Unhold"}
		},
		place: func(w *env, _ *placed) placed {
			x := w.state(from)
			_, err := w.e.HoldExecution(trail.As(w.ctx, "anna", "look first"), x.id)
			w.no(err)
			return x
		},
		move: func(w *env, x placed) {
			_, err := w.e.UnholdExecution(w.ctx, x.id)
			w.no(err)
			w.check()
		}}
}

var whyGateScenarios = []scenario{
	{name: "the explanation of a closed route names the gate, the reason and the time", run: func(w *env) {
		g := newGates(w)
		id := w.gateway("R1f")
		for why, want := range map[string]struct {
			cause string
			says  string
		}{
			"gate acme amount tokens 101 100": {explain.WhyWaitingAmount,
				`It waits for gate acme: 101 of 100 tokens are used.`},
			"gate openai rate": {explain.WhyWaitingRate,
				"The maximum number of gate openai has started in its window. It is next."},
			"gate openai cap": {explain.WhyWaitingSlot,
				"The maximum number of gate openai runs now. It is next."},
			"gate_not_found acme":         {explain.WhyNoGate, "gate acme, which does not exist"},
			"gate_not_found openai":       {explain.WhyNoGate, "gate openai, which does not exist"},
			"unavailable gate acme":       {explain.WhyUnavailable, "gate acme: no worker could find out"},
			"unavailable gate @2.0.0@a/b": {explain.WhyUnavailable, "key a/b: no worker could find out"},
			"unavailable route":           {explain.WhyUnavailable, "gate acme, gate openai: no worker could"},
			"gate @2.0.0@a%20b cap":       {explain.WhyWaitingSlot, `2 of 2 of key "a b" run now. It is next.`},
			"gate @2.0.0@agents:acme cap": {explain.WhyWaitingSlot, "2 of 2 of key agents:acme run now. It is next."},
			"gate @0.5.60000@a rate": {explain.WhyWaitingRate,
				"5 of 5 of key a have started within 1m0s. It is next."},
			"who knows": {explain.WhyUnavailable, `because of "who knows"`},
		} {
			k := g.asker("w1")
			list := k.grants(1)
			g.refuse(k, false, 20*time.Second, why, list...)
			e := w.why(id)
			w.says(e, want.cause, want.says, spoken(e.At.UnixMilli()), "It has never run.")
			same(w, "at", e.At.UnixMilli(), w.closedUntil(list[0].Route))
			g.advance(20 * time.Second)
			e = w.why(id)
			w.says(e, explain.WhyCheckDue+w.late(), want.says, "A tick lets a worker check it again")
			w.settleTime()
			w.says(w.why(id), explain.WhyWaitingNoWorker)
			g.advance(ttl)
			w.settleTime()
		}
	}},
	{name: "the explanation of a full gate mentions freed slots whose notice is not delivered yet", run: func(w *env) {
		g := newGates(w)
		q := g.gate(admission.Gate{Concurrency: 1})
		first := w.create(asking(flowfabric.Gate(q)))
		k := g.asker("w1")
		list := k.grants(1)
		g.admit(q, 1, list...)
		c := k.granted(list...)[0]
		second := w.create(asking(flowfabric.Gate(q)))
		list = k.grants(1)
		a := g.admit(q, 0, list...)
		g.refuse(k, false, a.Retry, "gate "+q+" cap", list...)
		w.says(w.why(second), explain.WhyWaitingSlot,
			fmt.Sprintf("1 of 1 of gate %s run now. It is next.", q))
		w.silent(w.why(second), "on the way")
		w.complete(c.Fence, "r")
		w.says(w.why(second), explain.WhyWaitingSlot, "1 report is on the way")
		g.deliver()
		w.says(w.why(second), explain.WhyWaitingNoWorker)
		w.says(w.why(first), explain.WhyCompleted)
	}},
	{name: "an overdue grant is explained as waiting for the tick", run: func(w *env) {
		id := w.gateway("R1f")
		(&gates{env: w}).asker("w9").grants(1)
		w.advance(5 * time.Second)
		w.says(w.why(id), explain.WhyGrantDue+w.late(), `Worker "w9"`, "A tick returns it to its queue")
		w.settleTime()
		w.code(id, "R1f")
	}},
}

// closedUntil is when a closed route opens.
func (w *env) closedUntil(route uint64) int64 {
	w.Helper()
	at, err := w.do("ZSCORE", w.k.Closed(), strconv.FormatUint(route, 10)).AsInt64()
	w.no(err)
	return at
}
