package conformance

import (
	"errors"
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
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// rounds is how often something random or exhaustive is tried on this server.
func (w *env) rounds(n int) int { return max(1, n/max(1, w.srv.Share)) }

// sleeper is a suspended execution, who held it, and its first waitpoint.
type sleeper struct {
	id    flowfabric.ExecutionID
	fence flowfabric.Fence
	wp    engine.Minted
}

// sleepers creates, claims and suspends n executions; nothing else may be claimable.
func (w *env) sleepers(k *worker, n int, opts ...suspending) (all []sleeper) {
	w.Helper()
	for _, c := range w.takes(k, n) {
		all = append(all, sleeper{c.Fence.Execution, c.Fence, w.stopped(c.Fence, opts...)})
	}
	return all
}

// takes creates and claims n executions; nothing else may be claimable.
func (w *env) takes(k *worker, n int) (all []engine.Claim) {
	w.Helper()
	w.createN(n)
	for len(all) < n {
		claims := k.claim(min(100, n-len(all)))
		if len(claims) == 0 {
			w.Fatalf("claimed %d of %d", len(all), n)
		}
		all = append(all, claims...)
	}
	return all
}

// sleeps is waiting for those who need no worker.
func (w *env) sleeps(opts ...suspending) sleeper {
	w.Helper()
	_, c, m := w.waiting(opts...)
	return sleeper{c.Fence.Execution, c.Fence, m}
}

// claims has an idle worker of its own claim exactly the wanted execution.
func (w *env) claims(id flowfabric.ExecutionID) engine.Claim {
	w.Helper()
	return w.worker("w" + strconv.FormatUint(uint64(uuid.New().ID()), 36)).one(id)
}

// refuses fails unless run is refused with a sentinel and its first details, and leaves the partition as it is.
func (w *env) refuses(what string, want error, details string, run func() error) {
	w.Helper()
	w.unchanged(what, func() {
		w.Helper()
		err := run()
		if !errors.Is(err, want) {
			w.Fatalf("%s: got error %v, want %v", what, err, want)
		}
		coded, _ := errors.AsType[*flowfabric.Error](err)
		if got := strings.Join(coded.Detail, " "); !strings.HasPrefix(got, details) {
			w.Fatalf("%s: got details %q, want %q", what, got, details)
		}
	})
}

// delivering tells a delivery's error only.
func (w *env) delivering(id flowfabric.ExecutionID, m engine.Minted, s suspend.SentSignal) func() error {
	return func() error {
		_, err := w.e.DeliverSignal(w.ctx, id, m.ID, m.Digest, s)
		return err
	}
}

func (w *env) suspending(f flowfabric.Fence, opts ...suspending) func() error {
	return func() error {
		_, err := w.e.SuspendExecution(w.ctx, f, suspension(opts...))
		return err
	}
}

// closing is how a suspension ended: close reason, cause and trigger, and what the next run is told.
func (w *env) closing(id flowfabric.ExecutionID) string {
	w.Helper()
	r := w.record(id)
	if r.ClosedAt.IsZero() {
		return "open"
	}
	return fmt.Sprint(r.CloseReason, " ", r.Cause, " ", r.Trigger, " ", told(r.Result))
}

var signalScenarios = slices.Concat(timeoutScenarios, compositeScenarios, treeScenarios, boundScenarios,
	suspendRepeatScenarios, rotationScenarios, forgeryScenarios, pauseScenarios)

// Timeouts, claims, and what the next run is told.
var timeoutScenarios = []scenario{
	{name: "an automatic resumption tells the handler that the wait timed out", run: func(w *env) {
		w.seed()
		for behaviour, want := range map[string]string{"auto_resume": "timeout:",
			"auto_resume_with_timeout_signal": "timeout: __timeout"} {
			s := w.sleeps(waitFor(conditionOf(names(1, 2, "a", "b")), minted("wp")), within(time.Minute, behaviour),
				awaiting("it"))
			due := w.record(s.id).TimeoutAt
			w.signal(s.id, s.wp, "a", waitwords.EffectAppended)
			w.advance(time.Minute)
			same(w, "suspensions", w.tick().Suspensions, 1)
			same(w, "closed", w.closing(s.id), "timed_out_auto_resume timeout timeout "+want)
			w.all("waitpoint", eq(w.waitpoint(s.id, s.wp).State, "closed"),
				eq(w.waitpoint(s.id, s.wp).CloseReason, "timed_out_auto_resume"))
			c := w.claims(s.id)
			same(w, behaviour, told(c.Resume), want)
			w.all("when and what", eq(c.Resume.TimeoutAt.Equal(due), true), eq(c.Resume.ResumedAt.Before(due), false),
				eq(c.Resume.Closer, ""), eq(c.Resume.Name, "it"))
			w.all("one attempt", eq(c.Type, "resumed"), eq(c.Fence.Attempt, 1))
			for _, g := range c.Resume.Signals {
				w.all("who says so", eq(g.SourceType, "system"), eq(g.Effect, waitwords.EffectTimeout),
					eq(g.Waitpoint, flowfabric.UUID{}))
			}
			w.no(w.complete(c.Fence, "").Err)
		}
	}},
	{name: "an escalated suspension waits for an operator or a signal, without a timeout", run: func(w *env) {
		w.seed()
		ends := map[string]func(s sleeper){
			"resumed signal signal signal: go": func(s sleeper) {
				w.signal(s.id, s.wp, "go",
					waitwords.EffectSatisfied)
			},
			"resumed_by_operator operator operator operator:": func(s sleeper) { w.resume(s.id) },
		}
		for want, end := range ends {
			s := w.sleeps(within(time.Minute, "escalate"), because("waiting_for_approval"))
			w.code(s.id, "S2")
			w.advance(time.Minute)
			same(w, "suspensions", w.tick().Suspensions, 1)
			w.code(s.id, "S5")
			r := w.record(s.id)
			w.all("record", eq(r.Reason, "waiting_for_operator_review"), eq(r.TimeoutAt.IsZero(), true),
				eq(r.ClosedAt.IsZero(), true), eq(r.Behaviour, ""))
			p := w.waitpoint(s.id, s.wp)
			w.all("waitpoint", eq(p.State, "active"), eq(p.ExpiresAt.IsZero(), true))
			d := w.dump()
			_, armed := d.ZSets[":alarms"][ids.UUID(s.id).String()]
			same(w, "armed", armed, false)
			same(w, "needed", d.ZSets[":open:"+kid][ids.UUID(s.id).String()+":"+s.wp.ID.String()], 9999999999999)
			same(w, "history", strings.Contains(w.kinds(s.id), "escalated"), true)
			w.advance(time.Hour)
			same(w, "once", w.tick().Suspensions, 0)
			end(s)
			same(w, "closed", w.closing(s.id), want)
			list, _, err := w.e.ReadSignals(w.ctx, s.id, s.wp.ID, 0)
			w.no(err)
			for _, g := range list {
				same(w, "late", g.LateBy, 0)
			}
			w.no(w.complete(w.claims(s.id).Fence, "").Err)
		}
		// The deadline of the execution still counts.
		_, c := w.holder(deadline(2 * time.Minute))
		w.stopped(c.Fence, within(time.Minute, "escalate"))
		w.advance(time.Minute)
		same(w, "suspensions", w.tick().Suspensions, 1)
		w.advance(time.Minute)
		same(w, "expired", w.tick().Expired, 1)
		w.code(c.Fence.Execution, "T4")
		same(w, "closed", w.closing(c.Fence.Execution), "expired:execution_deadline deadline deadline nothing")
		w.worker("idle").nothing()
	}},
	{name: "a signal after the timeout counts if the tick has not fired the timeout yet", run: func(w *env) {
		w.seed()
		w.stop()
		s := w.sleeps(within(time.Second, "fail"))
		w.pass(1500 * time.Millisecond)
		w.signal(s.id, s.wp, "go", waitwords.EffectSatisfied) // late, but nothing else has ended the wait
		list, _, err := w.e.ReadSignals(w.ctx, s.id, s.wp.ID, 0)
		w.no(err)
		same(w, "late by", list[0].LateBy, flowfabric.Millis(500*time.Millisecond))
		same(w, "a late tick", w.tick().Suspensions, 0)
		w.code(s.id, "R1i")
		w.no(w.complete(w.claims(s.id).Fence, "").Err)
		s = w.sleeps(within(time.Second, "fail"))
		w.pass(time.Second - 1)
		w.pass(time.Millisecond)
		same(w, "suspensions", w.tick().Suspensions, 1)
		w.refuses("a signal after the timeout", denied.NotSignalable, "T2",
			w.delivering(s.id, s.wp, suspend.SentSignal{Name: "go"}))
	}},
	{name: "of a racing timeout and signal, exactly one decides", run: func(w *env) {
		w.seed()
		w.stop()
		k := w.worker("w1")
		k.ttl = time.Hour
		w.quiet = true
		timeouts, signals, rounds := 0, 0, w.rounds(100)
		for round := range rounds {
			batch := w.sleepers(k, 10, within(time.Second, "fail"))
			w.pass(time.Second)
			errs := make([]error, 11)
			var tick engine.TickReply
			together(11, func(i int) {
				if i == 10 {
					tick, errs[i] = w.e.Tick(w.ctx, w.p, ticker, false)
					return
				}
				s := batch[i]
				d, err := w.e.DeliverSignal(w.ctx, s.id, s.wp.ID, s.wp.Digest, suspend.SentSignal{Name: "go"})
				if err == nil && d.Effect != waitwords.EffectSatisfied {
					err = errors.New("effect " + string(d.Effect))
				}
				errs[i] = err
			})
			w.no(errs[10])
			ended := 0
			for i, s := range batch {
				if errs[i] == nil {
					w.all("signalled", eq(w.stateOf(s.id), "R1i"),
						eq(w.closing(s.id), "resumed signal signal signal: go"))
					signals++
					continue
				}
				w.is(errs[i], denied.NotSignalable)
				w.all("timed out", eq(w.stateOf(s.id), "T2"),
					eq(w.closing(s.id), "timed_out_fail timeout timeout nothing"))
				ended++
			}
			same(w, "suspensions", tick.Suspensions, ended)
			timeouts += ended
			w.all("timers and open waitpoints", eq(w.size(w.k.Alarms()), 0), eq(w.size(w.k.Open(kid)), 0))
			for _, c := range k.claim(10) {
				w.no(w.complete(c.Fence, "").Err)
			}
			if round%30 == 0 || round == rounds-1 {
				w.quiet = false
				w.check()
				w.quiet = true
			}
		}
		w.Logf("%d timeouts, %d signals", timeouts, signals)
	}},
	{name: "the timeout of an earlier suspension does not fire on a later one", run: func(w *env) {
		w.seed()
		for what, opts := range map[string][]suspending{"none": nil, "later": {within(time.Hour, "fail")}} {
			k, c, m := w.waiting(within(time.Minute, "fail"))
			id := c.Fence.Execution
			w.signal(id, m, "go", waitwords.EffectSatisfied)
			k.ttl = time.Hour
			c = k.one(id)
			w.suspend(c.Fence, opts...)
			w.advance(time.Minute)
			w.sameBut("the time of the first", func() { same(w, "suspensions", w.tick().Suspensions, 0) }, "root",
				":sessions")
			// Also if an entry of the first had stayed behind: what fires looks at the record.
			before := w.digest("root", ":sessions")
			w.set("ZADD", w.k.Alarms(), strconv.FormatInt(w.now(), 10), ids.UUID(id).String())
			same(w, "suspensions of a stale entry", w.tick().Suspensions, 0)
			if after := w.digest("root", ":sessions"); after != before {
				w.Fatalf("%s: a stale entry:\n%s", what, difference(before, after))
			}
			w.cancel(id)
		}
	}},
	{name: "only the holder can close a waitpoint, and only while it is pending", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		f, id := c.Fence, c.Fence.Execution
		m, other := w.pend(f, "a"), w.pend(f, "b")
		w.signal(id, m, "go", waitwords.EffectBuffered)
		closing := func(f flowfabric.Fence, wp flowfabric.UUID) func() error {
			return func() error { _, err := w.e.CloseWaitpoint(w.ctx, f, wp); return err }
		}
		for what, stranger := range strangers(f) {
			w.refuses("another "+what, denied.StaleLease, "", closing(stranger, m.ID))
		}
		w.refuses("no fence", denied.FenceRequired, "", func() error {
			same(w, "no fence", w.fcall("ff_close_waitpoint", proto, ids.UUID(id).String(), "", "", "", "",
				m.ID.String()).code, "fence_required")
			return denied.New("", "fence_required")
		})
		w.refuses("unknown", denied.NoWaitpoint, "", closing(f, mint.UUID()))
		for _, again := range []bool{false, true} {
			already, err := w.e.CloseWaitpoint(w.ctx, f, m.ID)
			w.no(err)
			w.check()
			same(w, "already", already, again)
		}
		p := w.waitpoint(id, m)
		w.all("closed", eq(p.State, "closed"), eq(p.CloseReason, "proactive_close"), eq(p.ClosedAt.IsZero(), false))
		same(w, "what was buffered is still told", w.logged(id, m), string("go "+waitwords.EffectBuffered))
		w.refuses("a signal", flowfabric.ErrWaitpointClosed,
			"proactive_close "+strconv.FormatInt(p.ClosedAt.UnixMilli(), 10),
			w.delivering(id, m, suspend.SentSignal{Name: "go"}))
		w.refuses("a wait", denied.WaitpointNotPending, "a", w.suspending(f, onPending(m)))
		q, _ := w.suspend(f, onPending(other))
		same(w, "nothing is left to expire", w.size(w.k.Pending()), 0)
		w.refuses("an active one has no holder who could", denied.NotActive, "S1", closing(f, other.ID))
		w.signal(id, other, "go", waitwords.EffectSatisfied)
		c = k.one(id)
		w.refuses("a wait for one that was waited for", denied.WaitpointNotPending, "b",
			w.suspending(c.Fence, onPending(q.Bindings[0].Minted)))
		late := minted("c")
		_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", late, time.Second)
		w.no(err)
		w.advance(time.Second)
		same(w, "expired", w.tick().Waitpoints, 1)
		already, err := w.e.CloseWaitpoint(w.ctx, c.Fence, late.ID)
		w.no(err)
		w.all("an expired one", eq(already, true), eq(w.waitpoint(id, late).State, "expired"),
			eq(w.waitpoint(id, late).CloseReason, "pending_expired"))
		w.complete(c.Fence, "")
		w.refuses("an ended execution", denied.NotActive, "T1", closing(c.Fence, late.ID))
	}},
	{name: "of a racing expiry and activation of a waitpoint, exactly one wins", run: func(w *env) {
		w.seed()
		w.stop()
		k := w.worker("w1")
		k.ttl = time.Hour
		w.quiet = true
		activated, expired, rounds := 0, 0, w.rounds(100)
		for round := range rounds {
			claims := w.takes(k, 10)
			pending := make([]engine.Minted, 10)
			for i, c := range claims {
				pending[i] = minted("wp")
				_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, "", pending[i], time.Second)
				w.no(err)
			}
			errs := make([]error, 12)
			together(12, func(i int) {
				switch i {
				case 10:
					errs[i] = w.do("HINCRBY", string(w.k), "clock_pin", "1000").Error()
				case 11:
					for range 5 {
						_, err := w.e.Tick(w.ctx, w.p, ticker, false)
						errs[i] = errors.Join(errs[i], err)
					}
				default:
					_, errs[i] = w.e.SuspendExecution(w.ctx, claims[i].Fence, suspension(onPending(pending[i])))
				}
			})
			w.no(errors.Join(errs[10], errs[11]))
			for i, c := range claims {
				id := c.Fence.Execution
				p := w.waitpoint(id, pending[i])
				if errs[i] == nil {
					indexed := w.do("ZSCORE", w.k.Pending(), ids.UUID(id).String()+":"+p.ID.String()).Error() == nil
					w.all("activated", eq(w.stateOf(id), "S1"), eq(p.State, "active"), eq(w.closing(id), "open"),
						eq(indexed, false))
					w.signal(id, pending[i], "go", waitwords.EffectSatisfied)
					activated++
					continue
				}
				w.is(errs[i], denied.WaitpointExpired)
				w.all("expired", eq(w.stateOf(id), "A1"), eq(p.State == "pending" || p.State == "expired", true))
				w.no(w.complete(c.Fence, "").Err)
				expired++
			}
			for _, c := range k.claim(10) {
				w.no(w.complete(c.Fence, "").Err)
			}
			if round%30 == 0 || round == rounds-1 {
				w.quiet = false
				w.check()
				w.quiet = true
			}
		}
		w.Logf("%d activated, %d expired", activated, expired)
	}},
	{name: "a resumed execution is claimed in the same attempt under a newer epoch", run: func(w *env) {
		w.seed()
		k, c, m := w.waiting(resumedAfter(time.Second))
		id := c.Fence.Execution
		w.unchanged("the old holder while it waits", func() { w.is(w.complete(c.Fence, "x").Err, denied.NotActive) })
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		w.code(id, "R2c")
		k.nothing()
		w.advance(time.Second)
		w.tick()
		w.code(id, "R1i")
		unable := w.worker("unable")
		unable.can = func(engine.Route) bool { return false }
		unable.nothing()
		again := w.worker("w2").one(id)
		w.all("type, attempt", eq(again.Type, "resumed"), eq(again.Fence.Attempt, 1), eq(w.read(id).Attempts, 1))
		same(w, "newer", again.Fence.Epoch > c.Fence.Epoch, true)
		same(w, "told", told(again.Resume), "signal: go")
		w.unchanged("the old holder", func() { w.is(w.complete(c.Fence, "x").Err, denied.StaleLease) })
		w.refuses("the old holder's wait", denied.StaleLease, "", w.suspending(c.Fence))
		w.no(w.complete(again.Fence, "").Err)
		w.unchanged("after the end", func() { w.is(w.complete(c.Fence, "x").Err, denied.NotActive) })
	}},
	{name: "a suspension records how it ended and what the handler is told", run: func(w *env) {
		w.seed()
		two := waitFor(conditionOf(names(1, 2, "a", "b")), minted("wp"))
		_, c := w.holder()
		w.all("none", eq(told(c.Resume), "nothing"), eq(w.record(c.Fence.Execution).ID, flowfabric.UUID{}),
			eq(told(w.record(c.Fence.Execution).Result), "nothing"))
		w.complete(c.Fence, "")
		ends := []struct {
			want string
			code codes.Code
			run  func(s sleeper)
			opts []suspending
		}{
			{"cancelled cancelled cancelled nothing", "T3", func(s sleeper) { w.cancel(s.id) }, nil},
			{"timed_out_fail timeout timeout nothing", "T2", func(sleeper) { w.advance(time.Minute); w.tick() },
				[]suspending{within(time.Minute, "fail")}},
			{"resumed_by_operator operator operator operator:", "R1i", func(s sleeper) { w.resume(s.id) }, nil},
			{"resumed operator auto_resume operator:", "R1i", func(s sleeper) {
				_, err := w.e.ResumeExecution(trail.As(w.ctx, "policy", ""), s.id, engine.ResumeRequest{Auto: true})
				w.no(err)
			}, nil},
		}
		for _, e := range ends {
			s := w.sleeps(append(e.opts, two)...)
			w.signal(s.id, s.wp, "a", waitwords.EffectAppended) // took part, but did not end it
			w.all("while it waits", eq(w.closing(s.id), "open"), eq(told(w.record(s.id).Result), "nothing"))
			e.run(s)
			w.check()
			w.code(s.id, e.code)
			same(w, "ended", w.closing(s.id), e.want)
			if e.code == "R1i" {
				w.no(w.complete(w.claims(s.id).Fence, "").Err)
			}
		}
		// A later attempt is told the same, because what a wait was answered is as durable as a step.
		_, c = w.holder(retries(1))
		id := c.Fence.Execution
		m := w.stopped(c.Fence, awaiting("it"))
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		w.fail(w.claims(id).Fence, "x")
		w.advance(time.Minute)
		w.tick()
		again := w.claims(id)
		w.all("the next attempt", eq(again.Type, "retry"), eq(told(again.Resume), "signal: go"))
		w.complete(again.Fence, "")
		w.unchanged("malformed and unknown ids", func() {
			same(w, "malformed", w.fcall("ff_read_suspension", proto, "x").code, "invalid_input")
			_, err := w.e.ReadSuspension(w.ctx, mint.ID(w.p))
			w.is(err, flowfabric.ErrNotFound)
		})
		_, err := w.e.PurgeExecution(w.ctx, id, 0)
		w.no(err)
		_, err = w.e.ReadSuspension(w.ctx, id)
		w.is(err, flowfabric.ErrResultPurged)
	}},
	{name: "the answer to a suspension tells how many entries the history has", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		_, first := w.suspend(c.Fence, awaiting("first"))
		w.resume(id)
		_, _, err := w.e.ChangePriority(trail.As(w.ctx, "op", ""), id, 7)
		w.no(err)
		again, err := w.e.SuspendExecution(w.ctx, w.claims(id).Fence, suspension(awaiting("second")))
		w.no(err)
		n, err := w.do("LLEN", w.k.History(ids.UUID(id))).AsInt64()
		w.no(err)
		// its suspension, its resumption and the change
		w.all("entries", eq(first.Events, 0), eq(again.Events, 3), eq(n, 3))
	}},
	{name: "the history records each suspension and resumption with its cause", run: func(w *env) {
		w.seed()
		s := w.sleeps(awaiting("first"), within(time.Hour, "auto_resume"))
		now := w.now()
		pass := func(d time.Duration) {
			w.pass(d)
			now += d.Milliseconds()
		}
		id := s.id
		var want []flowfabric.Event
		seen := func(more ...flowfabric.Event) {
			w.Helper()
			want = append(want, more...)
			events, err := w.e.ReadHistory(w.ctx, id)
			w.no(err)
			var got []flowfabric.Event
			for _, e := range events {
				if slices.Contains([]string{timeline.EventSuspended, timeline.EventResumed,
					timeline.EventPriority}, e.Kind) {
					got = append(got, flowfabric.Event{Kind: e.Kind, Attempt: e.Attempt, Epoch: e.Epoch,
						Session: e.Session, Detail: e.Detail, Reason: e.Reason, By: e.By, Source: e.Source, At: e.At})
				}
			}
			sameList(w, "history", got, want...)
		}
		told := func(kind string, f flowfabric.Fence, detail, reason, by string) flowfabric.Event {
			e := flowfabric.Event{Kind: kind, Attempt: f.Attempt, Epoch: f.Epoch, Session: f.Session, Detail: detail,
				Reason: reason, By: by, At: time.UnixMilli(now).UTC()}
			if kind == "resumed" {
				e.Source, e.By, _ = strings.Cut(by, " ")
			}
			return e
		}
		seen(told("suspended", s.fence, "waiting_for_signal", "first", ""))
		pass(time.Second)
		w.send(id, s.wp, suspend.SentSignal{Name: "go", SourceType: "user", Source: "ann"}, waitwords.EffectSatisfied)
		seen(told("resumed", s.fence, "signal", "go", "user ann"))
		pass(time.Second)
		c := w.claims(id)
		seen() // somebody else holds it now
		_, _, err := w.e.ChangePriority(trail.As(w.ctx, "op", ""), id, 7)
		w.no(err)
		seen(told("priority", c.Fence, "0 7", "", "op"))
		pass(time.Second)
		w.signal(id, w.pend(c.Fence, "early"), "go", waitwords.EffectBuffered) // a wait on it would not suspend
		w.stopped(c.Fence, awaiting("second"), within(time.Second, "escalate"))
		seen(told("suspended", c.Fence, "waiting_for_signal", "second", ""))
		pass(time.Second)
		w.tick()
		w.code(id, "S5")
		seen() // the reason that it had
		w.resume(id)
		seen(told("resumed", c.Fence, "operator", "", "operator op"))
		c = w.claims(id)
		m := w.pend(c.Fence, "early too")
		w.signal(id, m, "go", waitwords.EffectBuffered)
		r, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(onPending(m)))
		w.no(err)
		same(w, "satisfied at once", r.Satisfied, true)
		seen() // it never suspended
		third := w.stopped(c.Fence)
		seen(told("suspended", c.Fence, "waiting_for_signal", "", ""))
		w.signal(id, third, "go", waitwords.EffectSatisfied)
		seen(told("resumed", c.Fence, "signal", "go", "")) // nobody said who sent it
		w.stopped(w.claims(id).Fence)
		w.cancel(id)
		w.replay(id, engine.Replay{Force: true})
		events, err := w.e.ReadHistory(w.ctx, id)
		w.no(err)
		kinds := map[string]int{}
		for _, e := range events {
			kinds[e.Kind]++
		}
		w.all("in all", eq(kinds[timeline.EventSuspended], 4), eq(kinds[timeline.EventResumed], 3))
	}},
}

// size is how many members a sorted set has.
func (w *env) size(key string) int64 {
	w.Helper()
	n, err := w.do("ZCARD", key).AsInt64()
	w.no(err)
	return n
}
