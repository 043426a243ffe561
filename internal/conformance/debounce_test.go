package conformance

import (
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// bouncing gives an execution a key that debounces: it is delayed by d, and put off by most in all.
func bouncing(name string, d, most time.Duration) option {
	return func(x *engine.NewExecution) {
		_, x.KeyID = ids.Debounced(1, x.Namespace, x.Kind, name)
		x.Delay = flowfabric.Millis(d)
		x.Key = &flowfabric.Key{Text: name, Debounce: max(d, time.Millisecond), DebounceMax: most}
	}
}

func input(text string) option { return payload([]byte(text)) }

// replaces submits under a key that debounces, and wants the answer that it replaced the input of an execution.
func (w *env) replaces(id flowfabric.ExecutionID, state flowfabric.PublicState, opts ...option) {
	w.Helper()
	c := w.creating(opts...)
	w.no(c.Err)
	w.all("answer", eq(c.ID, id), eq(c.Duplicate, true), eq(c.Replaced, true), eq(c.State, state))
}

// inputOf is what the handler of an execution would be given.
func (w *env) inputOf(id flowfabric.ExecutionID) string {
	w.Helper()
	raw, _, err := w.e.ReadInput(w.ctx, id)
	w.no(err)
	return string(raw)
}

// dueIn is how long an execution is still delayed.
func (w *env) dueIn(id flowfabric.ExecutionID) time.Duration {
	w.Helper()
	return time.Duration(w.at(id, "du")-w.now()) * time.Millisecond
}

// about compares a time that passes.
func (w *env) about(what string, got, want time.Duration) {
	w.Helper()
	if got > want || got < want-time.Minute {
		w.Fatalf("%s is %s, want about %s", what, got, want)
	}
}

var debounceScenarios = []scenario{
	{name: "a submit that does not debounce meets such a key until it was claimed", run: func(w *env) {
		id := w.create(bouncing("k", time.Second, 0))
		plain := func(x *engine.NewExecution) {
			bouncing("k", 0, 0)(x)
			x.Key = &flowfabric.Key{Text: "k", WhileActive: true, Window: time.Hour}
		}
		w.meets("open", id, flowfabric.Delayed, plain)
		w.advance(2 * time.Second)
		w.settleTime()
		w.worker("w1").one(id)
		c := w.creating(plain)
		w.no(c.Err)
		same(w, "duplicate", c.Duplicate, false)
	}},
	{name: "an execution that continues is not what a submit under its key changes", run: func(w *env) {
		k := w.worker("w1")
		id := w.create(bouncing("k", time.Second, 0), input("one"))
		w.advance(2 * time.Second)
		w.settleTime()
		_, err := w.e.ContinueExecution(w.ctx, k.one(id).Fence, []byte("two"))
		w.no(err)
		w.code(id, "R1f")
		other := w.create(bouncing("k", time.Second, 0), input("three"))
		w.all("input", eq(w.inputOf(id), "two"), eq(w.inputOf(other), "three"))
		w.code(other, "R2af")
		w.check()
	}},
	{name: "of submits under a key the latest input runs, once none has come for the delay", run: func(w *env) {
		id := w.create(bouncing("k", time.Hour, 0), input("one"))
		w.about("the first", w.dueIn(id), time.Hour)
		w.advance(50 * time.Minute)
		w.replaces(id, flowfabric.Delayed, bouncing("k", time.Hour, 0), input("two"))
		w.about("put off", w.dueIn(id), time.Hour)
		w.advance(50 * time.Minute)
		w.settleTime()
		w.code(id, "R2af")
		w.replaces(id, flowfabric.Delayed, bouncing("k", 2*time.Hour, 0), input("three"))
		w.about("by the delay of the last", w.dueIn(id), 2*time.Hour)
		s := w.read(id)
		w.says(w.why(id), explain.WhyDebounced, "its input is that of the last of 3 submits", "makes it claimable")
		w.all("snapshot", eq(s.KeyHeld, "until_claimed"), eq(s.Replaced, 2), eq(s.InputBytes, 5))
		w.advance(2*time.Hour + time.Second)
		w.settleTime()
		c := w.worker("a").one(id)
		same(w, "input", string(c.Input), "three")
		w.complete(c.Fence, "r")
		same(w, "no other", len(w.worker("b").claim(1)), 0)
		w.audited()
	}},
	{name: "what was claimed is not changed any more, and the next submit makes another execution", run: func(w *env) {
		for name, then := range map[string]func(k *worker, f flowfabric.Fence){
			"A1":   func(*worker, flowfabric.Fence) {},
			"R1i":  func(_ *worker, f flowfabric.Fence) { w.release(f) },
			"R2ai": func(_ *worker, f flowfabric.Fence) { w.delay(f, time.Hour) },
			"R2b":  func(_ *worker, f flowfabric.Fence) { w.fail(f, "c") },
			"T1":   func(_ *worker, f flowfabric.Fence) { w.complete(f, "r") },
			"T3":   func(_ *worker, f flowfabric.Fence) { w.cancel(f.Execution) },
			"R1p": func(_ *worker, f flowfabric.Fence) {
				w.cancel(f.Execution)
				w.replay(f.Execution, engine.Replay{})
			},
		} {
			pause := retry(flowfabric.RetryPolicy{MaxRetries: 1, Initial: time.Hour, Max: time.Hour})
			id := w.create(bouncing("k"+name, time.Millisecond, 0), pause, input("one"))
			w.advance(time.Second)
			w.settleTime()
			k := w.worker("w" + name)
			then(k, k.one(id).Fence)
			w.code(id, codes.Code(name))
			before := w.core(id)
			next := w.create(bouncing("k"+name, time.Hour, 0), input("next"))
			sameDeep(w, name+" is as it was", w.core(id), before)
			w.replaces(next, flowfabric.Delayed, bouncing("k"+name, time.Hour, 0), input("more"))
			w.all("input", eq(w.inputOf(next), "more"), eq(w.inputOf(id), "one"))
			w.cancel(next)
			w.cancelIf(id)
		}
		w.audited()
	}},
	{name: "one that is due and in its queue is replaced and delayed again", run: func(w *env) {
		id := w.create(bouncing("k", time.Minute, 0), input("one"), lane("l"))
		w.advance(2 * time.Minute)
		w.settleTime()
		w.code(id, "R1f")
		w.replaces(id, flowfabric.Delayed, bouncing("k", time.Minute, 0), input("two"), lane("l"))
		w.code(id, "R2af")
		same(w, "nothing to claim", len(w.worker("a").claim(1)), 0)
		w.advance(2 * time.Minute)
		w.settleTime()
		same(w, "input", string(w.worker("b").one(id).Input), "two")
	}},
	{name: "a bound of the wait is kept from the creation on, and at it the latest input is ready at once",
		run: func(w *env) {
			id := w.create(bouncing("k", time.Hour, 3*time.Hour), input("1"))
			for i, left := range []time.Duration{time.Hour, time.Hour, time.Hour, 20 * time.Minute} {
				if i > 0 {
					w.advance(53*time.Minute + 20*time.Second)
					w.replaces(id, flowfabric.Delayed, bouncing("k", time.Hour, 3*time.Hour), input("more"))
				}
				w.about("due", w.dueIn(id), left)
			}
			w.replaces(id, flowfabric.Delayed, bouncing("k", time.Hour, 0), input("without a bound"))
			w.about("each submit has its own", w.dueIn(id), time.Hour)
			w.advance(30 * time.Minute)
			w.replaces(id, flowfabric.Waiting, bouncing("k", time.Hour, 3*time.Hour), input("last"))
			w.code(id, "R1f")
			w.replaces(id, flowfabric.Waiting, bouncing("k", time.Hour, 3*time.Hour), input("very last"))
			same(w, "input", string(w.worker("a").one(id).Input), "very last")
		}},
	{name: "everything that the submit says is replaced: small and large inputs, tags, lane, priority, policy, deadline, creator", run: func(w *env) {
		large := strings.Repeat("x", 5000)
		full := []option{input(large), tags(map[string]string{"a.b": "1"}), lane("other"), priority(7),
			deadline(5 * time.Hour), timeout(time.Minute), kept(time.Hour),
			retry(flowfabric.RetryPolicy{MaxRetries: 1, Max: time.Second, Multiplier: 2,
				Categories: []flowfabric.Category{"c"}}),
			func(x *engine.NewExecution) { x.Creator = "anna" }}
		plain := w.create(bouncing("k", time.Hour, 0), input("small"))
		created := w.read(plain).CreatedAt
		w.advance(time.Minute)
		w.replaces(plain, flowfabric.Delayed, append(full, bouncing("k", time.Hour, 0))...)
		s := w.read(plain)
		w.all("replaced", eq(s.Route.Lane, "other"), eq(s.Priority, 7), eq(s.Creator, "anna"),
			eqDeep(s.Tags, map[string]string{"a.b": "1"}), eq(s.InputBytes, 5000), eq(s.DeadlineAt.IsZero(), false),
			eq(s.Policy.AttemptTimeout, flowfabric.Millis(time.Minute)), eqList(s.Policy.Retry.Categories, "c"),
			eq(s.CreatedAt.Equal(created), true))
		same(w, "input", w.inputOf(plain) == large, true)
		w.replaces(plain, flowfabric.Delayed, bouncing("k", time.Hour, 0), tags(map[string]string{"c.d": "2"}),
			input("small again"))
		sameDeep(w, "tags", w.read(plain).Tags, map[string]string{"c.d": "2"})
		w.replaces(plain, flowfabric.Delayed, bouncing("k", time.Hour, 0), input(""))
		s = w.read(plain)
		w.all("plain again", eq(s.Route.Lane, "default"), eq(s.Priority, 0), eq(s.Creator, ""), eq(len(s.Tags), 0),
			eq(s.InputBytes, 0), eq(s.DeadlineAt.IsZero(), true), eq(s.Policy.AttemptTimeout, flowfabric.Millis(0)),
			eq(len(s.Policy.Retry.Categories), 0))
		same(w, "what its policy had retried is forgotten", w.hash(w.k.Attempts(ids.UUID(plain)))["categories"], "")
		w.advance(time.Hour + time.Second)
		w.settleTime()
		k := w.worker("a")
		w.complete(k.one(plain).Fence, "")
		w.audited()
	}},
	{name: "a deadline that was replaced does not end it", run: func(w *env) {
		id := w.create(bouncing("k", time.Minute, 0), deadline(time.Hour))
		w.replaces(id, flowfabric.Delayed, bouncing("k", 3*time.Hour, 0))
		w.advance(2 * time.Hour)
		w.settleTime()
		w.code(id, "R2af")
		w.replaces(id, flowfabric.Delayed, bouncing("k", 3*time.Hour, 0), deadline(4*time.Hour))
		w.advance(5 * time.Hour)
		w.tick()
		w.settleTime()
		same(w, "ended or due", w.core(id)["s"] == "R2af", false)
	}},
	{name: "a submit that is repeated after a lost reply is applied once, also after its execution was claimed and replaced by another", run: func(w *env) {
		first, second := w.item(bouncing("k", time.Hour, 0), input("one")),
			w.item(bouncing("k", time.Hour, 0), input("two"))
		send := func(x engine.NewExecution) engine.Created {
			w.Helper()
			c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x})
			w.no(err)
			w.no(c[0].Err)
			w.check()
			return c[0]
		}
		w.all("made", eq(send(first).ID, first.ID), eq(send(second).ID, first.ID))
		w.unchanged("the replies were lost", func() {
			a, b := send(first), send(second)
			w.all("again", eq(a.ID, first.ID), eq(a.Replaced, false), eq(b.ID, first.ID), eq(b.Replaced, true))
		})
		w.replaces(first.ID, flowfabric.Delayed, bouncing("k", time.Hour, 0), input("three"))
		w.unchanged("another came", func() { same(w, "again", send(second).ID, first.ID) })
		w.advance(2 * time.Hour)
		w.settleTime()
		c := w.worker("a").one(first.ID)
		same(w, "input", string(c.Input), "three")
		w.unchanged("claimed", func() {
			w.all("again", eq(send(second).ID, first.ID), eq(send(second).State, flowfabric.Active))
		})
		next := w.create(bouncing("k", time.Hour, 0), input("four"))
		w.unchanged("another execution has the key", func() { same(w, "again", send(second).ID, first.ID) })
		w.complete(c.Fence, "")
		_, err := w.e.PurgeExecution(w.ctx, first.ID, 0)
		w.no(err)
		w.unchanged("it was purged", func() {
			w.all("again", eq(send(second).ID, first.ID), eq(send(second).State, flowfabric.Completed))
		})
		for range 12 {
			w.replaces(next, flowfabric.Delayed, bouncing("k", time.Hour, 0), input("more"))
		}
		w.check()
	}},
	{name: "equal keys in one call behave like several submits", run: func(w *env) {
		a, b, other, c := w.item(bouncing("k", time.Hour, 0), input("a")),
			w.item(bouncing("k", 2*time.Hour, 0), input("b"), lane("l")), w.item(bouncing("m", time.Hour, 0)),
			w.item(bouncing("k", 3*time.Hour, 0), input("c"))
		bad := w.item(bouncing("k", time.Hour, 0))
		bad.Kind = ""
		got, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{a, b, other, bad, c, b})
		w.no(err)
		w.check()
		w.all("answers", eq(got[0].ID, a.ID), eq(got[0].Replaced, false), eq(got[1].ID, a.ID),
			eq(got[1].Replaced, true), eq(got[2].ID, other.ID), eq(got[2].Replaced, false), eq(got[4].ID, a.ID),
			eq(got[4].Replaced, true), eq(got[5].ID, a.ID), eq(got[5].Replaced, true))
		w.is(got[3].Err, flowfabric.ErrInvalidInput)
		w.all("the last counts", eq(w.inputOf(a.ID), "c"), eq(w.exists(b.ID), false), eq(w.exists(c.ID), false),
			eq(w.read(a.ID).Route.Lane, "default"))
		w.about("due", w.dueIn(a.ID), 3*time.Hour)
		d, e := w.item(bouncing("k", time.Hour, 0), input("d")), w.item(bouncing("k", 2*time.Hour, 0), input("e"))
		got, err = w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{d, e})
		w.no(err)
		w.check()
		w.all("both", eq(got[0].ID, a.ID), eq(got[0].Replaced, true), eq(got[1].ID, a.ID), eq(got[1].Replaced, true),
			eq(w.inputOf(a.ID), "e"))
		w.about("due", w.dueIn(a.ID), 2*time.Hour)
		w.unchanged("again", func() {
			_, err = w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{d, e})
			w.no(err)
		})
	}},
	{name: "one that an operator holds stays held, with the latest input, and one whose time an operator changed is put off again", run: func(w *env) {
		id := w.create(bouncing("k", time.Minute, 0), input("one"))
		w.advance(2 * time.Minute)
		w.settleTime()
		_, err := w.e.HoldExecution(w.ctx, id)
		w.no(err)
		w.replaces(id, flowfabric.Waiting, bouncing("k", time.Minute, 0), input("two"), lane("l"), priority(3))
		w.code(id, "R4f")
		w.advance(2 * time.Minute)
		w.settleTime()
		_, err = w.e.UnholdExecution(w.ctx, id)
		w.no(err)
		w.check()
		same(w, "input", string(w.worker("a").one(id).Input), "two")
		later := w.create(bouncing("l", time.Minute, 0), input("one"))
		_, err = w.e.SetDelay(w.ctx, later, engine.DelayChange{Delay: 10 * time.Hour, Request: mint.UUID()})
		w.no(err)
		w.replaces(later, flowfabric.Delayed, bouncing("l", time.Minute, 0), input("two"))
		w.about("due", w.dueIn(later), time.Minute)
		w.audited()
	}},
	{name: "a lane that accepts nothing refuses to replace", run: func(w *env) {
		id := w.create(bouncing("k", time.Hour, 0), input("one"), lane("l"))
		w.setLane("l", flowfabric.LaneDraining, "")
		w.unchanged("refused", func() {
			w.is(w.creating(bouncing("k", time.Hour, 0), input("two"), lane("l")).Err, flowfabric.ErrLaneClosed)
		})
		same(w, "input", w.inputOf(id), "one")
	}},
	{name: "its mailbox and its place among equals stay", run: func(w *env) {
		id := w.create(bouncing("k", time.Minute, 0), input("one"))
		w.mail(id, "m", "hello")
		w.advance(time.Second)
		young := w.create()
		w.replaces(id, flowfabric.Delayed, bouncing("k", time.Minute, 0), input("two"))
		w.advance(2 * time.Minute)
		w.settleTime()
		k := w.worker("a")
		c := k.claim(2)
		w.all("order", eq(c[0].Fence.Execution, id), eq(c[1].Fence.Execution, young))
		same(w, "message", w.take(c[0].Fence, "r", "m", 1, "") != "", true)
	}},
	{name: "work with gates is replaced while they keep it waiting, and what was granted makes room for another",
		run: func(w *env) {
			gated := asking(flowfabric.Gate("q"))
			id := w.create(bouncing("k", time.Millisecond, 0), gated, input("one"))
			w.advance(time.Second)
			w.settleTime()
			w.replaces(id, flowfabric.Delayed, bouncing("k", time.Millisecond, 0), gated, input("two"))
			w.advance(time.Second)
			w.settleTime()
			k := w.worker("g1")
			k.gates = true
			k.grants(1)
			w.code(id, "G1f")
			other := w.create(bouncing("k", time.Hour, 0), gated, input("three"))
			w.advance(10 * time.Second)
			w.settleTime()
			w.code(id, "R1f")
			w.replaces(other, flowfabric.Delayed, bouncing("k", time.Hour, 0), input("four"))
			w.all("inputs", eq(w.inputOf(id), "two"), eq(w.inputOf(other), "four"))
			w.audited()
		}},
	{name: "keys that debounce and other keys of the same text do not meet", run: func(w *env) {
		id := w.create(bouncing("k", time.Hour, 0))
		other := w.create(key("k", 0))
		same(w, "two", id == other, false)
		w.meets("the other", other, flowfabric.Waiting, key("k", 0))
		w.replaces(id, flowfabric.Delayed, bouncing("k", time.Hour, 0))
	}},
	{name: "a replay needs no key, and a purge takes its own only", run: func(w *env) {
		first := w.create(bouncing("k", time.Millisecond, 0))
		w.advance(time.Second)
		w.settleTime()
		w.complete(w.worker("a").one(first).Fence, "")
		second := w.create(bouncing("k", time.Hour, 0), input("two"))
		w.replay(first, engine.Replay{Force: true})
		w.replaces(second, flowfabric.Delayed, bouncing("k", time.Hour, 0), input("three"))
		w.complete(w.worker("b").one(first).Fence, "")
		_, err := w.e.PurgeExecution(w.ctx, first, 0)
		w.no(err)
		w.replaces(second, flowfabric.Delayed, bouncing("k", time.Hour, 0), input("four"))
		w.cancel(second)
		_, err = w.e.PurgeExecution(w.ctx, second, 0)
		w.no(err)
		same(w, "no record of the key", strings.Contains(strings.Join(w.keys(), " "), ":y:"), false)
		w.audited()
	}},
	{name: "what is wrong with a key that debounces is refused, and writes nothing", run: func(w *env) {
		x := w.item(bouncing("k", time.Hour, 0))
		args, key := createArgs(x), x.KeyID.String()
		id, at := ids.UUID(x.ID).String(), -1
		for i, a := range args {
			if strings.HasPrefix(a, id) {
				at = i
			}
		}
		for _, bad := range []string{"~", "~-1", "~315360000001", "~1.5", "~ 0", "~3599999", "~x"} {
			args[at] = id + " " + key + " " + bad
			w.refused(bad, "invalid_input", args)
		}
		args[at], args[6] = id+" "+key+" ~0", ""
		w.refused("no delay", "invalid_input", args)
	}},
	{name: "an audit gives a key back to the execution that waits under it, and to no other", run: func(w *env) {
		id := w.create(bouncing("k", time.Hour, 0))
		w.replaces(id, flowfabric.Delayed, bouncing("k", time.Hour, 0))
		ran := w.create(bouncing("l", time.Millisecond, 0))
		w.advance(time.Second)
		w.settleTime()
		w.complete(w.worker("a").one(ran).Fence, "")
		w.audited()
		name := func(key string) string {
			_, of := ids.Debounced(1, w.item().Namespace, w.item().Kind, key)
			return w.k.Keyed(of)
		}
		w.quiet = true
		w.set("DEL", name("k"))
		w.set("DEL", name("l")) // claimed: nothing is missing
		w.set("SET", name("lost"), uuid.NewString()+" ~0123456789ab,")
		r := w.audit(true)
		w.all("found", eq(strings.Count(found(r), "missing y"), 1), eq(strings.Count(found(r), "orphan y"), 1),
			eq(len(r.Findings), 2))
		w.quiet = false
		w.check()
		w.replaces(id, flowfabric.Delayed, bouncing("k", time.Hour, 0))
		same(w, "sound", found(w.audit(false)), "")
	}},
	{name: "the delay of a submit counts also for one that an operator holds", run: func(w *env) {
		id := w.create(bouncing("k", time.Minute, 0), input("one"))
		w.advance(2 * time.Minute)
		w.settleTime()
		hold := func() {
			w.Helper()
			_, err := w.e.HoldExecution(w.ctx, id)
			w.no(err)
			w.replaces(id, flowfabric.Waiting, bouncing("k", time.Minute, 0), input("two"))
		}
		free := func(code codes.Code) {
			w.Helper()
			w.audited()
			_, err := w.e.UnholdExecution(w.ctx, id)
			w.no(err)
			w.code(id, code)
			w.check()
		}
		hold()
		w.advance(20 * time.Second)
		free("R2af")
		w.about("due", w.dueIn(id), 40*time.Second)
		w.worker("a").nothing()
		w.advance(time.Minute)
		w.settleTime()
		hold()
		w.advance(2 * time.Minute)
		free("R1f")
		same(w, "input", string(w.worker("b").one(id).Input), "two")
	}},
}

// cancelIf cancels what has not ended.
func (w *env) cancelIf(id flowfabric.ExecutionID) {
	w.Helper()
	if s := w.read(id); !s.State.Terminal() {
		w.cancel(id)
	}
}
