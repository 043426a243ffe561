package conformance

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/contract"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/record"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// What holds of several processes that all tick, whatever is in front of what they look for and whatever their clocks
// say.
var replicaScenarios = []scenario{
	{name: "two engines that tick the same items apply each effect exactly once", run: func(w *env) {
		n := max(40, 200/max(1, w.srv.Share))
		b := w.backlog(n)
		other, _ := connect(w.T, *w.srv)
		var sums [2]engine.TickReply
		var accepted [2]int
		together(2, func(i int) {
			e := []*engine.Engine{w.e, other}[i]
			for quiet := 0; quiet < 5; { // nobody owns the tick for long: both work on the same items
				r, err := e.Tick(w.ctx, w.p, "replica"+strconv.Itoa(i), false)
				if err != nil {
					w.Errorf("tick: %v", err)
					return
				}
				if r.Owner {
					accepted[i]++
					add(&sums[i], r)
				}
				if err := w.do("HDEL", string(w.k), "owner").Error(); err != nil {
					w.Errorf("forget the owner: %v", err)
					return
				}
				if r.Owner && !r.More {
					quiet++
				} else {
					quiet = 0
				}
			}
		})
		w.check()
		if accepted[0] < 2 || accepted[1] < 2 {
			w.Errorf("accepted ticks %v: they did not race", accepted)
		}
		add(&sums[0], sums[1])
		b.verify(w, sums[0])
	}},
	{name: "10,000 entries that need nothing delay due work by a bounded number of ticks",
		damaged: "its index entries have records of no execution", run: func(w *env) {
			n := 10_000 / max(1, w.srv.Share)
			w.quiet = true // the partition is broken on purpose, and large
			b := w.backlog(1)
			w.obstruct(n, "")
			// Each index has at least twenty places of every call, so one cycle, which lasts until a tick says that
			// there is no more, takes this many calls at most.
			var sum engine.TickReply
			calls, more := 0, true
			for ; more && calls < n/20+10; calls++ {
				r := w.tick()
				add(&sum, r)
				more = r.More
			}
			w.Logf("%d ticks", calls)
			same(w, "more", more, false)
			b.verify(w, sum)
		}},
	{name: "a backlog in one index does not delay the others",
		damaged: "its index entries have records of no execution", run: func(w *env) {
			w.quiet = true
			for index, count := range map[string]func(engine.TickReply) int{
				// what was revoked waits behind alarms
				w.k.Sessions(): func(r engine.TickReply) int { return r.Requeued },
				w.k.Delayed():  func(r engine.TickReply) int { return r.Promoted },
				w.k.Alarms():   func(r engine.TickReply) int { return min(r.Expired, r.TimedOut, r.Suspensions) },
				w.k.Pending():  func(r engine.TickReply) int { return r.Waitpoints },
				w.k.Done():     func(r engine.TickReply) int { return r.Purged },
			} {
				w.reset()
				w.backlog(1)
				w.obstruct(300, index)
				same(w, "what the first tick did for "+index, count(w.tick()), 1)
			}
		}},
	{name: "a queue full of expired executions does not hide the live one behind them", run: func(w *env) {
		n := 10_000 / max(1, w.srv.Share)
		w.quiet = true
		k := w.worker("w1")
		w.createN(n, priority(9), deadline(time.Second))
		behind := w.create()
		k.nothingYet()
		w.advance(time.Second)
		for range n/100 + 2 {
			if !w.tick().More {
				break
			}
		}
		k.one(behind)
	}},
	{name: "every function touches only keys in the slot of its root", needs: []string{"Cluster"}, run: func(w *env) {
		seen := map[string]bool{}
		for i := range w.stage().calls {
			// the server refuses a script that touches another slot, and fcall fails on that
			c := w.stage().calls[i]
			switch w.fcall(c.name, c.args...).code {
			case "invalid_input", "partition_missing", "partition_frozen", "protocol_mismatch":
				// before it touched anything
			default:
				seen[c.name] = true
			}
		}
		for _, h := range contract.Functions() {
			if !seen[h.Name] && h.Name != "ff_version" && h.Name != "ff_configure" {
				w.Errorf("%s was refused before it touched its keys", h.Name)
			}
		}
	}},
	{name: "ticks follow the server's clock, however far off the host's clock is", run: func(w *env) {
		w.followServer()
		promoted, idle := make(chan struct{}, 1000), make(chan struct{}, 1000)
		loop := maintain.New(maintain.Config{Engine: w.e, Owner: "w1", Partitions: []uint16{w.p},
			OnTick: func(_ uint16, r engine.TickReply) {
				for range r.Promoted {
					promoted <- struct{}{}
				}
				if r.Idle {
					idle <- struct{}{}
				}
			}})
		ctx, cancel := context.WithCancel(w.ctx)
		var running conc.WaitGroup
		running.Go(func() {
			if err := loop.Run(ctx); err != nil {
				w.Errorf("run: %v", err)
			}
		})
		defer running.Wait()
		defer cancel()
		const hour = int64(3_600_000)
		for _, off := range []int64{0, hour, -2 * hour, 24 * hour, -10_000 * hour, 20_000 * hour} {
			w.set("HINCRBY", string(w.k), "clock_offset", strconv.FormatInt(off, 10)) // the two clocks step apart
			id := w.item(delay(50 * time.Millisecond))
			made, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{id})
			w.no(err)
			w.no(made[0].Err)
			loop.Ring(w.p)
			select {
			case <-promoted:
			case <-testwait.End(w.T):
				w.Fatalf("%d ms apart: nothing was promoted", off)
			}
			_, err = w.e.CancelExecution(w.ctx, id.ID, engine.Cancellation{Source: engine.CancelOperator})
			w.no(err)
		}
	}},
}

// add sums ticks up.
func add(sum *engine.TickReply, r engine.TickReply) {
	sum.Requeued += r.Requeued
	sum.Exhausted += r.Exhausted
	sum.Promoted += r.Promoted
	sum.TimedOut += r.TimedOut
	sum.Expired += r.Expired
	sum.Suspensions += r.Suspensions
	sum.Waitpoints += r.Waitpoints
	sum.Purged += r.Purged
}

// backlog is n executions for each thing that a tick does, all of them due.
type backlog struct {
	n                                                                int
	dead, revoked, delayed, overdue, slow, asleep, waitpoints, ended []flowfabric.ExecutionID
}

func (w *env) backlog(n int) *backlog {
	w.Helper()
	b := &backlog{n: n}
	quiet := w.quiet
	w.quiet = true
	w.seed()
	ids := func(claims []engine.Claim) (all []flowfabric.ExecutionID) {
		for _, c := range claims {
			all = append(all, c.Fence.Execution)
		}
		return all
	}
	take := func(k *worker, opts ...option) (claims []engine.Claim) {
		w.createN(n, opts...)
		for len(claims) < n {
			claims = append(claims, k.claim(min(100, n-len(claims)))...)
		}
		return claims
	}
	b.dead = ids(take(w.worker("dies")))
	k := w.worker("lives")
	k.ttl = time.Hour
	b.slow = ids(take(k, timeout(10*time.Second)))
	for _, c := range take(k) {
		b.asleep = append(b.asleep, c.Fence.Execution)
		w.stopped(c.Fence, within(10*time.Second, "fail"))
	}
	for _, c := range take(k) {
		b.waitpoints = append(b.waitpoints, c.Fence.Execution)
		_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", minted("m"), 10*time.Second)
		w.no(err)
	}
	b.revoked = ids(take(k))
	for _, id := range b.revoked {
		w.revoke(id)
	}
	for _, c := range take(k, retention(10*time.Second)) {
		b.ended = append(b.ended, c.Fence.Execution)
		w.complete(c.Fence, "r")
	}
	b.delayed = w.createN(n, delay(10*time.Second), lane("delayed"))
	b.overdue = w.createN(n, deadline(10*time.Second), lane("overdue"))
	w.advance(ttl + time.Second)
	w.quiet = quiet
	return b
}

// verify holds what ticks say they did, and what they did, against what there was to do.
func (b *backlog) verify(w *env, sum engine.TickReply) {
	w.Helper()
	w.all("requeued, exhausted, promoted, timed out, expired, suspensions, waitpoints, purged", eq(sum.Requeued, 2*b.n),
		eq(sum.Exhausted, 0), eq(sum.Promoted, b.n), eq(sum.TimedOut, b.n), eq(sum.Expired, b.n),
		eq(sum.Suspensions, b.n), eq(sum.Waitpoints, b.n), eq(sum.Purged, b.n))
	for what, all := range map[string][]flowfabric.ExecutionID{"R1r 1": append(b.dead, b.revoked...), "R1f ": b.delayed,
		"T4n ": b.overdue, "T4 ": b.slow, "T2 ": b.asleep, "A1 ": b.waitpoints, " ": b.ended} {
		for _, id := range all {
			core := w.core(id)
			same(w, "state and reclaims", core["s"]+" "+core["lc"], what)
			if len(what) > 1 && what[0] != 'A' { // one event for one effect, and one record of one attempt
				records := w.hash(w.k.Attempts(ids.UUID(id)))
				delete(records, "1r")
				if ran := core["n"] != ""; ran != (len(records) == 1) {
					w.Fatalf("%s has records %q", id, records)
				}
			}
		}
	}
}

// obstruct puts n members that need nothing at the head of every index but one.
func (w *env) obstruct(n int, but string) {
	w.Helper()
	now := strconv.FormatInt(w.now()+86_400_000, 10)
	var commands []rueidis.Completed
	flush := func(at int) {
		if len(commands) < at {
			return
		}
		for _, r := range w.raw.DoMulti(w.ctx, commands...) {
			w.no(r.Error())
		}
		commands = nil
	}
	put := func(args ...string) {
		if args[1] != but {
			commands = append(commands, w.raw.B().Arbitrary(args...).Build())
		}
	}
	for i := range n {
		session, nobody := "renewed~"+strconv.Itoa(i), uuid.NewString()
		// with a shorter one it would be due again while the ticks go on
		put("HSET", string(w.k)+":s:"+session, "exp", now, "ttl", "86400000")
		put("ZADD", w.k.Sessions(), "0", session) // it was renewed since
		put("ZADD", w.k.Pending(), "0", nobody+":"+nobody)
		// delayed and due later than its entries say
		later := ids.UUID(mint.Join(w.p, uuid.New())).String()
		put("SET", string(w.k)+":x:"+later,
			record.Record{Fields: fields{"s": "R2af", "ct": "1", "r": "1", "du": now, "dl": now}}.Encode())
		put("ZADD", w.k.Delayed(), "0", later)
		put("ZADD", w.k.Alarms(), "0", later)
		kept := uuid.NewString() // ended, and kept longer than its entry says
		put("SET", string(w.k)+":x:"+kept,
			record.Record{Fields: fields{"s": "T1", "ct": "1", "r": "1", "en": now, "n": "1"}}.Encode())
		put("ZADD", w.k.Done(), "0", kept)
		flush(1000)
	}
	flush(1)
	for _, key := range []string{w.k.Sessions(), w.k.Pending(), w.k.Delayed(), w.k.Alarms(), w.k.Done()} {
		if key == but {
			continue
		}
		first, err := w.do("ZRANGE", key, "0", "0").AsStrSlice()
		w.no(err)
		size, err := w.do("ZCARD", key).AsInt64()
		w.no(err)
		if int(size) < n || len(first) == 0 || strings.HasPrefix(first[0], "dies") {
			w.Fatalf("%s has %d members, want %d in front", key, size, n)
		}
	}
}
