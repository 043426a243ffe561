package explain

import "slices"

// Cause is the stable name of an [Explanation]: it does not change between releases, sentences may.
type Cause string

// What is not a state.
const (
	WhyNotFound         Cause = "not_found"         // no such execution, or not any more
	WhyPurged           Cause = "purged"            // a tombstone is left
	WhyPartitionFrozen  Cause = "partition_frozen"  // by an operator
	WhyPartitionMissing Cause = "partition_missing" // the store lost its data
)

// Waiting for a worker.
const (
	WhyWaitingNoWorker     Cause = "waiting_no_worker"     // no live worker takes the kind from the lane
	WhyWaitingNoCapability Cause = "waiting_no_capability" // none of those that do has all capabilities
	WhyWaitingNext         Cause = "waiting_next"          // first in its queue
	WhyWaitingBehind       Cause = "waiting_behind"        // others are ahead of it
	// stuck handlers have all slots of the workers that can run it
	WhyWaitingStuck Cause = "waiting_stuck"
	// no worker is registered for it, but idle ones wait for its route
	WhyWaitingUnregistered Cause = "waiting_unregistered"
	WhyWaitingUnlisted     Cause = "waiting_unlisted" // it waits, and the registry of workers could not be read
	WhyLanePaused          Cause = "lane_paused"      // the lane hands nothing out
	WhyLaneDisabled        Cause = "lane_disabled"    // likewise
	WhyNotQueued           Cause = "not_queued"       // the index of its queue is damaged
	WhyNotOffered          Cause = "not_offered"      // the index of the non-empty queues is damaged
)

// Waiting for budgets and quotas, or for an operator.
const (
	WhyGranted       Cause = "granted"                // a worker asks its budgets and quotas now
	WhyGrantDue      Cause = "grant_due"              // it did so for too long, and a tick is awaited
	WhyWaitingBudget Cause = "waiting_budget"         // a budget is exhausted
	WhyWaitingRate   Cause = "waiting_rate"           // a quota's window is full
	WhyWaitingSlot   Cause = "waiting_slot"           // a quota's slots are taken
	WhyNoBudget      Cause = "budget_not_found"       // it has a budget that does not exist
	WhyNoQuota       Cause = "quota_policy_not_found" // it has a quota that does not exist
	// a budget or quota could not be asked, or did not say why it has no room
	WhyUnavailable Cause = "limits_unavailable"
	// it is time to ask its budgets and quotas again, and a tick is awaited
	WhyCheckDue      Cause = "limits_due"
	WhyExecutionHeld Cause = "execution_held" // an operator keeps it from being handed out
)

// Not yet claimable.
const (
	WhyDelayed         Cause = "delayed"           // created with a delay
	WhyDebounced       Cause = "debounced"         // likewise, and its key debounces
	WhyDelayedByWorker Cause = "delayed_by_worker" // its handler asked for a delay
	WhyRetryBackoff    Cause = "retry_backoff"
	WhyReclaimBackoff  Cause = "reclaim_backoff" // several workers were lost while they ran it
	WhyResumeDelay     Cause = "resume_delay"
	WhyDelayDue        Cause = "delay_due" // one of the six is over, and a tick is awaited
)

// Waiting for others.
const (
	WhyFlowStaging    Cause = "flow_staging"       // its flow has not been released
	WhyAwaitingOthers Cause = "awaiting_upstreams" // those it depends on have not ended
	// it was replayed, and those it depends on ended without success and were not
	WhyAwaitingReplay Cause = "awaiting_upstream_replay"
	WhyAwaitingKids   Cause = "awaiting_children"
	// nothing is missing: the backlog of its flow, which a tick works off
	WhyAwaitingBacklog Cause = "awaiting_resolution"
	WhyFlowCancelled   Cause = "flow_cancelled" // its flow was, and it is about to be
)

// Active.
const (
	WhyActive            Cause = "active"
	WhyAttemptTimeoutDue Cause = "attempt_timeout_due"
	WhyLeaseExpired      Cause = "lease_expired"
	WhyHolderDead        Cause = "holder_declared_dead"
	WhyRevoked           Cause = "revoked"
	WhyReclaimsExhausted Cause = "reclaims_exhausted" // its worker is gone, and it was requeued as often as it may be
)

// Suspended.
const (
	WhyAwaitingSignal       Cause = "awaiting_signal"
	WhyAwaitingApproval     Cause = "awaiting_approval"
	WhyAwaitingCallback     Cause = "awaiting_callback"
	WhyAwaitingTool         Cause = "awaiting_tool_result"
	WhyPausedByOperator     Cause = "paused_by_operator"
	WhyPausedByPolicy       Cause = "paused_by_policy"
	WhyAwaitingBudget       Cause = "awaiting_budget"
	WhySuspensionTimeoutDue Cause = "suspension_timeout_due"
)

// WhyDeadlineDue: it has not ended, and its deadline has passed.
const WhyDeadlineDue Cause = "deadline_due"

// Ended.
const (
	WhyCompleted               Cause = "completed"
	WhyFailedNoRetries         Cause = "failed_no_retries"         // the policy has none
	WhyFailedRetriesExhausted  Cause = "failed_retries_exhausted"  // all were used
	WhyFailedNotRetried        Cause = "failed_not_retried"        // the policy does not retry the category
	WhyFailedPermanent         Cause = "failed_permanent"          // the handler said so
	WhyFailedReclaimsExhausted Cause = "failed_reclaims_exhausted" // its workers were lost too often
	WhyFailedWaitTimeout       Cause = "failed_wait_timeout"       // a suspension timed out
	WhyCancelled               Cause = "cancelled"
	WhyCancelledWaitTimeout    Cause = "cancelled_wait_timeout"
	WhyExpiredDeadline         Cause = "expired_deadline"
	WhyExpiredAttemptTimeout   Cause = "expired_attempt_timeout"
	WhyExpiredWaitTimeout      Cause = "expired_wait_timeout"
	WhySkipped                 Cause = "skipped"
)

// overdue is the end of a reason when what it waits for is a tick, and nobody ticks.
const overdue Cause = "_tick_overdue"

// ticked are the reasons that wait for a tick and nothing else.
var ticked = []Cause{WhyDelayDue, WhyAttemptTimeoutDue, WhyLeaseExpired, WhyHolderDead, WhyRevoked,
	WhyReclaimsExhausted, WhySuspensionTimeoutDue, WhyDeadlineDue, WhyAwaitingBacklog, WhyFlowCancelled, WhyGrantDue,
	WhyCheckDue}

var causes = []Cause{
	WhyNotFound, WhyPurged, WhyPartitionFrozen, WhyPartitionMissing,
	WhyWaitingNext, WhyWaitingBehind, WhyWaitingStuck, WhyWaitingNoWorker, WhyWaitingNoCapability,
	WhyWaitingUnregistered, WhyWaitingUnlisted, WhyLanePaused, WhyLaneDisabled, WhyNotQueued, WhyNotOffered,
	WhyGranted, WhyGrantDue, WhyWaitingBudget, WhyWaitingRate, WhyWaitingSlot, WhyNoBudget, WhyNoQuota, WhyUnavailable,
	WhyCheckDue,
	WhyExecutionHeld,
	WhyDelayed, WhyDebounced, WhyDelayedByWorker, WhyRetryBackoff, WhyReclaimBackoff, WhyResumeDelay, WhyDelayDue,
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
func Causes() []Cause {
	all := slices.Clone(causes)
	for _, r := range ticked {
		all = append(all, r+overdue)
	}
	return all
}
