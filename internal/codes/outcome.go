package codes

// What one run of a handler leads to, as handler.Outcome lists it.
const (
	OutcomeComplete = "complete"
	OutcomeFail     = "fail"
	OutcomeDelay    = "delay"
	OutcomeCancel   = "cancel"
	OutcomeRelease  = "release"
	OutcomeAbandon  = "abandon"
	OutcomeSuspend  = "suspend"
	OutcomeChildren = "wait_children"
	OutcomeBlock    = "block"
	OutcomeContinue = "continue"
)
