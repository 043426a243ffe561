package conformance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/trail"
)

var auditScenarios = []scenario{
	{name: "an audit repairs 1,000 random index entries that were deleted, added or misplaced", run: func(w *env) {
		seed := uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano()))
		v := &vandal{env: w, r: rand.New(rand.NewPCG(seed, 2)), lost: map[string]bool{}}
		w.Logf("seed %d", seed)
		without := w.populate(200 / max(1, w.srv.Share))
		w.quiet = true
		without = append(without, w.shapes().without()...)
		// whose end is known, and who may be looked at earlier
		asker := w.gateShapes().worker.session
		// the outbox has what the repair sends, and the hint that it has
		without = append(without, ":turns:", ":ring:", ":gring:", ":outbox", fmt.Sprintf(":sessions %q", asker),
			"root quiet", "root told")
		w.quiet = true
		w.advance(time.Millisecond)
		w.quiet = false
		same(w, "a sound store", found(w.audit(false)), "")
		before := zeroless(w.digest(without...))
		n := 1000 / max(1, w.srv.Share)
		if w.srv.Share >= 10 {
			n /= 3 // an audit of the slowest server takes longest
		}
		for range n {
			v.strike()
			switch v.r.IntN(5) {
			case 0:
				v.flow()
			case 1:
				v.gates()
			}
		}
		damaged := w.fingerprint()
		look := w.audit(false)
		same(w, "an audit that does not repair wrote something", w.fingerprint(), damaged)
		if look.Repairable == 0 || look.Repaired+look.Lost > 0 || look.Sound {
			w.Fatalf("seed %d: %d repairable, %d repaired, %d lost of a damaged partition: %.3000s", seed,
				look.Repairable, look.Repaired, look.Lost, found(look))
		}
		repaired := w.audit(true)
		if after := zeroless(w.digest(without...)); after != before {
			w.Fatalf("seed %d: not repaired:\n%s", seed, difference(before, after))
		}
		if repaired.Lost > 0 || repaired.Repaired == 0 || !repaired.Sound {
			w.Errorf("seed %d: repaired %d, lost %d: %v", seed, repaired.Repaired, repaired.Lost, repaired.Kinds)
		}
		w.Logf("looked: %v, repaired: %v", look.Kinds, repaired.Kinds)
		same(w, "a second audit", found(w.audit(true)), "")
		w.check()
	}},
	{name: "an audit repairs every damage that the checker sees, except damaged records",
		damaged: "its last damage may be one of a record", run: func(w *env) {
			for i, what := range slices.Sorted(maps.Keys(damages)) {
				if !w.mine(i) {
					continue
				}
				w.damage(damages[what])
				look := w.audit(false)
				repaired := w.audit(true)
				if what == "no session" { // the tick requeues what the session held
					w.tickOnce()
				}
				left := w.violations(w.dump())
				if slices.Contains(recordDamages, what) {
					if len(left) == 0 {
						w.Errorf("%s is listed as a damage of records, and was repaired", what)
					}
					continue
				}
				if len(left) > 0 || look.Repairable == 0 || repaired.Repaired == 0 || repaired.Lost > 0 {
					w.Errorf("%s: found %v, repaired %v, left:\n%s", what, look.Kinds, repaired.Kinds,
						strings.Join(left, "\n"))
				}
				if again := found(w.audit(true)); again != "" {
					w.Errorf("a second audit after %s finds %s", what, again)
				}
			}
		}},
	{name: "work that lost its index entries runs after an audit", run: func(w *env) {
		w.quiet = true
		w.seed()
		waiting, late, ending := w.create(priority(1)), w.create(delay(time.Second), kind("late")),
			w.create(deadline(2*time.Second), kind("ending"))
		k := w.worker("w1")
		held := w.create(priority(9), timeout(time.Second))
		k.one(held)
		dying := w.create(priority(9))
		gone := w.worker("gone")
		gone.one(dying)
		asleep := w.create(priority(9))
		k.ttl = time.Hour
		w.suspend(k.one(asleep).Fence, within(time.Second, "auto_resume"))
		w.tick()
		w.set("DEL", w.k.Ready(), w.k.Delayed(), w.k.Alarms(), w.k.Parked(), w.k.Held(gone.session),
			w.k.Session(gone.session), w.k.Sessions())
		for _, route := range []string{"1", "2", "3"} {
			w.set("DEL", w.k.Queue(route))
		}
		w.set("HDEL", string(w.k), "wake")
		w.advance(3 * time.Second)
		idle := w.worker("w2")
		idle.nothing()
		w.all("without an audit the tick fires nothing", eq(w.tickOnce().Promoted, 0), eq(w.tickOnce().Requeued, 0))
		if r := w.audit(true); !r.Sound || r.Repaired == 0 {
			w.Fatalf("not repaired: %v %d", r.Kinds, r.Lost)
		}
		if at, _ := strconv.ParseInt(w.root()["wake"], 10, 64); at == 0 || at > w.now()+1000 {
			w.Fatalf("nobody would tick: wake is %d", at)
		}
		w.quiet = false
		w.settleTime()
		w.code(ending, "T4n")
		w.code(held, "T4")
		w.code(dying, "R1r")
		w.code(asleep, "R1i")
		w.code(late, "R1f")
		same(w, "claimed", len(idle.claim(10)), 4)
		w.code(waiting, "A1")
	}},
	{name: "an audit under load reports no false finding", run: func(w *env) {
		w.quiet = true
		w.seed()
		ctx, stop := context.WithCancel(w.ctx)
		defer stop()
		var load, audits sync.WaitGroup
		var worked atomic.Int64
		for i := range 3 {
			load.Go(func() {
				k := w.worker("load" + strconv.Itoa(i))
				for n := 0; ctx.Err() == nil; n++ {
					w.createN(3, kind("k"+strconv.Itoa(n%5)), timeout(time.Minute), deadline(time.Hour),
						tags(map[string]string{"a.b": "c"}))
					w.createN(1, delay(time.Millisecond), kind("k"+strconv.Itoa(n%3)))
					for j, c := range k.claim(3) {
						switch j {
						case 0:
							w.complete(c.Fence, "r")
							if n%2 == 0 { // rows of routes come and go
								_, err := w.e.PurgeExecution(w.ctx, c.Fence.Execution, 0)
								w.no(err)
							}
						case 1:
							w.fail(c.Fence, "x")
						default:
							w.suspend(c.Fence, within(time.Millisecond, "fail"))
						}
						worked.Add(1)
					}
					w.tickOnce()
				}
			})
		}
		audits.Go(func() {
			for range max(3, 12/max(1, w.srv.Share)) {
				r, err := maintain.Audit(w.ctx,
					maintain.AuditConfig{Engine: w.e, Repair: true, Partitions: []uint16{w.p}})
				if err != nil || !r.Sound || len(r.Findings) > 0 {
					w.Errorf("%v, %+v, findings:\n%s", err, r.Partitions, found(r))
				}
			}
		})
		audits.Wait()
		stop()
		load.Wait()
		w.quiet = false
		w.check()
		if worked.Load() == 0 {
			w.Error("there was no load")
		}
	}},
	{name: "an audit skips no index entry, even if entries share a score or move between pages",
		damaged: "it misplaces index entries", run: func(w *env) {
			ids := w.createN(9, delay(time.Hour))
			at := w.core(ids[0])["du"]
			w.quiet = true
			for i := range 11 {
				w.set("ZADD", w.k.Delayed(), at, fmt.Sprintf("%x-nobody", i*23))
			}
			walk := func(repair bool, between func(page int)) (checked, phantoms int) {
				for cursor, page := "", 0; page == 0 || cursor != ""; page++ {
					next, n, list, err := w.e.AuditIndex(w.ctx, w.p, repair,
						engine.IndexPage{Index: "delayed", Cursor: cursor, Limit: 2})
					w.no(err)
					checked, phantoms, cursor = checked+n, phantoms+len(list), next
					between(page)
				}
				return checked, phantoms
			}
			checked, phantoms := walk(false, func(int) {})
			w.all("looked at, phantoms", eq(checked, 20), eq(phantoms, 11))
			checked, phantoms = walk(true, func(int) {})
			w.all("looked at, removed", eq(checked, 20), eq(phantoms, 11))
			seen := 0
			checked, _ = walk(false, func(page int) { // the last member of a page goes elsewhere
				if page < 3 {
					list, err := w.do("ZRANGE", w.k.Delayed(), "0", "-1").AsStrSlice()
					w.no(err)
					w.set("ZADD", w.k.Delayed(), "5", list[2*page+1])
					seen++
				}
			})
			w.all("looked at while some moved back", eq(checked, 9), eq(seen, 3))
			w.quiet = false
		}},
	{name: "a key of a wrong type does not hide other keys from an audit", run: func(w *env) {
		list := w.createN(5)
		odd := ids.UUID(w.item().ID).String()
		w.set("SET", string(w.k)+":x:"+odd, "x")
		w.set("DEL", w.k.Queue("1"), w.k.Parked())
		w.set("SET", w.k.Parked(), "x")
		r := w.audit(true)
		w.all("found", eqDeep(r.Kinds, map[string]int{"damaged": 2, "missing": 5}), eq(r.Repaired, 7),
			eq(r.Sound, true))
		kept, err := w.do("EXISTS", string(w.k)+":bad:x:"+odd, string(w.k)+":bad:parked").AsInt64()
		w.no(err)
		same(w, "set aside", kept, 2)
		w.check()
		same(w, "claimed", len(w.worker("w1").claim(9)), len(list))
	}},
	{name: "an unreadable record stops no other work, and an audit sets it aside", run: func(w *env) {
		wrong := func(id flowfabric.ExecutionID) { // a core of another type
			w.set("DEL", w.k.Core(ids.UUID(id)))
			w.set("RPUSH", w.k.Core(ids.UUID(id)), "x")
		}
		garbage := func(field string) func(flowfabric.ExecutionID) {
			return func(id flowfabric.ExecutionID) {
				w.editRecord(ids.UUID(id), func(f fields) { f[field] = "soon" })
			}
		}
		for what, x := range map[string]struct {
			opts   []option
			damage func(flowfabric.ExecutionID)
			held   bool
		}{
			"waiting, of another type": {opts: []option{priority(9)}, damage: wrong},
			"waiting, its deadline":    {opts: []option{priority(9), deadline(time.Hour)}, damage: garbage("dl")},
			"waiting, its epoch":       {opts: []option{priority(9)}, damage: garbage("e")},
			"delayed, of another type": {opts: []option{delay(time.Second)}, damage: wrong},
			"delayed, its instant":     {opts: []option{delay(time.Second)}, damage: garbage("du")},
			"active, of another type":  {opts: []option{timeout(time.Second)}, damage: wrong, held: true},
			"active, its timeout":      {opts: []option{timeout(time.Second)}, damage: garbage("ta"), held: true},
			"active, its deadline": {opts: []option{timeout(time.Second), deadline(time.Second)},
				damage: garbage("dl"), held: true},
			"active, its attempts": {opts: []option{timeout(time.Second)}, damage: garbage("n"), held: true},
		} {
			w.reset()
			w.quiet = true
			k := w.worker("w1")
			id := w.create(x.opts...)
			if x.held {
				k.one(id)
			}
			behind, late := w.create(), w.create(delay(time.Second))
			x.damage(id)
			w.advance(time.Second)
			w.settleTime() // the tick raises nothing
			w.code(late, "R1f")
			if n := len(k.claim(9)); n != 2 {
				w.Errorf("%s: %d claimed", what, n)
			}
			w.code(behind, "A1")
			w.advance(2 * ttl) // its session ends
			w.settleTime()
			if look := w.audit(false); look.Kinds[engine.FindingDamaged] != 1 || look.Sound {
				w.Errorf("%s: seen %s", what, found(look))
			}
			if r := w.audit(true); !r.Sound || r.Kinds[engine.FindingDamaged] != 1 {
				w.Errorf("%s: %s", what, found(r))
			}
			w.quiet = false
			w.check()
			same(w, "a second audit after "+what, found(w.audit(true)), "")
		}
	}},
	{name: "an audit rebuilds indexes whose key has a wrong type", run: func(w *env) {
		w.quiet = true
		ids := w.createN(3)
		late := w.create(delay(time.Hour), deadline(2*time.Hour))
		k := w.worker("w1")
		k.one(ids[0])
		for _, key := range []string{w.k.Queue("1"), w.k.Ready(), w.k.Delayed(), w.k.Alarms(), w.k.Held(k.session),
			w.k.RouteLog()} {
			w.set("DEL", key)
			w.set("SET", key, "x")
		}
		if look := w.audit(false); look.Kinds[engine.FindingDamaged] == 0 || look.Sound {
			w.Errorf("seen %s", found(look))
		}
		if r := w.audit(true); !r.Sound || r.Kinds[engine.FindingDamaged] != 6 {
			w.Errorf("%s", found(r))
		}
		w.quiet = false
		w.check()
		same(w, "again", found(w.audit(true)), "")
		same(w, "claimed", len(w.worker("w2").claim(9)), 2)
		w.code(late, "R2af")
	}},
	{name: "an audit says what of a record cannot be read", run: func(w *env) {
		w.quiet = true
		for _, x := range []struct{ field, value, want string }{
			{"dl", "9007199254740993", "field deadline is no whole number"},
			{"rt", "a week", "field retention is neither a number of seconds nor four of them"},
			{"ky", "mine", "field key is no key and how long it is held"},
			{"du", "", "state R2af without field delay_until"},
		} {
			id := w.create(delay(time.Hour))
			w.editRecord(ids.UUID(id), func(f fields) {
				if f[x.field] = x.value; x.value == "" {
					delete(f, x.field)
				}
			})
			if got := found(w.audit(false)); !strings.Contains(got, x.want) {
				w.Errorf("%s: %s", x.field, got)
			}
			w.reset()
		}
		long := strings.Repeat("1", 80)
		for of, code := range map[string]string{long: "OK", long + "1": "invalid_input"} {
			same(w, code, w.fcall("ff_audit_index", proto, "0", "q:"+of, "", "10").code, code)
		}
	}},
	{name: "an audit reads all of the outbox, and skips nothing between its pages", run: func(w *env) {
		for i := range 203 {
			w.set("XADD", w.k.Outbox(), fmt.Sprint("5-", i+1), "x", "of no shape")
		}
		same(w, "removed", w.audit(true).Repaired >= 203, true)
		same(w, "after it", found(w.audit(true)), "")
	}},
	{name: "an audit keeps the key of a record that it set aside", damaged: "the key names what was set aside",
		run: func(w *env) {
			w.quiet = true
			id := w.create(key("aside", time.Hour))
			w.set("DEL", w.k.Core(ids.UUID(id)))
			w.set("RPUSH", w.k.Core(ids.UUID(id)), "x")
			keyed, err := w.below(string(w.k), ":y:*")
			w.no(err)
			w.audit(true)
			same(w, "after it", found(w.audit(true)), "")
			left, err := w.below(string(w.k), ":y:*")
			w.no(err)
			sameList(w, "keys", left, keyed...)
		}},
	{name: "an audit files a schedule where it comes due, and not when it is paused", run: func(w *env) {
		s := w.recurring(w.named("s"), time.Minute)
		due := func(what string, want float64) {
			w.Helper()
			same(w, what, found(w.audit(true)) != "", true)
			same(w, what, w.dump().ZSets[":schedules"][s.Name], want)
			same(w, "after "+what, found(w.audit(true)), "")
		}
		next := strconv.FormatInt(s.Next.UnixMilli(), 10)
		w.set("ZREM", w.k.Schedules(), s.Name)
		due("nowhere", float64(s.Next.UnixMilli()))
		w.set("ZADD", w.k.Schedules(), "5", s.Name)
		due("at another time", float64(s.Next.UnixMilli()))
		w.must("ff_pause_schedule", proto, s.Name, "1", "")
		w.set("ZADD", w.k.Schedules(), next, s.Name)
		due("paused", 0)
	}},
	{name: "an audit removes the notices of a missing session and keeps those of a live one", run: func(w *env) {
		k := w.worker("w1")
		_, err := w.e.RevokeLease(w.ctx, k.one(w.create()).Fence.Execution, "")
		w.no(err)
		w.set("RPUSH", w.k.Lost("gone~1"), "1")
		r := w.audit(true)
		w.all("found", eqDeep(r.Kinds, map[string]int{"orphan": 1}), eq(r.Repaired, 1))
		w.check()
		n, err := w.do("EXISTS", w.k.Lost("gone~1"), w.k.Lost(k.session)).AsInt64()
		w.no(err)
		same(w, "lists of notices", n, 1)
	}},
	{name: "an audit of a frozen partition changes nothing and reports the freeze", run: func(w *env) {
		id := w.create()
		w.set("ZREM", w.k.Queue("1"), ids.UUID(id).String())
		w.no(w.e.FreezePartition(trail.As(w.ctx, "", "moving"), w.p))
		w.unchanged("an audit of a frozen partition", func() {
			r, err := maintain.Audit(w.ctx, maintain.AuditConfig{Engine: w.e, Repair: true, Partitions: []uint16{w.p}})
			w.no(err)
			w.is(r.Partitions[0].Err, flowfabric.ErrPartitionFrozen)
			same(w, "sound", r.Sound, false)
		})
		w.no(w.e.ThawPartition(w.ctx, w.p))
		same(w, "repaired", w.audit(true).Kinds[engine.FindingMissing], 1)
		w.check()
	}},
	{name: "an audit of route counts accounts for purges and removes no route in use", run: func(w *env) {
		ids := w.createN(4)
		w.advance(time.Millisecond)
		since, _, err := w.e.AuditRoutes(w.ctx, w.p, false, engine.RouteCount{}, nil)
		w.no(err)
		w.cancel(ids[0])
		_, err = w.e.PurgeExecution(w.ctx, ids[0], 0)
		w.no(err)
		seen := func(low int) []engine.RouteUse {
			return []engine.RouteUse{{Route: 1, Stored: since.Uses[1], Low: low, High: low}}
		}
		_, list, err := w.e.AuditRoutes(w.ctx, w.p, true, since, seen(3))
		w.no(err)
		same(w, "findings", len(list), 0)
		w.check()
		c, list, err := w.e.AuditRoutes(w.ctx, w.p, true, since, seen(2)) // one is more than the purge explains
		w.no(err)
		w.all("lowered", eq(len(list), 1), eq(w.hash(w.k.RouteUse())["1"], "2"), eq(c.Compared, true))
		c, list, err = w.e.AuditRoutes(w.ctx, w.p, true, since, seen(2))
		w.no(err)
		w.all("after another recount", eq(len(list), 0), eq(c.Compared, false))
		w.all("the audit raises it", eq(w.audit(true).Kinds[engine.FindingCount], 1),
			eq(w.hash(w.k.RouteUse())["1"], "3"))
		w.check()
	}},
	{name: "an audit tells workers of a lost route again and removes an unused one", run: func(w *env) {
		w.create()
		k := w.worker("w1")
		k.nothingYet()
		table := k.table
		w.set("DEL", w.k.RouteLog(), w.k.RouteIDs(), w.k.RouteUse())
		w.set("HSET", w.k.Routes(), "9", "n\x1fl\x1fk9\x1f\x1f")
		w.advance(time.Millisecond)
		w.audit(true)
		w.check()
		same(w, "routes", len(w.hash(w.k.Routes())), 1)
		k.nothingYet()
		if k.table <= table {
			w.Errorf("version %d after %d: no worker would learn of the route", k.table, table)
		}
		w.set("HDEL", string(w.k), "routes") // the number of the newest, which the next one would get
		w.audit(true)
	}},
	{name: "an audit reports the row of a route that cannot be read", damaged: "it leaves a row that cannot be read",
		run: func(w *env) {
			w.create()
			w.set("HSET", w.k.Routes(), "9", "neither namespace nor lane")
			same(w, "found", found(w.audit(false)), "phantom routes 9: 0 counted, 0 found\nrecord routes 9: row")
		}},
	{name: "an audit applies a changed lane retention to what has ended", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		w.complete(k.one(id).Fence, "r")
		keep := time.Minute
		w.setLane("default", "", strconv.Itoa(int(keep.Seconds())))
		r := w.audit(false)
		w.all("seen", eqDeep(r.Kinds, map[string]int{"retention": 1}), eq(r.Sound, true))
		w.audit(true)
		same(w, "again", found(w.audit(true)), "")
		w.advance(time.Minute)
		w.settleTime()
		_, err := w.e.ReadExecution(w.ctx, id)
		w.is(err, flowfabric.ErrResultPurged)
	}},
}

// recordDamages are those of damages that lose or break a record: nothing tells what it was, so no audit repairs it.
var recordDamages = []string{
	"a TTL", "a broken match", "a broken waitpoint", "a closed stream", "a delay without instant",
	"a lane in no state", "a lane of no shape", "a live log for ever", "a long history", "a lost count", "a lost frame",
	"a lost input", "a lost match", "a lost signal", "a lost waitpoint", "a match uncounted", "a mixed frame uncounted",
	"a notice too many", "a part of no node", "a part that nothing met", "a part uncounted", "a purge of a live one",
	"a reason to die", "a record of another epoch", "a replay by request x", "a replay forgotten",
	"a replay nobody counted", "a replay of a lost attempt", "a result of an active one", "a result of no attempt",
	"a resumption nobody made", "a revoked one that runs out", "a revoked one with a record", "a short record",
	"a signal not known again", "a step of nobody", "a summary of no version", "a suspended one that was resumed",
	"a suspended one without record", "a token key of no shape", "a tombstone beside a core", "a tombstone for ever",
	"an attempt too many", "an end undone", "an epoch gone back", "an unknown key",
	"an unknown root field", "another condition", "another reason", "another state", "deltas without metadata",
	"lost tags", "no timeout", "no token key", "progress of no attempt", "signals uncounted",
}

// tickOnce makes one call, whichever process owns the tick, and looks at nothing.
func (w *env) tickOnce() engine.TickReply {
	w.Helper()
	r, err := w.e.Tick(w.ctx, w.p, ticker, false)
	w.no(err)
	return r
}

// audit audits this partition to its end.
func (w *env) audit(repair bool) flowfabric.CheckReport {
	w.Helper()
	r, err := maintain.Audit(w.ctx, maintain.AuditConfig{Engine: w.e, Repair: repair, Partitions: []uint16{w.p}})
	w.no(err)
	w.no(r.Partitions[0].Err)
	return r
}

// found lists the findings of a report, in order.
func found(r flowfabric.CheckReport) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, fmt.Sprintf("%s %s %s: %s", f.Kind, f.Index, f.Member, f.Detail))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// populate fills the partition with executions in every state that is stored, and about n more of the usual ones. It
// returns what an audit cannot know to the millisecond, as prefixes of facts.
func (w *env) populate(n int) (without []string) {
	w.Helper()
	w.quiet = true
	defer func() { w.quiet = false }()
	w.hands = true
	defer func() { w.hands = false }()
	codes := []codes.Code{"T4n", "T4", "R1r", "R2r"} // those that move the clock come first
	for _, code := range reachable {
		if code != "A2" && !slices.Contains(codes, code) && code[:2] != "R3" && code != "S8" && code[:2] != "G1" &&
			code != "T5n" {
			codes = append(codes, code)
		}
	}
	for i, code := range codes {
		opts := []option{priority(100 + i), kind("k" + strconv.Itoa(i%4)), tags(map[string]string{"a.b": "c"})}
		if code[0] != 'T' && code != "R1r" && code != "R2r" {
			opts = append(opts, deadline(24*time.Hour), timeout(12*time.Hour))
		}
		x := w.state(code, opts...)
		if code == "A3" {
			without = append(without, `:alarms "`+ids.UUID(x.id).String()+`"`)
		}
	}
	var ids []flowfabric.ExecutionID
	for i := range n / 10 {
		ids = append(ids, w.createN(5, kind("k"+strconv.Itoa(i%4)), priority(i%3), timeout(time.Hour))...)
		w.createN(2, delay(time.Hour), lane("slow"))
		w.createN(3, deadline(time.Hour), kind("k"+strconv.Itoa(i%4)))
	}
	for i := range 3 {
		k := w.worker("many" + strconv.Itoa(i))
		for j, c := range k.claim(min(90, len(ids)/4)) {
			switch j % 6 {
			case 0, 1:
				w.no(w.complete(c.Fence, "r").Err)
			case 2:
				w.suspend(c.Fence, within(time.Hour, "fail"))
			case 3:
				w.pend(c.Fence, "draft")
			}
		}
	}
	idle := w.worker("idle")
	idle.can = func(engine.Route) bool { return false }
	idle.nothing()
	w.tick()
	w.advance(time.Millisecond) // what was created in this millisecond may or may not be in the counts
	return append(without, "root wake", "root recounts", "root urged")
}

// vandal damages indexes at random.
type vandal struct {
	*env
	r    *rand.Rand
	d    *invariant.Dump
	left int             // strikes until the next look
	lost map[string]bool // rows of routes that are gone from one of the two hashes
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// zsets are the sorted sets whose entries follow from records.
func (v *vandal) zsets() (names []string) {
	for key := range v.d.ZSets {
		for _, family := range []string{":q:", ":h:", ":open:", ":delayed", ":alarms", ":parked", ":done",
			":unsuccessful", ":pending", ":sessions", ":blocked", ":flows", ":flowdue"} {
			if strings.HasPrefix(key, family) {
				names = append(names, key)
			}
		}
	}
	slices.Sort(names)
	return names
}

// strike makes one change.
func (v *vandal) strike() {
	if v.left--; v.left < 0 {
		v.d, v.left = v.dump(), 25
	}
	root, sets := string(v.k), v.zsets()
	ids := []string{ids.UUID(v.item().ID).String()} // of nobody
	for key := range v.d.Hashes {
		if id, ok := strings.CutPrefix(key, ":x:"); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	key := pick(v.r, sets)
	members := make([]string, 0, len(v.d.ZSets[key]))
	for m := range v.d.ZSets[key] {
		members = append(members, m)
	}
	slices.Sort(members)
	member := pick(v.r, members)
	score := strconv.FormatInt(v.now()+int64(v.r.IntN(1e9))-5e8, 10)
	switch n := v.r.IntN(100); {
	case n < 40:
		v.set("ZREM", root+key, member)
	case n < 55:
		by := 1 + v.r.IntN(1e7)
		if key == ":sessions" && v.do("ZSCORE", root+key, member).Error() != nil {
			return // a session may be looked at early
		}
		if key != ":sessions" && v.r.IntN(2) == 0 {
			by = -by
		}
		v.set("ZINCRBY", root+key, strconv.Itoa(by), member)
	case n < 80:
		v.intrude(key, pick(v.r, ids), score)
	case n < 84:
		v.set("SREM", root+":ready", pick(v.r, append(v.d.Sets[":ready"], "1")))
	case n < 87:
		v.set("SADD", root+":ready", strconv.Itoa(1+v.r.IntN(99)))
	case n < 90:
		v.set("HINCRBY", root+":routeuse", strconv.Itoa(1+v.r.IntN(8)), strconv.Itoa(v.r.IntN(9)-4))
	case n < 92:
		v.table()
	case n < 94:
		v.set([][]string{{"HDEL", root, "wake"}, {"HINCRBY", root, "wake", "5000000"}, {"HSET", root, "ring", "soon"},
			{"HDEL", root, "routes"},
			{"HSET", root, "quiet", strconv.FormatInt(v.now()+1_000_000, 10)}}[v.r.IntN(5)]...)
	case n < 96:
		area := pick(v.r, []string{":i:", ":o:", ":g:"})
		of := map[string]string{":i:": "", ":o:": ":1", ":g:": ":" + uuid.NewString()}[area]
		if area == ":g:" {
			v.set("RPUSH", root+area+pick(v.r, ids)+of, "x")
		} else {
			v.set("SET", root+area+ids[slices.IndexFunc(ids, func(id string) bool {
				return v.d.Hashes[":x:"+id] == nil
			})]+of, "x")
		}
	case n < 98:
		if id := pick(v.r, ids); v.d.Hashes[":x:"+id]["uw"] != "" {
			v.editRecord(uuid.MustParse(id), func(f fields) { raise(f, "wp", 2) })
		} else if v.d.Hashes[":t:"+id] != nil {
			v.editRecord(uuid.MustParse(id), func(f fields) { delete(f, "tg") })
		}
	default:
		for w := range v.d.ZSets {
			if digest, ok := strings.CutPrefix(w, ":w:"); ok {
				v.set("SREM", root+":digests", digest)
			}
		}
	}
}

// intrude puts an execution, a waitpoint or a session where it does not belong.
func (v *vandal) intrude(key, id, score string) {
	switch {
	case key == ":sessions":
		v.set("ZADD", string(v.k)+key, score, "ghost~"+strconv.Itoa(v.r.IntN(50)))
		return
	case key == ":pending" || strings.HasPrefix(key, ":open:"):
		id += ":" + uuid.NewString()
	}
	if v.r.IntN(4) == 0 {
		key = pick(v.r, []string{":q:99", ":h:nobody~1", ":q:1", ":q:2"})
		id, _, _ = strings.Cut(id, ":")
	}
	v.set("ZADD", string(v.k)+key, score, id)
}

// table loses one side of a row, or adds one of nothing.
func (v *vandal) table() {
	root := string(v.k)
	rows := make([]string, 0, 8)
	for id := range v.d.Hashes[":routes"] {
		rows = append(rows, id)
	}
	slices.Sort(rows)
	switch id := pick(v.r, append(rows, "")); {
	case id == "" && len(rows) == 0: // every row is lost already
	case id == "":
		v.set("HSET", root+":routeids", "a\x1fb\x1fc\x1f\x1f"+strconv.Itoa(v.r.IntN(9)), rows[0])
		v.set("ZADD", root+":routelog", "5", strconv.Itoa(90+v.r.IntN(9)))
	case v.lost[id]:
	case v.r.IntN(2) == 0:
		v.lost[id] = true
		v.set("HDEL", root+":routes", id)
	default:
		v.lost[id] = true
		v.set("HDEL", root+":routeids", v.d.Hashes[":routes"][id])
	}
}
