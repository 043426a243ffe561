package codes_test

import (
	"testing"

	"github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// The rows of the table of states, spelled out: phase, ownership, eligibility, reason, outcome, attempt, public.
var rows = map[codes.Code][7]string{
	"R1f": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "pending_first_attempt", "waiting"},
	"R1t": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "pending_retry_attempt", "waiting"},
	"R1p": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "pending_replay_attempt", "waiting"},
	"R1i": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "attempt_interrupted", "waiting"},
	"R1r": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "attempt_interrupted", "waiting"},
	"R2af": {"runnable", "unowned", "not_eligible_until_time", "waiting_for_delay", "none", "pending_first_attempt",
		"delayed"},
	"R2ai": {"runnable", "unowned", "not_eligible_until_time", "waiting_for_delay", "none", "attempt_interrupted",
		"delayed"},
	"R2b": {"runnable", "unowned", "not_eligible_until_time", "waiting_for_retry_backoff", "none",
		"pending_retry_attempt", "delayed"},
	"R2r": {"runnable", "unowned", "not_eligible_until_time", "waiting_for_retry_backoff", "none",
		"attempt_interrupted", "delayed"},
	"R2c": {"runnable", "unowned", "not_eligible_until_time", "waiting_for_resume_delay", "none",
		"attempt_interrupted", "delayed"},
	"R3f": {"runnable", "unowned", "blocked_by_dependencies", "waiting_for_children", "none", "pending_first_attempt",
		"waiting_children"},
	"R3p": {"runnable", "unowned", "blocked_by_dependencies", "waiting_for_children", "none", "pending_replay_attempt",
		"waiting_children"},
	"R4f": {"runnable", "unowned", "blocked_by_operator", "held_by_operator", "none", "pending_first_attempt",
		"waiting"},
	"G1f": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "pending_first_attempt", "waiting"},
	"R4t": {"runnable", "unowned", "blocked_by_operator", "held_by_operator", "none", "pending_retry_attempt",
		"waiting"},
	"G1t": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "pending_retry_attempt", "waiting"},
	"R4p": {"runnable", "unowned", "blocked_by_operator", "held_by_operator", "none", "pending_replay_attempt",
		"waiting"},
	"G1p": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "pending_replay_attempt", "waiting"},
	"R4i": {"runnable", "unowned", "blocked_by_operator", "held_by_operator", "none", "attempt_interrupted",
		"waiting"},
	"G1i": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "attempt_interrupted", "waiting"},
	"R4r": {"runnable", "unowned", "blocked_by_operator", "held_by_operator", "none", "attempt_interrupted",
		"waiting"},
	"G1r": {"runnable", "unowned", "eligible_now", "waiting_for_worker", "none", "attempt_interrupted", "waiting"},
	"A1":  {"active", "leased", "not_applicable", "", "none", "running_attempt", "active"},
	"A2": {"active", "lease_expired_reclaimable", "not_applicable", "waiting_for_worker", "none",
		"attempt_interrupted", "active"},
	"A3": {"active", "lease_revoked", "not_applicable", "waiting_for_worker", "none", "attempt_interrupted",
		"active"},
	"S1": {"suspended", "unowned", "not_applicable", "waiting_for_signal", "none", "attempt_interrupted",
		"suspended"},
	"S2": {"suspended", "unowned", "not_applicable", "waiting_for_approval", "none", "attempt_interrupted",
		"suspended"},
	"S3": {"suspended", "unowned", "not_applicable", "waiting_for_callback", "none", "attempt_interrupted",
		"suspended"},
	"S4": {"suspended", "unowned", "not_applicable", "waiting_for_tool_result", "none", "attempt_interrupted",
		"suspended"},
	"S5": {"suspended", "unowned", "not_applicable", "paused_by_operator", "none", "attempt_interrupted",
		"suspended"},
	"S6": {"suspended", "unowned", "not_applicable", "paused_by_policy", "none", "attempt_interrupted", "suspended"},
	"S8": {"suspended", "unowned", "not_applicable", "waiting_for_children", "none", "attempt_interrupted",
		"suspended"},
	"S7": {"suspended", "unowned", "not_applicable", "waiting_for_gate", "none", "attempt_interrupted",
		"suspended"},
	"T1":  {"terminal", "unowned", "not_applicable", "", "success", "attempt_terminal", "completed"},
	"T2":  {"terminal", "unowned", "not_applicable", "", "failed", "attempt_terminal", "failed"},
	"T3":  {"terminal", "unowned", "not_applicable", "", "cancelled", "attempt_terminal", "cancelled"},
	"T3n": {"terminal", "unowned", "not_applicable", "", "cancelled", "none", "cancelled"},
	"T4":  {"terminal", "unowned", "not_applicable", "", "expired", "attempt_terminal", "expired"},
	"T4n": {"terminal", "unowned", "not_applicable", "", "expired", "none", "expired"},
	"T5":  {"terminal", "unowned", "not_applicable", "", "skipped", "attempt_terminal", "skipped"},
	"T5n": {"terminal", "unowned", "not_applicable", "", "skipped", "none", "skipped"},
}

func TestProject(t *testing.T) {
	for _, text := range codes.All() {
		code := codes.Code(text)
		want, known := rows[code]
		s, ok := codes.Project(code)
		if !ok || !known {
			t.Errorf("%s: projected %v, known here %v", code, ok, known)
			continue
		}
		got := [7]string{s.LifecyclePhase, s.OwnershipState, s.Eligibility, s.BlockingReason, s.TerminalOutcome,
			s.AttemptState, string(s.Public)}
		if got != want || s.Code != code {
			t.Errorf("%s is\n  %v, want\n  %v", code, got, want)
		}
		terminal := code[0] == 'T'
		if s.Terminal() != terminal || s.Public.Terminal() != terminal || (s.TerminalOutcome != "none") != terminal {
			t.Errorf("%s: terminal state %v, public %v, outcome %s", code, s.Terminal(), s.Public.Terminal(),
				s.TerminalOutcome)
		}
		delete(rows, code)
	}
	for code := range rows {
		t.Errorf("%s is not in codes.All", code)
	}
	for _, code := range []codes.Code{"", "R1", "t1", "T1 ", "A4", "T1n", "T2n"} {
		if s, ok := codes.Project(code); ok || s != (codes.State{}) {
			t.Errorf("%q projects to %+v", code, s)
		}
	}
	if flowfabric.PublicState("").Terminal() || flowfabric.Suspended.Terminal() {
		t.Error("suspended or unknown counts as terminal")
	}
}
