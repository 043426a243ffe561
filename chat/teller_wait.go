package chat

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// approvalKey is the key of a question about a call: "approve 2.1 refund", maybe with a name of the agent before it.
var approvalKey = regexp.MustCompile(`(?:^| )approve (\d+)\.(\d+) \S+$`)

// asked is the call of the last answer that a question is about, nil if it is about something else.
func (t *teller) asked(key string) *call {
	found := approvalKey.FindStringSubmatch(key)
	if found == nil {
		return nil
	}
	for _, c := range slices.Backward(t.calls) {
		if strconv.Itoa(c.step) == found[1] && strconv.Itoa(c.number) == found[2] {
			return c
		}
	}
	return nil
}

// waits adds the questions that the execution waits for, if there are any.
func (t *teller) waits(at stream.Position, r *suspend.Record) {
	if r.Mailbox() != "" {
		t.idle(at)
		return
	}
	t.goesOn(at)
	for _, w := range r.Waitpoints {
		q := w.Question
		if q == nil {
			q = r.Question
		}
		if q == nil || !w.Open() || w.Suspension != r.ID {
			continue
		}
		a := asking{ID: w.ID.String(), Key: w.Key, Question: *q}
		e := event{kind: kindQuestion, ask: &a}
		c := t.asked(w.Key)
		if c == nil && approvalKey.MatchString(w.Key) { // the answer was dropped
			continue
		}
		t.begin(at)
		if c != nil {
			e = event{kind: kindAsked, step: c.step, number: c.number, ask: &a, call: c.ToolCall}
		}
		t.tell(at, e)
		t.asks = append(t.asks, a)
	}
	if len(t.asks) > 0 {
		t.doing = doingAsk
	}
}

// idle says that it is the user's turn.
func (t *teller) idle(at stream.Position) {
	t.goesOn(at)
	t.close(at)
	t.doing = doingIdle
	t.tell(at, event{kind: kindIdle, stop: t.stop, total: t.total, model: t.model})
}

// goesOn ends all open questions.
func (t *teller) goesOn(at stream.Position) {
	for _, a := range t.asks {
		t.over(at, a)
	}
	t.asks = nil
	if t.doing == doingAsk {
		t.doing = doingAnswer
	}
}

func (t *teller) over(at stream.Position, a asking) {
	e := event{kind: kindAnswered, ask: &a}
	if c := t.asked(a.Key); c != nil {
		e.call = c.ToolCall
	}
	t.tell(at, e)
}
