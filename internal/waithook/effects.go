package waithook

// Effects of a delivered signal, one vocabulary for every producer and reader.
const (
	EffectBuffered  = "buffered_for_pending_waitpoint"
	EffectAppended  = "appended_to_waitpoint"           // a part of the condition took it, the condition is still open
	EffectNone      = "no_op"                           // nothing wanted it
	EffectSatisfied = "resume_condition_satisfied"      // it closed the condition
	EffectAgain     = "appended_to_waitpoint_duplicate" // what it stands for is there already
	EffectUnmatched = "signal_ignored_matcher_failed"   // no part of the condition accepts its name
	EffectTimeout   = "timeout"                         // the signal that a suspension's own timeout makes
)

// SourceOperator is the source type of signals that operators deliver.
const SourceOperator = "operator"
