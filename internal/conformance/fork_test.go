package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/stream"
)

// fork forks an execution before a step; that must not be refused.
func (w *env) fork(id flowfabric.ExecutionID, step string) engine.Forked {
	w.Helper()
	f, err := w.e.ForkExecution(trail.As(w.ctx, "me", "why not"), id, engine.Fork{Step: step})
	w.no(err)
	same(w, "already", f.Already, false)
	same(w, "partition", f.ID.Partition(), w.p)
	w.check()
	return f
}

// shows is what an execution has put out so far, read in one piece, and again from every position on the way.
func (w *env) shows(id flowfabric.ExecutionID) string {
	w.Helper()
	whole, positions := w.output(id, "")
	for i, at := range positions {
		t := &stream.Transcript{}
		w.feedTo(t, id, "", i+1)
		w.feedTo(t, id, at, -1)
		same(w, "from "+string(at), t.Text(), whole)
	}
	return whole
}

// feedTo gives a transcript the next events of an execution's tail from a position, n of them, -1: all.
func (w *env) feedTo(t *stream.Transcript, id flowfabric.ExecutionID, from stream.Position, n int) {
	w.Helper()
	if n == 0 {
		return
	}
	for e, err := range w.hub(w.e).Tail(w.ctx, id, framelog.TailOptions{From: from, Stored: true}) {
		w.no(err)
		t.Add(e)
		if n--; n == 0 {
			return
		}
	}
}

func (w *env) output(id flowfabric.ExecutionID, from stream.Position) (text string, positions []stream.Position) {
	w.Helper()
	t := &stream.Transcript{}
	for e, err := range w.hub(w.e).Tail(w.ctx, id, framelog.TailOptions{From: from, Stored: true}) {
		w.no(err)
		t.Add(e)
		positions = append(positions, e.Position)
	}
	same(w, "lost", t.Lost(), 0)
	return t.Text(), positions
}

// purge removes an ended execution.
func (w *env) purge(id flowfabric.ExecutionID) {
	w.Helper()
	_, err := w.e.PurgeExecution(w.ctx, id, 24*time.Hour)
	w.no(err)
	w.check()
}

// talked is an execution with frames 1 to 6 and steps a, b and c, each of which covers two of them.
func (w *env) talked(k *worker, opts ...option) (flowfabric.ExecutionID, flowfabric.Fence) {
	w.Helper()
	id := w.create(opts...)
	f := k.one(id).Fence
	for i, step := range []string{"a", "b", "c"} {
		w.frames(f, uint64(2*i+1), 2)
		w.recordStep(f, step)
	}
	return id, f
}

// ownKeys lists the keys that are named after an execution.
func (w *env) ownKeys(id flowfabric.ExecutionID) (own []string) {
	w.Helper()
	for _, key := range w.keys() {
		if strings.Contains(key, ids.UUID(id).String()) {
			own = append(own, strings.TrimPrefix(key, string(w.k)))
		}
	}
	return own
}

// Forks: executions that begin with what another one has recorded.
var forkScenarios = []scenario{
	{name: "a fork of a running execution has its earlier steps and frames, which goes on", run: func(w *env) {
		k := w.worker("w1")
		id, f := w.talked(k, payload([]byte("in")), tags(map[string]string{"a.b": "c"}), priority(7), retries(2))
		w.frames(f, 7, 1) // no step covers it
		before := w.read(id)
		x := w.fork(id, "c")
		w.all("fork", eq(x.Code, codes.WaitingReplay), eq(x.Attempts, 1), eq(x.Steps, 2), eq(fmt.Sprint(x.Left), "[c]"))
		after := w.read(id)
		w.all("the execution", eq(after.Steps, before.Steps), eq(after.Attempts, before.Attempts),
			eq(after.State, before.State))
		s := w.read(x.ID)
		w.all("snapshot", eq(s.Steps, 2), eq(s.Attempts, 1), eq(s.Priority, 7), eq(s.Tags["a.b"], "c"),
			eq(s.MaxRetries, 2), eq(s.InputBytes, 2), eq(s.Creator, "me"), eq(s.ForkOf.ID, id), eq(s.ForkOf.Step, "c"),
			eq(s.Replays, 0))
		same(w, "output", w.shows(x.ID), "1234")
		c := k.one(x.ID)
		w.all("claim", eq(c.Type, "replay"), eq(c.Fence.Attempt, 2), eq(stepNames(c), "a b"), eq(string(c.Input), "in"),
			eq(c.LastSequence, 0), eq(c.Tags["a.b"], "c"))
		w.frames(c.Fence, 1, 2)
		w.recordStep(c.Fence, "c")
		w.frames(f, 8, 1)
		w.recordStep(f, "d")
		same(w, "its own output", w.shows(x.ID), "123412")
		same(w, "output of the execution", w.shows(id), "12345678")
		w.no(w.complete(c.Fence, "r").Err)
		w.no(w.complete(f, "r").Err)
		same(w, "its own output", w.shows(x.ID), "123412")
		for _, kind := range w.kindsOf(id, x.ID) {
			same(w, "history", kind, "forked")
		}
	}},
	{name: "a fork is in the turn of its last step, and a full execution is forked before a wait", run: func(w *env) {
		w.seed()
		k := w.worker("w1")
		id := w.create()
		f := k.one(id).Fence
		_, err := w.speaks(f, "model 1", engine.TurnOver)
		w.no(err)
		w.nothingToStop(w.fork(id, "").ID)
		same(w, "the first turn", w.halted(w.fork(id, "model 1").ID, "anna", mint.UUID()), "anna")
		_, err = w.speaks(f, "turn", engine.TurnBegins)
		w.no(err)
		_, err = w.speaks(f, "model 2", "")
		w.no(err)
		same(w, "the second", w.halted(w.fork(id, "").ID, "anna", mint.UUID()), "anna, model 2")
		same(w, "its begin", w.halted(w.fork(id, "model 2").ID, "anna", mint.UUID()), "anna")
		m := w.stopped(f, awaiting("ok"))
		w.signal(id, m, "go", "resume_condition_satisfied")
		for _, c := range w.worker("w2").claim(9) {
			if c.Fence.Execution == id {
				f = c.Fence
			}
		}
		for i := range limits.MaxSteps - 3 {
			_, err := w.e.RecordStep(w.ctx, f, fmt.Sprint("s", i), nil, 0)
			w.no(err)
		}
		w.unchanged("no room for the answer", func() {
			_, err := w.e.ForkExecution(w.ctx, id, engine.Fork{})
			w.is(err, denied.StepLimit)
		})
		same(w, "before the wait", w.fork(id, "model 2").Steps, 2)
	}},
	{name: "a fork tells who rewound its attempts, and its readers follow one that is rewound", run: func(w *env) {
		k := w.worker("w1")
		id, _ := w.talked(k)
		w.rewound(id, engine.Rewind{Step: "c"})
		f := k.one(id).Fence
		w.frames(f, 1, 1)
		w.recordStep(f, "c")
		x := w.fork(id, "")
		m, err := w.e.ReadAttemptStream(w.ctx, x.ID, 1)
		w.no(err)
		w.all("attempt", eq(m.ClosedReason, "rewound"), eq(m.By, "me"), eq(m.Message, "another way"))
		_, positions := w.output(x.ID, "")
		before := make([]*stream.Transcript, len(positions))
		for i := range before {
			before[i] = &stream.Transcript{}
			w.feedTo(before[i], x.ID, "", i+1)
		}
		w.rewound(x.ID, engine.Rewind{Step: "b"})
		f = k.one(x.ID).Fence
		w.frames(f, 1, 3)
		same(w, "output", w.shows(x.ID), "12123")
		for i, t := range before {
			w.feedTo(t, x.ID, positions[i], -1)
			same(w, "from "+string(positions[i]), t.Text(), "12123")
		}
	}},
	{name: "frames are not copied", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		f := k.one(id).Fence
		for i := range 20 {
			list := []stream.Frame{{Type: "token", Payload: bytes.Repeat([]byte("x"), limits.MaxFrame)}}
			_, err := w.e.AppendFrames(w.ctx, f, uint64(i+1), list)
			w.no(err)
			w.recordStep(f, fmt.Sprint("s", i))
		}
		x := w.fork(id, "s19")
		own := w.ownKeys(x.ID)
		for _, key := range own {
			for _, area := range []string{":f:", ":fm:", ":fd:", ":fl:", ":fe:"} {
				same(w, key+" is of frames", strings.HasPrefix(key, area), false)
			}
			if w.srv.Features.Native {
				n, err := w.do("MEMORY", "USAGE", string(w.k)+key).AsInt64()
				w.no(err)
				same(w, key+" is small", n < 4096, true)
			}
		}
		text, _ := w.output(x.ID, "")
		same(w, "output", len(text), 19*limits.MaxFrame)
	}},
	{name: "a fork of one that waits, that waits again, and that has ended", run: func(w *env) {
		w.seed()
		k := w.worker("w1")
		id, f := w.talked(k)
		m := w.stopped(f, awaiting("ok"))
		waiting := w.fork(id, "")
		w.all("of one that waits", eq(waiting.Steps, 3), eq(len(waiting.Left), 0), eq(w.shows(waiting.ID), "123456"))
		w.signal(id, m, "go", "resume_condition_satisfied")
		answered := w.fork(id, "")
		same(w, "with the answer", answered.Steps, 4)
		less := w.fork(id, "c")
		same(w, "without the answer", less.Steps, 2)
		w.cancel(less.ID)
		f = k.one(id).Fence
		w.cancel(waiting.ID)
		c := k.one(answered.ID)
		same(w, "claim", len(c.Steps), 4)
		w.no(w.complete(f, "r").Err)
		ended := w.fork(id, "b")
		w.all("of one that has ended", eq(ended.Steps, 1), eq(fmt.Sprint(ended.Left), "[b c]"),
			eq(w.shows(ended.ID), "12"))
		none := w.fork(id, "a")
		w.all("without steps", eq(none.Steps, 0), eq(none.Attempts, 0), eq(none.Code, "R1f"), eq(w.shows(none.ID), ""))
		w.cancel(ended.ID)
		same(w, "its claim", k.one(none.ID).Type, "initial")
		w.no(w.complete(c.Fence, "").Err)
		same(w, "reads", w.read(ended.ID).Attempts, 1)
		w.replay(waiting.ID, engine.Replay{})
		r := k.one(waiting.ID)
		w.all("replayed", eq(len(r.Steps), 3), eq(r.Fence.Attempt, 2), eq(w.shows(waiting.ID), "123456"))
	}},
	{name: "a fork of a fork names who wrote the frames", run: func(w *env) {
		k := w.worker("w1")
		id, f := w.talked(k)
		first := w.fork(id, "c")
		c := k.one(first.ID)
		w.frames(c.Fence, 1, 3)
		w.recordStep(c.Fence, "d")
		second, early := w.fork(first.ID, ""), w.fork(first.ID, "b")
		w.all("outputs", eq(w.shows(first.ID), "1234123"), eq(w.shows(second.ID), "1234123"),
			eq(w.shows(early.ID), "12"))
		w.no(w.complete(f, "").Err)
		w.no(w.complete(c.Fence, "").Err)
		w.purge(id)
		w.purge(first.ID)
		w.all("outputs", eq(w.shows(second.ID), "1234123"), eq(w.shows(early.ID), "12"))
		third := w.fork(second.ID, "d")
		same(w, "output", w.shows(third.ID), "1234")
		for _, x := range []flowfabric.ExecutionID{second.ID, third.ID, early.ID} {
			w.cancel(x)
			w.purge(x)
		}
		left := w.ownKeys(id)
		same(w, "left", len(left), 1) // its tombstone
	}},
	{name: "whatever is purged first, what is left stays whole, and nothing is left at the end", run: func(w *env) {
		k := w.worker("w1")
		for order := range 24 {
			id, f := w.talked(k)
			a, b := w.fork(id, "b"), w.fork(id, "c")
			c := w.fork(b.ID, "")
			w.no(w.complete(f, "").Err)
			all := []flowfabric.ExecutionID{id, a.ID, b.ID, c.ID}
			want := []string{"123456", "12", "1234", "1234"}
			for _, x := range all[1:] {
				w.cancel(x)
			}
			n, rest := order, []int{0, 1, 2, 3}
			for len(rest) > 0 {
				at := n % len(rest)
				n /= len(rest)
				w.purge(all[rest[at]])
				rest = append(rest[:at], rest[at+1:]...)
				for _, i := range rest {
					text, _ := w.output(all[i], "")
					same(w, "output", text, want[i])
				}
			}
			for _, x := range all {
				same(w, "keys left", len(w.ownKeys(x)), 1)
			}
		}
	}},
	{name: "one that continues keeps what its forks have", run: func(w *env) {
		k := w.worker("w1")
		id, f := w.talked(k)
		w.goOn(f, "next")
		f = k.one(id).Fence
		w.frames(f, 1, 2)
		w.recordStep(f, "z")
		x := w.fork(id, "")
		w.all("fork", eq(x.Attempts, 2), eq(w.shows(x.ID), "12345612"))
		w.goOn(f, "third") // attempt 1 is not kept any more
		f = k.one(id).Fence
		same(w, "fork", w.shows(x.ID), "12345612")
		c := k.one(x.ID)
		w.all("claim", eq(c.Continues, 1), eq(stepNames(c), "z"), eq(string(c.Input), "next"))
		w.goOn(c.Fence, "own")
		c = k.one(x.ID)
		w.frames(c.Fence, 1, 1)
		w.goOn(c.Fence, "own")
		c = k.one(x.ID)
		same(w, "the forks's attempts are gone", w.shows(x.ID), "1")
		w.no(w.complete(c.Fence, "").Err)
		w.no(w.complete(f, "").Err)
		w.purge(id)
		w.purge(x.ID)
		same(w, "keys left", len(w.ownKeys(id)), 1)
	}},
	{name: "of an earlier link a fork has what the steps of it covered, and not what a later run repeated",
		run: func(w *env) {
			k := w.worker("w1")
			id := w.create(retries(1))
			f := k.one(id).Fence
			w.frames(f, 1, 2)
			w.recordStep(f, "a")
			w.frames(f, 3, 2)
			w.release(f)
			f = k.one(id).Fence
			w.frames(f, 5, 2)
			w.recordStep(f, "b")
			w.frames(f, 7, 1)
			w.revoke(id)
			w.settleTime()
			f = k.one(id).Fence
			w.frames(f, 1, 1)
			w.goOn(f, "next")
			f = k.one(id).Fence
			w.recordStep(f, "z")
			w.all("outputs", eq(w.shows(id), "12561"), eq(w.shows(w.fork(id, "").ID), "12561"))
			w.no(w.complete(f, "r").Err)
			w.replay(id, engine.Replay{DropSteps: true, Force: true})
			dropped := w.worker("w2").claim(2)
			same(w, "claims", len(dropped), 2)
			same(w, "nothing", w.shows(id)+w.shows(w.fork(id, "").ID), "")
		}},
	{name: "the frames up to the cut count, of every mode, and what a later run repeated does not come back",
		run: func(w *env) {
			k := w.worker("w1")
			id := w.create()
			f := k.one(id).Fence
			w.modes(f, 1, durableFrame(1), summaryDelta(1), bestEffort(3), durableFrame(4))
			w.recordStep(f, "one")
			w.modes(f, 5, durableFrame(5), durableFrame(6))
			w.release(f)
			f = k.one(id).Fence
			w.modes(f, 7, durableFrame(7), summaryDelta(2))
			w.recordStep(f, "two")
			w.modes(f, 9, durableFrame(9))
			one, two := w.fork(id, "two"), w.fork(id, "")
			for _, x := range []struct {
				fork    engine.Forked
				durable uint64
				last    uint64
				runs    uint32
				version uint64
			}{{one, 2, 4, 1, 1}, {two, 5, 8, 2, 2}} {
				m, err := w.e.ReadAttemptStream(w.ctx, x.fork.ID, 1)
				w.no(err)
				w.all("meta", eq(m.Count, x.durable), eq(m.LastSequence, x.last), eq(m.Runs, x.runs),
					eq(m.Summary, x.version),
					eq(m.Live, 1), eq(m.Closed, true), eq(m.ClosedReason, "forked"), eq(m.Recorded.Sequence, x.last),
					eq(m.Owner, id))
			}
			s, err := w.e.ReadSummary(w.ctx, two.ID, 1)
			w.no(err)
			same(w, "document", s.Version, 2)
			_, err = w.client().Execution(one.ID).Frames(w.ctx, 1, stream.Range{})
			w.no(err)
			frames, err := w.client().Execution(two.ID).Frames(w.ctx, 1, stream.Range{Limit: 3})
			w.no(err)
			more, err := w.client().Execution(two.ID).Frames(w.ctx, 1, stream.Range{After: frames[2].ID})
			w.no(err)
			w.all("pages", eq(len(frames), 3), eq(len(more), 2), eq(more[1].Sequence, 7))
		}},
	{name: "a request makes one fork, and forks of one execution do not meet", run: func(w *env) {
		k := w.worker("w1")
		id, f := w.talked(k)
		q := engine.Fork{Request: mint.UUID(), Step: "b"}
		made := make([]engine.Forked, 8)
		wrong := make([]error, 8)
		together(8, func(i int) {
			if i%2 == 0 {
				made[i], wrong[i] = w.e.ForkExecution(w.ctx, id, q)
			} else {
				made[i], wrong[i] = w.e.ForkExecution(w.ctx, id, engine.Fork{Step: "c"})
			}
		})
		w.check()
		fresh, own := 0, map[flowfabric.ExecutionID]bool{}
		for i := range made {
			w.no(wrong[i])
			own[made[i].ID] = true
			if i%2 == 0 && !made[i].Already {
				fresh++
			}
			same(w, "steps", made[i].Steps, 1+i%2)
		}
		w.all("forks", eq(fresh, 1), eq(len(own), 5))
		q.Step = "c"
		w.unchanged("another step", func() {
			_, err := w.e.ForkExecution(w.ctx, id, q)
			same(w, "conflict", errors.Is(err, denied.Idempotency), true)
		})
		q.Step = "b"
		w.no(w.complete(f, "").Err)
		w.purge(id)
		again, err := w.e.ForkExecution(w.ctx, id, q)
		w.no(err)
		w.all("after the purge", eq(again.ID, made[0].ID), eq(again.Already, true))
		_, err = w.e.ForkExecution(w.ctx, id, engine.Fork{})
		w.is(err, flowfabric.ErrResultPurged)
		_, err = w.e.ForkExecution(w.ctx, mint.ID(w.p), engine.Fork{})
		w.is(err, flowfabric.ErrNotFound)
		_, err = w.e.ForkExecution(w.ctx, made[1].ID, engine.Fork{Step: "never"})
		same(w, "no such step", errors.Is(err, denied.NoStep), true)
		w.cancel(again.ID)
		w.purge(again.ID)
		_, err = w.e.ForkExecution(w.ctx, id, q)
		w.is(err, flowfabric.ErrResultPurged)
	}},
	{name: "another input, small and large, the deadline's span, and a lane that is closed", run: func(w *env) {
		k := w.worker("w1")
		large := bytes.Repeat([]byte("l"), 5000)
		for _, from := range [][]byte{[]byte("s"), large} {
			id, f := w.talked(k, payload(from), deadline(time.Hour))
			w.advance(5 * time.Second)
			for _, to := range [][]byte{nil, {}, []byte("t"), large} {
				q, want := engine.Fork{Step: "b"}, from
				if to != nil {
					q.Input, want = &to, to
				}
				x, err := w.e.ForkExecution(w.ctx, id, q)
				w.no(err)
				w.check()
				in, _, err := w.e.ReadInput(w.ctx, x.ID)
				w.no(err)
				w.all("fork", eq(string(in), string(want)), eq(w.at(x.ID, "dl")-w.at(x.ID, "ct"), 3600000))
				w.cancel(x.ID)
			}
			big := make([]byte, limits.MaxPayload+1)
			_, err := w.e.ForkExecution(w.ctx, id, engine.Fork{Input: &big})
			w.is(err, flowfabric.ErrPayloadTooLarge)
			w.setLane("default", "draining", "0")
			_, err = w.e.ForkExecution(w.ctx, id, engine.Fork{})
			w.is(err, flowfabric.ErrLaneClosed)
			w.setLane("default", "active", "0")
			w.no(w.complete(f, "").Err)
		}
	}},
	{name: "a fork has the gates of the execution, and those that its scopes have by now", run: func(w *env) {
		attach := func(gates string) { w.must("ff_attach", proto, "t\x1fapp.tenant\x1facme", gates, "set") }
		gatesOf := func(id flowfabric.ExecutionID) string {
			row := w.hash(w.k.Routes())[w.core(id)["r"]]
			return row[strings.LastIndex(row, "\x1f")+1:]
		}
		attach("a")
		id := w.create(tags(map[string]string{"app.tenant": "acme"}))
		first := w.fork(id, "")
		attach("b")
		second := w.fork(first.ID, "")
		w.all("gates", eq(gatesOf(id), "a"), eq(gatesOf(first.ID), "a"), eq(gatesOf(second.ID), "a,b"))
		attach(gateNames(16))
		w.unchanged("too many", func() {
			_, err := w.e.ForkExecution(w.ctx, id, engine.Fork{})
			w.is(err, flowfabric.ErrInvalidInput)
		})
		attach("")
	}},
	{name: "an audit keeps what a fork has whose record cannot be read", damaged: "a record stays aside",
		run: func(w *env) {
			k := w.worker("w1")
			id, f := w.talked(k)
			x := w.fork(id, "c")
			w.no(w.complete(f, "").Err)
			w.purge(id)
			before := len(w.ownKeys(id))
			w.quiet = true
			w.set("DEL", w.k.Core(ids.UUID(x.ID)))
			w.set("RPUSH", w.k.Core(ids.UUID(x.ID)), "x")
			for range 3 {
				w.audit(true)
			}
			same(w, "left", len(w.ownKeys(id)), before)
		}},
	{name: "an audit removes what forks had that are gone", run: func(w *env) {
		k := w.worker("w1")
		id, f := w.talked(k)
		x := w.fork(id, "c")
		w.no(w.complete(f, "").Err)
		w.purge(id)
		same(w, "sound", found(w.audit(false)), "")
		for _, key := range w.ownKeys(x.ID) {
			w.set("DEL", string(w.k)+key)
		}
		for _, index := range []string{w.k.Done()} {
			w.set("ZREM", index, ids.UUID(x.ID).String())
		}
		w.audit(true)
		same(w, "left", len(w.ownKeys(id)), 1)
	}},
}

// kindsOf are the last entries of histories.
func (w *env) kindsOf(list ...flowfabric.ExecutionID) (kinds []string) {
	w.Helper()
	for _, id := range list {
		events, err := w.e.ReadHistory(w.ctx, id)
		w.no(err)
		for _, e := range events {
			if e.Kind == "forked" {
				kinds = append(kinds, e.Kind)
				w.all("entry", eq(e.By, "me"), eq(e.Reason, "why not"))
			}
		}
	}
	same(w, "entries", len(kinds), len(list))
	return kinds
}
