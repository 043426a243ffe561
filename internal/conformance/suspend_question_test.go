package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// strangeQuestion has what separates the parts of the records around it.
const strangeQuestion = "{\"title\":\"a\x1b\x1c\x1d=\x1f\",\"choices\":[{\"name\":\"go\"},{\"name\":\"stop\"}]}"

func questioned(text string) suspending { return func(q *engine.Suspension) { q.Question = text } }

const shipIt = `{"title":"Ship it?","text":"42 tests passed.\nLast commit: fix","choices":[{"name":"go","label":"Ship"},{"name":"stop"}],"assignee":"ops@example.com"}`

// titled is the title of the question that a waitpoint's token opens; "" for none.
func (w *env) titled(id flowfabric.ExecutionID, m engine.Minted) string {
	w.Helper()
	q, err := w.e.ReadQuestion(w.ctx, id, m.ID, m.Digest)
	w.no(err)
	if q.Question == nil {
		return ""
	}
	return q.Question.Title
}

// standing is an answer to a question; it is zero if there is none.
type standing struct{ name, source, payload string }

// stands is the answer that the holder of a waitpoint's token is told, and whether the waitpoint is open.
func (w *env) stands(id flowfabric.ExecutionID, m engine.Minted) (answer standing, open bool) {
	w.Helper()
	q, err := w.e.ReadQuestion(w.ctx, id, m.ID, m.Digest)
	w.no(err)
	if q.Answer == nil {
		return standing{}, q.Open
	}
	if q.Answer.Waitpoint != m.ID || q.Answer.AcceptedAt.IsZero() {
		w.Errorf("answer %+v", q.Answer)
	}
	return standing{q.Answer.Name, q.Answer.Source, string(q.Answer.Payload)}, q.Open
}

// clicked is a decision on the answer page.
func clicked(name, by, payload string) suspend.SentSignal {
	return suspend.SentSignal{Name: name, Source: by, IdempotencyKey: "page", Payload: []byte(payload)}
}

// unasked fails unless a signal that answers nothing of an open question is refused, for every sender, and nothing
// changes.
func (w *env) unasked(id flowfabric.ExecutionID, m engine.Minted, name, want string) {
	w.Helper()
	w.unchanged("signal "+name, func() {
		_, err := w.deliver(id, m, suspend.SentSignal{Name: name})
		w.is(err, flowfabric.ErrInvalidInput)
		same(w, "with the token", detail(err, 0), want)
		_, err = w.e.ApproveWaitpoint(w.ctx, id, m.Key, suspend.SentSignal{ID: mint.UUID(), Name: name,
			SourceType: "operator", Source: "op", Encoding: "json", Payload: []byte("true")})
		w.is(err, flowfabric.ErrInvalidInput)
		same(w, "as an operator", detail(err, 0), want)
	})
}

// What people are asked.
var questionScenarios = []scenario{
	{name: "a question is told with its suspension, and to those who have the token", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		early := w.pend(c.Fence, "draft")
		same(w, "nobody waits yet", w.titled(id, early), "")
		q, _ := w.suspend(c.Fence, awaiting("ship"), because("waiting_for_approval"), questioned(shipIt),
			onPending(early))
		r := w.record(id)
		w.all("question", eq(r.Question.Title, "Ship it?"), eq(r.Question.Text, "42 tests passed.\nLast commit: fix"),
			eqList(r.Question.Choices, suspend.Choice{Name: "go", Label: "Ship"},
				suspend.Choice{Name: "stop", Label: "stop"}),
			eq(r.Question.Assignee, "ops@example.com"))
		same(w, "for the token", w.titled(id, early), "Ship it?")
		w.unchanged("read by nobody", func() {
			for _, digest := range []string{strings.Repeat("0", 64), minted("x").Digest, strings.Repeat("0", 63)} {
				_, err := w.e.ReadQuestion(w.ctx, id, early.ID, digest)
				w.is(err, flowfabric.ErrInvalidToken)
			}
			_, err := w.e.ReadQuestion(w.ctx, id, mint.UUID(), early.Digest)
			w.is(err, flowfabric.ErrInvalidToken)
			_, err = w.e.ReadQuestion(w.ctx, mint.Join(w.p, uuid.New()), early.ID, early.Digest)
			w.is(err, flowfabric.ErrInvalidToken)
		})
		w.send(id, early, suspend.SentSignal{Name: "go", Source: "ann"}, waitwords.EffectSatisfied)
		r = w.record(id)
		w.all("once it is answered", eq(r.Question.Title, "Ship it?"), eq(r.By, "ann"), eq(r.ID, q.ID))
		same(w, "for who had the token", w.titled(id, early), "Ship it?")
		next := w.stopped(k.one(id).Fence, awaiting("again"), waitFor(conditionOf(names(1, 1, "go")), minted("other")))
		w.all("the next one has none", eq(w.record(id).Question == nil, true), eq(w.titled(id, next), ""),
			eq(w.titled(id, early), ""))
		w.resume(id)
		same(w, "the operator", w.record(id).By, "op")
		w.stopped(k.one(id).Fence, questioned(shipIt))
		w.all("tokens of earlier waits do not open it", eq(w.titled(id, early), ""), eq(w.titled(id, next), ""))
	}},
	{name: "a suspension without a question takes no more room, and the flow of a member is told", run: func(w *env) {
		w.seed()
		_, plain := w.holder()
		w.stopped(plain.Fence)
		text, err := w.do("GET", w.k.Waits(ids.UUID(plain.Fence.Execution))).ToString()
		w.no(err)
		same(w, "named fields", strings.Contains(text, "qu="), false)
		points := w.waits(plain.Fence.Execution).Waitpoints
		same(w, "waitpoints", len(points), 1)
		for id := range points {
			same(w, "how often the id of its waitpoint is written", strings.Count(text, id), 1)
		}
		same(w, "flow", w.record(plain.Fence.Execution).Flow.IsZero(), true)
		f := w.flow().node("a", nil)
		f.submit(engine.SealClosed)
		c := w.worker("w1").one(f.id.Member("a"))
		w.stopped(c.Fence)
		same(w, "flow of a member", w.record(c.Fence.Execution).Flow, f.id)
	}},
	{name: "a question of 96 KiB is kept whole, whatever is in it, and a larger one is refused", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		large := `{"title":"` + strings.Repeat("x", 98304-12) + `"}`
		w.unchanged("too large", func() {
			_, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(questioned(strings.Replace(large, "x", "xx", 1))))
			w.is(err, flowfabric.ErrInvalidInput)
		})
		for _, text := range []string{"nan", `"what?"`, "{", "[]", " {}"} {
			w.unchanged("not a question: "+text, func() {
				_, err := w.e.SuspendExecution(w.ctx, c.Fence, suspension(questioned(text)))
				w.is(err, flowfabric.ErrInvalidInput)
			})
		}
		w.stopped(c.Fence, awaiting("it"), questioned(large))
		same(w, "kept", len(w.record(c.Fence.Execution).Question.Title), 98304-12)
		_, c = w.holder()
		m := w.stopped(c.Fence, questioned(strangeQuestion), within(time.Hour, "escalate"))
		same(w, "strange", w.waits(c.Fence.Execution).Suspension["qu"], strangeQuestion)
		w.advance(2 * time.Hour)
		w.tick()
		w.code(c.Fence.Execution, "S5")
		same(w, "after it was escalated", w.waits(c.Fence.Execution).Suspension["qu"], strangeQuestion)
		w.signal(c.Fence.Execution, m, "go", waitwords.EffectSatisfied)
	}},
	{name: "only a choice answers a question, also one that came early", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		m := w.pend(c.Fence, "draft")
		w.signal(id, m, "maybe", waitwords.EffectBuffered)
		choices := func(q *engine.Suspension) { q.Condition = conditionOf(names(1, 1, "go", "stop")) }
		w.stopped(c.Fence, awaiting("draft"), questioned(shipIt), onPending(m), choices)
		w.unasked(id, m, "perhaps", "signal name: perhaps is no choice of the question, want one of go, stop")
		w.code(id, "S1")
		w.signal(id, m, "stop", waitwords.EffectSatisfied)
		w.tooLate("a second answer", id, m, "resumed")
		same(w, "answer", string(k.one(id).Resume.Signals[0].Name), "stop")
	}},
	{name: "the answer that stands is told to those who have the token, also after later waits and the end",
		run: func(w *env) {
			w.seed()
			k, c := w.holder()
			id := c.Fence.Execution
			first := w.stopped(c.Fence, awaiting("first"), questioned(shipIt),
				waitFor(conditionOf(names(1, 1, "go", "stop")), minted("first")))
			tell := func(what string, m engine.Minted, want standing, wantOpen bool) {
				w.Helper()
				answer, open := w.stands(id, m)
				w.all(what, eq(answer, want), eq(open, wantOpen))
			}
			tell("nobody answered", first, standing{}, true)
			w.unasked(id, first, "maybe", "signal name: maybe is no choice of the question, want one of go, stop")
			tell("an answer that does not count", first, standing{}, true)
			large := `"` + strings.Repeat("x", 2000) + `"`
			w.send(id, first, clicked("go", "ann", large), waitwords.EffectSatisfied)
			tell("answered", first, standing{"go", "ann", large}, false)
			w.unchanged("read by nobody", func() {
				_, err := w.e.ReadQuestion(w.ctx, id, first.ID, minted("x").Digest)
				w.is(err, flowfabric.ErrInvalidToken)
			})
			second := w.stopped(k.one(id).Fence, awaiting("second"),
				waitFor(conditionOf(names(1, 1, "yes")), minted("second")))
			tell("after a later wait began", first, standing{"go", "ann", large}, false)
			w.send(id, second, suspend.SentSignal{Name: "perhaps", Payload: []byte("0")}, waitwords.EffectNone)
			w.send(id, second, suspend.SentSignal{Name: "yes", Payload: []byte("2")}, waitwords.EffectSatisfied)
			third := w.stopped(k.one(id).Fence, awaiting("third"),
				waitFor(conditionOf(names(1, 1, "go")), minted("third")))
			w.send(id, third, suspend.SentSignal{Name: "go", Payload: []byte("3")}, waitwords.EffectSatisfied)
			tell("answered by the first signal", third, standing{"go", "", "3"}, false)
			w.complete(k.one(id).Fence, "1")
			tell("after the end", second, standing{"yes", "", "2"}, false)
			tell("of the first wait", first, standing{"go", "ann", large}, false)
		}},
	{name: "while a waitpoint is open only a decision of the page stands", run: func(w *env) {
		w.seed()
		k, c := w.holder()
		id := c.Fence.Execution
		m := w.pend(c.Fence, "draft")
		w.send(id, m, suspend.SentSignal{Name: "go", Source: "hook", Payload: []byte("0")}, waitwords.EffectBuffered)
		answer, open := w.stands(id, m)
		w.all("a callback", eq(answer, standing{}), eq(open, true))
		w.send(id, m, clicked("go", "ann", "1"), waitwords.EffectBuffered)
		answer, open = w.stands(id, m)
		w.all("before the wait", eq(answer, standing{"go", "ann", "1"}), eq(open, true))
		w.stopped(c.Fence, awaiting("draft"), onPending(m),
			func(q *engine.Suspension) { q.Condition = conditionOf(count(3, "s", "go", 1)) })
		answer, open = w.stands(id, m)
		w.all("one of three", eq(answer, standing{"go", "ann", "1"}), eq(open, true))
		w.send(id, m, suspend.SentSignal{Name: "go", Source: "bob", Payload: []byte("2")}, waitwords.EffectSatisfied)
		answer, open = w.stands(id, m)
		w.all("closed", eq(answer, standing{"go", "ann", "1"}), eq(open, false))
		w.complete(k.one(id).Fence, "1")
	}},
	{name: "what a question does not ask for is refused while it is open, whatever the condition is made of",
		run: func(w *env) {
			w.seed()
			k, c := w.holder()
			id := c.Fence.Execution
			first := w.stopped(c.Fence, awaiting("all"), questioned(shipIt),
				waitFor(conditionOf(names(1, 2, "go", "stop"),
					count(1, "s", "any", 2), group(2, 1, 2)), minted("all"), minted("other")))
			w.unasked(id, first, "any", "signal name: any is no choice of the question, want one of go, stop")
			w.signal(id, first, "go", waitwords.EffectAppended)
			w.signal(id, first, "go", waitwords.EffectAgain) // asked for, and there already
			w.resume(id)
			silent := w.stopped(k.one(id).Fence, awaiting("second"),
				waitFor(conditionOf(names(1, 1, "yes")), minted("second")))
			w.signal(id, silent, "perhaps", waitwords.EffectNone) // nobody asks
		}},
	{name: "several questions close one by one, answered or over, and what came is told", run: func(w *env) {
		w.seed()
		_, c := w.holder(deadline(48 * time.Hour))
		id := c.Fence.Execution
		early := w.pend(c.Fence, "early")
		w.signal(id, early, "go", waitwords.EffectBuffered)
		one, two, three := minted("one"), minted("two"), minted("three")
		several := func(q *engine.Suspension) {
			q.Several, q.Question = true, `{"several":{"one":{"title":"One?","choices":[{"name":"go"}]},`+
				`"two":{"title":"Two?"},"three":{"title":"Three?"},"early":{"title":"Early?"}}}`
			q.Condition = conditionOf(names(1, 1, "go", "stop"), names(2, 1, "go", "stop"), names(3, 1, "go", "stop"),
				names(4, 1, "go", "stop"), group(4, 1, 2, 3, 4))
			q.Bindings = []engine.Binding{{Minted: one, Within: time.Hour}, {Minted: two, Within: 3 * time.Hour},
				{Minted: three}, {Minted: early, Pending: true}}
		}
		q, _ := w.suspend(c.Fence, awaiting("all"), because("waiting_for_approval"), several)
		open := func(what, want string) {
			w.Helper()
			var titles []string
			for _, p := range w.record(id).Waitpoints {
				if p.Open() {
					titles = append(titles, p.Question.Title)
				}
			}
			slices.Sort(titles)
			same(w, what, strings.Join(titles, " "), want)
		}
		open("what came early is answered", "One? Three? Two?")
		same(w, "the first", w.record(id).Question.Title, "One?")
		same(w, "for the token", w.titled(id, two), "Two?")
		w.unasked(id, two, "maybe", "signal name: maybe is no choice of the question, want one of go, stop")
		w.tooLate("answered before", id, early, "answered")
		w.signal(id, three, "stop", waitwords.EffectAppended)
		w.tooLate("answered", id, three, "answered")
		open("two are left", "One? Two?")
		w.advance(2 * time.Hour)
		w.tick()
		w.code(id, "S2")
		open("one is over", "Two?")
		w.tooLate("over", id, one, "timed_out")
		w.advance(2 * time.Hour)
		w.tick()
		w.code(id, "R1i")
		r := w.claims(id).Resume
		var told []string
		for _, s := range r.Signals {
			told = append(told, s.WaitpointKey+" "+s.Name)
		}
		slices.Sort(told)
		w.all("told", eq(r.Suspension, q.ID), eq(r.Cause, suspend.CauseTimeout),
			eq(strings.Join(told, ", "), "early go, one __timeout, three stop, two __timeout"))
		_, c = w.holder()
		id = c.Fence.Execution
		one, two = minted("one"), minted("two")
		w.suspend(c.Fence, awaiting("all"), func(q *engine.Suspension) {
			q.Several, q.Question = true, `{"several":{"one":{"title":"One?"},"two":{"title":"Two?"}}}`
			q.Condition = conditionOf(names(1, 1, "go"), names(2, 1, "go"), group(2, 1, 2))
			q.Bindings = []engine.Binding{{Minted: one}, {Minted: two}}
		})
		w.send(id, two, suspend.SentSignal{Name: "go", Payload: []byte(`"` + strings.Repeat("x", 3000) + `"`)},
			waitwords.EffectAppended)
		w.resume(id)
		r = w.claims(id).Resume
		w.all("an operator", eq(len(r.Signals), 1), eq(r.Cause, suspend.CauseOperator),
			eq(len(r.Signals[0].Payload), 3002))
	}},
	{name: "what closed without an answer has none", run: func(w *env) {
		w.seed()
		_, c := w.holder()
		id := c.Fence.Execution
		m := w.stopped(c.Fence, awaiting("it"), questioned(shipIt))
		w.resume(id)
		answer, open := w.stands(id, m)
		w.all("an operator resumed it", eq(answer, standing{}), eq(open, false))
	}},
}
