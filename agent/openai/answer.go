package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// The fields in which services send reasoning.
const (
	fieldReasoningContent = "reasoning_content"
	fieldReasoning        = "reasoning"
)

// errCut says that the stream ended before the answer did.
var errCut = errors.New("the stream ended before the answer did")

// deltaError is an error of the caller's delta function.
type deltaError struct{ error }

// chunk is one event of the stream: the part of it that is used. Null stands for a field that is not there.
type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Usage   json.RawMessage `json:"usage"`
	Choices []choice        `json:"choices"`
}

type choice struct {
	Index        int    `json:"index"`
	FinishReason string `json:"finish_reason"`
	Delta        struct {
		Content          json.RawMessage `json:"content"`
		Refusal          wire.String     `json:"refusal"`
		ReasoningContent wire.String     `json:"reasoning_content"`
		Reasoning        json.RawMessage `json:"reasoning"`
		ToolCalls        []callPiece     `json:"tool_calls"`
	} `json:"delta"`
}

type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// answer puts the pieces of an answer together.
type answer struct {
	delta         func(agent.Delta) error
	keepReasoning bool

	events    int // how many came
	size      int // bytes of them
	id, model string
	finish    string
	usage     agent.Usage
	refused   bool

	text, reasoning wire.Text
	said, thought   strings.Builder
	thoughtField    string
	calls           []*callParts
	byIndex         map[int]*callParts
	told            map[string]bool // ids of calls
}

// callParts is one tool call.
type callParts struct {
	place     int // among the calls
	id, name  string
	join      wire.Text
	arguments strings.Builder
	told      string // its id in deltas and in the answer; "": it was not told yet
}

func newAnswer(delta func(agent.Delta) error, keepReasoning bool) *answer {
	return &answer{delta: delta, keepReasoning: keepReasoning, byIndex: map[int]*callParts{},
		told: map[string]bool{}}
}

// event takes the data of one event. It reports if that is the mark of the end.
func (a *answer) event(data []byte) (done bool, err error) {
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
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, fmt.Errorf("decode an event: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return false, parseError(data)
	}
	a.id, a.model = cmp.Or(a.id, c.ID), cmp.Or(a.model, c.Model)
	if u, ok := parseUsage(c.Usage); ok {
		a.usage = u
	}
	for _, choice := range c.Choices {
		if choice.Index == 0 { // others come only if the caller's options ask for them
			if err := a.choice(choice); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

func (a *answer) choice(c choice) error {
	a.finish = cmp.Or(c.FinishReason, a.finish)
	if len(c.Delta.ReasoningContent) > 0 {
		a.thoughtField = fieldReasoningContent
		if err := a.think(c.Delta.ReasoningContent); err != nil {
			return err
		}
	} else if thought := (wire.String)(nil); json.Unmarshal(c.Delta.Reasoning, &thought) == nil && len(thought) > 0 {
		a.thoughtField = fieldReasoning
		if err := a.think(thought); err != nil {
			return err
		}
	}
	if err := a.content(c.Delta.Content); err != nil {
		return err
	}
	if len(c.Delta.Refusal) > 0 {
		a.refused = true
		if err := a.say(c.Delta.Refusal); err != nil {
			return err
		}
	}
	for _, piece := range c.Delta.ToolCalls {
		if err := a.callPiece(piece); err != nil {
			return err
		}
	}
	return nil
}

// content takes text, or the list of texts and thoughts that some services send.
func (a *answer) content(raw json.RawMessage) error {
	if len(raw) == 0 || raw[0] != '[' {
		var text wire.String
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &text); err != nil {
				return fmt.Errorf("decode an event: content: %w", err)
			}
		}
		return a.say(text)
	}
	var parts []struct {
		Text     wire.String
		Thinking []struct{ Text wire.String }
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return fmt.Errorf("decode an event: content: %w", err)
	}
	for _, p := range parts {
		for _, t := range p.Thinking {
			if err := a.think(t.Text); err != nil {
				return err
			}
		}
		if err := a.say(p.Text); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) say(piece []byte) error {
	return a.emit(a.text.Add(piece), "")
}

func (a *answer) think(piece []byte) error {
	return a.emit("", a.reasoning.Add(piece))
}

func (a *answer) emit(text, reasoning string) error {
	a.said.WriteString(text)
	a.thought.WriteString(reasoning)
	if text == "" && reasoning == "" {
		return nil
	}
	return a.hand(agent.Delta{Text: text, Reasoning: reasoning})
}

func (a *answer) hand(d agent.Delta) error {
	if err := a.delta(d); err != nil {
		return deltaError{err}
	}
	return nil
}

// tell hands on a piece of a call's arguments. A call is begun with its first piece, or when the answer ends: until
// then its id or the end of its name may come.
func (a *answer) tell(c *callParts, piece string, ended bool) error {
	d := agent.CallDelta{ID: c.told, Arguments: piece}
	if c.told == "" {
		if c.name == "" || c.arguments.Len() == 0 && !ended {
			return nil
		}
		c.told = c.id
		for c.told == "" || a.told[c.told] {
			c.told = fmt.Sprintf("%s_call%d", cmp.Or(c.told, a.id), c.place)
		}
		a.told[c.told] = true
		d = agent.CallDelta{ID: c.told, Name: c.name, Arguments: c.arguments.String()}
	} else if piece == "" {
		return nil
	}
	return a.hand(agent.Delta{Call: &d})
}

// callPiece adds to a tool call. The first piece of a call has its id and name. Services number calls, but some give
// all the same number or none, and some repeat id and name with each piece.
func (a *answer) callPiece(piece callPiece) error {
	c := a.callOf(piece)
	if c.name != piece.Function.Name {
		c.name += piece.Function.Name
	}
	raw := piece.Function.Arguments
	if len(raw) > 0 && raw[0] == '{' { // some services send the object itself
		c.arguments.Write(raw)
		return a.tell(c, string(raw), false)
	}
	var text wire.String
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &text); err != nil {
			return fmt.Errorf("decode an event: arguments of a tool call: %w", err)
		}
	}
	more := c.join.Add(text)
	c.arguments.WriteString(more)
	return a.tell(c, more, false)
}

// callOf finds the call that a piece belongs to, or begins one.
func (a *answer) callOf(piece callPiece) *callParts {
	var c *callParts
	if piece.Index != nil {
		c = a.byIndex[*piece.Index]
	} else if len(a.calls) > 0 {
		c = a.calls[len(a.calls)-1]
	}
	another := piece.Index == nil && piece.ID == "" && piece.Function.Name != "" && c != nil && c.name != ""
	if c != nil && !another && (piece.ID == "" || c.id == "" || piece.ID == c.id) {
		c.id = cmp.Or(c.id, piece.ID)
		return c
	}
	c = &callParts{id: piece.ID, place: len(a.calls)}
	a.calls = append(a.calls, c)
	if piece.Index != nil {
		a.byIndex[*piece.Index] = c
	}
	return c
}

// response is the whole answer, or errCut.
func (a *answer) response() (agent.Response, error) {
	if a.finish == "" {
		return agent.Response{}, errCut
	}
	if err := a.emit("", a.reasoning.End()); err != nil {
		return agent.Response{}, err
	}
	if err := a.emit(a.text.End(), ""); err != nil {
		return agent.Response{}, err
	}
	message := agent.Message{Role: agent.Assistant, Parts: agent.Text(a.said.String())}
	if a.thought.Len() > 0 {
		thoughts := agent.Part{Type: agent.PartReasoning, Text: a.thought.String()}
		message.Parts = append([]agent.Part{thoughts}, message.Parts...)
	}
	for _, c := range a.calls {
		if c.name == "" {
			return agent.Response{}, errors.New("a tool call has no name")
		}
		rest := c.join.End()
		c.arguments.WriteString(rest)
		if err := a.tell(c, rest, true); err != nil {
			return agent.Response{}, err
		}
		message.Calls = append(message.Calls,
			agent.ToolCall{ID: c.told, Name: c.name, Arguments: wire.Arguments(c.arguments.String())})
	}
	if a.keepReasoning && a.thought.Len() > 0 {
		kept, err := json.Marshal(
			private{&thought{Field: cmp.Or(a.thoughtField, fieldReasoningContent), Text: a.thought.String()}})
		if err != nil {
			return agent.Response{}, err
		}
		message.Private = kept
	}
	stop, err := a.stop()
	return agent.Response{Message: message, Stop: stop, Usage: a.usage, Model: a.model, ID: a.id}, err
}

// stop is why the answer ended. Some services say "stop" where the model wants tools.
func (a *answer) stop() (agent.StopReason, error) {
	switch a.finish {
	case "content_filter", "refusal", "safety":
		return agent.StopRefusal, nil
	case "error", "abort", "insufficient_system_resource":
		return "", &Error{Message: "the answer ended by " + a.finish}
	}
	switch {
	case a.refused:
		return agent.StopRefusal, nil
	case a.finish == "length" || a.finish == "max_tokens" || a.finish == "model_length":
		return agent.StopLength, nil
	case len(a.calls) > 0:
		return agent.StopTools, nil
	}
	return agent.StopEnd, nil
}

// parseUsage reads usage. What cannot be read counts as not there: the answer is worth more.
func parseUsage(raw json.RawMessage) (agent.Usage, bool) {
	var u *struct {
		Prompt        int64 `json:"prompt_tokens"`
		Completion    int64 `json:"completion_tokens"`
		Total         int64 `json:"total_tokens"`
		PromptDetails struct {
			Cached  int64 `json:"cached_tokens"`
			Written int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		Hit int64 `json:"prompt_cache_hit_tokens"`
	}
	if json.Unmarshal(raw, &u) != nil || u == nil {
		return agent.Usage{}, false
	}
	usage := agent.Usage{
		Input:      max(0, u.Prompt),
		Output:     max(0, u.Completion),
		CacheRead:  max(0, cmp.Or(u.PromptDetails.Cached, u.Hit)),
		CacheWrite: max(0, u.PromptDetails.Written),
		Reasoning:  max(0, u.CompletionDetails.Reasoning),
	}
	// Some services count reasoning in the total only.
	if u.Total > 0 && usage.Reasoning > 0 && u.Total-usage.Input > usage.Output {
		usage.Output = u.Total - usage.Input
	}
	return usage, true
}
