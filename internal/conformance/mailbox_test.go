package conformance

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// mail sends a text to a mailbox; that must not be refused.
func (w *env) mail(id flowfabric.ExecutionID, mailbox, text string) engine.Sent {
	w.Helper()
	s, err := w.e.SendMessage(w.ctx, id,
		engine.Message{Mailbox: mailbox, By: "ann", Encoding: "utf8", Payload: []byte(text)})
	w.no(err)
	w.check()
	same(w, "already", s.Already, false)
	return s
}

// take receives up to limit messages; without any, why is recorded. It returns "number mailbox text" of each, and why
// there is none.
func (w *env) take(f flowfabric.Fence, name, mailbox string, limit int, why string) string {
	w.Helper()
	r, recorded, err := w.e.ReceiveMessages(w.ctx, f,
		engine.Receiving{Name: name, Mailbox: mailbox, Limit: limit, Why: suspend.Cause(why)})
	w.no(err)
	w.check()
	if !recorded {
		w.all("nothing was recorded", eq(len(r.Messages), 0), eq(r.Why, ""))
		return "-"
	}
	return mailed(r.Messages) + string(r.Why)
}

func mailed(messages []suspend.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, fmt.Sprintf("%d %s %.20s", m.Number, m.Mailbox, m.Payload))
	}
	return strings.Join(out, ", ")
}

// boxes fails unless it is told of the messages of an execution that so many came, that so many wait, and those.
func (w *env) boxes(what string, id flowfabric.ExecutionID, total uint64, waiting int, messages string) {
	w.Helper()
	m, err := w.e.ReadMessages(w.ctx, id, 0, 100)
	w.no(err)
	w.all(what, eq(m.Total, total), eq(m.Waiting, waiting), eq(mailed(m.Messages), messages))
}

// forMail waits for a message of a mailbox.
func forMail(mailbox string) suspending { return waitFor(spelled("M", mailbox)) }

// Messages to an execution, by name.
var mailboxScenarios = []scenario{
	{name: "messages are received once and in order, each from its mailbox, whenever they were sent",
		run: func(w *env) {
			id := w.create()
			same(w, "before the first claim", w.mail(id, "user", "1"), engine.Sent{Number: 1, Waiting: 1})
			k := w.worker("w1")
			f := k.one(id).Fence
			same(w, "while it runs", w.mail(id, "user", "2"), engine.Sent{Number: 2, Waiting: 2})
			w.mail(id, "other", "3")
			w.mail(id, "user", "4")
			w.boxes("told", id, 4, 4, "1 user 1, 2 user 2, 3 other 3, 4 user 4")
			same(w, "the first", w.take(f, "user·1", "user", 1, ""), "1 user 1")
			same(w, "those of the other one", w.take(f, "other·1", "other", 10, ""), "3 other 3")
			w.boxes("told", id, 4, 2, "2 user 2, 4 user 4")
			w.delay(f, time.Second)
			w.mail(id, "user", "5")
			w.advance(2 * time.Second)
			w.settleTime()
			f = k.one(id).Fence
			same(w, "the rest", w.take(f, "user·2", "user", 100, ""), "2 user 2, 4 user 4, 5 user 5")
			same(w, "no more", w.take(f, "user·3", "user", 100, ""), "-")
			w.boxes("told", id, 5, 0, "")
			w.mail(id, "user", "6")
			same(w, "numbers go on", w.take(f, "user·3", "user", 1, ""), "6 user 6")
		}},
	{name: "a message is told with its sender, its time, and every byte of its payload", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		payload := []byte("\x00\x1f\x1e7:\n\xff")
		begin := w.now()
		for _, encoding := range []string{"bytes", "json", "utf8"} {
			_, err := w.e.SendMessage(w.ctx, id,
				engine.Message{Mailbox: " ~", By: "ann lee", Encoding: encoding, Payload: payload})
			w.no(err)
		}
		_, err := w.e.SendMessage(w.ctx, id, engine.Message{Mailbox: " ~", Encoding: "json"})
		w.no(err)
		r, _, err := w.e.ReceiveMessages(w.ctx, c.Fence, engine.Receiving{Name: "x", Mailbox: " ~", Limit: 4})
		w.no(err)
		for i, m := range r.Messages {
			if i < 3 && (!bytes.Equal(m.Payload, payload) || m.By != "ann lee") || m.SentAt.UnixMilli() < begin ||
				m.SentAt.UnixMilli() > w.now() {
				w.Errorf("%d: %q of %q at %s", i, m.Payload, m.By, m.SentAt)
			}
		}
		w.all("encodings", eq(r.Messages[0].Encoding, "bytes"), eq(r.Messages[1].Encoding, "json"),
			eq(r.Messages[2].Encoding, "utf8"), eq(len(r.Messages[3].Payload), 0), eq(r.Messages[3].By, ""))
	}},
	{name: "a receipt is a step: every later run and a replay get the same messages, and a purge removes them",
		run: func(w *env) {
			k, c := w.holder(retries(3))
			id := c.Fence.Execution
			w.mail(id, "user", "1")
			w.mail(id, "user", "2")
			same(w, "taken", w.take(c.Fence, "user·1", "user", 1, ""), "1 user 1")
			w.unchanged("again after a lost reply",
				func() { same(w, "again", w.take(c.Fence, "user·1", "user", 1, ""), "1 user 1") })
			w.unchanged("another mailbox under this name",
				func() { same(w, "again", w.take(c.Fence, "user·1", "other", 9, "looked"), "1 user 1") })
			w.advance(time.Second)
			same(w, "only looked", w.take(c.Fence, "other·1", "other", 1, "looked"), "looked")
			w.mail(id, "other", "3")
			w.unchanged("what was found empty stays so",
				func() { same(w, "again", w.take(c.Fence, "other·1", "other", 1, "looked"), "looked") })
			w.lists("steps", id, "messages user·1 1 0s "+strconv.Itoa(w.receiptBytes(id, "user·1")),
				"messages other·1 1 0s 6")
			w.fail(c.Fence, "x")
			w.advance(5 * time.Second)
			w.settleTime()
			c = k.one(id)
			receipt, err := engine.DecodeReceipt(c.Steps[engine.StepReceipt+"user·1"])
			w.no(err)
			w.all("of the claim", eq(mailed(receipt.Messages), "1 user 1"), eq(receipt.Why, ""))
			same(w, "the next attempt", w.take(c.Fence, "user·2", "user", 9, ""), "2 user 2")
			w.no(w.complete(c.Fence, "r").Err)
			w.unchanged("a message to what has ended", func() {
				_, err := w.e.SendMessage(w.ctx, id,
					engine.Message{Mailbox: "user", Encoding: "json", Payload: []byte("1")})
				w.is(err, denied.NotSignalable)
			})
			w.must("ff_replay_execution", proto, ids.UUID(id).String(), uuid.NewString(), "keep", "1")
			w.boxes("after a replay the rest is there", id, 3, 1, "3 other 3")
			c = k.one(id)
			same(w, "and the receipts", len(c.Steps), 3)
			w.no(w.complete(c.Fence, "r").Err)
			w.must("ff_replay_execution", proto, ids.UUID(id).String(), uuid.NewString(), "drop", "1")
			c = k.one(id)
			same(w, "from scratch", len(c.Steps), 0)
			w.boxes("from scratch", id, 3, 1, "3 other 3")
			w.no(w.complete(c.Fence, "r").Err)
			_, err = w.e.PurgeExecution(w.ctx, id, day)
			w.no(err)
			w.check()
			keys, _ := w.lasting()
			for _, key := range keys {
				if strings.Contains(key, ids.UUID(id).String()) {
					w.Errorf("%s is left", key)
				}
			}
			_, err = w.e.SendMessage(w.ctx, id, engine.Message{Mailbox: "user", Encoding: "json"})
			w.is(err, flowfabric.ErrResultPurged)
			_, err = w.e.ReadMessages(w.ctx, id, 0, 1)
			w.is(err, flowfabric.ErrResultPurged)
			_, err = w.e.SendMessage(w.ctx, mint.Join(w.p, uuid.New()),
				engine.Message{Mailbox: "user", Encoding: "json"})
			w.is(err, flowfabric.ErrNotFound)
		}},
	{name: "a message resumes what waits for its mailbox, and nothing else", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		w.suspend(c.Fence, forMail("user"), awaiting("user·1"), within(time.Hour, "fail"))
		same(w, "why", strings.Contains(w.why(id).Sentence, `needs a message to mailbox "user"`), true)
		w.mail(id, "other", "1")
		w.mail(id, "use", "2")
		w.mail(id, "user2", "3")
		w.code(id, "S1")
		w.mail(id, "user", "4")
		w.code(id, "R1i")
		w.mail(id, "user", "5")
		c = k.one(id)
		w.all("told", eq(told(c.Resume), "message:"), eq(c.Resume.Name, "user·1"), eq(w.record(id).By, "ann"))
		same(w, "its answer is listed", len(w.listed(id)), 1)
		same(w, "taken", w.take(c.Fence, "user·1", "user", 1, ""), "4 user 4")
		same(w, "then the receipt is, alone", len(w.listed(id)), 1)
		m := w.stopped(c.Fence, awaiting("approval"))
		same(w, "the receipt says all, so the answer is no step", len(w.hash(w.k.Steps(ids.UUID(id)))), 1)
		w.mail(id, "user", "6")
		w.code(id, "S1")
		w.signal(id, m, "go", "resume_condition_satisfied")
		c = k.one(id)
		same(w, "came while it waited for something else", w.take(c.Fence, "user·2", "user", 9, ""),
			"5 user 5, 6 user 6")
	}},
	{name: "who waits for a message that is there goes on at once", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		w.mail(id, "other", "1")
		w.mail(id, "user", "2")
		q := suspension(forMail("user"), awaiting("user·1"))
		s, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
		w.no(err)
		w.check()
		w.all("satisfied", eq(s.Satisfied, true), eq(told(&s.Resume), "already_satisfied:"))
		w.unchanged("again after a lost reply", func() {
			again, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
			w.no(err)
			w.all("satisfied", eq(again.Satisfied, true), eq(again.Already, true),
				eq(told(&again.Resume), "already_satisfied:"))
		})
		same(w, "taken", w.take(c.Fence, "user·1", "user", 1, ""), "2 user 2")
		w.suspend(c.Fence, forMail("user"), awaiting("user·2"))
		w.mail(id, "user", "3")
		k.one(id)
	}},
	{name: "a wait for a message ends by time or by an operator like any other, and the receipt keeps how",
		run: func(w *env) {
			w.seed()
			_, c := w.holder()
			id := c.Fence.Execution
			w.suspend(c.Fence, forMail("user"), awaiting("user·1"), within(time.Minute, "auto_resume"))
			w.advance(2 * time.Minute)
			w.settleTime()
			c = w.worker("later").one(id)
			same(w, "told", told(c.Resume), "timeout:")
			same(w, "recorded", w.take(c.Fence, "user·1", "user", 1, "timeout"), "timeout")
			w.mail(id, "user", "1")
			same(w, "for good", w.take(c.Fence, "user·1", "user", 1, ""), "timeout")
			same(w, "the next", w.take(c.Fence, "user·2", "user", 1, "timeout"), "1 user 1")
			w.suspend(c.Fence, forMail("user"), awaiting("user·3"))
			w.resume(id)
			c = w.worker("later").one(id)
			same(w, "told", told(c.Resume), "operator:")
			w.mail(id, "user", "2")
			same(w, "what came meanwhile counts", w.take(c.Fence, "user·3", "user", 1, "operator"), "2 user 2")
			w.suspend(c.Fence, forMail("user"), awaiting("user·4"), within(time.Minute, "fail"))
			w.advance(2 * time.Minute)
			w.settleTime()
			w.code(id, "T2")
		}},
	{name: "a repeat is answered as the first time, by its id or its key, while it is one of the last 1,000",
		run: func(w *env) {
			_, c := w.holder()
			id := c.Fence.Execution
			m := engine.Message{ID: mint.UUID(), Mailbox: "user", Key: "k", Encoding: "json", Payload: []byte("1")}
			send := func(m engine.Message) engine.Sent {
				w.Helper()
				s, err := w.e.SendMessage(w.ctx, id, m)
				w.no(err)
				return s
			}
			same(w, "first", send(m), engine.Sent{Number: 1, Waiting: 1})
			other := m
			other.ID, other.Mailbox = mint.UUID(), "other"
			w.unchanged("the same key",
				func() { same(w, "again", send(other), engine.Sent{Number: 1, Waiting: 1, Already: true}) })
			other.Key = ""
			same(w, "an id", send(other), engine.Sent{Number: 2, Waiting: 2})
			w.unchanged("the same id",
				func() { same(w, "again", send(other), engine.Sent{Number: 2, Waiting: 2, Already: true}) })
			w.take(c.Fence, "x", "user", 1, "")
			w.take(c.Fence, "y", "other", 1, "")
			w.unchanged("after it was received",
				func() { same(w, "again", send(m), engine.Sent{Number: 1, Waiting: 0, Already: true}) })
			for i := range limits.KnownMessages - 2 {
				send(engine.Message{Mailbox: "user", Encoding: "json", Payload: []byte(strconv.Itoa(i))})
			}
			w.check()
			w.unchanged("the last that is known",
				func() { same(w, "again", send(m), engine.Sent{Number: 1, Waiting: 998, Already: true}) })
			same(w, "one more", send(engine.Message{Mailbox: "user", Encoding: "json"}),
				engine.Sent{Number: 1001, Waiting: 999})
			w.take(c.Fence, "z", "user", 100, "")
			same(w, "it is new", send(m), engine.Sent{Number: 1002, Waiting: 900})
			w.unchanged("the second is known", func() { same(w, "again", send(m).Already, true) })
			w.check()
			w.no(w.complete(c.Fence, "").Err)
			w.unchanged("a repeat after the end", func() { same(w, "again", send(m).Number, 1002) })
		}},
	{name: "a mailbox that is full refuses, stores nothing, and takes messages again when some were received",
		run: func(w *env) {
			_, c := w.holder()
			id := c.Fence.Execution
			send := func(n int) error {
				_, err := w.e.SendMessage(w.ctx, id,
					engine.Message{Mailbox: "user", Encoding: "bytes", Payload: make([]byte, n)})
				return err
			}
			for range limits.MaxMessages {
				w.no(send(1))
			}
			w.unchanged("one more", func() { w.is(send(1), denied.MailboxFull) })
			w.check()
			w.take(c.Fence, "a", "user", 100, "")
			w.no(send(1))
			for i := range 9 {
				w.take(c.Fence, "b"+strconv.Itoa(i), "user", 100, "")
			}
			same(w, "left", w.take(c.Fence, "c", "user", 100, ""), "1001 user \x00")
			sent := 0
			for ; send(limits.MaxMessage) == nil; sent++ {
			}
			same(w, "of 64 KiB", sent, 15) // what is stored beside a payload counts, too
			w.unchanged("one more", func() { w.is(send(limits.MaxMessage), denied.MailboxFull) })
			w.unchanged("a larger one", func() { w.is(send(limits.MaxMessage+1), flowfabric.ErrPayloadTooLarge) })
			r, _, err := w.e.ReceiveMessages(w.ctx, c.Fence, engine.Receiving{Name: "d", Mailbox: "user", Limit: 100})
			w.no(err)
			same(w, "by one receipt, the first and what fits into 128 KiB", len(r.Messages), 1)
			page, err := w.e.ReadMessages(w.ctx, id, 1004, 100)
			w.no(err)
			w.all("a page", eq(len(page.Messages), 1), eq(page.Messages[0].Number, 1005), eq(page.Waiting, 14),
				eq(page.Total, 1016))
			w.check()
		}},
	{name: "a receipt that does not fit among the steps is refused and takes nothing", run: func(w *env) {
		_, c := w.holder()
		id := c.Fence.Execution
		w.mail(id, "user", "1")
		for i := range limits.MaxSteps - 1 {
			_, err := w.e.RecordStep(w.ctx, c.Fence, "s"+strconv.Itoa(i), nil, 0)
			w.no(err)
		}
		same(w, "the last", w.take(c.Fence, "user·1", "user", 1, ""), "1 user 1")
		w.mail(id, "user", "2")
		for _, why := range []string{"", "looked"} {
			w.unchanged("one more", func() {
				_, _, err := w.e.ReceiveMessages(w.ctx, c.Fence,
					engine.Receiving{Name: "user·2", Mailbox: "user", Limit: 1, Why: suspend.Cause(why)})
				w.is(err, denied.StepLimit)
			})
		}
		w.unchanged("nothing to record", func() { same(w, "empty", w.take(c.Fence, "user·2", "other", 1, ""), "-") })
		_, c = w.holder()
		w.mail(c.Fence.Execution, "user", "1")
		used := 0
		for i := range limits.MaxStepTotal/limits.MaxStepBytes - 1 {
			name := "s" + strconv.Itoa(i)
			_, err := w.e.RecordStep(w.ctx, c.Fence, name, make([]byte, limits.MaxStepBytes), 0)
			w.no(err)
			used += len(name) + limits.MaxStepBytes
		}
		left := len("\x1fm:user·1") + 40 // what the receipt of a text of one byte would take, or a little more
		_, err := w.e.RecordStep(w.ctx, c.Fence, "last", make([]byte, limits.MaxStepTotal-used-len("last")-left), 0)
		w.no(err)
		w.mail(c.Fence.Execution, "other", strings.Repeat("x", 20))
		w.unchanged("bytes", func() {
			_, _, err := w.e.ReceiveMessages(w.ctx, c.Fence,
				engine.Receiving{Name: "other·1", Mailbox: "other", Limit: 1})
			w.is(err, denied.StepLimit)
		})
		same(w, "what fits", w.take(c.Fence, "user·1", "user", 1, ""), "1 user 1")
	}},
	{name: "a receipt covers the frames that its run has appended, as a step does", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		f := k.one(id).Fence
		w.mail(id, "user", "1")
		w.frames(f, 1, 2)
		w.take(f, "user·1", "user", 1, "")
		same(w, "recorded", w.meta(f).Recorded.Sequence, 2)
		w.frames(f, 3, 1)
		w.take(f, "user·2", "user", 1, "")
		same(w, "nothing was recorded", w.meta(f).Recorded.Sequence, 2)
		w.take(f, "user·2", "user", 1, "looked")
		same(w, "recorded", w.meta(f).Recorded.Sequence, 3)
	}},
	{name: "only the holder receives", run: func(w *env) {
		k := w.worker("w1")
		id := w.create()
		f := k.one(id).Fence
		w.mail(id, "user", "1")
		w.release(f)
		w.unchanged("the former holder", func() {
			_, _, err := w.e.ReceiveMessages(w.ctx, f, engine.Receiving{Name: "user·1", Mailbox: "user", Limit: 1})
			w.is(err, denied.NotActive)
		})
		next := k.one(id).Fence
		w.unchanged("an earlier claim", func() {
			_, _, err := w.e.ReceiveMessages(w.ctx, f, engine.Receiving{Name: "user·1", Mailbox: "user", Limit: 1})
			w.is(err, denied.StaleLease)
		})
		same(w, "the holder", w.take(next, "user·1", "user", 1, ""), "1 user 1")
	}},
	{name: "a condition on a mailbox out of bounds is refused", run: func(w *env) {
		_, c := w.holder()
		q := suspension(forMail(strings.Repeat("x", 97)))
		w.refuses("condition", denied.Condition, "mailbox: 1..96 bytes of printable ASCII", func() error {
			_, err := w.e.SuspendExecution(w.ctx, c.Fence, q)
			return err
		})
		w.refuses("with a waitpoint", denied.Condition, "extra_binding_not_referenced_by_condition", func() error {
			_, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(waitFor(spelled("M", "a"), minted("wp"))))
			return err
		})
	}},
	{name: "an audit removes messages whose execution is gone", damaged: "its record is removed", run: func(w *env) {
		id := w.create()
		w.mail(id, "user", "1")
		w.quiet = true
		w.set("DEL", w.k.Core(ids.UUID(id)))
		a := w.fcall("ff_audit_keys", proto, "1", "2", "mb", ids.UUID(id).String(), "", "mk", ids.UUID(id).String(), "")
		same(w, "findings", a.slots[0], "2")
		for _, key := range w.keys() {
			if strings.Contains(key, ":mb:") || strings.Contains(key, ":mk:") {
				w.Errorf("%s is left", key)
			}
		}
	}},
}

// receiptBytes is the size of a receipt as it is stored.
func (w *env) receiptBytes(id flowfabric.ExecutionID, name string) int {
	return len(w.hash(w.k.Steps(ids.UUID(id)))[engine.StepReceipt+name])
}

// wireSend is a message as it travels.
func wireSend(id flowfabric.ExecutionID, message string) []string {
	return []string{proto, ids.UUID(id).String(), "user", message, "key", "ann", "json", "1"}
}
