package explain

import "slices"

// A cause is the stable name of an explanation: it does not change between releases, sentences may.

// What is not a state.
const (
	WhyNotFound         = "not_found"         // no such execution, or not any more
	WhyPurged           = "purged"            // a tombstone is left
	WhyPartitionFrozen  = "partition_frozen"  // by an operator
	WhyPartitionMissing = "partition_missing" // the store lost its data
)

// Waiting for a worker.
const (
	WhyWaitingNoWorker     = "waiting_no_worker"     // no live worker takes the kind from the lane
	WhyWaitingNoCapability = "waiting_no_capability" // none of those that do has all capabilities
	WhyWaitingNext         = "waiting_next"          // first in its queue
	WhyWaitingBehind       = "waiting_behind"        // others are ahead of it
	// stuck handlers have all slots of the workers that can run it
	WhyWaitingStuck = "waiting_stuck"
	// no worker is registered for it, but idle ones wait for its route
	WhyWaitingUnregistered = "waiting_unregistered"
	WhyWaitingUnlisted     = "waiting_unlisted" // it waits, and the registry of workers could not be read
	WhyLanePaused          = "lane_paused"      // the lane hands nothing out
	WhyLaneDisabled        = "lane_disabled"    // likewise
	WhyNotQueued           = "not_queued"       // the index of its queue is damaged
	WhyNotOffered          = "not_offered"      // the index of the non-empty queues is damaged
)

// Waiting for gates, or for an operator.
const (
	WhyGranted       = "granted"        // a worker asks its gates now
	WhyGrantDue      = "grant_due"      // it did so for too long, and a tick is awaited
	WhyWaitingAmount = "waiting_amount" // an amount of a gate is used up
	WhyWaitingRate   = "waiting_rate"   // a gate's window is full
	WhyWaitingSlot   = "waiting_slot"   // a gate's slots are taken
	WhyNoGate        = "gate_not_found" // it has a gate that does not exist
	// a gate could not be asked, or did not say why it has no room
	WhyUnavailable = "limits_unavailable"
	// it is time to ask its gates again, and a tick is awaited
	WhyCheckDue      = "limits_due"
	WhyExecutionHeld = "execution_held" // an operator keeps it from being handed out
)

// Not yet claimable.
const (
	WhyDelayed         = "delayed"           // created with a delay
	WhyDebounced       = "debounced"         // likewise, and its key debounces
	WhyDelayedByWorker = "delayed_by_worker" // its handler asked for a delay
	WhyWaitingTurn     = "waiting_turn"      // its handler waits for the turn of a call to a service
	WhyRetryBackoff    = "retry_backoff"
	WhyReclaimBackoff  = "reclaim_backoff" // several workers were lost while they ran it
	WhyResumeDelay     = "resume_delay"
	WhyDelayDue        = "delay_due" // one of the seven is over, and a tick is awaited
)

// Waiting for others.
const (
	WhyFlowStaging    = "flow_staging"       // its flow has not been released
	WhyAwaitingOthers = "awaiting_upstreams" // those it depends on have not ended
	// it was replayed, and those it depends on ended without success and were not
	WhyAwaitingReplay = "awaiting_upstream_replay"
	WhyAwaitingKids   = "awaiting_children"
	// nothing is missing: the backlog of its flow, which a tick works off
	WhyAwaitingBacklog = "awaiting_resolution"
	WhyFlowCancelled   = "flow_cancelled" // its flow was, and it is about to be
)

// Active.
const (
	WhyActive            = "active"
	WhyAttemptTimeoutDue = "attempt_timeout_due"
	WhyLeaseExpired      = "lease_expired"
	WhyHolderDead        = "holder_declared_dead"
	WhyRevoked           = "revoked"
	WhyReclaimsExhausted = "reclaims_exhausted" // its worker is gone, and it was requeued as often as it may be
)

// Suspended.
const (
	WhyAwaitingSignal       = "awaiting_signal"
	WhyAwaitingApproval     = "awaiting_approval"
	WhyAwaitingCallback     = "awaiting_callback"
	WhyAwaitingTool         = "awaiting_tool_result"
	WhyPausedByOperator     = "paused_by_operator"
	WhyPausedByPolicy       = "paused_by_policy"
	WhyAwaitingBudget       = "awaiting_budget"
	WhySuspensionTimeoutDue = "suspension_timeout_due"
)

// WhyDeadlineDue: it has not ended, and its deadline has passed.
const WhyDeadlineDue = "deadline_due"

// Ended.
const (
	WhyCompleted               = "completed"
	WhyFailedNoRetries         = "failed_no_retries"         // the policy has none
	WhyFailedRetriesExhausted  = "failed_retries_exhausted"  // all were used
	WhyFailedNotRetried        = "failed_not_retried"        // the policy does not retry the category
	WhyFailedPermanent         = "failed_permanent"          // the handler said so
	WhyFailedReclaimsExhausted = "failed_reclaims_exhausted" // its workers were lost too often
	WhyFailedWaitTimeout       = "failed_wait_timeout"       // a suspension timed out
	WhyCancelled               = "cancelled"
	WhyCancelledWaitTimeout    = "cancelled_wait_timeout"
	WhyExpiredDeadline         = "expired_deadline"
	WhyExpiredAttemptTimeout   = "expired_attempt_timeout"
	WhyExpiredWaitTimeout      = "expired_wait_timeout"
	WhySkipped                 = "skipped"
)

// overdue is the end of a reason when what it waits for is a tick, and nobody ticks.
const overdue = "_tick_overdue"

// ticked are the reasons that wait for a tick and nothing else.
var ticked = []string{WhyDelayDue, WhyAttemptTimeoutDue, WhyLeaseExpired, WhyHolderDead, WhyRevoked,
	WhyReclaimsExhausted, WhySuspensionTimeoutDue, WhyDeadlineDue, WhyAwaitingBacklog, WhyFlowCancelled, WhyGrantDue,
	WhyCheckDue}

var causeCodes = []string{
	WhyNotFound, WhyPurged, WhyPartitionFrozen, WhyPartitionMissing,
	WhyWaitingNext, WhyWaitingBehind, WhyWaitingStuck, WhyWaitingNoWorker, WhyWaitingNoCapability,
	WhyWaitingUnregistered, WhyWaitingUnlisted, WhyLanePaused, WhyLaneDisabled, WhyNotQueued, WhyNotOffered,
	WhyGranted, WhyGrantDue, WhyWaitingAmount, WhyWaitingRate, WhyWaitingSlot, WhyNoGate, WhyUnavailable,
	WhyCheckDue,
	WhyExecutionHeld,
	WhyDelayed, WhyDebounced, WhyDelayedByWorker, WhyWaitingTurn, WhyRetryBackoff, WhyReclaimBackoff, WhyResumeDelay,
	WhyDelayDue,
	WhyFlowStaging, WhyAwaitingOthers, WhyAwaitingReplay, WhyAwaitingKids, WhyAwaitingBacklog, WhyFlowCancelled,
	WhyActive, WhyAttemptTimeoutDue, WhyLeaseExpired, WhyHolderDead, WhyRevoked, WhyReclaimsExhausted,
	WhyAwaitingSignal, WhyAwaitingApproval, WhyAwaitingCallback, WhyAwaitingTool, WhyPausedByOperator,
	WhyPausedByPolicy, WhyAwaitingBudget, WhySuspensionTimeoutDue,
	WhyDeadlineDue,
	WhyCompleted, WhyFailedNoRetries, WhyFailedRetriesExhausted, WhyFailedNotRetried, WhyFailedPermanent,
	WhyFailedReclaimsExhausted, WhyFailedWaitTimeout, WhyCancelled, WhyCancelledWaitTimeout, WhyExpiredDeadline,
	WhyExpiredAttemptTimeout, WhyExpiredWaitTimeout, WhySkipped,
}

// Causes lists every cause there is. One that ends in _tick_overdue is the reason before it, where nobody maintains the
// partition: nothing happens until somebody does.
func Causes() []string {
	all := slices.Clone(causeCodes)
	for _, r := range ticked {
		all = append(all, r+overdue)
	}
	return all
}
