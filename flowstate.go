package flowfabric

// FlowState is where a flow stands. A flow ends by itself once it is sealed and none of its members is left:
// completed, if every member that no other depends on succeeded, else failed. A member with AllEnded or AnyFailed
// counts for itself and changes nothing for those it depends on: a flow whose work failed has failed, whatever its
// cleanup came to. A member that was skipped because nothing failed does not fail the flow.
type FlowState string

// The states of a flow.
const (
	FlowStaging   FlowState = "staging" // it is being put together; nothing of it runs
	FlowOpen      FlowState = "open"
	FlowCompleted FlowState = "completed"
	FlowFailed    FlowState = "failed"
	FlowCancelled FlowState = "cancelled"
)

// Terminal reports whether the flow takes no members any more and, unless one is replayed, stays as it is.
func (s FlowState) Terminal() bool {
	return s == FlowCompleted || s == FlowFailed || s == FlowCancelled
}

// CancellationPolicy says what becomes of the members of a cancelled flow.
type CancellationPolicy string

// The policies.
const (
	CancelAll     CancellationPolicy = "cancel_all"     // every member that has not ended is cancelled
	CancelPending CancellationPolicy = "cancel_pending" // those that are not active; active ones run to their end
	CancelFlow    CancellationPolicy = "flow_only"      // none: the flow takes no members any more, its members go on
)
