package chat

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric-go/agent"
)

// shown is a message as a front end of the AI SDK has it: what its stream adds up to.
type shownMessage struct {
	ID       string      `json:"id"`
	Role     agent.Role  `json:"role"`
	Metadata *metadata   `json:"metadata,omitempty"`
	Parts    []shownPart `json:"parts"`
}

// shownPart is a part of it.
type shownPart struct {
	Type        string          `json:"type"`
	ID          string          `json:"id,omitempty"`
	Text        *string         `json:"text,omitempty"`
	State       string          `json:"state,omitempty"`
	ToolCallID  string          `json:"toolCallId,omitempty"`
	RawInput    string          `json:"rawInput,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	Preliminary bool            `json:"preliminary,omitempty"`
	ErrorText   string          `json:"errorText,omitempty"`
	Approval    *shownApproval  `json:"approval,omitempty"`
	SourceID    string          `json:"sourceId,omitempty"`
	URL         string          `json:"url,omitempty"`
	MediaType   string          `json:"mediaType,omitempty"`
	Title       string          `json:"title,omitempty"`
	Filename    string          `json:"filename,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
}

// shownApproval is the question about a call, or that people have rejected it: the stream has not how they answered
// before that, so nothing else of an answer is in a history.
type shownApproval struct {
	ID         string         `json:"id"`
	Descriptor *shownQuestion `json:"descriptor,omitempty"`
	Approved   *bool          `json:"approved,omitempty"`
	Reason     string         `json:"reason,omitempty"`
}

// history is a conversation as a front end of the AI SDK has it.
func (c chunker) history(messages []message) []shownMessage {
	list := []shownMessage{}
	for _, m := range messages {
		list = append(list, c.message(m))
	}
	return list
}

func (c chunker) message(m message) shownMessage {
	s := shownMessage{ID: m.id, Role: m.role, Parts: []shownPart{}}
	if m.role == agent.User {
		if m.said.From != "" {
			s.Metadata = &metadata{By: m.said.From}
		}
		for _, p := range m.said.Parts {
			s.Parts = append(s.Parts, c.part(p))
		}
		return s
	}
	for _, e := range m.events {
		for _, piece := range c.chunks(e) {
			s.add(piece)
		}
		if p := s.call(e.call.ID); e.kind == kindResult && e.said.Denied && p != nil {
			p.Approval = &shownApproval{ID: e.call.ID, Approved: new(false), Reason: e.said.Text()}
		}
	}
	return s
}

// call is the last call of an id.
func (s *shownMessage) call(id string) *shownPart {
	for i := len(s.Parts) - 1; i >= 0 && id != ""; i-- {
		if s.Parts[i].ToolCallID == id {
			return &s.Parts[i]
		}
	}
	return nil
}

// last is the last part of a type and an id.
func (s *shownMessage) last(typ, id string) *shownPart {
	for i := len(s.Parts) - 1; i >= 0; i-- {
		if s.Parts[i].Type == typ && s.Parts[i].ID == id {
			return &s.Parts[i]
		}
	}
	return nil
}

// add does with a chunk what a front end does.
func (s *shownMessage) add(c chunk) {
	switch c.Type {
	case "start-step":
		s.Parts = append(s.Parts, shownPart{Type: "step-start"})
	case "text-start", "reasoning-start":
		p := shownPart{Type: c.Type[:len(c.Type)-len("-start")], State: "streaming", Text: new("")}
		s.Parts = append(s.Parts, p)
	case "text-delta", "reasoning-delta":
		*s.Parts[len(s.Parts)-1].Text += c.Delta // parts of a text come one after the other
	case "text-end", "reasoning-end":
		s.Parts[len(s.Parts)-1].State = "done"
	case "file":
		s.Parts = append(s.Parts, shownPart{Type: c.Type, URL: c.URL, MediaType: c.MediaType})
	case "source-url", "source-document":
		s.Parts = append(s.Parts, shownPart{Type: c.Type, SourceID: c.SourceID, URL: c.URL, MediaType: c.MediaType,
			Title: c.Title, Filename: c.Filename})
	case "message-metadata":
		s.merge(c.MessageMetadata)
	default:
		if c.ToolCallID != "" {
			s.tool(c)
		} else if c.Data != nil && !c.Transient {
			s.data(c)
		}
	}
}

func (s *shownMessage) merge(m *metadata) {
	if s.Metadata == nil {
		s.Metadata = &metadata{}
	}
	if m.Model != "" {
		s.Metadata.Model = m.Model
	}
	if m.Usage != nil {
		s.Metadata.Usage = m.Usage
	}
	if m.Stopped != nil {
		s.Metadata.Stopped = m.Stopped
	}
}

func (s *shownMessage) data(c chunk) {
	if p := s.last(c.Type, c.ID); p != nil && c.ID != "" {
		p.Data = c.Data
		return
	}
	s.Parts = append(s.Parts, shownPart{Type: c.Type, ID: c.ID, Data: c.Data})
}

// tool takes over what a chunk says of a call.
func (s *shownMessage) tool(c chunk) {
	p := s.call(c.ToolCallID)
	if p == nil || c.Type == "tool-input-start" {
		s.Parts = append(s.Parts, shownPart{Type: "tool-" + c.ToolName, ToolCallID: c.ToolCallID})
		p = &s.Parts[len(s.Parts)-1]
	}
	switch c.Type {
	case "tool-input-start":
		p.State = "input-streaming"
	case "tool-input-delta":
		p.RawInput += c.InputTextDelta
	case "tool-input-available":
		p.State, p.Approval, p.Input, p.RawInput = "input-available", nil, c.Input, ""
	case "tool-approval-request":
		p.State, p.Approval = "approval-requested", &shownApproval{ID: c.ApprovalID, Descriptor: c.Descriptor}
	case "tool-output-denied":
		p.State, p.Approval = "output-denied", nil
	case "tool-output-available":
		p.State, p.Approval, p.Output, p.Preliminary = "output-available", nil, c.Output, c.Preliminary
	case "tool-output-error", "tool-input-error":
		p.State, p.Approval, p.ErrorText = "output-error", nil, c.ErrorText
	}
}
