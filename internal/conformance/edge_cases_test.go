package conformance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/stream"
)

// What no other topic noticed when internal/mutants broke it.
var edgeCaseScenarios = []scenario{
	{name: "a repeat is recognised only under the fence of the first call", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(retries(3))
		first := k.one(id).Fence
		w.delay(first, time.Second)
		w.advance(time.Second)
		w.settleTime()
		second := k.one(id).Fence // the same attempt under a new epoch
		w.delay(second, time.Second)
		w.unchanged("the delay before", func() {
			_, err := w.e.DelayExecution(w.ctx, first, time.Second, "")
			w.is(err, denied.NotActive)
		})
		for what, other := range strangers(second) {
			w.unchanged("a delay by another "+what, func() {
				_, err := w.e.DelayExecution(w.ctx, other, time.Second, "")
				w.is(err, denied.NotActive)
			})
		}
		x := w.state("T1")
		for what, other := range strangers(x.fence) {
			w.unchanged("a completion by another "+what, func() { w.is(w.complete(other, "r").Err, denied.NotActive) })
		}
	}},
	{name: "a refused completion names the state and the last release of the execution", run: func(w *env) {
		x := w.state("R2b")
		coded, ok := errors.AsType[*flowfabric.Error](w.complete(x.fence, "r").Err)
		w.all("slots", eq(ok, true), eq(coded.Code, "execution_not_active"), eq(denied.Slot(coded, 0), "R2b"),
			eq(denied.Slot(coded, 3), w.core(x.id)["lr"]))
	}},
	{name: "an attempt whose lease was revoked stays revoked after a later cancel", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		w.revoke(f.Execution)
		reason := func() string {
			m, err := w.e.ReadAttemptStream(w.ctx, f.Execution, 1)
			w.no(err)
			return m.ClosedReason
		}
		same(w, "before", reason(), "lease_revoked")
		w.cancel(f.Execution)
		w.all("after", eq(reason(), "lease_revoked"),
			eq(w.code(f.Execution, "T3").AttemptLog[0].Category, "lease_revoked"))
	}},
	{name: "times that are round numbers are read correctly on every server", run: func(w *env) {
		w.stop()
		w.pass(200_000_000_000*time.Millisecond - ttl) // the session will expire at 2e12
		k := w.worker("w1")
		id := w.create()
		k.one(id)
		w.pass(ttl)
		same(w, "requeued", w.tick().Requeued, 1)
		a, b := w.create(kind("a")), w.create(kind("b")) // at 2e12
		two := w.worker("w2")
		two.one(id)
		two.one(a)
		two.one(b)
	}},
	{name: "a repeated claim renews the lease and returns the same attempt type", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		w.release(k.one(id).Fence)
		request := k.request(1)
		resumed, err := w.e.ClaimNext(w.ctx, request)
		w.no(err)
		same(w, "type", resumed.Claims[0].Type, flowfabric.AttemptResumed)
		w.advance(ttl / 2)
		again, err := w.e.ClaimNext(w.ctx, request)
		w.no(err)
		same(w, "type of the repeat", again.Claims[0].Type, resumed.Claims[0].Type)
		w.advance(ttl * 3 / 4)
		w.no(w.complete(again.Claims[0].Fence, "").Err)
	}},
	{name: "the epoch grows within one millisecond and when the clock steps back", run: func(w *env) {
		w.stop()
		id := w.create()
		k := w.worker("w1")
		epoch := uint64(0)
		for _, d := range []time.Duration{0, 0, -time.Second} {
			w.pass(d)
			w.quiet = d < 0 // the times of the core are out of order then
			f := k.one(id).Fence
			if f.Epoch <= epoch {
				w.Fatalf("epoch %d after %d", f.Epoch, epoch)
			}
			epoch = f.Epoch
			_, err := w.e.ReleaseExecution(w.ctx, f)
			w.no(err)
		}
	}},
	{name: "work created in one millisecond is claimed in order of creation across routes", run: func(w *env) {
		w.stop()
		var ids []flowfabric.ExecutionID
		for i := range 8 {
			ids = append(ids, w.create(kind("k"+strconv.Itoa(i%3))))
		}
		k := w.worker("w1")
		for _, id := range ids {
			k.one(id)
		}
	}},
	{name: "a passed deadline prevents claims before the tick, and fires before a later timeout", run: func(w *env) {
		w.stop()
		late, id := w.create(deadline(time.Second)), w.create(deadline(time.Minute), timeout(time.Hour))
		w.pass(time.Second)
		k := w.worker("w1")
		f := k.one(id).Fence
		k.nothing()
		same(w, "expired to the millisecond", w.tick().Expired, 1)
		w.code(late, "T4n")
		w.pass(59 * time.Second)
		w.tick()
		w.code(id, "T4")
		w.is(w.complete(f, "").Err, denied.NotActive)
	}},
	{name: "sessions and attempt timeouts end at their exact millisecond", run: func(w *env) {
		w.stop()
		slow, held := w.create(timeout(time.Second), retries(0)), w.create(retries(0))
		k := w.worker("w1")
		k.claim(2)
		w.pass(time.Second - time.Millisecond)
		same(w, "too early", w.tick().TimedOut, 0)
		w.pass(time.Millisecond)
		same(w, "timed out", w.tick().TimedOut, 1)
		w.code(slow, "T4")
		w.pass(ttl - time.Second)
		same(w, "requeued", w.tick().Requeued, 1)
		w.code(held, "R1r")
	}},
	{name: "a claim moves work from a wrong queue back into its own", run: func(w *env) {
		k := w.worker("w1")
		k.can = func(r engine.Route) bool { return r.Kind == "k" }
		here, there := w.create(), w.create(kind("other"))
		w.set("ZADD", w.k.Queue(w.core(here)["r"]), "1", ids.UUID(there).String())
		w.set("ZREM", w.k.Queue(w.core(there)["r"]), ids.UUID(there).String())
		same(w, "claimed", k.claim(100)[0].Fence.Execution, here)
		score := w.dump().ZSets[":q:"+w.core(there)["r"]][ids.UUID(there).String()]
		same(w, "its place", int64(score), w.at(there, "ct"))
	}},
	{name: "a subscription expires, but not while a worker waits with it", run: func(w *env) {
		w.complete(w.worker("w0").one(w.create()).Fence, "")
		k := w.worker("w1")
		k.nothing()
		key := w.k.Subscription(k.subscription)
		w.lives(key, 10*time.Minute)
		w.set("EXPIRE", key, "5")
		k.nothing()
		w.lives(key, 10*time.Minute)
		w.set("EXPIRE", key, "5")
		digest, err := w.e.SetSubscription(w.ctx, w.p, engine.Subscription{Classes: []uint64{1}})
		w.no(err)
		same(w, "digest", digest, k.subscription)
		w.lives(key, 10*time.Minute)
	}},
	{name: "each attempt has its own result", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(retry(flowfabric.RetryPolicy{MaxRetries: 1, Max: time.Second, Multiplier: 2}))
		w.fail(k.one(id).Fence, "x")
		large := strings.Repeat("of the second", 100) // too large for the record
		w.no(w.complete(k.one(id).Fence, large).Err)
		for attempt, want := range []string{"", large} {
			got, ok, err := w.e.ReadResult(w.ctx, id, uint32(attempt+1))
			w.no(err)
			w.all("result", eq(string(got), want), eq(ok, want != ""))
		}
	}},
	{name: "a completion removes the alarm of its deadline", run: func(w *env) {
		w.no(w.complete(w.worker("w1").one(w.create(deadline(time.Hour))).Fence, "").Err)
		same(w, "alarms", len(w.dump().ZSets[":alarms"]), 0)
	}},
	{name: "a failure of the category permanent is not retried", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(retries(3))
		same(w, "retry", w.fail(k.one(id).Fence, "permanent").Retry, false)
		w.code(id, "T2")
	}},
	{name: "frames and bytes are counted once per attempt, also if an append is repeated", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(retry(flowfabric.RetryPolicy{MaxRetries: 1, Max: time.Second, Multiplier: 2}))
		for attempt := uint32(1); attempt <= 2; attempt++ {
			f := k.one(id).Fence
			w.frames(f, 1, 2)
			w.frames(f, 2, 2) // the second once more
			a := w.frames(f, 3, 1)
			w.all("already", eq(a.Count, 3), eq(a.LastSequence, 3), eq(a.Duplicate, true))
			m, err := w.e.ReadAttemptStream(w.ctx, id, attempt)
			w.no(err)
			w.all("meta", eq(m.Count, 3), eq(m.Bytes, 3), eq(m.LastSequence, 3))
			frames, err := w.e.ReadFrames(w.ctx, id, attempt, stream.Cursor{}, 10)
			w.no(err)
			for i, frame := range frames {
				w.all("frame", eq(frame.Sequence, uint64(i+1)), eq(frame.Type, "token"),
					eq(string(frame.Payload), fmt.Sprint(i+1)))
			}
			if attempt == 1 {
				w.fail(f, "x")
			}
		}
	}},
	{name: "a listener receives frames complete, as they are stored", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		ear := w.listen(engine.FrameChannel(f.Execution))
		sent := []stream.Frame{{Type: "a", Payload: []byte("\x00 {1:}")},
			{Type: "b", Encoding: "json", Correlation: "c", ProducedAt: time.UnixMilli(5).UTC(), Payload: []byte("2")}}
		a, err := w.e.AppendFrames(w.ctx, f, 1, sent)
		w.no(err)
		said, err := engine.DecodeFrames(ear.next())
		w.no(err)
		frames := said.Frames
		stored, err := w.e.ReadFrames(w.ctx, f.Execution, 1, stream.Cursor{}, 10)
		w.no(err)
		for i := range stored {
			stored[i].Run = 1
		}
		w.all("frames", eq(said.Attempt, 1), eqDeep(frames, stored), eq(said.Resumed == nil, true))
		w.all("the last", eq(frames[1].ID, a.LastID), eq(frames[1].Sequence, 2), eq(string(frames[1].Payload), "2"))
	}},
	{name: "a replay resets reclaims and progress", run: func(w *env) {
		id := w.create()
		w.worker("w1").one(id)
		w.advance(ttl)
		w.settleTime()
		f := w.worker("w2").one(id).Fence
		w.no(w.e.UpdateProgress(w.ctx, f, 40, "on the way"))
		w.fail(f, "x")
		w.all("before", eq(w.read(id).Reclaims, 1), eq(*w.read(id).Progress.Percent, 40))
		w.replay(id, engine.Replay{})
		s := w.code(id, "R1p")
		w.all("after", eq(s.Reclaims, 0), eq(s.Progress.Percent == nil, true), eq(s.Progress.Message, ""))
	}},
	{name: "a purge removes the steps and keeps the tombstone for the requested time", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		f := k.one(id).Fence
		_, err := w.e.RecordStep(w.ctx, f, "s", []byte("v"), 0)
		w.no(err)
		w.complete(f, "r")
		_, err = w.e.PurgeExecution(w.ctx, id, 48*time.Hour)
		w.no(err)
		w.check()
		same(w, "steps", len(w.hash(w.k.Steps(ids.UUID(id)))), 0)
		w.lives(w.k.Tombstone(ids.UUID(id)), 48*time.Hour)
	}},
	{name: "a missing partition count is filled in without changing the others", run: func(w *env) {
		key := string(w.k) + ":config"
		defer w.set("DEL", key)
		w.set("HSET", key, "num_flow_partitions", "8", "num_other_partitions", "2")
		sameDeep(w, "answer", w.fcallOn([]string{key}, "ff_configure", proto, "9", "9", "1"),
			answer{1, "OK", []string{"8", "9", "1"}})
	}},
	{name: "the executions that a session holds are listed in pages of 100", run: func(w *env) {
		ids := w.createN(101)
		k := w.worker("w1")
		k.claim(100)
		k.one(ids[100])
		page := w.must("ff_session_held", proto, k.session, "0").slots
		sameList(w, "page", page[:3], "1", "101", "100")
		held, err := w.e.SessionHeld(w.ctx, w.p, k.session)
		w.no(err)
		same(w, "all", len(held), 101)
	}},
}

// strangers are fences that differ from one in who holds.
func strangers(f flowfabric.Fence) map[string]flowfabric.Fence {
	session, claim := f, f
	session.Session += "x"
	claim.Claim++
	return map[string]flowfabric.Fence{"session": session, "claim": claim}
}

// stop stops the clock of the partition; pass moves it.
func (w *env) stop() {
	w.Helper()
	w.set("HSET", string(w.k), "clock_pin", "1800000000000")
}

// lives fails unless a key expires after d, give or take some seconds.
func (w *env) lives(key string, d time.Duration) {
	w.Helper()
	ms, err := w.do("PTTL", key).AsInt64()
	w.no(err)
	if left := time.Duration(ms) * time.Millisecond; left > d || left < d-30*time.Second {
		w.Fatalf("%s expires in %s, want %s", key, left, d)
	}
}
