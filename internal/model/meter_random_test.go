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

// TestMeters does random things to gates with meters of all kinds, on both servers, and to gateTruth: every reply is
// the same, and so is every gate as it is read. Executions report what they used, and reserve it before and settle it
// after (ledger_random_test.go). 800 calls a history; 16 histories, or FLOWFABRIC_SOAK/25 (10,000: 320,000 calls).
func TestMeters(t *testing.T) {
	randomly(t, func(t *testing.T, s *server, seed uint64, did map[string]int) { newMeters(t, s, seed, did).run() },
		"put", "remove", "report", "report again", "not counted", "undo", "undone", "adjust", "reset", "settle",
		"admit", "admit again", "look", "amount", "amount refused", "rate", "cap", "suspect", "freed", "HARD_BREACH",
		"SOFT_BREACH", "late", "purged", "replayed", "idempotency_conflict", "invalid_delta",
		"gate_conflict", "woken", "refunded", "missed", "warned",
		"reserve", "reserved", "reserved before", "not reserved", "stale_lease", "stands in line", "left the line",
		"passed over", "ended and left the line", "forgotten with its epoch", "ended too late",
		"waits behind the first in line", "asked behind the first in line", "fits beside the first in line",
		"passes the line", "cannot be served", "nobody woken before the first in line", "settle reserved", "ended s",
		"ended c", "ended v", "ended before", "ended after c", "ended after v", "ended without a reservation s",
		"ended without a reservation v", "ended in a later period", "more than was reserved",
		"given back before it is corrected", "forgotten", "release reserved", "resolved s", "resolved c", "resolved v",
		"resolved by another gate", "vouched", "suspected", "made anew with open ones",
		"ended though it counts no more",
		"drawn from a share", "more than its share", "a share is over", "starts with its share",
		"lowered below what is reserved", "unknown_dimension")
}

// randomly makes histories on both servers, each from its seed, and wants all of these things to happen.
func randomly(t *testing.T, history func(t *testing.T, s *server, seed uint64, did map[string]int), all ...string) {
	t.Parallel()
	for _, on := range []struct {
		name  string
		start func(testing.TB) *server
		least int
		per   int
	}{{"embedded", embeddedServer, 4, 250}, {"redis", redisServer, 16, 25}} {
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

// bounds is what random runs on partitions of gates have in common: their clocks, and a trail.
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

type meters struct {
	*bounds
	names  []string // the first two in one partition
	truth  map[string]*gateTruth
	ids    []flowfabric.ExecutionID
	epochs map[flowfabric.ExecutionID]uint64
	sent   []admission.Usage
	keys   int
	holds  []engine.Hold // that somebody asked for
	epoch  uint64
	asked  []engine.Reservation
	number uint64 // of the newest reservation
	calm   bool   // periods are long, and most gates let work wait, so that lines grow
}

func newMeters(t *testing.T, s *server, seed uint64, did map[string]int) *meters {
	const of = limits.DefaultGatePartitions
	x := &meters{truth: map[string]*gateTruth{}, epochs: map[flowfabric.ExecutionID]uint64{},
		calm:  seed%2 == 1,
		names: []string{nameIn(3, of, "a"), nameIn(3, of, "b"), nameIn(5, of, "c")}}
	x.bounds = newBounds(t, s, seed, did, keys.GateRoot(3), keys.GateRoot(5))
	for _, name := range x.names { // also from what the engine heard of gates
		_, err := s.e.RemoveGate(x.ctx, name)
		x.no(err)
	}
	for range 3 {
		x.ids = append(x.ids, x.id())
	}
	x.ids = append(x.ids, mint.Join(partition+1, ids.UUID(x.ids[0]))) // another one
	for _, id := range x.ids {
		x.epochs[id] = 10
	}
	return x
}

var meterDims = []string{"calls", "cost.cents", "tokens"}

func (x *meters) run() {
	for range 800 {
		name := x.names[x.r.IntN(len(x.names))]
		if x.truth[name] == nil && x.chance(80) {
			x.put(name)
		}
		if x.chance(40) || x.calm && x.chance(60) {
			x.reserving(name)
			continue
		}
		switch n := x.r.IntN(100); {
		case n < 27:
			x.report(name)
		case n < 32:
			x.repeat()
		case n < 34:
			x.undo()
		case n < 39:
			x.put(name)
		case n < 43:
			x.adjust(name)
		case n < 45:
			x.reset(name)
		case n < 62:
			x.settle()
		case n < 87:
			x.admit(name, x.ids[x.r.IntN(len(x.ids))])
		case n < 88:
			x.remove(name)
		default:
			ms := []int64{1, 40, 900, 1000, 7_000, 61_000, 86_400_000}[min(x.r.IntN(8), x.r.IntN(7))]
			if x.now-begin > 5*86_400_000 || x.calm && x.chance(80) {
				ms = 1
			}
			x.pass(ms)
			x.say("%+d ms", ms)
			for _, b := range x.truth {
				if x.s.ttls && b != nil && b.idle <= x.now { // a longer window does not bring them back
					clear(b.window)
				}
			}
		}
		if x.chance(15) {
			x.read()
		}
	}
	x.read()
}

func (x *meters) spec(name string) admission.Gate {
	b := admission.Gate{Name: name, Scope: []string{"", "team"}[x.r.IntN(2)], Warn: x.chance(20),
		WarnSoft: x.chance(50), StrictDimensions: x.chance(20), OnHard: []admission.HardAction{"", admission.HardReject,
			admission.HardFail, admission.HardAsk, admission.HardBlock, admission.HardBlock,
			admission.HardBlock}[x.r.IntN(7)],
		Limits: map[string]admission.Limit{}}
	if x.chance(60) {
		b.Reset = flowfabric.Millis(time.Duration(1+x.r.IntN(10)) * time.Second)
	}
	kind := x.r.IntN(5) // amounts, starts, or both
	if kind > 1 {
		b.Concurrency, b.Rate = x.r.IntN(6), x.r.IntN(8)
		b.Jitter = flowfabric.Millis(time.Duration(x.r.IntN(3)*100) * time.Millisecond)
		if x.chance(95) {
			b.Window = flowfabric.Millis(time.Duration(1+x.r.IntN(20)) * 500 * time.Millisecond)
		}
		if x.chance(30) {
			b.Rate = 0
		}
	}
	for _, dim := range meterDims {
		l := admission.Limit{Hard: int64(x.r.IntN(200)), Soft: int64(x.r.IntN(150))}
		if l.Hard > 0 && x.chance(95) {
			l.Soft = min(l.Soft, l.Hard)
		}
		if x.chance(70) && kind != 2 {
			b.Limits[dim] = l
		}
	}
	if x.calm && x.chance(80) {
		b.Reset, b.OnHard, b.Warn, b.StrictDimensions = 0, admission.HardBlock, false, false
		b.Limits["tokens"] = admission.Limit{Hard: int64(100 + x.r.IntN(100))}
	}
	for _, outcome := range []string{"failed", "expired", "cancelled"} {
		if x.chance(40) {
			b.Refund = append(b.Refund, outcome)
		}
	}
	return b
}

func (x *meters) put(name string) {
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
		spec.Limits, spec.Window = nil, flowfabric.Millis(time.Second) // of two refusals either may be told
	}
	x.say("put %+v at %d", spec, expected)
	revision, already, wake, err := x.s.e.PutGate(x.ctx, spec, expected)
	b, same, woken, code := b.put(spec, expected, "me", x.now)
	x.same(x.code(err), code)
	if code == "" {
		b.met = x.did
		x.lowered(b)
		x.truth[name] = b
		x.same(fmt.Sprint(revision, already, x.woken(wake)), fmt.Sprint(b.revision, same, woken))
	}
	x.did["put"]++
}

func (x *meters) remove(name string) {
	x.t.Helper()
	x.say("remove %s", name)
	already, err := x.s.e.RemoveGate(x.ctx, name)
	x.no(err)
	anew := x.truth[name] != nil && len(x.truth[name].reserved) > 0
	x.same(already, x.truth[name] == nil)
	delete(x.truth, name)
	x.pass(1) // a gate of the same name is another one from the next ms on
	x.did["remove"]++
	if x.chance(60) {
		x.put(name)
		x.repeat()
		x.repeat()
		x.settleReserved()
		x.did["made anew with open ones"] += bool01(anew && x.truth[name] != nil)
	}
}

func (x *meters) report(name string) {
	u := admission.Usage{Gate: name, Amounts: map[string]int64{}}
	for len(u.Amounts) == 0 {
		for _, dim := range meterDims {
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
	if b := x.truth[name]; b != nil && b.ledgers[u.Execution.String()] != nil &&
		b.ledgers[u.Execution.String()].need.stage == b.stage() && x.chance(80) {
		x.admit(name, u.Execution) // it is back in its queue
	}
}

// repeat sends a report once more, sometimes with other amounts or to another gate.
func (x *meters) repeat() {
	if len(x.sent) == 0 {
		return
	}
	u := x.sent[max(0, len(x.sent)-1-x.r.IntN(12))]
	switch x.r.IntN(8) {
	case 0:
		u.Amounts = map[string]int64{"tokens": 1}
	case 1:
		u.Gate = x.names[x.r.IntN(len(x.names))]
	}
	x.send("report again", u)
}

// undo takes one of the last reports of holders back, mostly the last.
func (x *meters) undo() {
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
	want, woken, code := x.truth[u.Gate].undo(u, x.now)
	x.same(x.code(err), code)
	x.same(fmt.Sprint(got, x.woken(wake)), fmt.Sprint(want, woken))
	x.did["undone"] += bool01(got)
	x.did["undo"]++
}

func (x *meters) send(what string, u admission.Usage) {
	x.t.Helper()
	x.say("%s %+v", what, u)
	got, err := x.s.e.ReportUsage(x.ctx, u)
	want, code := x.truth[u.Gate].report(u, x.now)
	said := x.code(err)
	if x.truth[u.Gate] == nil && said == "gate_not_found" {
		code = said // of two refusals either may be told
	}
	if u.Sequence > 0 && x.deaf(u.Gate, said) {
		code, got, want = said, admission.Reported{}, admission.Reported{}
	}
	x.same(said, code)
	if code == "" {
		x.same(fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
		x.did["not counted"] += bool01(!x.truth[u.Gate].spec.CountsAmounts())
		x.did[string(got.Verdict)]++
		x.did["late"] += bool01(got.Late)
		x.did["replayed"] += bool01(got.Replayed)
		for _, b := range got.Breaches {
			x.did["warned"] += bool01(b.Crossed)
		}
	}
	x.did[what]++
}

func (x *meters) adjust(name string) {
	x.t.Helper()
	by := map[string]int64{meterDims[x.r.IntN(3)]: int64(x.r.IntN(400) - 300), "tokens": int64(x.r.IntN(100) - 50)}
	if x.chance(3) {
		by["tokens"] = mostUsed
	}
	x.say("adjust %s %v", name, by)
	used, wake, err := x.s.e.AdjustUsage(x.ctx, name, by)
	want, woken, code := x.truth[name].adjust(by, "me", x.now)
	x.same(x.code(err), code)
	if code == "" {
		x.same(fmt.Sprint(used, x.woken(wake)), fmt.Sprint(want, woken))
	}
	x.did["adjust"]++
}

func (x *meters) reset(name string) {
	x.t.Helper()
	move := x.chance(50)
	x.say("reset %s %t", name, move)
	period, left, wake, err := x.s.e.ResetUsage(x.ctx, name, move)
	b := x.truth[name]
	woken, code := b.reset(move, "me", x.now)
	x.same(x.code(err), code)
	if code == "" {
		x.same(fmt.Sprint(period, left, x.woken(wake)), fmt.Sprint(b.period, b.left(x.now), woken))
	}
	x.did["reset"]++
}

// settle tells the two gates that share a partition news of both kinds in one call, sometimes of holds that they do not
// have.
func (x *meters) settle() {
	x.t.Helper()
	var news []engine.News
	for _, h := range x.some(x.r.IntN(5), 90) {
		news = append(news, engine.News{Gate: x.names[x.r.IntN(2)], Execution: h.Execution, Epoch: h.Epoch,
			What: []string{engine.NewsHeld, engine.NewsGone, engine.NewsNever}[x.r.IntN(3)]})
	}
	for range x.r.IntN(4) {
		n := engine.News{Gate: x.names[x.r.IntN(2)], Execution: x.ids[x.r.IntN(len(x.ids))],
			What: []string{"failed", "cancelled", "expired", engine.NewsAsked, engine.NewsPurged}[x.r.IntN(5)]}
		if n.What == engine.NewsPurged && x.truth[n.Gate].reserves(n.Execution.String()) {
			n.What = engine.NewsAsked // it was purged long after its lease was over
		}
		if x.chance(50) {
			n.Epoch = x.epochs[n.Execution] - uint64(x.r.IntN(2))
		}
		news = append(news, n)
	}
	if len(news) == 0 {
		return
	}
	x.r.Shuffle(len(news), func(i, j int) { news[i], news[j] = news[j], news[i] })
	x.tell(news)
}

// tell tells gates of one partition the news.
func (x *meters) tell(news []engine.News) {
	x.t.Helper()
	x.say("settle %v", news)
	got, wake, err := x.s.e.SettleGates(x.ctx, news)
	x.no(err)
	var names, woken []string
	told, back := map[string]bool{}, map[string]bool{}
	for i, n := range news {
		b := x.truth[n.Gate]
		if !slices.Contains(names, n.Gate) {
			names = append(names, n.Gate)
		}
		switch n.What {
		case engine.NewsHeld, engine.NewsGone, engine.NewsNever:
			f := b.settle(holdText(engine.Hold{Execution: n.Execution, Epoch: n.Epoch}), n.What, x.now)
			if got[i] && !f.perhaps || !got[i] && f.surely {
				x.fatal("%v: freed %t, want %+v", n, got[i], f)
			}
			told[n.Gate] = b != nil
			x.did["freed"] += bool01(got[i])
		default:
			back[n.Gate] = b.quit(n) || back[n.Gate]
			ok := b.refund(n.Execution.String(), n.What, "me", n.Epoch, x.now)
			x.same(fmt.Sprint(n, got[i]), fmt.Sprint(n, ok))
			back[n.Gate] = back[n.Gate] || ok
			x.did["refunded"] += bool01(ok)
			x.did["purged"] += bool01(n.What == engine.NewsPurged && b != nil)
		}
	}
	for _, name := range names {
		if told[name] {
			woken = x.truth[name].wake(x.now, woken)
		}
		if back[name] {
			woken = append(woken, x.truth[name].at(x.now).freed(x.now)...)
		}
	}
	x.same(fmt.Sprint(x.woken(wake)), fmt.Sprint(woken))
	x.did["settle"]++
}

// some draws holds, each once: of those that were asked for before, or new ones.
func (x *meters) some(n, known int) (out []engine.Hold) {
	seen := map[engine.Hold]bool{}
	for range n {
		x.epoch++
		h := engine.Hold{Execution: x.id(), Epoch: x.epoch}
		if len(x.holds) > 0 && x.chance(known) {
			h = x.holds[max(0, len(x.holds)-1-x.r.IntN(20))]
		}
		if !seen[h] {
			seen[h] = true
			out = append(out, h)
		}
	}
	return out
}

// admit asks for holds, mostly of this execution as well, which reports: what was refused it waits for. Who asks was
// not purged.
func (x *meters) admit(name string, id flowfabric.ExecutionID) {
	x.t.Helper()
	list, route, ttl := x.some(1+x.r.IntN(4), 15), uint64(1+x.r.IntN(6)), time.Duration(1+x.r.IntN(10))*time.Second
	h, b := engine.Hold{Execution: id, Epoch: x.epochs[id]}, x.truth[name]
	if (b == nil || !b.gone[id.String()]) && x.chance(60) && !slices.Contains(list, h) {
		list = slices.Insert(list, x.r.IntN(len(list)+1), h)
	}
	x.admitted(name, list, route, ttl)
}

func (x *meters) admitted(name string, list []engine.Hold, route uint64, ttl time.Duration) {
	x.t.Helper()
	look := x.chance(20)
	for again := true; again; again = x.chance(15) {
		x.say("admit %s for %d, look %t: %v, %s", name, route, look, holdTexts(list), ttl)
		got, err := x.s.e.Admit(x.ctx, name, engine.Waiter{Partition: partition, Route: route}, ttl, look, list)
		want, code := x.truth[name].admit(partition, route, ttl, look, list, x.now)
		x.same(x.code(err), code)
		x.same(fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
		x.did[got.Why]++
		x.did["amount refused"] += bool01(got.Refused > 0)
		x.did["suspect"] += len(got.Suspects)
		x.did["look"] += bool01(look)
		x.did["admit"]++
	}
	x.did["admit again"]++
	if !look {
		x.holds = append(x.holds, list...)
	}
}

func holdText(h engine.Hold) string {
	return fmt.Sprintf("%d.%s:%d", h.Execution.Partition(), ids.UUID(h.Execution), h.Epoch)
}

func holdTexts(list []engine.Hold) (out []string) {
	for _, h := range list {
		out = append(out, holdText(h))
	}
	return out
}

func (x *meters) read() {
	x.t.Helper()
	for _, name := range x.names {
		got, err := x.s.e.ReadGate(x.ctx, name, 100, 1000, 256)
		b := x.truth[name]
		if b == nil {
			x.same(x.code(err), "gate_not_found")
			continue
		}
		x.no(err)
		x.did["missed"] += int(got.Missed)
		x.same(gateText(got), b.record(x.now))
	}
}
