package conformance

import (
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// The same for what the tick does, and what a session leaves behind.
var tickScenarios = []scenario{
	{name: "150 due timers of a crashed worker use up no retry", run: func(w *env) {
		ids := w.createN(150, timeout(10*time.Second), retries(1))
		k := w.worker("w1")
		k.claim(100)
		k.claim(50)
		w.advance(ttl)
		sum, calls := w.settleTime()
		w.all("what became of them", eq(sum.Requeued, 150), eq(sum.TimedOut, 0), eq(calls > 1, true))
		for _, id := range ids {
			w.all("state", eq(w.core(id)["s"], "R1r"), eq(w.core(id)["rc"], ""))
		}
	}},
	{name: "a tick's next wake considers alarms, delays and sessions", run: func(w *env) {
		w.stop()
		k := w.worker("w1")
		k.ttl = time.Second
		k.one(w.create())
		w.create(deadline(700 * time.Millisecond))
		w.create(delay(300 * time.Millisecond))
		for _, d := range []time.Duration{299, 399, 300} { // creating takes a millisecond
			r := w.tick()
			same(w, "next", r.Next, d*time.Millisecond)
			w.pass(r.Next)
		}
		r := w.tick()
		w.all("the session died", eq(r.Requeued, 1), eq(r.More, false))
	}},
	{name: "a tick with nothing left to do schedules no next wake", run: func(w *env) {
		k := w.worker("w1")
		w.complete(k.one(w.create()).Fence, "")
		w.no(w.e.CloseSession(w.ctx, w.p, k.session))
		w.check()
		same(w, "sessions", len(w.dump().ZSets[":sessions"]), 0)
		r := w.tick()
		w.all("nothing but the purge to wait for", eq(r.Idle, false), eq(r.Next.Round(time.Minute), 24*time.Hour))
		w.advance(r.Next)
		r = w.tick()
		w.all("purged, and idle", eq(r.Purged, 1), eq(r.Idle, true))
		same(w, "wake", w.root()["wake"], "")
		w.advance(time.Hour)
		p, _, err := w.e.Poll(w.ctx, []uint16{w.p})
		w.no(err)
		same(w, "overdue", p[0].TickOverdue, false)
	}},
	{name: "what is kept for hours asks for no tick before the next", run: func(w *env) {
		w.rotate("k1", 0)
		_, first, _ := w.waiting()
		k, second, _ := w.waiting()
		w.cancel(first.Fence.Execution)
		w.no(w.e.CloseSession(w.ctx, w.p, k.session))
		w.advance(time.Minute) // the other worker dies
		w.settleTime()
		wake := w.root()["wake"]
		w.advance(time.Minute)
		w.cancel(second.Fence.Execution)
		same(w, "wake", w.root()["wake"], wake)
	}},
	{name: "a poll reports a late tick", run: func(w *env) {
		w.tick()
		w.create(delay(time.Second))
		w.advance(4 * time.Second)
		p, _, err := w.e.Poll(w.ctx, []uint16{w.p})
		w.no(err)
		same(w, "overdue", p[0].TickOverdue, true)
	}},
	{name: "a poll reports how many routes are ready", run: func(w *env) {
		ready := func() int {
			w.Helper()
			p, _, err := w.e.Poll(w.ctx, []uint16{w.p})
			w.no(err)
			return p[0].Ready
		}
		same(w, "an empty partition", ready(), 0)
		w.create(delay(time.Hour))
		same(w, "work that waits for its time", ready(), 0)
		first, second := w.create(), w.create(kind("other"))
		same(w, "two routes", ready(), 2)
		w.cancel(first)
		same(w, "one", ready(), 1)
		w.cancel(second)
		same(w, "none", ready(), 0)
	}},
	{name: "a renewed session is indexed at its new expiry", run: func(w *env) {
		k := w.worker("w1")
		k.one(w.create())
		w.advance(ttl * 2 / 3)
		w.renew(k, 0)
		w.advance(ttl / 3)
		w.settleTime() // at the old expiry
		ends, err := w.do("ZSCORE", w.k.Sessions(), k.session).AsFloat64()
		w.no(err)
		exp, _ := strconv.ParseInt(w.hash(w.k.Session(k.session))["exp"], 10, 64)
		same(w, "indexed at its expiry", int64(ends), exp)
	}},
	{name: "a dead session loses its notices and is forgotten after ten minutes", run: func(w *env) {
		k := w.worker("w1")
		c := k.one(w.create())
		w.cancel(c.Fence.Execution) // leaves a notice that nobody reads
		w.advance(ttl)
		w.settleTime()
		w.lives(w.k.Session(k.session), 10*time.Minute)
		n, err := w.do("EXISTS", w.k.Lost(k.session)).AsInt64()
		w.no(err)
		same(w, "notices", n, 0)
	}},
	{name: "a tick that leaves dead sessions for later reports more work", run: func(w *env) {
		w.quiet = true
		for i := range 61 {
			k := w.worker("w" + strconv.Itoa(i))
			w.complete(k.one(w.create()).Fence, "")
		}
		w.quiet = false
		w.advance(ttl)
		same(w, "more", w.tick().More, true)
		same(w, "no more", w.tick().More, false)
		same(w, "sessions", len(w.dump().ZSets[":sessions"]), 0)
	}},
	{name: "a tick drops waiting workers whose registration expired", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		k := w.worker("w1")
		k.nothing()
		w.advance(3*time.Minute + time.Second)
		w.tick()
		same(w, "waiters", len(w.dump().ZSets[":w:"+k.subscription]), 0)
	}},
	{name: "an alarm that fires too early is set to its correct time", run: func(w *env) {
		k := w.worker("w1")
		for _, opts := range [][]option{
			{timeout(10 * time.Second), deadline(time.Hour)}, {timeout(time.Hour), deadline(10 * time.Second)},
			{timeout(time.Minute)}, {deadline(time.Minute)},
		} {
			id := w.create(opts...)
			k.one(id)
			w.set("ZADD", w.k.Alarms(), "1", ids.UUID(id).String())
			if _, err := w.e.Tick(w.ctx, w.p, ticker, false); err != nil {
				w.Fatal(err)
			}
			w.check() // the alarm is at the earlier of the two
			w.code(id, "A1")
		}
	}},
	{name: "a delay that ends too early is set right", run: func(w *env) {
		w.stop()
		id := w.create(delay(time.Minute))
		w.set("ZADD", w.k.Delayed(), "1", ids.UUID(id).String())
		same(w, "promoted", w.tick().Promoted, 0)
		same(w, "its place", int64(w.dump().ZSets[":delayed"][ids.UUID(id).String()]), w.at(id, "du"))
		w.code(id, "R2af")
	}},
}
