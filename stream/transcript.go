package stream

import (
	"iter"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
)

// Transcript joins the frames of all runs and attempts into what the execution has put out as it stands now: it is
// fed with the events of a tail, in order and from the first one on, and drops the frames that a later run or attempt
// repeats. This is exact for frames that are appended inside steps which run one after the other. Children that the
// tail shows have transcripts of their own, see [Transcript.Children]. The zero value is ready. It is for one
// goroutine.
type Transcript struct {
	parts    []part
	position Position
	lost     uint64
	children []Child
	of       map[flowfabric.ExecutionID]*Transcript
}

// part is what stays of an attempt.
type part struct {
	attempt uint32
	frames  []Frame
}

// Add takes over an event, and tells whether it took frames away that [Transcript.Frames] had before, so that what
// was shown must be shown again.
func (t *Transcript) Add(e TailEvent) (dropped bool) {
	t.position = e.Position
	if e.Child != nil {
		child := *e.Child
		e.Child = nil
		if t.of[child.ID] == nil {
			if t.of == nil {
				t.of = map[flowfabric.ExecutionID]*Transcript{}
			}
			t.children, t.of[child.ID] = append(t.children, child), &Transcript{}
		}
		return t.of[child.ID].Add(e)
	}
	switch e.Kind {
	case TailAttempt:
		for i := range t.parts {
			dropped = t.keep(i, func(f Frame) bool {
				return slices.ContainsFunc(e.Reused, func(c Covered) bool {
					return c.Attempt == t.parts[i].attempt && f.Sequence <= c.Recorded
				})
			}) || dropped
		}
	case TailResumed:
		if i := t.find(e.Attempt); i >= 0 {
			dropped = t.keep(i, func(f Frame) bool { return !e.Resumed.repeats(f) })
		}
	case TailFrame:
		i := t.find(e.Attempt)
		if i < 0 {
			i, t.parts = len(t.parts), append(t.parts, part{attempt: e.Attempt})
		}
		t.parts[i].frames = append(t.parts[i].frames, e.Frame)
	case TailGap:
		t.lost += e.Trimmed + e.Missed
	}
	return dropped
}

// find finds an attempt, which is mostly the last; -1 if it has no frames.
func (t *Transcript) find(attempt uint32) int {
	for i := len(t.parts) - 1; i >= 0; i-- {
		if t.parts[i].attempt == attempt {
			return i
		}
	}
	return -1
}

// keep drops the frames of a part that do not stay.
func (t *Transcript) keep(i int, stays func(Frame) bool) (dropped bool) {
	before := len(t.parts[i].frames)
	t.parts[i].frames = slices.DeleteFunc(t.parts[i].frames, func(f Frame) bool { return !stays(f) })
	return len(t.parts[i].frames) < before
}

// Children yields the children that had events, in the order of their first ones, each with its transcript, which goes
// on with this one.
func (t *Transcript) Children() iter.Seq2[Child, *Transcript] {
	return func(yield func(Child, *Transcript) bool) {
		for _, child := range t.children {
			if !yield(child, t.of[child.ID]) {
				return
			}
		}
	}
}

// Frames are the frames as they stand, in order, also those that were not meant to last, without those of children.
// The slice is the caller's.
func (t *Transcript) Frames() []Frame {
	var all []Frame
	for _, p := range t.parts {
		all = append(all, p.frames...)
	}
	return all
}

// Text returns the contents of the durable frames, one after the other, without those of children. For a frame that
// stays encrypted it says so.
func (t *Transcript) Text() string {
	var text []byte
	for _, p := range t.parts {
		for _, f := range p.frames {
			if f.Mode == ModeDurable {
				text = append(text, sealed.Text(f.Payload)...)
			}
		}
	}
	return string(text)
}

// Lost is how many frames were gone before they could be read, without those of children.
func (t *Transcript) Lost() uint64 { return t.lost }

// Position is where to go on: behind the last event, whether it was a child's or not.
func (t *Transcript) Position() Position { return t.position }
