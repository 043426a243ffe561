package conformance

import (
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/stream"
)

// The feed: what is recorded, for whom, and for how long.
var feedScenarios = []scenario{
	{name: "the feed records nothing unless somebody subscribes", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		w.complete(f, "")
		same(w, "feed", len(w.feed()), 0)
		w.follow(engine.FeedWish{Ends: true})
		w.complete(w.worker("w2").one(w.create()).Fence, "")
		same(w, "feed", len(w.feed()), 1)
	}},
	{name: "the feed records every completion, failure, cancellation and expiry", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true})
		k := w.worker("w1")
		done, failed, cancelled, expired := w.create(), w.create(), w.create(), w.create(deadline(time.Hour))
		_ = failed
		for _, c := range k.claim(2) {
			if c.Fence.Execution == done {
				w.complete(c.Fence, "r")
			} else {
				_, err := w.e.FailExecution(w.ctx, c.Fence, engine.Failure{Category: "io", Permanent: true})
				w.no(err)
			}
		}
		_, err := w.e.CancelExecution(w.ctx, cancelled, engine.Cancellation{Source: engine.CancelOperator})
		w.no(err)
		w.advance(time.Hour)
		w.tick()
		got := map[string]string{}
		for _, e := range w.feed() {
			got[e.Execution.String()] = came(e) + " " + strconv.Itoa(e.Attempt)
			same(w, "kind", e.Kind, engine.FeedEnd)
			same(w, "route", e.Route > 0, true)
		}
		sameDeep(w, "ends", got,
			map[string]string{done.String(): "completed 1", failed.String(): "failed 1",
				cancelled.String(): "cancelled 0",
				expired.String():   "expired 0"})
	}},
	{name: "the feed records lease changes and signals in order", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true, Leases: true, Signals: true})
		x := w.state("A1", retries(1))
		handed := w.pend(x.fence, "handed")
		w.signal(x.id, handed, "go now", waitwords.EffectBuffered)
		_, err := w.e.FailExecution(w.ctx, x.fence, engine.Failure{Category: "io", RetryAfter: new(time.Duration)})
		w.no(err)
		f := x.worker.one(x.id).Fence
		_, err = w.e.ReleaseExecution(w.ctx, f)
		w.no(err)
		x.worker.one(x.id)
		_, err = w.e.RevokeLease(w.ctx, x.id, "")
		w.no(err)
		w.tick()
		f = x.worker.one(x.id).Fence
		w.complete(f, "")
		var got []string
		const waits = "waiting waiting_for_worker"
		for _, e := range w.feed() {
			if e.Kind == engine.FeedSignal {
				w.all("signal", eq(e.Execution, x.id), eq(e.Waitpoint, handed.ID),
					eq(e.Effect, string(waitwords.EffectBuffered)), eq(e.Name, "go now"))
				got = append(got, "signal")
				continue
			}
			same(w, "of", e.Execution, x.id)
			got = append(got, came(e))
		}
		sameList(w, "events", got, "active", "signal", waits, "active", waits, "active",
			"active waiting_for_worker", waits, "active", "completed")
		last := w.feed()[len(got)-1]
		w.all("holder", eq(last.Session, f.Session), eq(last.Epoch, f.Epoch), eq(last.Attempt, int(f.Attempt)))
	}},
	{name: "each call adds one numbered entry to the feed", run: func(w *env) {
		w.follow(engine.FeedWish{Leases: true})
		w.createN(5)
		w.worker("w1").claim(5)
		w.worker("w2").one(w.create())
		entries, err := w.e.ReadFeed(w.ctx, w.p, stream.Cursor{}, 10)
		w.no(err)
		same(w, "entries", len(entries), 2)
		same(w, "events of the first", len(entries[0].Events), 5)
		w.all("numbers", eq(entries[0].Number, entries[1].Number-1), eq(entries[1].Number, entries[1].Number))
		rest, err := w.e.ReadFeed(w.ctx, w.p, entries[0].ID, 10)
		w.no(err)
		sameDeep(w, "the rest", rest, entries[1:])
	}},
	{name: "a tick with many effects records each event once", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true, Leases: true})
		for _, name := range []string{"w1", "w2"} { // two sessions that die
			w.worker(name).one(w.create())
		}
		w.create(kind("late"), deadline(time.Minute))
		w.advance(time.Hour)
		w.settleTime()
		seen := map[string]int{}
		for _, e := range w.feed() {
			seen[e.Execution.String()+" "+came(e)]++
		}
		same(w, "events of three", len(seen), 5) // active and waiting of two, expired of one
		for what, n := range seen {
			same(w, what, n, 1)
		}
	}},
	{name: "a new subscription keeps what others asked for until their time ends", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true, Keep: time.Hour, Length: 5000})
		s := w.follow(engine.FeedWish{Signals: true, Keep: time.Minute})
		w.all("both", eq(s.Ends, true), eq(s.Leases, false), eq(s.Signals, true))
		w.advance(2 * time.Minute)
		w.cancelled()
		same(w, "recorded", len(w.feed()), 1)
		w.advance(time.Hour)
		w.cancelled()
		same(w, "no more", len(w.feed()), 1)
		s = w.follow(engine.FeedWish{Leases: true})
		w.all("old wishes are over", eq(s.Ends, false), eq(s.Leases, true), eq(s.Signals, false))
	}},
	{name: "the feed is removed a day after its last subscription ends", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true, Keep: time.Hour})
		w.cancelled()
		w.advance(time.Hour + 24*time.Hour - time.Minute)
		w.create()
		w.tick()
		_, there := w.root()["feed"]
		same(w, "a minute before", there, true)
		w.advance(time.Minute)
		w.tick()
		_, there = w.root()["feed"]
		w.all("after it", eq(there, false), eq(len(w.feed()), 0))
	}},
	{name: "a tick trims only feed entries that are older than a day", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true, Keep: 72 * time.Hour})
		for range 150 { // a node of a stream has 100 entries, and goes as a whole
			w.cancelled()
		}
		w.advance(23 * time.Hour)
		w.tick()
		same(w, "younger than a day", len(w.feed()), 150)
		w.advance(time.Hour + time.Minute)
		w.tick()
		if n := len(w.feed()); n > 50 {
			w.Errorf("%d entries older than a day", n)
		}
		w.all("recording goes on", eq(w.follow(engine.FeedWish{Ends: true}).Ends, true), eq(w.root()["fed"], "150"))
	}},
	{name: "the feed keeps as many entries as the longest subscription asked for", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true, Length: 2000})
		w.follow(engine.FeedWish{Ends: true, Length: 1000})
		same(w, "length", strings.HasSuffix(w.root()["feed"], " 2000"), true)
		for range 2500 {
			w.set("XADD", w.k.Feed(), "*", "n", "0 5")
		}
		w.cancelled()
		n, err := w.do("XLEN", w.k.Feed()).AsInt64()
		w.no(err)
		if n < 2000 || n > 2200 {
			w.Errorf("%d entries of 2501, want about 2000", n)
		}
	}},
	{name: "subscribers are notified once for each call that records something", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true})
		ear := w.listen(w.e.NewsChannel(w.p))
		w.cancelled()
		ear.hears("1")
		w.create()
		ear.silent()
		w.cancelled()
		ear.hears("2")
	}},
	{name: "an empty subscription ends the recording, and later entries continue the numbering", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true})
		w.cancelled()
		number := w.follow(engine.FeedWish{}).Number
		same(w, "number", number, uint64(1))
		w.cancelled()
		same(w, "feed", len(w.feed()), 0)
		w.follow(engine.FeedWish{Ends: true})
		w.cancelled()
		entries, err := w.e.ReadFeed(w.ctx, w.p, stream.Cursor{}, 10)
		w.no(err)
		same(w, "numbers go on", entries[0].Number, uint64(2))
	}},
	{name: "an unreadable feed entry does not hide the others", run: func(w *env) {
		w.follow(engine.FeedWish{Ends: true})
		w.cancelled()
		w.set("XADD", w.k.Feed(), "*", "n", "2 5", "c", "nonsense")
		w.cancelled()
		entries, err := w.e.ReadFeed(w.ctx, w.p, stream.Cursor{}, 10)
		w.no(err)
		same(w, "entries", len(entries), 3)
		w.is(entries[1].Err, flowfabric.ErrCorrupt)
		w.all("others", eq[error](entries[0].Err, nil), eq[error](entries[2].Err, nil), eq(len(entries[2].Events), 1))
	}},
	{name: "a malformed subscription is refused and changes nothing", run: func(w *env) {
		w.unchanged("x", func() {
			same(w, "x", w.fcall("ff_set_feed", proto, "x", "60000", "1000").code, "invalid_input")
		})
	}},
}

// follow sets the wish in the scenario's partition.
func (w *env) follow(wish engine.FeedWish) engine.FeedState {
	w.Helper()
	if wish.Keep == 0 {
		wish.Keep = 24 * time.Hour
	}
	s := w.e.SetFeed(w.ctx, wish)[w.p]
	w.no(s.Err)
	return s
}

// came is the state that an event tells.
func came(e flowfabric.FeedEvent) string {
	return strings.TrimSpace(string(e.State) + " " + e.BlockingReason)
}

// feed is all that is recorded.
func (w *env) feed() []flowfabric.FeedEvent {
	w.Helper()
	entries, err := w.e.ReadFeed(w.ctx, w.p, stream.Cursor{}, 1000)
	w.no(err)
	var all []flowfabric.FeedEvent
	for _, entry := range entries {
		w.no(entry.Err)
		all = append(all, entry.Events...)
	}
	return all
}

// cancelled makes an execution that has ended.
func (w *env) cancelled() {
	w.Helper()
	_, err := w.e.CancelExecution(w.ctx, w.create(), engine.Cancellation{Source: engine.CancelOperator})
	w.no(err)
}
