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
	"github.com/flowfabric/flowfabric-go/internal/timeline"
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
	{name: "a link begins with its input, all retries and the whole timeout, and nothing of the one before",
		run: func(w *env) {
			id := w.create(retries(2), timeout(time.Minute), payload([]byte("first")),
				tags(map[string]string{"a.b": "c"}), priority(7))
			k := w.worker("w1")
			w.fail(k.one(id).Fence, "x")
			w.advance(time.Second)
			w.settleTime()
			c := k.one(id)
			w.all("the first link", eq(c.Type, "retry"), eq(c.Fence.Attempt, 2), eq(c.Retries, 1), eq(c.Continues, 0),
				eq(string(c.Input), "first"))
			_, err := w.e.RecordStep(w.ctx, c.Fence, "step", []byte("value"), time.Second)
			w.no(err)
			w.no(w.e.UpdateProgress(w.ctx, c.Fence, 50, "half"))
			w.advance(8 * time.Second)
			w.goOn(c.Fence, "second")
			s := w.code(id, "R1f")
			w.all("waits", eq(s.State.Public, "waiting"), eq(s.Attempts, 2), eq(s.Retries, 0), eq(s.Steps, 0),
				eq(s.Continues, 1), eq(s.InputBytes, 6), eq(s.Progress.Message, ""), eq(s.Failure.Category, ""))
			w.all("its end", eq(s.AttemptLog[1].State, "continued"), eq(s.AttemptLog[1].Category, ""))
			next := k.one(id)
			w.all("the second link", eq(next.Type, "continue"), eq(next.Fence.Attempt, 3), eq(next.Retries, 0),
				eq(next.Continues, 1), eq(string(next.Input), "second"), eq(len(next.Steps), 0),
				eq(next.Tags["a.b"], "c"),
				eq(next.Priority, 7), eq(next.TimeLeft > 55*time.Second, true))
			w.fail(next.Fence, "y")
			w.advance(2 * time.Second)
			w.settleTime()
			again := k.one(id)
			w.all("its retry", eq(again.Type, "retry"), eq(again.Fence.Attempt, 4), eq(again.Retries, 1),
				eq(again.Continues, 1), eq(string(again.Input), "second"))
			w.complete(again.Fence, "r")
			s = w.code(id, "T1")
			w.all("ended", eq(s.Attempts, 4), eq(s.Continues, 1), eq(s.Retries, 1))
		}},
	{name: "a call whose reply was lost is answered as the first one, and an old holder changes nothing",
		run: func(w *env) {
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
				"delays":  func() error { _, err := w.e.DelayExecution(w.ctx, old, time.Second, ""); return err },
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
		w.boxes("nothing is left", id, 4, 0, "")
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
		// Attempts: 1 | 2 3 | 4 | 5 6 |
		s := w.read(id)
		w.all("kept", eq(s.Attempts, 6), eq(s.Continues, 4), eq(len(s.AttemptLog), 2), eq(s.AttemptLog[0].Index, 5))
		for attempt, want := range []struct {
			closed string
			count  uint64
		}{{"removed", 0}, {"removed", 0}, {"removed", 0}, {"removed", 0}, {"attempt_failure", 2}, {"continued", 3}} {
			m, err := w.e.ReadAttemptStream(w.ctx, id, uint32(attempt+1))
			w.no(err)
			w.all(fmt.Sprint("attempt ", attempt+1), eq(m.ClosedReason, want.closed), eq(m.Count, want.count),
				eq(m.Kept, 5))
		}
		events, err := w.e.ReadHistory(w.ctx, id)
		w.no(err)
		var claims, links []string // also of the links whose attempts are not kept
		for _, e := range events {
			switch e.Kind {
			case timeline.EventClaimed:
				claims = append(claims, fmt.Sprint(e.Attempt))
			case timeline.EventContinued:
				links = append(links, fmt.Sprintf("%d:%s", e.Attempt, e.Detail))
			}
		}
		w.all("what the history tells", eqList(claims, "1", "3", "4", "5", "6"),
			eqList(links, "1:1", "3:2", "4:3", "6:4"))
		m, err := w.e.ReadAttemptStream(w.ctx, id, 6)
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
			w.all(fmt.Sprint(n, " bytes"), eq(bytes.Equal(c.Input, bytes.Repeat([]byte("x"), n)), true),
				eq(w.read(id).InputBytes, n))
			w.release(c.Fence)
		}
		f := k.one(id).Fence
		w.refuses("too large", flowfabric.ErrPayloadTooLarge, "input: at most 1048576 bytes", func() error {
			_, err := w.e.ContinueExecution(w.ctx, f, make([]byte, limits.MaxPayload+1))
			return err
		})
	}},
	{name: "the key, the deadline and the gate's slot are those of the execution", run: func(w *env) {
		item := w.item(deadline(time.Hour), payload([]byte("in")))
		item.KeyID, item.Key = uuid.New(), &flowfabric.Key{Text: "k"}
		_, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{item})
		w.no(err)
		k := w.worker("w1")
		w.goOn(k.one(item.ID).Fence, "other")
		again := w.item(payload([]byte("in")))
		again.KeyID, again.Key, again.Digest = item.KeyID, item.Key, item.Digest
		made, err := w.e.CreateExecutions(w.ctx, w.p, []engine.NewExecution{again})
		w.no(err)
		w.all("the same execution", eq[error](made[0].Err, nil), eq(made[0].ID, item.ID))
		w.advance(time.Hour)
		w.tick()
		w.code(item.ID, "T4")
	}},
	{name: "an end while a link waits is that of an execution that ran", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		w.goOn(k.one(id).Fence, "a")
		_, err := w.e.CancelExecution(w.ctx, id, engine.Cancellation{Source: engine.CancelOperator})
		w.no(err)
		w.check()
		w.code(id, "T3")
		w.replay(id, engine.Replay{DropSteps: true})
		c := k.one(id)
		w.all("a replay runs the last link", eq(c.Type, "replay"), eq(c.Continues, 1), eq(string(c.Input), "a"))
		w.complete(c.Fence, "r")
		_, err = w.e.PurgeExecution(w.ctx, id, 0)
		w.no(err)
		w.check()
	}},
}
