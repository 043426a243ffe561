package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

// The flow is what README.md draws: three nodes that depend on nothing, and one that depends on any of them.
func TestFlow(t *testing.T) {
	f, _, publish := race("How?", 3)
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
	if !slices.Equal(f.Nodes(), []string{"hare", "tortoise", "snail", "publish"}) || s.Edges != 3 {
		t.Errorf("nodes %q with %d edges", f.Nodes(), s.Edges)
	}
	last, _ := s.Node(publish.Name())
	if last.Group.Policy != "any" || !last.Group.CancelRest || len(last.Edges) != 3 {
		t.Errorf("the last node is %+v", last)
	}
}

func TestRacerStreams(t *testing.T) {
	racer := &Racer{stopped: func(id flowfabric.ExecutionID, tokens int, cause error) {
		t.Errorf("%s was stopped at token %d: %v", id, tokens, cause)
	}}
	r := fftest.Run(t, Ask, racer.Handle, Question{"How should a man live?", "tortoise", 4})
	r.WantResult(Answer{Provider: "tortoise", Text: "Why should we live", Tokens: 4})
	r.Want(fftest.Want{Frames: map[string][]string{frameToken: {"Why", " should", " we", " live"}}})

	fftest.Run(t, Ask, racer.Handle, Question{"How?", "fox", 4}).Want(fftest.Want{Failure: "handler_error"})
}

// A racer that is cancelled in the middle of its answer hears of it where it is.
func TestRacerIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type end struct {
			id     flowfabric.ExecutionID
			tokens int
			cause  error
		}
		ends := make(chan end, 1)
		racer := &Racer{pace: 10 * time.Millisecond,
			stopped: func(id flowfabric.ExecutionID, tokens int, cause error) { ends <- end{id, tokens, cause} }}
		w := fftest.New(t, runtime.Config{}, handler.Bind(Ask, racer.Handle))
		x := fftest.Submit(w, Ask, Question{"How?", "hare", 40})
		streamed := 0
		for event, err := range w.Client().Execution(x.ID()).Tail(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Kind != stream.TailFrame {
				continue
			}
			if streamed++; streamed == providers[0].NapsAt-1 { // now it stalls
				x.Cancel(flowfabric.Reason("another was first"))
			}
		}
		if e := <-ends; e.id != x.ID() || e.tokens != streamed || !errors.Is(e.cause, flowfabric.ErrCancelled) {
			t.Errorf("%s was at token %d, want %d, and its context ended with %v", e.id, e.tokens, streamed, e.cause)
		}
	})
}

func TestNothingToPublish(t *testing.T) {
	r := fftest.Run(t, Publish, first, Headline{"How?"})
	r.Want(fftest.Want{
		Failure:  "handler_error",
		Attempts: []flowfabric.AttemptType{flowfabric.AttemptInitial},
	})
}

func TestEveryBookIsLongEnough(t *testing.T) {
	for _, p := range providers {
		if tokens, err := p.passage("How should a man live?"); err != nil || len(tokens) < maxTokens {
			t.Errorf("%s has %d tokens, %v; want %d", p.Name, len(tokens), err, maxTokens)
		}
	}
}

func TestTrack(t *testing.T) {
	var out bytes.Buffer
	v := newTrack(&out, "one", "two")
	for range 4 {
		v.token(0, " abcdefgh\x1b")
	}
	v.token(1, " slow")
	v.end(0, "✓ all")
	v.token(1, " and steady")
	v.end(1, "✗ cut off")
	want := `one                           two
───                           ───
abcdefgh abcdefgh             …
abcdefgh abcdefgh             slow
✓ all                         …
                              and steady
                              ✗ cut off
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	fill(&out, "  ", strings.Repeat("12345678 ", 12))
	if want := "  " + strings.Repeat("12345678 ", 8) +
		"12345678\n  12345678 12345678 12345678\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
