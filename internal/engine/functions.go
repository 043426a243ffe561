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
	fnVersion         = functionOf["ff_version"]
	fnConfigure       = functionOf["ff_configure"]
	fnBoot            = functionOf["ff_boot"]
	fnPoll            = functionOf["ff_poll"]
	fnCreate          = functionOf["ff_create_execution"]
	fnComplete        = functionOf["ff_complete_execution"]
	fnRelease         = functionOf["ff_release_execution"]
	fnClaim           = functionOf["ff_claim_next"]
	fnRenew           = functionOf["ff_session_renew"]
	fnHeld            = functionOf["ff_session_held"]
	fnAppend          = functionOf["ff_append_frames"]
	fnPend            = functionOf["ff_create_pending_waitpoint"]
	fnSuspend         = functionOf["ff_suspend_execution"]
	fnDeliver         = functionOf["ff_deliver_signal"]
	fnApprove         = functionOf["ff_approve_waitpoint"]
	fnSend            = functionOf["ff_send_message"]
	fnReceive         = functionOf["ff_receive_messages"]
	fnReadMessages    = functionOf["ff_read_messages"]
	fnReissue         = functionOf["ff_reissue_token"]
	fnSetKeys         = functionOf["ff_set_token_keys"]
	fnListKeys        = functionOf["ff_list_token_keys"]
	fnReadSuspension  = functionOf["ff_read_suspension"]
	fnReadSignals     = functionOf["ff_read_signals"]
	fnSetLane         = functionOf["ff_set_lane"]
	fnListExecutions  = functionOf["ff_list_executions"]
	fnDescribe        = functionOf["ff_describe_partition"]
	fnRegister        = functionOf["ff_register_worker"]
	fnFireSchedule    = functionOf["ff_fire_schedule"]
	fnListSchedules   = functionOf["ff_list_schedules"]
	fnAuditExecutions = functionOf["ff_audit_executions"]
	fnAuditIndex      = functionOf["ff_audit_index"]
	fnAuditKeys       = functionOf["ff_audit_keys"]
	fnAuditFlows      = functionOf["ff_audit_flows"]
	fnAuditRoutes     = functionOf["ff_audit_routes"]
	fnReadStream      = functionOf["ff_read_attempt_stream"]
	fnRead            = functionOf["ff_read_execution"]
	fnHistory         = functionOf["ff_read_history"]
	fnExplain         = functionOf["ff_explain_execution"]
	fnReadSteps       = functionOf["ff_read_steps"]
	fnReadQuestion    = functionOf["ff_read_question"]
	fnFlowCreate      = functionOf["ff_flow_create"]
	fnFlowStage       = functionOf["ff_flow_stage"]
	fnFlowSeal        = functionOf["ff_flow_seal"]
	fnFlowCancel      = functionOf["ff_flow_cancel"]
	fnFlowDrain       = functionOf["ff_flow_drain"]
	fnFlowReplay      = functionOf["ff_flow_replay"]
	fnFlowDescribe    = functionOf["ff_flow_describe"]
	fnFlowMembers     = functionOf["ff_flow_members"]
	fnFlowList        = functionOf["ff_flow_list"]
	fnWaitChildren    = functionOf["ff_wait_children"]
	fnCheckAwaited    = functionOf["ff_check_awaited"]
	fnWaitOthers      = functionOf["ff_wait_others"]
	fnAwait           = functionOf["ff_await"]
	fnTellWaiters     = functionOf["ff_tell_waiters"]
	fnReadInputs      = functionOf["ff_read_inputs"]
	fnPutBudget       = functionOf["ff_put_budget"]
	fnRemoveBudget    = functionOf["ff_remove_budget"]
	fnReportUsage     = functionOf["ff_report_usage"]
	fnUndoUsage       = functionOf["ff_undo_usage"]
	fnAdjustBudget    = functionOf["ff_adjust_budget"]
	fnResetBudget     = functionOf["ff_reset_budget"]
	fnReleaseUsage    = functionOf["ff_release_usage"]
	fnCheckBudgets    = functionOf["ff_check_budgets"]
	fnReadBudget      = functionOf["ff_read_budget"]
	fnListBudgets     = functionOf["ff_list_budgets"]
	fnPutQuota        = functionOf["ff_put_quota"]
	fnRemoveQuota     = functionOf["ff_remove_quota"]
	fnAdmit           = functionOf["ff_admit"]
	fnReleaseHolds    = functionOf["ff_release_holds"]
	fnSettleHolds     = functionOf["ff_settle_holds"]
	fnReadQuota       = functionOf["ff_read_quota"]
	fnListQuotas      = functionOf["ff_list_quotas"]
	fnClaimGranted    = functionOf["ff_claim_granted"]
	fnReadOutbox      = functionOf["ff_read_outbox"]
	fnReadGates       = functionOf["ff_read_gates"]
	fnSetShare        = functionOf["ff_set_share"]
)
