package flowfabric

// PublicState is the one word that producers and dashboards show.
type PublicState string

// The public states.
const (
	Waiting PublicState = "waiting"
	Delayed PublicState = "delayed"
	// for a gate to have room, or a limit of a key; only where it is read or listed, never in an event
	WaitingGate     PublicState = "waiting_gate"
	WaitingChildren PublicState = "waiting_children"
	Active          PublicState = "active"
	Suspended       PublicState = "suspended"
	Completed       PublicState = "completed"
	Failed          PublicState = "failed"
	Cancelled       PublicState = "cancelled"
	Expired         PublicState = "expired"
	Skipped         PublicState = "skipped"
)

// Terminal reports whether no further transition happens by itself.
func (p PublicState) Terminal() bool {
	switch p {
	case Completed, Failed, Cancelled, Expired, Skipped:
		return true
	}
	return false
}

// State is what an execution does, or waits for.
type State struct {
	Public PublicState `json:"state" jsonschema:"waiting, waiting_gate, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or skipped"`
	// BlockingReason is why no worker runs it now; "": one does, or it has ended. Before a claim it is
	// waiting_for_worker, held_by_operator, waiting_for_delay, waiting_for_retry_backoff, waiting_for_resume_delay,
	// waiting_for_children or waiting_for_gate. While it is suspended it is waiting_for_signal,
	// waiting_for_approval, waiting_for_callback, waiting_for_tool_result, waiting_for_children, waiting_for_gate,
	// paused_by_operator or paused_by_policy. An active one whose worker is lost has waiting_for_worker.
	BlockingReason string `json:"blocking_reason,omitempty" jsonschema:"why no worker runs it now: waiting_for_worker, held_by_operator, waiting_for_delay, …; absent: one does, or it has ended"`
}

// Terminal reports whether the execution has ended.
func (s State) Terminal() bool { return s.Public.Terminal() }

// AttemptType says why an attempt exists. A resumed attempt is the one it continues.
type AttemptType string

// The attempt types; AttemptResumed is what a claim reports when it continues a paused attempt.
const (
	AttemptInitial AttemptType = "initial"
	AttemptRetry   AttemptType = "retry"
	AttemptReclaim AttemptType = "reclaim"
	AttemptReplay  AttemptType = "replay"
	// the first one with another input, which the attempt before left (handler.Continue)
	AttemptContinue AttemptType = "continue"
	AttemptResumed  AttemptType = "resumed"
)
