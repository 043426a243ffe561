package conformance

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
)

var settleScenarios = []scenario{
	{name: "a completion stores the result, closes the stream and removes the alarm", run: func(w *env) {
		id := w.create(deadline(time.Hour), timeout(time.Hour))
		k := w.worker("w1")
		f := k.one(id).Fence
		w.frames(f, 1, 2)
		w.no(w.complete(f, "\x00result").Err)
		s := w.code(id, "T1")
		w.all("outcome", eq(s.State.Public, "completed"), eq(s.Phase().TerminalOutcome, "success"),
			eq(s.EndedAt.IsZero(), false), eq(len(s.AttemptLog), 0))
		r, ok, err := w.e.ReadResult(w.ctx, id, 1)
		w.no(err)
		w.all("result", eq(ok, true), eq(string(r), "\x00result"))
		m, err := w.e.ReadAttemptStream(w.ctx, id, 1)
		w.no(err)
		w.all("stream", eq(m.Closed, true), eq(m.ClosedReason, "attempt_success"), eq(m.Count, 2))
		same(w, "alarms", len(w.dump().ZSets[":alarms"]), 0)
		void := w.create()
		w.no(w.complete(k.one(void).Fence, "").Err)
		_, ok, err = w.e.ReadResult(w.ctx, void, 1)
		w.no(err)
		same(w, "void result", ok, false)
	}},
	{name: "a repeated completion changes nothing, and other calls of its holder are refused", run: func(w *env) {
		id := w.create()
		f := w.worker("w1").one(id).Fence
		w.no(w.complete(f, "r").Err)
		w.unchanged("the same complete",
			func() { same(w, "already", w.complete(f, "r"), engine.Settled{Already: true}) })
		stale := f
		stale.Epoch--
		w.unchanged("an older epoch", func() {
			err := w.complete(stale, "r").Err
			w.is(err, denied.NotActive)
			coded, _ := errors.AsType[*flowfabric.Error](err)
			same(w, "slots", denied.Slot(coded, 0)+" "+denied.Slot(coded, 1)+" "+denied.Slot(coded, 2),
				fmt.Sprintf("T1 %d 1", f.Epoch))
		})
		for name, call := range w.everyFencedCall(f) {
			want := denied.NotActive
			if name == "append" {
				want = denied.StreamClosed
			}
			if name != "complete" {
				w.unchanged(name, func() { w.is(call(), want) })
			}
		}
	}},
	{name: "after the lease expired, completions and all other fenced calls are refused", run: func(w *env) {
		id := w.create(retries(2))
		f := w.worker("w1").one(id).Fence
		w.advance(ttl)
		for name, call := range w.everyFencedCall(f) {
			want := denied.LeaseExpired
			if name == "append" {
				want = denied.StaleAppend
			}
			w.unchanged(name, func() { w.is(call(), want) })
		}
		w.code(id, "A2")
		_, ok, err := w.e.ReadResult(w.ctx, id, 1)
		w.no(err)
		same(w, "result", ok, false)
	}},
	{name: "of a racing completion and cancellation, exactly one decides the outcome", run: func(w *env) {
		ids := w.createN(40)
		k := w.worker("w1")
		claims := k.claim(40)
		var completed, cancelled atomic.Int32
		together(80, func(i int) {
			f := claims[i/2].Fence
			if i%2 == 0 {
				s, _, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: f}}, nil)
				if err == nil && s[0].Err == nil {
					completed.Add(1)
				} else if err != nil || !errors.Is(s[0].Err, denied.NotActive) {
					w.Error(err, s)
				}
				return
			}
			_, err := w.e.CancelExecution(w.ctx, f.Execution, engine.Cancellation{Source: engine.CancelOperator})
			if err == nil {
				cancelled.Add(1)
			} else if !errors.Is(err, denied.NotActive) {
				w.Error(err)
			}
		})
		same(w, "outcomes", completed.Load()+cancelled.Load(), 40)
		t1 := 0
		for _, id := range ids {
			if w.read(id).Code == codes.Completed {
				t1++
			}
		}
		same(w, "completed", int(completed.Load()), t1)
		w.check()
	}},
	{name: "retries back off exponentially up to a maximum, until none is left", run: func(w *env) {
		id := w.create(retries(8))
		k := w.worker("w1")
		k.ttl = time.Hour
		c := k.one(id)
		for i, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			o := w.fail(c.Fence, "handler_error")
			w.all("pause "+strconv.Itoa(i), eq(o.Retry, true), eq(o.RetryIn, time.Duration(want)*time.Second),
				eq(o.Already, false))
			s := w.code(id, "R2b")
			same(w, "retries", s.Retries, i+1)
			w.advance(time.Duration(want) * time.Second)
			same(w, "promoted", w.tick().Promoted, 1)
			w.code(id, "R1t")
			c = k.one(id)
			w.all("next", eq(c.Type, "retry"), eq(c.Fence.Attempt, uint32(i+2)), eq(c.Retries, i+1))
		}
		same(w, "no retry left", w.fail(c.Fence, "handler_error").Retry, false)
		s := w.code(id, "T2")
		w.all("attempts", eq(s.Attempts, 9), eq(len(s.AttemptLog), 9), eq(s.AttemptLog[3].Type, "retry"),
			eq(s.AttemptLog[3].State, "ended_failure"), eq(s.AttemptLog[3].Category, "handler_error"),
			eq(s.AttemptLog[3].Message, "because"), eq(s.AttemptLog[3].Worker, "w1"))
	}},
	{name: "failures are not retried if permanent, of an unlisted category or out of retries", run: func(w *env) {
		k := w.worker("w1")
		last := w.create()
		same(w, "no policy, no retry", w.fail(k.one(last).Fence, "handler_error").Retry, false)
		s := w.code(last, "T2")
		w.all("shown", eq(s.State.Public, "failed"), eq(s.Failure.Category, "handler_error"),
			eq(s.Failure.Message, "because"))
		told := w.create(retries(5))
		o, err := w.e.FailExecution(w.ctx, k.one(told).Fence, engine.Failure{Category: "x", Permanent: true})
		w.no(err)
		same(w, "told permanent", o.Retry, false)
		listed := retry(flowfabric.RetryPolicy{MaxRetries: 5, Initial: time.Second,
			Categories: []flowfabric.Category{"net", "rate.limit"}})
		a, b, c := w.create(listed), w.create(listed), w.create(listed)
		same(w, "a category that is listed", w.fail(k.one(a).Fence, "rate.limit").Retry, true)
		same(w, "one that is not", w.fail(k.one(b).Fence, "net2").Retry, false)
		same(w, "nor a part of one", w.fail(k.one(c).Fence, "rate").Retry, false)
		for _, garbage := range []string{"garbage", "null", "{}", "1,2,3", "nan,0,1000,60000,2000,0,100,10,0"} {
			id := w.create(retries(5))
			f := k.one(id).Fence
			w.editRecord(ids.UUID(id), func(f fields) { f["po"] = garbage })
			same(w, "a corrupt policy", w.fail(f, "x").Retry, false)
			same(w, "state", w.core(id)["s"], "T2")
			w.editRecord(ids.UUID(id), func(f fields) { delete(f, "po") })
		}
	}},
	{name: "backoff handles fractional multipliers, fixed and zero pauses, and jitter", run: func(w *env) {
		k := w.worker("w1")
		k.ttl = time.Hour
		id := w.create(retry(flowfabric.RetryPolicy{MaxRetries: 5, Initial: 333 * time.Millisecond, Max: time.Minute,
			Multiplier: 1.37}))
		for _, want := range []int{333, 456, 624, 854, 1169} { // floor at every step, like the library
			o := failAsTold(w, k.one(id))
			same(w, "pause", o.RetryIn, time.Duration(want)*time.Millisecond)
			w.advance(o.RetryIn)
			w.tick()
		}
		w.cancel(id)
		fixed := w.create(retry(flowfabric.RetryPolicy{MaxRetries: 2, Fixed: true, Initial: 7 * time.Second,
			Max: time.Second}))
		same(w, "fixed", failAsTold(w, k.one(fixed)).RetryIn, 7*time.Second)
		none := w.create(retry(flowfabric.RetryPolicy{MaxRetries: 1, Max: time.Minute, Multiplier: 2}))
		o := failAsTold(w, k.one(none))
		w.all("at once", eq(o.Retry, true), eq(o.RetryIn, 0))
		w.code(none, "R1t")
		last := k.one(none)
		same(w, "claimable at once", last.Type, flowfabric.AttemptRetry)
		same(w, "no retry is left", failAsTold(w, last).Retry, false)
		listed := w.create(retry(flowfabric.RetryPolicy{MaxRetries: 5, Initial: time.Second,
			Categories: []flowfabric.Category{"net"}}))
		same(w, "not listed", failAsTold(w, k.one(listed)).Retry, false)
		after := 5 * time.Minute
		told := w.create(retries(1))
		o, err := w.e.FailExecution(w.ctx, k.one(told).Fence, engine.Failure{Category: "x", RetryAfter: &after})
		w.no(err)
		same(w, "told when", o.RetryIn, after)
		jittered := retry(flowfabric.RetryPolicy{MaxRetries: 1, Initial: 10 * time.Second, Max: time.Minute,
			Multiplier: 2, Jitter: true})
		seen := map[time.Duration]bool{}
		for range 12 {
			id := w.create(jittered, priority(9000))
			o := failAsTold(w, k.one(id))
			sum := sha1.Sum([]byte(ids.UUID(id).String() + ":0"))
			part := int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])
			same(w, "jitter", o.RetryIn, 10*time.Duration(800+part%401)*time.Millisecond) // 8 to 12 s
			seen[o.RetryIn] = true
		}
		if len(seen) < 6 {
			w.Fatalf("jitter gave only %v", seen)
		}
		bounded := retry(flowfabric.RetryPolicy{MaxRetries: 1, Initial: 10 * time.Second, Max: 10 * time.Second,
			Multiplier: 2, Jitter: true})
		for range 12 {
			o := failAsTold(w, k.one(w.create(bounded, priority(9000))))
			if o.RetryIn > 10*time.Second {
				w.Fatalf("jitter gave %s, which is beyond the longest pause", o.RetryIn)
			}
		}
	}},
	{name: "a failure repeated after a lost reply is recognised and changes nothing", run: func(w *env) {
		id := w.create(retries(1))
		k := w.worker("w1")
		f := k.one(id).Fence
		first := w.fail(f, "x")
		du := w.at(id, "du")
		w.unchanged("the same fail", func() {
			again := w.fail(f, "x")
			same(w, "already", again.Already, true)
			if again.RetryIn > first.RetryIn || again.RetryIn < first.RetryIn-500*time.Millisecond || !again.Retry {
				w.Fatalf("%+v after %+v", again, first)
			}
		})
		same(w, "instant", w.at(id, "du"), du)
		// Still recognised while the next attempt runs, and after it.
		w.advance(time.Second)
		w.tick()
		next := k.one(id)
		w.unchanged("during the next attempt", func() { same(w, "already", w.fail(f, "x").Already, true) })
		o := w.fail(next.Fence, "x")
		same(w, "the end", o.Retry, false)
		w.unchanged("the last fail",
			func() { same(w, "outcome", w.fail(next.Fence, "x"), engine.FailOutcome{Already: true}) })
	}},
	{name: "a delayed execution continues the same attempt and stream when it is due", run: func(w *env) {
		id := w.create(timeout(time.Minute), deadline(time.Hour))
		k := w.worker("w1")
		f := k.one(id).Fence
		w.frames(f, 1, 3)
		w.advance(20 * time.Second)
		w.delay(f, 500*time.Millisecond)
		s := w.code(id, "R2ai")
		w.all("delayed", eq(s.State.Public, "delayed"), eq(s.Phase().AttemptState, "attempt_interrupted"),
			eq(s.Attempts, 1), eq(s.Retries, 0))
		w.unchanged("the same delay", func() {
			already, err := w.e.DelayExecution(w.ctx, f, 500*time.Millisecond, "")
			w.no(err)
			same(w, "already", already, true)
		})
		for _, bad := range []string{"soon", "", "1.5", "-1", "+", "+315360000001"} {
			w.unchanged(bad, func() {
				same(w, "delay "+bad, w.fcall("ff_delay_execution",
					append(append([]string{proto}, fenceArgs(f)...), bad)...).code, "invalid_input")
			})
		}
		w.advance(500 * time.Millisecond)
		same(w, "promoted", w.tick().Promoted, 1)
		w.code(id, "R1i")
		c := w.worker("w2").one(id)
		w.all("the same attempt", eq(c.Type, "resumed"), eq(c.Fence.Attempt, 1), eq(c.LastSequence, 3),
			eq(c.Fence.Epoch > f.Epoch, true))
		if c.TimeLeft > 40*time.Second || c.TimeLeft < 30*time.Second {
			w.Fatalf("the attempt has %s left of 60 s after 20 s", c.TimeLeft)
		}
		same(w, "frames go on", w.frames(c.Fence, 4, 1).Count, 4)
		w.delay(c.Fence, 0)
		w.code(id, "R1i")
		past := k.one(id)
		w.must("ff_delay_execution", append(append([]string{proto}, fenceArgs(past.Fence)...), "1", "")...)
		w.check()
		w.code(id, "R1i")
	}},
	{name: "a release requeues work at once and uses up no attempt and no retry", run: func(w *env) {
		id := w.create(timeout(time.Minute), retries(1))
		k := w.worker("w1")
		f := k.one(id).Fence
		w.frames(f, 1, 2)
		w.release(f)
		s := w.code(id, "R1i")
		w.all("nothing consumed", eq(s.Attempts, 1), eq(s.Retries, 0), eq(s.Reclaims, 0))
		w.unchanged("again", func() {
			already, err := w.e.ReleaseExecution(w.ctx, f)
			w.no(err)
			same(w, "already", already, true)
		})
		c := w.worker("w2").one(id)
		w.all("goes on", eq(c.Type, "resumed"), eq(c.Fence.Attempt, 1), eq(c.LastSequence, 2))
		w.unchanged("still known", func() {
			already, err := w.e.ReleaseExecution(w.ctx, f)
			w.no(err)
			same(w, "already", already, true)
		})
		w.frames(c.Fence, 3, 1)
		w.delay(c.Fence, time.Second)
		w.advance(time.Second)
		w.tick()
		c = k.one(id)
		w.all("delay after release", eq(c.Type, "resumed"), eq(c.Fence.Attempt, 1), eq(c.LastSequence, 3))
		w.no(w.complete(c.Fence, "").Err)
	}},
	{name: "a tick promotes delayed work when its record, not the index, says that it is due", run: func(w *env) {
		early := w.create(delay(time.Minute))
		same(w, "not yet due", w.tick().Promoted, 0)
		w.code(early, "R2af")
		active, ended, missing := w.create(), w.create(), mint.ID(w.p)
		k := w.worker("w1")
		k.one(active)
		w.complete(k.one(ended).Fence, "")
		for _, id := range []flowfabric.ExecutionID{active, ended, missing} {
			w.set("ZADD", string(w.k)+":delayed", "5", ids.UUID(id).String())
		}
		w.tick() // its check finds no entry that should not be there
		w.set("ZADD", string(w.k)+":delayed", "5", ids.UUID(early).String())
		w.tick()
		w.code(early, "R2af") // the core decides, not the index
		w.editRecord(ids.UUID(early), func(f fields) { delete(f, "du") })
		w.advance(time.Minute)
		same(w, "promoted without an instant", w.tick().Promoted, 1)
		w.code(early, "R1f")
		many := w.createN(120, delay(time.Second))
		w.advance(time.Second)
		sum, _ := w.settleTime()
		same(w, "a backlog", sum.Promoted, 120)
		w.code(many[119], "R1f")
	}},
	{name: "each completion of a batch succeeds or fails alone", run: func(w *env) {
		w.createN(4)
		k := w.worker("w1")
		c := k.claim(4)
		stale := c[1].Fence
		stale.Claim = 9
		items := []engine.Completion{{Fence: c[0].Fence, Result: []byte("a")}, {Fence: stale},
			{Fence: c[2].Fence, Result: make([]byte, limits.MaxPayload+1)},
			{Fence: c[3].Fence}, {Fence: c[3].Fence}}
		s, _, err := w.e.CompleteExecutions(w.ctx, w.p, items, nil)
		w.no(err)
		w.check()
		w.no(s[0].Err)
		w.is(s[1].Err, denied.StaleLease)
		w.is(s[2].Err, flowfabric.ErrPayloadTooLarge)
		w.no(s[3].Err)
		w.is(s[4].Err, flowfabric.ErrInvalidInput)
		held, err := w.e.SessionHeld(w.ctx, w.p, k.session)
		w.no(err)
		same(w, "still held", len(held), 2)
	}},
	{name: "a long reason of a failure is cut at a rune", run: func(w *env) {
		f := w.worker("w1").one(w.create(retries(1))).Fence
		o, err := w.e.FailExecution(w.ctx, f,
			engine.Failure{Category: flowfabric.Category(strings.Repeat("c", 64)), Reason: strings.Repeat("é", 5000)})
		w.no(err)
		same(w, "retry", o.Retry, true)
		w.check()
		same(w, "cut at a rune", w.read(f.Execution).AttemptLog[0].Message, strings.Repeat("é", 512))
	}},
}

// failAsTold fails an attempt, after what a handler is told of that: it must be what follows.
func failAsTold(w *env, c engine.Claim) engine.FailOutcome {
	w.Helper()
	task := newTask(tasks.Config{Claim: &c, Results: w.e})
	pause, again, err := task.RetryIn(w.ctx, handler.Failure{Category: "x"})
	w.no(err)
	out := w.fail(c.Fence, "x")
	w.all("foretold", eq(out.Retry, again), eq(out.RetryIn, pause))
	return out
}
