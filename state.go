package flowfabric

import "slices"

// Code is the name of one legal combination of the seven state dimensions, as the core stores it. The name is
// the row of spec 10 §2.2 with a suffix for the attempt state: f pending first, t pending retry, p pending
// replay, i interrupted, r reclaim pending, n never ran. An illegal combination has no name and cannot be stored.
type Code string

// The codes.
const (
	CodeWaitingFirst       Code = "R1f" // never ran
	CodeWaitingRetry       Code = "R1t" // next claim makes an attempt of type retry
	CodeWaitingReplay      Code = "R1p" // … of type replay
	CodeWaitingInterrupted Code = "R1i" // the paused attempt goes on with the next claim
	CodeWaitingReclaim     Code = "R1r" // requeued after a lost lease; next claim makes an attempt of type reclaim

	CodeDelayedFirst       Code = "R2af" // created with a delay
	CodeDelayedInterrupted Code = "R2ai" // the worker delayed itself
	CodeRetryBackoff       Code = "R2b"
	CodeReclaimBackoff     Code = "R2r" // workers were lost while they ran it, and it pauses before the next one gets it
	CodeResumeDelay        Code = "R2c"

	CodeBlockedFirst       Code = "R3f" // a member of a flow that waits for others
	CodeBlockedReplay      Code = "R3p" // … in order to run again
	CodeBlockedInterrupted Code = "R3i" // it waits for children; the paused attempt goes on

	CodePausedFirst       Code = "R4f" // an operator keeps it from being handed out
	CodePausedRetry       Code = "R4t"
	CodePausedReplay      Code = "R4p"
	CodePausedInterrupted Code = "R4i"
	CodePausedReclaim     Code = "R4r"

	CodeGrantedFirst       Code = "G1f" // waiting, while a worker asks its budgets and quotas
	CodeGrantedRetry       Code = "G1t"
	CodeGrantedReplay      Code = "G1p"
	CodeGrantedInterrupted Code = "G1i"
	CodeGrantedReclaim     Code = "G1r"

	CodeActive       Code = "A1"
	CodeLeaseExpired Code = "A2" // shown, never stored: an A1 whose session is dead
	CodeRevoked      Code = "A3"

	CodeAwaitingSignal   Code = "S1" // suspended, one code per reason of spec 20 §5
	CodeAwaitingApproval Code = "S2"
	CodeAwaitingCallback Code = "S3"
	CodeAwaitingTool     Code = "S4"
	CodePausedByOperator Code = "S5"
	CodePausedByPolicy   Code = "S6"
	CodeAwaitingBudget   Code = "S7"

	CodeCompleted Code = "T1"
	CodeFailed    Code = "T2"
	CodeCancelled Code = "T3"
	CodeCancelN   Code = "T3n"
	CodeExpired   Code = "T4"
	CodeExpiredN  Code = "T4n"
	CodeSkipped   Code = "T5"
	CodeSkippedN  Code = "T5n"
)

// PublicState is the one word that producers and dashboards show.
type PublicState string

// The public states of spec 10 §2.1.
const (
	Waiting         PublicState = "waiting"
	Delayed         PublicState = "delayed"
	RateLimited     PublicState = "rate_limited"
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

// State is a code projected onto the seven dimensions of spec 10 §2.1 and the public state.
type State struct {
	Code            Code
	LifecyclePhase  string // runnable, active, suspended, terminal
	OwnershipState  string // unowned, leased, lease_expired_reclaimable, lease_revoked
	Eligibility     string // eligible_now, not_eligible_until_time, blocked_by_…, not_applicable
	BlockingReason  string // none, waiting_for_worker, waiting_for_delay, …
	TerminalOutcome string // none, success, failed, cancelled, expired, skipped
	AttemptState    string // none, pending_first_attempt, running_attempt, …
	Public          PublicState
}

// Terminal reports whether the execution has ended.
func (s State) Terminal() bool { return s.LifecyclePhase == "terminal" }

var projections = func() map[Code]State {
	m := map[Code]State{}
	add := func(code Code, phase, ownership, eligibility, reason, outcome, attempt string, public PublicState) {
		m[code] = State{code, phase, ownership, eligibility, reason, outcome, attempt, public}
	}
	for code, attempt := range map[Code]string{
		CodeWaitingFirst: "pending_first_attempt", CodeWaitingRetry: "pending_retry_attempt",
		CodeWaitingReplay: "pending_replay_attempt", CodeWaitingInterrupted: "attempt_interrupted",
		CodeWaitingReclaim: "attempt_interrupted",
	} {
		add(code, "runnable", "unowned", "eligible_now", "waiting_for_worker", "none", attempt, Waiting)
		add("G1"+code[2:], "runnable", "unowned", "eligible_now", "waiting_for_worker", "none", attempt, Waiting)
		add("R4"+code[2:], "runnable", "unowned", "blocked_by_operator", "paused_by_operator", "none", attempt, Waiting)
	}
	later := func(code Code, reason, attempt string) {
		add(code, "runnable", "unowned", "not_eligible_until_time", reason, "none", attempt, Delayed)
	}
	later(CodeDelayedFirst, "waiting_for_delay", "pending_first_attempt")
	later(CodeDelayedInterrupted, "waiting_for_delay", "attempt_interrupted")
	later(CodeRetryBackoff, "waiting_for_retry_backoff", "pending_retry_attempt")
	later(CodeReclaimBackoff, "waiting_for_retry_backoff", "attempt_interrupted")
	later(CodeResumeDelay, "waiting_for_resume_delay", "attempt_interrupted")

	for code, attempt := range map[Code]string{
		CodeBlockedFirst: "pending_first_attempt", CodeBlockedReplay: "pending_replay_attempt", CodeBlockedInterrupted: "attempt_interrupted",
	} {
		add(code, "runnable", "unowned", "blocked_by_dependencies", "waiting_for_children", "none", attempt, WaitingChildren)
	}

	add(CodeActive, "active", "leased", "not_applicable", "none", "none", "running_attempt", Active)
	add(CodeLeaseExpired, "active", "lease_expired_reclaimable", "not_applicable", "waiting_for_worker", "none", "attempt_interrupted", Active)
	add(CodeRevoked, "active", "lease_revoked", "not_applicable", "waiting_for_worker", "none", "attempt_interrupted", Active)

	for code, reason := range map[Code]string{
		CodeAwaitingSignal: "waiting_for_signal", CodeAwaitingApproval: "waiting_for_approval",
		CodeAwaitingCallback: "waiting_for_callback", CodeAwaitingTool: "waiting_for_tool_result",
		CodePausedByOperator: "paused_by_operator", CodePausedByPolicy: "paused_by_policy", CodeAwaitingBudget: "waiting_for_budget",
	} {
		add(code, "suspended", "unowned", "not_applicable", reason, "none", "attempt_interrupted", Suspended)
	}

	ended := func(code Code, outcome, attempt string, public PublicState) {
		add(code, "terminal", "unowned", "not_applicable", "none", outcome, attempt, public)
	}
	ended(CodeCompleted, "success", "attempt_terminal", Completed)
	ended(CodeFailed, "failed", "attempt_terminal", Failed)
	ended(CodeCancelled, "cancelled", "attempt_terminal", Cancelled)
	ended(CodeCancelN, "cancelled", "none", Cancelled)
	ended(CodeExpired, "expired", "attempt_terminal", Expired)
	ended(CodeExpiredN, "expired", "none", Expired)
	ended(CodeSkipped, "skipped", "attempt_terminal", Skipped)
	ended(CodeSkippedN, "skipped", "none", Skipped)
	return m
}()

// Project returns the dimensions of a code; ok is false for a code that is not legal.
func Project(code Code) (state State, ok bool) {
	state, ok = projections[code]
	return state, ok
}

// Codes lists every legal code in order.
func Codes() []Code {
	codes := make([]Code, 0, len(projections))
	for c := range projections {
		codes = append(codes, c)
	}
	slices.Sort(codes)
	return codes
}

// AttemptType says why an attempt exists (spec 10 §1.5). A resumed attempt is the one it continues.
type AttemptType string

// The attempt types; AttemptResumed is what a claim reports when it continues a paused attempt.
const (
	AttemptInitial AttemptType = "initial"
	AttemptRetry   AttemptType = "retry"
	AttemptReclaim AttemptType = "reclaim"
	AttemptReplay  AttemptType = "replay"
	AttemptResumed AttemptType = "resumed"
)
