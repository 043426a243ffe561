package model

import (
	"cmp"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// RecordStep stores the value of a durable step.
func (p *Partition) RecordStep(id string, f Fence, name, value string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	switch {
	case len(name) < 1 || len(name) > 128:
		return answer("invalid_input")
	case len(value) > limits.MaxStepBytes:
		return answer("payload_too_large")
	case name[0] == unit[0]: // a rule of the function's own, behind those of its header
		return answer("invalid_input")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		return refused
	}
	if stored, ok := x.Steps[name]; ok {
		if stored == value {
			return answer(Already, "recorded", "")
		}
		return answer("step_conflict", name)
	}
	total := len(name) + len(value)
	for k, v := range x.Steps {
		total += len(k) + len(v)
	}
	if total > limits.MaxStepTotal || len(x.Steps) >= limits.MaxSteps {
		return answer("step_limit_exceeded")
	}
	x.record(name, value)
	if a := x.attempt(); a.Run == f.Epoch {
		a.Recorded = a.Sequence
		x.cover(name)
	}
	return answer(OK, "recorded", "")
}

// Progress stores how far the holder got; what it leaves out (-1, "") stays as the attempt said last.
func (p *Partition) Progress(id string, f Fence, percent int, message string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if percent < -1 || percent > 100 || len(message) > limits.MaxReason {
		return answer("invalid_input")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		return refused
	}
	was := x.attempt().Progress
	if was.At != 0 && percent < 0 {
		percent = was.Percent
	}
	if message == "" {
		message = was.Message
	}
	x.attempt().Progress = Progress{At: p.Now, Percent: percent, Message: message}
	return answer(OK, "stored")
}

// Batch is what one append brings. Modes has a letter for each frame, d durable, s summary delta or l best effort; ""
// stands for all durable. Base is the version of the summary that the first delta was merged into.
type Batch struct {
	First       uint64
	Count, Size int // Size is that of the largest payload
	Modes       string
	Base        uint64
	Document    int // bytes of what the last delta makes of it
}

// AppendFrames appends frames to the attempt's stream; those it has already are skipped, a gap is refused,
// and so are deltas to another version of the summary. All modes have one sequence and are counted apart.
func (p *Partition) AppendFrames(id string, f Fence, b Batch) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if b.First < 1 || b.Count < 1 || b.Count > limits.MaxAppendFrames {
		return answer("invalid_input")
	}
	if b.Size > limits.MaxFrame {
		return answer("payload_too_large")
	}
	modes := cmp.Or(b.Modes, strings.Repeat("d", b.Count))
	if strings.Contains(modes, "s") && b.Document > limits.MaxSummary {
		return answer("summary_too_large")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		return noAppend(x, refused)
	}
	a := x.attempt()
	if b.First > a.Sequence+1 {
		return answer("frame_sequence_gap", number(a.Sequence))
	}
	last := b.First + uint64(b.Count) - 1
	if last <= a.Sequence {
		return answer(Already, number(a.Frames), number(a.Sequence), number(a.Version), "0")
	}
	known, fresh := modes[:a.Sequence+1-b.First], modes[a.Sequence+1-b.First:]
	deltas := uint64(strings.Count(fresh, "s"))
	if deltas > 0 && b.Base+uint64(strings.Count(known, "s")) != a.Version {
		return answer("summary_version_conflict", number(a.Version))
	}
	if a.Sequence = last; a.Run != f.Epoch {
		a.Run, a.Runs = f.Epoch, a.Runs+1
	}
	a.Frames, a.Version, a.Live = a.Frames+uint64(strings.Count(fresh, "d")), a.Version+deltas,
		a.Live+uint64(strings.Count(fresh, "l"))
	return answer(OK, number(a.Frames), number(a.Sequence), number(a.Version), number(len(fresh)))
}

// noAppend says in the stream's words why a caller is not the holder.
func noAppend(x *Execution, refused Reply) Reply {
	switch refused.Code {
	case "lease_expired":
		return answer("stale_owner_cannot_append", "expired")
	case "lease_revoked":
		return answer("stale_owner_cannot_append", "revoked")
	case "stale_lease":
		return answer("stale_owner_cannot_append", "superseded")
	}
	if x != nil && x.terminal() {
		return answer("stream_closed", string(x.Code))
	}
	return refused
}
