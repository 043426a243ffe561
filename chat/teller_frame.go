package chat

import (
	"encoding/json"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
)

// frame makes the events of a frame.
func (t *teller) frame(i item) {
	switch i.typ {
	case agent.FrameMessage:
		var m agent.Message
		if json.Unmarshal(i.payload, &m) == nil {
			t.message(i.at, m, false)
		}
	case agent.FrameToken, agent.FrameReasoning:
		if !t.headless {
			t.piece(i.at, i.typ == agent.FrameReasoning, string(i.payload))
		}
	case agent.FrameCall, agent.FrameArguments:
		t.callFrame(i)
	case agent.FrameUsage:
		var c cost
		if json.Unmarshal(i.payload, &c) == nil {
			t.paid(i.at, c)
		}
	case agent.FrameTurn:
		var h halted
		if json.Unmarshal(i.payload, &h) == nil {
			t.begin(i.at)
			t.closePart(i.at)
			t.stop = agent.StopStopped
			t.tell(i.at, event{kind: kindStopped, halt: &h})
		}
	case agent.FrameSummary:
		t.notice(i.at, event{name: noticeSummary})
	case agent.FrameResult:
		var m agent.Message
		if json.Unmarshal(i.payload, &m) == nil {
			t.result(i.at, m)
		}
	default:
		t.application(i)
	}
}

// callFrame adds a piece of a call.
func (t *teller) callFrame(i item) {
	if t.headless {
		return
	}
	if i.typ == agent.FrameArguments {
		if c := t.called(i.correlation); c != nil && !c.whole {
			t.tell(i.at, event{kind: kindArguments, step: c.step, call: c.ToolCall, text: string(i.payload)})
		}
		return
	}
	var c agent.ToolCall
	if json.Unmarshal(i.payload, &c) == nil {
		t.step(i.at)
		t.closePart(i.at)
		t.calling(i.at, c.ID, c.Name)
	}
}

// application adds a frame of the application that is for people.
func (t *teller) application(i item) {
	e := event{kind: kindData, name: strings.TrimPrefix(i.typ, dataPrefix), id: i.correlation, preliminary: i.fleeting,
		value: jsonOf(i.payload)}
	switch {
	case i.typ == frameSource && json.Valid(i.payload):
		e = event{kind: kindSource, value: i.payload}
	case !strings.HasPrefix(i.typ, dataPrefix) || e.name == "":
		return
	}
	if t.open == "" {
		t.held = append(t.held, e)
		return
	}
	t.tell(i.at, e)
}

// jsonOf is a payload as JSON: a text if it is none.
func jsonOf(payload []byte) json.RawMessage {
	if json.Valid(payload) {
		return payload
	}
	text, _ := json.Marshal(string(payload)) // bytes that are no UTF-8 are replaced
	return text
}
