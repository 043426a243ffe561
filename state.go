package flowfabric

import (
	"cmp"

	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// Code is the name of one legal combination of the dimensions of a [State], as it is stored. An illegal combination
// has no name and cannot be stored. Programs compare [PublicState] instead.
type Code string

// PublicState is the one word that producers and dashboards show.
type PublicState string

// The public states.
const (
	Waiting PublicState = "waiting"
	Delayed PublicState = "delayed"
	// for a budget to have room; only where it is read or listed, never in an event
	WaitingBudget   PublicState = "waiting_budget"
	WaitingQuota    PublicState = "waiting_quota" // for a quota, or a limit of a key; likewise
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

// State is a code in words: seven dimensions and the public state.
type State struct {
	Public          PublicState `json:"state" jsonschema:"waiting, waiting_budget, waiting_quota, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or skipped"`
	BlockingReason  string      `json:"blocking_reason,omitempty"` // waiting_for_worker, …; "": nothing
	Code            Code        `json:"code,omitempty" see:"operator"`
	LifecyclePhase  string      `json:"lifecycle_phase,omitempty" see:"operator" jsonschema:"runnable, active, suspended or terminal"`
	OwnershipState  string      `json:"ownership_state,omitempty" see:"operator" jsonschema:"unowned, leased, lease_expired_reclaimable or lease_revoked"`
	Eligibility     string      `json:"eligibility,omitempty" see:"operator" jsonschema:"eligible_now, not_eligible_until_time, blocked_by_… or not_applicable"`
	TerminalOutcome string      `json:"terminal_outcome,omitempty" see:"operator" jsonschema:"none, success, failed, cancelled, expired or skipped"`
	AttemptState    string      `json:"attempt_state,omitempty" see:"operator" jsonschema:"none, pending_first_attempt, running_attempt, …"`
}

// Terminal reports whether the execution has ended.
func (s State) Terminal() bool { return s.LifecyclePhase == "terminal" }

var projections = func() map[Code]State {
	m := map[Code]State{}
	add := func(code Code, attempt string, s State) {
		s.Code, s.AttemptState = code, attempt
		s.BlockingReason, s.TerminalOutcome = cmp.Or(s.BlockingReason, "none"), cmp.Or(s.TerminalOutcome, "none")
		s.OwnershipState, s.Eligibility = cmp.Or(s.OwnershipState, "unowned"), cmp.Or(s.Eligibility, "not_applicable")
		m[code] = s
	}
	for code, attempt := range map[Code]string{
		codes.WaitingFirst: "pending_first_attempt", codes.WaitingRetry: "pending_retry_attempt",
		codes.WaitingReplay: "pending_replay_attempt", codes.WaitingInterrupted: "attempt_interrupted",
		codes.WaitingReclaim: "attempt_interrupted",
	} {
		waiting := State{LifecyclePhase: "runnable", Eligibility: "eligible_now", BlockingReason: "waiting_for_worker",
			Public: Waiting}
		add(code, attempt, waiting)
		add("G1"+code[2:], attempt, waiting)
		add("R4"+code[2:], attempt, State{LifecyclePhase: "runnable", Eligibility: "blocked_by_operator",
			BlockingReason: "held_by_operator", Public: Waiting})
	}
	later := func(code Code, reason, attempt string) {
		add(code, attempt, State{LifecyclePhase: "runnable", Eligibility: "not_eligible_until_time",
			BlockingReason: reason, Public: Delayed})
	}
	later(codes.DelayedFirst, "waiting_for_delay", "pending_first_attempt")
	later(codes.DelayedInterrupted, "waiting_for_delay", "attempt_interrupted")
	later(codes.RetryBackoff, "waiting_for_retry_backoff", "pending_retry_attempt")
	later(codes.ReclaimBackoff, "waiting_for_retry_backoff", "attempt_interrupted")
	later(codes.ResumeDelay, "waiting_for_resume_delay", "attempt_interrupted")

	for code, attempt := range map[Code]string{
		codes.BlockedFirst: "pending_first_attempt", codes.BlockedReplay: "pending_replay_attempt",
		codes.BlockedInterrupted: "attempt_interrupted",
	} {
		add(code, attempt, State{LifecyclePhase: "runnable", Eligibility: "blocked_by_dependencies",
			BlockingReason: "waiting_for_children", Public: WaitingChildren})
	}

	add(codes.Active, "running_attempt", State{LifecyclePhase: "active", OwnershipState: "leased", Public: Active})
	for code, owner := range map[Code]string{codes.LeaseExpired: "lease_expired_reclaimable",
		codes.Revoked: "lease_revoked"} {
		add(code, "attempt_interrupted", State{LifecyclePhase: "active", OwnershipState: owner,
			BlockingReason: "waiting_for_worker", Public: Active})
	}

	for code, reason := range map[Code]string{
		codes.AwaitingSignal: "waiting_for_signal", codes.AwaitingApproval: "waiting_for_approval",
		codes.AwaitingCallback: "waiting_for_callback", codes.AwaitingTool: "waiting_for_tool_result",
		codes.PausedByOperator: "paused_by_operator", codes.PausedByPolicy: "paused_by_policy",
		codes.AwaitingBudget: "waiting_for_budget", codes.AwaitingChildren: "waiting_for_children",
	} {
		add(code, "attempt_interrupted", State{LifecyclePhase: "suspended", BlockingReason: reason, Public: Suspended})
	}

	ended := func(code Code, outcome, attempt string, public PublicState) {
		add(code, attempt, State{LifecyclePhase: "terminal", TerminalOutcome: outcome, Public: public})
	}
	ended(codes.Completed, "success", "attempt_terminal", Completed)
	ended(codes.Failed, "failed", "attempt_terminal", Failed)
	ended(codes.Cancelled, "cancelled", "attempt_terminal", Cancelled)
	ended(codes.CancelN, "cancelled", "none", Cancelled)
	ended(codes.Expired, "expired", "attempt_terminal", Expired)
	ended(codes.ExpiredN, "expired", "none", Expired)
	ended(codes.Skipped, "skipped", "attempt_terminal", Skipped)
	ended(codes.SkippedN, "skipped", "none", Skipped)
	return m
}()

// Project returns the dimensions of a code; ok is false for a code that is not legal.
func Project(code Code) (state State, ok bool) {
	state, ok = projections[code]
	return state, ok
}

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
