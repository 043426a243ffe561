package flowfabric

import "github.com/flowfabric/flowfabric-go/internal/causes"

// Category is the kind of a failure: why an attempt or an execution ended without success. The constants are those
// that programs compare. The package comment lists all that workers and the store give, and a handler may give others
// (handler.Category).
type Category string

const (
	// CategoryPanic is a panic of the handler. The retry policy applies; the worker goes on.
	CategoryPanic Category = causes.Panic
	// CategoryAttemptTimeout is an attempt that ran longer than [Timeout]. The retry policy applies.
	CategoryAttemptTimeout Category = causes.Timeout
	// CategoryDeadline is an execution whose [Deadline] passed. It is expired and not retried.
	CategoryDeadline Category = causes.Deadline
	// CategoryWaitTimeout is a wait that lasted too long. No retry follows.
	CategoryWaitTimeout Category = causes.WaitTimeout
	// CategoryMaxReclaims is an execution that lost more workers than handler.MaxReclaims allows. Its input may crash
	// them: inspect it before you replay it.
	CategoryMaxReclaims Category = causes.Reclaims
	// CategoryOverBudget is an execution that a hard limit of a gate stopped.
	CategoryOverBudget Category = causes.OverBudget
)
