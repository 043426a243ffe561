package stream

// Why an attempt ended, the Reason of a [TailEvent] of kind [TailAttemptEnd]. It is "" when that is unknown.
const (
	AttemptSucceeded         = "attempt_success"
	AttemptFailed            = "attempt_failure"
	AttemptCancelled         = "attempt_cancelled"
	AttemptExpired           = "expired"            // its timeout or the deadline of the execution
	AttemptLeaseExpired      = "lease_expired"      // its worker died or lost the lease
	AttemptLeaseRevoked      = "lease_revoked"      // an operator took the lease away
	AttemptSuspensionTimeout = "suspension_timeout" // nothing answered in time
)

// Why a run stopped, the Reason of a [Resumption]. It is "" when that is unknown.
const (
	RunReleased  = "released"  // its worker handed it back, as a drain does
	RunDelayed   = "delayed"   // the handler asked for a delay
	RunSuspended = "suspended" // it waited, or the answer was there already
	RunChildren  = "children"  // it waited for children, or they had ended already
)
