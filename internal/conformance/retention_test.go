package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

const day = 24 * time.Hour

// kept gives a new execution a retention of its own.
func kept(d time.Duration) option {
	return func(x *engine.NewExecution) { x.Policy.Retention = valid.RetainAll(d) }
}

// purgeAt is when an ended execution may be purged, from its end; -1 when it is not filed.
func (w *env) purgeAt(id flowfabric.ExecutionID) time.Duration {
	w.Helper()
	score, err := w.do("ZSCORE", w.k.Done(), ids.UUID(id).String()).AsFloat64()
	if err != nil {
		return -1
	}
	return time.Duration(int64(score)-w.at(id, "en")) * time.Millisecond
}

// is there a core.
func (w *env) exists(id flowfabric.ExecutionID) bool {
	w.Helper()
	return len(w.core(id)) > 0
}

// lasting lists the keys of the partition that do not go by themselves, and fails when a tombstone would stay.
func (w *env) lasting() (keys []string, stones int) {
	w.Helper()
	for _, key := range w.keys() {
		left, err := w.do("PTTL", key).AsInt64()
		w.no(err)
		if strings.HasPrefix(key, string(w.k)+":z:") {
			if stones++; left <= 0 || left > day.Milliseconds() {
				w.Fatalf("%s goes in %d ms", key, left)
			}
			continue
		}
		if left < 0 {
			keys = append(keys, key)
		}
	}
	return keys, stones
}

// eventful ends an execution that has something of everything there is: attempts, tags, steps, a payload, a result,
// categories, progress, history, frames of all modes, waitpoints open and closed, signals, a suspension.
func (w *env) eventful(k *worker, lane_ string, keep time.Duration) flowfabric.ExecutionID {
	w.Helper()
	policy := flowfabric.RetryPolicy{MaxRetries: 3, Initial: time.Second, Max: time.Second, Multiplier: 1,
		Categories: []flowfabric.Category{"io", "net"}}
	id := w.create(lane(lane_), kept(keep), retry(policy), tags(map[string]string{"a.b": "c"}), deadline(20*day),
		timeout(time.Hour), priority(limits.MaxPriority))
	c := k.one(id)
	w.modes(c.Fence, 1, durableFrame(1), summaryDelta(1), bestEffort(1))
	w.no(w.e.UpdateProgress(w.ctx, c.Fence, 50, "half"))
	w.fail(c.Fence, "io")
	w.advance(2 * time.Second)
	w.settleTime()
	c = k.one(id)
	w.modes(c.Fence, 1, durableFrame(1), summaryDelta(1), bestEffort(1))
	_, err := w.e.RecordStep(w.ctx, c.Fence, "s", []byte("value"), 0)
	w.no(err)
	w.pend(c.Fence, "never used")
	m := w.stopped(c.Fence, within(time.Hour, "fail"), awaiting("it"))
	w.signal(id, m, "other", waitwords.EffectNone)
	w.signal(id, m, "go", waitwords.EffectSatisfied)
	c = k.one(id)
	w.pend(c.Fence, "left open")
	w.no(w.complete(c.Fence, "result").Err)
	return id
}

var retentionScenarios = []scenario{
	{name: "the tick stays quiet until something comes due soon, and then handles it on time", run: func(w *env) {
		k := w.worker("w1")
		held := k.one(w.create())
		far := k.one(w.create(kept(time.Hour)))
		w.no(w.complete(far.Fence, "").Err)
		quiet := func() bool {
			w.Helper()
			w.tick()
			w.check()
			return w.dump().Root["quiet"] != ""
		}
		same(w, "nothing comes due soon", quiet(), true)
		soon := k.one(w.create(kept(2 * time.Second)))
		w.no(w.complete(soon.Fence, "").Err)
		w.check()
		w.advance(2*time.Second - 500*time.Millisecond)
		w.tick()
		same(w, "before its time", w.exists(soon.Fence.Execution), true)
		w.advance(600 * time.Millisecond)
		w.tick()
		same(w, "after", w.exists(soon.Fence.Execution), false)
		same(w, "again nothing comes due soon", quiet(), true)
		name := w.named("s")
		w.put(name, w.clock().Add(3*time.Second), "in")
		w.check()
		same(w, "not due", w.tick().Schedules, 0)
		w.advance(3100 * time.Millisecond)
		same(w, "due", w.tick().Schedules, 1)
		same(w, "what is due is looked at", quiet(), false)
		_, err := w.e.RemoveSchedule(w.ctx, name, nil)
		w.no(err)
		same(w, "quiet once more", quiet(), true)
		w.advance(time.Hour)
		w.tick()
		same(w, "the first one", w.exists(far.Fence.Execution), false)
		_ = held
	}},
	{name: "what failed, expired or was cancelled is kept for 14 days, what completed for one, and each outcome has its own setting", run: func(w *env) {
		k := w.worker("w1")
		end := map[flowfabric.PublicState]func(opts ...option) flowfabric.ExecutionID{
			flowfabric.Completed: func(opts ...option) flowfabric.ExecutionID {
				id := w.create(opts...)
				w.complete(k.one(id).Fence, "")
				return id
			},
			flowfabric.Failed: func(opts ...option) flowfabric.ExecutionID {
				id := w.create(append(opts, retries(0))...)
				w.fail(k.one(id).Fence, "x")
				return id
			},
			flowfabric.Cancelled: func(opts ...option) flowfabric.ExecutionID {
				id := w.create(opts...)
				w.cancel(id)
				return id
			},
			flowfabric.Expired: func(opts ...option) flowfabric.ExecutionID {
				id := w.create(append(opts, deadline(time.Second))...)
				w.advance(2 * time.Second)
				w.settleTime()
				return id
			},
		}
		all := []flowfabric.PublicState{flowfabric.Completed, flowfabric.Failed, flowfabric.Cancelled,
			flowfabric.Expired}
		keeps := func(what string, own flowfabric.Retentions, want ...time.Duration) {
			w.Helper()
			for i, outcome := range all {
				id := end[outcome](func(x *engine.NewExecution) { x.Policy.Retention = own })
				w.all(what+": "+string(outcome), eq(w.read(id).State.Public, outcome), eq(w.purgeAt(id), want[i]))
				same(w, "as stored", w.read(id).Policy.Retention, own)
			}
		}
		none := flowfabric.Retentions{}
		keeps("by default", none, day, 14*day, 14*day, 14*day)
		keeps("one of its own", flowfabric.Retentions{Failed: time.Hour}, day, time.Hour, 14*day, 14*day)
		keeps("all of its own", flowfabric.Retentions{Completed: time.Minute, Failed: time.Hour,
			Cancelled: 2 * time.Hour, Expired: 30 * day},
			time.Minute, time.Hour, 2*time.Hour, 30*day)
		w.setLane("default", "", "60/7200//") // the others stay as they are
		keeps("of the lane", none, time.Minute, 2*time.Hour, 14*day, 14*day)
		w.setLane("default", "", "//3600/")
		keeps("one more of the lane", flowfabric.Retentions{Completed: 5 * time.Second}, 5*time.Second, 2*time.Hour,
			time.Hour, 14*day)
		w.laneIs("default", "active", time.Minute, "anna", 1, 0)
		w.setLane("default", "", "0")
		keeps("by default again", none, day, 14*day, 14*day, 14*day)
		for _, bad := range []string{"1/2/3", "1/2/3/4/5", "-1///", "///315360001", "1/2/3/x", "/"} {
			a := w.fcall("ff_set_lane", protoOf("me", ""), "default", "default", "", bad, "")
			same(w, bad, a.code, "invalid_input")
		}
		failed := end[flowfabric.Failed]()
		w.replay(failed, engine.Replay{})
		w.complete(k.one(failed).Fence, "")
		same(w, "replayed, and now it completed", w.purgeAt(failed), day)
	}},
	{name: "executions with different retention are purged each at its own time", run: func(w *env) {
		w.setLane("short", "", "3600")
		w.setLane("long", "", strconv.Itoa(int(10*day/time.Second)))
		type kind struct {
			lane string
			own  time.Duration
			want time.Duration
		}
		kinds := []kind{{"default", 30 * day, 30 * day}, {"default", 0, 14 * day}, {"long", 0, 10 * day},
			{"short", 3 * time.Hour, 3 * time.Hour}, {"short", 0, time.Hour}, {"long", time.Minute, time.Minute},
			{"default", time.Second, time.Second}}
		var ids []flowfabric.ExecutionID
		for _, x := range kinds { // the longest kept ends first
			opts := []option{lane(x.lane)}
			if x.own > 0 {
				opts = append(opts, kept(x.own))
			}
			id := w.create(opts...)
			w.cancel(id)
			same(w, "kept", w.purgeAt(id), x.want)
			ids = append(ids, id)
		}
		w.tick()
		last := time.Duration(0)
		for i := len(kinds) - 1; i >= 0; i-- { // until the one before: a millisecond short of its time, then at it
			due := ids[i]
			left := time.Duration(w.at(due, "en")-w.now())*time.Millisecond + w.purgeAt(due)
			if left > time.Second { // real time passes, too
				w.advance(left - time.Second)
				sum, _ := w.settleTime()
				same(w, fmt.Sprintf("purged before %v %v", kinds[i], left), sum.Purged, 0)
			}
			w.advance(time.Second)
			sum, _ := w.settleTime()
			same(w, fmt.Sprintf("purged of %v", kinds[i]), sum.Purged, 1)
			same(w, "gone", w.exists(due), false)
			if i > 0 {
				same(w, "the next is there", w.exists(ids[i-1]), true)
			}
			if kinds[i].want <= last {
				w.Fatalf("%s after %s", kinds[i].want, last)
			}
			last = kinds[i].want
		}
		same(w, "nothing is retained", len(w.hash(w.k.Routes())), 0)
	}},
	{name: "a purged execution leaves a tombstone, for a day if a key or schedule made its id, else an hour",
		run: func(w *env) {
			for i, code := range []codes.Code{"T1", "T2", "T3", "T3n", "T4", "T4n", "T1", "T3"} {
				w.reset()
				stays := day
				own := func(x *engine.NewExecution) {
					x.Digest = "0123456789abcdef0123456789abcdef"
					if i < 6 {
						x.ID = mint.Join(ids.Scheduled(w.p, "s", 1, time.UnixMilli(int64(i))))
					} else {
						stays = time.Hour
					}
				}
				x := w.state(code, own, kept(time.Minute))
				item := w.item(own)
				item.ID = x.id
				w.advance(time.Minute + time.Second)
				sum, _ := w.settleTime()
				same(w, fmt.Sprintf("purged %v", code), sum.Purged, 1)
				_, err := w.e.ReadExecution(w.ctx, x.id)
				w.is(err, flowfabric.ErrResultPurged)
				again := func() engine.Created {
					c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{item})
					w.no(err)
					w.no(c[0].Err)
					w.check()
					return c[0]
				}
				state, _ := codes.Project(code)
				w.all("a duplicate", eq(again().Duplicate, true), eq(again().State, state.Public))
				other := item
				other.Digest = "0123456789abcdef0123456789abcdee"
				refused, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{other})
				w.no(err)
				w.is(refused[0].Err, denied.Idempotency)
				w.advance(stays - time.Minute)
				same(w, "still a duplicate", again().Duplicate, true)
				w.advance(time.Minute)
				_, err = w.e.ReadExecution(w.ctx, x.id)
				w.is(err, flowfabric.ErrNotFound)
				w.set("DEL", w.k.Tombstone(ids.UUID(x.id))) // as after a real day
				same(w, "the id is free again", again().Duplicate, false)
			}
		}},
	{name: "a longer lane retention extends what has ended, and a shorter one does not shorten it", run: func(w *env) {
		w.setLane("default", "", "60")
		minute := w.create()
		w.cancel(minute)
		w.setLane("default", "", "3600")
		hour := w.create()
		w.cancel(hour)
		w.advance(2 * time.Minute)
		sum, _ := w.settleTime()
		same(w, "purged", sum.Purged, 0)
		same(w, "filed anew", w.purgeAt(minute), time.Hour)
		w.setLane("default", "", "60")
		w.advance(2 * time.Minute)
		sum, _ = w.settleTime()
		w.all("still there", eq(sum.Purged, 0), eq(w.purgeAt(hour), time.Hour))
		w.advance(time.Hour)
		sum, _ = w.settleTime()
		same(w, "purged in the end", sum.Purged, 2)
	}},
	{name: "a replayed execution is not purged until it has ended again", run: func(w *env) {
		id := w.create(kept(time.Minute))
		w.cancel(id)
		w.replay(id, engine.Replay{})
		same(w, "filed", w.purgeAt(id), -1)
		w.advance(time.Hour)
		sum, _ := w.settleTime()
		w.all("purged", eq(sum.Purged, 0), eq(w.exists(id), true))
		w.no(w.complete(w.worker("w1").one(id).Fence, "").Err)
		same(w, "filed again", w.purgeAt(id), time.Minute)
		w.advance(time.Minute + time.Second)
		sum, _ = w.settleTime()
		w.all("purged", eq(sum.Purged, 1), eq(w.exists(id), false))
	}},
	{name: "after all purges, the keys are as before, plus tombstones", run: func(w *env) {
		w.seed()
		w.tick()
		k := w.worker("w1")
		before, _ := w.lasting()
		n := 0
		for _, lane := range []string{"a", "b"} {
			for _, keep := range []time.Duration{time.Minute, 3 * day} {
				w.eventful(k, lane, keep)
				n++
			}
		}
		w.cancel(w.create(kept(time.Hour)))
		w.cancel(w.create(delay(day)))
		n += 2
		during, _ := w.lasting()
		if len(during) < len(before)+50 {
			w.Fatalf("only %d keys of executions were made", len(during)-len(before))
		}
		purged := 0
		for range 15 {
			w.advance(day)
			sum, _ := w.settleTime()
			purged += sum.Purged
		}
		same(w, "purged", purged, n)
		after, stones := w.lasting()
		sameList(w, "keys", after, before...)
		same(w, "tombstones", stones, n)
	}},
	{name: "after all purges, the route tables and indexes are empty again", run: func(w *env) {
		w.tick()
		for _, o := range [][]option{{kind("a")}, {kind("b"), lane("l")}, {kind("b"), capabilities("gpu")}} {
			for range 3 {
				w.cancel(w.create(append(o, kept(time.Minute))...))
			}
		}
		same(w, "routes", len(w.hash(w.k.Routes())), 3)
		sameDeep(w, "uses", w.hash(w.k.RouteUse()), map[string]string{"1": "3", "2": "3", "3": "3"})
		w.advance(time.Hour)
		sum, _ := w.settleTime()
		same(w, "purged", sum.Purged, 9)
		for _, key := range []string{w.k.Routes(), w.k.RouteIDs(), w.k.RouteLog(), w.k.RouteUse(), w.k.Makers(),
			w.k.Done(), w.k.Ready(), w.k.Queue("1")} {
			n, err := w.do("EXISTS", key).AsInt64()
			w.no(err)
			same(w, key, n, 0)
		}
		r := w.tick()
		w.all("nothing to wait for", eq(r.More, false), eq(r.Idle, true))
		w.create(kind("a")) // its route is made again, under another id
		sameDeep(w, "routes", w.hash(w.k.Routes()), map[string]string{"4": "default\x1fdefault\x1fa\x1f\x1f"})
	}},
	{name: "10,000 entries that are not due do not delay one that is",
		damaged: "its indexes hold entries of no execution", run: func(w *env) {
			w.quiet = true
			late := w.now() + (20 * day).Milliseconds()
			fill := func(key string, member func() string) {
				for range 10 {
					args := []string{"ZADD", key}
					for range 1000 {
						late++
						args = append(args, strconv.FormatInt(late, 10), member())
					}
					w.set(args...)
				}
			}
			for _, key := range []string{w.k.Done(), w.k.Delayed(), w.k.Alarms()} {
				fill(key, uuid.NewString)
			}
			fill(w.k.Pending(), func() string { return uuid.NewString() + ":" + uuid.NewString() })
			fill(w.k.Sessions(), func() string { return "w~" + uuid.NewString() })
			ended := w.create(kept(time.Minute))
			w.cancel(ended)
			delayed := w.create(delay(time.Minute))
			expires := w.create(kind("other"), deadline(time.Minute))
			w.tick()
			w.advance(time.Minute + time.Second)
			r := w.tick()
			w.all("one call", eq(r.Purged, 1), eq(r.Promoted, 1), eq(r.Expired, 1), eq(r.More, false))
			same(w, "gone", w.exists(ended), false)
			w.code(delayed, "R1f")
			w.code(expires, "T4n")
		}},
	{name: "entries whose retention was extended delay a due one only once", run: func(w *env) {
		w.quiet = true
		w.setLane("default", "", "60")
		for _, id := range w.createN(1000) {
			w.cancel(id)
		}
		due := w.create(lane("other"), kept(2*time.Minute))
		w.cancel(due)
		w.setLane("default", "", "86400")
		w.advance(3 * time.Minute)
		sum, calls := w.settleTime()
		w.all("purged", eq(sum.Purged, 1), eq(w.exists(due), false))
		if calls > 15 {
			w.Fatalf("%d calls", calls)
		}
		r := w.tick()
		w.all("they are out of the way", eq(r.Purged, 0), eq(r.More, false))
		w.quiet = false
		w.check()
	}},
	{name: "a purge of many attempts spans several ticks and does not delay other purges", run: func(w *env) {
		x := w.state("T1", kept(time.Minute))
		w.quiet = true
		for attempt := range 450 {
			w.set("SET", w.k.Result(ids.UUID(x.id), uint32(attempt+1)), "r")
			w.set("HSET", w.k.Meta(ids.UUID(x.id), uint32(attempt+1)), "n", "1")
		}
		w.editRecord(ids.UUID(x.id), func(f fields) { f["n"] = "450" })
		other := w.create(kept(time.Minute))
		w.cancel(other)
		w.advance(2 * time.Minute)
		r := w.tick()
		w.all("the first call", eq(r.Purged, 1), eq(r.More, true), eq(w.exists(x.id), true), eq(w.exists(other), false))
		sum, calls := w.settleTime()
		w.all("the rest", eq(sum.Purged, 1), eq(w.exists(x.id), false))
		same(w, "calls", calls, 2)
		left := slices.DeleteFunc(w.keys(), func(key string) bool {
			return !strings.Contains(key, ids.UUID(x.id).String())
		})
		sameList(w, "left", left, w.k.Tombstone(ids.UUID(x.id)))
		w.quiet = false
		w.check()
	}},
	{name: "the tick's owner sleeps until the next purge and is woken for an earlier one", run: func(w *env) {
		id := w.create(kept(time.Hour))
		w.cancel(id)
		r := w.tick()
		if r.Idle || r.Next > time.Hour || r.Next < 59*time.Minute {
			w.Fatalf("%+v", r)
		}
		ear := w.listen(engine.BellChannel(w.p, ticker))
		soon := w.create(kept(time.Minute))
		w.cancel(soon)
		ear.hears("t")
		w.advance(time.Minute + time.Second)
		same(w, "purged", w.tick().Purged, 1)
		r = w.tick()
		if r.Idle || r.Next > time.Hour || r.Next < 50*time.Minute {
			w.Fatalf("%+v", r)
		}
	}},
}
