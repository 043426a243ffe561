package engine

// function is one of the library. What it takes, answers and refuses is in the header of its file in lua/.
type function struct {
	name     string
	method   string // of Engine, that calls it
	readonly bool
	once     bool // its caller repeats it, the engine does not
	bare     bool // of no partition: it takes no note of who asks
}

var (
	fnVersion         = function{name: "ff_version", method: "loadOn", readonly: true}
	fnConfigure       = function{name: "ff_configure", method: "configured", bare: true}
	fnBoot            = function{name: "ff_boot", method: "boot", bare: true}
	fnFreeze          = function{name: "ff_freeze_partition", method: "FreezePartition"}
	fnPoll            = function{name: "ff_poll", method: "Poll", readonly: true}
	fnCreate          = function{name: "ff_create_execution", method: "CreateExecutions", once: true}
	fnComplete        = function{name: "ff_complete_execution", method: "CompleteExecutions"}
	fnFail            = function{name: "ff_fail_execution", method: "FailExecution"}
	fnDelay           = function{name: "ff_delay_execution", method: "DelayExecution"}
	fnContinue        = function{name: "ff_continue_execution", method: "ContinueExecution"}
	fnRelease         = function{name: "ff_release_execution", method: "ReleaseExecution"}
	fnCancel          = function{name: "ff_cancel_execution", method: "CancelExecution"}
	fnRecordStep      = function{name: "ff_record_step", method: "RecordStep"}
	fnProgress        = function{name: "ff_update_progress", method: "UpdateProgress"}
	fnPriority        = function{name: "ff_change_priority", method: "ChangePriority"}
	fnSetDelay        = function{name: "ff_set_delay", method: "SetDelay"}
	fnReplay          = function{name: "ff_replay_execution", method: "ReplayExecution"}
	fnSetTags         = function{name: "ff_set_tags", method: "SetTags"}
	fnPurge           = function{name: "ff_purge_execution", method: "PurgeExecution"}
	fnRevoke          = function{name: "ff_revoke_lease", method: "RevokeLease"}
	fnMarkDead        = function{name: "ff_mark_session_dead", method: "MarkSessionDead"}
	fnForwardRing     = function{name: "ff_pass_ring", method: "ForwardRing"}
	fnSetSubscription = function{name: "ff_set_interest", method: "SetSubscription"}
	fnClaim           = function{name: "ff_claim_next", method: "ClaimNext"}
	fnRenew           = function{name: "ff_session_renew", method: "RenewSession"}
	fnHeld            = function{name: "ff_session_held", method: "SessionHeld", readonly: true}
	fnClose           = function{name: "ff_session_close", method: "CloseSession"}
	fnAppend          = function{name: "ff_append_frames", method: "AppendFrames"}
	fnPend            = function{name: "ff_create_pending_waitpoint", method: "CreatePendingWaitpoint"}
	fnCloseWaitpoint  = function{name: "ff_close_waitpoint", method: "CloseWaitpoint"}
	fnSuspend         = function{name: "ff_suspend_execution", method: "SuspendExecution"}
	fnResume          = function{name: "ff_resume_execution", method: "ResumeExecution"}
	fnDeliver         = function{name: "ff_deliver_signal", method: "DeliverSignal"}
	fnApprove         = function{name: "ff_approve_waitpoint", method: "ApproveWaitpoint"}
	fnSend            = function{name: "ff_send_message", method: "SendMessage"}
	fnReceive         = function{name: "ff_receive_messages", method: "ReceiveMessages"}
	fnReadMessages    = function{name: "ff_read_messages", method: "ReadMessages", readonly: true}
	fnReissue         = function{name: "ff_reissue_token", method: "ReissueToken"}
	fnSetKeys         = function{name: "ff_set_token_keys", method: "setTokenKeys"}
	fnListKeys        = function{name: "ff_list_token_keys", method: "listTokenKeys", readonly: true}
	fnReadSuspension  = function{name: "ff_read_suspension", method: "ReadSuspension", readonly: true}
	fnReadSignals     = function{name: "ff_read_signals", method: "ReadSignals", readonly: true}
	fnSetLane         = function{name: "ff_set_lane", method: "setLane"}
	fnSetFeed         = function{name: "ff_set_feed", method: "setFeed"}
	fnListLanes       = function{name: "ff_list_lanes", method: "listLanes", readonly: true}
	fnReadQueues      = function{name: "ff_read_queues", method: "Queues", readonly: true}
	fnListExecutions  = function{name: "ff_list_executions", method: "ListExecutions", readonly: true}
	fnDescribe        = function{name: "ff_describe_partition", method: "DescribePartition", readonly: true}
	fnRegister        = function{name: "ff_register_worker", method: "RegisterWorker"}
	fnLeave           = function{name: "ff_leave_worker", method: "LeaveWorker"}
	fnMarkWorkerDead  = function{name: "ff_mark_worker_dead", method: "MarkWorkerDead"}
	fnListWorkers     = function{name: "ff_list_workers", method: "listWorkers", readonly: true}
	fnListSessions    = function{name: "ff_list_sessions", method: "listSessions", readonly: true}
	fnPutSchedule     = function{name: "ff_put_schedule", method: "PutSchedule"}
	fnFireSchedule    = function{name: "ff_fire_schedule", method: "FireSchedule"}
	fnPauseSchedule   = function{name: "ff_pause_schedule", method: "PauseSchedule"}
	fnRemoveSchedule  = function{name: "ff_remove_schedule", method: "RemoveSchedule"}
	fnListSchedules   = function{name: "ff_list_schedules", method: "Schedules", readonly: true}
	fnAuditExecutions = function{name: "ff_audit_executions", method: "AuditExecutions"}
	fnAuditIndex      = function{name: "ff_audit_index", method: "AuditIndex"}
	fnAuditKeys       = function{name: "ff_audit_keys", method: "AuditKeys"}
	fnAuditFlows      = function{name: "ff_audit_flows", method: "AuditFlows"}
	fnAuditRoutes     = function{name: "ff_audit_routes", method: "AuditRoutes"}
	fnReadStream      = function{name: "ff_read_attempt_stream", method: "ReadAttemptStream", readonly: true}
	fnRead            = function{name: "ff_read_execution", method: "ReadExecution", readonly: true}
	fnHistory         = function{name: "ff_read_history", method: "ReadHistory", readonly: true}
	fnExplain         = function{name: "ff_explain_execution", method: "Explain", readonly: true}
	fnReadSteps       = function{name: "ff_read_steps", method: "readSteps", readonly: true}
	fnReadQuestion    = function{name: "ff_read_question", method: "ReadQuestion", readonly: true}
	fnTick            = function{name: "ff_tick", method: "Tick"}
	fnFlowCreate      = function{name: "ff_flow_create", method: "CreateFlow", once: true}
	fnFlowStage       = function{name: "ff_flow_stage", method: "StageFlow", once: true}
	fnFlowSeal        = function{name: "ff_flow_seal", method: "SealFlow", once: true}
	fnFlowTags        = function{name: "ff_flow_tags", method: "SetFlowTags"}
	fnFlowCancel      = function{name: "ff_flow_cancel", method: "CancelFlow"}
	fnFlowDrain       = function{name: "ff_flow_drain", method: "DrainFlows"}
	fnFlowReplay      = function{name: "ff_flow_replay", method: "ReplayFlow"}
	fnFlowDescribe    = function{name: "ff_flow_describe", method: "DescribeFlow", readonly: true}
	fnFlowMembers     = function{name: "ff_flow_members", method: "FlowMembers", readonly: true}
	fnFlowList        = function{name: "ff_flow_list", method: "ListFlows", readonly: true}
	fnWaitChildren    = function{name: "ff_wait_children", method: "WaitChildren"}
	fnCheckAwaited    = function{name: "ff_check_awaited", method: "CheckAwaited", readonly: true}
	fnWaitOthers      = function{name: "ff_wait_others", method: "WaitOthers"}
	fnAwait           = function{name: "ff_await", method: "Await"}
	fnTellWaiters     = function{name: "ff_tell_waiters", method: "TellWaiters"}
	fnReadInputs      = function{name: "ff_read_inputs", method: "inputs", readonly: true}
	fnPutBudget       = function{name: "ff_put_budget", method: "PutBudget"}
	fnRemoveBudget    = function{name: "ff_remove_budget", method: "RemoveBudget"}
	fnReportUsage     = function{name: "ff_report_usage", method: "ReportUsage"}
	fnUndoUsage       = function{name: "ff_undo_usage", method: "UndoUsage"}
	fnAdjustBudget    = function{name: "ff_adjust_budget", method: "AdjustBudget"}
	fnResetBudget     = function{name: "ff_reset_budget", method: "ResetBudget"}
	fnReleaseUsage    = function{name: "ff_release_usage", method: "ReleaseUsage"}
	fnCheckBudgets    = function{name: "ff_check_budgets", method: "CheckBudgets"}
	fnReadBudget      = function{name: "ff_read_budget", method: "ReadBudget", readonly: true}
	fnListBudgets     = function{name: "ff_list_budgets", method: "BudgetNames", readonly: true}
	fnPutQuota        = function{name: "ff_put_quota", method: "PutQuota"}
	fnRemoveQuota     = function{name: "ff_remove_quota", method: "RemoveQuota"}
	fnAdmit           = function{name: "ff_admit", method: "Admit"}
	fnReleaseHolds    = function{name: "ff_release_holds", method: "ReleaseHolds"}
	fnSettleHolds     = function{name: "ff_settle_holds", method: "SettleHolds"}
	fnReadQuota       = function{name: "ff_read_quota", method: "ReadQuota", readonly: true}
	fnListQuotas      = function{name: "ff_list_quotas", method: "QuotaNames", readonly: true}
	fnClaimGranted    = function{name: "ff_claim_granted", method: "ClaimGranted"}
	fnReleaseGrant    = function{name: "ff_release_grant", method: "ReleaseGrants"}
	fnOpenRoute       = function{name: "ff_open_route", method: "OpenRoutes"}
	fnCheckHolds      = function{name: "ff_check_holds", method: "CheckHolds"}
	fnReadOutbox      = function{name: "ff_read_outbox", method: "ReadOutbox", readonly: true}
	fnTrimOutbox      = function{name: "ff_trim_outbox", method: "TrimOutbox"}
	fnAttach          = function{name: "ff_attach", method: "ChangeAttached"}
	fnReadGates       = function{name: "ff_read_gates", method: "ReadGates", readonly: true}
	fnHold            = function{name: "ff_pause_execution", method: "HoldExecution"}
	fnUnhold          = function{name: "ff_unpause_execution", method: "UnholdExecution"}
	fnSetShare        = function{name: "ff_set_share", method: "SetShare"}
)

var functions = []function{
	fnVersion, fnConfigure, fnBoot, fnFreeze, fnPoll, fnCreate, fnComplete, fnFail, fnDelay, fnContinue, fnRelease,
	fnCancel, fnRecordStep, fnProgress, fnPriority, fnSetDelay, fnReplay, fnSetTags, fnPurge, fnSetSubscription,
	fnClaim, fnRenew, fnHeld, fnClose, fnRevoke, fnMarkDead, fnForwardRing, fnPend, fnCloseWaitpoint, fnSuspend,
	fnResume, fnDeliver, fnApprove, fnSend, fnReceive, fnReadMessages, fnReissue, fnSetKeys, fnListKeys,
	fnReadSuspension, fnReadSignals, fnSetLane, fnListLanes, fnSetFeed, fnAppend, fnReadStream, fnRead, fnHistory,
	fnReadSteps, fnReadQuestion, fnTick, fnExplain, fnRegister, fnLeave, fnMarkWorkerDead, fnListWorkers,
	fnListSessions, fnReadQueues, fnListExecutions, fnDescribe, fnPutSchedule, fnFireSchedule, fnPauseSchedule,
	fnRemoveSchedule, fnListSchedules, fnAuditExecutions, fnAuditIndex, fnAuditKeys, fnAuditFlows, fnAuditRoutes,
	fnFlowCreate, fnFlowStage, fnFlowSeal, fnFlowCancel, fnFlowDrain, fnFlowReplay, fnFlowDescribe, fnFlowMembers,
	fnFlowList, fnWaitChildren, fnCheckAwaited, fnWaitOthers, fnAwait, fnTellWaiters, fnReadInputs, fnFlowTags,
	fnPutBudget, fnRemoveBudget, fnReportUsage, fnUndoUsage, fnAdjustBudget, fnResetBudget, fnReleaseUsage,
	fnCheckBudgets, fnReadBudget, fnListBudgets, fnPutQuota, fnRemoveQuota, fnAdmit,
	fnReleaseHolds, fnSettleHolds, fnReadQuota, fnListQuotas, fnClaimGranted, fnReleaseGrant, fnOpenRoute, fnCheckHolds,
	fnReadOutbox, fnTrimOutbox, fnAttach, fnReadGates, fnHold, fnUnhold, fnSetShare,
}

// functionOf are the functions by name.
var functionOf = func() map[string]function {
	out := map[string]function{}
	for _, f := range functions {
		out[f.name] = f
	}
	return out
}()
