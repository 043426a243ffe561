package model_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// TestBudgets does random things to budgets, on both servers, and to budgetTruth: every reply is the same, and so is
// every budget as it is read. 300 calls a history; 16 histories, or FLOWFABRIC_SOAK/25 (10,000: 120,000 calls).
func TestBudgets(t *testing.T) {
	randomly(t, func(t *testing.T, s *server, seed uint64, did map[string]int) { newBudgets(t, s, seed, did).run() },
		"put", "remove", "report", "report again", "undo", "undone", "adjust", "reset", "refund", "check",
		"HARD_BREACH", "SOFT_BREACH", "late", "purged", "replayed", "idempotency_conflict", "invalid_delta",
		"budget_conflict", "woken", "refunded", "missed", "warned")
}

// randomly makes histories on both servers, each from its seed, and wants all of these things to happen.
func randomly(t *testing.T, history func(t *testing.T, s *server, seed uint64, did map[string]int), all ...string) {
	t.Parallel()
	for _, on := range []struct {
		name  string
		start func(testing.TB) *server
		least int
		per   int
	}{{"embedded", embeddedServer, 3, 250}, {"redis", redisServer, 16, 25}} {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			s := on.start(t)
			did := map[string]int{}
			for seed := range seeds(max(on.least, soak()/on.per)) {
				history(t, s, seed, did)
			}
			t.Log(did)
			happened(t, did, all...)
		})
	}
}

// happened wants that all of these things happened at least once, unless a seed was asked for.
func happened(t *testing.T, did map[string]int, all ...string) {
	t.Helper()
	for _, what := range all {
		if did[what] == 0 && seedAsked() == 0 {
			t.Errorf("never happened: %s", what)
		}
	}
}

// seeds are the seeds of so many runs: 1, 2, …, or random ones in a soak, or the one that was asked for.
func seeds(n int) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if only := seedAsked(); only > 0 {
			yield(only)
			return
		}
		for i := range n {
			seed := uint64(i + 1)
			if soak() > 0 {
				seed = rand.Uint64()
			}
			if !yield(seed) {
				return
			}
		}
	}
}

// bounds is what random runs on partitions of budgets and quotas have in common: their clocks, and a trail.
type bounds struct {
	t     *testing.T
	ctx   context.Context
	s     *server
	r     *rand.Rand
	seed  uint64
	now   int64
	roots []string
	trail []string
	did   map[string]int
}

func newBounds(t *testing.T, s *server, seed uint64, did map[string]int, roots ...string) *bounds {
	x := &bounds{t: t, ctx: trail.As(t.Context(), "me", ""), s: s, r: rand.New(rand.NewPCG(seed, 7)), seed: seed,
		now: begin, roots: roots, did: did}
	s.reset(x.ctx, t)
	for _, root := range roots {
		all, err := s.raw.Do(x.ctx, s.raw.B().Keys().Pattern(root+"*").Build()).AsStrSlice()
		x.no(err)
		if len(all) > 0 {
			x.no(s.raw.Do(x.ctx, s.raw.B().Del().Key(all...).Build()).Error())
		}
	}
	x.pass(0)
	return x
}

// pass moves all clocks.
func (x *bounds) pass(ms int64) {
	x.t.Helper()
	x.now += ms
	x.no(x.s.setClock(x.ctx, x.s.raw, x.now))
	if x.s.ttls {
		return // one clock for all
	}
	for _, root := range x.roots {
		x.no(x.s.raw.Do(x.ctx,
			x.s.raw.B().Hset().Key(root).FieldValue().FieldValue("clock_pin", text(x.now)).Build()).Error())
	}
}

func (x *bounds) fatal(format string, args ...any) {
	x.t.Helper()
	from := max(0, len(x.trail)-60)
	x.t.Fatalf("FLOWFABRIC_SEED=%d: %s\n%s", x.seed, fmt.Sprintf(format, args...), strings.Join(x.trail[from:], "\n"))
}

func (x *bounds) no(err error) {
	x.t.Helper()
	if err != nil {
		x.fatal("%v", err)
	}
}

func (x *bounds) say(format string, args ...any) {
	x.trail = append(x.trail, fmt.Sprintf("%d: %d: ", len(x.trail), x.now-begin)+fmt.Sprintf(format, args...))
}

// same compares what the server answered with what it must.
func (x *bounds) same(got, want any) {
	x.t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		x.fatal("answered\n%s\nwant\n%s", g, w)
	}
}

// code is the code of an error of the engine, "" of none.
func (x *bounds) code(err error) string {
	x.t.Helper()
	if err == nil {
		return ""
	}
	coded, ok := errors.AsType[*flowfabric.Error](err)
	if !ok {
		x.fatal("%v", err)
	}
	x.did[coded.Code]++
	return coded.Code
}

func (x *bounds) chance(per int) bool { return x.r.IntN(100) < per }

func (x *bounds) id() flowfabric.ExecutionID {
	var b [16]byte
	for i := range b {
		b[i] = byte(x.r.Uint32())
	}
	b[6], b[8] = b[6]&15|0x70, b[8]&63|0x80
	return mint.Join(partition, uuid.UUID(b))
}

func (x *bounds) woken(list []engine.Waiter) (out []string) {
	for _, w := range list {
		out = append(out, fmt.Sprintf("%d %d", w.Partition, w.Route))
	}
	x.did["woken"] += len(out)
	return out
}

type budgets struct {
	*bounds
	names  []string // the first two in one partition
	truth  map[string]*budgetTruth
	ids    []flowfabric.ExecutionID
	epochs map[flowfabric.ExecutionID]uint64
	sent   []admission.Usage
	keys   int
}

func newBudgets(t *testing.T, s *server, seed uint64, did map[string]int) *budgets {
	const of = limits.DefaultBudgetPartitions
	x := &budgets{truth: map[string]*budgetTruth{}, epochs: map[flowfabric.ExecutionID]uint64{},
		names: []string{nameIn(3, of, "a"), nameIn(3, of, "b"), nameIn(5, of, "c")}}
	x.bounds = newBounds(t, s, seed, did, keys.BudgetRoot(3), keys.BudgetRoot(5))
	for range 3 {
		x.ids = append(x.ids, x.id())
	}
	x.ids = append(x.ids, mint.Join(partition+1, ids.UUID(x.ids[0]))) // another one
	for _, id := range x.ids {
		x.epochs[id] = 10
	}
	return x
}

var budgetDims = []string{"calls", "cost.cents", "tokens"}

func (x *budgets) run() {
	for range 300 {
		name := x.names[x.r.IntN(len(x.names))]
		if x.truth[name] == nil && x.chance(80) {
			x.put(name)
		}
		switch n := x.r.IntN(100); {
		case n < 45:
			x.report(name)
		case n < 53:
			x.repeat()
		case n < 55:
			x.undo()
		case n < 60:
			x.put(name)
		case n < 66:
			x.adjust(name)
		case n < 70:
			x.reset(name)
		case n < 78:
			x.refund()
		case n < 87:
			x.check()
		case n < 88:
			x.remove(name)
		default:
			ms := []int64{1, 40, 900, 1000, 7_000, 61_000, 86_400_000}[min(x.r.IntN(8), x.r.IntN(7))]
			if x.now-begin > 5*86_400_000 {
				ms = 1
			}
			x.pass(ms)
			x.say("%+d ms", ms)
		}
		if x.chance(15) {
			x.read()
		}
	}
	x.read()
}

func (x *budgets) spec(name string) admission.Budget {
	b := admission.Budget{Name: name, Scope: []string{"", "team"}[x.r.IntN(2)], Warn: x.chance(20),
		WarnSoft: x.chance(50), StrictDimensions: x.chance(20), OnHard: []admission.HardAction{"", admission.HardReject,
			admission.HardFail, admission.HardBlock}[x.r.IntN(4)], Limits: map[string]admission.Limit{}}
	if x.chance(60) {
		b.Reset = flowfabric.Millis(time.Duration(1+x.r.IntN(10)) * time.Second)
	}
	for _, dim := range budgetDims {
		l := admission.Limit{Hard: int64(x.r.IntN(200)), Soft: int64(x.r.IntN(150))}
		if l.Hard > 0 && x.chance(95) {
			l.Soft = min(l.Soft, l.Hard)
		}
		if x.chance(70) {
			b.Limits[dim] = l
		}
	}
	for _, outcome := range []string{"failed", "expired", "cancelled"} {
		if x.chance(40) {
			b.Refund = append(b.Refund, outcome)
		}
	}
	return b
}

func (x *budgets) put(name string) {
	x.t.Helper()
	spec, expected, b := x.spec(name), uint64(0), x.truth[name]
	if b != nil {
		expected = b.revision
		if x.chance(20) {
			spec = b.spec
		}
	}
	if x.chance(15) {
		expected = uint64(x.r.IntN(4))
	}
	if b == nil && expected > 0 {
		spec.Limits = nil // of two refusals either may be told
	}
	x.say("put %+v at %d", spec, expected)
	revision, already, wake, err := x.s.e.PutBudget(x.ctx, spec, expected)
	b, same, woken, code := b.put(spec, expected, "me", x.now)
	x.same(x.code(err), code)
	if code == "" {
		x.truth[name] = b
		x.same(fmt.Sprint(revision, already, x.woken(wake)), fmt.Sprint(b.revision, same, woken))
	}
	x.did["put"]++
}

func (x *budgets) remove(name string) {
	x.t.Helper()
	x.say("remove %s", name)
	already, err := x.s.e.RemoveBudget(x.ctx, name)
	x.no(err)
	x.same(already, x.truth[name] == nil)
	delete(x.truth, name)
	x.pass(1) // a budget of the same name is another one from the next ms on
	x.did["remove"]++
	if x.chance(60) {
		x.put(name)
		x.repeat()
		x.repeat()
	}
}

func (x *budgets) report(name string) {
	u := admission.Usage{Budget: name, Amounts: map[string]int64{}}
	for len(u.Amounts) == 0 {
		for _, dim := range budgetDims {
			if x.chance(50) {
				u.Amounts[dim] = int64(x.r.IntN(30))
			}
		}
	}
	switch x.r.IntN(60) {
	case 0:
		u.Amounts["calls"] = -1
	case 1:
		u.Amounts["calls"] = mostUsed
	case 2:
		u.Amounts["other"] = 5
	}
	if x.chance(70) {
		u.Execution = x.ids[x.r.IntN(len(x.ids))]
	}
	if !u.Execution.IsZero() && x.chance(70) {
		if x.chance(15) {
			x.epochs[u.Execution] += uint64(1 + x.r.IntN(2))
		}
		u.Epoch = x.epochs[u.Execution]
		if x.chance(20) {
			u.Epoch--
		}
		if b := x.truth[name]; b != nil && b.ledgers[u.Execution.String()] != nil {
			u.Sequence = b.ledgers[u.Execution.String()].last[u.Epoch]
		}
		u.Sequence++
		if u.Sequence > 1 && x.chance(10) {
			u.Sequence -= uint64(x.r.IntN(2))
		}
	} else {
		x.keys++
		u.Key = fmt.Sprint("k", x.keys)
	}
	x.sent = append(x.sent, u)
	x.send("report", u)
}

// repeat sends a report once more, sometimes with other amounts or to another budget.
func (x *budgets) repeat() {
	if len(x.sent) == 0 {
		return
	}
	u := x.sent[max(0, len(x.sent)-1-x.r.IntN(12))]
	switch x.r.IntN(8) {
	case 0:
		u.Amounts = map[string]int64{"tokens": 1}
	case 1:
		u.Budget = x.names[x.r.IntN(len(x.names))]
	}
	x.send("report again", u)
}

// undo takes one of the last reports of holders back, mostly the last.
func (x *budgets) undo() {
	x.t.Helper()
	var last []admission.Usage
	for _, u := range slices.Backward(x.sent) {
		if u.Sequence > 0 && u.Epoch > 0 {
			last = append(last, u)
		}
	}
	if len(last) == 0 {
		return
	}
	u := last[min(x.r.IntN(len(last)), x.r.IntN(4), x.r.IntN(4))]
	x.say("undo %+v", u)
	got, wake, err := x.s.e.UndoUsage(x.ctx, u)
	want, woken, code := x.truth[u.Budget].undo(u, x.now)
	x.same(x.code(err), code)
	x.same(fmt.Sprint(got, x.woken(wake)), fmt.Sprint(want, woken))
	x.did["undone"] += bool01(got)
	x.did["undo"]++
}

func (x *budgets) send(what string, u admission.Usage) {
	x.t.Helper()
	x.say("%s %+v", what, u)
	got, err := x.s.e.ReportUsage(x.ctx, u)
	want, code := x.truth[u.Budget].report(u, x.now)
	said := x.code(err)
	if x.truth[u.Budget] == nil && said == "budget_not_found" {
		code = said // of two refusals either may be told
	}
	x.same(said, code)
	if code == "" {
		x.same(fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
		x.did[string(got.Verdict)]++
		x.did["late"] += bool01(got.Late)
		x.did["replayed"] += bool01(got.Replayed)
		for _, b := range got.Breaches {
			x.did["warned"] += bool01(b.Crossed)
		}
	}
	x.did[what]++
}

func (x *budgets) adjust(name string) {
	x.t.Helper()
	by := map[string]int64{budgetDims[x.r.IntN(3)]: int64(x.r.IntN(400) - 300), "tokens": int64(x.r.IntN(100) - 50)}
	if x.chance(3) {
		by["tokens"] = mostUsed
	}
	x.say("adjust %s %v", name, by)
	used, wake, err := x.s.e.AdjustBudget(x.ctx, name, by)
	want, woken, code := x.truth[name].adjust(by, "me", x.now)
	x.same(x.code(err), code)
	if code == "" {
		x.same(fmt.Sprint(used, x.woken(wake)), fmt.Sprint(want, woken))
	}
	x.did["adjust"]++
}

func (x *budgets) reset(name string) {
	x.t.Helper()
	move := x.chance(50)
	x.say("reset %s %t", name, move)
	period, left, wake, err := x.s.e.ResetBudget(x.ctx, name, move)
	b := x.truth[name]
	woken, code := b.reset(move, "me", x.now)
	x.same(x.code(err), code)
	if code == "" {
		x.same(fmt.Sprint(period, left, x.woken(wake)), fmt.Sprint(b.period, b.left(x.now), woken))
	}
	x.did["reset"]++
}

// refund gives back, of the two budgets that share a partition in one call.
func (x *budgets) refund() {
	x.t.Helper()
	var items []engine.Refund
	var want []bool
	for range 1 + x.r.IntN(4) {
		items = append(items, engine.Refund{Budget: x.names[x.r.IntN(2)], Execution: x.ids[x.r.IntN(len(x.ids))],
			Outcome: []string{"failed", "cancelled", "expired", engine.RefundAsked, engine.RefundPurged}[x.r.IntN(5)]})
		if r := &items[len(items)-1]; x.chance(50) {
			r.Epoch = x.epochs[r.Execution] - uint64(x.r.IntN(2))
		}
	}
	x.say("refund %v", items)
	got, wake, err := x.s.e.ReleaseUsage(x.ctx, items)
	x.no(err)
	freed := map[string]bool{}
	for _, r := range items {
		ok := x.truth[r.Budget].refund(r.Execution.String(), r.Outcome, "me", r.Epoch, x.now)
		freed[r.Budget] = freed[r.Budget] || ok
		want = append(want, ok)
		x.did["refunded"] += bool01(ok)
		x.did["purged"] += bool01(r.Outcome == engine.RefundPurged && x.truth[r.Budget] != nil)
	}
	var woken []string
	for name, ok := range freed {
		if ok {
			woken = append(woken, x.truth[name].freed()...)
		}
	}
	all := x.woken(wake)
	slices.Sort(all)
	slices.Sort(woken)
	x.same(fmt.Sprint(got, all), fmt.Sprint(want, woken))
	x.did["refund"]++
}

func (x *budgets) check() {
	x.t.Helper()
	route := uint64(1 + x.r.IntN(6))
	x.say("check for %d", route)
	rooms, err := x.s.e.CheckBudgets(x.ctx, partition, route, x.names)
	x.no(err)
	for i, name := range x.names {
		want, code := x.truth[name].room(partition, route, x.now)
		x.same(x.code(rooms[i].Err), code)
		rooms[i].Err = nil
		x.same(fmt.Sprintf("%s %+v", name, rooms[i]), fmt.Sprintf("%s %+v", name, want))
	}
	x.did["check"]++
}

func (x *budgets) read() {
	x.t.Helper()
	for _, name := range x.names {
		got, err := x.s.e.ReadBudget(x.ctx, name, 100, 256)
		b := x.truth[name]
		if b == nil {
			x.same(x.code(err), "budget_not_found")
			continue
		}
		x.no(err)
		x.did["missed"] += int(got.Missed)
		x.same(budgetText(got), b.record(x.now))
	}
}
