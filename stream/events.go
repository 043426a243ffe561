package stream

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// TailKind says what a [TailEvent] tells.
type TailKind string

// The kinds of events.
const (
	TailAttempt TailKind = "attempt" // an attempt has begun; its frames follow
	TailGap     TailKind = "gap"     // Trimmed and Missed frames were gone before they could be read
	// the attempt goes on in another run, Resumed, and repeats what was not recorded; its frames follow
	TailResumed    TailKind = "resumed"
	TailFrame      TailKind = "frame"       // Frame
	TailSuspended  TailKind = "suspended"   // the attempt waits for an answer, see Suspension
	TailAttemptEnd TailKind = "attempt_end" // the attempt has ended for Reason and all its frames were delivered
	TailRetry      TailKind = "retry"       // another attempt, of Type, is to begin at At
	TailEnd        TailKind = "end"         // the execution has ended in State; the last event
)

// TailEvent is one step of a tail. Kind, Attempt and Position are always set; the package comment has a table of the
// other fields.
type TailEvent struct {
	Kind TailKind `json:"kind" jsonschema:"attempt, resumed, frame, gap, suspended, attempt_end, retry or end; also the name of the event"`
	// 1 for the first; with TailRetry the one that is to begin, with TailEnd the last one, 0 if there was none
	Attempt  uint32   `json:"attempt,omitempty" jsonschema:"1 for the first; absent if none began"`
	Position Position `json:"position" jsonschema:"behind this event, the same for every reader"` // for client.From
	// Child is whose event this is; nil: the execution's own. Attempt and all else are then of the child. Tailers share
	// it.
	Child *Child `json:"child,omitempty" jsonschema:"whose event this is, if a child's; all else is then of it"`

	// Type is, with TailAttempt and TailRetry, what the attempt is: flowfabric.AttemptInitial, AttemptRetry (the one
	// before it failed), AttemptReclaim (its worker was lost) or AttemptReplay.
	Type flowfabric.AttemptType `json:"attempt_type,omitempty" jsonschema:"type of the attempt that begins"`
	// At is when, by the server's clock: the attempt was claimed for the first time, it is to begin, it was suspended,
	// it ended, or the execution ended. Every reader is told the same instant of what has happened, whenever it reads.
	// Zero if that is not known, and of a TailRetry if it waits for nothing but a worker.
	At time.Time `json:"at,omitzero"`
	// Reused has, with TailAttempt, each earlier attempt of which frames stay: recorded steps cover them, and this
	// attempt does not repeat them.
	Reused []Covered `json:"reused,omitempty" jsonschema:"frames of earlier attempts that stay"`

	Frame Frame `json:"frame,omitzero"` // TailFrame; do not change its Payload, tailers share it
	// TailResumed: number and reason of the run, and which frames it repeats
	Resumed Resumption `json:"resumed,omitzero"`
	// TailSuspended: what it waits for, its waitpoints and until when; tailers share it
	Suspension *suspend.Record `json:"suspension,omitempty"`

	Trimmed uint64 `json:"trimmed,omitempty"` // TailGap: durable frames that the server dropped
	// TailGap: other frames that were not stored any more when this tail had fallen behind
	Missed uint64 `json:"missed,omitempty"`

	// Reason is purged with a TailGap of a child of which nothing is left, or nothing behind what was told: its last
	// event. With TailAttemptEnd it is why the attempt ended: attempt_success, attempt_failure, attempt_cancelled,
	// expired (its timeout or the deadline of the execution), lease_expired (its worker died or lost the lease),
	// lease_revoked (an operator took the lease away), rewound (somebody had it go on again from an earlier step),
	// suspension_timeout (nothing answered in time), forked (of an attempt that a fork has taken over: what follows is
	// its own); "" when unknown.
	Reason string `json:"reason,omitempty" jsonschema:"why the attempt ended"`
	// Category and Message say what went wrong, with TailAttemptEnd, TailRetry and TailEnd: the category of the
	// failure (see package flowfabric) and its text, at most 1 KiB. With a TailEnd of one that was cancelled, and with
	// a TailAttemptEnd of one that was rewound, Message is the reason that was given, and By says who did it. Source is
	// of a cancellation: what kind of source that is, as in flowfabric.Snapshot.
	Category flowfabric.Category `json:"category,omitempty"`
	Message  string              `json:"message,omitempty"`
	By       string              `json:"by,omitempty" jsonschema:"at the end: the person or token that cancelled or rewound it, if one was named"`
	Source   string              `json:"source,omitempty" jsonschema:"at the end: the kind of source that cancelled it"`
	// Recorded is, with TailAttemptEnd, the sequence of the attempt's last frame that a recorded step covers: a later
	// attempt repeats the frames after it.
	Recorded uint64 `json:"recorded,omitempty" jsonschema:"at the end of an attempt: sequence of the last recorded frame, absent for none; later frames are repeated"`

	// State is, with TailEnd, how the execution ended: completed, failed, cancelled, expired or skipped.
	State flowfabric.PublicState `json:"state,omitempty"`
}

// Child is a child whose events are shown among those of the execution that made it (flow.Streamed).
type Child struct {
	// Path has its name, behind those of the children above it: 1 to 4 names.
	Path []string               `json:"path"`
	ID   flowfabric.ExecutionID `json:"id"`
}

// Covered are the first frames of an attempt, up to the Sequence Recorded.
type Covered struct {
	Attempt  uint32 `json:"attempt"`
	Recorded uint64 `json:"recorded"`
}

// Position is a place between two events of a tail: TailEvent.Position is the one behind the event, and client.From
// goes on there, in any process and at any time. It is opaque and short, at most 140 bytes, and some 100 bytes more for
// each child that is open there and shown ([Child]), at most 9 KiB. Its letters, digits, dots and hyphens need no
// quoting in a URL, a shell or the id of a server-sent event. The zero value, "", is before the first event.
type Position string

// ParsePosition takes over the text of a [Position] that came from elsewhere. For any other text the error wraps
// [flowfabric.ErrInvalidInput].
func ParsePosition(text string) (Position, error) {
	if _, err := tailpos.ParseMerged(text); err != nil {
		return "", err
	}
	return Position(text), nil
}
