package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// reserving does something about reservations: of a gate if they are new, else of any.
func (x *meters) reserving(name string) {
	x.t.Helper()
	switch n := x.r.IntN(100); {
	case n < 30:
		x.reserve(name)
	case n < 34:
		x.crowd(name)
	case n < 37:
		x.share(name)
	case n < 39:
		x.refundCharged()
	case n < 45:
		x.reserveAgain()
	case n < 68:
		x.settleReserved()
	case n < 76:
		x.release()
	case n < 86:
		x.resolve()
	case n < 92:
		x.suspects()
	case n < 96:
		x.admit(name, x.ids[x.r.IntN(len(x.ids))])
	case n < 98:
		x.grow(name)
	default:
		x.pass([]int64{1, 1000, 29_999, 30_001, 59_999, 60_000, 120_000, 120_001}[x.r.IntN(8)])
	}
}

// deaf tells whether the engine may have answered for a gate that counts nothing, as it remembers: it looks at nothing
// then, and the period is not told.
func (x *meters) deaf(name, said string) bool {
	b := x.truth[name]
	return b != nil && !b.spec.CountsAmounts() && said == ""
}

func (x *meters) lowered(b *gateTruth) {
	for dim, n := range b.reserved {
		hard := b.spec.Limits[dim].Hard
		x.did["lowered below what is reserved"] += bool01(hard > 0 && hard < n)
	}
}

// crowd has executions ask for what is near the room that there is: one for some of it, others for more than is left,
// so that they stand in line, and one for a little.
func (x *meters) crowd(name string) {
	x.t.Helper()
	b := x.truth[name]
	if b == nil {
		return
	}
	hard := b.spec.Limits["tokens"].Hard
	room := int(hard - b.at(x.now).used["tokens"])
	if hard == 0 || room < 10 {
		return
	}
	order := x.r.Perm(len(x.ids))
	for i, share := range []int{40 + x.r.IntN(40), 50 + x.r.IntN(60), x.r.IntN(120), 5 + x.r.IntN(20)} {
		if x.chance(85) {
			x.reserveFor(name, x.ids[order[i]], map[string]int64{"tokens": int64(1 + room*share/100)})
		}
	}
	if x.chance(10) {
		x.pass(120_000 + int64(x.r.IntN(2)))
	}
	for range x.r.IntN(4) {
		x.admit(name, x.ids[x.r.IntN(len(x.ids))])
	}
}

// grow has an execution reserve under several leases, ten minutes apart or nearly so, and say what it used under the
// first one at once, and again at last.
func (x *meters) grow(name string) {
	x.t.Helper()
	id, first := x.ids[x.r.IntN(len(x.ids))], len(x.asked)
	for n := range 4 {
		x.epochs[id]++
		x.reserveFor(name, id, map[string]int64{"tokens": int64(n)})
		if len(x.asked) == first { // it was purged
			return
		}
		if n == 0 {
			x.settleOf(x.asked[first])
		}
		x.pass(600_000 - int64(x.r.IntN(2)))
	}
	x.settleOf(x.asked[first])
}

// refundCharged charges an open reservation, gives back what the execution used, and settles it late.
func (x *meters) refundCharged() {
	x.t.Helper()
	for _, q := range x.asked[max(0, len(x.asked)-25):] {
		b := x.truth[q.Gate]
		if b == nil || q.Gate == x.names[2] || b.ledgers[q.Execution.String()] == nil {
			continue
		}
		if _, open := b.ledgers[q.Execution.String()].open[numbered{q.Epoch, q.Number}]; !open {
			continue
		}
		x.resolved(engine.SuspectReservation{Hold: engine.Hold{Execution: q.Execution, Epoch: q.Epoch}, Gate: q.Gate,
			Number: q.Number})
		if x.chance(70) {
			x.tell([]engine.News{{Gate: q.Gate, Execution: q.Execution, What: engine.NewsAsked}})
		}
		x.settleOf(q)
		return
	}
}

// share sets a share aside for an execution that is not made yet, and has it use some of that, or more.
func (x *meters) share(name string) {
	x.t.Helper()
	id := x.id()
	if x.ids = append(x.ids, id); len(x.ids) > 8 {
		x.ids = slices.Delete(x.ids, 4, 5)
	}
	x.epochs[id] = 10
	amounts := map[string]int64{"tokens": int64(x.r.IntN(100))}
	if x.chance(30) {
		amounts["calls"] = int64(x.r.IntN(9))
	}
	b := x.truth[name]
	if b != nil && x.chance(60) { // all that there is
		if room := b.spec.Limits["tokens"].Hard - b.at(x.now).used["tokens"]; room > 0 {
			amounts["tokens"] = room
		}
	}
	q := engine.Reservation{Gate: name, Execution: id, Number: 1, Amounts: amounts}
	x.asked = append(x.asked, q)
	x.sendReservation(q)
	if x.chance(70) {
		x.admitted(name, []engine.Hold{{Execution: id, Epoch: 10}}, 1, time.Second)
	}
	for range x.r.IntN(3) {
		x.reserveFor(name, id, map[string]int64{"tokens": int64(x.r.IntN(70))})
	}
	if x.chance(20) {
		q.Amounts = maps.Clone(amounts)
		q.Amounts["tokens"] += int64(x.r.IntN(2))
		x.sendReservation(q)
	}
}

// reserve makes a new reservation.
func (x *meters) reserve(name string) {
	x.t.Helper()
	amounts := map[string]int64{}
	for len(amounts) == 0 {
		for _, dim := range meterDims {
			if x.chance(50) {
				amounts[dim] = int64(x.r.IntN([]int{20, 60, 140}[x.r.IntN(3)]))
			}
		}
	}
	switch x.r.IntN(60) {
	case 0:
		amounts["calls"] = -1
	case 1:
		amounts["calls"] = mostUsed
	case 2:
		amounts["other"] = 5
	}
	x.reserveFor(name, x.ids[x.r.IntN(len(x.ids))], amounts)
}

// reserveFor makes it for an execution. Who asks was not purged.
func (x *meters) reserveFor(name string, id flowfabric.ExecutionID, amounts map[string]int64) {
	x.t.Helper()
	if b := x.truth[name]; b != nil && b.gone[id.String()] {
		return
	}
	if x.chance(6) {
		x.epochs[id] += uint64(1 + x.r.IntN(2))
	}
	x.number++
	q := engine.Reservation{Gate: name, Execution: id, Epoch: x.epochs[id], Number: x.number,
		Priority: x.r.IntN(4) - 1, Since: time.UnixMilli(begin + int64(x.r.IntN(5))), Amounts: amounts}
	if x.chance(8) {
		q.Epoch--
	}
	if x.chance(30) {
		q.Below = max(3, q.Number) - uint64(x.r.IntN(4))
	}
	if x.chance(35) {
		q.Last = x.names[x.r.IntN(len(x.names))]
	}
	x.asked = append(x.asked, q)
	x.sendReservation(q)
	if b := x.truth[name]; b != nil {
		if l := b.ledgers[id.String()]; l != nil && l.need.stage == b.stage() && x.chance(60) {
			x.admit(name, id) // it is back in its queue
		}
	}
}

// reserveAgain makes one of the last once more, sometimes with other amounts, of another gate, or of an older lease.
func (x *meters) reserveAgain() {
	if len(x.asked) == 0 {
		return
	}
	q := x.recent()
	if b := x.truth[q.Gate]; b != nil && b.gone[q.Execution.String()] {
		return
	}
	switch x.r.IntN(8) {
	case 0:
		q.Amounts = map[string]int64{"tokens": 1}
	case 1:
		q.Gate = x.names[x.r.IntN(len(x.names))]
		if b := x.truth[q.Gate]; b != nil && b.gone[q.Execution.String()] {
			return
		}
	}
	x.sendReservation(q)
}

// recent is one of the last that was asked for, mostly one that is open.
func (x *meters) recent() engine.Reservation {
	q := x.asked[max(0, len(x.asked)-1-x.r.IntN(25))]
	for range 6 {
		if b := x.truth[q.Gate]; b != nil && b.ledgers[q.Execution.String()] != nil {
			if _, open := b.ledgers[q.Execution.String()].open[numbered{q.Epoch, q.Number}]; open {
				break
			}
		}
		q = x.asked[max(0, len(x.asked)-1-x.r.IntN(25))]
	}
	return q
}

func (x *meters) sendReservation(q engine.Reservation) {
	x.t.Helper()
	x.say("reserve %+v", q)
	got, wake, err := x.s.e.Reserve(x.ctx, q)
	want, woken, code := x.truth[q.Gate].reserve(q, x.now)
	said := x.code(err)
	if x.truth[q.Gate] == nil && said == "gate_not_found" {
		code = said // of two refusals either may be told
	}
	if x.deaf(q.Gate, said) {
		code, got, want = said, admission.Reported{}, admission.Reported{}
	}
	x.same(said, code)
	if code == "" {
		x.same(fmt.Sprintf("%+v %v", got, x.woken(wake)), fmt.Sprintf("%+v %v", want, woken))
	}
	x.did["reserve"]++
}

// settleReserved settles a reservation, mostly an open one.
func (x *meters) settleReserved() {
	x.t.Helper()
	if len(x.asked) == 0 {
		return
	}
	q := x.recent()
	if x.chance(10) {
		q = x.asked[x.r.IntN(len(x.asked))] // of an epoch long ago
	}
	x.settleOf(q)
}

// settleOf settles one with less than was reserved, all of it, or more.
func (x *meters) settleOf(q engine.Reservation) {
	x.t.Helper()
	if x.chance(6) {
		q.Number += 100_000 // of which nothing was reserved
	}
	q.Amounts = maps.Clone(q.Amounts)
	for _, dim := range slices.Sorted(maps.Keys(q.Amounts)) {
		switch n := q.Amounts[dim]; {
		case n < 0 || n == mostUsed || x.chance(20):
			delete(q.Amounts, dim)
		case x.chance(60):
			q.Amounts[dim] = int64(x.r.IntN(int(n) + 1))
		case x.chance(40):
			q.Amounts[dim] = n + int64(x.r.IntN(30))
		}
	}
	if x.chance(10) {
		q.Amounts[meterDims[x.r.IntN(3)]] = int64(x.r.IntN(9))
	}
	if x.chance(1) {
		q.Amounts["tokens"] = mostUsed
	}
	if q.Epoch == 0 { // a share is given back
		q.Amounts = nil
		_, _, err := x.s.e.Settle(x.ctx, q)
		x.same(x.code(err), "invalid_input")
		return
	}
	x.say("settle %+v", q)
	x.did["settle reserved"]++
	got, wake, err := x.s.e.Settle(x.ctx, q)
	want, woken, code := x.truth[q.Gate].end(q, "s", x.now)
	x.same(x.code(err), code)
	if code == "" {
		x.same(fmt.Sprintf("%+v %v", got, x.woken(wake)), fmt.Sprintf("%+v %v", want, woken))
	}
}

func (x *meters) release() {
	x.t.Helper()
	if len(x.asked) == 0 {
		return
	}
	q := x.recent()
	if x.chance(6) && q.Epoch > 0 {
		q.Number += 200_000
	}
	q.Amounts = nil
	x.say("release %+v", q)
	x.did["release reserved"]++
	_, wake, err := x.s.e.Unreserve(x.ctx, q)
	_, woken, code := x.truth[q.Gate].end(q, "v", x.now)
	x.same(x.code(err), code)
	x.same(fmt.Sprint(x.woken(wake)), fmt.Sprint(woken))
}

// suspects lists what a partition wants to be asked about, and vouches for some of it.
func (x *meters) suspects() {
	x.t.Helper()
	for i, names := range [][]string{x.names[:2], x.names[2:]} {
		p := uint16(3 + 2*i)
		if !slices.ContainsFunc(names, func(name string) bool { return x.truth[name] != nil }) {
			continue
		}
		x.say("suspects of %d", p)
		list, err := x.s.e.Suspects(x.ctx, p)
		x.no(err)
		var got []string
		for _, s := range list {
			got = append(got, suspectText(s))
		}
		x.same(strings.Join(got, "\n"), strings.Join(suspects(x.truth, names, x.now), "\n"))
		x.did["suspected"] += len(list)
		for _, s := range list {
			if x.chance(30) {
				x.vouch(s)
			} else if x.chance(60) {
				x.resolved(s)
			}
		}
	}
}

func (x *meters) vouch(s engine.SuspectReservation) {
	x.t.Helper()
	x.say("vouch %s", suspectText(s))
	x.no(x.s.e.Vouch(x.ctx, s))
	l, at := x.truth[s.Gate].ledgers[s.Execution.String()], numbered{s.Epoch, s.Number}
	o, open := l.open[at]
	if open { // a resolution of another gate may have ended it meanwhile
		o.suspect = x.now + 60_000
		l.open[at] = o
	}
	x.did["vouched"]++
}

// resolve ends a reservation as if its lease were over.
func (x *meters) resolve() {
	if len(x.asked) == 0 {
		return
	}
	q := x.recent()
	s := engine.SuspectReservation{Hold: engine.Hold{Execution: q.Execution, Epoch: q.Epoch}, Gate: q.Gate,
		Number: q.Number, Last: q.Last}
	if x.chance(10) {
		s.Last = x.names[x.r.IntN(len(x.names))]
	}
	x.resolved(s)
}

func (x *meters) resolved(s engine.SuspectReservation) {
	x.t.Helper()
	x.say("resolve %s", suspectText(s))
	b := x.truth[s.Gate]
	if b != nil && !b.spec.CountsAmounts() && b.ledgers[s.Execution.String()] != nil &&
		len(b.ledgers[s.Execution.String()].open) > 0 {
		x.did["ended though it counts no more"]++ // rare
	}
	wake, err := x.s.e.Resolve(x.ctx, s)
	woken, how, code := resolve(x.truth, s, x.now)
	x.same(x.code(err), code)
	if code == "" {
		x.same(fmt.Sprint(x.woken(wake)), fmt.Sprint(woken))
	}
	x.did["resolved "+how]++
	x.did["resolved by another gate"] += bool01(s.Last != "" && s.Last != s.Gate)
}
