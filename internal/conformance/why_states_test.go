package conformance

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// usualLane changes the usual lane in this partition alone.
func (w *env) usualLane(state flowfabric.LaneState, by string) {
	w.Helper()
	same(w, "lane", w.fcall("ff_set_lane", protoOf(by, ""), "default", "default", string(state), "", "").code, "OK")
}

// maintained moves the clock as if somebody had ticked until a moment ago.
func (w *env) maintained(d time.Duration) {
	w.Helper()
	w.advance(d - time.Second)
	w.settleTime()
	w.advance(time.Second)
}

var whyStateScenarios = []scenario{
	{name: "waiting work in a paused or disabled lane is explained by the lane", run: func(w *env) {
		x := w.state("R1f")
		for _, state := range []flowfabric.LaneState{flowfabric.LanePaused, flowfabric.LaneDisabled,
			flowfabric.LaneDraining} {
			w.usualLane(state, "anna")
			since := strings.Fields(w.hash(w.k.Lanes())["default\x1fdefault"])[2]
			ms, _ := strconv.ParseInt(since, 10, 64)
			e := w.why(x.id)
			if state == flowfabric.LaneDraining { // it hands out, so the lane explains nothing
				w.says(e, explain.WhyWaitingNoWorker)
				w.silent(e, "draining")
				w.worker("w2").one(x.id)
				break
			}
			w.says(e, map[flowfabric.LaneState]string{flowfabric.LanePaused: explain.WhyLanePaused,
				flowfabric.LaneDisabled: explain.WhyLaneDisabled}[state],
				`lane "default" of namespace "default" is `+string(state)+" since "+spoken(ms),
				`last changed by "anna"`, "It has never run.",
				map[flowfabric.LaneState]string{
					flowfabric.LanePaused:   "a worker starts that takes this kind from its lane: no live one does",
					flowfabric.LaneDisabled: "idle workers"}[state])
			w.worker("w1").nothing()
		}
		w.usualLane(flowfabric.LaneActive, "anna")
		y := w.state("R1f")
		w.usualLane(flowfabric.LanePaused, "anna")
		w.says(w.why(y.id), explain.WhyLanePaused)
		w.usualLane(flowfabric.LaneActive, "ben")
		w.says(w.why(y.id), explain.WhyWaitingNoWorker)
		w.worker("w3").one(y.id)
	}},
	{name: "the explanation counts what is ahead in the same queue", run: func(w *env) {
		list := w.createN(3)
		other := w.create(kind("other"), priority(9000))
		ranks := map[int]string{0: "it is the first in its queue", 1: "1 other in its queue is ahead of it",
			2: "2 others in its queue are ahead of it"}
		for _, id := range append(list, other) {
			rank, err := w.do("ZRANK", w.k.Queue(w.core(id)["r"]), ids.UUID(id).String()).AsInt64()
			w.no(err)
			e := w.why(id)
			w.says(e, explain.WhyWaitingNoWorker, ranks[int(rank)])
			w.all("ahead and queued", eq(w.facts(e.ID).Ahead, int(rank)),
				eq(w.facts(e.ID).Queued, map[bool]int{true: 1, false: 3}[id == other]))
		}
	}},
	{name: "the explanation mentions idle instances that the worker registry does not list",
		damaged: "it moves an execution without the tick", run: func(w *env) {
			idle, busy := w.worker("idle"), w.worker("busy")
			w.complete(busy.one(w.create()).Fence, "r") // makes the route known
			idle.nothing()
			x := w.state("R2af")
			w.maintained(time.Hour)
			idle.nothing() // registered for the route, which is empty until the tick
			e := w.why(x.id)
			w.says(e, explain.WhyDelayDue)
			w.quiet = true
			w.editRecord(ids.UUID(x.id), func(f fields) { f["s"] = "R1f" }) // as the tick would, but without the ring
			w.set("ZADD", w.k.Queue(w.core(x.id)["r"]), strconv.FormatInt(w.at(x.id, "ct"), 10),
				ids.UUID(x.id).String())
			w.set("SADD", w.k.Ready(), w.core(x.id)["r"])
			e = w.why(x.id)
			w.says(e, explain.WhyWaitingUnregistered,
				"no live worker is listed that can run it, but 1 idle worker is waiting")
			w.all("waiters", eq(w.facts(e.ID).Waiters, 1), eq(w.facts(e.ID).Subscriptions, 1))
			w.advance(3 * time.Minute) // registrations last so long
			w.says(w.why(x.id), explain.WhyWaitingNoWorker)
		}},
	{name: "the explanation reports damaged indexes", damaged: "it removes index entries", run: func(w *env) {
		x := w.state("R1f")
		w.quiet = true
		w.set("SREM", w.k.Ready(), w.core(x.id)["r"])
		w.says(w.why(x.id), explain.WhyNotOffered)
		w.set("ZREM", w.k.Queue(w.core(x.id)["r"]), ids.UUID(x.id).String())
		w.says(w.why(x.id), explain.WhyNotQueued)
	}},
	{name: "the explanation reports that the tick is overdue", run: func(w *env) {
		x := w.state("R2af")
		w.advance(time.Minute)
		e := w.why(x.id)
		w.says(e, explain.WhyDelayed, "the partition's tick is overdue", "do not fire until a worker with maintenance")
		w.settleTime()
		w.silent(w.why(x.id), "overdue")
		w.advance(time.Hour)
		w.says(w.why(x.id), "delay_due_tick_overdue", "But the partition's tick is overdue",
			`its owner "`+ticker+`" does not come`, spoken(w.at(x.id, "du")))
		w.settleTime()
		w.code(x.id, "R1f")
		y := w.state("R2af")
		w.maintained(time.Hour)
		w.says(w.why(y.id), explain.WhyDelayDue, "a tick comes within about a second")
		w.settleTime()
		w.code(y.id, "R1f")
	}},
	{name: "an active execution is explained with its limits, progress and retries", run: func(w *env) {
		x := w.state("A1", timeout(time.Minute), deadline(time.Hour), retries(2))
		w.no(w.e.UpdateProgress(w.ctx, x.fence, 40, "half way"))
		e := w.why(x.id)
		w.says(e, explain.WhyActive, spoken(w.at(x.id, "ta")), spoken(w.at(x.id, "dl")), `40 %`, `"half way"`,
			"schedules retry 1 of 2")
		same(w, "at", e.At.UnixMilli(), w.at(x.id, "ta"))
		w.fail(x.fence, "io")
		e = w.why(x.id)
		w.says(e, explain.WhyRetryBackoff, `retry 1 of 2, because attempt 1 ended with "io": "because"`)
		due(w, x)
		k := w.worker("w2")
		f := k.one(x.id).Fence
		w.says(w.why(x.id), explain.WhyActive, "attempt 2 (retry)", `Before, attempt 1 ended with "io": "because"`,
			"schedules retry 2 of 2")
		w.no(w.e.UpdateProgress(w.ctx, f, -1, "words"))
		w.says(w.why(x.id), explain.WhyActive, `It said "words"`)
		k.ttl = time.Hour
		w.renew(k, 0)
		w.advance(time.Minute)
		e = w.why(x.id)
		w.says(e, explain.WhyAttemptTimeoutDue+"_tick_overdue", "schedules retry 2 of 2", spoken(w.at(x.id, "ta")))
		w.settleTime()
		w.says(w.why(x.id), explain.WhyRetryBackoff, `attempt 2 ended with "attempt_timeout"`, "retry 2 of 2")
		due(w, x)
		k.one(x.id)
		w.maintained(time.Minute)
		w.says(w.why(x.id), explain.WhyAttemptTimeoutDue, "ends it expired, as no retry is left")
		w.settleTime()
		w.says(w.why(x.id), explain.WhyExpiredAttemptTimeout, "attempt 3 ran longer than the 1m0s", "after 3 attempts")
	}},
	{name: "the work of a lost worker is explained with its reclaims", run: func(w *env) {
		x := w.state("A1", reclaims(1))
		w.says(w.why(x.id), explain.WhyActive)
		w.maintained(ttl)
		w.says(w.why(x.id), explain.WhyLeaseExpired, "reclaim 1 of at most 1", "within about a second")
		w.settleTime()
		k := w.worker("w2")
		k.one(x.id)
		w.says(w.why(x.id), explain.WhyActive, "ends it failed", "reclaimed 1 time")
		_, err := w.e.MarkSessionDead(trail.As(w.ctx, "", "host is gone"), w.p, k.session)
		w.no(err)
		w.says(w.why(x.id), explain.WhyReclaimsExhausted+w.late(), `declared dead because of "host is gone"`,
			"max_reclaims_exceeded")
		w.settleTime()
		w.says(w.why(x.id), explain.WhyFailedReclaimsExhausted, `"lease_expired": "host is gone"`,
			"reclaimed 1 time, which is all")

		w.reset()
		y := w.state("A1")
		_, err = w.e.MarkSessionDead(w.ctx, w.p, y.fence.Session)
		w.no(err)
		w.says(w.why(y.id), explain.WhyHolderDead+w.late(), "was declared dead.", "as reclaim 1 of at most 10")
		w.settleTime()
		w.code(y.id, "R1r")

		w.reset()
		z := w.state("A1", reclaims(1))
		w.maintained(ttl)
		w.settleTime()
		w.worker("w4").one(z.id)
		w.revoke(z.id)
		w.says(w.why(z.id), explain.WhyReclaimsExhausted+w.late(), "revoked", "reclaimed 1 time")
		w.settleTime()
		w.code(z.id, "T2")
	}},
	{name: "the explanation of a final failure says why it was not retried", run: func(w *env) {
		end := func(f engine.Failure, opts ...option) explanation {
			w.Helper()
			x := w.state("A1", opts...)
			for {
				o, err := w.e.FailExecution(w.ctx, x.fence, f)
				w.no(err)
				w.check()
				if !o.Retry {
					return w.why(x.id)
				}
				due(w, x)
				x.fence = w.worker("w" + strconv.FormatUint(uint64(uuid.New().ID()), 36)).one(x.id).Fence
			}
		}
		w.says(end(engine.Failure{Category: "io"}, retries(2)), explain.WhyFailedRetriesExhausted,
			"all 2 retries are used up", "attempt 3 ended")
		w.says(end(engine.Failure{Category: "io"}, retries(1)), explain.WhyFailedRetriesExhausted,
			"its only retry is used up")
		w.says(end(engine.Failure{Category: "io", Permanent: true}, retries(1)), explain.WhyFailedPermanent)
		w.says(end(engine.Failure{Category: "permanent"}, retries(1)), explain.WhyFailedPermanent)
		picky := retry(flowfabric.RetryPolicy{MaxRetries: 2, Categories: []flowfabric.Category{"net", "disk"}})
		w.says(end(engine.Failure{Category: "io"}, picky), explain.WhyFailedNotRetried, `("disk", "net")`)
		w.says(end(engine.Failure{Category: "io"}, retries(0)), explain.WhyFailedNoRetries)
	}},
	{name: "each of the six timeout behaviours of a suspension is explained", run: func(w *env) {
		for behaviour, want := range map[string]struct {
			says  string
			to    codes.Code
			cause string
		}{
			"fail":        {"ends it failed, without a retry", "T2", explain.WhyFailedWaitTimeout},
			"cancel":      {"ends it cancelled", "T3", explain.WhyCancelledWaitTimeout},
			"expire":      {"ends it expired", "T4", explain.WhyExpiredWaitTimeout},
			"auto_resume": {"resumes it without a signal", "R1i", explain.WhyWaitingNoWorker},
			"auto_resume_with_timeout_signal": {`resumes it with the signal "__timeout"`, "R1i",
				explain.WhyWaitingNoWorker},
			"escalate": {"leaves it to an operator", "S5", explain.WhyPausedByOperator},
		} {
			w.reset()
			x := w.state("A1", retries(3))
			w.halt(&x, within(time.Hour, behaviour))
			e := w.why(x.id)
			w.says(e, explain.WhyAwaitingSignal, "If not by "+spoken(w.at(x.id, "tt")), "a tick "+want.says)
			same(w, "at", e.At.UnixMilli(), w.at(x.id, "tt"))
			w.maintained(time.Hour)
			w.says(w.why(x.id), explain.WhySuspensionTimeoutDue, "A tick "+want.says)
			w.settleTime()
			w.says(w.why(x.id), want.cause)
			w.code(x.id, want.to)
		}
	}},
	{name: "the condition of a suspension is explained in words", run: func(w *env) {
		a, b, c := minted("alpha"), minted("beta"), minted("gamma")
		for _, x := range []struct {
			condition string
			points    []engine.Minted
			says      string
		}{
			{operatorOnly, nil, "needs an operator; no signal resumes it."},
			{timeoutOnly, nil, "needs time to pass, or an operator; no signal resumes it."},
			{names(1, 1, ""), []engine.Minted{a}, `needs a signal on waitpoint "alpha".`},
			{names(1, 2, "go", "on"), []engine.Minted{a}, `needs each of the signals "go", "on" on waitpoint "alpha".`},
			{names(1, 1, "go", ""), []engine.Minted{a}, `needs 1 of the signals "go", any on waitpoint "alpha".`},
			{count(2, "w", "", 1, 2, 3), []engine.Minted{a, b, c},
				`needs a signal on 2 of the waitpoints "alpha", "beta", "gamma".`},
			{count(2, "s", "go", 1), []engine.Minted{a}, `needs 2 different signals "go" on the waitpoints "alpha".`},
			{count(3, "c", "", 2, 1), []engine.Minted{a, b},
				`needs signals of 3 different senders on the waitpoints "beta", "alpha".`},
			{conditionOf(names(1, 1, "go"), names(2, 1, "no"), group(1, 1, 2)), []engine.Minted{a, b},
				`needs one of (the signal "go" on waitpoint "alpha"; the signal "no" on waitpoint "beta").`},
			{conditionOf(names(1, 1, "go"), names(2, 1, "no"), names(3, 1, "x"), group(2, 1, 2), group(2, 4, 3)),
				[]engine.Minted{a, b, c},
				`needs all of (all of (the signal "go" on waitpoint "alpha"; the signal "no" on waitpoint "beta"); the signal "x" on waitpoint "gamma").`},
		} {
			w.reset()
			y := w.state("A1")
			for i := range x.points {
				x.points[i] = minted(x.points[i].Key)
			}
			w.suspend(y.fence, waitFor(x.condition, x.points...), within(time.Hour, "fail"))
			e := w.why(y.id)
			w.says(e, explain.WhyAwaitingSignal, x.says)
			if x.points == nil {
				w.silent(e, "client.Signal", "open")
			}
		}
		w.reset()
		y := w.state("A1")
		w.pend(y.fence, "handed")
		points := []engine.Minted{minted("alpha"), minted("beta")}
		w.suspend(y.fence, waitFor(count(2, "w", "", 1, 2), points...), resumedAfter(time.Minute))
		w.signal(y.id, points[1], "go", waitwords.EffectAppended)
		w.says(w.why(y.id), explain.WhyAwaitingSignal, `on 2 of the waitpoints "alpha", "beta" (1 of 2 so far)`,
			`2 waitpoints of it are open ("alpha", "beta"), 1 waitpoint that it does not wait for is open`,
			"It becomes claimable, 1m0s later, once")
		w.signal(y.id, points[0], "go", waitwords.EffectSatisfied)
		w.says(w.why(y.id), explain.WhyResumeDelay, "resumed by a signal", spoken(w.at(y.id, "du")))
		due(w, y)
		w.says(w.why(y.id), explain.WhyWaitingNoWorker, "It was resumed by a signal, and attempt 1 goes on.")
		f := w.worker("w7").one(y.id).Fence
		same(w, "a release before this claim", w.facts(y.id).Released, "")
		w.suspend(f)
		w.resume(y.id)
		w.says(w.why(y.id), explain.WhyWaitingNoWorker, `resumed by operator "op"`)
		f = w.worker("w8").one(y.id).Fence
		w.delay(f, time.Hour)
		due(w, y)
		e := w.why(y.id)
		w.says(e, explain.WhyWaitingNoWorker, `delay that worker "w8" asked for is over`)
		w.silent(e, "resumed")
	}},
	{name: "a passed deadline is explained before any other cause", run: func(w *env) {
		for code := range explanations {
			state, _ := codes.Project(code)
			if state.Terminal() || explanations[code].place != nil {
				continue
			}
			w.reset()
			x := w.state(code, deadline(30*time.Minute))
			e := w.why(x.id)
			cause := explanations[code].cause
			if explanations[code].late {
				cause += w.late()
			}
			w.says(e, cause, spoken(w.at(x.id, "dl")))
			if !explanations[code].late {
				next := "dl"
				if code == "R2r" { // its pause is shorter
					next = "du"
				}
				same(w, "at of "+string(code), e.At.UnixMilli(), w.at(x.id, next))
			}
			if code[0] == 'A' { // its worker renews, or the tick requeues
				w.editRecord(ids.UUID(x.id), func(f fields) { f["dl"] = strconv.FormatInt(w.now()+1, 10) })
				w.set("ZADD", w.k.Alarms(), strconv.FormatInt(w.now(), 10), ids.UUID(x.id).String())
				w.quiet = true
				w.advance(2 * time.Millisecond)
			} else {
				w.maintained(time.Duration(w.at(x.id, "dl")-w.now()+1) * time.Millisecond)
			}
			w.says(w.why(x.id), explain.WhyDeadlineDue+w.late(), "Its deadline passed at "+spoken(w.at(x.id, "dl")),
				"ends it expired")
			if code[0] == 'R' && code[1] == '1' {
				w.worker("w5").nothing()
			}
			w.settleTime()
			w.says(w.why(x.id), explain.WhyExpiredDeadline)
			w.quiet = false
		}
	}},
	{name: "an ended execution is explained with its remaining replays and its retention", run: func(w *env) {
		id := w.create(func(x *engine.NewExecution) {
			x.Policy = flowfabric.Policy{MaxReplays: 1, Retention: valid.RetainAll(time.Minute)}
		})
		k := w.worker("w1")
		w.complete(k.one(id).Fence, "r")
		e := w.why(id)
		w.says(e, explain.WhyCompleted, "replayed 1 time more (admin.Replay), but only if forced, because it succeeded",
			spoken(w.at(id, "en")+60000))
		w.replay(id, engine.Replay{Force: true})
		w.says(w.why(id), explain.WhyWaitingNoWorker, "1st time of at most 1")
		w.complete(k.one(id).Fence, "r")
		w.says(w.why(id), explain.WhyCompleted, "It has been replayed 1 time, which is all its policy allows",
			"after 2 attempts")
		w.advance(time.Minute)
		w.says(w.why(id), explain.WhyCompleted, "its retention is over since")
		w.settleTime()
		w.says(w.why(id), explain.WhyPurged, "It ended completed and was purged")

		never := w.create(func(x *engine.NewExecution) { x.Policy = flowfabric.Policy{MaxReplays: -1} })
		w.cancel(never)
		w.says(w.why(never), explain.WhyCancelled, "Its policy allows no replay")
		// keeps 30 days what it kept 14
		w.must("ff_set_lane", protoOf("anna", ""), "default", "default", "", "2592000", "")
		e = w.why(never)
		w.says(e, explain.WhyCancelled, "to be purged at "+spoken(w.at(never, "en")+14*86400000),
			"moves that to "+spoken(w.at(never, "en")+2592000000))
		w.all("as it is filed", eq(w.facts(e.ID).PurgeAt.UnixMilli(), w.at(never, "en")+14*86400000),
			eq(e.At.UnixMilli(), w.at(never, "en")+2592000000))
		w.must("ff_set_lane", protoOf("anna", ""), "default", "default", "", "60", "")
		w.says(w.why(never), explain.WhyCancelled, "purges it after "+spoken(w.at(never, "en")+14*86400000),
			"the lane keeps less now")
		mine := w.worker("w2")
		held := mine.one(w.create()).Fence
		_, err := w.e.CancelExecution(w.ctx, held.Execution,
			engine.Cancellation{Source: engine.CancelOwner, Fence: &held})
		w.no(err)
		w.says(w.why(held.Execution), explain.WhyCancelled, `its holder ("w2") cancelled it`)
		cascade := w.create()
		_, err = w.e.CancelExecution(w.ctx, cascade, engine.Cancellation{Source: engine.CancelFlow})
		w.no(err)
		w.says(w.why(cascade), explain.WhyCancelled, "its flow was cancelled without a reason.")
		rooted := w.create()
		_, err = w.e.CancelExecution(trail.As(w.ctx, "", "by root"), rooted,
			engine.Cancellation{Source: engine.CancelOperator})
		w.no(err)
		w.says(w.why(rooted), explain.WhyCancelled, `cancelled it, "by root".`)
	}},
	{name: "an execution that is unknown, purged or in a frozen partition is explained", run: func(w *env) {
		nothing := mint.ID(w.p)
		w.says(w.why(nothing), explain.WhyNotFound, "no execution of this id")
		x := w.state("T3")
		_, err := w.e.PurgeExecution(w.ctx, x.id, 48*time.Hour)
		w.no(err)
		e := w.why(x.id)
		stone, err := w.do("GET", w.k.Tombstone(ids.UUID(x.id))).ToString()
		w.no(err)
		ms, _ := strconv.ParseInt(strings.Fields(stone)[1], 10, 64)
		w.says(e, explain.WhyPurged, "It ended cancelled and was purged", spoken(ms))
		w.all("what is left", eq(e.Code, "T3"), eq(e.State, "cancelled"), eq(e.At.UnixMilli(), ms))
		w.advance(48 * time.Hour)
		w.says(w.why(x.id), explain.WhyNotFound)

		y := w.state("R1f")
		w.no(w.e.FreezePartition(trail.As(w.ctx, "", "moving slot 7"), w.p))
		w.says(w.why(y.id), explain.WhyPartitionFrozen, `frozen because of "moving slot 7"`,
			"not even whether there is one", "thaws", "flowfabric thaw")
		w.says(w.why(mint.ID(w.p)), explain.WhyPartitionFrozen, "not even whether there is one")
		w.no(w.e.ThawPartition(w.ctx, w.p))
		w.says(w.why(y.id), explain.WhyWaitingNoWorker)
		w.no(w.e.FreezePartition(w.ctx, w.p))
		w.says(w.why(y.id), explain.WhyPartitionFrozen, "is frozen, and calls")
		w.no(w.e.ThawPartition(w.ctx, w.p))
		w.set("DEL", string(w.k)) // the next call boots it again
		e, err = w.explain(y.id)
		w.no(err)
		w.says(e, explain.WhyWaitingNoWorker)
		w.reset()
		// 1970 is a time like any other
		old := w.create(func(x *engine.NewExecution) { x.DeadlineAt = time.UnixMilli(-5) })
		e, err = w.explain(old)
		w.no(err)
		w.says(e, explain.WhyDeadlineDue+w.late(), "Its deadline passed at 1970-01-01T00:00:00.000Z")
		w.settleTime()
		w.code(old, "T4n")
		_, err = w.explain(mint.ID(partitions))
		w.is(err, flowfabric.ErrInvalidInput)
	}},
	{name: "random states are always explained", run: func(w *env) {
		seed := uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano()))
		ops := int(number("FLOWFABRIC_SOAK", 1500)) / max(1, w.srv.Share)
		f := &fuzzer{env: w, r: rand.New(rand.NewPCG(seed, 2)), seed: seed, states: map[string]int{},
			answers: map[string]int{}}
		seen, ticks := map[string]int{}, 0
		for i := range ops {
			if i%250 == 0 {
				f.begin()
			}
			f.step()
			if len(f.ids) == 0 {
				continue
			}
			id := f.ids[f.r.IntN(len(f.ids))]
			e, err := w.explain(id)
			if err != nil || unexplained(e.Explanation, id) != "" || !plausible(e) {
				w.Fatalf("seed %d: %s: %v, %s: %s\nlast calls:\n%s", seed, id, err, unexplained(e.Explanation, id),
					e, f.tail())
			}
			seen[e.Reason]++
			if to := foretold[strings.TrimSuffix(e.Reason, "_tick_overdue")]; to != nil &&
				f.r.IntN(3) == 0 && f.takeOver() {
				ticks++
				next, err := w.explain(id)
				if err != nil || !slices.Contains(to, next.Code) && !slices.Contains(foretold[explain.WhyDeadlineDue],
					next.Code) {
					w.Fatalf("seed %d: %s: %v: a tick did not do what was foretold:\n%s\n%s\nlast calls:\n%s", seed, id,
						err, e, next, f.tail())
				}
			}
		}
		w.Logf("seed %d: %v", seed, seen)
		if ops >= 1500 && (len(seen) < 15 || ticks == 0) {
			w.Errorf("only %d reasons, and %d that a tick moved: %v", len(seen), ticks, seen)
		}
	}},
}

// foretold is where an execution is after a tick, by the reason that waits for one.
var foretold = map[string][]codes.Code{
	explain.WhyDelayDue: {"R1f", "R1i", "R1t", "R1r"}, explain.WhyAttemptTimeoutDue: {"R2b", "R1t", "T4", "R1r", "R2r"},
	explain.WhyLeaseExpired: {"R1r", "R2r"}, explain.WhyHolderDead: {"R1r", "R2r"}, explain.WhyRevoked: {"R1r"},
	explain.WhyReclaimsExhausted: {"T2"}, explain.WhySuspensionTimeoutDue: {"T2", "T3", "T4", "R1i", "S5"},
	explain.WhyDeadlineDue: {"T4", "T4n"},
}

// takeOver ticks until nothing due is left; false when the tick belongs to somebody else.
func (f *fuzzer) takeOver() bool {
	f.Helper()
	if owner := f.root()["owner"]; owner != "" && owner != ticker {
		return false
	}
	f.settleTime()
	f.log = append(f.log, "ticks until nothing is due")
	f.last = f.fingerprint()
	f.text = f.digest()
	return true
}

// plausible tells whether the reason can be one of the state's.
func plausible(e explanation) bool {
	reason := string(strings.TrimSuffix(string(e.Reason), "_tick_overdue"))
	if e.Code == "" {
		return reason == explain.WhyNotFound
	}
	if reason == explain.WhyDeadlineDue {
		return !e.State.Terminal() && !e.At.IsZero()
	}
	families := map[string][]string{
		"R1": {explain.WhyWaitingNext, explain.WhyWaitingBehind, explain.WhyWaitingNoWorker,
			explain.WhyWaitingNoCapability, explain.WhyWaitingUnregistered, explain.WhyLanePaused,
			explain.WhyLaneDisabled, explain.WhyWaitingAmount, explain.WhyWaitingRate, explain.WhyWaitingSlot,
			explain.WhyNoGate,
			explain.WhyNoGate, explain.WhyUnavailable, explain.WhyCheckDue},
		"R4": {explain.WhyExecutionHeld}, "G1": {explain.WhyGranted, explain.WhyGrantDue},
		"R2": {explain.WhyDelayed, explain.WhyDebounced, explain.WhyDelayedByWorker, explain.WhyWaitingTurn,
			explain.WhyRetryBackoff,
			explain.WhyReclaimBackoff, explain.WhyResumeDelay, explain.WhyDelayDue},
		"R3": {explain.WhyFlowStaging, explain.WhyAwaitingOthers, explain.WhyAwaitingReplay, explain.WhyAwaitingKids,
			explain.WhyAwaitingBacklog, explain.WhyFlowCancelled, explain.WhyLanePaused},
		"A1": {explain.WhyActive, explain.WhyAttemptTimeoutDue},
		"A2": {explain.WhyLeaseExpired, explain.WhyHolderDead, explain.WhyReclaimsExhausted},
		"A3": {explain.WhyRevoked, explain.WhyReclaimsExhausted},
		"T1": {explain.WhyCompleted}, "T3": {explain.WhyCancelled, explain.WhyCancelledWaitTimeout},
		"T2": {explain.WhyFailedNoRetries, explain.WhyFailedRetriesExhausted, explain.WhyFailedNotRetried,
			explain.WhyFailedPermanent, explain.WhyFailedReclaimsExhausted, explain.WhyFailedWaitTimeout},
		"T4": {explain.WhyExpiredDeadline, explain.WhyExpiredAttemptTimeout, explain.WhyExpiredWaitTimeout},
	}
	if reason == explain.WhyPurged {
		return true
	}
	if e.Code[0] == 'S' {
		return reason == explanations[e.Code].cause || reason == explain.WhySuspensionTimeoutDue
	}
	return slices.Contains(families[string(e.Code[:2])], reason)
}
