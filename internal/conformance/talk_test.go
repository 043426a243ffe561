package conformance

import (
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// halted asks for a stop in somebody's name and returns its request, and "already", or "already by another's" and who,
// and the steps of the turn.
func (w *env) halted(id flowfabric.ExecutionID, by string, request flowfabric.UUID) string {
	w.Helper()
	s, err := w.e.StopTurn(trail.As(w.ctx, by, "enough"), id, request)
	w.no(err)
	w.check()
	same(w, "another's", s.Other, s.Request != request.String())
	words := []string{s.By}
	if s.Already {
		words = append(words, "already")
	}
	return strings.Join(append(words, s.Steps...), ", ")
}

// speaks records a step of a turn.
func (w *env) speaks(f flowfabric.Fence, name, turn string) (engine.Recorded, error) {
	w.Helper()
	r, err := w.e.RecordTurn(w.ctx, f, engine.Step{Name: name, Value: []byte("v"), Turn: turn})
	w.check()
	return r, err
}

func (w *env) nothingToStop(id flowfabric.ExecutionID) {
	w.Helper()
	w.unchanged("nothing to stop", func() {
		_, err := w.e.StopTurn(w.ctx, id, mint.UUID())
		w.is(err, denied.NothingToStop)
	})
}

// Turns of a run that talks, and what ends them.
var talkScenarios = []scenario{
	{name: "a stop before the last word wins: the answer that would end the turn is refused", run: func(w *env) {
		k, c := w.holder()
		f, id, request := c.Fence, c.Fence.Execution, mint.UUID()
		_, err := w.speaks(f, "model 1", "")
		w.no(err)
		_, err = w.speaks(f, "tool 1.1 x", "")
		w.no(err)
		same(w, "stopped", w.halted(id, "anna", request), "anna, model 1, tool 1.1 x")
		lost := w.renew(k, 0).Lost
		w.all("told", eq(len(lost), 1), eq(lost[0].Cause, "stop:"+request.String()), eq(lost[0].Told(), true))
		w.unchanged("refused", func() {
			_, err := w.speaks(f, "model 2", engine.TurnOver)
			w.is(err, denied.TurnStopped)
		})
		r, err := w.speaks(f, "tool 1.2 x", "")
		w.no(err)
		same(w, "another step is told", r.Stop, request.String())
		r, err = w.speaks(f, "model 2", engine.TurnStopped)
		w.no(err)
		same(w, "heeded", r.Stop, request.String())
		same(w, "no stop waits", w.core(id)["sp"], "")
		w.nothingToStop(id)
		same(w, "the request again", w.halted(id, "anna", request),
			"anna, already, model 1, tool 1.1 x, tool 1.2 x, model 2")
		var told []string
		events, err := w.e.ReadHistory(w.ctx, id)
		w.no(err)
		for _, e := range events {
			if e.Kind == timeline.EventStopped {
				told = append(told, e.By+" "+e.Reason)
			}
		}
		sameList(w, "history", told, "anna enough")
	}},
	{name: "a stop behind the last word is refused, and the next message begins a turn of its own", run: func(w *env) {
		_, c := w.holder()
		f, id := c.Fence, c.Fence.Execution
		_, err := w.speaks(f, "model 1", engine.TurnOver)
		w.no(err)
		w.nothingToStop(id)
		same(w, "nothing came", w.take(f, "user·1", "user", 1, "looked"), "looked")
		w.nothingToStop(id)
		w.mail(id, "user", "hello")
		same(w, "it came", w.take(f, "user·2", "user", 1, ""), "1 user hello")
		_, err = w.speaks(f, "tool 2.1 x", "")
		w.no(err)
		same(w, "stopped", w.halted(id, "anna", mint.UUID()), "anna, tool 2.1 x")
		_, err = w.speaks(f, "stop 1", engine.TurnStopped)
		w.no(err)
		w.nothingToStop(id)
		_, err = w.speaks(f, "turn", engine.TurnBegins)
		w.no(err)
		same(w, "another turn", w.halted(id, "anna", mint.UUID()), "anna")
		same(w, "completed", w.complete(f, "r").Err, error(nil))
		w.all("forgotten", eq(w.core(id)["tn"], ""), eq(w.core(id)["sp"], ""))
		w.refuses("an ended one", denied.NotSignalable, string(codes.Completed), func() error {
			_, err := w.e.StopTurn(w.ctx, id, mint.UUID())
			return err
		})
		_, err = w.e.StopTurn(w.ctx, w.item().ID, mint.UUID())
		w.is(err, flowfabric.ErrNotFound)
	}},
	{name: "of two stops one waits, the other is told whose that is, and a repeat is its own", run: func(w *env) {
		k, c := w.holder()
		id, first := c.Fence.Execution, mint.UUID()
		same(w, "first", w.halted(id, "anna", first), "anna")
		same(w, "second", w.halted(id, "ben", mint.UUID()), "anna, already")
		same(w, "again", w.halted(id, "anna", first), "anna, already")
		same(w, "one notice", len(w.renew(k, 0).Lost), 1)
		w.release(c.Fence)
		again := w.worker("w2").one(id)
		same(w, "the next claim tells", again.Stop, first.String())
		s := w.read(id)
		w.all("by", eq(s.StopBy, "anna"), eq(s.StopReason, "enough"))
		_, err := w.e.ContinueExecution(w.ctx, again.Fence, []byte("next"))
		w.no(err)
		w.check()
		same(w, "another input has no stop", w.worker("w3").one(id).Stop, "")
	}},
	{name: "a stop ends a wait for people and a pause, and leaves who waits for a message alone", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		w.suspend(c.Fence, awaiting("it"))
		same(w, "asleep", w.halted(id, "anna", mint.UUID()), "anna")
		w.code(id, "R1i")
		k := w.worker("w2")
		again := k.one(id)
		w.all("resumed", eq(again.Resume.Cause, suspend.CauseOperator), eq(again.Resume.By, "anna"),
			eq(again.Resume.Reason, "enough"), eq(again.Stop != "", true))
		_, err := w.speaks(again.Fence, "stop 1", engine.TurnStopped)
		w.no(err)
		_, err = w.speaks(again.Fence, "turn", engine.TurnBegins)
		w.no(err)
		w.delay(again.Fence, time.Hour)
		same(w, "delayed", w.halted(id, "anna", mint.UUID()), "anna")
		w.code(id, "R1i")
		f := k.one(id).Fence
		_, err = w.speaks(f, "stop 2", engine.TurnStopped)
		w.no(err)
		_, err = w.speaks(f, "turn 2", engine.TurnBegins)
		w.no(err)
		w.suspend(f, forMail("user"))
		w.nothingToStop(id)
		w.mail(id, "user", "hello")
		same(w, "it talks again", w.halted(id, "anna", mint.UUID()), "anna")
	}},
	{name: "a stop that came just before a wait or a pause ends that one, and no later one", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		same(w, "runs", w.halted(id, "anna", mint.UUID()), "anna")
		w.suspend(c.Fence, awaiting("it"))
		w.code(id, "R1i")
		k := w.worker("w2")
		again := k.one(id)
		w.all("resumed", eq(again.Resume.By, "anna"), eq(again.Stop != "", true))
		w.suspend(again.Fence, awaiting("more"))
		w.code(id, "S1")
		_, paused := w.holder()
		id = paused.Fence.Execution
		same(w, "runs", w.halted(id, "anna", mint.UUID()), "anna")
		w.delay(paused.Fence, time.Hour)
		w.code(id, "R1i")
		f := k.one(id).Fence
		w.delay(f, time.Hour)
		w.code(id, "R2ai")
		id = w.create(reclaims(9))
		for i := range 3 {
			c := w.worker("lost" + strconv.Itoa(i)).one(id)
			same(w, "claim", c.Stop, "")
			if i == 2 {
				same(w, "runs", w.halted(id, "anna", mint.UUID()), "anna")
			}
			_, err := w.e.MarkSessionDead(trail.As(w.ctx, "", "test"), w.p, c.Fence.Session)
			w.no(err)
			w.settleTime()
			if i == 1 {
				w.code(id, "R2r")
				w.advance(time.Minute)
				w.settleTime()
			}
		}
		w.code(id, "R1r")
		w.cancel(id)
		_, late := w.holder()
		id = late.Fence.Execution
		same(w, "runs", w.halted(id, "anna", mint.UUID()), "anna")
		w.suspend(late.Fence, forMail("user"))
		w.code(id, "S1")
		same(w, "it came too late", w.core(id)["sp"], "")
	}},
	{name: "a run that is busy hears of messages at once, or its mailbox is shut while it talks", run: func(w *env) {
		k, c := w.holder()
		f, id, told := c.Fence, c.Fence.Execution, uint64(0)
		minds := func(name, busy string) {
			w.Helper()
			_, _, err := w.e.ReceiveMessages(w.ctx, f, engine.Receiving{Name: name, Mailbox: "user", Limit: 1,
				Busy: busy})
			w.no(err)
			w.check()
		}
		hears := func(causes ...string) {
			w.Helper()
			r := w.renew(k, told)
			told = r.Generation
			var all []string
			for _, l := range r.Lost {
				all = append(all, l.Cause)
			}
			sameList(w, "notices", all, causes...)
		}
		w.mail(id, "user", "1")
		hears()
		minds("a", engine.BusyInterrupt)
		w.mail(id, "user", "2")
		w.mail(id, "other", "3")
		hears("message:2")
		minds("b", engine.BusyRefuse)
		refused := func() {
			w.Helper()
			w.refuses("shut", denied.MailboxShut, "user", func() error {
				_, err := w.e.SendMessage(w.ctx, id, engine.Message{Mailbox: "user", Encoding: "json"})
				return err
			})
		}
		refused()
		w.mail(id, "other", "4")
		_, err := w.speaks(f, "model 1", engine.TurnOver)
		w.no(err)
		w.mail(id, "user", "5")
		same(w, "it came", w.take(f, "c", "user", 1, ""), "5 user 5")
		refused()
		w.suspend(f, forMail("user"))
		w.mail(id, "user", "6")
		f = k.one(id).Fence
		refused()
		same(w, "it came", w.take(f, "d", "user", 1, ""), "6 user 6")
		w.delay(f, time.Hour)
		refused()
	}},
	{name: "a stop takes no words that are too long, and lists no step of the library", run: func(w *env) {
		_, c := w.holder()
		id := c.Fence.Execution
		same(w, "looked", w.take(c.Fence, "user·1", "user", 1, "looked"), "looked")
		for i := range 3 {
			_, err := w.speaks(c.Fence, "s"+strconv.Itoa(3-i), "")
			w.no(err)
		}
		_, err := w.e.StopTurn(trail.As(w.ctx, strings.Repeat("b", 300), strings.Repeat("ü", limits.MaxReason)), id,
			mint.UUID())
		w.no(err)
		w.check()
		same(w, "who", w.read(id).StopBy, strings.Repeat("b", 64))
		same(w, "why", len(w.read(id).StopReason), limits.MaxReason)
		same(w, "in order", w.halted(id, "c", mint.UUID()), strings.Repeat("b", 64)+", already, s3, s2, s1")
	}},
}
