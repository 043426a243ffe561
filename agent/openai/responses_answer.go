package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// responseEvent is one event of a stream of the Responses API: the part of it that is used.
type responseEvent struct {
	Type      string          `json:"type"`
	Index     int             `json:"output_index"`
	Summary   int             `json:"summary_index"`
	Delta     json.RawMessage `json:"delta"`
	Item      json.RawMessage `json:"item"`
	Arguments wire.String     `json:"arguments"`
	Response  struct {
		ID         string            `json:"id"`
		Model      string            `json:"model"`
		Error      json.RawMessage   `json:"error"`
		Output     []json.RawMessage `json:"output"`
		Usage      responseUsage     `json:"usage"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`
}

type responseUsage struct {
	Input        int64 `json:"input_tokens"`
	Output       int64 `json:"output_tokens"`
	InputDetails struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// item is one item of an answer.
type item struct {
	kind, id, name  string
	text, reasoning wire.Text       // of a message or of reasoning
	spoke           bool            // pieces of it came
	summary         int             // which part of the reasoning came last
	arguments       strings.Builder // of a call
	told            bool            // that the call began
	raw             json.RawMessage // as the service ended it
}

// itemContent is what an item has when it is whole.
type itemContent struct {
	Type      string      `json:"type"`
	CallID    string      `json:"call_id"`
	Name      string      `json:"name"`
	Phase     string      `json:"phase"`
	Encrypted string      `json:"encrypted_content"`
	Arguments wire.String `json:"arguments"`
	Content   []struct {
		Type    string      `json:"type"`
		Text    wire.String `json:"text"`
		Refusal wire.String `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text wire.String `json:"text"`
	} `json:"summary"`
}

// responseAnswer puts an answer of the Responses API together.
type responseAnswer struct {
	answer // its texts, events, id and model
	items  map[int]*item
	ended  string // completed or incomplete; "" is not yet
	why    string // it is incomplete
	keep   bool
}

func newResponseAnswer(delta func(agent.Delta) error, keep bool) *responseAnswer {
	return &responseAnswer{answer: answer{delta: delta}, items: map[int]*item{}, keep: keep}
}

// event takes the data of one event. It reports if that is the last one.
func (a *responseAnswer) event(data []byte) (done bool, err error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return false, nil
	}
	a.events++
	if a.size += len(data); a.size > wire.MostAnswer {
		return false, fmt.Errorf("the answer has more than %d bytes", wire.MostAnswer)
	}
	if bytes.Equal(data, []byte("[DONE]")) {
		return true, nil
	}
	var e responseEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("decode an event: %w", err)
	}
	a.id, a.model = cmp.Or(e.Response.ID, a.id), cmp.Or(e.Response.Model, a.model)
	switch kind := strings.TrimPrefix(e.Type, "response."); kind {
	case "error", "": // an event of errors, or an error in the shape of HTTP
		return false, parseError(data)
	case "failed", "cancelled":
		failed := parseError(append(append([]byte(`{"error":`), cmp.Or(string(e.Response.Error), "null")...), '}'))
		failed.Message = cmp.Or(failed.Message, "the answer is "+kind)
		return false, failed
	case "output_item.added":
		return false, a.begin(e)
	case "output_item.done":
		return false, a.itemDone(e.Index, e.Item)
	case "output_text.delta", "refusal.delta", "reasoning_text.delta", "reasoning_summary_text.delta",
		"function_call_arguments.delta":
		return false, a.piece(kind, e)
	case "completed", "incomplete":
		return true, a.finishResponse(kind, e)
	}
	return false, nil // of a tool of the service, or one that it has added since
}

// at is the item at an index of the answer.
func (a *responseAnswer) at(index int) *item {
	if a.items[index] == nil {
		a.items[index] = &item{}
	}
	return a.items[index]
}

func (a *responseAnswer) begin(e responseEvent) error {
	var begun itemContent
	if err := json.Unmarshal(e.Item, &begun); err != nil {
		return fmt.Errorf("decode an event: an item: %w", err)
	}
	i := a.at(e.Index)
	i.kind, i.id, i.name = begun.Type, begun.CallID, begun.Name
	return a.call(i, "")
}

// call adds to the arguments of a call, and hands that on.
func (a *responseAnswer) call(i *item, piece string) error {
	i.arguments.WriteString(piece)
	d := agent.CallDelta{ID: i.id, Arguments: piece}
	switch {
	case i.kind != itemFunctionCall || i.id == "" || i.name == "" || i.told && piece == "":
		return nil
	case !i.told:
		i.told = true
		d.Name, d.Arguments = i.name, i.arguments.String()
	}
	return a.hand(agent.Delta{Call: &d})
}

// piece adds to an item.
func (a *responseAnswer) piece(kind string, e responseEvent) error {
	var text wire.String
	if err := json.Unmarshal(e.Delta, &text); err != nil {
		return fmt.Errorf("decode an event: delta: %w", err)
	}
	i := a.at(e.Index)
	switch kind {
	case "function_call_arguments.delta":
		return a.call(i, i.text.Add(text))
	case "refusal.delta":
		a.refused = true
	case "reasoning_text.delta", "reasoning_summary_text.delta":
		if e.Summary > i.summary && i.spoke {
			text = append([]byte("\n\n"), text...)
		}
		i.spoke, i.summary = true, e.Summary
		return a.emit("", i.reasoning.Add(text))
	}
	i.spoke = true
	return a.emit(i.text.Add(text), "")
}

// itemDone ends an item. What came of it in no pieces comes now.
func (a *responseAnswer) itemDone(index int, raw json.RawMessage) error {
	var whole itemContent
	if err := json.Unmarshal(raw, &whole); err != nil || whole.Type == "" {
		return fmt.Errorf("decode an event: an item: %w", cmp.Or(err, errors.New("it has no type")))
	}
	i := a.at(index)
	i.kind, i.id, i.name = whole.Type, cmp.Or(whole.CallID, i.id), cmp.Or(whole.Name, i.name)
	i.raw = json.RawMessage(strings.ToValidUTF8(string(raw), "\uFFFD"))
	switch i.kind {
	case itemFunctionCall:
		rest := i.text.End()
		if rest == "" && i.arguments.Len() == 0 {
			rest = i.text.Add(whole.Arguments) + i.text.End()
		}
		return a.call(i, rest)
	case itemMessage:
		for _, c := range whole.Content {
			a.refused = a.refused || len(c.Refusal) > 0
			if !i.spoke {
				if err := a.emit(i.text.Add(append(c.Text, c.Refusal...)), ""); err != nil {
					return err
				}
			}
		}
		return a.emit(i.text.End(), "")
	case itemReasoning:
		for n, s := range whole.Summary {
			if n > 0 {
				s.Text = append([]byte("\n\n"), s.Text...)
			}
			if !i.spoke {
				if err := a.emit("", i.reasoning.Add(s.Text)); err != nil {
					return err
				}
			}
		}
		return a.emit("", i.reasoning.End())
	}
	return nil
}

// finishResponse takes the last event, which has the whole answer again.
func (a *responseAnswer) finishResponse(kind string, e responseEvent) error {
	a.ended, a.why = kind, e.Response.Incomplete.Reason
	u := e.Response.Usage
	a.usage = agent.Usage{Input: max(0, u.Input), Output: max(0, u.Output), CacheRead: max(0, u.InputDetails.Cached),
		CacheWrite: max(0, u.InputDetails.Written), Reasoning: max(0, u.OutputDetails.Reasoning)}
	for index, raw := range e.Response.Output {
		if i := a.items[index]; i == nil || i.raw == nil {
			if err := a.itemDone(index, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// response is the whole answer, or errCut.
func (a *responseAnswer) response() (agent.Response, error) {
	if a.ended == "" {
		return agent.Response{}, errCut
	}
	var kept keptItems
	keep := false
	calls, ids := []agent.ToolCall(nil), map[string]bool{}
	for _, index := range slices.Sorted(maps.Keys(a.items)) {
		i := a.items[index]
		var whole itemContent
		_ = json.Unmarshal(i.raw, &whole) // it was decoded before, or is not there
		switch i.kind {
		case itemFunctionCall:
			if i.id == "" || i.name == "" || ids[i.id] {
				return agent.Response{}, errors.New("a tool call has no name, or no id of its own")
			}
			ids[i.id] = true
			if err := a.call(i, i.text.End()); err != nil {
				return agent.Response{}, err
			}
			calls = append(calls, agent.ToolCall{ID: i.id, Name: i.name,
				Arguments: wire.Arguments(i.arguments.String())})
			i.raw = fmt.Appendf(nil, `{"type":"function_call","call_id":%s}`, quoted(i.id))
		case itemReasoning:
			if whole.Encrypted == "" {
				continue // the service stores nothing, so that it would not find it again
			}
			keep = true
		default:
			keep = keep || i.kind != itemMessage || whole.Phase != ""
		}
		if i.raw != nil {
			kept.Items = append(kept.Items, i.raw)
		}
	}
	message := agent.Message{Role: agent.Assistant, Parts: agent.Text(a.said.String()), Calls: calls}
	if a.thought.Len() > 0 {
		thoughts := agent.Part{Type: agent.PartReasoning, Text: a.thought.String()}
		message.Parts = append([]agent.Part{thoughts}, message.Parts...)
	}
	if keep && a.keep {
		private, err := json.Marshal(kept)
		if err != nil {
			return agent.Response{}, err
		}
		message.Private = private
	}
	return agent.Response{Message: message, Stop: a.stopReason(len(calls)), Usage: a.usage, Model: a.model,
		ID: a.id}, nil
}

func (a *responseAnswer) stopReason(calls int) agent.StopReason {
	switch {
	case a.refused || a.why == "content_filter":
		return agent.StopRefusal
	case a.ended == "incomplete":
		return agent.StopLength
	case calls > 0:
		return agent.StopTools
	}
	return agent.StopEnd
}

// quoted is text as a JSON string.
func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string always encodes
	}
	return string(data)
}

// count is how many events came.
func (a *answer) count() int { return a.events }
