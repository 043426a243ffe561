package model_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// gateTruth is a gate in plain Go: no keys, no fields, no scripts. Every method answers what the engine must answer,
// with the code of the error, and decides before it changes anything. Its starts and slots are in
// starts_oracle_test.go.
type gateTruth struct {
	spec      admission.Gate
	revision  uint64
	created   int64
	changedBy string
	period    uint64
	began     int64
	next      int64 // 0 = never
	last      int64
	missed    uint64
	used      map[string]int64
	told      map[string]uint64 // the period in which a soft breach was told, + 1
	hard      uint64
	soft      uint64
	breached  int64
	dimension string
	refused   map[string]int64 // in this period
	reserved  map[string]int64 // in this period, and counted in used
	line      map[string]int64 // who waits for room, by when: priority, then age
	met       map[string]int   // what happened
	stuck     string           // the stage in which work was refused that waits for room
	waiting   waitlist         // for amounts
	window    map[string]int64 // when a hold started
	idle      int64            // when all of these are forgotten
	slots     map[string]int64 // when it becomes suspect
	forSlots  waitlist
	forRate   waitlist
	ledgers   map[string]*ledgerTruth
	gone      map[string]bool // executions that were purged: they ask for nothing any more
	reports   map[string]reportTruth
	spent     map[string]int64 // when an execution reported last
	wakes     map[string]wakeTruth
	log       []string
}

type ledgerTruth struct {
	period uint64
	newest uint64
	last   map[uint64]uint64  // sequence by epoch
	reply  admission.Reported // of the last report of the newest epoch
	late   uint64
	forget int64 // 0 = its execution was not purged
	used   map[string]int64
	undo   map[string]int64       // what that report counted, nil if nothing, or no more
	need   needTruth              // what it waits for room for
	open   map[numbered]openTruth // what is left of a share, too
	over   map[numbered]overTruth
	share  map[string]int64 // all of it; nil if there is none
	low    uint64           // how those of older epochs ended is not known
	mark   uint64           // the newest epoch at
	marked int64            // this time
}

func newLedger() *ledgerTruth {
	return &ledgerTruth{last: map[uint64]uint64{}, used: map[string]int64{}, open: map[numbered]openTruth{},
		over: map[numbered]overTruth{}}
}

// needTruth is what was refused of an execution that waits for it.
type needTruth struct {
	stage   string
	times   int
	at      int64 // when it asked last
	amounts map[string]int64
}

// reportTruth is what was answered to a report with a key.
type reportTruth struct {
	digest  string
	until   int64
	refused bool
	reply   admission.Reported
}

// wakeTruth is who was to be woken by a call, which is told again when it is repeated.
type wakeTruth struct {
	until int64
	who   []string
}

// mostUsed is the largest amount and total.
const mostUsed = int64(1)<<53 - 1

// waitlist is who waits for a gate: when they were refused last, by partition and route.
type waitlist map[string]int64

func (w waitlist) add(now int64, partition uint16, route uint64) {
	w[fmt.Sprintf("%d %d", partition, route)] = now
}

// take removes the n that wait longest.
func (w waitlist) take(n int) (out []string) {
	all := slices.SortedFunc(maps.Keys(w), func(a, b string) int {
		return cmp.Or(cmp.Compare(w[a], w[b]), strings.Compare(a, b))
	})
	for _, who := range all[:min(n, len(all))] {
		delete(w, who)
		out = append(out, who)
	}
	return out
}

// normal is a specification as it is read back.
func normal(s admission.Gate) admission.Gate {
	if s.OnHard == "" {
		s.OnHard = admission.HardReject
	}
	s.Refund = slices.Clone(s.Refund)
	slices.Sort(s.Refund)
	s.Refund = slices.Compact(s.Refund)
	if len(s.Refund) == 0 {
		s.Refund = nil
	}
	limits := map[string]admission.Limit{}
	maps.Copy(limits, s.Limits)
	s.Limits = limits
	return s
}

func wrongGate(s admission.Gate) bool {
	for _, l := range s.Limits {
		if l.Hard < 0 || l.Soft < 0 || l.Hard > 0 && l.Soft > l.Hard {
			return true
		}
	}
	return s.Reset != 0 && time.Duration(s.Reset) < time.Second || s.Rate > 0 && s.Window == 0
}

// put makes or changes a gate and returns it.
func (b *gateTruth) put(s admission.Gate, expected uint64, by string,
	now int64) (out *gateTruth, already bool, wake []string, code string) {
	s = normal(s)
	switch {
	case wrongGate(s):
		return b, false, nil, "invalid_gate_spec"
	case b == nil && expected > 0:
		return b, false, nil, "gate_not_found"
	case b != nil && fmt.Sprint(b.spec) == fmt.Sprint(s):
		return b, true, b.putAgain(now), ""
	case b != nil && expected != b.revision:
		return b, false, nil, "gate_conflict"
	case b == nil:
		b = &gateTruth{created: now, began: now, used: map[string]int64{}, told: map[string]uint64{},
			refused: map[string]int64{}, reserved: map[string]int64{}, line: map[string]int64{},
			waiting: waitlist{}, window: map[string]int64{}, slots: map[string]int64{},
			forSlots: waitlist{}, forRate: waitlist{}, ledgers: map[string]*ledgerTruth{}, gone: map[string]bool{},
			reports: map[string]reportTruth{}, spent: map[string]int64{}, wakes: map[string]wakeTruth{}}
		b.log = append(b.log, "created "+by)
	default:
		b.roll(now)
		wake = slices.Concat(b.waiting.take(256), b.forSlots.take(256), b.forRate.take(256))
		b.keep(fmt.Sprint("put ", b.revision+1), wake, now)
		maps.DeleteFunc(b.told, func(dim string, _ uint64) bool { _, limited := s.Limits[dim]; return !limited })
		b.log = append(b.log, "changed "+by)
		if s.Window > 0 {
			b.idle = now + time.Duration(s.Window).Milliseconds() + 1000
		}
	}
	if s.Reset == 0 {
		b.next = 0
	} else if s.Reset != b.spec.Reset {
		b.next = now + time.Duration(s.Reset).Milliseconds()
	}
	b.spec, b.revision, b.changedBy = s, b.revision+1, by
	return b, false, wake, ""
}

// putAgain is whom a put wakes that changes nothing: the same ones if it is the last change made again, and all who
// may come.
func (b *gateTruth) putAgain(now int64) (wake []string) {
	if w := b.wakes[fmt.Sprint("put ", b.revision)]; now < w.until {
		wake = slices.Clone(w.who)
	}
	if b.at(now).full() == "" {
		wake = append(wake, b.waiting.take(256)...)
	}
	return slices.Concat(wake, b.forSlots.take(256), b.forRate.take(256))
}

// stage is the period and the limits that a refusal is about.
func (b *gateTruth) stage() string { return fmt.Sprint(b.period, " ", b.revision) }

// roll begins the period that is due, anchored at when it should have begun.
func (b *gateTruth) roll(now int64) {
	if b.next == 0 || now < b.next {
		return
	}
	span := time.Duration(b.spec.Reset).Milliseconds()
	missed := (now - b.next) / span
	b.begin(uint64(missed), b.next+(missed+1)*span, now, "time")
}

func (b *gateTruth) begin(missed uint64, next, now int64, by string) {
	b.period, b.began, b.last, b.missed, b.next = b.period+1, now, now, missed, next
	b.used, b.refused, b.breached, b.dimension = map[string]int64{}, map[string]int64{}, 0, ""
	b.reserved = map[string]int64{}
	b.log = append(b.log, "period "+by)
}

// at is the gate as who only reads sees it.
func (b *gateTruth) at(now int64) *gateTruth {
	v := *b
	v.log = slices.Clone(b.log)
	v.roll(now)
	v.log = b.log
	return &v
}

func (b *gateTruth) left(now int64) time.Duration {
	if b.next == 0 {
		return 0
	}
	return time.Duration(b.next-now) * time.Millisecond
}

// full is the dimension, first by name, that is used up.
func (b *gateTruth) full() string {
	if b.spec.Warn {
		return ""
	}
	for _, dim := range slices.Sorted(maps.Keys(b.spec.Limits)) {
		if hard := b.spec.Limits[dim].Hard; hard > 0 && b.used[dim] >= hard {
			return dim
		}
	}
	return ""
}

// freed is who comes when there is more room than before: nobody unless there is room for the first in line.
func (b *gateTruth) freed(now int64) []string {
	if b.full() != "" {
		return nil
	}
	if who, amounts := b.first(now); who != "" && b.lacking(amounts, nil, false) != "" {
		b.saw("nobody woken before the first in line")
		return nil
	}
	return b.waiting.take(256)
}

// keep remembers for a day whom a call woke.
func (b *gateTruth) keep(call string, wake []string, now int64) {
	if len(wake) > 0 {
		b.wakes[call] = wakeTruth{now + 86_400_000, wake}
	}
}

// again is whom a call wakes that has nothing to do: the same ones if it was made before.
func (b *gateTruth) again(call string, now int64) []string {
	if w := b.wakes[call]; now < w.until {
		return w.who
	}
	return b.at(now).freed(now)
}

// report counts all of it or nothing.
func (b *gateTruth) report(u admission.Usage, now int64) (admission.Reported, string) {
	id := u.Execution.String()
	for _, n := range u.Amounts {
		if n < 0 || n > mostUsed {
			return admission.Reported{}, "invalid_delta"
		}
	}
	if b == nil {
		return admission.Reported{}, "gate_not_found"
	}
	if !b.spec.CountsAmounts() {
		return admission.Reported{Verdict: codes.WithinBudget, Period: b.at(now).period}, ""
	}
	digest := id + fmt.Sprint(u.Amounts)
	before, again := b.reports[u.Key]
	again = again && u.Key != "" && now < before.until
	if again && before.digest != digest {
		return admission.Reported{}, "idempotency_conflict"
	}
	if again && !before.refused {
		before.reply.Replayed = true
		return before.reply, ""
	}
	v := b.at(now)
	for dim := range u.Amounts {
		if _, ok := v.spec.Limits[dim]; v.spec.StrictDimensions && !ok {
			return admission.Reported{}, "unknown_dimension"
		}
	}
	l := b.ledger(id, now)
	if l == nil {
		l = newLedger()
	}
	late := u.Sequence > 0 && u.Epoch < l.newest
	if late && u.Epoch < l.second() {
		return admission.Reported{Replayed: true, Verdict: codes.WithinBudget, Applied: true, Late: true,
			Period: l.period}, ""
	}
	if u.Sequence > 0 && u.Sequence <= l.last[u.Epoch] {
		if !late && u.Sequence == l.last[u.Epoch] {
			r := l.reply
			r.Replayed = true
			return r, ""
		}
		return admission.Reported{Replayed: true, Verdict: codes.WithinBudget, Applied: true, Late: late,
			Period: l.period}, ""
	}
	r, part, ok := v.reporting(l, u.Amounts)
	if !ok {
		return admission.Reported{}, "invalid_delta"
	}
	r.Late, r.Left, r.Period = late, flowfabric.Millis(v.left(now)), v.period
	b.roll(now)
	b.count(admission.Usage{Amounts: part}, id, r, again, now)
	if r.Applied {
		l.draw(b, u.Amounts)
	}
	if id != "" {
		if b.ledgers[id] == nil {
			delete(b.gone, id) // as if it were another one
		}
		b.ledgers[id] = l
		if r.Applied && l.need.stage != "" {
			delete(b.line, id)
		}
		l.add(u, r, b.period)
		if !r.Applied && u.Sequence > 0 && r.Action == admission.HardBlock {
			b.block(l, part, now)
		}
	}
	if u.Key != "" {
		b.reports[u.Key] = reportTruth{digest: digest, until: now + 86_400_000, refused: !r.Applied, reply: r}
	}
	return r, ""
}

// reporting is what becomes of a report: what is left of a share it has, and no more.
func (b *gateTruth) reporting(l *ledgerTruth, amounts map[string]int64) (admission.Reported, map[string]int64, bool) {
	if r, beyond := l.beyond(b, amounts); beyond {
		return r, amounts, true
	}
	part := l.uncounted(b, amounts)
	r, ok := b.judge(part)
	r.Action = b.spec.OnHard
	for _, x := range r.Breaches {
		if x.Hard && r.Action == admission.HardBlock && part[x.Dimension] > x.Limit {
			r.Action = admission.HardFail // no period has room for it
		}
	}
	return r, part, ok
}

// judge says what a report would do; not ok: a total would be too large.
func (b *gateTruth) judge(amounts map[string]int64) (r admission.Reported, ok bool) {
	r = admission.Reported{Verdict: codes.WithinBudget, Applied: true}
	dims := slices.Sorted(maps.Keys(amounts))
	for _, dim := range dims {
		if b.used[dim]+amounts[dim] > mostUsed {
			return r, false
		}
		if hard := b.spec.Limits[dim].Hard; hard > 0 && b.used[dim]+amounts[dim] > hard {
			r.Verdict, r.Applied = codes.HardBreach, b.spec.Warn
			r.Breaches = append(r.Breaches,
				admission.Breach{Dimension: dim, Hard: true, Used: b.used[dim], Limit: hard})
		}
	}
	if !r.Applied {
		return r, true
	}
	for i, x := range r.Breaches {
		r.Breaches[i].Used += amounts[x.Dimension]
	}
	for _, dim := range dims {
		soft, used := b.spec.Limits[dim].Soft, b.used[dim]+amounts[dim]
		if soft > 0 && used > soft {
			if r.Verdict == codes.WithinBudget {
				r.Verdict = codes.SoftBreach
			}
			r.Breaches = append(r.Breaches,
				admission.Breach{Dimension: dim, Used: used, Limit: soft, Crossed: b.told[dim] != b.period+1})
		}
	}
	return r, true
}

func (b *gateTruth) count(u admission.Usage, id string, r admission.Reported, again bool, now int64) {
	first, soft := "", false
	for _, x := range r.Breaches {
		if x.Hard && first == "" {
			first = x.Dimension
		}
		soft = soft || !x.Hard
		if x.Crossed {
			b.told[x.Dimension] = b.period + 1
			if b.spec.WarnSoft {
				b.log = append(b.log, "soft_limit "+id)
			}
		}
	}
	if first != "" && !again {
		b.hard, b.breached, b.dimension = b.hard+1, now, first
	}
	for dim, n := range u.Amounts {
		if _, limited := b.spec.Limits[dim]; limited && !r.Applied && !again {
			b.refused[dim] = min(mostUsed, b.refused[dim]+n)
		}
	}
	if soft {
		b.soft++
	}
	if !r.Applied {
		return
	}
	for dim, n := range u.Amounts {
		b.used[dim] = max(0, min(mostUsed, b.used[dim]+n))
	}
	if l := b.ledgers[id]; id != "" && (l == nil || l.forget == 0) {
		b.spent[id] = now
	}
}

// begin forgets what is of an earlier period.
func (l *ledgerTruth) begin(period uint64) {
	if l.period != period {
		l.used, l.undo = map[string]int64{}, nil
	}
	l.period = period
}

func (l *ledgerTruth) add(u admission.Usage, r admission.Reported, period uint64) {
	l.begin(period)
	if u.Sequence > 0 {
		l.last[u.Epoch] = u.Sequence
		if r.Late {
			l.late++
		} else {
			l.newest, l.reply, l.undo = u.Epoch, r, nil
			if r.Applied {
				l.undo = u.Amounts
			}
		}
	}
	if r.Applied {
		l.need = needTruth{}
		for dim, n := range u.Amounts {
			l.used[dim] = min(mostUsed, l.used[dim]+n) // the rest was adjusted away
		}
	}
}

// second is the second newest epoch of which there was a report.
func (l *ledgerTruth) second() (epoch uint64) {
	for e := range l.last {
		if e < l.newest {
			epoch = max(epoch, e)
		}
	}
	return epoch
}

// ledger is what an execution reported, unless it was purged and is forgotten.
func (b *gateTruth) ledger(id string, now int64) *ledgerTruth {
	if l := b.ledgers[id]; l != nil && l.forget != 0 && l.forget <= now {
		delete(b.ledgers, id)
	}
	return b.ledgers[id]
}

// purged has a ledger forgotten half an hour later.
func (b *gateTruth) purged(id string, now int64) {
	if b == nil {
		return
	}
	delete(b.spent, id)
	b.gone[id] = true
	if l := b.ledgers[id]; l != nil && l.forget == 0 {
		l.forget = now + 1_800_000
	}
}

// refund gives back what an execution reported in this period, unless after the attempt that ended.
func (b *gateTruth) refund(id, outcome, by string, epoch uint64, now int64) bool {
	if outcome == engine.NewsPurged {
		b.purged(id, now)
		return false
	}
	if b == nil || outcome != engine.NewsAsked && !slices.Contains(b.spec.Refund, outcome) {
		return false
	}
	b.roll(now)
	l := b.ledger(id, now)
	if l == nil || l.period != b.period || len(l.used) == 0 || epoch > 0 && l.newest > epoch {
		return false
	}
	for dim, n := range l.used {
		b.used[dim] = max(0, b.used[dim]-n)
	}
	l.used, l.undo = map[string]int64{}, nil
	for at, f := range l.over { // no late settlement corrects them any more
		if f.letter == "c" {
			f.letter = "r"
			l.over[at] = f
		}
	}
	if outcome != engine.NewsAsked {
		by = "outbox"
	}
	b.log = append(b.log, "release "+by)
	return true
}

// undo takes the last report of the newest holder back, if it was counted and not given back, from the period that it
// was counted in.
func (b *gateTruth) undo(u admission.Usage, now int64) (undone bool, wake []string, code string) {
	if b == nil {
		return false, nil, "gate_not_found"
	}
	l, call := b.ledger(u.Execution.String(), now), fmt.Sprint(u.Execution, u.Epoch, u.Sequence)
	if l == nil || l.newest != u.Epoch || l.last[u.Epoch] != u.Sequence || l.undo == nil {
		return false, b.again(call, now), ""
	}
	b.roll(now)
	freed := false
	for dim, n := range l.undo {
		n = min(n, l.used[dim])
		if l.used[dim] -= n; l.used[dim] == 0 {
			delete(l.used, dim)
		}
		if _, shared := l.share[dim]; shared {
			if back := l.refill(b, dim, n); l.live(b) {
				n -= back
			}
		}
		if l.period == b.period && n > 0 {
			b.used[dim], freed = max(0, b.used[dim]-n), true
		}
	}
	l.undo = nil
	if freed {
		wake = b.freed(now)
		b.keep(call, wake, now)
	}
	return true, wake, ""
}

func (b *gateTruth) adjust(by map[string]int64, who string,
	now int64) (used map[string]int64, wake []string, code string) {
	if b == nil {
		return nil, nil, "gate_not_found"
	}
	v := b.at(now)
	used = map[string]int64{}
	for dim, n := range by {
		if v.used[dim]+n > mostUsed {
			return nil, nil, "invalid_delta"
		}
		used[dim] = max(0, v.used[dim]+n)
	}
	b.roll(now)
	maps.Copy(b.used, used)
	b.log = append(b.log, "adjusted "+who)
	return used, b.freed(now), ""
}

func (b *gateTruth) reset(move bool, by string, now int64) (wake []string, code string) {
	if b == nil {
		return nil, "gate_not_found"
	}
	b.roll(now)
	next := b.next
	if move && b.spec.Reset > 0 {
		next = now + time.Duration(b.spec.Reset).Milliseconds()
	}
	b.begin(0, next, now, by)
	return b.waiting.take(256), ""
}

// room is how many holds, from the first, it has amounts for, and what keeps the next one; who asks then waits.
func (b *gateTruth) room(partition uint16, route uint64, holds []engine.Hold,
	now int64) (n int, short engine.Admitted) {
	v := b.at(now)
	n, short = len(holds), engine.Admitted{}
	if v.spec.OnHard != admission.HardAsk { // who does not start asks nobody for more
		short.Dimension = v.full()
	}
	var pause time.Duration
	if short.Dimension != "" {
		n, pause = v.sharing(holds), 30*time.Second
		if n == len(holds) && n > 0 {
			short.Dimension = ""
			b.saw("starts with its share")
		}
	} else if v.spec.CountsAmounts() && !v.spec.Warn && v.stuck == v.stage() {
		var who string
		var its map[string]int64
		looked := false
		for i, h := range holds {
			id := h.Execution.String()
			l := v.ledgers[id]
			if l == nil || l.need.stage != v.stage() {
				continue
			}
			l.need.at = now
			if !looked { // once for all of them
				who, its = v.first(now)
				looked = true
			}
			dim := v.lacking(l.need.amounts, nil, false)
			_, waits := v.line[id]
			if dim == "" && waits {
				if dim = v.beside(who, its, id, l.need.amounts); dim != "" {
					b.saw("asked behind the first in line")
				}
			}
			if dim != "" {
				short.Dimension, short.Refused, n, pause = dim, int(l.need.amounts[dim]), i, l.need.patience()
				if waits && v.lacking(l.need.amounts, nil, true) == "" && pause > time.Minute {
					pause = time.Minute
					b.saw("asks often enough to keep its place")
				}
				break
			}
		}
	}
	if short.Dimension == "" {
		if v.spec.CountsAmounts() {
			delete(b.waiting, fmt.Sprintf("%d %d", partition, route))
		}
		return n, short
	}
	b.waiting.add(now, partition, route)
	short.Why, short.Retry = "amount", pause
	if left := v.left(now); left > 0 {
		short.Retry = min(left, pause)
	}
	short.Used, short.Limit = int(v.used[short.Dimension]), int(v.spec.Limits[short.Dimension].Hard)
	return n, short
}

// record is the gate as it is read.
func (b *gateTruth) record(now int64) string {
	v := b.at(now)
	at := func(ms int64) int64 { return ms }
	var spenders []string
	for _, id := range slices.SortedFunc(maps.Keys(v.spent), func(x, y string) int {
		return cmp.Or(cmp.Compare(v.spent[y], v.spent[x]), strings.Compare(y, x))
	}) {
		l := v.ledgers[id]
		spenders = append(spenders, fmt.Sprint(id, " ", v.spent[id], " ", l.period, " ", l.late, " ", l.used))
	}
	used := map[string]int64{}
	maps.Copy(used, v.used)
	suspect := 0
	for _, at := range v.slots {
		suspect += bool01(at <= now)
	}
	return fmt.Sprint(v.spec, v.revision, at(v.created), v.changedBy, v.period, at(v.began), at(v.next), at(v.last),
		v.missed, v.hard, v.soft, at(v.breached), v.dimension, used, v.setAside(), v.refused, len(v.waiting),
		spenders, v.started(now), len(v.slots), suspect, len(v.forSlots), len(v.forRate), ordered(v.slots),
		v.log[max(0, len(v.log)-256):])
}

// gateText is the same of what was read.
func gateText(b admission.GateRecord) string {
	at := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	var spenders, log []string
	for _, s := range b.Spenders {
		spenders = append(spenders, fmt.Sprint(s.Execution, " ", at(s.At), " ", s.Period, " ", s.Late, " ", s.Used))
	}
	for _, x := range b.Audit {
		log = append(log, x.What+" "+x.By)
	}
	return fmt.Sprint(b.Gate, b.Revision, at(b.CreatedAt), b.ChangedBy, b.Period, at(b.PeriodBegan), at(b.NextReset),
		at(b.LastReset), b.Missed, b.HardBreaches, b.SoftBreaches, at(b.LastBreach), b.BreachedDim, b.Used,
		b.Reserved, b.Refused, b.ForAmounts, spenders, b.Started, b.Held, b.Suspect, b.ForSlots, b.ForRate, b.Holds,
		log)
}

// nameIn is a name whose gate is in a partition.
func nameIn(partition, of uint16, prefix string) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint(prefix, i); ids.GatePartition(name, of) == partition {
			return name
		}
	}
}
