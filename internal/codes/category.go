package codes

// The categories of failures that handlers and workers give; handler.Failure.Category lists what they mean.
const (
	CategoryHandlerError = "handler_error"
	CategoryPanic        = "handler_panic"
	CategoryDecode       = "extractor_payload_decode"
	CategoryNoHandler    = "runtime_no_handler"
	CategoryTimeout      = "attempt_timeout"
	CategoryAwaitIgnored = "await_ignored"
	CategorySuspend      = "suspend_refused"
	CategoryChild        = "child_failed"
	CategoryOverBudget   = "budget_exceeded"
)
