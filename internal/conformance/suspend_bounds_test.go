package conformance

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Limits, the list, and what is left after the end.
var boundScenarios = []scenario{
	{name: "a suspension accepts 10,000 signals and refuses the next", needs: []string{"Native"}, run: func(w *env) {
		w.seed()
		k, c, m := w.waiting()
		id := c.Fence.Execution
		first := suspend.SentSignal{ID: mint.UUID(), Name: "first", IdempotencyKey: "key"}
		w.send(id, m, first, waitwords.EffectNone)
		var failed atomic.Int32
		together(8, func(int) {
			for range (limits.MaxSuspensionSignals - 8) / 8 {
				if _, err := w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest,
					suspend.SentSignal{Name: "other"}); err != nil {
					failed.Add(1)
				}
			}
		})
		same(w, "failed", failed.Load(), 0)
		for w.record(id).Signals < limits.MaxSuspensionSignals {
			w.signal(id, m, "other", waitwords.EffectNone)
		}
		w.refuses("the 10,001st", denied.SignalLimit, "signals of a suspension: at most 10000",
			w.delivering(id, m, suspend.SentSignal{Name: "go"}))
		w.unchanged("a repeat", func() {
			again := first
			again.ID = mint.UUID()
			d, err := w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest, again)
			w.no(err)
			w.all("a repeat", eq(d.Duplicate, true), eq(d.Signal, first.ID), eq(d.Effect, waitwords.EffectNone))
		})
		_, kept, err := w.e.ReadSignals(w.ctx, id, m.ID, 0)
		w.no(err)
		same(w, "kept", kept, 1000)
		w.all("counted", eq(w.waitpoint(id, m).Signals, 10000), eq(w.waitpoint(id, m).Matched, 0))
		w.resume(id)
		k.ttl = time.Hour
		m = w.stopped(k.one(id).Fence)
		same(w, "the next starts at", w.record(id).Signals, 0)
		w.signal(id, m, "other", waitwords.EffectNone)
		w.signal(id, m, "go", waitwords.EffectSatisfied)
	}},
	{name: "an execution buffers 1,000 early signals and refuses the next", needs: []string{"Native"},
		run: func(w *env) {
			w.seed()
			_, c := w.holder()
			id := c.Fence.Execution
			p, q := w.pend(c.Fence, "p"), w.pend(c.Fence, "q")
			w.quiet = true
			for i := range limits.MaxBufferedSignals {
				w.signal(id, []engine.Minted{p, q}[i%2], "other", waitwords.EffectBuffered)
			}
			w.quiet = false
			w.check()
			for _, m := range []engine.Minted{p, q} {
				w.refuses("the 1,001st", denied.SignalLimit, "buffered signals: at most 1000",
					w.delivering(id, m, suspend.SentSignal{Name: "go"}))
			}
			w.suspend(c.Fence, onPending(p))
			w.all("evaluated", eq(w.record(id).Signals, 500), eq(w.record(id).Matched, 0))
			w.signal(id, q, "go", waitwords.EffectBuffered) // those that were evaluated make room
			w.signal(id, p, "go", waitwords.EffectSatisfied)
		}},
	{name: "signals that outgrow the record of the wait move to separate keys without loss", run: func(w *env) {
		w.seed()
		of := func(key, name string, bytes int) suspend.SentSignal {
			return suspend.SentSignal{ID: mint.UUID(), Name: name, Payload: []byte(strings.Repeat("\x1c", bytes)),
				Encoding: "bytes", IdempotencyKey: key}
		}
		_, c := w.holder()
		id := c.Fence.Execution
		keys := func() (n int) { // of signals
			for _, key := range w.keys() {
				if strings.Contains(key, ":g:"+ids.UUID(id).String()) || strings.Contains(key,
					":um:"+ids.UUID(id).String()) {
					n++
				}
			}
			return n
		}
		type delivery struct {
			to engine.Minted
			by suspend.Delivered
		}
		sent := map[string]delivery{}
		send := func(m engine.Minted, s suspend.SentSignal, effect suspend.Effect) {
			w.Helper()
			sent[s.IdempotencyKey] = delivery{m, w.send(id, m, s, effect)}
		}
		repeats := func() {
			w.Helper()
			for key, d := range sent {
				again, err := w.deliver(id, d.to, of(key, "go", 1))
				w.no(err)
				w.all("repeat of "+key, eq(again.Duplicate, true), eq(again.Signal, d.by.Signal))
			}
		}
		kept := func(m engine.Minted) string {
			w.Helper()
			list, n, err := w.e.ReadSignals(w.ctx, id, m.ID, 0)
			w.no(err)
			var out []string
			for _, g := range list {
				out = append(out, fmt.Sprintf("%s %d", g.Name, len(g.Payload)))
			}
			return strings.Join(append(out, fmt.Sprint("of ", n)), " ")
		}
		resumed := func() string {
			w.Helper()
			c = w.claims(id)
			var out []string
			for _, g := range c.Resume.Signals {
				out = append(out, fmt.Sprintf("%s %d", g.Name, len(g.Payload)))
			}
			return strings.Join(append(out, fmt.Sprint("of ", c.Resume.Cause)), " ")
		}

		p, q := w.pend(c.Fence, "p"), w.pend(c.Fence, "q")
		send(p, of("1", "one", 300), waitwords.EffectBuffered)
		send(q, of("2", "two", 300), waitwords.EffectBuffered)
		w.all("small ones", eq(keys(), 0), eq(kept(p), "one 300 of 1"), eq(kept(q), "two 300 of 1"))
		repeats()
		send(q, of("3", "three", 300), waitwords.EffectBuffered)
		w.all("one more", eq(keys(), 2), eq(kept(p), "one 300 of 1"), eq(kept(q), "two 300 three 300 of 2"))
		repeats()
		w.suspend(c.Fence, waitFor(count(5, "s", "", 1, 2)), onPending(p, q))
		w.all("evaluated", eq(keys(), 3), eq(kept(p), "one 0 of 1"), eq(kept(q), "two 0 three 0 of 2"))
		send(p, of("4", "four", 300), waitwords.EffectAppended)
		send(q, of("5", "five", 300), waitwords.EffectSatisfied)
		same(w, "in order", resumed(), "one 300 two 300 three 300 four 300 five 300 of signal")
		repeats()

		m := w.stopped(c.Fence, waitFor(names(1, 4, "", "", "", ""), minted("wp")))
		same(w, "none of them is told again", keys(), 2)
		twice := of("6", "six", 300)
		send(m, twice, waitwords.EffectAppended)
		twice.IdempotencyKey, twice.Name = "7", "seven"
		send(m, twice, waitwords.EffectAppended)
		w.all("one id under two keys", eq(keys(), 2), eq(kept(m), "six 0 seven 0 of 2"))
		repeats()
		send(m, of("8", "eight", 20), waitwords.EffectAppended)
		repeats()
		w.all("still small", eq(keys(), 2), eq(kept(m), "six 0 seven 0 eight 0 of 3"))
		send(m, of("9", "nine", 1000), waitwords.EffectSatisfied)
		w.all("a large one", eq(keys(), 4), eq(kept(m), "six 0 seven 0 eight 0 nine 0 of 4"))
		same(w, "an id counts once", resumed(), "seven 300 eight 20 nine 1000 of signal")
		repeats()

		m = w.stopped(c.Fence, waitFor(names(1, 2, "", ""), minted("wp")),
			within(time.Minute, "auto_resume_with_timeout_signal"))
		send(m, of("10", "ten", 300), waitwords.EffectAppended)
		w.advance(time.Minute)
		w.settleTime()
		w.all("a timeout", eq(keys(), 3), eq(kept(m), "ten 0 of 1"))
		same(w, "a timeout", resumed(), "__timeout 0 of timeout")
		m = w.stopped(c.Fence, waitFor(names(1, 2, "", ""), minted("wp")))
		send(m, of("11", "eleven", 300), waitwords.EffectAppended)
		w.resume(id)
		same(w, "an operator", kept(m), "eleven 0 of 1")
		same(w, "an operator", resumed(), "of operator")
		m = w.stopped(c.Fence, waitFor(names(1, 1, ""), minted("wp")))
		send(m, of("12", "twelve", 1100), waitwords.EffectSatisfied)
		same(w, "a large one alone", resumed(), "twelve 1100 of signal")
		m = w.stopped(c.Fence, waitFor(names(1, 2, "", ""), minted("wp")))
		twice = of("13", "thirteen", 10)
		send(m, twice, waitwords.EffectAppended)
		twice.IdempotencyKey, twice.Name = "14", "fourteen"
		send(m, twice, waitwords.EffectSatisfied)
		same(w, "an id under two keys, small", resumed(), "fourteen 10 of signal")
		repeats()
	}},
	{name: "the signals kept for a wait are limited to 256 KiB", run: func(w *env) {
		w.seed()
		large := func(n int) suspend.SentSignal {
			return suspend.SentSignal{Name: "go", Encoding: "bytes", Payload: make([]byte, n)}
		}
		_, c := w.holder()
		id := c.Fence.Execution
		p, q := w.pend(c.Fence, "p"), w.pend(c.Fence, "q")
		for i := range 3 {
			w.send(id, []engine.Minted{p, q}[i%2], large(limits.MaxSignal), waitwords.EffectBuffered)
		}
		const taken, most = "bytes of the signals that a condition took: at most 262144",
			"buffered bytes: at most 262144"
		w.refuses("the fourth of 64 KiB", denied.SignalLimit, most, w.delivering(id, p, large(limits.MaxSignal)))
		w.send(id, p, large(limits.MaxSignal-2000), waitwords.EffectBuffered)
		w.refuses("a little more", denied.SignalLimit, most, w.delivering(id, q, large(2000)))
		w.suspend(c.Fence, waitFor(names(1, 4, "", "", "", "")), onPending(p)) // whatever is buffered fits
		w.all("taken", eq(w.record(id).Signals, 3), eq(w.record(id).Matched, 3))

		s := w.sleeps(waitFor(names(1, 5, "", "", "", "", ""), minted("wp")))
		for range 3 {
			w.send(s.id, s.wp, large(limits.MaxSignal), waitwords.EffectAppended)
		}
		w.refuses("the fourth of 64 KiB", denied.SignalLimit, taken, w.delivering(s.id, s.wp, large(limits.MaxSignal)))
		w.send(s.id, s.wp, large(1), waitwords.EffectAppended)
		w.send(s.id, s.wp, large(1), waitwords.EffectSatisfied)
		same(w, "told", len(w.claims(s.id).Resume.Signals), 5)
	}},
	{name: "signal payloads of any bytes up to 64 KiB arrive unchanged", run: func(w *env) {
		w.seed()
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		full := make([]byte, limits.MaxSignal)
		_, err := rand.Read(full)
		w.no(err)
		_, c := w.holder()
		id := c.Fence.Execution
		p := w.pend(c.Fence, "p")
		bytes := func(name string, b []byte) suspend.SentSignal {
			return suspend.SentSignal{Name: name, Encoding: "bytes", Payload: b, Category: "c", SourceType: "t",
				Source: "s", Correlation: "r", CreatedAt: time.UnixMilli(1234).UTC()}
		}
		w.refuses("a byte too much", flowfabric.ErrPayloadTooLarge, "signal: at most 65536 bytes",
			w.delivering(id, p, bytes("x", append(full, 0))))
		w.send(id, p, bytes("early", all), waitwords.EffectBuffered)
		list, _, err := w.e.ReadSignals(w.ctx, id, p.ID, 0)
		w.no(err)
		same(w, "buffered", string(list[0].Payload), string(all))
		w.suspend(c.Fence, onPending(p), waitFor(names(1, 4, "early", "all", "full", "none")), onPending(p))
		w.refuses("a byte too much", flowfabric.ErrPayloadTooLarge, "",
			w.delivering(id, p, bytes("all", append(full, 0))))
		w.send(id, p, bytes("all", all), waitwords.EffectAppended)
		w.send(id, p, bytes("full", full), waitwords.EffectAppended)
		w.send(id, p, bytes("none", nil), waitwords.EffectSatisfied)
		want := map[string][]byte{"early": all, "all": all, "full": full, "none": nil}
		for _, g := range w.claims(id).Resume.Signals {
			same(w, g.Name, string(g.Payload), string(want[g.Name]))
			w.all(g.Name, eq(g.Encoding, "bytes"), eq(g.Category, "c"), eq(g.SourceType, "t"), eq(g.Source, "s"),
				eq(g.Correlation, "r"), eq(g.CreatedAt.UnixMilli(), 1234), eq(g.Waitpoint, p.ID),
				eq(g.WaitpointKey, "p"))
			delete(want, g.Name)
		}
		same(w, "missing", len(want), 0)
	}},
	{name: "the list of waitpoints shows open and recent ones and no secret", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		k.ttl = time.Hour
		id, f := c.Fence.Execution, c.Fence
		var open []engine.Minted
		var secrets []string
		w.quiet = true
		for i := range 250 {
			m := w.pend(f, "wp"+strconv.Itoa(i))
			secrets = append(secrets, m.Digest, m.Nonce, strings.TrimPrefix(tokenOf(m), kid+":"))
			if i%50 == 7 {
				open = append(open, m)
				continue
			}
			_, err := w.e.CloseWaitpoint(w.ctx, f, m.ID)
			w.no(err)
		}
		w.quiet = false
		w.check()
		list := func(want ...engine.Minted) string {
			r := w.record(id)
			if n := len(r.Waitpoints); n > 128 || n < 64 {
				w.Fatalf("%d waitpoints are remembered", n)
			}
			text := fmt.Sprintf("%+v", r)
			for _, s := range secrets {
				if strings.Contains(text, s) {
					w.Fatalf("%s is in %s", s, text)
				}
			}
			keys := map[string]string{}
			for _, p := range r.Waitpoints {
				if p.Open() {
					keys[p.ID.String()] = p.Key
				}
			}
			same(w, "open", len(keys), len(want))
			for _, m := range want {
				same(w, "open", keys[m.ID.String()], m.Key)
			}
			return text
		}
		list(open...)
		q, _ := w.suspend(f, waitFor(conditionOf(names(1, 1, "go"), names(2, 1, "go"), group(1, 1, 2)), minted("fresh"),
			open[0]),
			func(q *engine.Suspension) { q.Bindings[1].Pending = true })
		fresh := q.Bindings[0].Minted
		secrets = append(secrets, fresh.Digest, fresh.Nonce)
		list(append([]engine.Minted{fresh}, open...)...)
		w.all("states", eq(w.waitpoint(id, fresh).State, "active"), eq(w.waitpoint(id, open[0]).State, "active"),
			eq(w.waitpoint(id, open[1]).State, "pending"))
		same(w, "fingerprints", w.waitpoint(id, fresh).Fingerprint == w.waitpoint(id, open[0]).Fingerprint, false)
		for _, m := range open[1:] {
			w.signal(id, m, "go", waitwords.EffectBuffered) // what was listed can still be signalled
		}
		w.cancel(id)
		list()
		same(w, "reason of the pending ones", w.waitpoint(id, open[4]).CloseReason, "attempt_ended")
	}},
	{name: "a purge removes suspensions, waitpoints and signals and leaves only the tombstone", run: func(w *env) {
		w.seed()
		k := w.worker("w1")
		id := w.create(retries(1), deadline(time.Hour), tags(map[string]string{"a.b": "c"}))
		f := k.one(id).Fence
		w.frames(f, 1, 2)
		named := minted("named")
		_, err := w.e.CreatePendingWaitpoint(w.ctx, f, "named", named, time.Minute)
		w.no(err)
		closed := w.pend(f, "closed")
		_, err = w.e.CloseWaitpoint(w.ctx, f, closed.ID)
		w.no(err)
		large := func(name string) suspend.SentSignal { // more than the record of the wait takes
			return suspend.SentSignal{ID: mint.UUID(), Name: name, Payload: []byte(strings.Repeat("x", 8<<10)),
				Encoding: "bytes"}
		}
		w.send(id, named, large("early"), waitwords.EffectBuffered)
		m := w.stopped(f, awaiting("it"), waitFor(names(1, 2, "go", "on"), minted("wp")), within(time.Minute, "fail"))
		w.signal(id, m, "other", waitwords.EffectNone)
		w.send(id, m, large("go"), waitwords.EffectAppended)
		mine := func() (found []string) {
			for _, key := range w.keys() {
				if rest := strings.TrimPrefix(key, string(w.k)); strings.Contains(rest, ids.UUID(id).String()) {
					found = append(found, rest[:strings.Index(rest[1:], ":")+2])
				}
			}
			slices.Sort(found)
			return found
		}
		sameList(w, "while it waits", mine(), ":f:", ":fm:", ":g:", ":g:", ":gd:", ":gd:", ":t:", ":u:", ":um:", ":us:",
			":x:")
		w.signal(id, m, "on", waitwords.EffectSatisfied)
		f = k.one(id).Fence
		again := w.stopped(f, awaiting("again"), waitFor(names(1, 2, "go", "on"), minted("wp again")),
			within(time.Minute, "fail"))
		w.send(id, again, large("go"), waitwords.EffectAppended)
		w.send(id, again, large("on"), waitwords.EffectSatisfied) // what resumed it is kept until the purge
		w.no(w.complete(k.one(id).Fence, "").Err)
		w.refuses("a signal before", denied.NotSignalable, "T1", w.delivering(id, m, suspend.SentSignal{Name: "go"}))
		_, err = w.e.PurgeExecution(w.ctx, id, 0)
		w.no(err)
		w.check()
		sameList(w, "left", mine(), ":z:")
		for line := range strings.Lines(w.digest()) {
			if strings.Contains(line, ids.UUID(id).String()) && !strings.HasPrefix(line, ":z:") &&
				!strings.HasPrefix(line, "expires :z:") {
				w.Errorf("left: %s", line)
			}
		}
		w.refuses("a signal after", flowfabric.ErrInvalidToken, "", w.delivering(id, m, suspend.SentSignal{Name: "go"}))
	}},
}
