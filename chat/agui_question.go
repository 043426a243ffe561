package chat

import (
	"cmp"
	"slices"

	"github.com/flowfabric/flowfabric-go/suspend"
)

// ask collects a question, which is sent when the run ends.
func (w *aguiWriter) ask(e event) {
	if e.ask == nil {
		return
	}
	i := aguiInterrupt{ID: e.ask.ID, Reason: "tool_call", Message: e.ask.Question.Title, ToolCallID: e.call.ID,
		ResponseSchema: approvalSchema(e.ask.Question), Metadata: map[string]any{"key": e.ask.Key}}
	if e.kind == kindQuestion {
		i.Reason, i.ToolCallID, i.ResponseSchema = "input_required", "", choiceSchema(e.ask.Question)
	}
	if text := e.ask.Question.Text; text != "" {
		i.Metadata["text"] = text
	}
	if to := e.ask.Question.Assignee; to != "" {
		i.Metadata["assignee"] = to
	}
	w.asked = append(slices.DeleteFunc(w.asked, func(a aguiInterrupt) bool { return a.ID == i.ID }), i)
}

// approvalSchema is the schema of an answer to an approval. With editedArgs, which are all arguments, people may change
// them.
func approvalSchema(q suspend.Question) map[string]any {
	properties := map[string]any{"approved": map[string]any{"type": "boolean"},
		"reason": map[string]any{"type": "string"}}
	for _, c := range choicesOf(q) {
		if c.Name != "approve" && c.Name != "reject" {
			properties["choice"] = choiceSchema(q)["properties"].(map[string]any)["choice"]
		}
	}
	if q.Arguments != nil {
		edited := any(map[string]any{"type": "object"})
		if q.Schema != nil {
			edited = q.Schema
		}
		properties["editedArgs"] = edited
	}
	return map[string]any{"type": "object", "properties": properties, "required": []string{"approved"}}
}

// choiceSchema is the schema of an answer to any other question.
func choiceSchema(q suspend.Question) map[string]any {
	var names []string
	var labels []map[string]string
	for _, c := range choicesOf(q) {
		names = append(names, c.Name)
		labels = append(labels, map[string]string{"const": c.Name, "title": cmp.Or(c.Label, c.Name)})
	}
	return map[string]any{"type": "object", "required": []string{"choice"}, "properties": map[string]any{
		"choice":  map[string]any{"type": "string", "enum": names, "oneOf": labels},
		"comment": map[string]any{"type": "string"}}}
}

func choicesOf(q suspend.Question) []suspend.Choice {
	if len(q.Choices) > 0 {
		return q.Choices
	}
	return []suspend.Choice{{Name: "approve", Label: "Approve"}, {Name: "reject", Label: "Reject"}}
}
