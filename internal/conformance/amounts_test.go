package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

func (g *gates) gateRoot(name string) keys.Partition {
	return keys.Partition(keys.GateRoot(ids.GatePartition(name, limits.DefaultGatePartitions)))
}

// content is the text of a partition of gates. Where keys cannot be listed, because another node has
// them, only those that are named are looked at.
func (g *gates) content(root keys.Partition, named ...string) string {
	g.Helper()
	all := append(named, root.Gates(), string(root))
	if !g.srv.Features.Cluster {
		list, err := g.do("KEYS", string(root)+"*").AsStrSlice()
		g.no(err)
		all = list
	}
	slices.Sort(all)
	var out strings.Builder
	for _, key := range all {
		read := map[string][]string{"hash": {"HGETALL", key}, "zset": {"ZRANGE", key, "0", "-1", "WITHSCORES"},
			"string": {"GET", key}, "list": {"LRANGE", key, "0", "-1"}, "none": {"EXISTS", key}}
		kind, err := g.do("TYPE", key).ToString()
		g.no(err)
		if read[kind] == nil {
			g.Fatalf("%s is a %s", key, kind)
		}
		value, err := g.do(read[kind]...).ToAny()
		g.no(err)
		if list, ok := value.([]any); ok && kind == "hash" { // fields come in any order
			var pairs []string
			for i := 0; i < len(list); i += 2 {
				pairs = append(pairs, fmt.Sprint(list[i:i+2]))
			}
			slices.Sort(pairs)
			value = pairs
		}
		fmt.Fprintf(&out, "%s %s %v\n", key, kind, value)
	}
	return out.String()
}

// still fails unless run leaves the partition of a gate as it is.
func (g *gates) still(gate, what string, run func()) {
	g.Helper()
	root := g.gateRoot(gate)
	named := []string{root.Gate(gate), root.Usage(gate), root.GateLog(gate), root.Spenders(gate),
		root.Report(gate, "k")}
	before := g.content(root, named...)
	run()
	if after := g.content(root, named...); after != before {
		g.Fatalf("%s changed the keyspace:\n%s", what, difference(before, after))
	}
}

// reporting is the wire form of a report under a key.
func reporting(gate string, more ...string) []string {
	return append([]string{proto, gate, "report", "", "0", "0", "k"}, more...)
}

func (g *gates) record(gate string) admission.GateRecord {
	g.Helper()
	b, err := g.e.ReadGate(g.ctx, gate, 100, 1000, 256)
	g.no(err)
	return b
}

// noted counts what the audit log of a gate has of a kind.
func noted(log []admission.AuditEntry, what string) (n int) {
	for _, x := range log {
		if x.What == what {
			n++
		}
	}
	return n
}

func (g *gates) resetUsage(name string) {
	g.Helper()
	_, _, wake, err := g.e.ResetUsage(g.ctx, name, false)
	g.no(err)
	g.wake(wake)
}

func hardLimit(hard int64) map[string]admission.Limit {
	return map[string]admission.Limit{"tokens": {Hard: hard}}
}

func tokens(n int64) map[string]int64 { return map[string]int64{"tokens": n} }

func breach(dimension string, hard bool, used, limit int64, crossed bool) admission.Breach {
	return admission.Breach{Dimension: dimension, Hard: hard, Used: used, Limit: limit, Crossed: crossed}
}

// decides fails unless a report has this verdict, was counted or not, and tells of these breaches.
func (g *gates) decides(what string, r admission.Reported, verdict string, applied bool,
	breaches ...admission.Breach) {
	g.Helper()
	g.all(what, eq(r.Verdict, verdict), eq(r.Applied, applied), eqList(r.Breaches, breaches...))
}

var amountScenarios = []scenario{
	{name: "a report that breaches one dimension changes none of them", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) {
			b.Limits = map[string]admission.Limit{"a": {Hard: 100}, "b": {Hard: 10}, "c": {Hard: 5}}
		})
		r := g.spend(b, "1", map[string]int64{"a": 50, "b": 11, "c": 5})
		g.decides("refused", r, "HARD_BREACH", false, breach("b", true, 0, 10, false))
		x := g.record(b)
		same(w, "used", len(x.Used), 0)
		w.all("breaches", eq(x.HardBreaches, 1), eq(x.SoftBreaches, 0), eq(x.BreachedDim, "b"),
			eq(x.LastBreach.IsZero(), false))
		g.decides("every breach is told", g.spend(b, "2", map[string]int64{"a": 50, "b": 11, "c": 6}), "HARD_BREACH",
			false, breach("b", true, 0, 10, false), breach("c", true, 0, 5, false))
		g.decides("a dimension without limits is counted", g.spend(b, "3", map[string]int64{"other": 1 << 40}), "OK",
			true)
		strict := g.budget(func(b *admission.Gate) { b.StrictDimensions = true })
		g.still(strict, "an unknown dimension", func() {
			_, err := g.e.ReportUsage(w.ctx,
				admission.Usage{Gate: strict, Key: "k", Amounts: map[string]int64{"tokens": 1, "other": 1}})
			w.is(err, denied.Dimension)
		})
	}},
	{name: "of 200 concurrent reports against a limit of 100, exactly 100 are accepted", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		var fitted, refused atomic.Int64
		together(200, func(i int) {
			r, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Key: "k" + strconv.Itoa(i), Amounts: tokens(1)})
			switch {
			case err != nil:
				w.Error(err)
			case r.Applied:
				fitted.Add(1)
			default:
				refused.Add(1)
			}
		})
		w.all("accepted, refused", eq(fitted.Load(), 100), eq(refused.Load(), 100))
		x := g.record(b)
		w.all("used, breaches", eq(x.Used["tokens"], 100), eq(x.HardBreaches, 100))
	}},
	{name: "a dimension named twice in a report counts as one sum", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		root := string(g.gateRoot(b))
		a := w.fcallOn([]string{root}, "ff_spend", reporting(b, "2", "tokens", "60", "tokens", "60")...)
		w.all("refused", eq(a.code, "OK"), eq(a.slots[0], "HARD_BREACH"), eq(a.slots[1], "0"))
		same(w, "used", g.spent(b, "tokens"), 0)
		a = w.fcallOn([]string{root}, "ff_spend", proto, b, "report", "", "0", "0", "another", "2", "tokens", "40",
			"tokens", "60")
		w.all("a sum that fits", eq(a.code, "OK"), eq(a.slots[0], "OK"), eq(a.slots[1], "1"))
		same(w, "used", g.spent(b, "tokens"), 100)
	}},
	{name: "above a soft limit every report warns, and the audit log records it once a period", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) {
			b.WarnSoft, b.Limits = true, map[string]admission.Limit{"tokens": {Hard: 100, Soft: 80}}
		})
		g.decides("the limit itself", g.spend(b, "0", tokens(80)), "OK", true)
		g.decides("crossed", g.spend(b, "1", tokens(1)), "SOFT_BREACH", true, breach("tokens", false, 81, 80, true))
		g.decides("above", g.spend(b, "2", tokens(1)), "SOFT_BREACH", true, breach("tokens", false, 82, 80, false))
		x := g.record(b)
		w.all("events, breaches", eq(noted(x.Audit, "soft_limit"), 1), eq(x.SoftBreaches, 2), eq(x.HardBreaches, 0))
		g.resetUsage(b)
		g.decides("again in the next period", g.spend(b, "3", tokens(90)), "SOFT_BREACH", true,
			breach("tokens", false, 90, 80, true))
		same(w, "events", noted(g.record(b).Audit, "soft_limit"), 2)
		quiet := g.budget(func(b *admission.Gate) { b.Limits = map[string]admission.Limit{"tokens": {Soft: 1}} })
		g.decides("allowed", g.spend(quiet, "1", tokens(2)), "SOFT_BREACH", true, breach("tokens", false, 2, 1, true))
		same(w, "no event", noted(g.record(quiet).Audit, "soft_limit"), 0)
		same(w, "room without a hard limit", g.room(quiet, 1), true)
	}},
	{name: "a repeated report gets its first answer, and a different one under its key is a conflict",
		run: func(w *env) {
			g := newGates(w)
			b := g.budget(func(b *admission.Gate) {
				b.Limits = map[string]admission.Limit{"tokens": {Hard: 100, Soft: 10}}
			})
			first := g.spend(b, "k", tokens(20))
			g.spend(b, "other", tokens(30))
			again := g.spend(b, "k", tokens(20))
			same(w, "replayed", again.Replayed, true)
			again.Replayed = false
			sameDeep(w, "the original reply", again, first)
			same(w, "used once", g.spent(b, "tokens"), 50)
			g.still(b, "a conflict", func() {
				_, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Key: "k", Amounts: tokens(21)})
				w.is(err, denied.Idempotency)
				_, err = g.e.ReportUsage(w.ctx,
					admission.Usage{Gate: b, Key: "k", Amounts: tokens(20),
						Execution: mint.ID(w.p)})
				w.is(err, denied.Idempotency)
			})
			g.advance(24*time.Hour - time.Minute)
			same(w, "for a day", g.spend(b, "k", tokens(20)).Replayed, true)
			g.advance(2 * time.Minute)
			same(w, "and no longer", g.spend(b, "k", tokens(20)).Replayed, false)
		}},
	{name: "one report key on two gates counts on each", run: func(w *env) {
		g := newGates(w)
		a, b := g.budget(nil), g.budget(nil)
		for _, x := range []string{a, b} {
			g.decides("applied", g.spend(x, "k", tokens(7)), "OK", true)
			same(w, "used", g.spent(x, "tokens"), 7)
		}
	}},
	{name: "a refused report can be applied after a reset, and its repeats count as one breach", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		g.spend(b, "1", tokens(60))
		for range 3 {
			g.decides("refused", g.spend(b, "k", tokens(60)), "HARD_BREACH", false,
				breach("tokens", true, 60, 100, false))
		}
		same(w, "breaches", g.record(b).HardBreaches, 1)
		g.resetUsage(b)
		g.decides("applied", g.spend(b, "k", tokens(60)), "OK", true)
		x := g.record(b)
		w.all("used, breaches, marker", eq(x.Used["tokens"], 60), eq(x.HardBreaches, 1), eq(x.BreachedDim, ""),
			eq(x.LastBreach.IsZero(), true))
		same(w, "now it is known", g.spend(b, "k", tokens(60)).Replayed, true)
	}},
	{name: "amounts that do not fit together are refused, and nothing is written", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		g.spend(b, "before", tokens(1))
		root := string(g.gateRoot(b))
		refuses := func(code string, args ...string) {
			w.Helper()
			g.still(b, fmt.Sprintf("%.100q", args), func() {
				same(w, fmt.Sprintf("%.100q", args), w.fcallOn([]string{root}, "ff_spend", args...).code, code)
			})
		}
		refuses("invalid_delta", reporting(b, "2", "tokens", "9007199254740991", "tokens", "1")...)
		refuses("invalid_delta", reporting(b, "1", "tokens", "9007199254740991")...) // with what is used it is too much
		refuses("invalid_input", proto, b, "report", "", "0", "0", "", "1", "tokens", "1")
		refuses("invalid_input", proto, b, "report", "", "0", "0", "a key", "1", "tokens", "1")
		refuses("invalid_input", proto, b, "report", "", "5", "1", "k", "1", "tokens", "1")
		g.still(b, "negative amounts", func() {
			_, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Key: "k", Amounts: tokens(-1)})
			w.is(err, denied.Delta)
			_, err = g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Key: "k", Amounts: tokens(1 << 53)})
			w.is(err, denied.Delta)
		})
	}},
	{name: "totals are exact up to 2^53-1, and larger ones are refused", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Limits = hardLimit(0) })
		g.still(b, "a larger total", func() {
			_, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Key: "k", Amounts: tokens(123456789012345678)})
			w.is(err, denied.Delta)
		})
		g.spend(b, "1", tokens(123456789012345))
		g.spend(b, "2", tokens(1<<53-1-123456789012345))
		text, err := w.do("HGET", g.gateRoot(b).Usage(b), "tokens").ToString()
		w.no(err)
		same(w, "stored", text, "9007199254740991")
		same(w, "read", g.spent(b, "tokens"), 1<<53-1)
		_, err = g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Key: "3", Amounts: tokens(1)})
		w.is(err, denied.Delta)
		_, _, err = g.e.AdjustUsage(w.ctx, b, tokens(1))
		w.is(err, denied.Delta)
	}},
	{name: "calls on a missing gate are refused and create nothing", run: func(w *env) {
		g := newGates(w)
		b, q, never := g.budget(nil), g.gate(admission.Gate{Concurrency: 1}), g.name+"-never"
		for _, name := range []string{never, never + "2", b + "x"} {
			about := func(what string, err error) {
				w.Helper()
				if !errors.Is(err, denied.NoGate) {
					w.Fatalf("%s: %v", what, err)
				}
			}
			g.still(name, "calls on "+name, func() {
				_, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: name, Key: "k", Amounts: tokens(1)})
				about("report", err)
				_, _, _, err = g.e.ResetUsage(w.ctx, name, false)
				about("reset", err)
				_, _, err = g.e.AdjustUsage(w.ctx, name, tokens(1))
				about("adjust", err)
				_, err = g.e.ReadGate(w.ctx, name, 1, 1, 1)
				about("read", err)
				_, _, _, err = g.e.PutGate(w.ctx, admission.Gate{Name: name, Limits: hardLimit(1)}, 7)
				if !errors.Is(err, denied.NoGate) {
					w.Fatalf("change: %v", err)
				}
				for _, look := range []bool{true, false} {
					_, err = g.e.Admit(w.ctx, name, engine.Waiter{Partition: w.p, Route: 1}, time.Second, look,
						[]engine.Hold{{Execution: mint.ID(w.p), Epoch: 1}})
					about("admit", err)
				}
				for _, what := range []string{"held", "gone", "never", "failed", "asked", "purged"} {
					done, wake := g.tell(engine.News{Gate: name, Execution: mint.ID(w.p), Epoch: 1, What: what})
					w.all(what, eq(done, false), eqList(wake))
				}
				already, err := g.e.RemoveGate(w.ctx, name)
				w.no(err)
				same(w, "nothing to remove", already, true)
			})
		}
		same(w, "the one that is there", g.record(b).Period, 0)
		same(w, "the other one that is there", g.held(q), 0)
	}},
	{name: "malformed limits of amounts are refused", run: func(w *env) {
		g := newGates(w)
		name := g.budget(nil)
		_, err := g.e.RemoveGate(w.ctx, name)
		w.no(err)
		for _, b := range []admission.Gate{{Name: name, Reset: flowfabric.Millis(time.Microsecond)}, {Name: name,
			Reset: flowfabric.Millis(time.Millisecond)}, {Name: name,
			Limits: map[string]admission.Limit{"tokens": {Hard: 1, Soft: 2}}},
			{Name: name, Refund: []string{"completed"}}, {Name: name, OnHard: "explode"},
			{Name: name, Limits: hardLimit(-1)}} {
			_, _, _, err := g.e.PutGate(w.ctx, b, 0)
			w.is(err, denied.GateSpec)
		}
		many := map[string]admission.Limit{}
		for i := range 65 {
			many["d"+strconv.Itoa(i)] = admission.Limit{Hard: 1}
		}
		_, _, _, err = g.e.PutGate(w.ctx, admission.Gate{Name: name, Limits: many}, 0)
		w.is(err, denied.GateSpec)
		delete(many, "d64")
		_, _, _, err = g.e.PutGate(w.ctx, admission.Gate{Name: name, Limits: many}, 0)
		w.no(err)
		all := map[string]int64{}
		for dim := range many {
			all[dim] = 1
		}
		same(w, "as many dimensions as there may be", g.spend(name, "k", all).Verdict, codes.WithinBudget)
		g.resetUsage(name)
		same(w, "after a reset", len(g.record(name).Used), 0)
	}},
	{name: "a gate put again unchanged does nothing, and a change needs its revision", run: func(w *env) {
		g := newGates(w)
		name := g.budget(func(b *admission.Gate) {
			b.Refund, b.Scope = []string{"failed", "cancelled"},
				"tenant acme"
		})
		b := admission.Gate{Name: name, Refund: []string{"cancelled", "failed"}, Scope: "tenant acme",
			Limits: hardLimit(100)}
		g.still(name, "made again", func() {
			revision, already, wake, err := g.e.PutGate(w.ctx, b, 0)
			w.no(err)
			w.all("as it is", eq(revision, 1), eq(already, true), eqList(wake))
			b.Limits = hardLimit(101)
			_, _, _, err = g.e.PutGate(w.ctx, b, 0)
			w.is(err, denied.GateConflict)
			_, _, _, err = g.e.PutGate(w.ctx, b, 2)
			w.is(err, denied.GateConflict)
		})
		g.spend(name, "k", tokens(100))
		revision, already, _, err := g.e.PutGate(trail.As(w.ctx, "anna", ""), b, 1)
		w.no(err)
		w.all("changed", eq(revision, 2), eq(already, false))
		x := g.record(name)
		w.all("kept and changed", eq(x.Used["tokens"], 100), eq(x.Limits["tokens"].Hard, 101), eq(x.ChangedBy, "anna"),
			eq(x.Revision, 2))
		g.decides("there is room", g.spend(name, "l", tokens(1)), "OK", true)
		w.all("as sent", eqList(x.Refund, "cancelled", "failed"), eq(x.Scope, "tenant acme"))
	}},
	{name: "budget periods keep their rhythm, however late a call comes", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Reset = flowfabric.Millis(time.Minute) })
		made := g.record(b).CreatedAt
		next := func() time.Duration { return g.record(b).NextReset.Sub(made) }
		same(w, "the first ends", next(), time.Minute)
		g.spend(b, "1", tokens(100))
		g.advance(67 * time.Second)
		g.still(b, "a look", func() {
			x := g.record(b)
			w.all("as if it had been reset", eq(x.Period, 1), eq(x.Used["tokens"], 0), eq(next(), 2*time.Minute))
		})
		r := g.spend(b, "2", tokens(10))
		w.all("report of the next period", eq(r.Verdict, "OK"), eq(r.Period, 1), eq(g.spent(b, "tokens"), 10))
		g.advance(5 * time.Minute)
		r = g.spend(b, "3", tokens(1))
		x := g.record(b)
		w.all("one reset, four missed", eq(r.Period, 2), eq(x.Period, 2), eq(x.Missed, 4), eq(next(), 7*time.Minute),
			eq(noted(x.Audit, "period"), 2))
		g.resetUsage(b)
		x = g.record(b)
		w.all("a manual one does not move the rhythm", eq(x.Period, 3), eq(x.Missed, 0), eq(next(), 7*time.Minute))
		_, left, _, err := g.e.ResetUsage(w.ctx, b, true)
		w.no(err)
		same(w, "unless asked", left, time.Minute)
		g.advance(time.Minute)
		same(w, "at its time exactly, not after it", g.record(b).Period, 5)
		b2 := g.budget(nil)
		g.advance(100 * 24 * time.Hour)
		w.all("one without periods", eq(g.record(b2).Period, 0), eq(g.record(b2).NextReset.IsZero(), true))
	}},
	{name: "a refund of usage from before a reset does not reduce the new period", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x, y := mint.ID(w.p), mint.ID(w.p)
		report := func(id flowfabric.ExecutionID, key string, n int64) {
			w.Helper()
			r, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: id, Key: key, Amounts: tokens(n)})
			w.no(err)
			same(w, "applied", r.Applied, true)
		}
		release := func(id flowfabric.ExecutionID) bool {
			w.Helper()
			done, _ := g.tell(refundOf(b, id))
			return done
		}
		report(x, "x", 50)
		g.resetUsage(b)
		report(y, "y", 40)
		w.all("X", eq(release(x), false), eq(g.spent(b, "tokens"), 40))
		w.all("Y", eq(release(y), true), eq(g.spent(b, "tokens"), 0))
		w.all("Y again", eq(release(y), false), eq(g.spent(b, "tokens"), 0))
		report(x, "x2", 5)
		report(y, "y2", 7)
		w.all("X of both periods", eq(release(x), true), eq(g.spent(b, "tokens"), 7))
		w.all("a stranger", eq(release(mint.ID(w.p)), false), eq(g.spent(b, "tokens"), 7))
		_, _, err := g.e.AdjustUsage(w.ctx, b, tokens(-5))
		w.no(err)
		w.all("never below zero", eq(release(y), true), eq(g.spent(b, "tokens"), 0))
	}},
	{name: "a refund tells who waits for the budget, once there is room", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		x, y := mint.ID(w.p), mint.ID(w.p)
		for id, n := range map[flowfabric.ExecutionID]int64{x: 40, y: 60} {
			_, err := g.e.ReportUsage(w.ctx,
				admission.Usage{Gate: b, Execution: id, Key: id.String(), Amounts: tokens(n)})
			w.no(err)
		}
		_, _, err := g.e.AdjustUsage(w.ctx, b, tokens(50))
		w.no(err)
		w.create(asking(flowfabric.Gate(b)))
		list := g.asker("w1").grants(1)
		same(w, "room", g.room(b, list[0].Route), false)
		refund := func(id flowfabric.ExecutionID) []engine.Waiter {
			w.Helper()
			done, wake := g.tell(refundOf(b, id))
			same(w, "given back", done, true)
			return wake
		}
		same(w, "told while it is exhausted", len(refund(x)), 0)
		wake := refund(y)
		same(w, "told when there is room", len(wake), 1)
		same(w, "who", wake[0], engine.Waiter{Partition: w.p, Route: list[0].Route})
	}},
	{name: "a budget that only warns keeps counting and blocks nothing", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Warn = true })
		g.decides("over", g.spend(b, "1", tokens(130)), "HARD_BREACH", true, breach("tokens", true, 130, 100, false))
		w.all("used, breaches", eq(g.spent(b, "tokens"), 130), eq(g.record(b).HardBreaches, 1))
		w.create(asking(flowfabric.Gate(b)))
		k := g.asker("w1")
		list := k.grants(1)
		same(w, "open", g.room(b, list[0].Route), true)
		same(w, "claimed", len(k.granted(list...)), 1)
	}},
	{name: "an exhausted second budget closes the route, and its reset opens it", run: func(w *env) {
		g := newGates(w)
		a, b := g.budget(nil), g.budget(nil)
		g.spend(b, "1", tokens(100))
		id := w.create(asking(flowfabric.Gate(a), flowfabric.Gate(b)))
		k := g.asker("w1")
		list := k.grants(5)
		same(w, "room", g.room(a, list[0].Route), true)
		x := g.look(b, list[0].Route)
		w.all("no room", eq(x.Why, "amount"), eq(x.Dimension, "tokens"), eq(x.Used, 100), eq(x.Limit, 100),
			eq(x.Refused, 0), eq(x.Retry, 30*time.Second))
		why := "gate " + b + " amount tokens 100 100"
		g.refuse(k, false, 30*time.Second, why, list...)
		closed := g.closings()
		w.all("closed", eq(len(closed), 1), eq(closed[0].Why, why), eq(closed[0].Waiting, 1),
			eq(closed[0].Route.ID, list[0].Route))
		w.code(id, "R1f")
		w.all("who waits", eq(g.record(a).Waiting, 0), eq(g.record(b).Waiting, 1))
		same(w, "nothing", len(k.grants(5)), 0)
		g.resetUsage(b) // the reset wakes the routes that wait
		w.all("open", eq(len(g.closings()), 0), eq(g.record(b).Waiting, 0))
		list = k.grants(5)
		w.all("room", eq(g.room(a, list[0].Route), true), eq(g.room(b, list[0].Route), true))
		k.granted(list...)
	}},
	{name: "among 500 waiting executions, the newest comes next if only its budget has room", run: func(w *env) {
		g := newGates(w)
		k := g.asker("w1")
		for range 24 {
			b := g.budget(nil)
			g.spend(b, "1", tokens(100))
			w.createN(20, asking(flowfabric.Gate(b)))
		}
		last := g.budget(nil)
		g.spend(last, "1", tokens(100))
		w.createN(19, asking(flowfabric.Gate(last)))
		newest := g.budget(nil)
		g.spend(newest, "1", tokens(100))
		id := w.create(asking(flowfabric.Gate(newest)))
		for {
			list := k.grants(32)
			if len(list) == 0 {
				break
			}
			by := map[uint64][]engine.Grant{}
			for _, x := range list {
				by[x.Route] = append(by[x.Route], x)
			}
			for route, some := range by {
				name := k.routes[route].Gates[0].Name()
				same(w, "open", g.room(name, route), false)
				g.refuse(k, false, 30*time.Second, "gate "+name+" amount tokens 100 100", some...)
			}
		}
		same(w, "closed", len(g.closings()), 26)
		_, wake, err := g.e.AdjustUsage(w.ctx, newest, tokens(-100))
		w.no(err)
		same(w, "woken", len(wake), 1)
		g.wake(wake)
		list := k.grants(32)
		w.all("granted", eq(len(list), 1), eq(list[0].Execution, id))
		same(w, "room", g.room(newest, list[0].Route), true)
		k.granted(list...)
		w.all("others", eq(len(g.closings()), 25), eq(len(k.grants(32)), 0))
	}},
	{name: "a missing gate admits nothing and is named as the reason", run: func(w *env) {
		g := newGates(w)
		b, q := g.budget(nil), g.gate(admission.Gate{Concurrency: 1})
		id := w.create(asking(flowfabric.Gate(b), flowfabric.Gate(q)))
		_, err := g.e.RemoveGate(w.ctx, b)
		w.no(err)
		_, err = g.e.RemoveGate(w.ctx, q)
		w.no(err)
		k := g.asker("w1")
		list := k.grants(1)
		for _, name := range []string{b, q} {
			_, err = g.e.Admit(w.ctx, name, engine.Waiter{Partition: w.p, Route: list[0].Route}, 10*time.Second, false,
				[]engine.Hold{{Execution: id, Epoch: list[0].Epoch}})
			w.is(err, denied.NoGate)
		}
		g.refuse(k, false, 10*time.Second, "gate_not_found "+b, list...)
		same(w, "told", g.closings()[0].Why, "gate_not_found "+b)
		w.code(id, "R1f")
		same(w, "nothing", len(k.grants(1)), 0)
		_, _, _, err = g.e.PutGate(w.ctx, admission.Gate{Name: b, Limits: hardLimit(1)}, 0)
		w.no(err)
		_, _, _, err = g.e.PutGate(w.ctx, admission.Gate{Name: q, Concurrency: 1}, 0)
		w.no(err)
		g.advance(10 * time.Second)
		w.tick()
		list = k.grants(1)
		same(w, "made again", g.room(b, list[0].Route), true)
		g.admit(q, 1, list...)
		k.granted(list...)
	}},
	{name: "a holder's reports count once each, even if repeated, out of order or late", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Limits = hardLimit(0) })
		id := mint.ID(w.p)
		report := func(what string, epoch, sequence uint64, n int64, late, replayed bool, spent int64) {
			w.Helper()
			r, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: id, Epoch: epoch, Sequence: sequence,
				Amounts: tokens(n)})
			w.no(err)
			w.all(what, eq(r.Verdict, "OK"), eq(r.Applied, true), eq(r.Late, late), eq(r.Replayed, replayed),
				eq(g.spent(b, "tokens"), spent))
		}
		report("first", 100, 1, 10, false, false, 10)
		report("repeated", 100, 1, 10, false, true, 10)
		report("second", 100, 2, 10, false, false, 20)
		report("the first, once more", 100, 1, 10, false, true, 20)
		report("the next holder", 200, 1, 5, false, false, 25)
		report("the last one spent", 100, 3, 7, true, false, 32)
		report("repeated", 100, 3, 7, true, true, 32)
		report("the holder goes on", 200, 2, 1, false, false, 33)
		x := g.record(b)
		w.all("spenders", eq(len(x.Spenders), 1), eq(x.Spenders[0].Execution, id), eq(x.Spenders[0].Late, 1),
			eq(x.Spenders[0].Used["tokens"], 33))
	}},
	{name: "an operator can correct a budget's usage, and the audit log records it", run: func(w *env) {
		g := newGates(w)
		b := g.budget(nil)
		g.spend(b, "1", tokens(60))
		used, _, err := g.e.AdjustUsage(trail.As(w.ctx, "anna", "counted twice"), b,
			map[string]int64{"tokens": -20, "requests": 3})
		w.no(err)
		sameDeep(w, "used", used, map[string]int64{"requests": 3, "tokens": 40})
		used, _, err = g.e.AdjustUsage(w.ctx, b, tokens(-50))
		w.no(err)
		same(w, "never below zero", used["tokens"], 0)
		x := g.record(b)
		i := slices.IndexFunc(x.Audit, func(e admission.AuditEntry) bool { return e.What == "adjusted" })
		w.all("audit log", eq(x.Audit[i].By, "anna"), eq(x.Audit[i].Detail, "requests=3,tokens=-20 counted twice"))
		g.still(b, "the least number", func() {
			_, _, err := g.e.AdjustUsage(w.ctx, b, tokens(math.MinInt64))
			w.is(err, denied.Delta)
		})
	}},
	{name: "usage is refunded once if the execution ends in a way that the gate refunds", run: func(w *env) {
		g := newGates(w)
		b := g.budget(func(b *admission.Gate) { b.Refund = []string{"failed", "cancelled"} })
		k := g.asker("w1")
		spend := func(c engine.Claim, n int64) {
			w.Helper()
			r, err := g.e.ReportUsage(w.ctx, admission.Usage{Gate: b, Execution: c.Fence.Execution,
				Epoch: c.Fence.Epoch, Sequence: 1, Amounts: tokens(n)})
			w.no(err)
			w.all("applied", eq(r.Applied, true), eq(r.Late, false))
		}
		ids := w.createN(4, asking(flowfabric.Gate(b)))
		claims := k.granted(k.grants(10)...)
		for i, c := range claims {
			spend(c, int64(10*(i+1)))
		}
		same(w, "used", g.spent(b, "tokens"), 100)
		_, err := g.e.FailExecution(w.ctx, claims[0].Fence, engine.Failure{Category: "broken", Permanent: true})
		w.no(err)
		w.cancel(claims[1].Fence.Execution)
		w.complete(claims[2].Fence, "")
		w.delay(claims[3].Fence, time.Hour)
		same(w, "entries", w.tick().Outbox, 2)
		entries, _, err := g.e.ReadOutbox(w.ctx, w.p, "")
		w.no(err)
		g.deliver()
		same(w, "used", g.spent(b, "tokens"), 70)
		for _, x := range entries { // delivered again
			_, _, err := g.e.SettleGates(w.ctx, x.News)
			w.no(err)
		}
		same(w, "once", g.spent(b, "tokens"), 70)
		w.cancel(ids[slices.Index(ids, claims[3].Fence.Execution)])
		g.deliver()
		same(w, "what is cancelled later", g.spent(b, "tokens"), 30)
		same(w, "those of the same outcome only", noted(g.record(b).Audit, "release"), 3)
	}},
}
