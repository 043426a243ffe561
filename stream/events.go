package stream

import flowfabric "github.com/flowfabric/flowfabric-go"

// TailKind says what a [TailEvent] tells.
type TailKind uint8

// The kinds of events, in the order a tail sees them.
const (
	TailAttempt    TailKind = iota + 1 // an attempt has begun; its frames follow
	TailGap                            // Trimmed and Missed frames were gone before they could be read
	TailResumed                        // the attempt goes on in another run, Resumed, and repeats what was not recorded; its frames follow
	TailFrame                          // Frame
	TailAttemptEnd                     // the attempt has ended for Reason and all its frames were delivered
	TailEnd                            // the execution has ended in State; the last event
)

func (k TailKind) String() string {
	switch k {
	case TailAttempt:
		return "attempt"
	case TailGap:
		return "gap"
	case TailResumed:
		return "resumed"
	case TailFrame:
		return "frame"
	case TailAttemptEnd:
		return "attempt_end"
	case TailEnd:
		return "end"
	}
	return "unknown"
}

// TailEvent is one step of a tail. Attempt and Kind are always set.
type TailEvent struct {
	Attempt uint32 // with TailEnd the last one, 0 if there was none
	Kind    TailKind
	Frame   Frame      // TailFrame; do not change its Payload, tailers share it
	Resumed Resumption // TailResumed: number and reason of the run, and which frames it repeats
	// Reason is why the attempt ended, with TailAttemptEnd: [AttemptSucceeded] and the constants beside it; "" when unknown.
	Reason string
	// State is, with TailEnd, how the execution ended: completed, failed, cancelled, expired or skipped. Code is the same as it is stored.
	State   flowfabric.PublicState
	Code    flowfabric.Code
	Trimmed uint64 // TailGap: durable frames that the server dropped
	// Recorded is, with TailAttemptEnd, the sequence of the attempt's last frame that a recorded step covers: a later attempt
	// repeats the frames after it.
	Recorded uint64
	Missed   uint64 // TailGap: other frames that were not stored any more when this tail had fallen behind
}
