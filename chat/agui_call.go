package chat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric-go/agent"
)

// call begins a call, if it has not begun.
func (w *aguiWriter) call(c agent.ToolCall) {
	w.closeText()
	w.closeThought()
	if w.carrier[c.ID] == "" {
		w.carrier[c.ID], w.partial = w.answerID(), append(w.partial, c.ID)
		if w.collect {
			m := w.message(w.answerID())
			m.ToolCalls = append(m.ToolCalls, aguiCall{c.ID, "function", aguiFunction{Name: c.Name}})
		}
	}
	if w.live && !slices.Contains(w.calls, c.ID) {
		w.calls = append(w.calls, c.ID)
		w.tell(aguiEvent{Type: aguiCallStart, ToolCallID: c.ID, ToolCallName: c.Name,
			ParentMessageID: w.carrier[c.ID]})
	}
}

func (w *aguiWriter) arguments(c agent.ToolCall, piece string) {
	w.call(c)
	w.pieces[c.ID] += piece
	w.setArguments(c.ID, w.pieces[c.ID])
	if piece != "" {
		w.tell(aguiEvent{Type: aguiCallArguments, ToolCallID: c.ID, Delta: piece})
	}
}

func (w *aguiWriter) setArguments(id, text string) {
	if !w.collect {
		return
	}
	m := w.message(w.carrier[id])
	for i := range m.ToolCalls {
		if m.ToolCalls[i].ID == id {
			m.ToolCalls[i].Function.Arguments = text
		}
	}
}

// called ends a call. If its arguments differ from the pieces before, the client needs a new snapshot.
func (w *aguiWriter) called(c agent.ToolCall) {
	came := w.pieces[c.ID]
	whole := string(c.Arguments)
	if came == "" {
		w.arguments(c, whole)
	} else if compacted(came) != compacted(whole) {
		w.again = w.again || w.live
		w.call(c)
		w.setArguments(c.ID, whole)
	}
	delete(w.pieces, c.ID)
	w.partial = slices.DeleteFunc(w.partial, func(id string) bool { return id == c.ID })
	w.closeCall(c.ID)
}

func (w *aguiWriter) closeCall(id string) {
	if i := slices.Index(w.calls, id); i >= 0 {
		w.calls = slices.Delete(w.calls, i, i+1)
		w.tell(aguiEvent{Type: aguiCallEnd, ToolCallID: id})
	}
}

// result writes the result of a call, once. If the recorded one differs from an early one, the client needs a new
// snapshot.
func (w *aguiWriter) result(e event) {
	id := cmp.Or(e.call.ID, e.said.Call)
	if e.preliminary {
		if slices.Contains(w.partial, id) { // it is none, because its answer was broken off
			w.drop()
			return
		}
		w.progress(id, w.content(e.said.Parts))
		return
	}
	m := aguiMessage{ID: "result-" + id, Role: agent.ToolRole, ToolCallID: id, Content: w.content(e.said.Parts)}
	if e.said.Failed || e.said.Edited != nil {
		m.Metadata = &aguiResultMetadata{Failed: e.said.Failed, Edited: e.said.Edited}
	}
	if e.said.Failed {
		m.Error = e.said.Text()
	}
	text := fmt.Sprint(m.Error, "\x00", textOf(m.Content))
	before, told := w.results[id]
	w.results[id] = text
	if told {
		if before != text {
			w.again = w.again || w.live
			w.replace(m)
		}
		return
	}
	w.closeCall(id)
	w.insert(m)
	w.tell(aguiEvent{Type: aguiCallResult, MessageID: m.ID, ToolCallID: id, Role: agent.ToolRole, Content: m.Content,
		Metadata: m.Metadata})
}

// drop removes calls that began but are not in the whole answer.
func (w *aguiWriter) drop() {
	if len(w.partial) == 0 {
		return
	}
	w.again = w.again || w.live
	for i := range w.messages {
		m := &w.messages[i]
		m.ToolCalls = slices.DeleteFunc(m.ToolCalls, func(c aguiCall) bool { return slices.Contains(w.partial, c.ID) })
	}
	w.messages = slices.DeleteFunc(w.messages, func(m aguiMessage) bool {
		return m.Role == agent.Assistant && m.Content == nil && len(m.ToolCalls) == 0
	})
	for _, id := range w.partial {
		delete(w.carrier, id)
	}
	w.partial = nil
}

// progress writes an intermediate result of a call. Clients do not keep it.
func (w *aguiWriter) progress(id string, content any) {
	value, err := json.Marshal(struct {
		ToolCallID string `json:"toolCallId"`
		Content    any    `json:"content"`
	}{id, content})
	if err == nil {
		w.tell(aguiEvent{Type: aguiCustom, Name: aguiProgress, Value: value})
	}
}

func textOf(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	data, err := json.Marshal(content)
	if err != nil {
		return ""
	}
	return string(data)
}

// compacted is JSON without spaces; another text stays as it is.
func compacted(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}
