package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// goOn starts the execution of a holder anew with another input; that must not be refused.
func (w *env) goOn(f flowfabric.Fence, input string) {
	w.Helper()
	already, err := w.e.ContinueExecution(w.ctx, f, []byte(input))
	w.no(err)
	same(w, "already", already, false)
	w.check()
}

// Executions that continue with another input.
var continueScenarios = []scenario{
	{name: "a link begins with its input, all retries and the whole timeout, and nothing of the one before", run: func(w *env) {
		id := w.create(retries(2), timeout(time.Minute), payload([]byte("first")), tags(map[string]string{"a.b": "c"}), priority(7))
		k := w.worker("w1")
		w.fail(k.one(id).Fence, "x")
		w.advance(time.Second)
		w.settleTime()
		c := k.one(id)
		same(w, "the first link", words(c.Type, c.Fence.Attempt, c.Retries, c.Continues, string(c.Input)), "retry 1 1 0 first")
		_, err := w.e.RecordStep(w.ctx, c.Fence, "step", []byte("value"), time.Second)
		w.no(err)
		w.no(w.e.UpdateProgress(w.ctx, c.Fence, 50, "half"))
		w.advance(8 * time.Second)
		w.goOn(c.Fence, "second")
		s := w.code(id, "R1f")
		same(w, "waits", words(s.State.Public, s.Attempts, s.Retries, s.Steps, s.Continues, s.InputBytes, s.Progress.Message, s.FailureCategory), "waiting 2 0 0 1 6  ")
		same(w, "its end", words(s.AttemptLog[1].State, s.AttemptLog[1].Category), "continued ")
		next := k.one(id)
		same(w, "the second link", words(next.Type, next.Fence.Attempt, next.Retries, next.Continues, string(next.Input), len(next.Steps), next.Tags["a.b"], next.Priority,
			next.TimeLeft > 55*time.Second), "continue 2 0 1 second 0 c 7 true")
		w.fail(next.Fence, "y")
		w.advance(2 * time.Second)
		w.settleTime()
		again := k.one(id)
		same(w, "its retry", words(again.Type, again.Fence.Attempt, again.Retries, again.Continues, string(again.Input)), "retry 3 1 1 second")
		w.complete(again.Fence, "r")
		s = w.code(id, "T1")
		same(w, "ended", words(s.Attempts, s.Continues, s.Retries), "4 1 1")
	}},
	{name: "a call whose reply was lost is answered as the first one, and an old holder changes nothing", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		old := k.one(id).Fence
		w.goOn(old, "a")
		w.unchanged("a repetition", func() {
			already, err := w.e.ContinueExecution(w.ctx, old, []byte("a"))
			w.no(err)
			same(w, "already", already, true)
		})
		f := k.one(id).Fence
		for what, call := range map[string]func() error{
			"completes": func() error {
				s, _, err := w.e.CompleteExecutions(w.ctx, w.p, []engine.Completion{{Fence: old}}, nil)
				return errors.Join(err, s[0].Err)
			},
			"records": func() error { _, err := w.e.RecordStep(w.ctx, old, "s", nil, 0); return err },
			"delays":  func() error { _, err := w.e.DelayExecution(w.ctx, old, time.Second); return err },
		} {
			w.unchanged(what, func() { same(w, what, errors.Is(call(), denied.StaleLease), true) })
		}
		w.goOn(f, "b")
		w.unchanged("the old one", func() {
			_, err := w.e.ContinueExecution(w.ctx, old, []byte("a"))
			same(w, "refused", errors.Is(err, denied.NotActive), true)
		})
		same(w, "links", w.read(id).Continues, 2)
	}},
	{name: "messages that nobody received come to the next link, receipts start over, and a repeated message counts once", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		f := k.one(id).Fence
		w.mail(id, "user", "1")
		w.mail(id, "user", "2")
		same(w, "received", w.take(f, "user·1", "user", 1, ""), "1 user 1")
		again := engine.Message{Mailbox: "user", Key: "k", Encoding: "utf8", Payload: []byte("3")}
		_, err := w.e.SendMessage(w.ctx, id, again)
		w.no(err)
		w.goOn(f, "a")
		w.mail(id, "user", "4")
		m, err := w.e.SendMessage(w.ctx, id, again)
		w.no(err)
		same(w, "known", m.Already, true)
		f = k.one(id).Fence
		same(w, "the rest", w.take(f, "user·1", "user", 10, ""), "2 user 2, 3 user 3, 4 user 4")
		same(w, "nothing is left", w.boxes(id), "4 0 ")
	}},
	{name: "waitpoints that are open are closed, and their names are free", run: func(w *env) {
		w.seed()
		id := w.create()
		k := w.worker("w1")
		f := k.one(id).Fence
		p := w.pend(f, "draft")
		w.goOn(f, "a")
		_, err := w.deliver(id, p, suspend.SentSignal{Name: "go"})
		same(w, "a signal", errors.Is(err, flowfabric.ErrWaitpointClosed), true)
		f = k.one(id).Fence
		next := w.pend(f, "draft")
		same(w, "another one", next.ID != p.ID, true)
		w.suspend(f, waitFor(spelled("O")))
		w.code(id, "S1")
	}},
	{name: "an answer of the link before is not brought to the next one", run: func(w *env) {
		id := w.create()
		k := w.worker("w1")
		w.suspend(k.one(id).Fence, waitFor(spelled("O")))
		w.resume(id)
		f := k.one(id).Fence
		w.goOn(f, "a")
		c := k.one(id)
		same(w, "told", c.Resume == nil, true)
		w.suspend(c.Fence, waitFor(spelled("O")))
		w.resume(id)
		same(w, "steps", len(k.one(id).Steps), 0)
	}},
	{name: "the streams of the link before stay whole, and older attempts go with all they had", run: func(w *env) {
		id := w.create(retries(5))
		k := w.worker("w1")
		for link := range 4 {
			for range link % 2 {
				f := k.one(id).Fence
				w.frames(f, 1, 2)
				w.fail(f, "x")
				w.advance(2 * time.Second)
				w.settleTime()
			}
			f := k.one(id).Fence
			w.frames(f, 1, 3)
			w.goOn(f, fmt.Sprint(link))
		}
		// Attempts: 0 | 1 2 | 3 | 4 5 |
		s := w.read(id)
		same(w, "kept", words(s.Attempts, s.Continues, len(s.AttemptLog), s.AttemptLog[0].Index), "6 4 2 4")
		for attempt, want := range []string{"removed 0 4", "removed 0 4", "removed 0 4", "removed 0 4", "attempt_failure 2 4", "continued 3 4"} {
			m, err := w.e.ReadAttemptStream(w.ctx, id, uint32(attempt))
			w.no(err)
			same(w, fmt.Sprint("attempt ", attempt), words(m.ClosedReason, m.Count, m.Kept), want)
		}
		events, err := w.e.ReadHistory(w.ctx, id)
		w.no(err)
		var claims, links []string // also of the links whose attempts are not kept
		for _, e := range events {
			switch e.Kind {
			case engine.EventClaimed:
				claims = append(claims, fmt.Sprint(e.Attempt))
			case engine.EventContinued:
				links = append(links, fmt.Sprintf("%d:%s", e.Attempt, e.Detail))
			}
		}
		same(w, "what the history tells", words(claims, links), "[0 2 3 4 5] [0:1 2:2 3:3 5:4]")
		m, err := w.e.ReadAttemptStream(w.ctx, id, 5)
		w.no(err)
		same(w, "no later attempt repeats its frames", m.Recorded.Sequence, 3)
	}},
	{name: "an input of any size replaces any other", run: func(w *env) {
		sizes := []int{0, 3, 1024, 1025, limits.MaxPayload, 0, 5000, 5, 2000, 2001, 0}
		id := w.create()
		k := w.worker("w1")
		for _, n := range sizes {
			w.goOn(k.one(id).Fence, strings.Repeat("x", n))
			c := k.one(id)
			if len(c.Input) == 0 && n > 0 { // more than a claim brings
				input, _, err := w.e.ReadInput(w.ctx, id)
				w.no(err)
				c.Input = input
			}
			same(w, fmt.Sprint(n, " bytes"), words(bytes.Equal(c.Input, bytes.Repeat([]byte("x"), n)), w.read(id).InputBytes), words(true, n))
			w.release(c.Fence)
		}
		f := k.one(id).Fence
		w.refuses("too large", flowfabric.ErrPayloadTooLarge, "input: at most 1048576 bytes", func() error {
			_, err := w.e.ContinueExecution(w.ctx, f, make([]byte, limits.MaxPayload+1))
			return err
		})
	}},
	{name: "the key, the deadline and the quota's slot are those of the execution", run: func(w *env) {
		item := w.item(deadline(time.Hour), payload([]byte("in")))
		item.Key = engine.SubmitKey{ID: uuid.New(), For: -1}
		_, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{item})
		w.no(err)
		k := w.worker("w1")
		w.goOn(k.one(item.ID).Fence, "other")
		again := w.item(payload([]byte("in")))
		again.Key, again.Digest = item.Key, item.Digest
		made, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{again})
		w.no(err)
		same(w, "the same execution", words(made[0].Err, made[0].ID == item.ID), words(nil, true))
		w.advance(time.Hour)
		w.tick()
		w.code(item.ID, "T4")
	}},
	{name: "an end while a link waits is that of an execution that ran", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		w.goOn(k.one(id).Fence, "a")
		_, err := w.e.CancelExecution(w.ctx, id, engine.Cancellation{Source: engine.CancelOperator, Reason: "enough"})
		w.no(err)
		w.check()
		w.code(id, "T3")
		w.replay(id, engine.Replay{DropSteps: true})
		c := k.one(id)
		same(w, "a replay runs the last link", words(c.Type, c.Continues, string(c.Input)), "replay 1 a")
		w.complete(c.Fence, "r")
		_, err = w.e.PurgeExecution(w.ctx, id, 0)
		w.no(err)
		w.check()
	}},
}
