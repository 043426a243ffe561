package conformance

import (
	"bytes"
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
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// openNamed opens a waitpoint for a while that is kept as a step under its key.
func (w *env) openNamed(f flowfabric.Fence, m engine.Minted, life time.Duration) (engine.Opened, error) {
	w.Helper()
	o, err := w.e.CreatePendingWaitpoint(w.ctx, f, m.Key, m, life)
	w.check()
	return o, err
}

// again suspends what was resumed before, until go comes, and brings it.
func (w *env) again(id flowfabric.ExecutionID, opts ...suspending) {
	w.Helper()
	w.signal(id, w.stopped(w.holds(id), opts...), "go", waitwords.EffectSatisfied)
}

// holds claims what waits.
func (w *env) holds(id flowfabric.ExecutionID) flowfabric.Fence {
	w.Helper()
	return w.worker("w" + strconv.FormatUint(uint64(uuid.New().ID()), 36)).one(id).Fence
}

// What no other topic noticed when internal/mutants broke suspension.
var waitpointScenarios = []scenario{
	{name: "a signal's key is recognised while its waitpoint is open, then for its dedup time", run: func(w *env) {
		w.seed()
		_, c, m := w.waiting()
		id := c.Fence.Execution
		first := suspend.SentSignal{ID: mint.UUID(), Name: "other", IdempotencyKey: "k", DedupTTL: time.Second}
		w.send(id, m, first, waitwords.EffectNone)
		repeats := func(s suspend.SentSignal) {
			w.Helper()
			d, err := w.deliver(id, m, s)
			w.no(err)
			same(w, "first", d.Signal, first.ID)
		}
		other := suspend.SentSignal{Name: "other", IdempotencyKey: "k"}
		w.advance(time.Minute)
		repeats(other) // an open waitpoint forgets nothing
		w.send(id, m, suspend.SentSignal{Name: "other", IdempotencyKey: first.ID.String()}, waitwords.EffectNone)
		w.send(id, m, suspend.SentSignal{ID: flowfabric.UUID(uuid.MustParse("00000000-0000-4000-8000-00000000000a")),
			Name: "other"},
			waitwords.EffectNone)
		w.send(id, m, suspend.SentSignal{Name: "other", IdempotencyKey: "00000000-0000-4000-8000-00000000000a"},
			waitwords.EffectNone)
		_, c, m = w.waiting()
		id = c.Fence.Execution
		w.send(id, m, first, waitwords.EffectNone)
		w.resume(id)
		w.advance(800 * time.Millisecond)
		repeats(other)
		w.advance(200 * time.Millisecond)
		_, err := w.deliver(id, m, other)
		w.is(err, flowfabric.ErrWaitpointClosed)
		repeats(first)
	}},
	{name: "at most 64 waitpoints are open, and the oldest closed ones are forgotten", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		f, id := c.Fence, c.Fence.Execution
		old := minted("named")
		_, err := w.openNamed(f, old, time.Second)
		w.no(err)
		w.signal(id, old, "go", waitwords.EffectBuffered)
		w.advance(time.Second)
		same(w, "expired", w.tick().Waitpoints, 1)
		w.quiet = true
		var last engine.Minted
		for range 150 {
			w.advance(time.Millisecond)
			w.renew(k, 0)
			last = w.pend(f, "x")
			w.signal(id, last, "go", waitwords.EffectBuffered)
			_, err := w.e.CloseWaitpoint(w.ctx, f, last.ID)
			w.no(err)
		}
		w.quiet = false
		w.check()
		_, _, err = w.e.ReadSignals(w.ctx, id, old.ID, 0)
		w.is(err, denied.NoWaitpoint)
		same(w, "the last", w.logged(id, last), string("go "+waitwords.EffectBuffered))
		again := minted("named")
		o, err := w.openNamed(f, again, time.Hour) // its step is there, its waitpoint no more
		w.no(err)
		same(w, "anew", o.ID, again.ID)
		for range 63 {
			w.pend(f, "y")
		}
		w.refuses("the 65th", denied.WaitpointLimit, "", func() error {
			_, err := w.e.CreatePendingWaitpoint(w.ctx, f, "", minted("z"), time.Hour)
			return err
		})
	}},
	{name: "suspensions also forget the oldest closed waitpoints", run: func(w *env) {
		w.seed()
		id := w.create()
		first := w.stopped(w.holds(id))
		w.quiet = true
		w.resume(id)
		for range 12 {
			var fresh []engine.Minted
			for i := range 16 {
				fresh = append(fresh, minted("k"+strconv.Itoa(i)))
			}
			all := slices.Repeat([]int{0}, 16)
			for i := range all {
				all[i] = i + 1
			}
			w.advance(time.Millisecond)
			w.suspend(w.holds(id), waitFor(conditionOf(count(1, "w", "", all...)), fresh...))
			w.signal(id, fresh[15], "go", waitwords.EffectSatisfied)
		}
		w.quiet = false
		w.check()
		if n := len(w.record(id).Waitpoints); n > 144 {
			w.Fatalf("%d waitpoints are remembered", n)
		}
		_, _, err := w.e.ReadSignals(w.ctx, id, first.ID, 0)
		w.is(err, denied.NoWaitpoint)
	}},
	{name: "steps outlive the waitpoints that they record, also those that are forgotten", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		f := c.Fence
		w.quiet = true
		for i := range 160 {
			m := minted("k" + strconv.Itoa(i))
			_, err := w.e.CreatePendingWaitpoint(w.ctx, f, "n"+strconv.Itoa(i), m, time.Hour)
			w.no(err)
			w.advance(time.Millisecond)
			_, err = w.e.CloseWaitpoint(w.ctx, f, m.ID)
			w.no(err)
		}
		w.quiet = false
		w.check()
		own, left := len(w.hash(w.k.Steps(ids.UUID(f.Execution)))), len(w.record(f.Execution).Waitpoints)
		if own < 32 || own+left != 160 {
			w.Fatalf("%d steps have keys of their own, %d waitpoints are remembered", own, left)
		}
		w.all("all are told of", eq(len(w.listed(f.Execution)), 160), eq(len(w.logOfSteps(f.Execution)), 160))
		for name, there := range map[string]bool{"n0": true, "n159": true, "nobody": false,
			strings.Repeat("x", 128): false} {
			_, ok, err := w.e.Waitpoint(w.ctx, f.Execution, name)
			w.no(err)
			same(w, name+" is read", ok, there)
		}
		anew := minted("anew")
		o, err := w.e.CreatePendingWaitpoint(w.ctx, f, "n0", anew, time.Hour)
		w.no(err)
		w.check()
		same(w, "the name of a forgotten one is free", o.ID, anew.ID)
		w.release(f)
		steps := k.one(f.Execution).Steps
		same(w, "steps that a claim brings", len(steps), 160)
		for name, value := range steps {
			o, err := engine.DecodeOpened(value)
			w.no(err)
			same(w, name, o.Closed, o.ID != anew.ID)
		}
	}},
	{name: "a recorded waitpoint is found again when a wait without an end is over", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		m := minted("wp")
		_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "named", m, time.Hour)
		w.no(err)
		w.suspend(c.Fence, onPending(m))
		w.signal(c.Fence.Execution, m, "go", waitwords.EffectSatisfied)
		o, err := w.e.CreatePendingWaitpoint(w.ctx, k.one(c.Fence.Execution).Fence, "named", minted("wp"), time.Hour)
		w.no(err)
		w.all("the same one", eq(o.ID, m.ID), eq(o.Nonce, m.Nonce), eq(o.ExpiresAt, time.Time{}))
	}},
	{name: "the answer of a named wait is kept once, and only if there was one", run: func(w *env) {
		w.seed()
		id := w.create(retries(0))
		for range 3 {
			w.again(id, awaiting("it"))
		}
		c := w.claims(id)
		same(w, "steps", len(c.Steps), 1)
		w.suspend(c.Fence, awaiting("it"), within(time.Second, "fail"))
		w.advance(time.Second)
		w.settleTime()
		w.code(id, "T2")
		w.replay(id, engine.Replay{})
		w.suspend(w.claims(id).Fence, awaiting("never"), within(time.Second, "fail"))
		w.advance(time.Second)
		w.settleTime()
		w.replay(id, engine.Replay{})
		w.again(id, awaiting("x"))
		c = w.claims(id)
		_, kept := c.Steps[engine.StepAwait+"never"]
		same(w, "of the one that told nobody anything", kept, false)
		w.cancel(id)
		w.replay(id, engine.Replay{DropSteps: true})
		c = w.claims(id)
		w.all("dropped", eq(len(c.Steps), 0), eq(told(c.Resume), "nothing"))
	}},
	{name: "every suspension and resumption is published on the execution's channel", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		ear := w.listen(engine.EventChannel(id))
		m := w.stopped(c.Fence, because("waiting_for_approval"))
		ear.hears("S2 1")
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		ear.hears("R1i 1")
		w.suspend(w.holds(id), resumedAfter(time.Hour), within(time.Second, "escalate"))
		ear.hears("S1 1")
		w.advance(time.Second)
		w.settleTime()
		ear.hears("S5 1")
		w.signal(id, w.bound(id), "go", waitwords.EffectSatisfied)
		ear.hears("R2c 1")
	}},
	{name: "a deadline fires before a later suspension timeout", run: func(w *env) {
		w.seed()
		_, c := w.holder(deadline(time.Minute), timeout(time.Hour))
		w.suspend(c.Fence, within(time.Hour, "fail"))
		w.advance(time.Minute)
		same(w, "expired", w.tick().Expired, 1)
		w.code(c.Fence.Execution, "T4")
	}},
	{name: "the attempt timeout does not fire while the execution is suspended", run: func(w *env) {
		w.seed()
		_, c := w.holder(timeout(time.Minute))
		w.suspend(c.Fence)
		same(w, "alarms", len(w.dump().ZSets[":alarms"]), 0)
	}},
	{name: "fresh waitpoints of a wait that was satisfied at once are closed", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		w.pend(c.Fence, "another")
		early, fresh := w.pend(c.Fence, "early"), minted("fresh")
		w.signal(c.Fence.Execution, early, "go", waitwords.EffectBuffered)
		q := suspension(waitFor(conditionOf(count(1, "w", "go", 1, 2)), fresh, early))
		q.Bindings[1].Pending = true
		a, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
		w.no(err)
		w.check()
		same(w, "satisfied", a.Satisfied, true)
		same(w, "open", w.at(c.Fence.Execution, "wp"), 1)
	}},
	{name: "an automatic resumption skips the resume delay", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		w.suspend(c.Fence, within(time.Second, "auto_resume"), resumedAfter(time.Hour))
		w.advance(time.Second)
		same(w, "suspensions", w.tick().Suspensions, 1)
		w.code(c.Fence.Execution, "R1i")
	}},
	{name: "a waitpoint id can be used only once", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		m := w.pend(c.Fence, "a")
		other := minted("a")
		other.ID = m.ID
		w.refuses("another token", denied.WaitpointExists, m.ID.String(), func() error {
			_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", other, time.Hour)
			return err
		})
		w.refuses("fresh, but it is pending", denied.WaitpointExists, "a", func() error {
			_, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(waitFor(conditionOf(names(1, 1, "go")), m)))
			return err
		})
	}},
	{name: "steps that the library records count toward the step limit", run: func(w *env) {
		w.seed()
		w.quiet = true
		_, c := w.holder()
		id := c.Fence.Execution
		w.suspend(c.Fence, awaiting("it"))
		w.resume(id)
		f := w.holds(id)
		for i := range 999 {
			_, err := w.e.RecordStep(w.ctx, f, "s"+strconv.Itoa(i), nil, 0)
			w.no(err)
		}
		_, err := w.openNamed(f, minted("the last"), time.Hour)
		w.no(err)
		w.quiet = false
		_, full := w.holder()
		w.quiet = true
		for i, want := range []error{denied.StepLimit, nil} {
			m := minted("x")
			until := strconv.FormatInt(w.now()+time.Hour.Milliseconds(), 10)
			step := "\x1fw:x" + strings.Join([]string{m.ID.String(), m.Kid, m.Nonce, until, "x"}, " ")
			has := func(n int) {
				w.editRecord(ids.UUID(full.Fence.Execution), func(f fields) { f["sb"] = strconv.Itoa(n) })
			}
			has(8388608 + 1 - i - len(step))
			_, err := w.e.CreatePendingWaitpoint(w.ctx, full.Fence, "x", m, time.Hour)
			w.is(err, want)
			has(i * len(step))
		}
		w.quiet = false
		w.refuses("a waitpoint by name", denied.StepLimit, "", func() error {
			_, err := w.e.CreatePendingWaitpoint(w.ctx, f, "x", minted("x"), time.Hour)
			return err
		})
		w.refuses("a suspension", denied.StepLimit, "",
			func() error { _, err := w.e.SuspendExecution(w.ctx, f, suspension()); return err })
		other := engine.ChildOutcome{ID: mint.ID(w.p), Node: "other"}
		w.refuses("a wait for others", denied.StepLimit, "", func() error {
			return w.e.WaitForOthers(w.ctx, f,
				engine.ChildWait{Name: "wait", Mode: engine.WaitAll, Others: []engine.ChildOutcome{other}})
		})
		for _, name := range []string{"\x1fa:it", "\x1fw:it", "\x1f"} {
			w.refuses("their names", flowfabric.ErrInvalidInput, "",
				func() error { _, err := w.e.RecordStep(w.ctx, f, name, nil, 0); return err })
		}
		w.pend(f, "x") // without a name
	}},
	{name: "bytes that the library records count toward the limit of step bytes", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		w.suspend(c.Fence, awaiting("it"))
		w.resume(id)
		f := w.holds(id)
		// name, then name, cause, id, instant, who, why, count and separators
		const kept = 5 + 2 + 8 + 36 + 13 + 2 + 7 + 1 + 8
		rest := limits.MaxStepTotal - kept
		for i := 0; rest > 0; i++ {
			name := "s" + strconv.Itoa(i)
			n := min(limits.MaxStepBytes, rest-len(name))
			_, err := w.e.RecordStep(w.ctx, f, name, bytes.Repeat([]byte("v"), n), 0)
			w.no(err)
			rest -= n + len(name)
			if rest > 0 && rest < 300 {
				rest = 0 // the last one would have no name
			}
		}
		left := limits.MaxStepTotal - kept - int(w.at(id, "sb"))
		if left > 1 {
			_, err := w.e.RecordStep(w.ctx, f, "z", bytes.Repeat([]byte("v"), left-1), 0)
			w.no(err)
		}
		same(w, "what is left", limits.MaxStepTotal-int(w.at(id, "sb")), kept)
		w.editRecord(ids.UUID(id), func(f fields) { raise(f, "sb", 1) })
		w.unchanged("a byte too much", func() {
			_, err := w.e.SuspendExecution(w.ctx, f, suspension())
			w.is(err, denied.StepLimit)
		})
		w.editRecord(ids.UUID(id), func(f fields) { raise(f, "sb", -1) })
		w.suspend(f)
	}},
	{name: "a waitpoint that was closed stays so in every run", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		f := c.Fence
		_, err := w.e.RecordStep(w.ctx, f, "own", []byte("v"), 0)
		w.no(err)
		all := map[string]engine.Minted{}
		for _, name := range []string{"a", "b", "c", "d"} {
			all[name] = minted(name)
			_, err := w.openNamed(f, all[name], time.Hour)
			w.no(err)
		}
		_, err = w.e.CloseWaitpoint(w.ctx, f, all["c"].ID)
		w.no(err)
		w.check()
		for name, m := range all {
			o, err := w.openNamed(f, minted(name), time.Hour)
			w.no(err)
			w.all(name+" is the same", eq(o.ID, m.ID), eq(o.Closed, false))
		}
		steps := w.dump().Hashes[":k:"+ids.UUID(f.Execution).String()]
		same(w, "its step says so", strings.Split(steps[engine.StepWaitpoint+"c"], " ")[3], "0")
		for range 2 {
			already, err := w.e.CloseWaitpoint(w.ctx, f, all["c"].ID)
			w.no(err)
			same(w, "already", already, true)
		}
		w.cancel(f.Execution) // closes them all, and their names are free
		w.replay(f.Execution, engine.Replay{})
		held := w.claims(f.Execution)
		same(w, "steps", len(held.Steps), 1)
		m := minted("a")
		o, err := w.openNamed(held.Fence, m, time.Hour)
		w.no(err)
		same(w, "anew", o.ID, m.ID)
	}},
	{name: "a token can be reissued under another key, and the next claim returns it", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		f, m := c.Fence, minted("a")
		_, err := w.e.CreatePendingWaitpoint(w.ctx, f, "not its key", m, time.Hour)
		w.no(err)
		_, err = w.openNamed(f, minted("b"), time.Hour)
		w.no(err)
		same(w, "rotated", w.setKey("rotate", "a-longer-kid", 2*time.Hour, false).code, "OK")
		w.pend(f, "under the key before")
		anew := mintedBy("a-longer-kid", "a")
		anew.ID = m.ID
		_, err = w.e.ReissueToken(trail.As(w.ctx, "op", ""), f.Execution, anew)
		w.no(err)
		w.check()
		w.release(f)
		o, err := engine.DecodeOpened(k.one(f.Execution).Steps[engine.StepWaitpoint+"not its key"])
		w.no(err)
		w.all("what the handler gets", eq(o.ID, m.ID), eq(o.Key, "a"), eq(o.Kid, anew.Kid), eq(o.Nonce, anew.Nonce))
		w.signal(f.Execution, anew, "go", waitwords.EffectBuffered)
	}},
	{name: "an approval names its sender and goes to the open waitpoint of that name", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		for at, value := range map[int]string{6: "", 5: "web", 4: strings.Repeat("c", 65)} {
			m := w.pend(c.Fence, "draft")
			args := wireApprove(id, m.ID.String(), "go")
			args[at+1] = value
			w.unchanged("approval",
				func() { same(w, value, w.fcall("ff_approve_waitpoint", args...).code, "invalid_input") })
		}
		var closed int64
		for range 6 {
			m := w.pend(c.Fence, "pay")
			w.advance(time.Second)
			_, err := w.e.CloseWaitpoint(w.ctx, c.Fence, m.ID)
			w.no(err)
			closed = w.waitpoint(id, m).ClosedAt.UnixMilli()
		}
		a := w.fcall("ff_approve_waitpoint", wireApprove(id, "pay", "go")...)
		w.all("the last", eq(a.code, "waitpoint_closed"),
			eqList(a.slots, "proactive_close", strconv.FormatInt(closed, 10)))
		for range 4 { // in which order they are looked at is a matter of chance
			open := w.pend(c.Fence, "pay")
			d, err := w.e.ApproveWaitpoint(w.ctx, id, "pay", suspend.SentSignal{Name: "go", Source: "me"})
			w.no(err)
			w.all("the open one", eq(d.Effect, waitwords.EffectBuffered),
				eq(w.logged(id, open), string("go "+waitwords.EffectBuffered)))
			_, err = w.e.CloseWaitpoint(w.ctx, c.Fence, open.ID)
			w.no(err)
		}
	}},
	{name: "a claim returns a resumption that is too large to be inlined", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		for i := range 2 {
			_, err := w.e.RecordStep(w.ctx, c.Fence, "s"+strconv.Itoa(i), bytes.Repeat([]byte("v"), 200<<10), 0)
			w.no(err)
		}
		m := w.stopped(c.Fence, waitFor(conditionOf(names(1, 3, "go", "go", "go")), minted("wp")))
		for i := range 3 {
			w.send(id, m, suspend.SentSignal{Name: "go", Payload: bytes.Repeat([]byte("p"), 60<<10)},
				map[bool]suspend.Effect{true: waitwords.EffectSatisfied, false: waitwords.EffectAppended}[i == 2])
		}
		k := w.worker("w2")
		k.nothingYet()
		a := w.must("ff_claim_next", claimArgs(k.request(1))...)
		for _, slot := range a.slots {
			if h := strings.Fields(slot); len(h) == claimWords {
				sameList(w, "input, tags, steps, resume", h[13:], "1", "0", "1", "2")
			}
		}
		r, err := w.e.ClaimNext(w.ctx, k.request(1)) // the repeat, decoded
		w.no(err)
		same(w, "told", told(r.Claims[0].Resume), "signal: go go go")
	}},
	{name: "the limit of buffered bytes counts all waitpoints of an execution together", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		a, b := w.pend(c.Fence, "a"), w.pend(c.Fence, "b")
		large := suspend.SentSignal{Name: "go", Payload: bytes.Repeat([]byte("p"), limits.MaxSignal)}
		for i := range 3 {
			w.send(id, []engine.Minted{a, b}[i%2], large, waitwords.EffectBuffered)
		}
		w.refuses("a fourth", denied.SignalLimit, "",
			func() error { _, err := w.e.DeliverSignal(w.ctx, id, b.ID, b.Digest, large); return err })
		large.Payload = append(large.Payload, 'p')
		w.refuses("a signal of a byte too much", flowfabric.ErrPayloadTooLarge, "",
			func() error { _, err := w.e.DeliverSignal(w.ctx, id, b.ID, b.Digest, large); return err })
	}},
	{name: "600 early signals are all evaluated by the wait", needs: []string{"Native"}, run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		m := w.pend(c.Fence, "a")
		w.quiet = true
		for range 600 {
			w.signal(id, m, "other", waitwords.EffectBuffered)
		}
		w.quiet = false
		w.suspend(c.Fence, waitFor(conditionOf(names(1, 1, "go"))), onPending(m))
		same(w, "evaluated", w.record(id).Signals, 600)
	}},
	{name: "a request id of an earlier holder does not block a later suspension", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		w.suspend(c.Fence, asked("r1"))
		w.resume(id)
		_, second := w.suspend(w.holds(id), asked("r1"))
		w.all("suspended anew", eq(second.Already, false), eq(w.record(id).ID, second.Suspension))
	}},
	{name: "a purge leaves nothing of waitpoints", run: func(w *env) {
		w.seed()
		id := w.create(retries(0))
		w.again(id, awaiting("it"))
		f := w.holds(id)
		m := w.pend(f, "draft")
		w.signal(id, m, "go", waitwords.EffectBuffered)
		m = w.stopped(f, waitFor(conditionOf(names(1, 2, "go", "on")), minted("x")), within(time.Second, "fail"))
		w.signal(id, m, "go", waitwords.EffectAppended)
		w.advance(time.Second)
		w.settleTime()
		w.code(id, "T2")
		told := w.create()
		w.again(told)
		w.no(w.complete(w.holds(told), "").Err)
		for _, id := range []flowfabric.ExecutionID{id, told} {
			_, err := w.e.PurgeExecution(w.ctx, id, 48*time.Hour)
			w.no(err)
			w.check()
			for _, key := range w.keys() {
				if strings.Contains(key, ids.UUID(id).String()) && key != w.k.Tombstone(ids.UUID(id)) {
					w.Errorf("%s is left", key)
				}
			}
		}
	}},
	{name: "pending waitpoints are closed when their execution ends", run: func(w *env) {
		for _, code := range []codes.Code{"T1", "T2", "T3", "T4"} {
			w.reset()
			w.hands = true
			x := w.state(code)
			p := w.waitpoint(x.id, x.waitpoint)
			w.all(string(code), eq(p.State, "closed"), eq(p.CloseReason, "attempt_ended"))
		}
	}},
}

// bound is the active waitpoint of an execution, with a token that is new: the one before is lost to the test.
func (w *env) bound(id flowfabric.ExecutionID) engine.Minted {
	w.Helper()
	for _, p := range w.record(id).Waitpoints {
		if p.State == "active" {
			m := minted(p.Key)
			m.ID = p.ID
			_, err := w.e.ReissueToken(trail.As(w.ctx, "op", ""), id, m)
			w.no(err)
			return m
		}
	}
	w.Fatal("nothing is active")
	return engine.Minted{}
}
