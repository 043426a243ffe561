package suspend

// Cause is what ended a wait: one of the constants or, only in a [Record], "cancelled", "deadline" or "rewound": the
// execution was cancelled, its deadline passed, or it went on from an earlier step.
type Cause string

const (
	CauseSignal           Cause = "signal"
	CauseMessage          Cause = "message"           // to a mailbox that it waited for
	CauseChildren         Cause = "children"          // enough of those that it waited for have ended
	CauseOperator         Cause = "operator"          // somebody resumed it
	CauseTimeout          Cause = "timeout"           // of the wait
	CauseAlreadySatisfied Cause = "already_satisfied" // by signals, or a message, that came before the suspension
)

// Effect is what became of a signal that was delivered:
//
//	resume_condition_satisfied      it closed the condition: the wait is over
//	appended_to_waitpoint           a part took it; the condition wants more
//	buffered_for_pending_waitpoint  it is kept until the handler waits
//	appended_to_waitpoint_duplicate what it stands for is there already
//	signal_ignored_matcher_failed   no part of the condition accepts its name
//	no_op                           nothing wanted it
//	timeout                         the timeout of a wait makes this signal
type Effect string
