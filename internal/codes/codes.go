// Package codes names the states in which an execution can be stored. Each is one legal combination of what
// State tells; an illegal one has no code and cannot be stored. The letter tells the group, a suffix the
// state of the attempt: f never ran, t waits for a retry, p for a replay, i continues, r was taken from a lost
// worker, n never ran before it ended.
package codes

// The codes. They are untyped, for [Code].
const (
	WaitingFirst       = "R1f" // never ran
	WaitingRetry       = "R1t" // next claim makes an attempt of type retry
	WaitingReplay      = "R1p" // … of type replay
	WaitingInterrupted = "R1i" // the paused attempt goes on with the next claim
	WaitingReclaim     = "R1r" // requeued after a lost lease; next claim makes an attempt of type reclaim

	DelayedFirst       = "R2af" // created with a delay
	DelayedInterrupted = "R2ai" // the worker delayed itself
	RetryBackoff       = "R2b"
	ReclaimBackoff     = "R2r" // workers were lost while they ran it, and it pauses before the next one gets it
	ResumeDelay        = "R2c"

	BlockedFirst  = "R3f" // a member of a flow that waits for others
	BlockedReplay = "R3p" // … in order to run again

	HeldFirst       = "R4f" // an operator keeps it from being handed out
	HeldRetry       = "R4t"
	HeldReplay      = "R4p"
	HeldInterrupted = "R4i"
	HeldReclaim     = "R4r"

	GrantedFirst       = "G1f" // waiting, while a worker asks its gates
	GrantedRetry       = "G1t"
	GrantedReplay      = "G1p"
	GrantedInterrupted = "G1i"
	GrantedReclaim     = "G1r"

	Active       = "A1"
	LeaseExpired = "A2" // shown, never stored: an A1 whose session is dead
	Revoked      = "A3"

	AwaitingSignal   = "S1" // suspended, one code for each reason
	AwaitingApproval = "S2"
	AwaitingCallback = "S3"
	AwaitingTool     = "S4"
	PausedByOperator = "S5"
	PausedByPolicy   = "S6"
	AwaitingBudget   = "S7"
	AwaitingChildren = "S8"

	Completed = "T1"
	Failed    = "T2"
	Cancelled = "T3"
	CancelN   = "T3n"
	Expired   = "T4"
	ExpiredN  = "T4n"
	Skipped   = "T5"
	SkippedN  = "T5n"
)

// All is every code.
func All() []string {
	return []string{
		WaitingFirst, WaitingRetry, WaitingReplay, WaitingInterrupted, WaitingReclaim, DelayedFirst, DelayedInterrupted,
		RetryBackoff, ReclaimBackoff, ResumeDelay, BlockedFirst, BlockedReplay, HeldFirst,
		HeldRetry, HeldReplay, HeldInterrupted, HeldReclaim, GrantedFirst, GrantedRetry, GrantedReplay,
		GrantedInterrupted, GrantedReclaim, Active, LeaseExpired, Revoked, AwaitingSignal, AwaitingApproval,
		AwaitingCallback, AwaitingTool, PausedByOperator, PausedByPolicy, AwaitingBudget, AwaitingChildren, Completed,
		Failed, Cancelled, CancelN, Expired, ExpiredN, Skipped, SkippedN,
	}
}
