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

// numbered is a reservation among those of an execution.
type numbered struct{ epoch, number uint64 }

// openTruth is one that is not over.
type openTruth struct {
	period  uint64
	last    string // the gate whose word decides; "" = this one
	amounts map[string]int64
	suspect int64 // when
}

// overTruth is how one ended: s settled, c charged in full, v void; and what counts of it.
type overTruth struct {
	letter  string
	period  uint64
	amounts map[string]int64
}

func (b *gateTruth) saw(what string) {
	if b.met != nil {
		b.met[what]++
	}
}

// setAside is what is reserved, as it is read: nil if nothing is.
func (b *gateTruth) setAside() (out map[string]int64) {
	for dim, n := range b.reserved {
		if n > 0 {
			put(&out, dim, n)
		}
	}
	return out
}

func put(to *map[string]int64, dim string, n int64) {
	if *to == nil {
		*to = map[string]int64{}
	}
	(*to)[dim] = n
}

// patience is how long one that waits pauses: twice as long after each refusal, up to an hour.
func (n needTruth) patience() time.Duration {
	return min(time.Hour, 30*time.Second<<min(n.times-1, 7))
}

// block notes what an execution waits for.
func (b *gateTruth) block(l *ledgerTruth, amounts map[string]int64, now int64) {
	if l.need.stage != b.stage() {
		l.need = needTruth{stage: b.stage()}
	}
	l.need.times, l.need.at, l.need.amounts, b.stuck = l.need.times+1, now, amounts, b.stage()
}

// lacking is the dimension, first by name, that has no room for amounts and for those of others; with back there is
// none in this period even when all that is reserved has been given back.
func (b *gateTruth) lacking(amounts, others map[string]int64, back bool) string {
	for _, dim := range slices.Sorted(maps.Keys(amounts)) {
		used := b.used[dim]
		if back {
			used -= b.reserved[dim]
		}
		if hard := b.spec.Limits[dim].Hard; hard > 0 && used+amounts[dim]+others[dim] > hard {
			return dim
		}
	}
	return ""
}

// first is who is first in line of those whom this period can serve. Who has not asked for two minutes is passed over.
// Who waits no more, or has not asked for twice as long as it pauses and a minute, leaves.
func (b *gateTruth) first(now int64) (id string, amounts map[string]int64) {
	if b.spec.Warn || b.stuck != b.stage() {
		return "", nil
	}
	for _, id := range ordered(b.line) {
		l := b.ledgers[id]
		if l == nil || l.need.stage != b.stage() {
			delete(b.line, id)
			continue
		}
		if now-l.need.at > 2*l.need.patience().Milliseconds()+60_000 {
			delete(b.line, id)
			b.saw("left the line")
			continue
		}
		if now-l.need.at > 120_000 {
			b.saw("passed over")
			continue
		}
		if b.lacking(l.need.amounts, nil, true) == "" {
			return id, l.need.amounts
		}
		b.saw("cannot be served")
	}
	return "", nil
}

// behind is the dimension in which amounts do not fit beside what the first in line waits for, "" if they do.
func (b *gateTruth) behind(id string, amounts map[string]int64, now int64) string {
	who, its := b.first(now)
	return b.beside(who, its, id, amounts)
}

// beside is the dimension in which amounts do not fit beside those of the first in line.
func (b *gateTruth) beside(who string, its map[string]int64, id string, amounts map[string]int64) string {
	if who == "" || who == id {
		return ""
	}
	dim := b.lacking(amounts, its, false)
	if dim == "" {
		b.saw("fits beside the first in line")
	}
	return dim
}

// quit takes an execution that has ended out of line, unless one of a later epoch has asked.
func (b *gateTruth) quit(n engine.News) bool {
	if b == nil || n.What == engine.NewsAsked {
		return false
	}
	id := n.Execution.String()
	l := b.ledgers[id]
	if l != nil && n.Epoch > 0 && l.newest > n.Epoch {
		return false
	}
	if l != nil {
		l.need = needTruth{}
	}
	_, stood := b.line[id]
	delete(b.line, id)
	if stood {
		b.saw("ended and left the line")
	}
	return stood
}

// said is an answer that changes nothing.
func (b *gateTruth) said(now int64) admission.Reported {
	v := b.at(now)
	return admission.Reported{Replayed: true, Verdict: codes.WithinBudget, Applied: true,
		Left: flowfabric.Millis(v.left(now)), Period: v.period}
}

// deaf is the answer of a gate that counts no amounts.
func (b *gateTruth) deaf(now int64) admission.Reported {
	return admission.Reported{Verdict: codes.WithinBudget, Period: b.at(now).period}
}

func wrongAmounts(amounts map[string]int64) bool {
	for _, n := range amounts {
		if n < 0 || n > mostUsed {
			return true
		}
	}
	return false
}

// reserve sets all of it aside or nothing.
func (b *gateTruth) reserve(x engine.Reservation, now int64) (r admission.Reported, wake []string, code string) {
	switch {
	case wrongAmounts(x.Amounts):
		return r, nil, "invalid_delta"
	case b == nil:
		return r, nil, "gate_not_found"
	case !b.spec.CountsAmounts():
		return b.deaf(now), nil, ""
	}
	v := b.at(now)
	for dim := range x.Amounts {
		if _, ok := v.spec.Limits[dim]; v.spec.StrictDimensions && !ok {
			return r, nil, "unknown_dimension"
		}
	}
	id, at := x.Execution.String(), numbered{x.Epoch, x.Number}
	l := b.ledger(id, now)
	if l == nil {
		l = newLedger()
	}
	if o, held := l.open[at]; held {
		if x.Epoch == 0 && !maps.Equal(l.share, x.Amounts) || x.Epoch > 0 && !maps.Equal(o.amounts, x.Amounts) {
			return r, nil, "idempotency_conflict"
		}
		b.saw("reserved before")
		return b.said(now), nil, ""
	}
	if _, over := l.over[at]; over || x.Epoch < l.newest {
		return r, nil, "stale_lease"
	}
	r, part, code := v.setting(l, x, now)
	if code != "" {
		return r, nil, code
	}
	b.roll(now)
	b.count(admission.Usage{Amounts: part}, id, r, false, now)
	if b.ledgers[id] == nil {
		delete(b.gone, id)
	}
	b.ledgers[id] = l
	return r, b.setAsideFor(l, x, part, r, now), ""
}

var shareOf = numbered{0, 1}

// live tells whether the gate counts what is left of a share as reserved.
func (l *ledgerTruth) live(b *gateTruth) bool {
	return l.share != nil && l.open[shareOf].period == b.period
}

// beyond is the refusal of amounts of which less is left in a share.
func (l *ledgerTruth) beyond(b *gateTruth, amounts map[string]int64) (r admission.Reported, is bool) {
	for _, dim := range slices.Sorted(maps.Keys(amounts)) {
		all, shared := l.share[dim]
		if left := l.open[shareOf].amounts[dim]; shared && amounts[dim] > left && !b.spec.Warn {
			b.saw("more than its share")
			return admission.Reported{Verdict: codes.HardBreach, Action: admission.HardReject,
				Breaches: []admission.Breach{{Dimension: dim, Hard: true, Used: all - left, Limit: all}}}, true
		}
	}
	return r, false
}

// uncounted is what of amounts the gate does not count yet.
func (l *ledgerTruth) uncounted(b *gateTruth, amounts map[string]int64) map[string]int64 {
	out := maps.Clone(amounts)
	for dim, n := range amounts {
		if _, shared := l.share[dim]; shared {
			if l.live(b) {
				n = max(0, n-l.open[shareOf].amounts[dim])
			}
			if out[dim] = n; n == 0 {
				delete(out, dim)
			}
		}
	}
	return out
}

// draw takes amounts out of a share.
func (l *ledgerTruth) draw(b *gateTruth, amounts map[string]int64) {
	for dim, n := range amounts {
		if _, shared := l.share[dim]; shared {
			l.refill(b, dim, -min(n, l.open[shareOf].amounts[dim]))
			b.saw("drawn from a share")
		}
	}
}

// refill puts so much back into a share, but no more than it had, or takes it out, and returns what of it the gate is
// to count less, or more.
func (l *ledgerTruth) refill(b *gateTruth, dim string, n int64) int64 {
	rest := l.open[shareOf].amounts
	n = max(-rest[dim], min(n, l.share[dim]-rest[dim]))
	rest[dim] += n
	if l.live(b) {
		b.reserved[dim] += n
	}
	return n
}

// sharing counts the first holds whose executions have something left of a share of all that is used up.
func (b *gateTruth) sharing(holds []engine.Hold) int {
	for i, h := range holds {
		l := b.ledgers[h.Execution.String()]
		for dim, limit := range b.spec.Limits {
			if limit.Hard > 0 && b.used[dim] >= limit.Hard &&
				(l == nil || !l.live(b) || l.open[shareOf].amounts[dim] == 0) {
				return i
			}
		}
	}
	return len(holds)
}

// setting is what becomes of a new reservation.
func (b *gateTruth) setting(l *ledgerTruth, x engine.Reservation,
	now int64) (r admission.Reported, part map[string]int64, code string) {
	r, part, ok := b.reporting(l, x.Amounts)
	if !ok {
		return r, nil, "invalid_delta"
	}
	r.Left, r.Period = flowfabric.Millis(b.left(now)), b.period
	if r.Applied {
		r.Action = b.spec.OnHard
	} else {
		return r, part, ""
	}
	if len(l.open) > 0 {
		asked := *b // nobody looks at the line now
		asked.line, asked.met = maps.Clone(b.line), nil
		if asked.behind(x.Execution.String(), part, now) != "" {
			b.saw("passes the line")
		}
		return r, part, ""
	}
	if dim := b.behind(x.Execution.String(), part, now); dim != "" {
		b.saw("waits behind the first in line")
		r.Applied, r.Verdict = false, codes.HardBreach
		r.Breaches = []admission.Breach{{Dimension: dim, Hard: true, Used: b.used[dim],
			Limit: b.spec.Limits[dim].Hard}}
	}
	return r, part, ""
}

// setAsideFor notes in the ledger of an execution what the gate answered, and returns who is woken. part is what the
// gate did not count yet.
func (b *gateTruth) setAsideFor(l *ledgerTruth, x engine.Reservation, part map[string]int64, r admission.Reported,
	now int64) []string {
	id, waited := x.Execution.String(), l.need.stage != ""
	l.begin(b.period)
	second := l.second()
	if x.Epoch > l.newest {
		second = l.newest
	}
	l.forgetBelow(b, x)
	l.forgetOld(b, x.Epoch, second, now)
	if x.Epoch > l.newest {
		l.newest, l.last[x.Epoch], l.reply, l.undo = x.Epoch, 0, admission.Reported{}, nil
	}
	if !r.Applied {
		b.saw("not reserved")
		if r.Action == admission.HardBlock && x.Epoch > 0 {
			b.block(l, part, now)
			b.line[id] = max(0, x.Since.UnixMilli()) - int64(x.Priority)*1_000_000_000_000
			b.saw("stands in line")
		}
		return nil
	}
	b.saw("reserved")
	l.need = needTruth{}
	if waited {
		delete(b.line, id)
	}
	l.draw(b, x.Amounts)
	l.open[numbered{x.Epoch, x.Number}] = openTruth{period: b.period, last: x.Last, amounts: maps.Clone(x.Amounts),
		suspect: now + 60_000}
	if x.Epoch == 0 {
		l.share = x.Amounts
	}
	for dim, n := range x.Amounts {
		b.reserved[dim] += n
	}
	if waited {
		return b.freed(now) // those behind it
	}
	return nil
}

// forgetBelow forgets how those of the lease ended that nobody asks about.
func (l *ledgerTruth) forgetBelow(b *gateTruth, x engine.Reservation) {
	maps.DeleteFunc(l.over, func(at numbered, _ overTruth) bool {
		gone := at.epoch == x.Epoch && at.number < x.Below
		if gone {
			b.saw("forgotten")
		}
		return gone
	})
}

// forgetOld forgets how those ended whose epoch was neither of the newest two for ten minutes.
func (l *ledgerTruth) forgetOld(b *gateTruth, newest, second uint64, now int64) {
	if newest <= l.mark || now-l.marked < 600_000 {
		return
	}
	l.low = max(l.low, min(l.mark, second))
	l.mark, l.marked = newest, now
	maps.DeleteFunc(l.over, func(at numbered, _ overTruth) bool {
		if at.epoch < l.low {
			b.saw("forgotten with its epoch")
		}
		return at.epoch < l.low
	})
}

// end is a call that ends a reservation: letter is s, c or v.
func (b *gateTruth) end(x engine.Reservation, letter string,
	now int64) (r admission.Reported, wake []string, code string) {
	switch {
	case wrongAmounts(x.Amounts):
		return r, nil, "invalid_delta"
	case b == nil:
		return r, nil, "gate_not_found"
	}
	l, at := b.ledger(x.Execution.String(), now), numbered{x.Epoch, x.Number}
	if l == nil {
		l = newLedger()
	}
	o, held := l.open[at]
	f, done := l.over[at]
	if !b.spec.CountsAmounts() && !held && !done {
		return b.deaf(now), nil, ""
	}
	if x.Epoch == 0 && !held {
		return b.said(now), b.at(now).freed(now), ""
	}
	if x.Epoch == 0 {
		letter = "v"
		b.saw("a share is over")
	}
	if !held && !done && x.Epoch < l.low {
		b.saw("ended too late")
		r = b.said(now)
		r.Late = true
		return r, b.at(now).freed(now), ""
	}
	if done && (letter != "s" || f.letter == "s" || f.letter == "r") {
		b.saw("ended before")
		if f.letter == "r" {
			b.saw("given back before it is corrected")
		}
		return b.said(now), b.at(now).freed(now), ""
	}
	b.roll(now)
	if b.ledgers[x.Execution.String()] == nil {
		delete(b.gone, x.Execution.String())
	}
	used := map[string]int64{}
	for dim, n := range x.Amounts {
		if _, ok := b.spec.Limits[dim]; letter == "s" && (ok || !b.spec.StrictDimensions) {
			used[dim] = n
		}
	}
	period, reserved := b.period, map[string]int64(nil)
	switch {
	case held:
		period, reserved = o.period, o.amounts
		b.saw("ended " + letter)
	case done:
		period, reserved = f.period, f.amounts
		b.saw("ended after " + f.letter)
	default:
		b.saw("ended without a reservation " + letter)
	}
	if letter == "c" {
		used = reserved
	}
	if held && period == b.period {
		for dim, n := range reserved {
			b.reserved[dim] -= n
		}
	}
	r = b.correct(l, x, correction{used: used, reserved: reserved, held: held, done: done,
		now: period == b.period}, now)
	l.forgetBelow(b, x)
	l.forgetOld(b, l.newest, l.second(), now)
	delete(l.open, at)
	if x.Epoch == 0 {
		l.share = nil
	} else {
		l.over[at] = overTruth{letter, period, used}
	}
	return r, b.freed(now), ""
}

// correction is what was used instead of what was reserved, or charged before; now: in this period.
type correction struct {
	used, reserved  map[string]int64
	held, done, now bool
}

// correct counts it. What was used beyond what was reserved in an earlier period is of this one. What was given back
// meanwhile is not given back twice.
func (b *gateTruth) correct(l *ledgerTruth, x engine.Reservation, c correction, now int64) admission.Reported {
	id := x.Execution.String()
	by, own, more := map[string]int64{}, map[string]int64{}, map[string]int64{}
	all := maps.Clone(c.used)
	if all == nil {
		all = map[string]int64{}
	}
	maps.Copy(all, c.reserved)
	for dim := range all {
		n := c.used[dim] - c.reserved[dim]
		if !c.now {
			b.saw("ended in a later period")
			n = max(0, n)
		}
		by[dim], own[dim] = n, n
		if c.held && c.now {
			own[dim] = c.used[dim]
		}
		if c.done && c.now && l.period == b.period {
			by[dim] = max(n, -l.used[dim])
		}
		if _, shared := l.share[dim]; shared && x.Epoch > 0 {
			if c.now && l.live(b) {
				by[dim] += l.refill(b, dim, -by[dim])
			} else {
				l.refill(b, dim, c.reserved[dim]-c.used[dim])
			}
		}
		if by[dim] > 0 {
			more[dim] = by[dim]
			b.saw("more than was reserved")
		}
	}
	r, ok := b.judge(more)
	if !ok {
		r = admission.Reported{Verdict: codes.WithinBudget}
	}
	r.Applied, r.Left, r.Period = true, flowfabric.Millis(b.left(now)), b.period
	if x.Epoch == 0 {
		id = "" // it has used nothing
	}
	b.count(admission.Usage{Amounts: by}, id, r, false, now)
	l.begin(b.period)
	for dim, n := range own {
		if x.Epoch > 0 {
			l.used[dim] = max(0, min(mostUsed, l.used[dim]+n))
		}
	}
	b.ledgers[x.Execution.String()] = l
	return r
}

// suspects are those of gates whose leases may be over, as the partition lists them.
func suspects(truth map[string]*gateTruth, names []string, now int64) (out []string) {
	at := map[string]int64{}
	for _, name := range names {
		b := truth[name]
		if b == nil {
			continue
		}
		for id, l := range b.ledgers {
			for n, o := range l.open {
				if o.suspect <= now {
					at[fmt.Sprintf("%s %s:%d.%d %s", name, strings.Replace(id, "-", ".", 1), n.epoch, n.number,
						o.last)] = o.suspect
				}
			}
		}
	}
	out = slices.SortedFunc(maps.Keys(at), func(x, y string) int {
		return cmp.Or(cmp.Compare(at[x], at[y]), strings.Compare(x, y))
	})
	return out[:min(64, len(out))]
}

// suspectText is one as it was listed.
func suspectText(x engine.SuspectReservation) string {
	return fmt.Sprintf("%s %d.%s:%d.%d %s", x.Gate, x.Execution.Partition(), ids.UUID(x.Execution), x.Epoch, x.Number,
		x.Last)
}

// resolve ends one as the gate says whose word decides.
func resolve(truth map[string]*gateTruth, x engine.SuspectReservation,
	now int64) (wake []string, how, code string) {
	last := x.Last
	if last == "" {
		last = x.Gate
	}
	r := engine.Reservation{Gate: x.Gate, Execution: x.Execution, Epoch: x.Epoch, Number: x.Number}
	if x.Epoch == 0 {
		_, wake, code = truth[x.Gate].end(r, "v", now)
		return wake, "v", code
	}
	how = "c"
	var used map[string]int64
	if d := truth[last]; d != nil {
		letter := "v"
		if l := d.ledger(x.Execution.String(), now); l != nil {
			if _, held := l.open[numbered{x.Epoch, x.Number}]; held {
				letter = "c"
			}
		}
		_, wake, _ = d.end(r, letter, now)
		if l := d.ledgers[x.Execution.String()]; l != nil {
			if f, ok := l.over[numbered{x.Epoch, x.Number}]; ok {
				how, used = f.letter, f.amounts
			}
		}
		if last == x.Gate {
			return wake, how, ""
		}
	}
	if how == "r" { // it was charged; what it gave back since is of its own refunds
		how = "c"
	}
	if how == "s" {
		r.Amounts = used
	}
	_, more, code := truth[x.Gate].end(r, how, now)
	return append(wake, more...), how, code
}

// reserves tells whether an execution has reserved something, or stands in line.
func (b *gateTruth) reserves(id string) bool {
	if b == nil {
		return false
	}
	_, waits := b.line[id]
	l := b.ledgers[id]
	return waits || l != nil && len(l.open) > 0
}
