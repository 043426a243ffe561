package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/examples/corpus"
	"github.com/flowfabric/flowfabric-go/fftest"
)

// Every word of the corpus is in one part, and the parts are of about the same size.
func TestSplit(t *testing.T) {
	cut, err := split()
	if err != nil {
		t.Fatal(err)
	}
	texts, err := corpus.Texts()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, text := range texts {
		all = append(all, strings.Fields(strings.Join(text.Paragraphs, " "))...)
	}
	if got := strings.Fields(strings.Join(cut, " ")); !slices.Equal(got, all) {
		t.Errorf("the parts have %d words, the corpus has %d, or they differ", len(got), len(all))
	}
	for i, text := range cut {
		if n := len(strings.Fields(text)); n < len(all)/parts || n > len(all)/parts+1 {
			t.Errorf("part %d has %d words", i+1, n)
		}
	}
}

// The flow is what README.md says: fifty nodes that depend on nothing, and one that needs 48 of them.
func TestFlow(t *testing.T) {
	f, last := mapReduce(make([]string, parts), Query{Top: 10, Letters: 5})
	c, err := client.Connect(t.Context(), client.Config{URL: "embedded://"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	submitted, err := client.SubmitFlow(t.Context(), c, f)
	if err != nil {
		t.Fatal(err)
	}
	s, err := submitted.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reduce, _ := s.Node(last.Name())
	if s.Members != parts+1 || s.Edges != parts || reduce.Group.Policy != "quorum" || reduce.Group.K != enough ||
		!reduce.Group.CancelRest {
		t.Errorf("%d members, %d edges; the last is %+v", s.Members, s.Edges, reduce.Group)
	}
}

// counter is the handler with a tokenizer that takes no time.
func counter(heard *[]error) *Counter {
	return &Counter{heard: func(_ int, err error) { *heard = append(*heard, err) }}
}

func TestCount(t *testing.T) {
	var heard []error
	r := fftest.Run(t, CountWords, counter(&heard).Handle, Part{1, "The Hare's 'nap' -- the end: THE"})
	r.WantResult(Count{Words: 6, Times: map[string]int{"the": 3, "hare's": 1, "nap": 1, "end": 1}})
	if len(heard) != 1 || heard[0] != nil {
		t.Errorf("heard %v", heard)
	}
}

// A busy tokenizer is asked again, a damaged text is not.
func TestFaults(t *testing.T) {
	var heard []error
	r := fftest.Run(t, CountWords, counter(&heard).Handle, Part{flaky[0], "once more"})
	r.WantResult(Count{Words: 2, Times: map[string]int{"once": 1, "more": 1}})
	r.Want(fftest.Want{Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial, flowfabric.AttemptRetry}})
	if len(heard) != 2 || !errors.Is(heard[0], errBusy) || heard[1] != nil {
		t.Errorf("heard %v", heard)
	}
	heard = nil
	r = fftest.Run(t, CountWords, counter(&heard).Handle, Part{broken, "never"})
	r.Want(fftest.Want{
		Failure:  "handler_error",
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial},
	})
	if len(heard) != 1 || !errors.Is(heard[0], errDamaged) {
		t.Errorf("heard %v", heard)
	}
}

// A text that hangs ends with its context, and says why.
func TestStuck(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(flowfabric.ErrCancelled)
	if _, err := (Tokenizer{}).Words(ctx, Part{Number: stuck}, 0); !errors.Is(err, flowfabric.ErrCancelled) {
		t.Errorf("it ended with %v", err)
	}
}
