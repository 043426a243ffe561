package suspend

// Cause is what ended a wait.
type Cause string

const (
	CauseSignal           Cause = "signal"
	CauseMessage          Cause = "message"           // to a mailbox that it waited for
	CauseChildren         Cause = "children"          // enough of those that it waited for have ended
	CauseOperator         Cause = "operator"          // somebody resumed it
	CauseTimeout          Cause = "timeout"           // of the wait
	CauseAlreadySatisfied Cause = "already_satisfied" // by signals, or a message, that came before the suspension
	CauseCancelled        Cause = "cancelled"         // with the execution; only a [Record] has it
	CauseDeadline         Cause = "deadline"          // of the execution; only a [Record] has it
)

// Effect is what became of a signal that was delivered.
type Effect string

const (
	EffectSatisfied Effect = "resume_condition_satisfied"      // it closed the condition: the wait is over
	EffectAppended  Effect = "appended_to_waitpoint"           // a part took it; the condition wants more
	EffectBuffered  Effect = "buffered_for_pending_waitpoint"  // it is kept until the handler waits
	EffectAgain     Effect = "appended_to_waitpoint_duplicate" // what it stands for is there already
	EffectUnmatched Effect = "signal_ignored_matcher_failed"   // no part of the condition accepts its name
	EffectNone      Effect = "no_op"                           // nothing wanted it
	EffectTimeout   Effect = "timeout"                         // the signal that the timeout of a wait makes
)
