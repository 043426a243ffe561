package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// retained is the time for which an idempotency key is taken: as long as its execution is there.
const retained = time.Duration(-1)

// key gives an execution a key; d is for how long it is held at least.
func key(name string, d time.Duration) option {
	return func(x *engine.NewExecution) {
		_, x.KeyID = ids.Keyed(1, x.Namespace, x.Kind, name)
		x.Key = &flowfabric.Key{Text: name, WhileActive: d != retained, Window: max(d, 0)}
	}
}

// digest of the payload.
func digest(text string) option { return func(x *engine.NewExecution) { x.Digest = text } }

// meets submits with a key that is taken, and wants to be led to an execution, without a write.
func (w *env) meets(what string, id flowfabric.ExecutionID, state flowfabric.PublicState, opts ...option) {
	w.Helper()
	w.unchanged(what, func() {
		c := w.creating(opts...)
		w.no(c.Err)
		w.all(what, eq(c.ID, id), eq(c.Duplicate, true), eq(c.State, state))
	})
}

// keyHolder is who has a key.
func (w *env) keyHolder(name string) flowfabric.ExecutionID {
	w.Helper()
	_, key := ids.Keyed(1, w.item().Namespace, w.item().Kind, name)
	id, err := w.e.KeyHolder(w.ctx, w.p, key)
	w.no(err)
	return id
}

var keyScenarios = []scenario{
	{name: "a unique key is taken while its execution is delayed, waits, runs, pauses or is suspended, and no longer",
		run: func(w *env) {
			for _, code := range []codes.Code{"R1f", "R2af", "A1", "R1i", "R1t", "R1r", "R2ai", "R2b", "R2c",
				"S1"} {
				x := w.state(code, key("k", 0), retries(2))
				state, _ := codes.Project(code)
				w.meets(string(code), x.id, state.Public, key("k", 0))
				w.meets(string(code)+", another digest", x.id, state.Public, key("k", 0), digest("other"))
				_, err := w.e.CancelExecution(w.ctx, x.id, engine.Cancellation{Source: engine.CancelOperator})
				w.no(err)
				w.check()
			}
			k := w.worker("ends")
			for _, end := range []func(id flowfabric.ExecutionID){
				func(id flowfabric.ExecutionID) { w.complete(k.one(id).Fence, "r") },
				func(id flowfabric.ExecutionID) {
					_, err := w.e.FailExecution(w.ctx, k.one(id).Fence, engine.Failure{Category: "c", Permanent: true})
					w.no(err)
				},
				func(id flowfabric.ExecutionID) { w.advance(2 * time.Hour); w.settleTime(); w.code(id, "T4n") },
			} {
				id := w.create(key("k", 0), deadline(time.Hour))
				same(w, "its own", w.keyHolder("k"), id)
				end(id)
				w.check()
			}
			id := w.create(key("k", 0))
			w.advance(20 * day)
			w.settleTime()
			w.complete(w.worker("late").one(id).Fence, "")
			w.check()
		}},
	{name: "an idempotency key is taken as long as its execution is retained", run: func(w *env) {
		id := w.create(key("k", retained), digest("d"), kept(time.Hour))
		w.meets("it waits", id, flowfabric.Waiting, key("k", retained), digest("d"))
		w.meets("nothing to compare", id, flowfabric.Waiting, key("k", 0))
		w.unchanged("another payload", func() {
			c := w.creating(key("k", retained), digest("e"))
			w.is(c.Err, denied.Idempotency)
			same(w, "it names the execution", strings.Contains(c.Err.Error(), ids.UUID(id).String()), true)
		})
		w.complete(w.worker("a").one(id).Fence, "r")
		w.meets("it has ended", id, flowfabric.Completed, key("k", retained), digest("d"))
		w.advance(time.Hour + time.Second)
		w.settleTime()
		same(w, "purged", w.exists(id), false)
		_, err := w.e.KeyHolder(w.ctx, w.p, uuid.New())
		w.is(err, flowfabric.ErrNotFound)
		next := w.create(key("k", retained), digest("e"))
		same(w, "the key leads to the next", w.keyHolder("k"), next)
		w.check()
	}},
	{name: "a key with a window is held up to its end, also by what has ended, and then as long as it has not ended",
		run: func(w *env) {
			id := w.create(key("k", 3*time.Hour), kept(time.Hour), digest("d"))
			w.complete(w.worker("a").one(id).Fence, "")
			same(w, "it is retained for the window", w.purgeAt(id) > 2*time.Hour, true)
			w.check()
			w.meets("ended", id, flowfabric.Completed, key("k", 0))
			w.advance(2 * time.Hour)
			w.settleTime()
			w.meets("retained", id, flowfabric.Completed, key("k", time.Hour))
			w.advance(time.Hour)
			long := w.create(key("k", time.Hour), digest("e"), delay(5*time.Hour))
			w.settleTime()
			w.all("the first is purged and the key is the second's", eq(w.exists(id), false),
				eq(w.keyHolder("k"), long))
			w.advance(2 * time.Hour)
			w.meets("its window is over, and it has not ended", long, flowfabric.Delayed, key("k", time.Hour))
			w.check()
		}},
	{name: "the window of a key longer than the retention by the lane keeps what failed, too", run: func(w *env) {
		id := w.create(key("k", 60*day))
		_, err := w.e.FailExecution(w.ctx, w.worker("a").one(id).Fence, engine.Failure{Category: "c", Permanent: true})
		w.no(err)
		same(w, "kept", w.purgeAt(id) > 59*day, true)
		done := w.create(key("l", 3*day)) // nothing else is said of it
		w.complete(w.worker("b").one(done).Fence, "r")
		same(w, "kept", w.purgeAt(done) > 2*day, true)
		w.audited()
	}},
	{name: "equal keys in one call behave like two submits", run: func(w *env) {
		x, again, other, lone := w.item(key("k", 0), digest("a")), w.item(key("k", 0)),
			w.item(key("k", retained), digest("b")), w.item(key("l", retained))
		bad := w.item(key("m", 0), priority(-1), payload(make([]byte, 10)))
		bad.Kind = "" // refused: its key is not taken by it
		good := w.item(key("m", 0))
		good.Key = bad.Key
		c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x, again, other, lone, bad, good})
		w.no(err)
		w.all("created", eq(c[0].ID, x.ID), eq(c[0].Duplicate, false), eq(c[3].ID, lone.ID), eq(c[3].Duplicate, false),
			eq(c[5].ID, good.ID), eq(c[5].Duplicate, false))
		w.all("the second", eq(c[1].ID, x.ID), eq(c[1].Duplicate, true), eq(c[1].State, flowfabric.Waiting))
		w.is(c[2].Err, denied.Idempotency)
		w.is(c[4].Err, flowfabric.ErrInvalidInput)
		w.all("nothing of the others", eq(w.exists(again.ID), false), eq(w.exists(other.ID), false),
			eq(w.exists(bad.ID), false))
		w.check()
	}},
	{name: "the same call again is answered with its own execution, whatever has become of it and of the key",
		run: func(w *env) {
			x := w.item(key("k", 0))
			repeat := func() engine.Created {
				w.Helper()
				c, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{x})
				w.no(err)
				w.no(c[0].Err)
				w.check()
				return c[0]
			}
			w.all("made", eq(repeat().ID, x.ID), eq(w.keyHolder("k"), x.ID))
			w.unchanged("the reply was lost", func() { same(w, "again", repeat().ID, x.ID) })
			w.complete(w.worker("a").one(x.ID).Fence, "")
			next := w.create(key("k", 0))
			w.unchanged("another has the key", func() {
				w.all("again", eq(repeat().ID, x.ID), eq(repeat().State, flowfabric.Completed))
			})
			_, err := w.e.PurgeExecution(w.ctx, x.ID, 0)
			w.no(err)
			w.unchanged("it was purged", func() {
				w.all("again", eq(repeat().ID, x.ID), eq(repeat().State, flowfabric.Completed))
			})
			same(w, "holder", w.keyHolder("k"), next)
		}},
	{name: "a purge frees the key, unless another execution has it", run: func(w *env) {
		id := w.create(key("k", retained))
		w.complete(w.worker("a").one(id).Fence, "")
		_, err := w.e.PurgeExecution(w.ctx, id, 0)
		w.no(err)
		same(w, "no record of the key", strings.Contains(strings.Join(w.keys(), " "), ":y:"), false)
		first := w.create(key("k", 0))
		w.complete(w.worker("b").one(first).Fence, "")
		second := w.create(key("k", 0))
		_, err = w.e.PurgeExecution(w.ctx, first, 0)
		w.no(err)
		same(w, "the second has it", w.keyHolder("k"), second)
		w.meets("still", second, flowfabric.Waiting, key("k", 0))
		w.check()
	}},
	{name: "one that is half purged has no key any more", run: func(w *env) {
		id := w.create(key("k", retained), retries(300),
			func(x *engine.NewExecution) { x.Policy.Retry.Initial, x.Policy.Retry.Max = 0, time.Millisecond })
		k := w.worker("a")
		for range 250 {
			w.fail(k.one(id).Fence, "c")
		}
		w.cancel(id)
		args := []string{ids.UUID(id).String(), "86400000"}
		same(w, "more", w.must("ff_purge_execution", append([]string{proto}, args...)...).slots[0], "1")
		next := w.create(key("k", retained))
		same(w, "the key is free", w.keyHolder("k"), next)
		w.must("ff_purge_execution", append([]string{proto}, args...)...)
		w.all("and stays with who has it now", eq(w.exists(id), false), eq(w.keyHolder("k"), next))
		w.check()
	}},
	{name: "a replay takes its key again, and is refused while another execution has it", run: func(w *env) {
		first := w.create(key("k", 0))
		w.complete(w.worker("a").one(first).Fence, "")
		second := w.create(key("k", 0))
		w.unchanged("the second waits", func() {
			_, err := w.e.ReplayExecution(w.ctx, first, engine.Replay{Force: true})
			w.is(err, denied.KeyTaken)
			same(w, "it names the second", strings.Contains(err.Error(), ids.UUID(second).String()), true)
		})
		w.complete(w.worker("b").one(second).Fence, "")
		w.replay(first, engine.Replay{Force: true})
		same(w, "it has the key again", w.keyHolder("k"), first)
		w.meets("it waits", first, flowfabric.Waiting, key("k", 0))
		_, err := w.e.ReplayExecution(w.ctx, second, engine.Replay{Force: true})
		w.is(err, denied.KeyTaken)
		w.complete(w.worker("c").one(first).Fence, "")
		third := w.create(key("k", time.Hour))
		w.complete(w.worker("d").one(third).Fence, "")
		_, err = w.e.ReplayExecution(w.ctx, first, engine.Replay{Force: true})
		w.is(err, denied.KeyTaken) // it has ended, and its window is not over
		w.replay(third, engine.Replay{Force: true})
		same(w, "its own replay", w.keyHolder("k"), third)
	}},
	{name: "what is wrong with a key is refused, and writes nothing", run: func(w *env) {
		x := w.item()
		args, key := createArgs(x), uuid.NewString()
		id, at := ids.UUID(x.ID).String(), slices.Index(args, ids.UUID(x.ID).String())
		for _, bad := range []string{id + " " + key, id + " " + key + " -1", id + " " + key + " 31536000001",
			id + " " + key + " 1.5", id + " x -", id + "  0", "x " + key + " 0", id + " " + key + " 0 0",
			id + " " + strings.ToUpper(key) + "x 0", id + " " + key + " "} {
			args[at] = bad
			w.refused(bad, "invalid_input", args)
		}
	}},
	{name: "keys are no hindrance to anything else: executions with tags, large inputs, delays and gates have them, too", run: func(w *env) {
		for name, opts := range map[string][]option{"tags": {tags(map[string]string{"a.b": "c"})},
			"large": {payload(make([]byte, 5000))}, "delay": {delay(time.Hour)},
			"priority": {priority(7), deadline(time.Hour)}, "retries": {retries(3), timeout(time.Minute)}} {
			id := w.create(append(opts, key(name, retained))...)
			same(w, name, w.keyHolder(name), id)
			w.check()
		}
	}},
	{name: "an audit gives a key back to the execution that has it, and removes one whose execution is gone",
		run: func(w *env) {
			id := w.create(key("k", 0))
			ended := w.create(key("l", retained))
			free := w.create(key("m", 0))
			k := w.worker("a")
			for range 3 {
				if c := k.claim(1); len(c) == 1 && c[0].Fence.Execution != id {
					w.complete(c[0].Fence, "")
				}
			}
			_ = free
			w.audited()
			name := func(key string) string {
				_, of := ids.Keyed(1, w.item().Namespace, w.item().Kind, key)
				return w.k.Keyed(of)
			}
			w.quiet = true
			w.set("DEL", name("k"))
			w.set("SET", name("l"), "nonsense")
			w.set("DEL", name("m")) // free: nothing is missing
			w.set("SET", name("lost"), uuid.NewString()+" 0")
			w.set("SET", name("foreign"), ids.UUID(id).String()+" 0") // names one that has another key
			r := w.audit(true)
			w.all("found", eq(strings.Count(found(r), "missing y"), 2), eq(strings.Count(found(r), "orphan y"), 2),
				eq(len(r.Findings), 4))
			w.quiet = false
			w.check()
			w.all("the keys", eq(w.keyHolder("k"), id), eq(w.keyHolder("l"), ended))
			same(w, "sound", found(w.audit(false)), "")
			two := w.create(key("two", 0))
			w.quiet = true
			w.set("DEL", name("two"))
			three := w.create(key("two", 0)) // as after a failover that lost the record
			r = w.audit(true)
			same(w, "it cannot be repaired", strings.Contains(found(r), "has it as well as"), true)
			w.complete(w.worker("b").one(two).Fence, "")
			w.quiet = false
			w.check()
			w.all("until one has ended", eq(w.keyHolder("two"), three), eq(found(w.audit(false)), ""))
		}},
}
