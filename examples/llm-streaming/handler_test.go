package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
)

// counting says "p<n>." in part n, in two tokens, and fails once, in part fail.
type counting struct {
	fail, parts int
	said        func(part string) // told of every part that is said to its end; may be nil
}

func (c *counting) Name() string { return "counting" }

func (c *counting) Stream(_ context.Context, _ Prompt, soFar string, emit func(string) error) (Part, error) {
	c.parts++
	n := len(soFar)/4 + 1
	word := fmt.Sprintf(" p%d", n)
	if err := emit(word); err != nil {
		return Part{}, err
	}
	if n == c.fail {
		c.fail = 0
		return Part{}, errors.New("lost the thread")
	}
	if c.said != nil {
		c.said(fmt.Sprintf("part-%d", n))
	}
	return Part{Text: word + ".", Tokens: 2, Done: n == 3, Took: 5}, emit(".")
}

// eachOnce is what it says, without what is repeated.
var eachOnce = []string{" p1", ".", " p2", ".", " p3", "."}

var countToThree = Prompt{Text: "count", MaxTokens: 6}

func TestHandleGoesOnAfterWhatIsRecorded(t *testing.T) {
	model := &counting{fail: 2}
	r := fftest.Run(t, Generate, NewGenerator(model).Handle, countToThree)
	r.WantResult(Answer{Text: "p1. p2. p3.", Tokens: 6, Model: "counting", Duration: 15, Attempt: 2})
	r.Want(fftest.Want{
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptRetry},
		Steps:    []string{"part-1", "part-2", "part-3"},
		Least:    400 * time.Millisecond,
		Most:     650 * time.Millisecond, // the first retry comes after 500 ms ± 20 %
		Frames:   map[string][]string{frameToken: {" p1", ".", " p2", " p2", ".", " p3", "."}},
	})
	if model.parts != 4 {
		t.Errorf("the model made %d parts, want 4: the second one twice", model.parts)
	}
	if kept := r.Kept(frameToken); !slices.Equal(kept, eachOnce) {
		t.Errorf("kept %q, want %q", kept, eachOnce)
	}
}

// Wherever a worker dies, the answer is the same, no token is missing, and no recorded part is said again.
func TestHandleSurvivesCrashes(t *testing.T) {
	crashes := fftest.Crashes(t, Generate,
		func(fx *fftest.Effects) func(context.Context, *handler.Task, Prompt) (Answer, error) {
			return NewGenerator(&counting{said: fx.Did}).Handle
		}, countToThree, func(r *fftest.Report[Answer]) {
			want := Answer{Text: "p1. p2. p3.", Tokens: 6, Model: "counting", Duration: 15,
				Attempt: uint32(len(r.Attempts))}
			r.WantResult(want)
			r.Want(fftest.Want{Steps: []string{"part-1", "part-2", "part-3"}})
			if kept := r.Kept(frameToken); !slices.Equal(kept, eachOnce) {
				t.Errorf("%s: kept %q, want %q", r.Crash, kept, eachOnce)
			}
		})
	if crashes < 16 { // before and after a claim, each of three batches of frames, three parts, and the completion
		t.Errorf("only %d crashes", crashes)
	}
}

func TestHandleRefusesBadPrompts(t *testing.T) {
	for _, in := range []Prompt{{Text: " ", MaxTokens: 1}, {Text: "x"}, {Text: "x", MaxTokens: maxTokens + 1}} {
		model := &counting{}
		r := fftest.Run(t, Generate, NewGenerator(model).Handle, in)
		r.Want(fftest.Want{
			Failure:  "handler_error",
			Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial},
		})
		if model.parts != 0 {
			t.Errorf("%+v: the model was asked", in)
		}
	}
}
