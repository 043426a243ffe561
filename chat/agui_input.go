package chat

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// aguiInput is what a client of AG-UI sends, as far as it is read. Tools and context are the application's matter, and
// the state is the server's.
type aguiInput struct {
	ThreadID    string          `json:"threadId"`
	RunID       string          `json:"runId"`
	ParentRunID string          `json:"parentRunId"`
	State       json.RawMessage `json:"state"`
	Messages    []aguiSent      `json:"messages"`
	Resume      []aguiResume    `json:"resume"`
	Props       aguiProps       `json:"forwardedProps"`
}

// aguiProps are the forwardedProps that the handler reads. They are named as in the AI SDK.
type aguiProps struct {
	Trigger   string `json:"trigger"`   // regenerate-message; default submit-message
	MessageID string `json:"messageId"` // which one is made again, or edited
}

// UnmarshalJSON takes any value: forwardedProps may belong to other programs.
func (p *aguiProps) UnmarshalJSON(data []byte) error {
	type plain aguiProps
	var in plain
	if json.Unmarshal(data, &in) == nil {
		*p = aguiProps(in)
	}
	return nil
}

// aguiSent is a message as a client has it.
type aguiSent struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []aguiCall      `json:"toolCalls"`
	ToolCallID string          `json:"toolCallId"`

	text  string // Content, if it is a text or nothing
	plain bool
}

// UnmarshalJSON reads the text of a message once.
func (m *aguiSent) UnmarshalJSON(data []byte) error {
	type members aguiSent
	if err := json.Unmarshal(data, (*members)(m)); err != nil {
		return err
	}
	m.plain = len(m.Content) == 0 || json.Unmarshal(m.Content, &m.text) == nil
	return nil
}

// aguiResume is the answer to an interrupt.
type aguiResume struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"` // resolved or cancelled
	Payload     json.RawMessage `json:"payload"`
}

// check says what is wrong with the form of an input.
func (in *aguiInput) check() error {
	if err := checkID("threadId", in.ThreadID); err != nil {
		return err
	}
	if in.RunID == "" || len(in.RunID) > limits.MaxChatID || !plain(in.RunID) {
		return bad("runId", "runId has %d bytes, want 1..%d bytes of UTF-8 without control characters", len(in.RunID),
			limits.MaxChatID)
	}
	for i, r := range in.Resume {
		if r.Status != "resolved" && r.Status != "cancelled" {
			return bad(fmt.Sprintf("resume[%d].status", i), "resume[%d].status is %.40q, want resolved or cancelled", i,
				r.Status)
		}
	}
	return nil
}

// fronts converts the messages of the client: the answers to one message of the user become one message.
func (in *aguiInput) fronts() (out []front, err error) {
	for i, m := range in.Messages {
		field := fmt.Sprintf("messages[%d]", i)
		switch m.Role {
		case roleUser:
			if err := checkMessageID(field+".id", m.ID); err != nil {
				return nil, err
			}
			f := front{id: m.ID, role: agent.User}
			if f.parts, err = m.parts(field); err != nil {
				return nil, err
			}
			for _, p := range f.parts {
				f.text += p.Text
			}
			out = append(out, f)
		case roleAssistant:
			id := m.ID
			if n := len(out); n > 0 {
				reply := replyTo(out[n-1].id)
				if out[n-1].role == agent.Assistant {
					reply = out[n-1].id
				}
				if id == reply || strings.HasPrefix(id, reply+".") {
					id = reply
				}
			}
			if n := len(out); n > 0 && out[n-1].id == id {
				out[n-1].text += m.text
				continue
			}
			out = append(out, front{id: id, role: agent.Assistant, text: m.text})
		case "developer", "system":
			return nil, bad(field+".role", "%s.role is %s: the server has the instructions", field, m.Role)
		}
	}
	return out, nil
}

// parts are those of a message of the user.
func (m aguiSent) parts(field string) (out []agent.Part, err error) {
	if m.plain {
		return agent.Text(m.text), nil
	}
	var parts []aguiPart
	if json.Unmarshal(m.Content, &parts) != nil {
		return nil, bad(field+".content", "%s.content is neither a text nor a list of parts", field)
	}
	for i, p := range parts {
		at := fmt.Sprintf("%s.content[%d]", field, i)
		if p.Type == "text" && p.Text != nil {
			out = append(out, agent.Text(*p.Text)...)
			continue
		}
		part, err := p.file(at)
		if err != nil {
			return nil, err
		}
		out = append(out, part)
	}
	return out, nil
}

// file reads a part that is a file.
func (p aguiPart) file(field string) (agent.Part, error) {
	if !slices.Contains([]string{"image", "audio", "video", "document"}, p.Type) || p.Source == nil {
		return agent.Part{}, bad(field+".type", "%s.type is %.40q, want text, or image, audio, video or document with "+
			"a source", field, p.Type)
	}
	file := uiPart{Type: "file", MediaType: p.Source.Media, URL: p.Source.Value}
	if p.Metadata != nil {
		file.Filename = p.Metadata.Name
	}
	switch p.Source.Type {
	case "data":
		data, err := base64.StdEncoding.DecodeString(p.Source.Value)
		if err != nil || len(data) == 0 {
			return agent.Part{}, bad(field+".source.value", "%s.source.value is not bytes in base64", field)
		}
		out := agent.Part{Type: agent.PartFile, Media: file.MediaType, Name: file.Filename, Data: data}
		if strings.HasPrefix(out.Media, "image/") {
			out.Type = agent.PartImage
		}
		return out, nil
	case "url":
		return file.file(field + ".source")
	}
	return agent.Part{}, bad(field+".source.type", "%s.source.type is %.40q, want data or url", field, p.Source.Type)
}

// decisions reads the decisions about open questions. Each open question needs one. A decision about another question
// is compared with its recorded answer later.
func (in *aguiInput) decisions(open []asking) (out []decision, err error) {
	given := map[string]bool{}
	for i, r := range in.Resume {
		given[r.InterruptID] = true
		var ask *asking
		for n := range open {
			if open[n].ID == r.InterruptID {
				ask = &open[n]
			}
		}
		d, err := r.decision(fmt.Sprintf("resume[%d]", i), ask)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	for _, a := range open {
		if !given[a.ID] {
			return nil, refuse(http.StatusConflict, codeUnanswered, "the interrupt %s waits for an answer: "+
				"resume names all that are open, cancelled or resolved", a.ID)
		}
	}
	return out, nil
}

// decision reads one answer. ask is nil for a question that is over.
func (r aguiResume) decision(field string, ask *asking) (decision, error) {
	var said struct {
		Approved *bool           `json:"approved"`
		Edited   json.RawMessage `json:"editedArgs"`
		Reason   string          `json:"reason"`
		Choice   string          `json:"choice"`
		Comment  string          `json:"comment"`
	}
	var yes bool
	var choice string
	switch {
	case r.Status == "cancelled":
		no := false
		said.Approved = &no
	case json.Unmarshal(r.Payload, &yes) == nil:
		said.Approved = &yes
	case json.Unmarshal(r.Payload, &choice) == nil:
		said.Choice = choice
	case json.Unmarshal(r.Payload, &said) != nil:
		return decision{}, bad(field+".payload", "%s.payload is neither an object, a boolean nor a text", field)
	}
	comment := said.Reason + said.Comment
	if said.Choice == "" {
		if said.Approved == nil {
			return decision{}, bad(field+".payload", "%s.payload has neither approved nor choice", field)
		}
		d := decide(r.InterruptID, *said.Approved, comment, said.Edited)
		said.Choice = d.choice
	}
	if ask != nil && !slices.ContainsFunc(choicesOf(ask.Question), func(c suspend.Choice) bool {
		return c.Name == said.Choice
	}) {
		return decision{}, bad(field+".payload", "%s: %.40q is no choice of the question", field, said.Choice)
	}
	d := decision{ask: r.InterruptID, choice: said.Choice, comment: comment}
	if said.Choice != choiceReject && string(said.Edited) != "null" {
		d.arguments = said.Edited
	}
	return d, nil
}
