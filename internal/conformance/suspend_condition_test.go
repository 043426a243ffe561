package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// wrong is a condition that nobody may wait for.
type wrong struct {
	condition string
	fresh     int
	detail    string
}

var wrongConditions = map[string]wrong{
	"empty":                      {"", 0, "condition: 1..16384 bytes"},
	"long":                       {strings.Repeat("x", 16385), 1, "condition: 1..16384 bytes"},
	"nothing known":              {"X\x1f1", 1, "node"},
	"no members":                 {conditionOf(spelled("G", "1")), 1, "allof_empty_members"},
	"none of the members":        {conditionOf(names(1, 1, "a"), group(0, 1)), 1, "minimum exceeds the members"},
	"more than the members":      {conditionOf(names(1, 1, "a"), group(2, 1)), 1, "minimum exceeds the members"},
	"a member twice":             {conditionOf(names(1, 1, "a"), group(2, 1, 1)), 1, "member"},
	"a later member":             {conditionOf(group(1, 2), names(1, 1, "a")), 1, "member"},
	"itself":                     {conditionOf(names(1, 1, "a"), group(2, 1, 2)), 1, "member"},
	"a node without parent":      {conditionOf(names(1, 1, "a"), names(1, 1, "b")), 1, "node without parent"},
	"n of 0":                     {conditionOf(count(0, "w", "", 1)), 1, "count_n: 1..1000"},
	"n of 1001":                  {conditionOf(count(1001, "s", "", 1)), 1, "count_n: 1..1000"},
	"an empty set":               {conditionOf(count(1, "w", "")), 1, "count_waitpoints_empty"},
	"n over the set":             {conditionOf(count(3, "w", "", 1, 2)), 2, "count_exceeds_waitpoint_set"},
	"twice in a set":             {conditionOf(count(1, "w", "", 1, 1)), 1, "waitpoint"},
	"an unknown kind":            {conditionOf(count(1, "x", "", 1)), 1, "kind of count"},
	"a reserved name to count":   {conditionOf(count(1, "w", "__go", 1)), 1, "signal name"},
	"a reserved name":            {conditionOf(names(1, 1, "__operator_only__")), 1, "signal name"},
	"a control character":        {conditionOf(names(1, 1, "a\nb")), 1, "signal name"},
	"a long name":                {conditionOf(names(1, 1, strings.Repeat("n", 129))), 1, "signal name"},
	"no names":                   {conditionOf(spelled("L", "1", "1")), 1, "names: 1..64"},
	"more than the names":        {conditionOf(names(1, 2, "a")), 1, "minimum exceeds the names"},
	"none of the names":          {conditionOf(names(1, 0, "a")), 1, "minimum exceeds the names"},
	"an unbound waitpoint":       {conditionOf(names(2, 1, "a")), 1, "waitpoint"},
	"an unbound one to count":    {conditionOf(count(1, "w", "", 1, 2)), 1, "waitpoint"},
	"an unused waitpoint":        {conditionOf(names(1, 1, "a")), 2, "extra_binding_not_referenced_by_condition"},
	"an operator and waitpoints": {operatorOnly, 1, "extra_binding_not_referenced_by_condition"},
	"a timeout and waitpoints":   {timeoutOnly, 1, "extra_binding_not_referenced_by_condition"},
	"an operator inside":         {conditionOf(operatorOnly, group(1, 1)), 0, "node"},
	"a timeout inside":           {conditionOf(names(1, 1, "a"), timeoutOnly, group(1, 1, 2)), 1, "node"},
	"a timeout without one":      {timeoutOnly, 0, "timeout_only_without_deadline"},
	"depth 5": {conditionOf(names(1, 1, "a"), group(1, 1), group(1, 2), group(1, 3), group(1, 4)), 1,
		"depth: at most 4"},
	"33 nodes": {many(33), 1, "nodes: at most 32"},
}

// many is a condition of n nodes: a group of one-name lists on the first waitpoint.
func many(n int) string {
	var nodes []string
	var members []int
	for i := range n - 1 {
		nodes, members = append(nodes, names(1, 1, "a")), append(members, i+1)
	}
	return conditionOf(append(nodes, group(n-1, members...))...)
}

// freshly mints n waitpoints.
func freshly(n int) (all []engine.Minted) {
	for i := range n {
		all = append(all, minted("wp"+strconv.Itoa(i+1)))
	}
	return all
}

// Conditions of several parts.
var compositeScenarios = []scenario{
	{name: "a condition on three waitpoints needs a signal on each, in any order", run: func(w *env) {
		w.seed()
		for _, order := range [][3]int{{0, 1, 2}, {2, 0, 1}} {
			wp := freshly(3)
			s := w.sleeps(waitFor(conditionOf(names(1, 1, "go"), names(2, 1, "go"), names(3, 1, ""), group(3, 1, 2, 3)),
				wp...))
			var ids []string
			for i, at := range order {
				effect := suspend.Effect(waitwords.EffectAppended)
				if i == 2 {
					effect = waitwords.EffectSatisfied
				}
				ids = append(ids, w.signal(s.id, wp[at], "go", effect).Signal.String())
				if i < 2 {
					w.code(s.id, "S1")
					w.signal(s.id, wp[at], "go", waitwords.EffectAgain)
					if at != 2 {
						w.signal(s.id, wp[at], "other", waitwords.EffectUnmatched)
					}
				}
			}
			w.code(s.id, "R1i")
			for _, m := range wp {
				p := w.waitpoint(s.id, m)
				w.all(m.Key, eq(p.State, "closed"), eq(p.CloseReason, "resumed"), eq(p.Matched, 1))
			}
			r := w.record(s.id).Result
			var got []string
			for _, g := range r.Signals {
				got = append(got, g.ID.String())
			}
			same(w, "closer", r.Closer, ids[2])
			slices.Sort(ids)
			slices.Sort(got)
			sameList(w, "satisfiers", got, ids...)
			w.no(w.complete(w.claims(s.id).Fence, "").Err)
		}
	}},
	{name: "a condition can combine two distinct approvals with a payment", run: func(w *env) {
		w.seed()
		s := w.sleeps(waitFor(conditionOf(count(2, "s", "approve", 1), count(1, "s", "paid", 1), group(2, 1, 2)),
			minted("wp")))
		w.stop()
		keyed := func(name string) suspend.SentSignal {
			return suspend.SentSignal{Name: name, IdempotencyKey: uuid.NewString()}
		}
		plain := suspend.SentSignal{ID: mint.UUID(), Name: "approve"} // without a key it counts by its own id
		w.send(s.id, s.wp, plain, waitwords.EffectAppended)
		again, err := w.deliver(s.id, s.wp, plain)
		w.no(err)
		w.all("the same one again", eq(again.Signal, plain.ID), eq(again.Effect, waitwords.EffectAppended))
		same(w, "it counts once", w.record(s.id).Matched, 1)
		w.send(s.id, s.wp, keyed("approve"), waitwords.EffectAppended)
		w.send(s.id, s.wp, keyed("approve"), waitwords.EffectAgain)
		w.code(s.id, "S1")
		w.send(s.id, s.wp, keyed("paid"), waitwords.EffectSatisfied)
		same(w, "told", told(w.claims(s.id).Resume), "signal: approve approve paid")
	}},
	{name: "a condition on distinct senders counts each sender once", run: func(w *env) {
		w.seed()
		from := func(kind, who string) suspend.SentSignal {
			return suspend.SentSignal{Name: "ok", SourceType: kind, Source: who}
		}
		for _, pair := range [][2]suspend.SentSignal{{from("person", "ann"), from("person", "bob")},
			{from("a:b", "c"), from("a", "b:c")}, {from("a", ""), from("", "a")}} {
			s := w.sleeps(waitFor(conditionOf(count(2, "c", "", 1)), minted("wp")))
			w.send(s.id, s.wp, pair[0], waitwords.EffectAppended)
			w.send(s.id, s.wp, pair[0], waitwords.EffectAgain)
			w.send(s.id, s.wp, pair[1], waitwords.EffectSatisfied)
			w.no(w.complete(w.claims(s.id).Fence, "").Err)
		}
	}},
	{name: "malformed and oversized conditions are refused", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		for what, x := range wrongConditions {
			w.refuses(what, denied.Condition, x.detail,
				w.suspending(c.Fence, waitFor(x.condition, freshly(x.fresh)...)))
		}
		w.refuses("17 waitpoints", flowfabric.ErrInvalidInput, "waitpoints: 0..16",
			w.suspending(c.Fence, waitFor(names(1, 1, "a"), freshly(17)...)))
		twice := freshly(2)
		twice[1].ID = twice[0].ID
		both := waitFor(conditionOf(count(1, "w", "", 1, 2)), twice...)
		w.refuses("one id twice", flowfabric.ErrInvalidInput, "waitpoints: the same one twice",
			w.suspending(c.Fence, both))
		twice[1].ID, twice[1].Key = mint.UUID(), twice[0].Key
		w.refuses("one key twice", flowfabric.ErrInvalidInput, "waitpoints: the same one twice",
			w.suspending(c.Fence, waitFor(conditionOf(count(1, "w", "", 1, 2)), twice...)))
		// The largest that is allowed, and what was refused has left nothing in its way.
		all := make([]int, 16)
		for i := range all {
			all[i] = i + 1
		}
		for what, x := range map[string]wrong{
			"32 nodes": {condition: many(32), fresh: 1}, "n of 1000": {condition: count(1000, "c", "", 1), fresh: 1},
			"16 waitpoints": {condition: count(16, "w", "", all...), fresh: 16},
			"depth 4": {condition: conditionOf(names(1, 1, "a"), group(1, 1), group(1, 2), group(1, 3)),
				fresh: 1},
			"64 names": {condition: names(1, 64, strings.Split(strings.Repeat("n,", 63)+"n", ",")...), fresh: 1},
		} {
			_, c := w.holder()
			w.suspend(c.Fence, waitFor(x.condition, freshly(x.fresh)...))
			same(w, what, w.record(c.Fence.Execution).Condition, x.condition)
			w.cancel(c.Fence.Execution)
		}
		w.suspend(c.Fence)
	}},
	{name: "signals of one millisecond count in the order in which they were accepted", run: func(w *env) {
		w.seed()
		w.stop()
		descending := func(n int) (all []suspend.SentSignal) { // ids that sort the other way round
			for range n {
				all = append(all, suspend.SentSignal{ID: mint.UUID(), Name: "go"})
			}
			slices.SortFunc(all, func(a, b suspend.SentSignal) int {
				return strings.Compare(b.ID.String(), a.ID.String())
			})
			return all
		}
		order := func(signals []suspend.StoredSignal) (ids []string) {
			for i, g := range signals {
				ids = append(ids, g.ID.String())
				if i > 0 && g.Order <= signals[i-1].Order {
					w.Errorf("signal %d has number %d after %d", i, g.Order, signals[i-1].Order)
				}
			}
			return ids
		}
		sent := func(signals []suspend.SentSignal) (ids []string) {
			for _, g := range signals {
				ids = append(ids, g.ID.String())
			}
			return ids
		}
		// To a wait that is open.
		both, all := freshly(2), descending(12)
		s := w.sleeps(waitFor(conditionOf(count(12, "s", "", 1, 2)), both...))
		for i, g := range all {
			_, err := w.deliver(s.id, both[i%2], g)
			w.no(err)
		}
		sameList(w, "open", order(w.claims(s.id).Resume.Signals), sent(all)...)
		// To two waitpoints that nobody waits on yet; what comes after the wait began is behind them.
		_, c := w.holder()
		id := c.Fence.Execution
		p, q := w.pend(c.Fence, "p"), w.pend(c.Fence, "q")
		all = descending(12)
		for i, g := range all[:11] {
			w.send(id, []engine.Minted{q, p}[i%2], g, waitwords.EffectBuffered)
		}
		w.suspend(c.Fence, waitFor(conditionOf(count(12, "s", "", 1, 2))), onPending(p, q))
		w.send(id, p, all[11], waitwords.EffectSatisfied)
		sameList(w, "early", order(w.claims(id).Resume.Signals), sent(all)...)
		// The first one decides, wherever it came.
		_, c = w.holder()
		id = c.Fence.Execution
		p, q = w.pend(c.Fence, "p"), w.pend(c.Fence, "q")
		w.send(id, q, suspend.SentSignal{Name: "refuse"}, waitwords.EffectBuffered)
		w.send(id, p, suspend.SentSignal{Name: "approve"}, waitwords.EffectBuffered)
		either := suspension(waitFor(conditionOf(names(1, 1, "approve"), names(2, 1, "refuse"), group(1, 1, 2))),
			onPending(p, q))
		r, err := w.e.SuspendExecution(w.ctx, c.Fence, either)
		w.no(err)
		w.check()
		same(w, "first", told(&r.Resume), "already_satisfied: refuse")
		same(w, "the other one is not looked at", w.logged(id, p), string("approve "+waitwords.EffectBuffered))
	}},
	{name: "early signals on several waitpoints count in the order in which they came", run: func(w *env) {
		w.seed()
		for need, want := range []string{"n0", "n0 n1", "n0 n1 n2", "n0 n1 n2 n3"} {
			_, c := w.holder()
			p, q := w.pend(c.Fence, "p"), w.pend(c.Fence, "q")
			for i, m := range []engine.Minted{q, p, p, q} {
				s := suspend.SentSignal{Name: fmt.Sprint("n", i)}
				w.send(c.Fence.Execution, m, s, waitwords.EffectBuffered)
			}
			s, err := w.e.SuspendExecution(w.ctx, c.Fence,
				suspension(waitFor(conditionOf(count(need+1, "s", "", 1, 2))), onPending(p, q)))
			w.no(err)
			same(w, "resumed by", told(&s.Resume), "already_satisfied: "+want)
			w.no(w.complete(c.Fence, "").Err)
		}
	}},
	{name: "early signals on several waitpoints can satisfy a condition of several parts", run: func(w *env) {
		w.seed()
		both := conditionOf(names(1, 1, "a"), count(2, "c", "b", 2), group(2, 1, 2))
		w.stop()
		from := func(name, who string) suspend.SentSignal {
			w.pass(time.Millisecond)
			return suspend.SentSignal{Name: name, Source: who}
		}
		_, c := w.holder()
		id := c.Fence.Execution
		p, q := w.pend(c.Fence, "p"), w.pend(c.Fence, "q")
		w.send(id, p, from("a", ""), waitwords.EffectBuffered)
		for _, who := range []string{"ann", "ann", "bob"} {
			w.send(id, q, from("b", who), waitwords.EffectBuffered)
		}
		s, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(waitFor(both), onPending(p, q)))
		w.no(err)
		w.check()
		w.all("satisfied", eq(s.Satisfied, true), eq(told(&s.Resume), "already_satisfied: a b b"))
		same(w, "effects", w.logged(id, q),
			string("b "+waitwords.EffectAppended+", b "+waitwords.EffectAgain+", b "+waitwords.EffectSatisfied))
		for _, m := range []engine.Minted{p, q} {
			w.all("waitpoint", eq(w.waitpoint(id, m).State, "closed"), eq(w.waitpoint(id, m).CloseReason, "resumed"))
			w.refuses("a later signal", flowfabric.ErrWaitpointClosed, "resumed",
				w.delivering(id, m, suspend.SentSignal{Name: "a"}))
		}
		w.no(w.complete(c.Fence, "").Err) // the lease was never given up
		// Half of it came early, the other half goes to a fresh waitpoint.
		_, c = w.holder()
		id = c.Fence.Execution
		q = w.pend(c.Fence, "q")
		w.send(id, q, from("b", "ann"), waitwords.EffectBuffered)
		w.send(id, q, from("other", ""), waitwords.EffectBuffered)
		mixed := suspension(waitFor(both, minted("p"), q))
		mixed.Bindings[1].Pending = true
		s, err = w.e.SuspendExecution(w.ctx, c.Fence, mixed)
		w.no(err)
		w.check()
		same(w, "satisfied", s.Satisfied, false)
		same(w, "effects", w.logged(id, q), string("b "+waitwords.EffectAppended+", other "+waitwords.EffectUnmatched))
		w.all("counted", eq(w.record(id).Signals, 2), eq(w.record(id).Matched, 1), eq(w.waitpoint(id, q).Signals, 2),
			eq(w.waitpoint(id, q).Matched, 1))
		w.send(id, q, from("b", "ann"), waitwords.EffectAgain)
		w.advance(time.Millisecond) // what is told is in the order of time
		w.send(id, mixed.Bindings[0].Minted, from("a", ""), waitwords.EffectAppended)
		w.advance(time.Millisecond)
		w.send(id, q, from("b", "bob"), waitwords.EffectSatisfied)
		same(w, "told", told(w.claims(id).Resume), "signal: b a b")
	}},
}
