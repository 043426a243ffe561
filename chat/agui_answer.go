package chat

import (
	"fmt"
	"slices"

	"github.com/flowfabric/flowfabric-go/agent"
)

// say writes a message of the user. Only a snapshot can have one that is not plain text.
func (w *aguiWriter) say(id string, m agent.Message) {
	w.heard[id] = true
	said := aguiMessage{ID: id, Role: agent.User, Content: w.content(m.Parts)}
	w.add(said)
	text, plain := said.Content.(string)
	switch {
	case w.has[id]:
		return
	case !plain:
		w.again = w.again || w.live
		return
	}
	w.tell(aguiEvent{Type: aguiTextStart, MessageID: id, Role: agent.User})
	if text != "" {
		w.tell(aguiEvent{Type: aguiText, MessageID: id, Delta: text})
	}
	w.tell(aguiEvent{Type: aguiTextEnd, MessageID: id})
}

// answerID is the id of the message of the current answer.
func (w *aguiWriter) answerID() string {
	if w.answers <= 1 {
		return w.reply
	}
	return fmt.Sprintf("%s.%d", w.reply, w.answers)
}

// answer begins an answer.
func (w *aguiWriter) answer() {
	w.close()
	w.answers++
	w.idle, w.stopped = false, false
	if w.live {
		w.step = fmt.Sprintf("answer %d", w.answers)
		w.tell(aguiEvent{Type: aguiStepStart, StepName: w.step})
	}
}

func (w *aguiWriter) closeStep() {
	if w.step != "" {
		w.tell(aguiEvent{Type: aguiStepEnd, StepName: w.step})
		w.step = ""
	}
}

func (w *aguiWriter) textPiece(text string) {
	w.closeThought()
	id := w.answerID()
	if w.collect {
		w.message(id).append(text)
	}
	if w.live && w.text != id {
		w.closeText()
		w.text = id
		w.tell(aguiEvent{Type: aguiTextStart, MessageID: id, Role: agent.Assistant})
	}
	if text != "" {
		w.tell(aguiEvent{Type: aguiText, MessageID: id, Delta: text})
	}
}

func (w *aguiWriter) closeText() {
	if w.text != "" {
		w.tell(aguiEvent{Type: aguiTextEnd, MessageID: w.text})
		w.text = ""
	}
}

func (w *aguiWriter) thoughtPiece(text string) {
	w.closeText()
	id := w.answerID() + ".reasoning"
	if w.collect {
		m := w.message(id)
		m.Role = aguiRoleReasoning
		m.append(text)
	}
	if w.live && w.think != id {
		w.closeThought()
		w.think = id
		w.tell(aguiEvent{Type: aguiReasoning, MessageID: id})
		w.tell(aguiEvent{Type: aguiThoughtStart, MessageID: id, Role: aguiRoleReasoning})
	}
	if text != "" {
		w.tell(aguiEvent{Type: aguiThought, MessageID: id, Delta: text})
	}
}

func (w *aguiWriter) closeThought() {
	if w.think != "" {
		w.tell(aguiEvent{Type: aguiThoughtEnd, MessageID: w.think})
		w.tell(aguiEvent{Type: aguiReasoningEnd, MessageID: w.think})
		w.think = ""
	}
}

// spent adds the cost of an answer.
func (w *aguiWriter) spent(e event) {
	w.drop()
	w.closeText()
	w.closeThought()
	for _, id := range slices.Clone(w.calls) {
		w.closeCall(id)
	}
	w.closeStep()
	if _, known := w.usage[e.model]; !known {
		w.models = append(w.models, e.model)
	}
	u := w.usage[e.model]
	u.Input += e.usage.Input
	u.Output += e.usage.Output
	u.CacheRead += e.usage.CacheRead
	u.CacheWrite += e.usage.CacheWrite
	u.Reasoning += e.usage.Reasoning
	w.usage[e.model] = u
}

// used is the cost of the run's answers, by model.
func (w *aguiWriter) used() (out []aguiUsage) {
	for _, model := range w.models {
		u := w.usage[model]
		out = append(out, aguiUsage{Model: model, Input: u.Input, Output: u.Output, Total: u.Total(),
			Reasoning: u.Reasoning, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
	}
	return out
}
