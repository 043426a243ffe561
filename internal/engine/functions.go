package engine

import "github.com/flowfabric/flowfabric-go/internal/wire"

// function is one of the library. What it takes, answers and refuses is in the header of its file in lua/.
type function struct {
	name     string
	readonly bool
	once     bool // its caller repeats it, the engine does not
	bare     bool // of no partition: it takes no note of who asks
}

// functionOf are the functions by name.
var functionOf = func() map[string]function {
	out := map[string]function{}
	for name := range wire.Calls {
		out[name] = function{name: name, readonly: wire.ReadOnly[name]}
	}
	for _, name := range []string{"ff_create_execution", "ff_flow_create", "ff_flow_stage", "ff_flow_seal"} {
		out[name] = function{name: name, once: true}
	}
	for _, name := range []string{"ff_configure", "ff_boot"} {
		out[name] = function{name: name, bare: true}
	}
	return out
}()

// Those that are called by hand, or named in errors.
var (
	fnVersion        = functionOf["ff_version"]
	fnConfigure      = functionOf["ff_configure"]
	fnBoot           = functionOf["ff_boot"]
	fnPoll           = functionOf["ff_poll"]
	fnCreate         = functionOf["ff_create_execution"]
	fnComplete       = functionOf["ff_complete_execution"]
	fnRelease        = functionOf["ff_release_execution"]
	fnClaim          = functionOf["ff_claim_next"]
	fnRenew          = functionOf["ff_session_renew"]
	fnAppend         = functionOf["ff_append_frames"]
	fnSuspend        = functionOf["ff_suspend_execution"]
	fnReadMessages   = functionOf["ff_read_messages"]
	fnReadSuspension = functionOf["ff_read_suspension"]
	fnReadSignals    = functionOf["ff_read_signals"]
	fnDescribe       = functionOf["ff_describe_partition"]
	fnFireSchedule   = functionOf["ff_fire_schedule"]
	fnAuditIndex     = functionOf["ff_audit_index"]
	fnHistory        = functionOf["ff_read_history"]
	fnExplain        = functionOf["ff_explain_execution"]
	fnReadQuestion   = functionOf["ff_read_question"]
	fnFlowCreate     = functionOf["ff_flow_create"]
	fnFlowStage      = functionOf["ff_flow_stage"]
	fnFlowSeal       = functionOf["ff_flow_seal"]
	fnFlowReplay     = functionOf["ff_flow_replay"]
	fnFlowDescribe   = functionOf["ff_flow_describe"]
	fnFlowMembers    = functionOf["ff_flow_members"]
	fnMakeChildren   = functionOf["ff_make_children"]
	fnCheckOthers    = functionOf["ff_check_others"]
	fnNoteWaiters    = functionOf["ff_note_waiters"]
	fnPutBudget      = functionOf["ff_put_budget"]
	fnUndoUsage      = functionOf["ff_undo_usage"]
	fnAdjustBudget   = functionOf["ff_adjust_budget"]
	fnResetBudget    = functionOf["ff_reset_budget"]
	fnReleaseUsage   = functionOf["ff_release_usage"]
	fnCheckBudgets   = functionOf["ff_check_budgets"]
	fnReadBudget     = functionOf["ff_read_budget"]
	fnPutQuota       = functionOf["ff_put_quota"]
	fnSettleHolds    = functionOf["ff_settle_holds"]
	fnReadQuota      = functionOf["ff_read_quota"]
	fnClaimGranted   = functionOf["ff_claim_granted"]
	fnReadOutbox     = functionOf["ff_read_outbox"]
	fnReadGates      = functionOf["ff_read_gates"]
)
