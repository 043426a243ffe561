package chat

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"github.com/flowfabric/flowfabric-go/agent"
)

// add collects a message.
func (w *aguiWriter) add(m aguiMessage) {
	if w.collect {
		w.messages = append(w.messages, m)
	}
}

// insert collects a result behind its call and earlier results of it, as clients do.
func (w *aguiWriter) insert(m aguiMessage) {
	if !w.collect {
		return
	}
	at := len(w.messages)
	for i, has := range slices.Backward(w.messages) {
		if has.ID == w.carrier[m.ToolCallID] {
			for at = i + 1; at < len(w.messages) && w.messages[at].Role == agent.ToolRole; at++ {
			}
			break
		}
	}
	w.messages = slices.Insert(w.messages, at, m)
}

// replace collects a message in the place of the one with its id, or as a new one.
func (w *aguiWriter) replace(m aguiMessage) {
	if !w.collect {
		return
	}
	for i := range w.messages {
		if w.messages[i].ID == m.ID {
			w.messages[i] = m
			return
		}
	}
	w.add(m)
}

// message is the message of an answer that is collected.
func (w *aguiWriter) message(id string) *aguiMessage {
	for i := range slices.Backward(w.messages) {
		if w.messages[i].ID == id {
			return &w.messages[i]
		}
	}
	w.messages = append(w.messages, aguiMessage{ID: id, Role: agent.Assistant})
	return &w.messages[len(w.messages)-1]
}

func (m *aguiMessage) append(text string) {
	before, _ := m.Content.(string)
	m.Content = before + text
}

// content is a text if all parts are text, or else a list of parts. Reasoning is left out.
func (w *aguiWriter) content(parts []agent.Part) any {
	var text strings.Builder
	var out []aguiPart
	plain := true
	for _, p := range parts {
		switch p.Type {
		case agent.PartText:
			text.WriteString(p.Text)
			said := p.Text
			out = append(out, aguiPart{Type: "text", Text: &said})
		case agent.PartImage, agent.PartFile:
			plain = false
			out = append(out, w.filePart(p))
		}
	}
	if plain {
		return text.String()
	}
	return out
}

func (w *aguiWriter) filePart(p agent.Part) aguiPart {
	kind, _, _ := strings.Cut(p.Media, "/")
	if !slices.Contains([]string{"image", "audio", "video"}, kind) {
		kind = "document"
	}
	out := aguiPart{Type: kind}
	if p.Name != "" {
		out.Metadata = &aguiFileName{p.Name}
	}
	out.Source = &aguiSource{Type: "url", Value: w.link(p), Media: p.Media}
	if p.Blob == "" {
		out.Source = &aguiSource{"data", base64.StdEncoding.EncodeToString(p.Data), p.Media}
	}
	return out
}

// reasoningIDs are the ids of the reasoning messages of a snapshot.
func reasoningIDs(messages []aguiMessage) map[string]bool {
	out := map[string]bool{}
	for _, m := range messages {
		if m.Role == aguiRoleReasoning {
			out[m.ID] = true
		}
	}
	return out
}

// emptied adds empty reasoning messages to a snapshot that has none, so that the client replaces those of dropped
// answers. A client keeps its own reasoning messages when a snapshot has none at all.
func emptied(messages []aguiMessage, had map[string]bool) []aguiMessage {
	now := reasoningIDs(messages)
	if len(now) > 0 {
		return messages
	}
	for _, id := range slices.Sorted(maps.Keys(had)) {
		messages = append(messages, aguiMessage{ID: id, Role: aguiRoleReasoning, Content: ""})
	}
	return messages
}
