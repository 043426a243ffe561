package model_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// TestQuotas does random things to quotas, on both servers, and to quotaTruth: every reply is the same, and so is
// every quota as it is read. 300 calls a history; 16 histories, or FLOWFABRIC_SOAK/25 (10,000: 120,000 calls).
func TestQuotas(t *testing.T) {
	randomly(t, func(t *testing.T, s *server, seed uint64, did map[string]int) { newQuotas(t, s, seed, did).run() },
		"put", "remove", "admit", "admit again", "release", "settle", "rate", "cap", "suspect", "quota_conflict",
		"woken", "freed")
}

type quotas struct {
	*bounds
	names []string // the first two in one partition
	truth map[string]*quotaTruth
	holds []engine.Hold // that somebody asked for
	epoch uint64
}

func newQuotas(t *testing.T, s *server, seed uint64, did map[string]int) *quotas {
	const of = limits.DefaultQuotaPartitions
	x := &quotas{truth: map[string]*quotaTruth{},
		names: []string{nameIn(3, of, "a"), nameIn(3, of, "b"), nameIn(5, of, "c")}}
	x.bounds = newBounds(t, s, seed, did, keys.QuotaRoot(3), keys.QuotaRoot(5))
	return x
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

func (x *quotas) run() {
	for range 300 {
		name := x.names[x.r.IntN(len(x.names))]
		if x.truth[name] == nil && x.chance(80) {
			x.put(name)
		}
		switch n := x.r.IntN(100); {
		case n < 40:
			x.admit(name)
		case n < 60:
			x.release()
		case n < 72:
			x.settle(name)
		case n < 77:
			x.put(name)
		case n < 78:
			x.remove(name)
		default:
			ms := []int64{1, 40, 900, 1000, 7_000, 61_000}[x.r.IntN(6)]
			x.pass(ms)
			x.say("%+d ms", ms)
		}
		if x.chance(15) {
			x.read()
		}
	}
	x.read()
}

func (x *quotas) put(name string) {
	x.t.Helper()
	q := admission.Quota{Name: name, Scope: []string{"", "team"}[x.r.IntN(2)], Cap: x.r.IntN(6), Rate: x.r.IntN(8),
		Jitter: flowfabric.Millis(time.Duration(x.r.IntN(3)*100) * time.Millisecond)}
	if x.chance(95) {
		q.Window = flowfabric.Millis(time.Duration(1+x.r.IntN(20)) * 500 * time.Millisecond)
	}
	if x.chance(30) {
		q.Rate = 0
	}
	expected := uint64(0)
	if b := x.truth[name]; b != nil {
		expected = b.revision
		if x.chance(20) {
			q = b.spec
		}
	}
	if x.chance(15) {
		expected = uint64(x.r.IntN(4))
	}
	if x.truth[name] == nil && expected > 0 {
		q.Window = flowfabric.Millis(time.Second) // of two refusals either may be told
	}
	x.say("put %+v at %d", q, expected)
	revision, already, wake, err := x.s.e.PutQuota(x.ctx, q, expected)
	truth, same, woken, code := x.truth[name].put(q, expected, "me", x.now)
	x.same(x.code(err), code)
	if code == "" {
		x.truth[name] = truth
		x.same(fmt.Sprint(revision, already, x.woken(wake)), fmt.Sprint(truth.revision, same, woken))
	}
	x.did["put"]++
}

func (x *quotas) remove(name string) {
	x.t.Helper()
	x.say("remove %s", name)
	already, err := x.s.e.RemoveQuota(x.ctx, name)
	x.no(err)
	x.same(already, x.truth[name] == nil)
	delete(x.truth, name)
	x.did["remove"]++
}

// some draws holds, each once: of those that were asked for before, or new ones.
func (x *quotas) some(n, known int) (out []engine.Hold) {
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

func (x *quotas) admit(name string) {
	x.t.Helper()
	list, route, ttl := x.some(1+x.r.IntN(4), 15), uint64(1+x.r.IntN(5)), time.Duration(1+x.r.IntN(10))*time.Second
	for again := true; again; again = x.chance(15) {
		x.say("admit %s for %d: %v, %s", name, route, holdTexts(list), ttl)
		got, err := x.s.e.Admit(x.ctx, name, partition, route, ttl, list)
		want, code := x.truth[name].admit(partition, route, ttl, holdTexts(list), x.now)
		x.same(x.code(err), code)
		x.same(fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
		x.did[got.Why]++
		x.did["suspect"] += len(got.Suspects)
		x.did["admit"]++
	}
	x.did["admit again"]++
	x.holds = append(x.holds, list...)
}

// release tells the two quotas that share a partition in one call, sometimes of holds that they do not have.
func (x *quotas) release() {
	x.t.Helper()
	var items []engine.Released
	var woken, names []string
	var want released
	for _, h := range x.some(1+x.r.IntN(6), 90) {
		items = append(items, engine.Released{Quota: x.names[x.r.IntN(2)], Hold: h, Ran: x.chance(60)})
	}
	x.say("release %v", items)
	got, wake, err := x.s.e.ReleaseHolds(x.ctx, items)
	x.no(err)
	for _, r := range items {
		want.add(x.truth[r.Quota].release(holdText(r.Hold), r.Ran, x.now))
		if !slices.Contains(names, r.Quota) {
			names = append(names, r.Quota)
		}
	}
	for _, name := range names {
		woken = x.truth[name].wake(x.now, woken)
	}
	x.freed(got, want)
	x.same(fmt.Sprint(x.woken(wake)), fmt.Sprint(woken))
	x.did["freed"] += got
	x.did["release"]++
}

func (x *quotas) settle(name string) {
	x.t.Helper()
	list := x.some(1+x.r.IntN(5), 90)
	states := make([]engine.HoldState, len(list))
	for i := range states {
		states[i] = []engine.HoldState{engine.HoldGone, engine.HoldHeld, engine.HoldKilled}[x.r.IntN(3)]
	}
	x.say("settle %s %v %v", name, holdTexts(list), states)
	freed, wake, err := x.s.e.SettleHolds(x.ctx, name, holdTexts(list), states)
	want, woken := x.truth[name].settle(holdTexts(list), states, x.now)
	x.no(err)
	x.freed(freed, want)
	x.same(fmt.Sprint(x.woken(wake)), fmt.Sprint(woken))
	x.did["settle"]++
}

func (x *quotas) freed(got int, want released) {
	x.t.Helper()
	if got < want.least || got > want.most {
		x.same(fmt.Sprint(got), fmt.Sprintf("%d to %d", want.least, want.most))
	}
}

func (x *quotas) read() {
	x.t.Helper()
	for _, name := range x.names {
		got, err := x.s.e.ReadQuota(x.ctx, name, 1000, 256)
		q := x.truth[name]
		if q == nil {
			x.same(x.code(err), "quota_policy_not_found")
			continue
		}
		x.no(err)
		x.same(quotaText(got), q.record(x.now))
	}
}
