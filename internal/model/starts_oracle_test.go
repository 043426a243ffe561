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

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// started is how many are in the window. No time frees a slot.
func (q *gateTruth) started(now int64) (n int) {
	if q.spec.Rate == 0 {
		return 0
	}
	for _, at := range q.window {
		n += bool01(at > now-time.Duration(q.spec.Window).Milliseconds())
	}
	return n
}

// admit lets the first ones start, as many as there is room for. With look nobody starts.
func (q *gateTruth) admit(partition uint16, route uint64, ttl time.Duration, look bool, list []engine.Hold,
	now int64) (a engine.Admitted, code string) {
	if q == nil {
		return a, "gate_not_found"
	}
	n, short := q.room(partition, route, list, now)
	if short.Why == "" || n > 0 && !look {
		a = q.start(partition, route, ttl, look, holdTexts(list[:n]), now)
	}
	if short.Why != "" && a.Why == "" {
		short.Count = a.Count
		a = short
	}
	if q.spec.CountsAmounts() {
		a.Meters = "a"
	}
	if q.spec.Rate > 0 || q.spec.Concurrency > 0 {
		a.Meters += "h"
	}
	return a, ""
}

// start asks the window and the slots.
func (q *gateTruth) start(partition uint16, route uint64, ttl time.Duration, look bool, holds []string,
	now int64) (a engine.Admitted) {
	if q.spec.Rate == 0 && q.spec.Concurrency == 0 {
		a.Count = len(holds) * bool01(!look)
		return a
	}
	maps.DeleteFunc(q.window, func(_ string, at int64) bool {
		return at <= now-time.Duration(q.spec.Window).Milliseconds()
	})
	known := q.window
	if q.spec.Concurrency > 0 {
		known = q.slots
	}
	started, held := q.started(now), len(q.slots)
	if look {
		holds, a.Why = nil, q.fullOf(started, held)
	}
	for _, hold := range holds {
		if _, ok := known[hold]; !ok {
			if a.Why = q.fullOf(started, held); a.Why != "" {
				break
			}
			// also for one that is in the window since a release, of which nothing comes any more
			started, held = started+1, held+1
			if _, before := q.window[hold]; q.spec.Rate > 0 && !before {
				q.window[hold] = now
			}
			if q.spec.Rate > 0 {
				q.idle = now + time.Duration(q.spec.Window).Milliseconds() + 1000
			}
			if q.spec.Concurrency > 0 {
				q.slots[hold] = now + ttl.Milliseconds()
			}
		}
		a.Count++
	}
	who := fmt.Sprintf("%d %d", partition, route)
	switch a.Why {
	case "":
		delete(q.forRate, who)
		if look { // he opens his route now; what is admitted may be of a route that was closed meanwhile
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
	return a
}

// retry is for the k-th who came within 30 s when so many starts have left the window that there is room for k.
func (q *gateTruth) retry(who string, now int64) time.Duration {
	k := 0
	for _, at := range q.forRate {
		k += bool01(at > now-30_000)
	}
	starts, window := slices.Sorted(maps.Values(q.window)), time.Duration(q.spec.Window).Milliseconds()
	place := max(1, min(len(starts), len(starts)-q.spec.Rate+k))
	return time.Duration(max(min(100, window), starts[place-1]+window-now)+
		jitter(who, now, max(time.Duration(q.spec.Jitter).Milliseconds(), min(1000, window/10)))) * time.Millisecond
}

func (q *gateTruth) fullOf(started, held int) string {
	if q.spec.Rate > 0 && started >= q.spec.Rate {
		return "rate"
	}
	if q.spec.Concurrency > 0 && held >= q.spec.Concurrency {
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

// freed tells whether a hold was forgotten. A start that is older than its window may be there or not: the list of
// starts expires with its server's clock, which tests do not move everywhere.
type freed struct{ surely, perhaps bool }

// settle is told of a hold: it forgets it, and its start if it never ran.
func (q *gateTruth) settle(hold, what string, now int64) (f freed) {
	if q == nil {
		return f
	}
	_, held := q.slots[hold]
	if what == engine.NewsHeld {
		if held {
			q.slots[hold] = now + (10 * time.Minute).Milliseconds()
		}
		return f
	}
	delete(q.slots, hold)
	at, known := q.window[hold]
	undone := what == engine.NewsNever && known
	if undone {
		delete(q.window, hold)
	}
	return freed{surely: held || undone && at > now-time.Duration(q.spec.Window).Milliseconds(),
		perhaps: held || undone}
}

// wake is who may come now, for starts and for slots: some more than can, for not everybody still has work, but at
// most 256 with those of the same call.
func (q *gateTruth) wake(now int64, before []string) []string {
	if q == nil {
		return before
	}
	take := func(w waitlist, free int) {
		if free > 0 {
			before = append(before, w.take(min(free+2, 256-len(before)))...)
		}
	}
	free := 256
	if q.spec.Concurrency > 0 {
		free = q.spec.Concurrency - len(q.slots)
	}
	if q.spec.Rate > 0 {
		take(q.forRate, min(free, q.spec.Rate-q.started(now)))
	}
	take(q.forSlots, free)
	return before
}
