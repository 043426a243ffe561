package chat

import (
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/stream"
)

// teller makes events from items, one after the other.
type teller struct {
	events []event // not taken yet

	users   int    // messages of the user so far
	user    string // id of the last one
	open    string // the current message of the assistant, "" for none
	steps   int    // answers that are whole
	answers bool   // an answer is being told
	part    string // the current part
	thinks  bool   // it is what the model thinks
	parts   int    // of the message
	text    strings.Builder
	thought strings.Builder
	calls   []*call
	held    []event // to be told when a message begins
	asks    []asking
	answer  agent.Message // the last whole one, its cost not told yet
	unpaid  bool
	total   agent.Usage
	stop    agent.StopReason
	model   string
	doing   doing
	state   flowfabric.PublicState
	// elsewhere says that the items are of another link, or older than the agent's run.
	elsewhere bool
	headless  bool // pieces belong to an answer whose beginning is missing
}

// take are the events since it was called last.
func (t *teller) take() []event {
	made := t.events
	t.events = nil
	return made
}

func (t *teller) tell(at stream.Position, e event) {
	e.at, e.message = at, t.open
	t.events = append(t.events, e)
}

// add makes the events of an item, and marks the last one.
func (t *teller) add(i item) {
	before := len(t.events)
	defer func() {
		if n := len(t.events); n > before {
			t.events[n-1].last = true
		}
	}()
	switch i.what {
	case itemSaid:
		t.message(i.at, i.said, true)
	case itemFound:
		t.result(i.at, i.said)
	case itemFrame:
		t.frame(i)
	case itemChild:
		t.child(i)
	case itemWaits:
		t.waits(i.at, i.waits)
	case itemGoesOn:
		t.goesOn(i.at)
	case itemRetry:
		t.notice(i.at, event{name: noticeRetry, when: i.end.At, text: i.end.Message})
	case itemGap:
		t.notice(i.at, event{name: noticeGap})
	case itemEnd:
		t.ended(i)
	}
}

// begin begins a message of the assistant, if none is open.
func (t *teller) begin(at stream.Position) {
	t.doing = doingAnswer
	if t.open != "" {
		return
	}
	t.open, t.parts, t.calls, t.total, t.stop, t.model = replyTo(t.user), 0, nil, agent.Usage{}, "", ""
	t.tell(at, event{kind: kindBegan})
	for _, e := range t.held {
		t.tell(at, e)
	}
	t.held = nil
}

// step begins an answer, if none is open.
func (t *teller) step(at stream.Position) {
	t.begin(at)
	if t.answers {
		return
	}
	t.settle(at)
	t.answers = true
	t.text.Reset()
	t.thought.Reset()
	t.tell(at, event{kind: kindStep, step: t.step0()})
}

// piece adds a piece of a text or of reasoning.
func (t *teller) piece(at stream.Position, thinks bool, text string) {
	if text == "" {
		return
	}
	t.step(at)
	first := t.part == "" || t.thinks != thinks
	if first {
		t.closePart(at)
		t.parts++
		t.part, t.thinks = strconv.Itoa(t.parts), thinks
	}
	e := event{kind: kindText, part: t.part, first: first, text: text}
	if thinks {
		e.kind = kindThought
		t.thought.WriteString(text)
	} else {
		t.text.WriteString(text)
	}
	t.tell(at, e)
}

func (t *teller) closePart(at stream.Position) {
	if t.part != "" {
		t.tell(at, event{kind: kindPartEnd, part: t.part, thought: t.thinks})
		t.part = ""
	}
}

// close ends the current answer.
func (t *teller) close(at stream.Position) {
	t.closePart(at)
	t.settle(at)
	t.answers = false
}

// message adds a message of a conversation. An answer from before the link has no known cost.
func (t *teller) message(at stream.Position, m agent.Message, before bool) {
	switch m.Role {
	case agent.User:
		t.saidBy(at, m)
	case agent.ToolRole:
		t.result(at, m)
	case agent.Assistant:
		t.whole(at, m)
		if before {
			t.settle(at)
		}
	}
}

// saidBy adds a message of the user, or a notice of a limit or a form.
func (t *teller) saidBy(at stream.Position, m agent.Message) {
	switch {
	case strings.HasPrefix(m.From, limits.FromLimit):
		t.notice(at, event{name: noticeLimit, text: m.Text()})
		return
	case m.From == limits.FromForm:
		t.notice(at, event{name: noticeForm, text: m.Text()})
		return
	case !people(m):
		t.notice(at, event{name: noticeSummary, text: m.Text()})
		return
	}
	t.close(at)
	t.users++
	t.user = m.ID
	if t.user == "" {
		t.user = "p" + strconv.Itoa(t.users)
	}
	t.open, t.doing, t.headless = "", doingAnswer, false
	t.events = append(t.events, event{kind: kindSaid, at: at, message: t.user, said: m})
}

// whole adds a complete answer: the parts that its pieces lack.
func (t *teller) whole(at stream.Position, m agent.Message) {
	t.step(at)
	t.headless = false
	told, thought := t.text.String(), t.thought.String()
	for _, p := range m.Parts {
		switch p.Type {
		case agent.PartText:
			t.piece(at, false, unsaid(&told, p.Text))
		case agent.PartReasoning:
			t.piece(at, true, unsaid(&thought, p.Text))
		}
	}
	t.closePart(at)
	t.steps++
	t.answer, t.unpaid, t.answers = m, true, false
	for _, p := range m.Parts {
		if p.Type == agent.PartImage || p.Type == agent.PartFile {
			t.tell(at, event{kind: kindFile, file: p})
		}
	}
	for n, c := range m.Calls {
		known := t.calling(at, c.ID, c.Name)
		known.ToolCall, known.number, known.whole = c, n+1, true
		t.tell(at, event{kind: kindCalled, step: known.step, number: known.number, call: c})
	}
	t.calls = slices.DeleteFunc(t.calls, func(c *call) bool { // the answer says which there are
		if !c.whole {
			t.tell(at, event{kind: kindResult, step: c.step, call: c.ToolCall, preliminary: true, said: agent.Message{
				Role: agent.ToolRole, Call: c.ID, Tool: c.Name, Failed: true, Parts: agent.Text(brokenOff)}})
		}
		return !c.whole
	})
}

// unsaid is the part of a text that its pieces lack. Pieces with another text are left: the text was cut for its frame.
func unsaid(told *string, text string) string {
	if rest, ok := strings.CutPrefix(*told, text); ok {
		*told = rest
		return ""
	}
	if rest, ok := strings.CutPrefix(text, *told); ok {
		*told = ""
		return rest
	}
	*told = ""
	return ""
}

// step0 is the number of the current or last answer; 0 if it is of another link.
func (t *teller) step0() int {
	switch {
	case t.elsewhere:
		return 0
	case t.answers:
		return t.steps + 1
	}
	return t.steps
}

// cost is the payload of a frame of type agent.FrameUsage.
type cost struct {
	Turn  int              `json:"turn"`
	Model string           `json:"model"`
	Usage agent.Usage      `json:"usage"`
	Stop  agent.StopReason `json:"stop"`
}

// settle ends an answer whose cost is not known.
func (t *teller) settle(at stream.Position) {
	if !t.unpaid {
		return
	}
	stop := agent.StopEnd
	if len(t.answer.Calls) > 0 {
		stop = agent.StopTools
	}
	t.paid(at, cost{Stop: stop})
}

func (t *teller) paid(at stream.Position, c cost) {
	if !t.unpaid {
		return
	}
	t.unpaid = false
	if c.Turn > 0 && c.Turn != t.steps {
		for _, known := range t.calls {
			if known.step == t.steps {
				known.step = c.Turn
			}
		}
		t.steps = c.Turn
	}
	t.total = plus(t.total, c.Usage)
	t.stop = c.Stop
	if c.Model != "" {
		t.model = c.Model
	}
	t.tell(at, event{kind: kindAnswer, step: t.step0(), said: t.answer, usage: c.Usage, total: t.total, stop: c.Stop,
		model: c.Model})
	t.answer = agent.Message{}
}

func plus(a, b agent.Usage) agent.Usage {
	return agent.Usage{Input: a.Input + b.Input, Output: a.Output + b.Output, CacheRead: a.CacheRead + b.CacheRead,
		CacheWrite: a.CacheWrite + b.CacheWrite, Reasoning: a.Reasoning + b.Reasoning,
		Estimated: a.Estimated + b.Estimated}
}

// notice adds a notice to the message of the assistant that it is about.
func (t *teller) notice(at stream.Position, e event) {
	e.kind = kindNotice
	if t.open == "" {
		t.held = append(t.held, e)
		return
	}
	t.tell(at, e)
}

// ended adds the end of the execution.
func (t *teller) ended(i item) {
	t.goesOn(i.at)
	t.close(i.at)
	t.doing, t.state = doingEnded, i.end.State
	t.tell(i.at, event{kind: kindEnded, state: i.end.State, category: i.end.Category, text: i.end.Message,
		stop: t.stop, total: t.total, model: t.model, when: i.end.At.Round(time.Millisecond),
		halt: &halted{By: i.end.By, Reason: i.end.Message}})
}
