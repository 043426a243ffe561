// Package causes is the categories of failures that workers and the store give: the words that snapshots, lists,
// histories, streams and metrics show. Package flowfabric exports those that programs compare.
package causes

// The comments are what users read: a test writes the page of categories from them, and holds the package comment of
// flowfabric against them.
const (
	HandlerError = "handler_error"            // the handler returned an error
	Panic        = "handler_panic"            // the handler panicked
	Decode       = "extractor_payload_decode" // the input, or a recorded step, does not decode
	NoHandler    = "runtime_no_handler"       // the worker has no handler for the kind
	Timeout      = "attempt_timeout"          // the attempt ran longer than its Timeout
	AwaitIgnored = "await_ignored"            // the handler completed although it had asked to wait
	Suspend      = "suspend_refused"          // what the handler wants to wait for cannot be waited for
	Child        = "child_failed"             // the handler returned that a child has no result
	OverBudget   = "budget_exceeded"          // a hard limit of a gate stopped the handler
	Permanent    = "permanent"                // the handler chose it: never retried, whatever the policy says
	FramesLost   = "frames_lost"              // a failover lost frames that were acknowledged; retried like any

	Deadline     = "execution_deadline"    // the Deadline passed; the execution expires
	WaitTimeout  = "suspension_timeout"    // a wait lasted too long; no retry follows
	LeaseExpired = "lease_expired"         // the worker of the attempt was lost; uses up no retry
	LeaseRevoked = "lease_revoked"         // an operator took the attempt away; uses up no retry
	Reclaims     = "max_reclaims_exceeded" // workers were lost more often than handler.MaxReclaims; it fails
	Impossible   = "dependency_impossible" // what the node depends on did not succeed; it is skipped
	NotNeeded    = "not_needed"            // nothing failed before a node for failures; it is skipped
)
