package engine

// function is one row of the table that this package shares with the headers of lua/*: a test compares the two,
// so that neither side can change its arguments, replies or errors alone.
type function struct {
	name     string
	method   string
	args     string
	replies  string
	errors   string
	readonly bool
}

const (
	entered = " partition_missing partition_frozen protocol_mismatch"
	fenced  = "execution_not_found execution_not_active lease_revoked lease_expired stale_lease fence_required partial_fence" + entered
	fenceIn = "protocol id session claim epoch attempt"
)

var (
	fnVersion = function{name: "ff_version", method: "loadOn", readonly: true,
		args: "none, no keys", replies: "OK protocol revision hash", errors: ""}
	fnConfigure = function{name: "ff_configure", method: "configure",
		args: "protocol executions budgets quotas create", replies: "OK executions budgets quotas created",
		errors: "invalid_input config_missing"}
	fnBoot = function{name: "ff_boot", method: "boot",
		args: "protocol", replies: "OK protocol", errors: "invalid_input protocol_mismatch"}
	fnFreeze = function{name: "ff_freeze_partition", method: "freeze",
		args: "protocol frozen reason", replies: "OK frozen; ALREADY_SATISFIED frozen",
		errors: "invalid_input partition_missing protocol_mismatch"}
	fnPoll = function{name: "ff_poll", method: "Poll", readonly: true,
		args: "protocol", replies: "OK workers count {place ready overdue}",
		errors: "invalid_input partition_missing protocol_mismatch"}

	fnCreate = function{name: "ff_create_execution", method: "CreateExecutions",
		args:    "protocol count {id namespace lane kind capabilities priority delay deadline policy timeout creator digest payload tags {key value}} or =count item {id digest payload}",
		replies: "OK count {answer}", errors: "invalid_input" + entered}
	fnComplete = function{name: "ff_complete_execution", method: "CompleteExecutions",
		args:    "protocol count {id session claim epoch attempt result} claim [session number ttl max interest table wait rotation grants]",
		replies: "OK count {answer} claim {as ff_claim_next, with its own envelope}",
		errors:  "invalid_input" + entered}
	fnFail = function{name: "ff_fail_execution", method: "FailExecution",
		args:    fenceIn + " category reason permanent after",
		replies: "OK retry|failed instant now; ALREADY_SATISFIED the same", errors: "invalid_input " + fenced}
	fnDelay = function{name: "ff_delay_execution", method: "DelayExecution",
		args: fenceIn + " delay", replies: "OK instant; ALREADY_SATISFIED instant", errors: "invalid_input " + fenced}
	fnRelease = function{name: "ff_release_execution", method: "ReleaseExecution",
		args: fenceIn, replies: "OK released; ALREADY_SATISFIED released", errors: "invalid_input " + fenced}
	fnCancel = function{name: "ff_cancel_execution", method: "CancelExecution",
		args: fenceIn + " source reason by", replies: "OK cancelled previous; ALREADY_SATISFIED cancelled",
		errors: "invalid_input " + fenced}
	fnRecordStep = function{name: "ff_record_step", method: "RecordStep",
		args: fenceIn + " name value", replies: "OK recorded; ALREADY_SATISFIED recorded",
		errors: "invalid_input payload_too_large step_limit_exceeded step_conflict " + fenced}

	fnProgress = function{name: "ff_update_progress", method: "UpdateProgress",
		args: fenceIn + " percent message", replies: "OK stored", errors: "invalid_input " + fenced}
	fnPriority = function{name: "ff_change_priority", method: "ChangePriority",
		args: "protocol id priority by", replies: "OK old new; ALREADY_SATISFIED old new",
		errors: "invalid_input execution_not_found execution_not_active" + entered}
	fnReplay = function{name: "ff_replay_execution", method: "ReplayExecution",
		args: "protocol id request steps force by reason", replies: "OK code replays; ALREADY_SATISFIED code replays",
		errors: "invalid_input execution_not_found execution_not_terminal flow_cancelled resolution_pending replay_not_allowed max_replays_exhausted" + entered}
	fnSetTags = function{name: "ff_set_tags", method: "SetTags",
		args: "protocol id sets {key value} removals {key}", replies: "OK count; ALREADY_SATISFIED count",
		errors: "invalid_input invalid_tag_key execution_not_found" + entered}
	fnPurge = function{name: "ff_purge_execution", method: "PurgeExecution",
		args: "protocol id keep", replies: "OK more; ALREADY_SATISFIED code",
		errors: "invalid_input execution_not_found execution_not_terminal flow_open" + entered}

	fnRevoke = function{name: "ff_revoke_lease", method: "RevokeLease",
		args:    "protocol id session by reason request",
		replies: "OK revoked session epoch; ALREADY_SATISFIED already_revoked|already_expired",
		errors:  "invalid_input execution_not_found execution_not_active stale_lease" + entered}
	fnMarkDead = function{name: "ff_mark_session_dead", method: "MarkSessionDead",
		args: "protocol session reason", replies: "OK dead held; ALREADY_SATISFIED dead",
		errors: "invalid_input session_not_found" + entered}
	fnPassRing = function{name: "ff_pass_ring", method: "PassRing",
		args: "protocol interest", replies: "OK heard", errors: "invalid_input" + entered}
	fnSetInterest = function{name: "ff_set_interest", method: "SetInterest",
		args: "protocol digest count {route}", replies: "OK digest", errors: "invalid_input" + entered}
	fnClaim = function{name: "ff_claim_next", method: "ClaimNext",
		args:    "protocol session number ttl max interest table wait rotation grants",
		replies: "OK duplicate registered more overdue full version rows {id row} claims {header [input] [tags {key value}] [steps {name value}] [resume] [flow [inputs {name value}]]} grants {grant}",
		errors:  "invalid_input lease_expired claim_out_of_order interest_unknown" + entered}
	fnRenew = function{name: "ff_session_renew", method: "RenewSession",
		args: "protocol session ttl processed", replies: "OK overdue generation more count {notice}",
		errors: "invalid_input lease_expired" + entered}
	fnHeld = function{name: "ff_session_held", method: "SessionHeld", readonly: true,
		args: "protocol session offset", replies: "OK alive total count {id claim}", errors: "invalid_input" + entered}
	fnClose = function{name: "ff_session_close", method: "CloseSession",
		args: "protocol session", replies: "OK closed; ALREADY_SATISFIED closed",
		errors: "invalid_input session_not_empty" + entered}

	fnAppend = function{name: "ff_append_frames", method: "AppendFrames",
		args:    fenceIn + " first count {type encoding correlation produced payload} [modes base document keep] or type {payload}",
		replies: "OK id frames sequence version appended; ALREADY_SATISFIED the same",
		errors: "invalid_input payload_too_large execution_not_found stream_closed execution_not_active " +
			"stale_owner_cannot_append frame_sequence_gap summary_too_large summary_version_conflict fence_required partial_fence" + entered}
	fnPend = function{name: "ff_create_pending_waitpoint", method: "CreatePendingWaitpoint",
		args:    fenceIn + " name waitpoint key kid digest nonce lifetime",
		replies: "OK waitpoint key kid nonce expires; ALREADY_SATISFIED the same",
		errors: "invalid_input waitpoint_already_exists waitpoint_limit_exceeded step_limit_exceeded hmac_secret_not_initialized " +
			"kid_not_current " + fenced}
	fnCloseWaitpoint = function{name: "ff_close_waitpoint", method: "CloseWaitpoint",
		args: fenceIn + " waitpoint", replies: "OK closed; ALREADY_SATISFIED closed",
		errors: "invalid_input waitpoint_not_found waitpoint_not_pending " + fenced}
	fnSuspend = function{name: "ff_suspend_execution", method: "SuspendExecution",
		args:    fenceIn + " suspension request name reason timeout behaviour delay condition count {waitpoint key mode kid digest nonce}",
		replies: "OK suspended|satisfied suspension timeout outcome kid count {waitpoint key kid nonce}; ALREADY_SATISFIED the same",
		errors: "invalid_input invalid_resume_condition waitpoint_not_found waitpoint_not_pending waitpoint_already_exists " +
			"waitpoint_key_mismatch pending_waitpoint_expired step_limit_exceeded " +
			"hmac_secret_not_initialized kid_not_current " + fenced}
	fnResume = function{name: "ff_resume_execution", method: "ResumeExecution",
		args: "protocol id suspension request trigger by reason delay", replies: "OK code suspension; ALREADY_SATISFIED code suspension",
		errors: "invalid_input execution_not_found execution_not_suspended suspension_changed" + entered}
	fnDeliver = function{name: "ff_deliver_signal", method: "DeliverSignal",
		args:    "protocol id waitpoint digest signal name category sourcetype source correlation key ttl created encoding payload",
		replies: "OK signal effect state; ALREADY_SATISFIED signal effect state",
		errors: "invalid_input payload_too_large invalid_token token_expired hmac_secret_not_initialized target_not_signalable " +
			"waitpoint_closed signal_limit_exceeded corrupt" + entered}
	fnApprove = function{name: "ff_approve_waitpoint", method: "ApproveWaitpoint",
		args:    "protocol id waitpoint signal name category sourcetype source correlation key ttl created encoding payload",
		replies: "OK signal effect state; ALREADY_SATISFIED signal effect state",
		errors: "invalid_input payload_too_large execution_not_found result_purged corrupt waitpoint_not_found target_not_signalable " +
			"waitpoint_closed signal_limit_exceeded corrupt" + entered}
	fnReissue = function{name: "ff_reissue_token", method: "ReissueToken",
		args: "protocol id waitpoint kid digest nonce by", replies: "OK waitpoint key; ALREADY_SATISFIED waitpoint key",
		errors: "invalid_input execution_not_found waitpoint_not_found waitpoint_not_open hmac_secret_not_initialized kid_not_current" + entered}
	fnSetKeys = function{name: "ff_set_token_keys", method: "setTokenKeys",
		args:    "protocol mode kid fingerprint grace force",
		replies: "OK seeded|rotated previous reaped open; ALREADY_SATISFIED current good",
		errors:  "invalid_input invalid_kid invalid_grace_ms rotation_conflict grace_too_short" + entered}
	fnListKeys = function{name: "ff_list_token_keys", method: "listTokenKeys", readonly: true,
		args: "protocol", replies: "OK current count {kid fingerprint expiry open needed}", errors: "invalid_input" + entered}
	fnReadSuspension = function{name: "ff_read_suspension", method: "ReadSuspension", readonly: true,
		args:    "protocol id",
		replies: "OK code outcome record {field value} waitpoints {waitpoint record} {refused}",
		errors:  "invalid_input execution_not_found result_purged corrupt" + entered}
	fnReadSignals = function{name: "ff_read_signals", method: "ReadSignals", readonly: true,
		args: "protocol id waitpoint offset", replies: "OK total count {signal}",
		errors: "invalid_input execution_not_found result_purged corrupt waitpoint_not_found" + entered}

	fnSetLane = function{name: "ff_set_lane", method: "setLane",
		args:    "protocol namespace lane state retention by ageing",
		replies: "OK state retention routes; ALREADY_SATISFIED state retention routes", errors: "invalid_input" + entered}
	fnSetFeed = function{name: "ff_set_feed", method: "setFeed",
		args:    "protocol kinds keep length",
		replies: "OK kinds until number; ALREADY_SATISFIED kinds until number", errors: "invalid_input" + entered}
	fnListLanes = function{name: "ff_list_lanes", method: "listLanes", readonly: true,
		args:    "protocol",
		replies: "OK count {namespace lane state retention since by routes waiting ageing weight}", errors: "invalid_input" + entered}
	fnReadQueues = function{name: "ff_read_queues", method: "Queues", readonly: true,
		args: "protocol after", replies: "OK now more count {route row state depth oldest priority retained}", errors: "invalid_input" + entered}
	fnListExecutions = function{name: "ff_list_executions", method: "ListExecutions", readonly: true,
		args: "protocol home key newest score member limit tags",
		replies: "OK now size alive more count {id score code route priority created started ended attempts type category session " +
			"epoch claimed until deadline retries reclaims canceller tags {key value}} routes {id row}",
		errors: "invalid_input" + entered}
	fnDescribe = function{name: "ff_describe_partition", method: "DescribePartition", readonly: true,
		args:    "protocol",
		replies: "OK now protocol frozen reason wake owner overdue booted table feed ready routes lanes fed sets {count head} more {count head} tallies {n} gates {count head}",
		errors:  "invalid_input partition_missing protocol_mismatch"}

	fnRegister = function{name: "ff_register_worker", method: "RegisterWorker",
		args: "protocol instance token ttl inflight stuck info", replies: "OK registered|renewed expiry revision",
		errors: "invalid_input instance_in_use" + entered}
	fnLeave = function{name: "ff_leave_worker", method: "LeaveWorker",
		args: "protocol instance token", replies: "OK left; ALREADY_SATISFIED left", errors: "invalid_input" + entered}
	fnMarkWorkerDead = function{name: "ff_mark_worker_dead", method: "MarkWorkerDead",
		args: "protocol instance reason", replies: "OK dead; ALREADY_SATISFIED dead",
		errors: "invalid_input worker_not_found" + entered}
	fnListWorkers = function{name: "ff_list_workers", method: "listWorkers", readonly: true,
		args:    "protocol after limit",
		replies: "OK now next count {instance expiry seen registered inflight stuck dead why info}", errors: "invalid_input" + entered}
	fnListSessions = function{name: "ff_list_sessions", method: "listSessions", readonly: true,
		args:    "protocol after limit",
		replies: "OK now next count {session expiry dead why held}", errors: "invalid_input" + entered}

	fnPutSchedule = function{name: "ff_put_schedule", method: "PutSchedule",
		args:    "protocol name expected seen next missed first last why by definition payload",
		replies: "OK revision next; ALREADY_SATISFIED revision next", errors: "invalid_input payload_too_large schedule_changed" + entered}
	fnFireSchedule = function{name: "ff_fire_schedule", method: "FireSchedule",
		args: "protocol name revision seen next missed first last why at solo [id namespace lane kind capabilities priority delay deadline " +
			"policy timeout creator digest payload tags {key value}]",
		replies: "OK outcome detail; ALREADY_SATISFIED revision next", errors: "invalid_input schedule_not_found" + entered}
	fnPauseSchedule = function{name: "ff_pause_schedule", method: "PauseSchedule",
		args: "protocol name paused by", replies: "OK since; ALREADY_SATISFIED since",
		errors: "invalid_input schedule_not_found" + entered}
	fnRemoveSchedule = function{name: "ff_remove_schedule", method: "RemoveSchedule",
		args: "protocol name expected", replies: "OK revision; ALREADY_SATISFIED", errors: "invalid_input schedule_changed" + entered}
	fnListSchedules = function{name: "ff_list_schedules", method: "Schedules", readonly: true,
		args: "protocol which name limit",
		replies: "OK now more count {name revision incarnation next lastdue lastid fired missed from to run why paused pausedat pausedby " +
			"resumedat resumedby created updated by input definition reasons {why count}}",
		errors: "invalid_input" + entered}

	fnAuditExecutions = function{name: "ff_audit_executions", method: "AuditExecutions",
		args:    "protocol heal count {id}",
		replies: "OK now count {code route created} findings {kind index member detail healed}", errors: "invalid_input" + entered}
	fnAuditIndex = function{name: "ff_audit_index", method: "AuditIndex",
		args:    "protocol heal index cursor limit",
		replies: "OK cursor checked findings {kind index member detail healed}", errors: "invalid_input" + entered}
	fnAuditKeys = function{name: "ff_audit_keys", method: "AuditKeys",
		args: "protocol heal count {area id of}", replies: "OK findings {kind index member detail healed}", errors: "invalid_input" + entered}
	fnAuditFlows = function{name: "ff_audit_flows", method: "AuditFlows",
		args:    "protocol heal count {flow next version seen}",
		replies: "OK count {next version seen} findings {kind index member detail healed}", errors: "invalid_input" + entered}
	fnAuditRoutes = function{name: "ff_audit_routes", method: "AuditRoutes",
		args:    "protocol heal purged recounts count {route stored low high}",
		replies: "OK now purged recounts compared count {route uses} findings {kind index member detail healed}",
		errors:  "invalid_input" + entered}

	fnReadStream = function{name: "ff_read_attempt_stream", method: "ReadAttemptStream", readonly: true,
		args:    "protocol id attempt",
		replies: "OK exists frames bytes sequence lastid firstid retained closed closedat reason attempts code version live runs recorded recordedid",
		errors:  "invalid_input execution_not_found result_purged corrupt" + entered}
	fnRead = function{name: "ff_read_execution", method: "ReadExecution", readonly: true,
		args: "protocol id", replies: "OK now row alive expiry steps core {field value} attempts {field value} tags {key value}",
		errors: "invalid_input execution_not_found result_purged corrupt" + entered}
	fnHistory = function{name: "ff_read_history", method: "ReadHistory", readonly: true,
		args: "protocol id", replies: "OK core {field value} attempts {field value} events {entry}",
		errors: "invalid_input execution_not_found result_purged corrupt" + entered}
	fnExplain = function{name: "ff_explain_execution", method: "Explain", readonly: true,
		args: "protocol id",
		replies: "OK now row alive expiry why lane keep since by ahead queued ready waiters interests owner wake overdue purge " +
			"core {field value} attempts {field value} suspension {field value} waitpoints {waitpoint record} flow {field value} open others {id node code} " +
			"closed why outbox paused by reason",
		errors: "invalid_input execution_not_found result_purged corrupt" + entered}

	fnTick = function{name: "ff_tick", method: "Tick",
		args:    "protocol owner release",
		replies: "OK owner more next idle requeued exhausted promoted timedout expired rung suspensions waitpoints purged schedules outbox; ALREADY_SATISFIED owner",
		errors:  "invalid_input" + entered}

	fnFlowCreate = function{name: "ff_flow_create", method: "CreateFlow",
		args:    "protocol flow namespace kind creator digest tags {key value}",
		replies: "OK state revision members; ALREADY_SATISFIED state revision members",
		errors:  "invalid_input invalid_tag_key flow_conflict" + entered}
	fnFlowStage = function{name: "ff_flow_stage", method: "StageFlow",
		args:    "protocol flow revision count {item}",
		replies: "OK revision members edges; ALREADY_SATISFIED revision members edges",
		errors:  "invalid_input invalid_policy invalid_capabilities invalid_tag_key payload_too_large too_many_routes lane_closed idempotency_conflict flow_not_found flow_already_terminal flow_sealed stale_graph_revision self_referencing_edge dependency_already_exists execution_not_in_flow already_member_of_different_flow namespace_mismatch fan_in_too_large flow_too_large" + entered}
	fnFlowSeal = function{name: "ff_flow_seal", method: "SealFlow",
		args:    "protocol flow mode members edges",
		replies: "OK state more; ALREADY_SATISFIED state more",
		errors:  "invalid_input flow_not_found flow_already_terminal flow_sealed flow_incomplete" + entered}
	fnFlowTags = function{name: "ff_flow_tags", method: "SetFlowTags",
		args:    "protocol flow sets {key value} removals {key}",
		replies: "OK count; ALREADY_SATISFIED count",
		errors:  "invalid_input invalid_tag_key flow_not_found" + entered}
	fnFlowCancel = function{name: "ff_flow_cancel", method: "CancelFlow",
		args:    "protocol flow policy by reason",
		replies: "OK policy reason unended more; ALREADY_SATISFIED policy reason unended more",
		errors:  "invalid_input invalid_cancellation_policy flow_not_found flow_already_terminal" + entered}
	fnFlowDrain = function{name: "ff_flow_drain", method: "DrainFlows",
		args:    "protocol",
		replies: "OK more",
		errors:  "invalid_input" + entered}
	fnFlowReplay = function{name: "ff_flow_replay", method: "ReplayFlow",
		args:    "protocol flow request steps force by reason count {id}",
		replies: "OK count {answer}",
		errors:  "invalid_input flow_not_found" + entered}
	fnFlowDescribe = function{name: "ff_flow_describe", method: "DescribeFlow", readonly: true,
		args:    "protocol flow",
		replies: "OK now fields {name value} tags {key value}",
		errors:  "invalid_input flow_not_found result_purged" + entered}
	fnFlowMembers = function{name: "ff_flow_members", method: "FlowMembers", readonly: true,
		args:    "protocol flow next limit edges",
		replies: "OK next count {id number node code route attempt category started ended group wait edges {upstream edge}} routes {id row}",
		errors:  "invalid_input flow_not_found" + entered}
	fnFlowList = function{name: "ff_flow_list", method: "ListFlows", readonly: true,
		args:    "protocol newest score member limit",
		replies: "OK now size more count {id score state seal namespace kind released ended members lv b w d a u s f c e k}",
		errors:  "invalid_input" + entered}
	fnWaitChildren = function{name: "ff_wait_children", method: "WaitChildren",
		args:    "protocol id session claim epoch attempt name mode rest park count {item}",
		replies: "OK made|parked|satisfied outcomes; ALREADY_SATISFIED parked outcomes",
		errors:  "invalid_input invalid_policy invalid_capabilities invalid_tag_key payload_too_large too_many_routes lane_closed idempotency_conflict flow_not_found flow_already_terminal flow_sealed flow_cancelled self_referencing_edge dependency_already_exists execution_not_in_flow already_member_of_different_flow namespace_mismatch fan_in_too_large flow_too_large step_limit_exceeded execution_not_found execution_not_active lease_revoked lease_expired stale_lease fence_required partial_fence" + entered}
	fnReadInputs = function{name: "ff_read_inputs", method: "inputs", readonly: true,
		args:    "protocol id",
		replies: "OK count {name upstream attempt}",
		errors:  "invalid_input execution_not_found" + entered}
	fnPutBudget = function{name: "ff_put_budget", method: "PutBudget",
		args:    "protocol name expected scope mode onhard onsoft interval strict refund by count {dimension hard soft}",
		replies: "OK revision count {waiter}; ALREADY_SATISFIED revision count {waiter}",
		errors:  "invalid_input invalid_budget_spec budget_conflict budget_not_found" + entered}
	fnRemoveBudget = function{name: "ff_remove_budget", method: "RemoveBudget",
		args:    "protocol name",
		replies: "OK revision; ALREADY_SATISFIED 0",
		errors:  "invalid_input" + entered}
	fnReportUsage = function{name: "ff_report_usage", method: "ReportUsage",
		args:    "protocol name execution epoch sequence key count {dimension amount}",
		replies: "OK verdict applied late action left period count {breach}; ALREADY_SATISFIED the same",
		errors:  "invalid_input invalid_delta unknown_dimension budget_not_found idempotency_conflict" + entered}
	fnUndoUsage = function{name: "ff_undo_usage", method: "UndoUsage",
		args:    "protocol name execution epoch sequence",
		replies: "OK count {waiter}; ALREADY_SATISFIED count {waiter}",
		errors:  "invalid_input budget_not_found" + entered}
	fnAdjustBudget = function{name: "ff_adjust_budget", method: "AdjustBudget",
		args:    "protocol name by reason request count {dimension amount}",
		replies: "OK used {dimension used} count {waiter}; ALREADY_SATISFIED the same",
		errors:  "invalid_input invalid_delta budget_not_found" + entered}
	fnResetBudget = function{name: "ff_reset_budget", method: "ResetBudget",
		args:    "protocol name by move request",
		replies: "OK period left count {waiter}; ALREADY_SATISFIED the same",
		errors:  "invalid_input budget_not_found" + entered}
	fnReleaseUsage = function{name: "ff_release_usage", method: "ReleaseUsage",
		args:    "protocol by count {name execution outcome epoch}",
		replies: "OK count {answer} count {waiter}",
		errors:  "invalid_input" + entered}
	fnCheckBudgets = function{name: "ff_check_budgets", method: "CheckBudgets",
		args:    "protocol partition route wait count {name}",
		replies: "OK count {answer}",
		errors:  "invalid_input" + entered}
	fnReadBudget = function{name: "ff_read_budget", method: "ReadBudget", readonly: true,
		args:    "protocol name spenders entries",
		replies: "OK now waiting fields {field value} used {dimension amount} entries {entry} spenders {spender}",
		errors:  "invalid_input budget_not_found" + entered}
	fnListBudgets = function{name: "ff_list_budgets", method: "BudgetNames", readonly: true,
		args:    "protocol after limit",
		replies: "OK more count {name}",
		errors:  "invalid_input" + entered}
	fnPutQuota = function{name: "ff_put_quota", method: "PutQuota",
		args:    "protocol name expected scope rate window cap jitter by",
		replies: "OK revision count {waiter}; ALREADY_SATISFIED revision count {waiter}",
		errors:  "invalid_input invalid_quota_spec quota_conflict quota_policy_not_found" + entered}
	fnRemoveQuota = function{name: "ff_remove_quota", method: "RemoveQuota",
		args:    "protocol name",
		replies: "OK revision; ALREADY_SATISFIED 0",
		errors:  "invalid_input" + entered}
	fnAdmit = function{name: "ff_admit", method: "Admit",
		args:    "protocol name partition route ttl count {hold}",
		replies: "OK admitted why retry count {suspect}",
		errors:  "invalid_input quota_policy_not_found" + entered}
	fnReleaseHolds = function{name: "ff_release_holds", method: "ReleaseHolds",
		args:    "protocol count {name hold ran}",
		replies: "OK released count {waiter}",
		errors:  "invalid_input" + entered}
	fnSettleHolds = function{name: "ff_settle_holds", method: "SettleHolds",
		args:    "protocol name ttl count {hold verdict}",
		replies: "OK freed count {waiter}",
		errors:  "invalid_input quota_policy_not_found" + entered}
	fnReadQuota = function{name: "ff_read_quota", method: "ReadQuota", readonly: true,
		args:    "protocol name holds entries",
		replies: "OK now started held suspect forslots forrate fields {field value} entries {entry} holds {hold}",
		errors:  "invalid_input quota_policy_not_found" + entered}
	fnListQuotas = function{name: "ff_list_quotas", method: "QuotaNames", readonly: true,
		args:    "protocol after limit",
		replies: "OK more count {name}",
		errors:  "invalid_input" + entered}
	fnClaimGranted = function{name: "ff_claim_granted", method: "ClaimGranted",
		args:    "protocol session count {id epoch}",
		replies: "OK count {answer} claims {as ff_claim_next}",
		errors:  "invalid_input lease_expired" + entered}
	fnReleaseGrant = function{name: "ff_release_grant", method: "ReleaseGrants",
		args:    "protocol session count {id epoch reserved} count {route ms why wakes}",
		replies: "OK count {answer}",
		errors:  "invalid_input" + entered}
	fnOpenRoute = function{name: "ff_open_route", method: "OpenRoutes",
		args:    "protocol count {route}",
		replies: "OK count {answer}",
		errors:  "invalid_input" + entered}
	fnCheckHolds = function{name: "ff_check_holds", method: "CheckHolds",
		args:    "protocol count {id epoch}",
		replies: "OK count {answer}",
		errors:  "invalid_input" + entered}
	fnReadOutbox = function{name: "ff_read_outbox", method: "ReadOutbox", readonly: true,
		args:    "protocol after",
		replies: "OK entries count {entry notices {kind text}}",
		errors:  "invalid_input" + entered}
	fnTrimOutbox = function{name: "ff_trim_outbox", method: "TrimOutbox",
		args:    "protocol count {entry}",
		replies: "OK removed left",
		errors:  "invalid_input" + entered}
	fnAttach = function{name: "ff_attach", method: "attach",
		args:    "protocol scope gates by how",
		replies: "OK gates; ALREADY_SATISFIED gates",
		errors:  "invalid_input" + entered}
	fnReadGates = function{name: "ff_read_gates", method: "readGates", readonly: true,
		args:    "protocol",
		replies: "OK now outbox attached {scope gates} closed {route row until why waiting}",
		errors:  "invalid_input" + entered}
	fnPause = function{name: "ff_pause_execution", method: "PauseExecution",
		args:    "protocol id by reason",
		replies: "OK code; ALREADY_SATISFIED code",
		errors:  "invalid_input execution_not_found execution_not_active execution_not_eligible" + entered}
	fnUnpause = function{name: "ff_unpause_execution", method: "UnpauseExecution",
		args:    "protocol id by",
		replies: "OK code; ALREADY_SATISFIED code",
		errors:  "invalid_input execution_not_found execution_not_active execution_not_eligible" + entered}
	fnSetShare = function{name: "ff_set_share", method: "setShare",
		args:    "protocol namespace lane weight",
		replies: "OK weight; ALREADY_SATISFIED weight",
		errors:  "invalid_input" + entered}
)

var functions = []function{
	fnVersion, fnConfigure, fnBoot, fnFreeze, fnPoll, fnCreate, fnComplete, fnFail, fnDelay, fnRelease, fnCancel,
	fnRecordStep, fnProgress, fnPriority, fnReplay, fnSetTags, fnPurge, fnSetInterest, fnClaim, fnRenew, fnHeld,
	fnClose, fnRevoke, fnMarkDead, fnPassRing, fnPend, fnCloseWaitpoint, fnSuspend, fnResume, fnDeliver, fnApprove,
	fnReissue, fnSetKeys, fnListKeys, fnReadSuspension, fnReadSignals, fnSetLane, fnListLanes, fnSetFeed, fnAppend,
	fnReadStream, fnRead, fnHistory, fnTick, fnExplain, fnRegister, fnLeave, fnMarkWorkerDead, fnListWorkers,
	fnListSessions, fnReadQueues, fnListExecutions, fnDescribe, fnPutSchedule, fnFireSchedule, fnPauseSchedule,
	fnRemoveSchedule, fnListSchedules, fnAuditExecutions, fnAuditIndex, fnAuditKeys, fnAuditFlows, fnAuditRoutes,
	fnFlowCreate, fnFlowStage, fnFlowSeal, fnFlowCancel, fnFlowDrain, fnFlowReplay, fnFlowDescribe, fnFlowMembers,
	fnFlowList, fnWaitChildren, fnReadInputs, fnFlowTags,
	fnPutBudget, fnRemoveBudget, fnReportUsage, fnUndoUsage, fnAdjustBudget, fnResetBudget, fnReleaseUsage, fnCheckBudgets, fnReadBudget, fnListBudgets, fnPutQuota, fnRemoveQuota, fnAdmit, fnReleaseHolds, fnSettleHolds,
	fnReadQuota, fnListQuotas, fnClaimGranted, fnReleaseGrant, fnOpenRoute, fnCheckHolds, fnReadOutbox, fnTrimOutbox, fnAttach, fnReadGates, fnPause, fnUnpause, fnSetShare,
}
