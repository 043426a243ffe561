package modeltest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/agent"
)

// Question is what the tests of adapters ask.
var Question = agent.Request{Messages: []agent.Message{{Role: agent.User, Parts: agent.Text("hello")}}}

// Heard collects the deltas of an answer.
type Heard struct {
	Text, Reasoning []string
	Calls           []agent.Delta
}

// Delta adds one.
func (h *Heard) Delta(d agent.Delta) error {
	if d.Text != "" {
		h.Text = append(h.Text, d.Text)
	}
	if d.Reasoning != "" {
		h.Reasoning = append(h.Reasoning, d.Reasoning)
	}
	if d.Call != nil {
		h.Calls = append(h.Calls, d)
	}
	return nil
}

// Ask asks the question. The deltas must say what the message says.
func Ask(t *testing.T, model agent.Model) (agent.Response, Heard) {
	t.Helper()
	var h Heard
	response, err := model.Generate(t.Context(), Question, h.Delta)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(h.Text, ""), response.Message.Text(); got != want {
		t.Errorf("the deltas say %q, and the message %q", got, want)
	}
	CheckCalls(t, h.Calls, response.Message.Calls)
	return response, h
}

// Fails asks the question and returns the error, which must not show [Key].
func Fails(t *testing.T, model agent.Model) error {
	t.Helper()
	response, err := model.Generate(context.WithoutCancel(t.Context()), Question, ignore)
	if err == nil {
		t.Fatalf("the answer is %+v, want an error", response)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), Key) {
		t.Errorf("the error shows the key: %v", err)
	}
	return err
}

// Shown is a conversation with images and files in every place.
func Shown() agent.Request {
	png := agent.Part{Type: agent.PartImage, Media: "image/png", Data: []byte("png"), Blob: "sha256:1", Size: 3}
	pdf := agent.Part{Type: agent.PartFile, Media: "application/pdf", Name: "terms.pdf", Data: []byte("pdf")}
	csv := agent.Part{Type: agent.PartFile, Media: "text/csv; charset=utf-8", Name: "a.csv", Data: []byte("a,b\xff")}
	film := agent.Part{Type: agent.PartFile, Media: "video/mp4", Name: "b.mp4", Data: []byte("mp4")}
	text := func(text string) agent.Part { return agent.Part{Type: agent.PartText, Text: text} }
	hm := agent.Part{Type: agent.PartReasoning, Text: "hm"}
	return agent.Request{Messages: []agent.Message{
		{Role: agent.User, Parts: []agent.Part{text("Look:"), png, text(" "), pdf, film}},
		{Role: agent.User, Parts: []agent.Part{text("And:"), csv}},
		{Role: agent.Assistant, Parts: []agent.Part{hm}},
		{Role: agent.Assistant, Parts: []agent.Part{hm, text("I drew"), png}, Calls: []agent.ToolCall{
			{ID: "a", Name: "shot"}, {ID: "b", Name: "shot"}}},
		{Role: agent.ToolRole, Call: "a", Tool: "shot", Parts: []agent.Part{text("two:"), png, pdf}},
		{Role: agent.ToolRole, Call: "b", Tool: "shot", Parts: []agent.Part{csv, film}, Failed: true},
		{Role: agent.ToolRole, Call: "none", Tool: "shot", Parts: []agent.Part{text("late"), png}},
	}}
}
