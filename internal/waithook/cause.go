package waithook

// What ended a wait (suspend.Result.Cause).
const (
	CauseSignal           = "signal"
	CauseOperator         = "operator"
	CauseTimeout          = "timeout"
	CauseMessage          = "message"           // to a mailbox that it waited for
	CauseChildren         = "children"          // enough of those that it waited for have ended
	CauseAlreadySatisfied = "already_satisfied" // by signals, or a message, that came before the suspension
)
