package model_test

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// quotaTruth is a quota in plain Go, with holds that no time frees.
type quotaTruth struct {
	spec      admission.Quota
	revision  uint64
	created   int64
	changedBy string
	window    map[string]int64 // when a hold started
	slots     map[string]int64 // when it becomes suspect
	forSlots  waitlist
	forRate   waitlist
	book      []string
}

func (q *quotaTruth) put(s admission.Quota, expected uint64, by string,
	now int64) (out *quotaTruth, already bool, wake []string, code string) {
	switch {
	case s.Rate < 0 || s.Cap < 0 || s.Window < 0 || s.Rate > 0 && s.Window == 0:
		return q, false, nil, "invalid_quota_spec"
	case q == nil && expected > 0:
		return q, false, nil, "quota_policy_not_found"
	case q != nil && q.spec == s:
		return q, true, append(q.forSlots.take(256), q.forRate.take(256)...), ""
	case q != nil && expected != q.revision:
		return q, false, nil, "quota_conflict"
	case q == nil:
		q = &quotaTruth{created: now, window: map[string]int64{}, slots: map[string]int64{}, forSlots: waitlist{},
			forRate: waitlist{}}
		q.book = append(q.book, "created "+by)
	default:
		wake = append(q.forSlots.take(256), q.forRate.take(256)...)
		q.book = append(q.book, "changed "+by)
	}
	q.spec, q.revision, q.changedBy = s, q.revision+1, by
	return q, false, wake, ""
}

func (q *quotaTruth) started(now int64) (n int) {
	if q.spec.Rate == 0 {
		return 0
	}
	for _, at := range q.window {
		n += bool01(at > now-time.Duration(q.spec.Window).Milliseconds())
	}
	return n
}

// admit lets the first ones start, as many as there is room for.
func (q *quotaTruth) admit(partition uint16, route uint64, ttl time.Duration, holds []string,
	now int64) (a engine.Admitted, code string) {
	if q == nil {
		return a, "quota_policy_not_found"
	}
	maps.DeleteFunc(q.window, func(_ string,
		at int64) bool {
		return at <= now-time.Duration(q.spec.Window).Milliseconds()
	})
	known := q.window
	if q.spec.Cap > 0 {
		known = q.slots
	}
	started, held := q.started(now), len(q.slots)
	for _, hold := range holds {
		if _, ok := known[hold]; !ok {
			if a.Why = q.full(started, held); a.Why != "" {
				break
			}
			// also for one that is in the window since a release, of which nothing comes any more
			started, held = started+1, held+1
			if _, before := q.window[hold]; q.spec.Rate > 0 && !before {
				q.window[hold] = now
			}
			if q.spec.Cap > 0 {
				q.slots[hold] = now + ttl.Milliseconds()
			}
		}
		a.Count++
	}
	who := fmt.Sprintf("%d %d", partition, route)
	switch a.Why {
	case "":
		delete(q.forRate, who)
		if len(holds) == 0 { // he opens his route now; what is admitted may be of a route that was closed meanwhile
			delete(q.forSlots, who)
		}
	case "rate":
		q.forRate.add(now, partition, route)
		a.Retry = q.retry(who, now)
	case "cap":
		order := ordered(q.slots)
		for _, hold := range order[:min(16, len(order))] {
			if q.slots[hold] <= now {
				a.Suspects = append(a.Suspects, hold)
			}
		}
		pause := max(250, min(10_000, q.slots[order[0]]-now))
		a.Retry = time.Duration(pause+jitter(who, now, 750)) * time.Millisecond
		q.forSlots.add(now, partition, route)
	}
	return a, ""
}

// retry is for the k-th who came within 30 s when so many starts have left the window that there is room for k.
func (q *quotaTruth) retry(who string, now int64) time.Duration {
	k := 0
	for _, at := range q.forRate {
		k += bool01(at > now-30_000)
	}
	starts, window := slices.Sorted(maps.Values(q.window)), time.Duration(q.spec.Window).Milliseconds()
	place := max(1, min(len(starts), len(starts)-q.spec.Rate+k))
	return time.Duration(max(min(100, window), starts[place-1]+window-now)+
		jitter(who, now, max(time.Duration(q.spec.Jitter).Milliseconds(), min(1000, window/10)))) * time.Millisecond
}

func (q *quotaTruth) full(started, held int) string {
	if q.spec.Rate > 0 && started >= q.spec.Rate {
		return "rate"
	}
	if q.spec.Cap > 0 && held >= q.spec.Cap {
		return "cap"
	}
	return ""
}

// jitter depends on who asks and when, so that it can be foretold.
func jitter(who string, now, limit int64) int64 {
	if limit <= 0 {
		return 0
	}
	sum := sha1.Sum([]byte(who + text(now)))
	n, _ := strconv.ParseInt(hex.EncodeToString(sum[:])[:7], 16, 64)
	return n % limit
}

func ordered(set map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(set), func(a, b string) int {
		return cmp.Or(cmp.Compare(set[a], set[b]), strings.Compare(a, b))
	})
}

// released counts holds that were forgotten. A start that is older than its window may be there or not: the list of
// starts expires with its server's clock, which tests do not move everywhere.
type released struct{ least, most int }

// release forgets a hold, and its start if it never ran.
func (q *quotaTruth) release(hold string, ran bool, now int64) (n released) {
	if q == nil {
		return n
	}
	_, freed := q.slots[hold]
	delete(q.slots, hold)
	at, known := q.window[hold]
	if !ran {
		delete(q.window, hold)
	}
	undone := !ran && known
	n.most = bool01(freed || undone)
	n.least = bool01(freed || undone && at > now-time.Duration(q.spec.Window).Milliseconds())
	return n
}

func (n *released) add(more released) { n.least, n.most = n.least+more.least, n.most+more.most }

// wake is who may come now, for starts and for slots: some more than can, for not everybody still has work, but at
// most 256 with those of the same call.
func (q *quotaTruth) wake(now int64, before []string) []string {
	if q == nil {
		return before
	}
	take := func(w waitlist, free int) {
		if free > 0 {
			before = append(before, w.take(min(free+2, 256-len(before)))...)
		}
	}
	free := 256
	if q.spec.Cap > 0 {
		free = q.spec.Cap - len(q.slots)
	}
	if q.spec.Rate > 0 {
		take(q.forRate, min(free, q.spec.Rate-q.started(now)))
	}
	take(q.forSlots, free)
	return before
}

func (q *quotaTruth) settle(holds []string, states []engine.HoldState, now int64) (freed released, wake []string) {
	if q == nil {
		return freed, nil
	}
	for i, hold := range holds {
		if states[i] != engine.HoldHeld {
			freed.add(q.release(hold, states[i] != engine.HoldKilled, now))
		} else if _, held := q.slots[hold]; held {
			q.slots[hold] = now + (10 * time.Minute).Milliseconds()
		}
	}
	return freed, q.wake(now, nil)
}

func (q *quotaTruth) record(now int64) string {
	suspect := 0
	for _, at := range q.slots {
		suspect += bool01(at <= now)
	}
	return fmt.Sprint(q.spec, q.revision, q.created, q.changedBy, q.started(now), len(q.slots), suspect,
		len(q.forSlots), len(q.forRate), q.book, ordered(q.slots))
}

func quotaText(q admission.QuotaRecord) string {
	var book []string
	for _, x := range q.Audit {
		book = append(book, x.What+" "+x.By)
	}
	return fmt.Sprint(q.Quota, q.Revision, q.CreatedAt.UnixMilli(), q.ChangedBy, q.Started, q.Held, q.Suspect,
		q.ForSlots, q.ForRate, book, q.Holds)
}
