package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/flowfabric/flowfabric-go/engine"
	"github.com/flowfabric/flowfabric-go/handler"
)

// frames keeps what a handler puts out.
type frames []engine.Frame

func (f *frames) Append(_ context.Context, frame engine.Frame) error {
	*f = append(*f, frame)
	return nil
}
func (f *frames) Flush(context.Context) error { return nil }
func (f *frames) LastAcknowledged() uint64    { return uint64(len(*f)) }

// counting says "p<n>." in part n, in two tokens, and fails in part fail.
type counting struct{ fail, parts int }

func (c *counting) Name() string { return "counting" }

func (c *counting) Stream(_ context.Context, _ Prompt, soFar string, emit func(string) error) (Part, error) {
	c.parts++
	n := len(soFar)/4 + 1
	word := fmt.Sprintf(" p%d", n)
	if err := emit(word); err != nil {
		return Part{}, err
	}
	if n == c.fail {
		return Part{}, errors.New("lost the thread")
	}
	return Part{Text: word + ".", Tokens: 2, Done: n == 3, Took: 5}, emit(".")
}

func TestHandleGoesOnAfterWhatIsRecorded(t *testing.T) {
	in := Prompt{Text: "count", MaxTokens: 6}
	var first frames
	model := &counting{fail: 2}
	if _, err := NewGenerator(model).Handle(t.Context(), handler.NewTask(handler.TaskConfig{Frames: &first}), in); err == nil {
		t.Fatal("the failure of part 2 is lost")
	}
	if len(first) != 3 || first[0].Type != frameToken {
		t.Errorf("frames of attempt 1: %+v", first)
	}

	recorded, err := json.Marshal(Part{Text: " p1.", Tokens: 2, Took: 5})
	if err != nil {
		t.Fatal(err)
	}
	claim := engine.Claim{Steps: map[string][]byte{"part-1": recorded}}
	claim.Fence.Attempt = 1
	var second frames
	model = &counting{}
	answer, err := NewGenerator(model).Handle(t.Context(), handler.NewTask(handler.TaskConfig{Frames: &second, Claim: claim}), in)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Answer{Text: "p1. p2. p3.", Tokens: 6, Model: "counting", Duration: 15, Attempt: 2}); answer != want {
		t.Errorf("answer %+v, want %+v", answer, want)
	}
	if model.parts != 2 {
		t.Errorf("the model made %d parts, want 2", model.parts)
	}
	if len(second) != 5 || second[0].Type != frameResume || string(second[0].Payload) != `{"Text":" p1.","Tokens":2}` {
		t.Errorf("frames of attempt 2: %+v", second)
	}
}

func TestHandleRefusesBadPrompts(t *testing.T) {
	for _, in := range []Prompt{{Text: " ", MaxTokens: 1}, {Text: "x"}, {Text: "x", MaxTokens: maxTokens + 1}} {
		task := handler.NewTask(handler.TaskConfig{})
		_, err := NewGenerator(&counting{}).Handle(t.Context(), task, in)
		if out := handler.Classify(t.Context(), task, err); err == nil || !out.Failure.Permanent {
			t.Errorf("%+v: %v, %+v", in, err, out)
		}
	}
}
