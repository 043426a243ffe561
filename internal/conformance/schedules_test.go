package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

// named finds a name whose schedule lives in this partition.
func (w *env) named(prefix string) string {
	for i := 0; ; i++ {
		if name := prefix + strconv.Itoa(i); w.e.SchedulePartition(name) == w.p {
			return name
		}
	}
}

// schedule reads one.
func (w *env) schedule(name string) engine.Schedule {
	w.Helper()
	page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{Name: name})
	w.no(err)
	if len(page.Schedules) != 1 {
		w.Fatalf("%d schedules are named %q", len(page.Schedules), name)
	}
	return page.Schedules[0]
}

// clock is the server's time, also when it is stopped.
func (w *env) clock() time.Time {
	w.Helper()
	page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{})
	w.no(err)
	return page.Now
}

// put stores a schedule that is due at an instant.
func (w *env) put(name string, next time.Time, input string) engine.ScheduleSet {
	w.Helper()
	set, err := w.e.PutSchedule(trail.As(w.ctx, "anna", ""),
		engine.SchedulePut{Name: name, Definition: []byte("of " + input), Input: []byte(input), Next: next})
	w.no(err)
	w.check()
	return set
}

// recurring is a schedule that is due now for the first time.
func (w *env) recurring(name string, every time.Duration) engine.Schedule {
	w.Helper()
	w.put(name, w.clock(), "in "+every.String())
	return w.schedule(name)
}

// firing is the step of an instant that is due.
func (w *env) firing(s engine.Schedule, every time.Duration) engine.Firing {
	return engine.Firing{Name: s.Name, Revision: s.Revision, Seen: s.Next, Next: s.Next.Add(every), At: s.Next,
		Item: engine.NewExecution{ID: mint.Join(ids.Scheduled(w.p, s.Name, s.Incarnation, s.Next)),
			Start: flowfabric.Start{Namespace: "default", Lane: "default", Kind: "k",
				Tags: map[string]string{"schedule.name": s.Name}},
			Digest: "d"}}
}

// fire makes a step that must not fail.
func (w *env) fire(f engine.Firing) engine.Fired {
	w.Helper()
	out, err := w.e.FireSchedule(w.ctx, f)
	w.no(err)
	w.check()
	return out
}

func wirePut(name, expected, seen string, next int64, definition, input string) []string {
	return []string{proto, name, expected, seen, strconv.FormatInt(next, 10), "0", "", "", "", "", "0",
		definition, input}
}

func wireFire(w *env, s engine.Schedule, missed string) []string {
	at := strconv.FormatInt(s.Next.UnixMilli(), 10)
	next := strconv.FormatInt(s.Next.Add(time.Hour).UnixMilli(), 10)
	id := mint.Join(ids.Scheduled(w.p, s.Name, s.Incarnation, s.Next))
	return []string{proto, s.Name, strconv.FormatUint(s.Revision, 10), at, next, missed, at, at, "late", "", at, "1",
		"", "0", "0", "", "default", "default", "k", "", "0", "", "+1000", "", "", "me", "1", "a.b", "c", "1",
		ids.UUID(id).String(), "d", ""}
}

var scheduleScenarios = []scenario{
	{name: "a schedule submits each instant once, with its input", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.advance(10 * time.Second)
		f := w.firing(s, time.Second)
		same(w, "first", w.fire(f).Outcome, engine.FireCreated)
		same(w, "again", w.fire(f), engine.Fired{Already: true})
		other := f
		other.Item.ID = mint.ID(w.p)
		same(w, "by somebody else, under another id", w.fire(other), engine.Fired{Already: true})
		c := w.worker("w1").one(f.Item.ID)
		same(w, "input", string(c.Input), "in 1s")
		same(w, "tag", c.Tags["schedule.name"], s.Name)
		now := w.schedule(s.Name)
		w.all("record", eq(now.Fired, 1), eq(now.Missed, 0), eq(now.LastID, f.Item.ID),
			eq(now.LastDue.UnixMilli(), s.Next.UnixMilli()), eq(now.Next.Sub(s.Next), time.Second),
			eq(now.InputBytes, 5))
	}},
	{name: "an outdated or invalid firing changes nothing", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Minute)
		w.advance(time.Hour)
		for what, change := range map[string]func(*engine.Firing){
			"another revision": func(f *engine.Firing) { f.Revision++ },
			"another instant": func(f *engine.Firing) {
				f.Seen, f.At = f.Seen.Add(time.Second),
					f.At.Add(time.Second)
			},
		} {
			f := w.firing(s, time.Minute)
			change(&f)
			w.unchanged(what, func() { same(w, what, w.fire(f), engine.Fired{Already: true}) })
		}
		for what, change := range map[string]func(*engine.Firing){
			"the future":        func(f *engine.Firing) { f.At, f.Next = f.At.Add(2*time.Hour), f.At.Add(3*time.Hour) },
			"before it was due": func(f *engine.Firing) { f.At = f.At.Add(-time.Second) },
			"next before at":    func(f *engine.Firing) { f.At = f.At.Add(2 * time.Minute) },
			"not moving on":     func(f *engine.Firing) { f.Next = f.Seen },
			"nothing at all":    func(f *engine.Firing) { f.At = time.Time{} },
		} {
			f := w.firing(s, time.Minute)
			change(&f)
			w.unchanged(what, func() {
				_, err := w.e.FireSchedule(w.ctx, f)
				w.is(err, flowfabric.ErrInvalidInput)
			})
		}
		f := w.firing(s, time.Minute)
		f.Item.ID = mint.ID((w.p + 1) % partitions)
		_, err := w.e.FireSchedule(w.ctx, f)
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "missed instants are counted and explained", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		first := s.Next
		w.advance(time.Hour)
		miss := func(from, to, count int, why string, fire bool) {
			w.Helper()
			s := w.schedule(s.Name)
			f := w.firing(s, time.Second)
			f.Missed = engine.MissedInstants{From: first.Add(time.Duration(from) * time.Second),
				To: first.Add(time.Duration(to) * time.Second), Count: uint64(count), Reason: why}
			f.Next = first.Add(time.Duration(to+1) * time.Second)
			f.At = time.Time{}
			if fire {
				f.At, f.Next = f.Next, f.Next.Add(time.Second)
			}
			w.fire(f)
		}
		told := func(what string, fired, missed uint64, from, to int, count uint64, reason string,
			reasons map[string]uint64) {
			w.Helper()
			s := w.schedule(s.Name)
			m := s.LastMissed
			w.all(what, eq(s.Fired, fired), eq(s.Missed, missed),
				eq(m.From.Sub(first), time.Duration(from)*time.Second),
				eq(m.To.Sub(first), time.Duration(to)*time.Second), eq(m.Count, count), eq(m.Reason, reason),
				eqDeep(s.Reasons, reasons))
		}
		miss(0, 9, 10, "late", false)
		told("ten late", 0, 10, 0, 9, 10, "late", map[string]uint64{"late": 10})
		miss(10, 14, 5, "late", true)
		told("a run goes on", 1, 15, 0, 14, 15, "late", map[string]uint64{"late": 15})
		miss(16, 16, 1, "late", false)
		told("a new run after a firing", 1, 16, 16, 16, 1, "late", map[string]uint64{"late": 16})
		miss(17, 18, 2, "paused", false)
		told("a new run for another reason", 1, 18, 17, 18, 2, "paused", map[string]uint64{"late": 16, "paused": 2})
	}},
	{name: "a schedule that forbids overlap skips instants until its last execution has ended", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.advance(time.Hour)
		step := func() engine.Firing {
			f := w.firing(w.schedule(s.Name), time.Second)
			f.Solo = true
			return f
		}
		first := step()
		same(w, "first", w.fire(first).Outcome, engine.FireCreated)
		same(w, "waiting", w.fire(step()).Outcome, engine.FireOverlap)
		k := w.worker("w1")
		c := k.one(first.Item.ID)
		same(w, "running", w.fire(step()).Outcome, engine.FireOverlap)
		allowed := step()
		allowed.Solo = false
		same(w, "allowed", w.fire(allowed).Outcome, engine.FireCreated)
		w.no(w.complete(c.Fence, "").Err)
		same(w, "the newer one waits", w.fire(step()).Outcome, engine.FireOverlap)
		w.no(w.complete(k.one(allowed.Item.ID).Fence, "").Err)
		same(w, "ended", w.fire(step()).Outcome, engine.FireCreated)
		now := w.schedule(s.Name)
		w.all("counts", eq(now.Fired, 3), eq(now.Missed, 3), eq(now.Reasons["overlap"], 3))
	}},
	{name: "an instant that a closed lane refuses is counted as missed, with the reason", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.advance(time.Hour)
		w.must("ff_set_lane", protoOf("op", ""), "default", "default", "draining", "", "")
		out := w.fire(w.firing(s, time.Second))
		same(w, "outcome", out.Outcome, engine.FireRefused)
		w.is(out.Refusal, flowfabric.ErrLaneClosed)
		now := w.schedule(s.Name)
		w.all("told", eq(now.Fired, 0), eq(now.LastMissed.Count, 1), eq(now.LastMissed.Reason, "lane_closed"),
			eq(now.Next.Sub(s.Next), time.Second))
		w.must("ff_set_lane", protoOf("op", ""), "default", "default", "active", "", "")
		same(w, "open again", w.fire(w.firing(now, time.Second)).Outcome, engine.FireCreated)
		bad := w.firing(w.schedule(s.Name), time.Second)
		bad.Item.Kind = "a{b}"
		out = w.fire(bad)
		w.is(out.Refusal, flowfabric.ErrInvalidInput)
		sameDeep(w, "counts", w.schedule(s.Name).Reasons, map[string]uint64{"lane_closed": 1, "invalid_input": 1})
	}},
	{name: "a schedule keeps at most 50 different reasons for missed instants", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.advance(time.Hour)
		for i := range 100 {
			f := w.firing(w.schedule(s.Name), time.Second)
			f.Missed = engine.MissedInstants{From: f.Seen, To: f.Seen, Count: 1,
				Reason: "r" + strings.Repeat("a", i%26) + strings.Repeat("b", i/26)}
			f.At = time.Time{}
			w.fire(f)
		}
		now := w.schedule(s.Name)
		same(w, "missed", now.Missed, 100)
		if n := len(now.Reasons); n > 50 || now.Reasons["other"] == 0 {
			w.Fatalf("%d reasons: %v", n, now.Reasons)
		}
	}},
	{name: "counts of missed instants stop at the largest number that is exact", run: func(w *env) {
		const most = 1<<53 - 1
		s := w.recurring(w.named("s"), time.Second)
		w.advance(time.Hour)
		for _, n := range []uint64{most - 1, 1, 1, most} {
			f := w.firing(w.schedule(s.Name), time.Second)
			f.Missed = engine.MissedInstants{From: f.Seen, To: f.Seen, Count: n, Reason: "late"}
			f.At = time.Time{}
			w.fire(f)
		}
		now := w.schedule(s.Name)
		w.all("counts", eq(now.Missed, uint64(most)), eq(now.LastMissed.Count, uint64(most)),
			eq(now.Reasons["late"], uint64(most)))
		f := w.firing(now, time.Second)
		f.At, f.Missed = time.Time{}, engine.MissedInstants{From: f.Seen, To: f.Seen, Count: 2, Reason: "overlap"}
		w.fire(f)
		w.check()
		now = w.schedule(s.Name)
		w.all("of two reasons", eq(now.Missed, uint64(most)), eq(now.LastMissed.Count, 2),
			eq(now.Reasons["late"], uint64(most)), eq(now.Reasons["overlap"], 2))
	}},
	{name: "a paused schedule does not fire, shows who paused it, and can resume", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.advance(time.Minute)
		since, already, err := w.e.PauseSchedule(trail.As(w.ctx, "anna", ""), s.Name, true, nil)
		w.no(err)
		same(w, "already", already, false)
		w.check()
		w.unchanged("a firing",
			func() { same(w, "paused", w.fire(w.firing(s, time.Second)), engine.Fired{Already: true}) })
		w.advance(time.Minute)
		again, already, err := w.e.PauseSchedule(trail.As(w.ctx, "otto", ""), s.Name, true, nil)
		w.no(err)
		w.all("again", eq(again.Equal(since), true), eq(already, true))
		page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{Due: true})
		w.no(err)
		same(w, "due", len(page.Schedules), 0)
		now := w.schedule(s.Name)
		w.all("told", eq(now.Paused, true), eq(now.PausedBy, "anna"), eq(now.PausedAt.Equal(since), true))
		w.put(s.Name, s.Next, "in another") // stays paused
		same(w, "after a change", w.schedule(s.Name).Paused, true)
		resumed, _, err := w.e.PauseSchedule(trail.As(w.ctx, "otto", ""), s.Name, false, nil)
		w.no(err)
		w.check()
		now = w.schedule(s.Name)
		w.all("resumed", eq(now.Paused, false), eq(now.ResumedBy, "otto"), eq(now.ResumedAt.Equal(resumed), true),
			eq(now.Next.Equal(s.Next), true))
		same(w, "fires", w.fire(w.firing(now, time.Second)).Outcome, engine.FireCreated)
		_, _, err = w.e.PauseSchedule(trail.As(w.ctx, "x", ""), w.named("none"), true, nil)
		w.is(err, denied.NoSchedule)
	}},
	{name: "a schedule is changed, paused, resumed or removed only under the expected revision", run: func(w *env) {
		name := w.named("s")
		zero, next := uint64(0), w.clock().Add(time.Hour)
		put := func(definition string, expected *uint64, seen time.Time) (engine.ScheduleSet, error) {
			return w.e.PutSchedule(w.ctx, engine.SchedulePut{Name: name, Definition: []byte(definition),
				Expected: expected, Seen: seen, Next: next})
		}
		first, err := put("a", &zero, time.Time{})
		w.no(err)
		same(w, "again", must(put("a", &zero, time.Time{})),
			engine.ScheduleSet{Already: true, Revision: first.Revision, Next: next.UTC().Truncate(time.Millisecond)})
		_, err = put("b", &zero, time.Time{})
		w.is(err, denied.ScheduleChanged)
		_, err = put("b", nil, next.Add(time.Second))
		w.is(err, denied.ScheduleChanged)
		second, err := put("b", &first.Revision, next)
		w.no(err)
		w.check()
		if second.Revision <= first.Revision {
			w.Fatalf("revision %d after %d", second.Revision, first.Revision)
		}
		_, err = put("c", &first.Revision, time.Time{})
		w.is(err, denied.ScheduleChanged)
		for _, paused := range []bool{true, false} {
			w.unchanged("of another revision", func() {
				_, _, err = w.e.PauseSchedule(trail.As(w.ctx, "anna", ""), name, paused, &first.Revision)
				w.is(err, denied.ScheduleChanged)
			})
			_, already, err := w.e.PauseSchedule(trail.As(w.ctx, "anna", ""), name, paused, &second.Revision)
			w.no(err)
			same(w, "already", already, false)
		}
		_, err = w.e.RemoveSchedule(w.ctx, name, &first.Revision)
		w.is(err, denied.ScheduleChanged)
		same(w, "removed", must(w.e.RemoveSchedule(w.ctx, name, &second.Revision)), false)
		same(w, "removed again", must(w.e.RemoveSchedule(w.ctx, name, nil)), true)
		w.check()
		for _, key := range w.keys() {
			if key != string(w.k) {
				w.Fatalf("%s is left", key)
			}
		}
		_, err = put("d", &second.Revision, time.Time{})
		w.is(err, denied.ScheduleChanged)
	}},
	{name: "an old firing affects neither a removed schedule nor a new one of the same name", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.set("HSET", string(w.k), "clock_pin", strconv.FormatInt(w.clock().UnixMilli(), 10))
		f := w.firing(s, time.Second)
		_, err := w.e.RemoveSchedule(w.ctx, s.Name, nil)
		w.no(err)
		_, err = w.e.FireSchedule(w.ctx, f)
		w.is(err, denied.NoSchedule)
		w.put(s.Name, s.Next, "in 1s") // in the same millisecond, with the same instant
		same(w, "an old step", w.fire(f), engine.Fired{Already: true})
		heir := w.schedule(s.Name)
		g := w.firing(heir, time.Second)
		if g.Item.ID == f.Item.ID {
			w.Fatal("two schedules would submit under the same id")
		}
		same(w, "fires", w.fire(g).Outcome, engine.FireCreated)
	}},
	{name: "instants that are due when a schedule is changed are counted as missed", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Minute)
		w.advance(10 * time.Minute)
		now := w.clock()
		_, err := w.e.PutSchedule(w.ctx, engine.SchedulePut{Name: s.Name, Definition: []byte("new"), Seen: s.Next,
			Next:   now.Add(time.Hour),
			Missed: engine.MissedInstants{From: s.Next, To: now, Count: 10, Reason: "updated"}})
		w.no(err)
		w.check()
		same(w, "an old step", w.fire(w.firing(s, time.Minute)), engine.Fired{Already: true})
		changed := w.schedule(s.Name)
		w.all("told", eq(changed.Missed, 10), eq(changed.LastMissed.Reason, "updated"),
			eq(changed.Next.Equal(now.Add(time.Hour).Truncate(time.Millisecond)), true),
			eq(changed.Incarnation, s.Incarnation), eq(changed.InputBytes, 0))
	}},
	{name: "the tick reports due schedules on time, until they are fired", run: func(w *env) {
		name := w.named("s")
		w.set("HSET", string(w.k), "clock_pin", "1800000000000")
		w.put(name, time.UnixMilli(1800000000300).UTC(), "x")
		r := w.tick()
		w.all("to come", eq(r.Schedules, 0), eq(r.Next, 300*time.Millisecond), eq(r.Idle, false))
		w.pass(300 * time.Millisecond)
		r = w.tick()
		w.all("due", eq(r.Schedules, 1), eq(r.Next, time.Second))
		f := w.firing(w.schedule(name), time.Hour)
		w.fire(f)
		w.worker("w1").one(f.Item.ID)
		r = w.tick()
		same(w, "fired", r.Schedules, 0)
		w.put(w.named("t"), time.UnixMilli(1800000000400).UTC(), "x")
		same(w, "wake", w.root()["wake"], "1800000000400")
		w.pass(time.Minute)
		same(w, "overdue", w.must("ff_poll", proto).slots[4], "1")
	}},
	{name: "a schedule without a next instant fires no more", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		f := w.firing(s, time.Second)
		f.Next = time.Time{}
		same(w, "fired", w.fire(f).Outcome, engine.FireCreated)
		same(w, "next", w.schedule(s.Name).Next.IsZero(), true)
		n, err := w.do("EXISTS", w.k.Schedules()).AsInt64()
		w.no(err)
		same(w, "filed", n, 0)
	}},
	{name: "a frozen partition fires no schedule and loses no instant", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.no(w.e.FreezePartition(trail.As(w.ctx, "", "r"), w.p))
		w.unchanged("frozen", func() {
			_, err := w.e.FireSchedule(w.ctx, w.firing(s, time.Second))
			w.is(err, flowfabric.ErrPartitionFrozen)
		})
		w.no(w.e.ThawPartition(w.ctx, w.p))
		same(w, "thawed", w.fire(w.firing(s, time.Second)).Outcome, engine.FireCreated)
	}},
	{name: "a schedule that does not exist is not listed", run: func(w *env) {
		page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{Name: "nowhere"})
		w.no(err)
		same(w, "schedules", len(page.Schedules), 0)
	}},
	{name: "schedules are listed by name and by time, in bounded pages", run: func(w *env) {
		var names []string
		now := w.now()
		for i := range 230 {
			name := fmt.Sprintf("n%03d", i)
			names = append(names, name)
			a := w.fcall("ff_put_schedule", wirePut(name, "", "", now-int64(i), "d", "")...)
			same(w, "put", a.code, "OK")
		}
		w.check()
		var got []string
		for after, more := "", true; more; {
			page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{After: after})
			w.no(err)
			for _, s := range page.Schedules {
				got = append(got, s.Name)
				after = s.Name
			}
			more = page.More
		}
		sameList(w, "names", got, names...)
		got = nil
		for skip := 0; skip < 230; skip += 60 {
			page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{Due: true, Skip: skip, Limit: 60})
			w.no(err)
			for _, s := range page.Schedules {
				got = append(got, s.Name)
			}
			same(w, "more", page.More, skip < 180)
		}
		slices.Reverse(got)
		sameList(w, "oldest first", got, names...)
		w.reset()
		big := strings.Repeat("d", limits.MaxSchedule)
		for i := range 12 {
			same(w, "big", w.fcall("ff_put_schedule", wirePut(fmt.Sprintf("b%02d", i), "", "", now, big, "")...).code,
				"OK")
		}
		page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{})
		w.no(err)
		if n := len(page.Schedules); n < 8 || n > 9 || !page.More {
			w.Fatalf("%d schedules of 64 KiB in a page, more %v", n, page.More)
		}
		w.reset()
		// eight take the half MiB of a page exactly, and one more follows
		exact := strings.Repeat("d", limits.MaxSchedule-512)
		for i := range 12 {
			same(w, "exact", w.fcall("ff_put_schedule",
				wirePut(fmt.Sprintf("e%02d", i), "", "", now, exact, "")...).code, "OK")
		}
		page, err = w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{})
		w.no(err)
		same(w, "schedules in a page that is just full", len(page.Schedules), 9)
	}},
	{name: "a schedule ends with the firing that reaches its limit of runs", run: func(w *env) {
		s := w.limited(w.named("s"), "d", w.clock(), 2)
		w.advance(time.Hour)
		step := func() engine.Firing {
			f := w.firing(w.schedule(s.Name), time.Second)
			f.Limit, f.Solo = 2, true
			return f
		}
		first := step()
		out := w.fire(first)
		w.all("first", eq(out.Outcome, "created"), eq(out.Next.Equal(first.Next), true))
		same(w, "overlap", w.fire(step()).Outcome, engine.FireOverlap)
		w.must("ff_set_lane", protoOf("op", ""), "default", "default", "draining", "", "")
		refused := step()
		refused.Solo = false
		same(w, "refused", w.fire(refused).Outcome, engine.FireRefused)
		w.must("ff_set_lane", protoOf("op", ""), "default", "default", "active", "", "")
		w.no(w.complete(w.worker("w1").one(first.Item.ID).Fence, "").Err)
		last := step()
		out = w.fire(last)
		w.all("last", eq(out.Outcome, "created"), eq(out.Next.IsZero(), true))
		same(w, "again", w.fire(last), engine.Fired{Already: true})
		now := w.schedule(s.Name)
		w.all("told", eq(now.Fired, 2), eq(now.Missed, 2), eq(now.Next.IsZero(), true), eq(now.LastID, last.Item.ID))
		same(w, "filed", w.filed(), 0)
		page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{})
		w.no(err)
		same(w, "listed", len(page.Schedules), 1)
	}},
	{name: "a limit of runs counts from the creation, whatever changes of the schedule come between",
		run: func(w *env) {
			s := w.limited(w.named("s"), "a", w.clock(), 1)
			f := w.firing(s, time.Second)
			f.Limit = 1
			same(w, "the only one", w.fire(f).Next.IsZero(), true)
			same(w, "another definition", w.limited(s.Name, "b", w.clock().Add(time.Hour), 1).Next.IsZero(), true)
			same(w, "filed", w.filed(), 0)
			w.age()
			more := w.limited(s.Name, "c", w.clock(), 2)
			same(w, "one more", more.Next.IsZero(), false)
			f = w.firing(more, time.Second)
			f.Limit = 2
			w.all("fires", eq(w.fire(f).Outcome, "created"), eq(w.schedule(s.Name).Fired, 2), eq(w.filed(), 0))
			same(w, "endless", w.limited(s.Name, "d", w.clock(), 0).Next.IsZero(), false)
			_, _, err := w.e.PauseSchedule(trail.As(w.ctx, "anna", ""), s.Name, true, nil)
			w.no(err)
			same(w, "paused", w.limited(s.Name, "e", w.clock(), 2).Next.IsZero(), true)
			_, _, err = w.e.PauseSchedule(trail.As(w.ctx, "anna", ""), s.Name, false, nil)
			w.no(err)
			w.check()
			w.all("resumed", eq(w.schedule(s.Name).Next.IsZero(), true), eq(w.filed(), 0))
		}},
	{name: "a schedule whose first run is now is due once at its creation", run: func(w *env) {
		name, next := w.named("s"), w.clock().Add(time.Hour)
		put := func(definition string) engine.ScheduleSet {
			w.Helper()
			set, err := w.e.PutSchedule(w.ctx,
				engine.SchedulePut{Name: name, Definition: []byte(definition), Next: next, Begin: true})
			w.no(err)
			w.check()
			return set
		}
		first := put("a")
		s := w.schedule(name)
		w.all("due", eq(first.Next.Equal(s.CreatedAt), true), eq(s.Next.Equal(s.CreatedAt), true),
			eq(w.tick().Schedules, 1))
		same(w, "again", put("a"), engine.ScheduleSet{Already: true, Revision: first.Revision, Next: first.Next})
		f := w.firing(s, time.Second)
		f.Next = next
		w.fire(f)
		same(w, "fired, again", put("a").Next.UnixMilli(), next.UnixMilli())
		same(w, "changed", put("b").Next.UnixMilli(), next.UnixMilli())
		w.all("told", eq(w.schedule(name).Fired, 1), eq(w.tick().Schedules, 0))
	}},
	{name: "a schedule that is over is listed and not due, and a change revives it", run: func(w *env) {
		name := w.named("s")
		set, err := w.e.PutSchedule(w.ctx, engine.SchedulePut{Name: name, Definition: []byte("over")})
		w.no(err)
		w.check()
		w.all("next", eq(set.Next.IsZero(), true), eq(w.schedule(name).Next.IsZero(), true), eq(w.filed(), 0),
			eq(w.tick().Schedules, 0))
		w.put(name, w.clock(), "x")
		w.all("revived", eq(w.filed(), 1), eq(w.tick().Schedules, 1))
	}},
	{name: "a scheduled flow runs as a whole, with the call that moves its schedule on, and never otherwise",
		run: func(w *env) {
			s := w.recurring(w.named("s"), time.Second)
			w.advance(time.Hour)
			g := w.scheduled(s)
			f := g.firing(s)
			w.unchanged("not staged", func() { same(w, "not staged", w.fire(f).Outcome, engine.FireWanted) })
			part := *g
			part.nodes = g.nodes[:1]
			part.stage()
			w.unchanged("a part", func() { same(w, "a part", w.fire(f).Outcome, engine.FireWanted) })
			g.stage()
			ask := f
			ask.Flow.Mode = ""
			w.unchanged("only asked", func() { same(w, "only asked", w.fire(ask).Outcome, engine.FireWanted) })
			w.advance(time.Minute)
			same(w, "held back", len(w.worker("w0").claim(5)), 0)
			same(w, "released", w.fire(f).Outcome, engine.FireCreated)
			same(w, "again", w.fire(f), engine.Fired{Already: true})
			now := w.schedule(s.Name)
			w.all("told", eq(now.Fired, 1), eq(now.LastFlow, g.id), eq(now.LastID.IsZero(), true),
				eq(now.Next.Sub(s.Next), time.Second))
			k := w.worker("w1")
			w.no(w.complete(k.one(g.id.Member("a")).Fence, "").Err)
			w.no(w.complete(k.one(g.id.Member("b")).Fence, "").Err)
			w.check()
			record, err := w.e.DescribeFlow(w.ctx, g.id)
			w.no(err)
			same(w, "flow", record.State, flowfabric.FlowCompleted)
		}},
	{name: "a flow that was staged for a schedule stays unreleased when the schedule changed, paused, or moved on",
		run: func(w *env) {
			s := w.recurring(w.named("s"), time.Second)
			w.advance(time.Hour)
			g := w.scheduled(s).stage()
			f := g.firing(s)
			_, _, err := w.e.PauseSchedule(trail.As(w.ctx, "anna", ""), s.Name, true, nil)
			w.no(err)
			w.unchanged("paused", func() { same(w, "paused", w.fire(f), engine.Fired{Already: true}) })
			_, _, err = w.e.PauseSchedule(trail.As(w.ctx, "anna", ""), s.Name, false, nil)
			w.no(err)
			w.put(s.Name, s.Next, "another")
			w.unchanged("changed", func() { same(w, "changed", w.fire(f), engine.Fired{Already: true}) })
			same(w, "held back", len(w.worker("w1").claim(5)), 0)
			record, err := w.e.DescribeFlow(w.ctx, g.id)
			w.no(err)
			same(w, "flow", record.State, flowfabric.FlowStaging)
			now := w.schedule(s.Name)
			h := w.scheduled(now).stage()
			w.all("the new one", eq(h.id != g.id, true), eq(w.fire(h.firing(now)).Outcome, "created"))
			w.advance(25 * time.Hour)
			w.takeOver()
			record, err = w.e.DescribeFlow(w.ctx, g.id)
			w.no(err)
			same(w, "given up", record.State, flowfabric.FlowCancelled)
		}},
	{name: "a scheduled flow that was cancelled before its release is counted as missed", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.advance(time.Hour)
		g := w.scheduled(s).stage()
		_, err := w.e.CancelFlow(w.ctx, g.id, flowfabric.CancelAll)
		w.no(err)
		g.drain()
		out := w.fire(g.firing(s))
		w.is(out.Refusal, denied.FlowTerminal)
		now := w.schedule(s.Name)
		w.all("told", eq(out.Outcome, "refused"), eq(now.Fired, 0), eq(now.LastMissed.Reason, "flow_already_terminal"),
			eq(now.Next.Sub(s.Next), time.Second))
	}},
	{name: "a schedule that forbids overlap waits for the end of its last flow", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		w.advance(time.Hour)
		g := w.scheduled(s).stage()
		f := g.firing(s)
		f.Solo = true
		same(w, "first", w.fire(f).Outcome, engine.FireCreated)
		step := func() engine.FireOutcome {
			w.Helper()
			now := w.schedule(s.Name)
			f := w.scheduled(now).firing(now)
			f.Solo, f.Flow.Mode = true, ""
			return w.fire(f).Outcome
		}
		same(w, "runs", step(), engine.FireOverlap)
		single := w.firing(w.schedule(s.Name), time.Second)
		single.Solo = true
		same(w, "an execution instead", w.fire(single).Outcome, engine.FireOverlap)
		k := w.worker("w1")
		w.no(w.complete(k.one(g.id.Member("a")).Fence, "").Err)
		same(w, "half", step(), engine.FireOverlap)
		w.no(w.complete(k.one(g.id.Member("b")).Fence, "").Err)
		same(w, "ended", step(), engine.FireWanted)
		same(w, "reasons", w.schedule(s.Name).Reasons["overlap"], 3)
	}},
	{name: "a firing of a flow with arguments out of bounds is refused", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		args := wireFire(w, s, "0")
		flow := append(slices.Clone(args[:12]), ids.UUID(mint.ID(w.p)).String(), "2", "1", "seal")
		for at, value := range map[int]string{9: "x", 12: "flow", 13: "0", 14: "-1", 15: "shut"} {
			bad := slices.Clone(flow)
			bad[at] = value
			w.unchanged(value, func() { same(w, value, w.fcall("ff_fire_schedule", bad...).code, "invalid_input") })
		}
		both := append(slices.Clone(flow), wireFire(w, s, "0")[16:]...)
		w.unchanged("both", func() { same(w, "both", w.fcall("ff_fire_schedule", both...).code, "invalid_input") })
		none := slices.Clone(flow)
		none[10] = ""
		w.unchanged("nothing",
			func() { same(w, "nothing", w.fcall("ff_fire_schedule", none...).code, "invalid_input") })
		f := w.firing(s, time.Second)
		f.Flow.ID = flowfabric.FlowID(mint.ID((w.p + 1) % partitions))
		_, err := w.e.FireSchedule(w.ctx, f)
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "the input of a schedule is read with it when asked for", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Second)
		same(w, "usually", string(s.Input), "")
		page, err := w.e.Schedules(w.ctx, w.p, engine.ScheduleQuery{Name: s.Name, Whole: true})
		w.no(err)
		same(w, "whole", string(page.Schedules[0].Input), "in 1s")
	}},
}

// limited stores a schedule with a limit of runs.
func (w *env) limited(name, definition string, next time.Time, limit uint64) engine.Schedule {
	w.Helper()
	_, err := w.e.PutSchedule(w.ctx, engine.SchedulePut{Name: name, Definition: []byte(definition), Next: next,
		Limit: limit})
	w.no(err)
	w.check()
	return w.schedule(name)
}

// filed is how many schedules the tick looks for.
func (w *env) filed() int {
	w.Helper()
	n, err := w.do("ZCARD", w.k.Schedules()).AsInt64()
	w.no(err)
	return int(n)
}

// scheduled is the flow of the next instant of a schedule: b depends on a.
func (w *env) scheduled(s engine.Schedule) *graph {
	g := w.flow()
	g.id = flowfabric.FlowID(mint.Join(ids.ScheduledFlow(w.p, s.Name, s.Incarnation, s.Revision,
		s.Next)))
	return g.node("a", nil).node("b", []string{"a"})
}

// firing is the step that releases the flow.
func (g *graph) firing(s engine.Schedule) engine.Firing {
	f := g.env.firing(s, time.Second)
	f.Item, f.Flow = engine.NewExecution{},
		engine.StagedFlow{ID: g.id, Members: len(g.nodes), Edges: g.edges, Mode: engine.SealClosed}
	return f
}

// must drops the error of a call that is tested by its answer.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
