package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// listed tells of every step that is known of an execution: kind, name, attempt, duration and bytes, and how one
// failed.
func (w *env) listed(id flowfabric.ExecutionID) []string {
	w.Helper()
	list, err := w.e.Steps(w.ctx, id)
	w.no(err)
	var out []string
	for i, s := range list {
		if s.EndedAt.IsZero() || i > 0 && s.EndedAt.Before(list[i-1].EndedAt) {
			w.Errorf("%s ended at %s, behind what ended later", s.Name, s.EndedAt)
		}
		text := fmt.Sprintf("%s %s %d %s %d", s.Kind, s.Name, s.Attempt, s.EndedAt.Sub(s.StartedAt), s.Bytes)
		if s.State == "failed" {
			text += " failed: " + s.Error
		}
		out = append(out, text)
	}
	return out
}

func (w *env) lists(what string, id flowfabric.ExecutionID, want ...string) {
	w.Helper()
	w.check()
	sameList(w, what, w.listed(id), want...)
}

// logOfSteps is what is told of each step beside its value.
func (w *env) logOfSteps(id flowfabric.ExecutionID) map[string]string {
	return w.dump().Hashes[":kl:"+ids.UUID(id).String()]
}

// What people are told of the durable steps of an execution.
var stepScenarios = []scenario{
	{name: "a recorded step is listed with its attempt, its times and its size, and its value can be read",
		run: func(w *env) {
			id := w.create(retries(3))
			f := w.worker("w1").one(id).Fence
			w.lists("at first", id)
			begin := w.now()
			already, err := w.e.RecordStep(w.ctx, f, "charge", []byte("12 €"), 1500*time.Millisecond)
			w.no(err)
			same(w, "already", already, false)
			w.advance(time.Second)
			_, err = w.e.RecordStep(w.ctx, f, "empty", nil, 0)
			w.no(err)
			want := []string{"step charge 1 1.5s 6", "step empty 1 0s 0"}
			w.lists("recorded", id, want...)
			list, err := w.e.Steps(w.ctx, id)
			w.no(err)
			if at := list[0].EndedAt.UnixMilli(); at < begin || at > w.now()-1000 {
				w.Errorf("recorded at %d, between %d and %d", at, begin, w.now()-1000)
			}
			w.unchanged("a repeat after a lost reply", func() {
				already, err := w.e.RecordStep(w.ctx, f, "charge", []byte("12 €"), time.Hour)
				w.no(err)
				same(w, "already", already, true)
			})
			w.fail(f, "x")
			w.advance(5 * time.Second)
			w.settleTime()
			c := w.worker("w2").one(id)
			w.all("a claim brings the values alone", eq(len(c.Steps), 2), eq(string(c.Steps["charge"]), "12 €"))
			_, err = w.e.RecordStep(w.ctx, c.Fence, "ship", []byte("x"), 7*time.Millisecond)
			w.no(err)
			w.lists("of the next attempt", id, append(want, "step ship 2 7ms 1")...)
			value, ok, err := w.e.StepValue(w.ctx, id, "charge")
			w.no(err)
			w.all("value", eq(string(value), "12 €"), eq(ok, true))
			value, ok, err = w.e.StepValue(w.ctx, id, "empty")
			w.no(err)
			w.all("empty value", eq(len(value), 0), eq(ok, true))
			_, ok, err = w.e.StepValue(w.ctx, id, "chargé")
			w.no(err)
			same(w, "no such step", ok, false)
			for _, bad := range []string{"", engine.StepAwait + "it", engine.StepWaitpoint + "it",
				strings.Repeat("x", 129)} {
				_, _, err = w.e.StepValue(w.ctx, id, bad)
				w.is(err, flowfabric.ErrInvalidInput)
			}
			for _, bad := range []string{"", "\x1fa:it", strings.Repeat("x", 129)} {
				_, _, err = w.e.Waitpoint(w.ctx, id, bad)
				w.is(err, flowfabric.ErrInvalidInput)
			}
			same(w, "a step of the library", w.fcall("ff_read_steps", proto, ids.UUID(id).String(),
				engine.StepAwait+"it").code, "invalid_input")
		}},
	{name: "a step that a failure names must have a name of its own", run: func(w *env) {
		f := w.worker("w1").one(w.create(retries(1))).Fence
		args := append([]string{proto}, fenceArgs(f)...)
		for _, name := range []string{"\x1fa:it", strings.Repeat("x", 129)} {
			w.unchanged(name, func() {
				same(w, "a failed step", w.fcall("ff_fail_execution",
					append(slices.Clone(args), "c", "r", "0", "", name, "0")...).code, "invalid_input")
			})
		}
	}},
	{name: "a step that an attempt failed in is listed as failed, beside what a later attempt recorded",
		run: func(w *env) {
			id := w.create(retries(2))
			k := w.worker("w1")
			f := k.one(id).Fence
			failure := engine.Failure{Category: "io", Reason: "step ship: no truck", Step: "ship",
				StepTook: 20 * time.Millisecond}
			o, err := w.e.FailExecution(w.ctx, f, failure)
			w.no(err)
			same(w, "retry", o.Retry, true)
			w.lists("failed", id, "step ship 1 20ms 0 failed: step ship: no truck")
			w.unchanged("a repeat after a lost reply", func() {
				_, err := w.e.FailExecution(w.ctx, f, failure)
				w.no(err)
			})
			same(w, "not recorded", w.read(id).Steps, 0)
			_, ok, err := w.e.StepValue(w.ctx, id, "ship")
			w.no(err)
			same(w, "value", ok, false)
			w.advance(5 * time.Second)
			w.settleTime()
			w.fail(k.one(id).Fence, "io") // in no step
			w.advance(5 * time.Second)
			w.settleTime()
			f = k.one(id).Fence
			_, err = w.e.RecordStep(w.ctx, f, "ship", []byte("ok"), 0)
			w.no(err)
			failure.Step, failure.Reason = "two words, and more", ""
			_, err = w.e.FailExecution(w.ctx, f, failure)
			w.no(err)
			w.code(id, "T2")
			w.lists("for good", id, "step ship 1 20ms 0 failed: step ship: no truck", "step ship 3 0s 2",
				"step two words, and more 3 20ms 0 failed: ")
		}},
	{name: "answers, waitpoints and outcomes of children are listed by their kind", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		m, gone := minted("draft"), minted("gone")
		_, err := w.openNamed(c.Fence, m, time.Hour)
		w.no(err)
		_, err = w.openNamed(c.Fence, gone, time.Hour)
		w.no(err)
		same(w, "opened", len(w.listed(id)), 2)
		_, err = w.e.CloseWaitpoint(w.ctx, c.Fence, gone.ID)
		w.no(err)
		value := w.dump().Hashes[":k:"+ids.UUID(id).String()][engine.StepWaitpoint+"draft"]
		draft := fmt.Sprint("waitpoint draft 1 0s ", len(value))
		closed := fmt.Sprint("waitpoint gone 1 0s ",
			len(value)-len(" 1795572156615")-len("draft")+len(" 0")+len("gone"))
		w.lists("closed", id, draft, closed)
		p := w.stopped(c.Fence, awaiting("first"))
		w.lists("while it waits", id, draft, closed)
		w.advance(time.Minute)
		w.signal(id, p, "go", waitwords.EffectSatisfied)
		before := w.listed(id)
		w.all("answered", eq(len(before), 3), eq(strings.HasPrefix(before[2], "wait first 1 1m"), true))
		w.again(id, awaiting("second"))
		after := w.listed(id)
		w.all("the next one", eq(len(after), 4), eq(after[2], before[2]),
			eq(strings.HasPrefix(after[3], "wait second 1 "), true))
		same(w, "recorded", len(w.logOfSteps(id)), 3)
		w.again(id, awaiting("second"))
		same(w, "the same name again", len(w.listed(id)), 4)
		w.check()
		w.reset()
		parent := w.family()
		parent.wait(engine.WaitAll, false, "a")
		parent.complete(parent.w.claim(1)[0], "r")
		parent.wait(engine.WaitAll, true, "a")
		list := w.listed(parent.parent)
		w.all("children", eq(len(list), 2), eq(strings.HasPrefix(list[0], "children wait 1 0s "), true),
			eq(strings.HasPrefix(list[1], "wait wait 1 "), true))
	}},
	{name: "a replay that drops the steps drops what was told of them, and one that keeps them what it cannot use",
		run: func(w *env) {
			w.seed()
			id := w.create(retries(1))
			k := w.worker("w1")
			_, err := w.e.FailExecution(w.ctx, k.one(id).Fence,
				engine.Failure{Category: "io", Reason: "why", Step: "a"})
			w.no(err)
			w.advance(5 * time.Second)
			w.settleTime()
			f := k.one(id).Fence
			_, err = w.e.RecordStep(w.ctx, f, "a", []byte("v"), 0)
			w.no(err)
			_, err = w.openNamed(f, minted("draft"), time.Hour)
			w.no(err)
			w.no(w.complete(f, "").Err)
			w.replay(id, engine.Replay{Force: true})
			kept := []string{"step a 1 0s 0 failed: why", "step a 2 0s 1"}
			w.lists("kept", id, kept...)
			f = k.one(id).Fence
			_, err = w.e.FailExecution(w.ctx, f,
				engine.Failure{Category: "io", Reason: "again", Step: "b", Permanent: true})
			w.no(err)
			w.lists("failed again", id, append(kept, "step b 3 0s 0 failed: again")...)
			w.replay(id, engine.Replay{DropSteps: true})
			w.lists("dropped", id)
			same(w, "log", len(w.logOfSteps(id)), 0)
			f = k.one(id).Fence
			_, err = w.e.FailExecution(w.ctx, f,
				engine.Failure{Category: "io", Reason: "anew", Step: "a", Permanent: true})
			w.no(err)
			w.lists("of the run after it", id, "step a 4 0s 0 failed: anew")
		}},
	{name: "a purge removes what was told of steps, and an audit what nobody owns", run: func(w *env) {
		id := w.create()
		f := w.worker("w1").one(id).Fence
		_, err := w.e.RecordStep(w.ctx, f, "s", nil, 0)
		w.no(err)
		w.no(w.complete(f, "").Err)
		w.set("HSET", w.k.StepLog(ids.UUID(w.item().ID)), "s", "0 1 0")
		same(w, "repaired", w.audit(true).Repaired, 1)
		w.check()
		_, err = w.e.PurgeExecution(w.ctx, id, 24*time.Hour)
		w.no(err)
		w.check()
		same(w, "log", len(w.logOfSteps(id)), 0)
		_, err = w.e.Steps(w.ctx, id)
		w.is(err, flowfabric.ErrResultPurged)
		_, err = w.e.Steps(w.ctx, w.item().ID)
		w.is(err, flowfabric.ErrNotFound)
	}},
}

// stepping records a step after the other, all in the same millisecond.
func (w *env) stepping(f flowfabric.Fence, names ...string) {
	w.Helper()
	for _, name := range names {
		_, err := w.e.RecordStep(w.ctx, f, name, []byte(name), 0)
		w.no(err)
	}
}

// stepNames lists what the next claim brings, sorted, the library's own with a colon for the unit separator.
func stepNames(c engine.Claim) string {
	return strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(c.Steps)), " "), "\x1f", ":")
}

// replayed replays and claims.
func (w *env) replayed(k *worker, id flowfabric.ExecutionID, from string) engine.Claim {
	w.Helper()
	already, err := w.e.ReplayExecution(w.ctx, id, engine.Replay{FromStep: from, Force: true})
	w.no(err)
	w.check()
	same(w, "already", already, false)
	return k.one(id)
}

// Replays that forget a part of what was recorded.
var replayScenarios = []scenario{
	{name: "a replay from a step forgets it and what was recorded after it, in the order of recording",
		run: func(w *env) {
			k, c := w.holder()
			id := c.Fence.Execution
			w.stepping(c.Fence, "z", "a", "m", "b")
			w.delay(c.Fence, time.Second)
			w.advance(2 * time.Second)
			w.settleTime()
			c = k.one(id)
			w.stepping(c.Fence, "c")
			w.no(w.complete(c.Fence, "r").Err)
			w.unchanged("a name that nobody recorded", func() {
				for _, name := range []string{"none", "zz"} {
					_, err := w.e.ReplayExecution(w.ctx, id, engine.Replay{FromStep: name, Force: true})
					w.is(err, denied.NoStep)
				}
			})
			w.unchanged("no name of a step", func() {
				for _, name := range []string{"\x1fa:x", strings.Repeat("n", 129)} {
					_, err := w.e.ReplayExecution(w.ctx, id, engine.Replay{FromStep: name, Force: true})
					w.is(err, flowfabric.ErrInvalidInput)
				}
			})
			c = w.replayed(k, id, "m")
			same(w, "kept", stepNames(c), "a z")
			w.stepping(c.Fence, "m", "n")
			w.no(w.complete(c.Fence, "r").Err)
			c = w.replayed(k, id, "n")
			same(w, "what was recorded anew comes last", stepNames(c), "a m z")
			w.no(w.complete(c.Fence, "r").Err)
			c = w.replayed(k, id, "z")
			w.all("from the first", eq(stepNames(c), ""), eq(len(w.logOfSteps(id)), 0))
			w.stepping(c.Fence, "z")
			w.no(w.complete(c.Fence, "r").Err)
			c = w.replayed(k, id, "z")
			same(w, "once more", stepNames(c), "")
		}},
	{name: "a replay from a step keeps the answers of waits before it and forgets those behind", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		w.stepping(c.Fence, "one")
		m := w.stopped(c.Fence, awaiting("first"))
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		c = k.one(id)
		w.stepping(c.Fence, "two")
		m = w.stopped(c.Fence, awaiting("second"), waitFor(conditionOf(names(1, 1, "go")), minted("other")))
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		c = k.one(id)
		w.no(w.complete(c.Fence, "r").Err)
		c = w.replayed(k, id, "two")
		w.all("the first answer is kept", eq(stepNames(c), ":a:first one"), eq(told(c.Resume), "nothing"))
		w.stepping(c.Fence, "two")
		m = w.stopped(c.Fence, awaiting("second"), waitFor(conditionOf(names(1, 1, "go")), minted("third")))
		w.signal(id, m, "go", waitwords.EffectSatisfied)
		c = k.one(id)
		w.stepping(c.Fence, "three")
		w.no(w.complete(c.Fence, "r").Err)
		c = w.replayed(k, id, "three")
		w.all("both", eq(stepNames(c), ":a:first one two"), eq(told(c.Resume), "signal: go"))
		w.no(w.complete(c.Fence, "r").Err)
		c = w.replayed(k, id, "one")
		w.all("none", eq(stepNames(c), ""), eq(told(c.Resume), "nothing"))
	}},
	{name: "after a wait whose time was over a replay asks again: what handed out the dead link is forgotten",
		run: func(w *env) {
			w.seed()
			_, c := w.holder()
			id := c.Fence.Execution
			pend := func(key string) engine.Minted {
				m := minted(key)
				_, err := w.e.CreatePendingWaitpoint(w.ctx, c.Fence, key, m, time.Hour)
				w.no(err)
				return m
			}
			w.stepping(c.Fence, "charge")
			early := pend("early")
			w.stepping(c.Fence, "tell")
			w.signal(id, early, "go", waitwords.EffectBuffered)
			q := suspension(awaiting("early"), onPending(early))
			s, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
			w.no(err)
			same(w, "satisfied", s.Satisfied, true)
			link := pend("link")
			w.stepping(c.Fence, "mail", "log")
			w.suspend(c.Fence, awaiting("link"), onPending(link), within(time.Minute, "fail"))
			w.advance(2 * time.Minute)
			w.settleTime()
			w.code(id, "T2")
			k := w.worker("later")
			c = w.replayed(k, id, "")
			same(w, "kept", stepNames(c), ":a:early charge tell")
			again := pend("link")
			w.stepping(c.Fence, "mail", "log")
			w.suspend(c.Fence, awaiting("link"), onPending(again), within(time.Minute, "fail"))
			w.refuses("the old link", flowfabric.ErrWaitpointClosed, "",
				w.delivering(id, link, suspend.SentSignal{Name: "go"}))
			w.signal(id, again, "go", waitwords.EffectSatisfied)
			c = k.one(id)
			w.no(w.complete(c.Fence, "r").Err)
			c = w.replayed(k, id, "")
			w.all("an answered wait asks nobody again", eq(stepNames(c), ":a:early charge log mail tell"),
				eq(told(c.Resume), "signal: go"))
		}},
}
