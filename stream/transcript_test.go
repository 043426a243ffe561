package stream_test

import (
	"fmt"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

func frame(attempt uint32, sequence uint64, text string) stream.TailEvent {
	return stream.TailEvent{Kind: stream.TailFrame, Attempt: attempt,
		Frame: stream.Frame{ID: stream.Cursor{Ms: sequence}, Sequence: sequence, Payload: []byte(text)}}
}

// Children have transcripts of their own, by what they are told of themselves.
func TestTranscriptOfChildren(t *testing.T) {
	ids := [2]flowfabric.ExecutionID{{1}, {2}}
	var tr stream.Transcript
	add := func(child int, e stream.TailEvent) bool {
		if child > 0 {
			e.Child = &stream.Child{Path: []string{fmt.Sprint("c", child)}, ID: ids[child-1]}
		}
		return tr.Add(e)
	}
	for child, e := range map[int]stream.TailEvent{1: frame(1, 1, "a"), 2: frame(1, 1, "b"), 0: frame(1, 1, "c")} {
		if add(child, e) {
			t.Errorf("%d dropped something", child)
		}
	}
	add(1, frame(1, 2, "x"))
	if !add(1, stream.TailEvent{Kind: stream.TailResumed, Attempt: 1,
		Resumed: stream.Resumption{Run: 2, First: stream.Cursor{Ms: 3}, Recorded: 1}}) {
		t.Error("nothing was dropped")
	}
	add(2, stream.TailEvent{Kind: stream.TailGap, Attempt: 1, Trimmed: 4, Position: "a7"})
	said := map[flowfabric.ExecutionID]string{}
	for child, of := range tr.Children() {
		said[child.ID] = fmt.Sprint(child.Path, of.Text(), of.Lost())
	}
	if tr.Text() != "c" || tr.Lost() != 0 || tr.Position() != "a7" || len(tr.Frames()) != 1 || len(said) != 2 ||
		said[ids[0]] != "[c1]a0" || said[ids[1]] != "[c2]b4" {
		t.Errorf("%q, %q", tr.Text(), said)
	}
}

// A transcript has each recorded step's frames once, over runs and attempts, and what the last run added.
func TestTranscript(t *testing.T) {
	began := func(attempt uint32, reused ...stream.Covered) stream.TailEvent {
		return stream.TailEvent{Kind: stream.TailAttempt, Attempt: attempt, Reused: reused}
	}
	resumed := func(attempt uint32, first, recorded uint64) stream.TailEvent {
		return stream.TailEvent{Kind: stream.TailResumed, Attempt: attempt,
			Resumed: stream.Resumption{Run: 2, First: stream.Cursor{Ms: first}, Recorded: recorded}}
	}
	var tr stream.Transcript
	at, err := stream.ParsePosition("a7")
	must.No(t, err)
	for i, step := range []struct {
		event   stream.TailEvent
		text    string
		dropped bool
	}{
		{began(0), "", false},
		{frame(0, 1, "a"), "a", false},
		{frame(0, 2, "b"), "ab", false},
		{frame(0, 3, "x"), "abx", false},
		{resumed(0, 4, 2), "ab", true},
		{frame(0, 4, "c"), "abc", false},
		{frame(0, 5, "y"), "abcy", false},
		{stream.TailEvent{Kind: stream.TailAttemptEnd, Recorded: 4}, "abcy", false},
		{stream.TailEvent{Kind: stream.TailRetry, Attempt: 1}, "abcy", false},
		{began(1, stream.Covered{Attempt: 0, Recorded: 4}), "abc", true},
		{resumed(1, 1, 0), "abc", false},
		{frame(1, 1, "d"), "abcd", false},
		{stream.TailEvent{Kind: stream.TailFrame, Attempt: 1,
			Frame: stream.Frame{Mode: stream.ModeBestEffort, Sequence: 2, Payload: []byte("?")}}, "abcd", false},
		{began(2, stream.Covered{Attempt: 0, Recorded: 4}, stream.Covered{Attempt: 1, Recorded: 1}), "abcd", true},
		{frame(2, 1, "e"), "abcde", false},
		{began(3), "", true}, // a replay from scratch
		{frame(3, 1, "z"), "z", false},
		{stream.TailEvent{Kind: stream.TailGap, Attempt: 3, Trimmed: 2, Missed: 1}, "z", false},
		{stream.TailEvent{Kind: stream.TailEnd, Attempt: 3, Position: at}, "z", false},
	} {
		if dropped := tr.Add(step.event); dropped != step.dropped || tr.Text() != step.text {
			t.Fatalf("event %d: dropped %t, text %q, want %t and %q", i, dropped, tr.Text(), step.dropped, step.text)
		}
	}
	if tr.Lost() != 3 || tr.Position() != at || fmt.Sprint(len(tr.Frames())) != "1" {
		t.Errorf("lost %d, position %s, %d frames", tr.Lost(), tr.Position(), len(tr.Frames()))
	}
}
