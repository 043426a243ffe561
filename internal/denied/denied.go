// Package denied names the errors that only machinery of ours compares with, by errors.Is.
package denied

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/fault"
)

// The errors that no program can act on, or whose kind is all that a program acts on; their meanings are in the table
// of package flowfabric.
var (
	FenceRequired       = fault.Named("fence_required")
	PartialFence        = fault.Named("partial_fence")
	ClaimOrder          = fault.Named("claim_out_of_order")
	SessionHeld         = fault.Named("session_not_empty")
	WaitpointExists     = fault.Named("waitpoint_already_exists")
	WaitpointNotPending = fault.Named("waitpoint_not_pending")
	WaitpointExpired    = fault.Named("pending_waitpoint_expired")
	WaitpointKey        = fault.Named("waitpoint_key_mismatch")
	StaleRevision       = fault.Named("stale_graph_revision")
	OtherFlow           = fault.Named("already_member_of_different_flow")
	Namespace           = fault.Named("namespace_mismatch")
	StaleAppend         = fault.Named("stale_owner_cannot_append")
	FrameGap            = fault.Named("frame_sequence_gap")
	SummaryConflict     = fault.Named("summary_version_conflict")
	UnknownSubscription = fault.Named("subscription_unknown")
	Secret              = fault.Named("invalid_secret")
	Kid                 = fault.Named("invalid_kid")
	Grace               = fault.Named("invalid_grace_ms")
	Script              = fault.Named("internal_script_error")
	NotIndexed          = fault.Named("not_indexed")
	Reply               = fault.Named("parse")
)

// What package flowfabric exports under a wider name, each of one code.
var (
	Policy             = fault.Named("invalid_policy")
	Capabilities       = fault.Named("invalid_capabilities")
	TagKey             = fault.Named("invalid_tag_key")
	Condition          = fault.Named("invalid_resume_condition")
	SelfEdge           = fault.Named("self_referencing_edge")
	Cycle              = fault.Named("cycle_detected")
	DuplicateEdge      = fault.Named("dependency_already_exists")
	CancellationPolicy = fault.Named("invalid_cancellation_policy")
	GateSpec           = fault.Named("invalid_gate_spec")
	Delta              = fault.Named("invalid_delta")
	Dimension          = fault.Named("unknown_dimension")
	NotInFlow          = fault.Named("execution_not_in_flow")
	NoFlow             = fault.Named("flow_not_found")
	NoSchedule         = fault.Named("schedule_not_found")
	NoGate             = fault.Named("gate_not_found")
	NoWaitpoint        = fault.Named("waitpoint_not_found")
	NoSession          = fault.Named("session_not_found")
	NoWorker           = fault.Named("worker_not_found")
	NoBlob             = fault.Named("blob_not_found")
	BlobDamaged        = fault.Named("blob_damaged")
	InputMisfit        = fault.Named("input_does_not_fit")
	NoStep             = fault.Named("step_not_found")
	Rewound            = fault.Named("rewound")
	OtherAttempt       = fault.Named("attempt_changed")
	NoToken            = fault.Named("missing_token")
	KidNotCurrent      = fault.Named("kid_not_current")
	Idempotency        = fault.Named("idempotency_conflict")
	KidConflict        = fault.Named("rotation_conflict")
	StepConflict       = fault.Named("step_conflict")
	FlowConflict       = fault.Named("flow_conflict")
	GateConflict       = fault.Named("gate_conflict")
	ScheduleChanged    = fault.Named("schedule_changed")
	KeyTaken           = fault.Named("key_taken")
	NotActive          = fault.Named("execution_not_active")
	NotTerminal        = fault.Named("execution_not_terminal")
	NotSuspended       = fault.Named("execution_not_suspended")
	NotEligible        = fault.Named("execution_not_eligible")
	FlowOpen           = fault.Named("flow_open")
	ReplayNotAllowed   = fault.Named("replay_not_allowed")
	ResolutionPending  = fault.Named("resolution_pending")
	SuspensionChanged  = fault.Named("suspension_changed")
	FlowSealed         = fault.Named("flow_sealed")
	GraceTooShort      = fault.Named("grace_too_short")
	FlowTerminal       = fault.Named("flow_already_terminal")
	NotSignalable      = fault.Named("target_not_signalable")
	FlowCancelled      = fault.Named("flow_cancelled")
	WaitpointNotOpen   = fault.Named("waitpoint_not_open")
	LeaseExpired       = fault.Named("lease_expired")
	LeaseRevoked       = fault.Named("lease_revoked")
	StaleLease         = fault.Named("stale_lease")
	StreamClosed       = fault.Named("stream_closed")
	NoStream           = fault.Named("stream_not_found")
	StreamGone         = fault.Named("stream_gone")
	StreamConflict     = fault.Named("stream_conflict")
	SummaryTooLarge    = fault.Named("summary_too_large")
	StepLimit          = fault.Named("step_limit_exceeded")
	TooManyExpected    = fault.Named("too_many_expected")
	WaitpointLimit     = fault.Named("waitpoint_limit_exceeded")
	SignalLimit        = fault.Named("signal_limit_exceeded")
	MailboxFull        = fault.Named("mailbox_full")
	MailboxShut        = fault.Named("mailbox_shut")
	NothingToStop      = fault.Named("nothing_to_stop")
	TurnStopped        = fault.Named("turn_stopped")
	FlowTooLarge       = fault.Named("flow_too_large")
	FanIn              = fault.Named("fan_in_too_large")
	TooManyRoutes      = fault.Named("too_many_routes")
	ReplaysExhausted   = fault.Named("max_replays_exhausted")
	ServerVersion      = fault.Named("server_too_old")
	PartitionMissing   = fault.Named("partition_missing")
	FlowIncomplete     = fault.Named("flow_incomplete")
	InstanceInUse      = fault.Named("instance_in_use")
	DuplicateHandler   = fault.Named("duplicate_handler")
	TaskConsumed       = fault.Named("task_consumed")
	Unflushed          = fault.Named("unflushed")
)

// The errors of package flowfabric that stand for several codes, without the others: to compare with, and not to wrap.
var (
	Input           = fault.Only("invalid_input")
	NoExecution     = fault.Only("execution_not_found")
	Token           = fault.Only("invalid_token")
	NoTokenKeys     = fault.Only("hmac_secret_not_initialized")
	Terminal        = fault.Only("execution_terminal")
	WaitpointClosed = fault.Only("waitpoint_closed")
	PayloadTooLarge = fault.Only("payload_too_large")
	Protocol        = fault.Only("protocol_mismatch")
	Corrupt         = fault.Only("corrupt")
	Config          = fault.Only("config")
)

// New is what a server function, or what stands for one, answered: a code and its detail.
func New(op, code string, detail ...string) *flowfabric.Error {
	return &flowfabric.Error{Op: op, Code: code, Detail: detail}
}

// Slot is slot i of the detail, or "" when there are fewer.
func Slot(e *flowfabric.Error, i int) string {
	if i < len(e.Detail) {
		return e.Detail[i]
	}
	return ""
}

// ClassOf is the class of the error whose code flowfabric.CodeOf tells; 0 for one that is not of this library. That of
// a code that this version does not know is fault.Bug.
func ClassOf(err error) fault.Class {
	if s := fault.Of(flowfabric.CodeOf(err)); s != nil {
		return s.Class
	}
	return 0
}
