package codes

// The categories of failures. The comments are what users read: a test writes the page of categories from them, and
// holds the package comment of flowfabric against them.
const (
	CategoryHandlerError = "handler_error"            // the handler returned an error
	CategoryPanic        = "handler_panic"            // the handler panicked
	CategoryDecode       = "extractor_payload_decode" // the input, or a recorded step, does not decode
	CategoryNoHandler    = "runtime_no_handler"       // the worker has no handler for the kind
	CategoryTimeout      = "attempt_timeout"          // the attempt ran longer than its Timeout
	CategoryAwaitIgnored = "await_ignored"            // the handler completed although it had asked to wait
	CategorySuspend      = "suspend_refused"          // what the handler wants to wait for cannot be waited for
	CategoryChild        = "child_failed"             // the handler returned that a child has no result
	CategoryOverBudget   = "budget_exceeded"          // a hard limit of a budget stopped the handler
	CategoryPermanent    = "permanent"                // the handler chose it: never retried, whatever the policy says
	CategoryFramesLost   = "frames_lost"              // a failover lost frames that were acknowledged; retried like any

	CategoryDeadline     = "execution_deadline"    // the Deadline passed; the execution expires
	CategoryWaitTimeout  = "suspension_timeout"    // a wait lasted too long; no retry follows
	CategoryLeaseExpired = "lease_expired"         // the worker of the attempt was lost; uses up no retry
	CategoryLeaseRevoked = "lease_revoked"         // an operator took the attempt away; uses up no retry
	CategoryReclaims     = "max_reclaims_exceeded" // workers were lost more often than handler.MaxReclaims; it fails
	CategoryImpossible   = "dependency_impossible" // what the node depends on did not succeed; it is skipped
	CategoryNotNeeded    = "not_needed"            // nothing failed before a node for failures; it is skipped
)
