package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Turn is an answer of the model and what was said to it next. The first turn may have no answer.
type Turn struct {
	Answer  *agent.Message  // not empty, with ids and names of calls that the service accepts
	Results []agent.Message // one for each call of the answer, in their order; Call is the id there
	Said    [][]agent.Part  // by the user, a message each, none of them blank, without reasoning
	At      int             // which message of the conversation it begins with
}

// notRun is the result of a call that has none, because services refuse such a conversation.
const notRun = "The tool was not run."

// Turns brings a conversation into the order that services demand: the results of calls follow their answer at once,
// each call has one, and what the user said meanwhile comes after them. Blank messages are left out. A result without
// its call becomes text of the user. An id that validID refuses becomes another one.
//
// It fails for good if a role is unknown, or if nothing follows the last answer.
func Turns(messages []agent.Message, validID func(string) bool) ([]Turn, error) {
	var turns []Turn
	var open []call // calls of the last answer without a result
	for i, m := range messages {
		switch m.Role {
		case agent.Assistant:
			if !blank(m) {
				settle(turns, open)
				turns, open = begin(turns, m, validID)
				turns[len(turns)-1].At = i
			}
		case agent.ToolRole, agent.User:
			if len(turns) == 0 {
				turns = append(turns, Turn{})
			}
			open = turns[len(turns)-1].hear(m, open)
		default:
			return nil, Refuse(fmt.Errorf("message %d has the unknown role %q", i, m.Role))
		}
	}
	settle(turns, open)
	if len(turns) == 0 {
		return nil, Refuse(errors.New("the conversation has no message"))
	}
	if last := turns[len(turns)-1]; len(last.Results)+len(last.Said) == 0 {
		return nil, Refuse(errors.New("the transcript has no message after the model's last answer"))
	}
	return turns, nil
}

// Marked says which of the turns end where a request's beginnings do, see [agent.Cache]: the last two of those marks
// that are not 0.
func Marked(turns []Turn, cache agent.Cache) map[int]bool {
	marked := map[int]bool{}
	for _, mark := range slices.Backward(cache.Marks) {
		for i := len(turns) - 1; i >= 0 && mark > 0 && len(marked) < 2; i-- {
			if turns[i].At < mark {
				marked[i] = true
				break
			}
		}
	}
	return marked
}

// Refuse marks an error of a request that no service would take.
func Refuse(err error) error {
	return handler.Category("model_refused", handler.Permanent(err))
}

func blank(m agent.Message) bool {
	return len(said(m.Parts)) == 0 && len(m.Calls) == 0 && len(m.Private) == 0
}

// call is a call without a result: the id that the conversation has for it, and its place among the results.
type call struct {
	id   string
	slot int
}

// begin starts a turn with an answer.
func begin(turns []Turn, answer agent.Message, validID func(string) bool) ([]Turn, []call) {
	calls, open := make([]agent.ToolCall, len(answer.Calls)), make([]call, len(answer.Calls))
	seen := map[string]bool{}
	for i, c := range answer.Calls {
		open[i] = call{c.ID, i}
		if !validID(c.ID) || seen[c.ID] {
			c.ID = fmt.Sprintf("call%d_%d", len(turns), i)
		}
		seen[c.ID] = true
		c.Name, c.Arguments = Name(c.Name), Object(c.Arguments)
		calls[i] = c
	}
	answer.Calls = calls
	return append(turns, Turn{Answer: &answer, Results: make([]agent.Message, len(calls))}), open
}

// hear adds what follows an answer, and returns the calls that are still without a result.
func (t *Turn) hear(m agent.Message, open []call) []call {
	if m.Role == agent.ToolRole {
		for i, c := range open {
			if c.id == m.Call {
				m.Call = t.Answer.Calls[c.slot].ID
				t.Results[c.slot] = m
				return append(open[:i:i], open[i+1:]...)
			}
		}
		result := agent.Text(fmt.Sprintf("Result of the tool %s: %s", Name(m.Tool), m.Text()))
		m.Parts = append(result, slices.DeleteFunc(slices.Clone(m.Parts),
			func(p agent.Part) bool { return p.Type == agent.PartText })...)
	}
	if parts := said(m.Parts); len(parts) > 0 {
		t.Said = append(t.Said, parts)
	}
	return open
}

// settle gives a result to the calls of the last turn that have none.
func settle(turns []Turn, open []call) {
	for _, c := range open {
		t := turns[len(turns)-1]
		asked := t.Answer.Calls[c.slot]
		t.Results[c.slot] = agent.Message{Role: agent.ToolRole, Call: asked.ID, Tool: asked.Name,
			Parts: agent.Text(notRun), Failed: true}
	}
}

// Name is a name of a tool that services accept: 1..64 of A-Z a-z 0-9 _ -, with _ for anything else.
func Name(name string) string {
	valid := strings.Map(func(r rune) rune {
		if r < 0x80 && isWord(byte(r)) {
			return r
		}
		return '_'
	}, name)
	if valid == "" {
		return "unknown"
	}
	return valid[:min(len(valid), 64)]
}

// Words reports if an id is 1..most of A-Z a-z 0-9 _ -.
func Words(id string, most int) bool {
	for i := range len(id) {
		if !isWord(id[i]) {
			return false
		}
	}
	return id != "" && len(id) <= most
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
