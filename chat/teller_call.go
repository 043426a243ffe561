package chat

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/stream"
)

// call is a call of the current message.
type call struct {
	agent.ToolCall
	step, number int
	whole        bool
	done         string // what its result came to, "" if there is none
}

// brokenOff is the result of a call that was never whole.
const brokenOff = "the call was not made: the answer was broken off"

// calling begins a call, unless it has begun.
func (t *teller) calling(at stream.Position, id, name string) *call {
	for _, c := range t.calls {
		if c.ID == id && c.step == t.step0() {
			return c
		}
	}
	c := &call{ToolCall: agent.ToolCall{ID: id, Name: name}, step: t.step0()}
	t.calls = append(t.calls, c)
	t.tell(at, event{kind: kindCalling, step: c.step, call: c.ToolCall})
	return c
}

// called is the last call of an id, nil if there is none.
func (t *teller) called(id string) *call {
	for _, c := range slices.Backward(t.calls) {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// result adds the result of a call, once.
func (t *teller) result(at stream.Position, m agent.Message) {
	c := t.called(m.Call)
	if c == nil {
		return
	}
	text, err := json.Marshal(m)
	if err != nil || c.done == string(text) {
		return
	}
	c.done = string(text)
	t.settle(at)
	t.asks = slices.DeleteFunc(t.asks, func(a asking) bool {
		over := t.asked(a.Key) == c
		if over {
			t.tell(at, event{kind: kindAnswered, ask: &a, call: c.ToolCall})
		}
		return over
	})
	t.tell(at, event{kind: kindResult, step: c.step, number: c.number, call: c.ToolCall, said: m})
}

// childOf is the number of the call in the name of a child, maybe with the take behind it.
var childOf = regexp.MustCompile(` (\d+)\.(\d+)(?: t\d+)?$`)

// child adds the answer of a sub-agent, as an intermediate result of its call.
func (t *teller) child(i item) {
	found := childOf.FindStringSubmatch(i.name)
	if found == nil {
		return
	}
	var m agent.Message
	if json.Unmarshal(i.payload, &m) != nil || m.Role != agent.Assistant || m.Text() == "" {
		return
	}
	for _, c := range t.calls {
		if strconv.Itoa(c.step) == found[1] && strconv.Itoa(c.number) == found[2] && c.done == "" {
			said := agent.Message{Role: agent.ToolRole, Call: c.ID, Tool: c.Name, Parts: agent.Text(m.Text())}
			t.tell(i.at, event{kind: kindResult, step: c.step, number: c.number, call: c.ToolCall, said: said,
				preliminary: true})
		}
	}
}
