package main

import (
	"bytes"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Lines of children begin with their names, and what is raw is of the execution alone.
func TestTailOfChildren(t *testing.T) {
	child := &stream.Child{Path: []string{"left", "deep"}, ID: mint.ID(1)}
	frame := stream.Frame{Type: "token", Payload: []byte("hi")}
	events := []stream.TailEvent{
		{Kind: stream.TailFrame, Attempt: 1, Child: child, Frame: frame},
		{Kind: stream.TailGap, Attempt: 1, Child: child, Reason: "purged"},
		{Kind: stream.TailEnd, Attempt: 1, Child: child, State: flowfabric.Failed},
		{Kind: stream.TailFrame, Attempt: 2, Frame: frame},
		{Kind: stream.TailEnd, Attempt: 2, State: flowfabric.Completed},
	}
	for raw, want := range map[bool]string{true: "hi", false: "left/deep 1 token  hi\nleft/deep 1 -- gone: purged\n" +
		"left/deep 1 -- execution failed\n2 token  hi\n2 -- execution completed\n"} {
		var out bytes.Buffer
		a := &app{out: &out, err: &out}
		end, err := a.tail(func(yield func(stream.TailEvent, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}, mint.ID(1), raw)
		must.No(t, err)
		if out.String() != want || end != nil {
			t.Errorf("raw %t: %q, %v", raw, out.String(), end)
		}
	}
}
