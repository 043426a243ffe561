package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// deltaError is an error of the caller's delta function.
type deltaError struct{ error }

// event is one event of the stream: the part of it that is used.
type event struct {
	Error      json.RawMessage `json:"error"`
	ID         string          `json:"responseId"`
	Model      string          `json:"modelVersion"`
	Candidates []struct {
		Index   int    `json:"index"`
		Finish  string `json:"finishReason"`
		Message string `json:"finishMessage"`
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
	} `json:"candidates"`
	Feedback struct {
		Reason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int64 `json:"promptTokenCount"`
		Tools      int64 `json:"toolUsePromptTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
}

// part is a piece of the content.
type part struct {
	Text      wire.String `json:"text"`
	Thought   bool        `json:"thought"`
	Signature string      `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// keptPart is a part as Message.Private keeps it: a call is only an id there, the rest of it is in Message.Calls.
type keptPart struct {
	Text      string          `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Call      string          `json:"call,omitempty"`
	Other     json.RawMessage `json:"other,omitempty"` // a part that is neither, as it came
}

// answer puts the pieces of an answer together.
type answer struct {
	delta     func(agent.Delta) error
	events    int
	size      int // bytes of events
	id, model string
	finish    string // a reason to stop
	message   string // about it
	blocked   bool
	usage     agent.Usage
	texts     map[bool]*wire.Text // by thought
	said      agent.Message
	kept      []keptPart
	keep      bool
}

// event takes the data of one event.
func (a *answer) event(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return nil
	}
	a.events++
	if a.size += len(data); a.size > wire.MostAnswer {
		return fmt.Errorf("the answer has more than %d bytes", wire.MostAnswer)
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("decode an event: %w", err)
	}
	if len(e.Error) > 0 && string(e.Error) != "null" {
		return parseError(data)
	}
	a.id, a.model = cmp.Or(a.id, e.ID), cmp.Or(e.Model, a.model)
	a.blocked = a.blocked || e.Feedback.Reason != ""
	if u := e.Usage; u != nil {
		a.usage = agent.Usage{Input: max(0, u.Prompt) + max(0, u.Tools),
			Output: max(0, u.Candidates) + max(0, u.Thoughts), CacheRead: max(0, u.Cached),
			Reasoning: max(0, u.Thoughts)}
	}
	for _, c := range e.Candidates {
		if c.Index != 0 { // others come only if the configuration asks for them
			continue
		}
		for _, raw := range c.Content.Parts {
			if err := a.part(raw); err != nil {
				return err
			}
		}
		a.finish, a.message = cmp.Or(c.Finish, a.finish), cmp.Or(c.Message, a.message)
	}
	return nil
}

// part takes a part of the content.
func (a *answer) part(raw json.RawMessage) error {
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("decode an event: a part: %w", err)
	}
	a.keep = a.keep || p.Signature != ""
	switch {
	case p.Call != nil:
		return a.call(p)
	case p.Text == nil && p.Signature == "":
		a.keep = true // of a tool of the service
		a.kept = append(a.kept, keptPart{Other: json.RawMessage(strings.ToValidUTF8(string(raw), "\uFFFD"))})
		return nil
	}
	if a.texts == nil {
		a.texts = map[bool]*wire.Text{false: {}, true: {}}
	}
	return a.say(a.texts[p.Thought].Add(p.Text), p.Thought, p.Signature)
}

// say hands on a text or a thought. The service signs a text behind it, too, in an empty part.
func (a *answer) say(text string, thought bool, signature string) error {
	if n := len(a.kept); n > 0 && a.kept[n-1].Thought == thought && a.kept[n-1].Signature == "" &&
		a.kept[n-1].Text != "" && (text == "" || signature == "") {
		a.kept[n-1].Text += text
		a.kept[n-1].Signature = signature
	} else if text != "" {
		a.kept = append(a.kept, keptPart{Text: text, Thought: thought, Signature: signature})
	}
	if text == "" {
		return nil
	}
	kind, delta := agent.PartText, agent.Delta{Text: text}
	if thought {
		kind, delta = agent.PartReasoning, agent.Delta{Reasoning: text}
	}
	if parts := a.said.Parts; len(parts) > 0 && parts[len(parts)-1].Type == kind {
		parts[len(parts)-1].Text += text
	} else {
		a.said.Parts = append(parts, agent.Part{Type: kind, Text: text})
	}
	return a.hand(delta)
}

func (a *answer) hand(d agent.Delta) error {
	if err := a.delta(d); err != nil {
		return deltaError{err}
	}
	return nil
}

// call adds a call. Models before Gemini 3 give it no id.
func (a *answer) call(p part) error {
	if p.Call.Name == "" {
		return errors.New("a tool call has no name")
	}
	id := p.Call.ID
	for _, c := range a.said.Calls {
		if c.ID == id {
			id = ""
		}
	}
	id = cmp.Or(id, fmt.Sprintf("call%d_%s", len(a.said.Calls), a.id))
	args := strings.ToValidUTF8(string(p.Call.Args), "\uFFFD")
	if args == "null" {
		args = ""
	}
	a.said.Calls = append(a.said.Calls, agent.ToolCall{ID: id, Name: p.Call.Name, Arguments: wire.Arguments(args)})
	a.kept = append(a.kept, keptPart{Call: id, Signature: p.Signature})
	return a.hand(agent.Delta{Call: &agent.CallDelta{ID: id, Name: p.Call.Name, Arguments: args}})
}

// response is the whole answer, or io.ErrUnexpectedEOF.
func (a *answer) response() (agent.Response, error) {
	if a.finish == "" && !a.blocked {
		return agent.Response{}, io.ErrUnexpectedEOF
	}
	for _, thought := range []bool{true, false} {
		if text := a.texts[thought]; text != nil {
			if err := a.say(text.End(), thought, ""); err != nil {
				return agent.Response{}, err
			}
		}
	}
	stop, err := a.stop()
	if err != nil {
		return agent.Response{}, err
	}
	message := a.said
	message.Role = agent.Assistant
	if a.keep {
		if message.Private, err = json.Marshal(private{a.kept}); err != nil {
			return agent.Response{}, err
		}
	}
	return agent.Response{Message: message, Stop: stop, Usage: a.usage, Model: a.model, ID: a.id}, nil
}

// stop is why the answer ended.
func (a *answer) stop() (agent.StopReason, error) {
	switch a.finish {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return "", fmt.Errorf("the answer ended by %s: %s", a.finish, a.message)
	case "MAX_TOKENS":
		return agent.StopLength, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return agent.StopRefusal, nil
	}
	switch {
	case a.blocked:
		return agent.StopRefusal, nil
	case len(a.said.Calls) > 0:
		return agent.StopTools, nil
	}
	return agent.StopEnd, nil
}
