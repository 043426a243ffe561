package suspend

import "time"

// Reason says why an execution waits, as dashboards show it: one of the constants, or paused_by_policy,
// paused_by_budget, step_boundary, manual_pause, or waiting_for_children, which is the default of waits for children.
type Reason string

// The reasons. The default is ReasonSignal.
const (
	ReasonSignal     Reason = "waiting_for_signal"
	ReasonApproval   Reason = "waiting_for_approval"
	ReasonCallback   Reason = "waiting_for_callback"
	ReasonToolResult Reason = "waiting_for_tool_result"
	ReasonReview     Reason = "waiting_for_operator_review"
)

// Behaviour decides what happens when a wait lasts longer than [Within] allows. No retry policy applies.
type Behaviour string

// The behaviours. The default is Fail.
const (
	// the execution fails (dead letter), category suspension_timeout
	Fail   Behaviour = "fail"
	Cancel Behaviour = "cancel"      // it is cancelled
	Expire Behaviour = "expire"      // it expires
	Resume Behaviour = "auto_resume" // the handler goes on; the wait returns ErrWaitTimeout
	// Resume, and the waitpoints that Pending opened stay open for the next wait on their keys
	Remind Behaviour = "auto_resume_open"
	// it goes on waiting, for an operator's review; signals still resume it
	Escalate Behaviour = "escalate"
	Notice   Behaviour = "auto_resume_with_timeout_signal" // Resume, and Result.Signals has one signal named __timeout
)

// Option changes a wait: [Within], [OnTimeout], [Because], [ResumeAfter], [Named], [At] and [Asking]. Of two of a kind
// the later one counts.
type Option interface{ option() }

// Within bounds the wait: 1 ms to ten years from the moment the execution suspends, by the server's clock. Default,
// and what 0 means: for ever.
type Within time.Duration

// OnTimeout says what happens after [Within]. Default [Fail].
type OnTimeout Behaviour

// Because says why the execution waits. Default [ReasonSignal].
type Because Reason

// ResumeAfter keeps the execution back for up to 30 days after it was resumed. Default 0.
type ResumeAfter time.Duration

// Named makes handler.Await, and only that, wait for a signal of this name, 1..128 bytes. Default: any.
type Named string

// At makes handler.Await and handler.Task.Ask, and only these, wait on the waitpoint of this key, 1..256 bytes,
// instead of the one that is called like the wait: for a second wait on a waitpoint that an earlier one has left open
// ([Remind]).
type At string

// Asking gives a wait for a condition a question. Which signals answer is for the condition to say; others are
// refused. handler.Task.Ask is the usual way.
type Asking Question

func (Within) option()      {}
func (OnTimeout) option()   {}
func (Because) option()     {}
func (ResumeAfter) option() {}
func (Named) option()       {}
func (At) option()          {}
func (Asking) option()      {}
