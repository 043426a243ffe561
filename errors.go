package flowfabric

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/fault"
)

// define adds an error to the table. kind, if it is given, is the exported error that stands for several codes, this
// one among them.
func define(code string, class fault.Class, meaning string, kind ...error) error {
	s := &fault.Sentinel{Code: code, Class: class, Meaning: meaning}
	if len(kind) > 0 {
		s.Kind = kind[0]
	}
	fault.Define(s)
	return s
}

// Errors that the server functions answer. Compare with errors.Is; errors.As with *[Error] gives the detail. Some
// stand for several codes, which [CodeOf] tells apart: page docs/reference/errors.md of the repository lists all of
// them.
var (
	// ErrInvalidInput: a value is missing, out of bounds or not well formed; the error names it.
	ErrInvalidInput = define("invalid_input", fault.Caller, "a value is not valid")
	// ErrPayloadTooLarge: an input, result, frame, step, message, signal or summary has more bytes than it may.
	ErrPayloadTooLarge = define("payload_too_large", fault.Caller, "the bytes exceed the documented limit")
	// ErrLimit: the maximum number is reached, of steps, waitpoints, waits for events, signals, messages, replays,
	// members of a flow or routes.
	ErrLimit = define("limit_reached", fault.Caller, "the maximum number is reached")
	// ErrNotFound: the execution, flow, schedule, gate, waitpoint, step, worker or session that the call
	// names does not exist.
	ErrNotFound = define("execution_not_found", fault.Stop,
		"the execution does not exist: it was never created, or it was purged")
	// ErrConflict: the key or name belongs to something else already, or what was to be changed has changed since it
	// was read.
	ErrConflict = define("conflict", fault.Caller,
		"the key or name belongs to something else, or it changed since it was read")
	// ErrTerminal: the execution or the flow has ended.
	ErrTerminal = define("execution_terminal", fault.Info, "the execution has already ended")
	// ErrState: what is asked for does not apply in the present state, and that is not that it has ended
	// ([ErrTerminal]).
	ErrState = define("wrong_state", fault.Info, "this does not apply in the present state")

	// ErrLaneClosed: the lane is draining or disabled; an operator may open it again.
	ErrLaneClosed = define("lane_closed", fault.Retry, "the lane is draining or disabled and takes no new work")
	ErrFeedGap    = define("feed_gap", fault.Info, "events were trimmed before they were read")

	// ErrInvalidToken: no token was given, or one that opens nothing here, whatever the reason.
	ErrInvalidToken = define("invalid_token", fault.Stop, "the token does not open any waitpoint")
	ErrTokenExpired = define("token_expired", fault.Stop, "the key of the token was rotated out; ask for a new token")
	// ErrNoTokenKeys: no token key is configured, or none that is in use.
	ErrNoTokenKeys = define("hmac_secret_not_initialized", fault.Stop,
		"no token key is configured: set FLOWFABRIC_TOKEN_KEYS=kid:hex to the key that 'flowfabric dev' prints, or to a new one (openssl rand -hex 32)")
	// ErrWaitpointClosed: the signal, or the request for a new token, came too late.
	ErrWaitpointClosed = define("waitpoint_closed", fault.Info, "the signal came too late: the waitpoint is closed")

	// ErrEncrypted: what is stored is encrypted, and this process has no key for it, see client.Config.Cipher.
	ErrEncrypted = define("encrypted", fault.Stop,
		"what is stored is encrypted, and this process has no key for it: set FLOWFABRIC_CIPHER_KEYS")

	// ErrPartitionFrozen: an operator froze the partition (admin.Admin.Freeze); it answers again after a thaw.
	ErrPartitionFrozen = define("partition_frozen", fault.Retry, "the partition is frozen for maintenance")
	// ErrProtocol: the store or the function library on the server has another protocol number than this application,
	// or the server is older than Valkey 7.2 or Redis 7.0. Nothing is changed.
	ErrProtocol = define("protocol_mismatch", fault.Stop, "the server has another protocol number than this application")
	// ErrCorrupt: a stored record is damaged; admin.Admin.Check tells more.
	ErrCorrupt = define("corrupt", fault.Bug, "a stored record breaks an invariant")
)

// What the errors above stand for besides their own code, and errors that no program acts on. Package internal/denied
// names them.
var (
	_ = define("input_does_not_fit", fault.Caller, "the input does not fit the schema of its kind", ErrInvalidInput)
	_ = define("too_many_schemas", fault.Caller, "the namespace has its maximum of kinds with schemas, 256", ErrLimit)
	_ = define("not_indexed", fault.Info, "the store keeps no index for this list", ErrState)
	_ = define("invalid_policy", fault.Caller, "the policy of the execution is not valid", ErrInvalidInput)
	_ = define("invalid_capabilities", fault.Caller, "a capability token is not valid", ErrInvalidInput)
	_ = define("too_many_routes", fault.Caller,
		"the partition, or the namespace in it, has its maximum of combinations of lane, kind and capabilities; "+
			"waiting does not help", ErrLimit)
	_ = define("idempotency_conflict", fault.Caller, "the same id or idempotency key was used with a different payload",
		ErrConflict)
	_ = define("key_taken", fault.Info, "another execution has its key by now", ErrConflict)
	_ = define("invalid_tag_key", fault.Caller,
		"a tag key must be dotted lower-case words such as team.region, at most 64 bytes", ErrInvalidInput)
	_ = define("execution_not_active", fault.Stop, "the execution is no longer active under this fence", ErrState)
	_ = define("execution_not_terminal", fault.Info, "the execution has not ended yet", ErrState)
	_ = define("replay_not_allowed", fault.Caller, "a successful execution is replayed only with force", ErrState)
	_ = define("step_not_found", fault.Caller, "the execution has not recorded a step of this name", ErrNotFound)
	_ = define("blob_not_found", fault.Stop, "the store of blobs does not have these bytes, or no longer", ErrNotFound)
	_ = define("blob_damaged", fault.Bug, "the bytes in the store of blobs do not fit their digest", ErrCorrupt)
	_ = define("max_replays_exhausted", fault.Stop, "the execution was replayed as often as its policy allows", ErrLimit)
	_ = define("attempt_changed", fault.Info, "the execution is in another attempt by now than the caller saw",
		ErrConflict)
	_ = define("lease_expired", fault.Stop, "the lease of the session expired")
	_ = define("lease_revoked", fault.Stop, "an operator revoked the lease")
	_ = define("rewound", fault.Stop, "somebody had the execution go on again from an earlier step", ErrLeaseLost)
	_ = define("stale_lease", fault.Stop, "a newer claim holds the execution")
	_ = define("session_not_found", fault.Info,
		"the session does not exist: it was never opened, or it ended more than ten minutes ago", ErrNotFound)
	_ = define("worker_not_found", fault.Info,
		"no worker has this instance name: it never registered, it left, or it was lost more than an hour ago",
		ErrNotFound)
	_ = define("instance_in_use", fault.Caller,
		"another live worker process has this instance name; give every process its own", ErrConfig)
	_ = define("stream_closed", fault.Stop, "the stream is closed: its attempt has ended, or somebody has closed it")
	_ = define("stream_not_found", fault.Info,
		"no stream has this name: it was never made, was deleted, or has expired", ErrNotFound)
	_ = define("stream_gone", fault.Info, "the stream was deleted or has expired, and is only kept for its forks",
		ErrNotFound)
	_ = define("stream_conflict", fault.Caller, "the stream is not as the request takes it to be", ErrConflict)
	_ = define("summary_too_large", fault.Caller, "the summary document exceeds the documented limit",
		ErrPayloadTooLarge)
	_ = define("step_limit_exceeded", fault.Caller,
		"the execution has its maximum number of recorded steps, or of bytes in them", ErrLimit)
	_ = define("step_conflict", fault.Caller, "a step of this name is recorded with another value", ErrConflict)
	_ = define("missing_token", fault.Caller, "a signal needs the token of its waitpoint", ErrInvalidToken)
	_ = define("rotation_conflict", fault.Caller,
		"this token key id is in use with another secret; every worker needs the same one, and a new secret needs a new id",
		ErrConflict)
	_ = define("grace_too_short", fault.Caller,
		"open waitpoints need the outgoing token key for longer than the grace period", ErrState)
	_ = define("kid_not_current", fault.Caller, "this partition does not use the token key that signed", ErrNoTokenKeys)
	_ = define("waitpoint_not_found", fault.Info, "the execution has no such waitpoint", ErrNotFound)
	_ = define("waitpoint_not_open", fault.Info, "the waitpoint is closed", ErrWaitpointClosed)
	_ = define("waitpoint_limit_exceeded", fault.Caller, "the execution has its maximum number of open waitpoints",
		ErrLimit)
	_ = define("too_many_expected", fault.Caller, "one filter, or one event, concerns too many waits for events",
		ErrLimit)
	_ = define("target_not_signalable", fault.Info, "the execution has ended", ErrTerminal)
	_ = define("signal_limit_exceeded", fault.Stop, "the suspension has its maximum number of signals", ErrLimit)
	_ = define("mailbox_full", fault.Stop, "the execution has as many messages as it may that nobody has received",
		ErrLimit)
	_ = define("mailbox_shut", fault.Info,
		"the agent is talking, and this mailbox takes no message meanwhile", ErrState)
	_ = define("nothing_to_stop", fault.Info, "the execution says nothing now that could be stopped", ErrState)
	_ = define("turn_stopped", fault.Stop, "somebody has stopped what the run says", ErrState)
	_ = define("invalid_resume_condition", fault.Caller, "the resume condition can never be met or is not well formed",
		ErrInvalidInput)
	_ = define("execution_not_suspended", fault.Info, "the execution is not suspended", ErrState)
	_ = define("suspension_changed", fault.Retry, "the execution is in another suspension now; read it again", ErrState)
	_ = define("schedule_not_found", fault.Info, "no schedule has this name", ErrNotFound)
	_ = define("schedule_changed", fault.Retry, "the schedule changed since it was read; read it again", ErrConflict)
	_ = define("flow_not_found", fault.Info, "the flow does not exist: it was never submitted, or it was purged",
		ErrNotFound)
	_ = define("flow_conflict", fault.Caller, "the id or idempotency key belongs to a flow with another definition",
		ErrConflict)
	_ = define("flow_already_terminal", fault.Info, "the flow has already ended", ErrTerminal)
	_ = define("flow_sealed", fault.Caller,
		"the flow is sealed and takes no more members; use flow.Growing if handlers add members", ErrState)
	_ = define("flow_cancelled", fault.Stop, "the flow was cancelled", ErrTerminal)
	_ = define("flow_incomplete", fault.Bug, "the flow has fewer members or edges than were staged", ErrCorrupt)
	_ = define("flow_too_large", fault.Caller, "a flow has at most 10,000 members and 50,000 edges", ErrLimit)
	_ = define("fan_in_too_large", fault.Caller, "a member may depend on, or wait for, at most 1,000 others", ErrLimit)
	_ = define("flow_open", fault.Info,
		"the execution stays until its flow has ended and the flow's other members are gone", ErrState)
	_ = define("self_referencing_edge", fault.Caller, "a member depends on itself", ErrInvalidInput)
	_ = define("cycle_detected", fault.Caller, "the members depend on each other in a circle", ErrInvalidInput)
	_ = define("dependency_already_exists", fault.Caller, "two edges lead from the same member to the same member",
		ErrInvalidInput)
	_ = define("execution_not_in_flow", fault.Caller, "the execution is not a member of the flow", ErrNotFound)
	_ = define("invalid_cancellation_policy", fault.Caller,
		"the cancellation policy must be cancel_all, cancel_pending or flow_only", ErrInvalidInput)
	_ = define("resolution_pending", fault.Retry, "the flow still processes how its members ended; ask again", ErrState)
	_ = define("gate_not_found", fault.Info, "no gate has this name", ErrNotFound)
	_ = define("gate_conflict", fault.Caller,
		"a gate of this name exists with other settings, or it changed since it was read", ErrConflict)
	_ = define("invalid_gate_spec", fault.Caller, "the gate is not well formed", ErrInvalidInput)
	_ = define("invalid_delta", fault.Caller,
		"an amount must be a whole number from 0 to 2^53-1, and so must the total", ErrInvalidInput)
	_ = define("unknown_dimension", fault.Caller, "the gate refuses dimensions that it does not limit",
		ErrInvalidInput)
	_ = define("execution_not_eligible", fault.Info, "the execution cannot be claimed in its present state", ErrState)
	_ = define("partition_missing", fault.Stop,
		"the partition's root key does not exist; the store was flushed or never booted")
	_ = define("server_too_old", fault.Stop, "Valkey 7.2 or newer, or Redis 7.0 or newer, is required", ErrProtocol)
	_ = define("task_consumed", fault.Caller, "the task has already been settled")
	_ = define("unflushed", fault.Retry, "frames were not acknowledged, so the attempt was not settled")
	_ = define("duplicate_handler", fault.Caller, "two handlers are registered for one execution kind", ErrConfig)

	_ = define("fence_required", fault.Caller, "only its holder or an explicit override changes an active execution")
	_ = define("partial_fence", fault.Caller, "the fence must have session, claim, epoch and attempt")
	_ = define("claim_out_of_order", fault.Stop, "the claim number is neither the session's last nor its next")
	_ = define("session_not_empty", fault.Info, "the session still holds executions")
	_ = define("waitpoint_already_exists", fault.Info, "a waitpoint with this id exists; an id is never used twice")
	_ = define("waitpoint_not_pending", fault.Info, "the waitpoint is no longer pending")
	_ = define("pending_waitpoint_expired", fault.Info,
		"the pending waitpoint expired before the execution suspended on it")
	_ = define("waitpoint_key_mismatch", fault.Caller, "the pending waitpoint has another key")
	_ = define("stale_graph_revision", fault.Retry, "the flow changed since it was read")
	_ = define("already_member_of_different_flow", fault.Caller, "the execution is a member of another flow")
	_ = define("namespace_mismatch", fault.Caller, "a member must be in the namespace of its flow")
	_ = define("stale_owner_cannot_append", fault.Stop, "only the current holder may append frames")
	_ = define("frame_sequence_gap", fault.Stop, "frames before this batch never arrived")
	_ = define("summary_version_conflict", fault.Stop, "another writer changed the summary document")
	_ = define("subscription_unknown", fault.Retry, "the partition does not know this set of routes; store it again")
	_ = define("invalid_secret", fault.Caller, "a token secret must be 64 to 128 hex digits (32 to 64 bytes)")
	_ = define("invalid_kid", fault.Caller, "a token key id must be 1 to 32 characters of A-Z a-z 0-9 . _ -")
	_ = define("invalid_grace_ms", fault.Caller, "a grace period must be a whole number of milliseconds, 0 or more")
	// A server function raised instead of answering; always a defect of the library.
	_ = define("internal_script_error", fault.Bug, "a server function raised an error")
	// The server answered in a shape that this library does not know.
	_ = define("parse", fault.Bug, "the reply has an unexpected shape")
)

// Errors that are found on this side of the wire.
var (
	// ErrTransport: the call's outcome is unknown (connection lost, timeout). Calls that are idempotent or
	// fenced have already been repeated when a caller sees it.
	ErrTransport = define("transport", fault.Retry, "the server could not be reached or did not answer in time")
	// ErrAuth: the server refused the credentials or the rights of the user.
	ErrAuth = define("auth_refused", fault.Stop, "the server refused user name, password or permission")
	// ErrConfig: a configuration value is missing or out of bounds, two handlers are bound to one kind, or two
	// processes have one instance name; nothing was started.
	ErrConfig = define("config", fault.Caller, "the configuration is not valid")
	// ErrOutOfMemory: the server is over its memory limit and refuses new work; ending work is still accepted. A store
	// in a folder whose disk cannot be written refuses everything that writes.
	ErrOutOfMemory = define("out_of_memory", fault.Retry, "the server has no room for more")
)

// Causes of a handler's context (context.Cause), and errors of a task.
var (
	// ErrCancelled: the execution was cancelled while the handler ran.
	ErrCancelled = define("cancelled", fault.Stop, "the execution was cancelled")
	// ErrLeaseLost: this process is no longer the holder; another may already run the execution.
	ErrLeaseLost = define("lease_lost", fault.Stop, "this process lost the lease; its writes are refused")
	// ErrOverBudget: a hard budget limit was reached.
	ErrOverBudget = define("over_budget", fault.Stop, "a hard budget limit was reached")
	// ErrDraining: the worker shuts down and returns the execution to its queue; no retry is consumed.
	ErrDraining = define("draining", fault.Stop, "the worker is shutting down")
	// ErrAttemptTimeout: the attempt ran longer than its Timeout; the retry policy decides what follows.
	ErrAttemptTimeout = define("attempt_timeout", fault.Stop, "the attempt ran longer than its timeout")
	// ErrDeadline: the execution's deadline passed.
	ErrDeadline = define("execution_deadline", fault.Stop, "the execution's deadline passed")
	// ErrWaitTimeout: a wait lasted longer than its Within, and OnTimeout says to go on.
	ErrWaitTimeout = define("wait_timeout", fault.Stop, "no answer arrived in time")
	// ErrNoSignal: an operator resumed the execution without a signal, so that there is no value.
	ErrNoSignal = define("resumed_without_signal", fault.Stop, "the execution was resumed without a signal")
)

// Outcomes as a waiting producer sees them, returned by Result.
var (
	ErrFailed  = define("execution_failed", fault.Stop, "the execution failed")
	ErrExpired = define("execution_expired", fault.Stop,
		"the execution expired: its deadline passed, or its last attempt timed out")
	ErrSkipped = define("execution_skipped", fault.Stop,
		"the execution was skipped because its dependencies cannot be satisfied")
	// ErrResultPurged: the execution ended but its result is no longer retained.
	ErrResultPurged = define("result_purged", fault.Stop, "the execution ended and its result was purged")
)

// Error is an error with the detail the server gave: which field, which limit, which state. It matches the sentinel
// of its code: errors.Is(err, flowfabric.ErrTerminal).
type Error struct {
	Op     string   // the function or verb that failed, for example "ff_complete_execution"
	Code   string   // the wire code
	Detail []string // the slots after the code
}

// row is the table's row of the code. An unknown code is kept as it is; CodeOf calls it
// parse.
func (e *Error) row() *fault.Sentinel {
	if s := fault.Of(e.Code); s != nil {
		return s
	}
	return fault.Of("parse")
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	b.WriteString(e.Code)
	if s := e.row(); s.Code == e.Code {
		b.WriteString(": ")
		b.WriteString(s.Meaning)
	}
	if detail := strings.Join(e.Detail, ", "); strings.Trim(detail, ", ") != "" {
		fmt.Fprintf(&b, " (%s)", detail)
	}
	return b.String()
}

// Is matches the sentinel of the code, and any other Error with the same code.
func (e *Error) Is(target error) bool {
	s := e.row()
	other, ok := target.(*Error)
	return target == error(s) || s.Is(target) || ok && other.Code == e.Code
}

// Retryable reports whether the same call may be made again after a pause: nothing was decided, as with
// [ErrTransport]. Of an error that wraps several of this package, the one that [CodeOf] tells counts.
func Retryable(err error) bool {
	s := find(err)
	return s != nil && s.Class == fault.Retry
}

// CodeOf returns the wire code of err's sentinel, or "" when err wraps none of this package. Several codes may match
// one sentinel: both "flow_not_found" and "gate_not_found" are [ErrNotFound]. Of an error that wraps both, the
// precise one counts. That of an [Error] with a code that this version does not know is "parse".
func CodeOf(err error) string {
	if s := find(err); s != nil {
		return s.Code
	}
	return ""
}

func find(err error) *fault.Sentinel {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.row()
	}
	if s, ok := errors.AsType[*fault.Sentinel](err); ok {
		return precise(err, s)
	}
	return nil
}

// precise is the sentinel in err that s, which err wraps first, stands for; s if there is none.
func precise(err error, s *fault.Sentinel) *fault.Sentinel {
	switch x := err.(type) {
	case *fault.Sentinel:
		if x.Kind == error(s) {
			return x
		}
	case interface{ Unwrap() error }:
		return precise(x.Unwrap(), s)
	case interface{ Unwrap() []error }:
		for _, wrapped := range x.Unwrap() {
			if found := precise(wrapped, s); found != s {
				return found
			}
		}
	}
	return s
}
