package codes

import (
	"cmp"

	"github.com/flowfabric/flowfabric-go"
)

// Code is one of the codes.
type Code string

// Blocking reasons that decide something.
const (
	ForWorker = "waiting_for_worker"
	Held      = "held_by_operator"
)

// State is a code in words: what users see of it, and five dimensions more.
type State struct {
	flowfabric.State
	Code            Code
	LifecyclePhase  string // runnable, active, suspended or terminal
	OwnershipState  string // unowned, leased, lease_expired_reclaimable or lease_revoked
	Eligibility     string // eligible_now, not_eligible_until_time, blocked_by_… or not_applicable
	TerminalOutcome string // none, success, failed, cancelled, expired or skipped
	AttemptState    string // none, pending_first_attempt, running_attempt, …
}

var projections = func() map[Code]State {
	m := map[Code]State{}
	add := func(code Code, attempt string, s State) {
		s.Code, s.AttemptState = code, attempt
		s.TerminalOutcome = cmp.Or(s.TerminalOutcome, "none")
		s.OwnershipState, s.Eligibility = cmp.Or(s.OwnershipState, "unowned"), cmp.Or(s.Eligibility, "not_applicable")
		m[code] = s
	}
	for code, attempt := range map[Code]string{
		WaitingFirst: "pending_first_attempt", WaitingRetry: "pending_retry_attempt",
		WaitingReplay: "pending_replay_attempt", WaitingInterrupted: "attempt_interrupted",
		WaitingReclaim: "attempt_interrupted",
	} {
		waiting := State{LifecyclePhase: "runnable", Eligibility: "eligible_now",
			State: shown(flowfabric.Waiting, ForWorker)}
		add(code, attempt, waiting)
		add("G1"+code[2:], attempt, waiting)
		add("R4"+code[2:], attempt, State{LifecyclePhase: "runnable", Eligibility: "blocked_by_operator",
			State: shown(flowfabric.Waiting, Held)})
	}
	later := func(code Code, reason, attempt string) {
		add(code, attempt, State{LifecyclePhase: "runnable", Eligibility: "not_eligible_until_time",
			State: shown(flowfabric.Delayed, reason)})
	}
	later(DelayedFirst, "waiting_for_delay", "pending_first_attempt")
	later(DelayedInterrupted, "waiting_for_delay", "attempt_interrupted")
	later(RetryBackoff, "waiting_for_retry_backoff", "pending_retry_attempt")
	later(ReclaimBackoff, "waiting_for_retry_backoff", "attempt_interrupted")
	later(ResumeDelay, "waiting_for_resume_delay", "attempt_interrupted")

	for code, attempt := range map[Code]string{
		BlockedFirst: "pending_first_attempt", BlockedReplay: "pending_replay_attempt",
	} {
		add(code, attempt, State{LifecyclePhase: "runnable", Eligibility: "blocked_by_dependencies",
			State: shown(flowfabric.WaitingChildren, "waiting_for_children")})
	}

	add(Active, "running_attempt", State{LifecyclePhase: "active", OwnershipState: "leased",
		State: shown(flowfabric.Active, "")})
	for code, owner := range map[Code]string{LeaseExpired: "lease_expired_reclaimable",
		Revoked: "lease_revoked"} {
		add(code, "attempt_interrupted", State{LifecyclePhase: "active", OwnershipState: owner,
			State: shown(flowfabric.Active, ForWorker)})
	}

	for code, reason := range map[Code]string{
		AwaitingSignal: "waiting_for_signal", AwaitingApproval: "waiting_for_approval",
		AwaitingCallback: "waiting_for_callback", AwaitingTool: "waiting_for_tool_result",
		PausedByOperator: "paused_by_operator", PausedByPolicy: "paused_by_policy",
		AwaitingBudget: "waiting_for_gate", AwaitingChildren: "waiting_for_children",
	} {
		add(code, "attempt_interrupted", State{LifecyclePhase: "suspended",
			State: shown(flowfabric.Suspended, reason)})
	}

	ended := func(code Code, outcome, attempt string, public flowfabric.PublicState) {
		add(code, attempt, State{LifecyclePhase: "terminal", TerminalOutcome: outcome, State: shown(public, "")})
	}
	ended(Completed, "success", "attempt_terminal", flowfabric.Completed)
	ended(Failed, "failed", "attempt_terminal", flowfabric.Failed)
	ended(Cancelled, "cancelled", "attempt_terminal", flowfabric.Cancelled)
	ended(CancelN, "cancelled", "none", flowfabric.Cancelled)
	ended(Expired, "expired", "attempt_terminal", flowfabric.Expired)
	ended(ExpiredN, "expired", "none", flowfabric.Expired)
	ended(Skipped, "skipped", "attempt_terminal", flowfabric.Skipped)
	ended(SkippedN, "skipped", "none", flowfabric.Skipped)
	return m
}()

func shown(public flowfabric.PublicState, blocking string) flowfabric.State {
	return flowfabric.State{Public: public, BlockingReason: blocking}
}

// Shown is what users see of a code; empty for one that is not legal.
func Shown(code Code) flowfabric.State { return projections[code].State }

// Project returns the dimensions of a code; ok is false for a code that is not legal.
func Project(code Code) (state State, ok bool) {
	state, ok = projections[code]
	return state, ok
}
