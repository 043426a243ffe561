package waitwords

// The values of suspend.Effect.
const (
	EffectSatisfied = "resume_condition_satisfied"
	EffectAppended  = "appended_to_waitpoint"
	EffectBuffered  = "buffered_for_pending_waitpoint"
	EffectAgain     = "appended_to_waitpoint_duplicate"
	EffectUnmatched = "signal_ignored_matcher_failed"
	EffectNone      = "no_op"
	EffectTimeout   = "timeout"
)
