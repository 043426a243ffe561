// Package denied names the errors that only machinery of ours compares with, by errors.Is.
package denied

import flowfabric "github.com/flowfabric/flowfabric-go"

// The refusals; their meanings are in the table of package flowfabric.
var (
	FenceRequired       error = flowfabric.NewError("", "fence_required")
	PartialFence        error = flowfabric.NewError("", "partial_fence")
	ClaimOrder          error = flowfabric.NewError("", "claim_out_of_order")
	ClaimInFlight       error = flowfabric.NewError("", "claim_in_flight")
	SessionHeld         error = flowfabric.NewError("", "session_not_empty")
	WaitpointExists     error = flowfabric.NewError("", "waitpoint_already_exists")
	WaitpointNotPending error = flowfabric.NewError("", "waitpoint_not_pending")
	WaitpointExpired    error = flowfabric.NewError("", "pending_waitpoint_expired")
	WaitpointKey        error = flowfabric.NewError("", "waitpoint_key_mismatch")
	StaleRevision       error = flowfabric.NewError("", "stale_graph_revision")
	OtherFlow           error = flowfabric.NewError("", "already_member_of_different_flow")
	Namespace           error = flowfabric.NewError("", "namespace_mismatch")
	StaleAppend         error = flowfabric.NewError("", "stale_owner_cannot_append")
	FrameGap            error = flowfabric.NewError("", "frame_sequence_gap")
	SummaryConflict     error = flowfabric.NewError("", "summary_version_conflict")
	UnknownSubscription error = flowfabric.NewError("", "interest_unknown")
	Secret              error = flowfabric.NewError("", "invalid_secret")
	Kid                 error = flowfabric.NewError("", "invalid_kid")
	Grace               error = flowfabric.NewError("", "invalid_grace_ms")
	Script              error = flowfabric.NewError("", "internal_script_error")
	Reply               error = flowfabric.NewError("", "parse")
)
