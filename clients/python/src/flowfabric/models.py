# Code generated from the types of the HTTP API; DO NOT EDIT. Write it again with FLOWFABRIC_GOLDEN=write go test
# ./httpapi -run TestMakesTheModels.
"""Bodies of the HTTP API.

A newer server may send further members, and further values of the enumerations.
"""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Timestamp: TypeAlias = str
"""A time as RFC 3339 has it, such as 2026-01-31T17:00:00Z."""

Base64: TypeAlias = str
"""Bytes in base64."""

AttemptType: TypeAlias = Literal[
    "initial",
    "retry",
    "reclaim",
    "replay",
    "continue",
    "resumed",
]
"""AttemptType says why an attempt exists."""

CancellationPolicy: TypeAlias = Literal[
    "cancel_all",
    "cancel_pending",
    "flow_only",
]
"""CancellationPolicy says what becomes of the members of a cancelled flow."""

CatchUp: TypeAlias = Literal[
    "last",
    "skip",
    "all",
]
"""CatchUp says what happens to instants that nobody fired in time, because no process maintained the store."""

Cause: TypeAlias = Literal[
    "signal",
    "message",
    "children",
    "operator",
    "timeout",
    "already_satisfied",
] | str
"""Cause is what ended a wait: one of the constants or, only in a Record, "cancelled", "deadline" or "rewound": the
execution was cancelled, its deadline passed, or it went on from an earlier step.
"""

FlowState: TypeAlias = Literal[
    "staging",
    "open",
    "completed",
    "failed",
    "cancelled",
]
"""FlowState is where a flow stands."""

HardAction: TypeAlias = Literal[
    "reject",
    "fail",
    "block",
    "ask",
]
"""HardAction decides what happens to an execution whose report would pass a hard limit."""

LaneState: TypeAlias = Literal[
    "active",
    "paused",
    "draining",
    "disabled",
]
"""LaneState says whether a lane accepts and dispatches work."""

Overlap: TypeAlias = Literal[
    "allow",
    "skip",
]
"""Overlap says what happens when an instant comes while the schedule's previous execution has not ended."""

PublicState: TypeAlias = Literal[
    "waiting",
    "delayed",
    "waiting_gate",
    "waiting_children",
    "active",
    "suspended",
    "completed",
    "failed",
    "cancelled",
    "expired",
    "skipped",
]
"""PublicState is the one word that producers and dashboards show."""

Role: TypeAlias = Literal[
    "viewer",
    "producer",
    "operator",
    "admin",
    "worker",
]
"""Role decides which routes a Principal may use."""

Status: TypeAlias = Literal[
    "ok",
    "warn",
    "fail",
    "skip",
]
"""Status is the result of a check."""

TailKind: TypeAlias = Literal[
    "attempt",
    "gap",
    "resumed",
    "frame",
    "suspended",
    "attempt_end",
    "retry",
    "end",
]
"""TailKind says what a TailEvent tells."""


class Problem(TypedDict):
    """Every refusal."""

    type: str
    title: str
    status: int
    detail: NotRequired[str]
    code: str
    field: NotRequired[str]
    request_id: str
    execution: NotRequired[str]
    """the id under which a submission that was not answered may still happen"""
    failed_partitions: NotRequired[int]
    """of a change that each partition makes by itself: those that did not make it. Repeat the request"""
    partitions: NotRequired[int]
    """that were asked to make it"""


class KeyLimit(TypedDict):
    key: str
    concurrency: NotRequired[int]
    """how many run at once"""
    rate: NotRequired[int]
    """how many start within per_ms"""
    per_ms: NotRequired[int]
    """milliseconds"""


class SubmissionOptions(TypedDict):
    """Members of Submission besides kind, input."""

    namespace: NotRequired[str]
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    delay_ms: NotRequired[int]
    """milliseconds"""
    delay_until: NotRequired[Timestamp]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    deadline_at: NotRequired[Timestamp]
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    idempotency_key: NotRequired[str]
    """a second submission with an equal key and input is answered with the first one"""
    unique_key: NotRequired[str]
    """only one has it until it has ended; a second submission is answered with that one"""
    key_window_ms: NotRequired[int]
    """the key stays taken for so long at least"""
    debounce_key: NotRequired[str]
    """further submissions replace the input of an execution that was never claimed, and put it off by debounce_ms again
    """
    debounce_ms: NotRequired[int]
    """how long it waits for a further submission under its debounce_key"""
    debounce_max_ms: NotRequired[int]
    """it may run at the latest so long after its creation"""
    input_base64: NotRequired[Base64]
    """instead of input, bytes that are not JSON"""


class Submission(SubmissionOptions):
    """What submit takes."""

    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    input: NotRequired[Any]
    """any JSON value, at most 1 MiB; the input of the handler. Default null"""


class Submitted(TypedDict):
    """What submit answers."""

    id: str
    duplicate: bool
    """its key led to an execution that existed"""
    replaced: NotRequired[bool]
    """its debounce key replaced the input of that execution"""


class Batch(TypedDict):
    """What submitBatch takes."""

    items: list[Submission]
    """1..1000"""


class BatchItem(TypedDict):
    id: NotRequired[str]
    duplicate: NotRequired[bool]
    problem: NotRequired[Problem]
    """why it was refused; the others are not affected"""


class BatchAnswer(TypedDict):
    """What submitBatch answers."""

    items: list[BatchItem]


class Failure(TypedDict):
    category: str
    """the reference page of categories lists them"""
    message: NotRequired[str]


class Listed(TypedDict):
    id: NotRequired[str]
    """absent for an entry that names none"""
    drift: NotRequired[str]
    """damage of the entry, for example that its execution is missing; then the rest may be empty"""
    state: PublicState
    """waiting, waiting_gate, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or
    skipped
    """
    blocking_reason: NotRequired[str]
    """why no worker runs it now: waiting_for_worker, held_by_operator, waiting_for_delay, …; absent: one does, or it
    has ended
    """
    namespace: str
    lane: str
    kind: str
    capabilities: NotRequired[list[str]]
    """capabilities that its worker needs"""
    gates: NotRequired[list[str]]
    """gates that must admit it before it runs, and limits of keys, in words"""
    priority: int
    attempts: int
    """attempts started so far, and so the number of the last one"""
    attempt_type: NotRequired[AttemptType]
    """initial, retry, reclaim or replay"""
    epoch: NotRequired[int]
    session: NotRequired[str]
    worker: NotRequired[str]
    """the instance that has it, or had it last"""
    retries: int
    """retries used so far; a replay starts over at 0"""
    reclaims: int
    """reclaims used so far; a replay starts over at 0"""
    created_at: NotRequired[Timestamp]
    started_at: NotRequired[Timestamp]
    claimed_at: NotRequired[Timestamp]
    ended_at: NotRequired[Timestamp]
    delay_until: NotRequired[Timestamp]
    deadline_at: NotRequired[Timestamp]
    failure: NotRequired[Failure]
    """failure of the last failed attempt; absent after completion"""
    cancelled_by: NotRequired[str]
    """the person or token that asked for it, if one was named"""
    cancel_source: NotRequired[str]
    """operator_override (somebody who asked for it), owner (its worker), flow_cascade (its flow, or who depends on it)
    or system_timeout_policy (its wait lasted too long)
    """
    tags: NotRequired[dict[str, str]]
    since: NotRequired[Timestamp]
    """when it was suspended or held; of those only"""
    purge_at: NotRequired[Timestamp]
    """time of the purge; ended executions only"""


class ExecutionPage(TypedDict):
    """What listExecutions answers."""

    items: list[Listed]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class Counts(TypedDict):
    """What countExecutions answers."""

    states: dict[str, int]
    """by state; held ones apart from those that wait"""
    more: NotRequired[bool]
    """the counts are those of the newest ones, about 10,000"""


class FailureGroup(TypedDict):
    key: str
    """names the group where a filter wants a shape: it takes exactly this kind, category and shape"""
    kind: str
    category: str
    shape: str
    """the message with placeholders for what differs: <n>, <id>, <text>, <path>, <time>; at most 200 characters"""
    count: int
    first_at: Timestamp
    """when the first of them ended"""
    last_at: Timestamp
    """when the last of them ended"""
    examples: list[str]
    """up to three, the newest first"""


Failures = TypedDict(
    "Failures",
    {
        # the largest group first
        "items": list[FailureGroup],
        # there are older failures, which are in no count: 10,000 were looked at
        "more": NotRequired[bool],
        # when the oldest failure ended that is counted
        "from": NotRequired[Timestamp],
    },
)
"""What listFailures answers."""


class ForkOf(TypedDict):
    id: NotRequired[str]
    step: NotRequired[str]
    """it began with the steps recorded before this one; absent: with all"""


class Progress(TypedDict):
    percent: NotRequired[int]
    message: NotRequired[str]
    at: NotRequired[Timestamp]


class Wait(TypedDict):
    name: str
    """name in the handler"""
    since: NotRequired[Timestamp]
    timeout_at: NotRequired[Timestamp]
    """absent: it has no end of its own"""


class AttemptRecord(TypedDict):
    index: int
    """number of the attempt, 1 for the first"""
    type: AttemptType
    state: str
    """ended_failure, interrupted_reclaimed, ended_cancelled, ended_success (before a replay), rewound (to an earlier
    step) continued (with another input) or forked (the fork has no more of it)
    """
    claimed_at: NotRequired[Timestamp]
    ended_at: NotRequired[Timestamp]
    category: NotRequired[str]
    message: NotRequired[str]
    worker: NotRequired[str]
    session: NotRequired[str]
    epoch: NotRequired[int]
    claim: NotRequired[int]


class Snapshot(TypedDict):
    """What getExecution answers."""

    id: str
    state: PublicState
    """waiting, waiting_gate, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or
    skipped
    """
    blocking_reason: NotRequired[str]
    """why no worker runs it now: waiting_for_worker, held_by_operator, waiting_for_delay, …; absent: one does, or it
    has ended
    """
    namespace: str
    lane: str
    kind: str
    capabilities: NotRequired[list[str]]
    """capabilities that its worker needs"""
    gates: NotRequired[list[str]]
    """gates that must admit it before it runs, and limits of keys, in words"""
    priority: int
    attempts: int
    """attempts started so far, and so the number of the last one"""
    attempt_type: NotRequired[AttemptType]
    """initial, retry, reclaim or replay"""
    epoch: NotRequired[int]
    session: NotRequired[str]
    worker: NotRequired[str]
    """the instance that has it, or had it last"""
    retries: int
    """retries used so far; a replay starts over at 0"""
    reclaims: int
    """reclaims used so far; a replay starts over at 0"""
    created_at: NotRequired[Timestamp]
    started_at: NotRequired[Timestamp]
    claimed_at: NotRequired[Timestamp]
    ended_at: NotRequired[Timestamp]
    delay_until: NotRequired[Timestamp]
    deadline_at: NotRequired[Timestamp]
    failure: NotRequired[Failure]
    """failure of the last failed attempt; absent after completion"""
    cancelled_by: NotRequired[str]
    """the person or token that asked for it, if one was named"""
    cancel_source: NotRequired[str]
    """operator_override (somebody who asked for it), owner (its worker), flow_cascade (its flow, or who depends on it)
    or system_timeout_policy (its wait lasted too long)
    """
    tags: NotRequired[dict[str, str]]
    creator: NotRequired[str]
    max_retries: int
    attempt: int
    """the attempt that it is in: attempts, and one more while it waits for a replay"""
    lease_expires_at: NotRequired[Timestamp]
    version: NotRequired[str]
    """of the application whose worker has it or had it last, if it is known"""
    replays: int
    continues: int
    """how often it went on with another input"""
    fork_of: NotRequired[ForkOf]
    """the execution that it was made of, by a fork"""
    changed_at: NotRequired[Timestamp]
    """time of the last creation, claim, suspension, or end of an attempt or of the execution"""
    cancel_reason: NotRequired[str]
    input_bytes: int
    steps: int
    """recorded steps"""
    progress: NotRequired[Progress]
    """progress of the current or last attempt"""
    flow: NotRequired[str]
    """flow that it is a node or a child of"""
    node: NotRequired[str]
    """its name in the flow"""
    wait: NotRequired[Wait]
    """its wait while it is suspended"""
    key_held: NotRequired[str]
    """how long it has the key that it was submitted with: until_ended, retained, until_time (see key_until) or
    until_claimed (a debounce key)
    """
    key_until: NotRequired[Timestamp]
    replaced: NotRequired[int]
    """how many further submissions under its debounce key it took in, each of which replaced the one before"""
    attempt_log: NotRequired[list[AttemptRecord]]
    """ended attempts that were not the last, and a failed last one"""


class Payload(TypedDict):
    """What getInput answers, what getStep answers."""

    base64: NotRequired[Base64]
    """if it is not"""
    encrypted: NotRequired[bool]
    """base64 is as it is stored: the server has no key for it"""
    value: NotRequired[Any]
    """if it is JSON: any JSON value"""


class Result(TypedDict):
    """What getResult answers."""

    state: str
    """completed, failed, cancelled, expired or skipped"""
    output: NotRequired[Payload]
    """what the handler returned, if it completed"""
    failure: NotRequired[Failure]
    by: NotRequired[str]
    """who cancelled it: a person or token, if one was named"""
    source: NotRequired[str]
    """what kind of source cancelled it: operator_override, owner (its worker), flow_cascade or system_timeout_policy"""
    reason: NotRequired[str]
    """why it was cancelled"""
    attempts: NotRequired[int]


class Unfinished(TypedDict):
    """What getResult answers."""

    state: str


FlowfabricEvent = TypedDict(
    "FlowfabricEvent",
    {
        "at": NotRequired[Timestamp],
        "kind": str,
        # 1 for the first
        "attempt": NotRequired[int],
        "epoch": NotRequired[int],
        "session": NotRequired[str],
        "worker": NotRequired[str],
        # the person or token that asked for it
        "by": NotRequired[str],
        # of a cancellation and an end what kind of source cancelled it, as in the result; of a resumption the type of
        # the signal's source, message, operator or auto_resume
        "source": NotRequired[str],
        # from where, if that is known
        "from": NotRequired[str],
        # of an end how it ended, of a replay how the run before had
        "state": NotRequired[PublicState],
        "detail": NotRequired[str],
        # of an end, a revocation, a cancellation, a hold or a replay; of a suspension the name under which the handler
        # waits, and of its end the name of the signal, which is the choice that a person made
        "reason": NotRequired[str],
        "until": NotRequired[Timestamp],
        # the same in a sentence
        "text": str,
    },
)


class History(TypedDict):
    """What getHistory answers."""

    items: list[FlowfabricEvent]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class Explanation(TypedDict):
    """What explain answers."""

    id: str
    state: NotRequired[PublicState]
    reason: str
    """the stable name of the explanation"""
    sentence: str
    next: str
    """the next event that moves it"""
    at: NotRequired[Timestamp]
    """when that happens by itself, at the latest"""
    serving: NotRequired[int]
    """live workers that take its kind from its lane"""
    capable: NotRequired[int]
    """those of them that have all its capabilities"""
    ahead: NotRequired[int]
    """how many are before it in its queue"""
    closed_until: NotRequired[Timestamp]
    closed_why: NotRequired[str]


class Choice(TypedDict):
    name: str
    """1..128 bytes; an answer is a signal of this name"""
    label: NotRequired[str]
    """at most 128 bytes; default the name"""


class Question(TypedDict):
    title: str
    """1..200 bytes, one line of plain text"""
    text: NotRequired[str]
    """at most 4 KiB; pages show simple Markdown, and no HTML"""
    choices: NotRequired[list[Choice]]
    """2..8; default approve and reject"""
    assignee: NotRequired[str]
    """at most 128 bytes: who should answer, for lists"""
    arguments: NotRequired[Any]
    """an object, which the answer may change"""
    schema: NotRequired[Any]
    """JSON Schema that changed arguments must fit"""


class Waitpoint(TypedDict):
    id: str
    key: str
    subject: NotRequired[str]
    """of the event that it takes"""
    state: str
    """pending (opened before its wait), active, closed or expired"""
    kid: NotRequired[str]
    """id of the key that signs its token"""
    token_fingerprint: NotRequired[str]
    """16 hex digits"""
    created_at: NotRequired[Timestamp]
    activated_at: NotRequired[Timestamp]
    """when an execution began to wait for it"""
    expires_at: NotRequired[Timestamp]
    """pending: by itself; active: the end of the wait"""
    suspension: NotRequired[str]
    """the wait on it, now or earlier"""
    question: NotRequired[Question]
    """of several, the one that it takes answers to"""
    signals: int
    """number of its signals"""
    matched: int
    """number of signals that count for the wait"""
    last_signal_at: NotRequired[Timestamp]
    closed_at: NotRequired[Timestamp]
    close_reason: NotRequired[str]
    refused_at: NotRequired[Timestamp]
    """when a token was last refused for it"""


class Approval(TypedDict):
    """What getWait answers."""

    execution: str
    namespace: str
    lane: str
    kind: str
    capabilities: NotRequired[list[str]]
    """capabilities that its worker needs"""
    gates: NotRequired[list[str]]
    """gates that must admit it before it runs, and limits of keys, in words"""
    flow: NotRequired[str]
    """if it is a node or a child of one"""
    root: NotRequired[str]
    """the execution above it that no handler made"""
    path: NotRequired[list[str]]
    """names of the children from the root to it"""
    name: str
    """under which the handler waits"""
    reason: NotRequired[str]
    question: NotRequired[Question]
    since: NotRequired[Timestamp]
    timeout_at: NotRequired[Timestamp]
    waitpoints: list[Waitpoint]
    """those that are open; none if only an operator or the time ends the wait"""


class WaitpointList(TypedDict):
    """What listWaitpoints answers."""

    items: list[Waitpoint]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class StepRecord(TypedDict):
    name: str
    """name in the handler; one entry for each attempt that failed in the step, and one for the recorded value"""
    kind: str
    """step; or wait (an answer), waitpoint (opened before a wait), messages (what a receipt took from a mailbox; its
    name is the mailbox, · and a number) or children (how those of a wait ended)
    """
    attempt: int
    """the attempt that ran it, 1 for the first"""
    started_at: NotRequired[Timestamp]
    ended_at: NotRequired[Timestamp]
    bytes: int
    """size of the value, at most 256 KiB; 0 if it failed"""
    state: str
    """recorded, or failed: the attempt failed with the error of this step"""
    error: NotRequired[str]


class StepList(TypedDict):
    """What listSteps answers."""

    items: list[StepRecord]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class Message(TypedDict):
    number: int
    """its place among all messages of the execution, from 1"""
    mailbox: str
    sent_at: NotRequired[Timestamp]
    """when the server accepted it"""
    by: NotRequired[str]
    """sender, as the sender claims"""
    encoding: NotRequired[str]
    """json, utf8 or bytes, of the payload"""
    payload: Payload
    """what a program stored or sent"""


class Mailboxes(TypedDict):
    """What listMessages answers."""

    total: int
    """messages that came so far"""
    waiting: int
    """those that nobody has received yet"""
    bytes: int
    """stored size of these messages"""
    items: list[Message]
    """the oldest of these messages; at most 100 and 128 KiB"""


class MessageBody(TypedDict):
    """What sendMessage takes."""

    mailbox: str
    """1..96 bytes of printable ASCII; it needs no opening"""
    payload: NotRequired[Any]
    """any JSON value, at most 64 KiB; default null"""
    base64: NotRequired[Base64]
    """instead of payload, bytes that are not JSON"""
    idempotency_key: NotRequired[str]
    """1..256 bytes: a repeat is recognised among the last 1,000 messages of the execution"""


class Sent(TypedDict):
    """What sendMessage answers."""

    number: int
    """its place among all messages of the execution, from 1"""
    waiting: int
    """messages of the execution that nobody has received yet"""
    duplicate: bool
    """a message with this key came before; number is that one's"""


class Summary(TypedDict):
    """What getSummary answers."""

    attempt: int
    """1 for the first"""
    version: int
    """deltas merged into it so far"""
    document: NotRequired[Any]
    """a JSON object"""
    encrypted: NotRequired[bool]
    """the document is left out: the server has no key for it"""
    first_at: NotRequired[Timestamp]
    updated_at: NotRequired[Timestamp]
    stream_bytes: int
    """payload bytes of all frames that the attempt appended so far, also of trimmed ones"""


class Frame(TypedDict):
    cursor: str
    sequence: int
    type: NotRequired[str]
    correlation: NotRequired[str]
    source: NotRequired[str]
    """its writer, for example a model or a tool"""
    produced_at: NotRequired[Timestamp]
    encrypted: NotRequired[bool]
    """the payload is as stored: the server has no key for it"""
    mode: str
    """durable, summary or best_effort"""
    summary_version: NotRequired[int]
    run: NotRequired[int]
    base64: NotRequired[Base64]
    """if it is neither"""
    text: NotRequired[str]
    """what it has, if that is a text"""
    value: NotRequired[Any]
    """if it is JSON: any JSON value"""


class FramePage(TypedDict):
    """What listFrames answers."""

    items: list[Frame]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class LogLine(TypedDict):
    cursor: str
    attempt: int
    at: Timestamp
    level: str
    """debug, info, warn or error"""
    message: NotRequired[str]
    attributes: NotRequired[Any]
    """an object; names in groups have dots"""
    dropped: NotRequired[int]
    """lines before this one that the worker could not store"""


class LogPage(TypedDict):
    """What listLogs answers."""

    items: list[LogLine]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class Child(TypedDict):
    path: list[str]
    id: str


class Covered(TypedDict):
    attempt: int
    recorded: int


class Resumption(TypedDict):
    run: int
    epoch: NotRequired[int]
    reason: NotRequired[str]
    """why the run before it stopped"""
    first: NotRequired[str]
    recorded: int
    """sequence of the last recorded frame: those after it are repeated"""


class SuspendRecord(TypedDict):
    state: PublicState
    """the execution's state now"""
    flow: NotRequired[str]
    """flow that the execution is a node or a child of"""
    root: NotRequired[str]
    """the execution above it that no handler made"""
    path: NotRequired[list[str]]
    """names of the children from the root to it"""
    id: NotRequired[str]
    """none: it was never suspended"""
    name: str
    """under which the handler waits"""
    reason: NotRequired[str]
    question: NotRequired[Question]
    """of several the first open one"""
    on_timeout: NotRequired[str]
    created_at: NotRequired[Timestamp]
    timeout_at: NotRequired[Timestamp]
    resume_after_ms: NotRequired[int]
    """milliseconds"""
    signals: int
    """number of its signals"""
    matched: int
    """number of signals that count"""
    last_signal_at: NotRequired[Timestamp]
    closed_at: NotRequired[Timestamp]
    """none: it is open"""
    close_reason: NotRequired[str]
    cause: NotRequired[Cause]
    trigger: NotRequired[str]
    """signal, operator, auto_resume, timeout, cancelled, deadline or rewound"""
    by: NotRequired[str]
    """person or token that ended it"""
    waitpoints: list[Waitpoint]
    """every one that is still known, also of earlier suspensions"""


class TailEvent(TypedDict):
    """What followExecution answers."""

    kind: TailKind
    """attempt, resumed, frame, gap, suspended, attempt_end, retry or end; also the name of the event"""
    attempt: NotRequired[int]
    """1 for the first; absent if none began"""
    position: str
    """behind this event, the same for every reader"""
    child: NotRequired[Child]
    """whose event this is, if a child's; all else is then of it"""
    attempt_type: NotRequired[AttemptType]
    """type of the attempt that begins"""
    at: NotRequired[Timestamp]
    reused: NotRequired[list[Covered]]
    """frames of earlier attempts that stay"""
    frame: NotRequired[Frame]
    resumed: NotRequired[Resumption]
    suspension: NotRequired[SuspendRecord]
    trimmed: NotRequired[int]
    missed: NotRequired[int]
    reason: NotRequired[str]
    """why the attempt ended"""
    category: NotRequired[str]
    message: NotRequired[str]
    by: NotRequired[str]
    """at the end: the person or token that cancelled or rewound it, if one was named"""
    source: NotRequired[str]
    """at the end: the kind of source that cancelled it"""
    recorded: NotRequired[int]
    """at the end of an attempt: sequence of the last recorded frame, absent for none; later frames are repeated"""
    state: NotRequired[PublicState]


class StreamTokenRequest(TypedDict):
    """What createStreamToken takes."""

    life_s: NotRequired[int]
    """how long it is valid, 1..3600 s, default 300"""
    write: NotRequired[bool]
    """it also reads record, wait and messages, sends, stops, and answers if an operator made it"""
    name: NotRequired[str]
    """with write: who is at the page, for the trail; at most 64 bytes, default browser"""


class StreamTokenAnswer(TypedDict):
    """What createStreamToken answers."""

    access_token: str
    expires_at: Timestamp


class Why(TypedDict):
    """What cancel takes, what stop takes, what hold takes, what unhold takes, what runNow takes, what sealFlow takes,
    what markWorkerDead takes, what pauseSchedule takes, what resumeSchedule takes, what runSchedule takes, what
    freezePartition takes, what thawPartition takes.
    """

    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class Stopped(TypedDict):
    """What stop answers."""

    done: list[str]
    """the recorded steps of the turn, in their order: what these did is done"""
    already: bool
    """somebody else had stopped it before"""
    by: NotRequired[str]
    """who stopped it, if that is known"""


class RewindBody(TypedDict):
    """What rewind takes."""

    step: str
    """the step of the handler that is forgotten, with everything that was recorded after it"""
    attempt: NotRequired[int]
    """the attempt that it was seen in: in another one nothing is done; absent for any"""
    message: NotRequired[Any]
    """what is said in the place of what was said before the step, any JSON; at most 64 KiB"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class Rewound(TypedDict):
    """What rewind answers."""

    attempt: int
    """the attempt that begins next"""
    dropped: list[str]
    """the steps of the handler that are forgotten, in the order in which they were recorded"""
    already: NotRequired[bool]
    """a repeat of the call was applied; dropped is not known"""


class ForkBody(TypedDict):
    """What fork takes."""

    step: NotRequired[str]
    """the fork has the steps that were recorded before this one; default: all"""
    request: NotRequired[str]
    """repeated with the same, it makes one fork"""
    input: NotRequired[Any]
    """another input, any JSON value of at most 1 MiB; default: that of the execution"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class Forked(TypedDict):
    """What fork answers."""

    id: str
    steps: int
    """recorded steps, answers and messages that it begins with"""
    left: NotRequired[list[str]]
    """names of the steps that it does not have; what they did is done"""
    already: NotRequired[bool]
    """the request had made it before"""


class ReplayBody(TypedDict):
    """What replay takes."""

    from_scratch: NotRequired[bool]
    """replay only: forget the recorded steps"""
    from_step: NotRequired[str]
    """replay only: forget this step and everything recorded after it"""
    force: NotRequired[bool]
    """replay only: include successes"""
    request: NotRequired[str]
    """id of the request: a repeat with the same id replays once"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class RevokeBody(TypedDict):
    """What revoke takes."""

    held_by: NotRequired[str]
    """only from the worker that has this session"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class ResumeBody(TypedDict):
    """What resume takes."""

    suspension: NotRequired[str]
    """resume only if it still is this suspension; default any"""
    delay_ms: NotRequired[int]
    """before a worker may go on with it, up to 30 days"""
    request: NotRequired[str]
    """id of the request: a repeat with the same id resumes once"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class DelayBody(TypedDict):
    """What setDelay takes."""

    delay_ms: int
    """from now, 0 is at once, at most ten years"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class PriorityBody(TypedDict):
    """What setPriority takes."""

    priority: int
    """0..9000, higher first"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class TagsBody(TypedDict):
    """What setTags takes, what setFlowTags takes."""

    set: NotRequired[dict[str, str]]
    remove: NotRequired[list[str]]
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class PurgeBody(TypedDict):
    """What purge takes."""

    keep_ms: NotRequired[int]
    """of a purge: how long ids stay taken, 24 h to ten years; default 24 h"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class Reply(TypedDict):
    """What answerWaitpoint takes."""

    name: NotRequired[str]
    """name of the signal, 1..128 bytes; default the choice of the payload, if it has one, else signal"""
    category: NotRequired[str]
    """a word for readers of the log, at most 64 bytes"""
    correlation: NotRequired[str]
    """id in the sender's own system, at most 256 bytes"""
    idempotency_key: NotRequired[str]
    payload: NotRequired[Any]
    """any JSON value, at most 64 KiB; default null. To a question: choice, and maybe comment, by, and arguments, if
    those of the question are changed
    """


class Delivered(TypedDict):
    """What answerWaitpoint answers, what signal answers."""

    signal: str
    """its id, or that of the delivery that it repeats"""
    effect: str
    """its effect on the wait"""
    duplicate: bool
    """another delivery with this idempotency key came first"""
    open: bool
    """the waitpoint takes more signals"""


class Signal(TypedDict):
    """What signal takes."""

    token: str
    name: NotRequired[str]
    """name of the signal, 1..128 bytes; default the choice of the payload, if it has one, else signal"""
    category: NotRequired[str]
    """a word for readers of the log, at most 64 bytes"""
    correlation: NotRequired[str]
    """id in the sender's own system, at most 256 bytes"""
    idempotency_key: NotRequired[str]
    payload: NotRequired[Any]
    """any JSON value, at most 64 KiB; default null. To a question: choice, and maybe comment, by, and arguments, if
    those of the question are changed
    """


class BulkBody(TypedDict):
    """What bulk takes."""

    action: str
    """replay, cancel, purge, run_now, priority, hold or unhold"""
    priority: NotRequired[int]
    """of action priority, which needs it: 0..9000, higher first"""
    from_scratch: NotRequired[bool]
    """replay only: forget the recorded steps"""
    from_step: NotRequired[str]
    """replay only: forget this step and everything recorded after it"""
    force: NotRequired[bool]
    """replay only: include successes"""
    request: NotRequired[str]
    """id of the request: a repeat with the same id replays once"""
    keep_ms: NotRequired[int]
    """of a purge: how long ids stay taken, 24 h to ten years; default 24 h"""
    dry_run: NotRequired[bool]
    """only count"""
    limit: NotRequired[int]
    """how many at most; 0, the default: all"""
    cursor: NotRequired[str]
    """cursor of the previous answer, with the same filter and action"""
    concurrency: NotRequired[int]
    """calls at a time, 1..256; default 32"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class BulkResult(TypedDict):
    """What bulk answers."""

    matched: int
    done: int
    skipped: int
    """changed meanwhile, so that the action does not apply"""
    failed: int
    errors: NotRequired[list[str]]
    """the first ten"""
    cursor: NotRequired[str]
    """there is more"""
    dry_run: NotRequired[bool]
    """nothing was changed"""


class ChildOutput(TypedDict):
    path: list[str]
    id: str
    text: str
    """the durable frames, one after the other"""
    frames: list[Frame]
    lost: int
    """frames that were gone before they could be read"""


class Transcript(TypedDict):
    """What getTranscript answers."""

    text: str
    """the durable frames, one after the other"""
    frames: list[Frame]
    lost: int
    """frames that were gone before they could be read"""
    children: NotRequired[list[ChildOutput]]
    """children whose output is shown in that of the execution"""
    position: str
    """pass it to the events as after"""
    more: NotRequired[bool]
    """this is the beginning, of about 4 MiB: what follows are its events after position"""


class ApprovalPage(TypedDict):
    """What listApprovals answers."""

    items: list[Approval]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class FeedEvent(TypedDict):
    """What followEvents answers."""

    kind: str
    """end, lease or signal; also the name of the event"""
    execution: str
    at: NotRequired[Timestamp]
    state: NotRequired[PublicState]
    blocking_reason: NotRequired[str]
    attempt: NotRequired[int]
    """1 for the first"""
    epoch: NotRequired[int]
    session: NotRequired[str]
    worker: NotRequired[str]
    waitpoint_id: NotRequired[str]
    signal_id: NotRequired[str]
    effect: NotRequired[str]
    signal: NotRequired[str]
    """the name of a signal"""


class EventBody(TypedDict):
    """What publishEvent takes."""

    namespace: NotRequired[str]
    subject: str
    """what happened, such as order.paid; at most 128 bytes"""
    id: NotRequired[str]
    """a repeat within a day is known by it"""
    data: NotRequired[Any]
    """any JSON value, at most 64 KiB; the input of what it starts. Default null"""


class Published(TypedDict):
    """What publishEvent answers."""

    id: str
    """of the event"""
    starts: int
    """how many executions it starts, one for each trigger that it matched"""
    resumes: int
    """how many waits it goes to (handler.Task.Expect)"""
    duplicate: bool
    """it was published before, in the last day, and this call did nothing"""


class Trigger(TypedDict):
    name: str
    subject: str
    where: NotRequired[dict[str, Any]]
    """values of fields of the data, all of which an event must have"""
    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    namespace: NotRequired[str]
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    creator: NotRequired[str]
    updated_at: Timestamp
    updated_by: NotRequired[str]
    matched: int
    """how many events matched it"""
    last_at: NotRequired[Timestamp]
    """when the last of them was published"""
    last_event: NotRequired[str]
    """its id"""
    refused: NotRequired[str]
    """the code of the last refusal to start something"""
    refused_at: NotRequired[Timestamp]
    refused_event: NotRequired[str]
    error: NotRequired[str]
    """why the definition cannot be read; then it starts nothing"""


class TriggerList(TypedDict):
    """What listTriggers answers."""

    items: list[Trigger]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class TriggerPut(TypedDict):
    """What putTrigger takes."""

    subject: str
    """of the events that start something"""
    where: NotRequired[dict[str, Any]]
    """fields of the data, by names joined by dots, and the string, number, boolean or null that each must have; at most
    8
    """
    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    namespace: NotRequired[str]
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class TriggerSet(TypedDict):
    """What putTrigger answers."""

    name: str
    already: bool
    """it was so before, nothing changed"""


class NodeBody(TypedDict):
    name: str
    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    delay_ms: NotRequired[int]
    """milliseconds"""
    delay_until: NotRequired[Timestamp]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    deadline_at: NotRequired[Timestamp]
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    input: NotRequired[Any]
    """any JSON value, at most 1 MiB; the input of the handler. Default null"""
    input_base64: NotRequired[Base64]
    """instead of input, bytes that are not JSON"""
    after: NotRequired[list[str]]
    """names of nodes that it depends on"""
    inputs: NotRequired[dict[str, str]]
    """results that its handler is given: the name of the input, and of the node it comes from"""
    policy: NotRequired[str]
    """what those must come to: all (default), any or quorum must succeed; ended: all have ended, in whatever way;
    failed: likewise, and at least one did not succeed, else it is skipped
    """
    k: NotRequired[int]
    """of a quorum"""
    cancel_rest: NotRequired[bool]
    """of all, any and quorum: cancel the others once enough have succeeded, or cannot any more"""


class FlowBodyOptions(TypedDict):
    """Members of FlowBody besides kind, nodes."""

    namespace: NotRequired[str]
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    idempotency_key: NotRequired[str]
    """a second submission with an equal key and input is answered with the first one"""
    unique_key: NotRequired[str]
    """only one has it until it has ended; a second submission is answered with that one"""
    open: NotRequired[bool]
    """it takes more nodes until it is sealed, and ends only then"""


class FlowBody(FlowBodyOptions):
    """What submitFlow takes."""

    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    nodes: list[NodeBody]
    """1..1000, each after those that it depends on"""


class FlowMade(TypedDict):
    """What submitFlow answers, what addToFlow answers."""

    id: str
    duplicate: bool
    nodes: dict[str, str]
    """the executions of the nodes"""


class FlowSummary(TypedDict):
    id: str
    state: FlowState
    """staging, open, completed, failed or cancelled"""
    seal: NotRequired[str]
    """how it may grow: seal (not at all), grow (by its members) or open (until it is sealed)"""
    namespace: str
    kind: str
    created_at: NotRequired[Timestamp]
    released_at: NotRequired[Timestamp]
    ended_at: NotRequired[Timestamp]
    """when its last member ended; none while one has not"""
    members: int
    """ever"""
    failing: int
    """members that ended without success and fail the flow: those that no other needs"""
    count: NotRequired[dict[str, int]]
    """members by state"""


class FlowPage(TypedDict):
    """What listFlows answers."""

    items: list[FlowSummary]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class SiblingCancels(TypedDict):
    cancelled: int
    already_terminal: int
    not_found: int
    spared: int


class GroupRecord(TypedDict):
    policy: str
    """all, any, quorum, ended or failed"""
    k: NotRequired[int]
    """size of a quorum"""
    cancel_rest: NotRequired[bool]
    """the others are cancelled once it is decided"""
    total: int
    succeeded: int
    failed: int
    skipped: int
    pending: NotRequired[bool]
    satisfied: NotRequired[bool]
    impossible: NotRequired[bool]
    optional: NotRequired[bool]
    """one that is skipped because nothing failed does not fail its flow"""


class WaitRecord(TypedDict):
    mode: str
    """all, first, success or fast"""
    total: int
    succeeded: int
    others: int
    """upstreams that ended without success"""
    pending: NotRequired[bool]


EdgeRecord = TypedDict(
    "EdgeRecord",
    {
        "from": str,
        "input": NotRequired[str],
        # how that ended; none while it has not
        "outcome": NotRequired[PublicState],
        # the one that ended so
        "attempt": NotRequired[int],
        # it succeeded after the group was decided: the input is not given
        "late": NotRequired[bool],
        # it was to be cancelled, but others need it
        "spared": NotRequired[bool],
    },
)


class MemberRecord(TypedDict):
    id: str
    number: int
    """those that depend on a member have higher ones than it"""
    name: str
    state: PublicState
    """waiting, waiting_gate, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or
    skipped
    """
    blocking_reason: NotRequired[str]
    """why no worker runs it now: waiting_for_worker, held_by_operator, waiting_for_delay, …; absent: one does, or it
    has ended
    """
    kind: NotRequired[str]
    lane: NotRequired[str]
    attempt: NotRequired[int]
    """number of the last attempt; none before the first"""
    category: NotRequired[str]
    """category of its failure, or the reason for the skip"""
    started_at: NotRequired[Timestamp]
    """beginning of its last attempt"""
    ended_at: NotRequired[Timestamp]
    group: NotRequired[GroupRecord]
    """condition for it to run"""
    wait: NotRequired[WaitRecord]
    """the children that it waits for"""
    edges: NotRequired[list[EdgeRecord]]
    """its dependencies"""
    dependants: NotRequired[list[str]]
    """the ids of those that depend on it"""


class FlowSnapshot(TypedDict):
    """What getFlow answers."""

    now: NotRequired[Timestamp]
    """the server's"""
    id: str
    state: FlowState
    """staging, open, completed, failed or cancelled"""
    seal: NotRequired[str]
    """how it may grow: seal (not at all), grow (by its members) or open (until it is sealed)"""
    namespace: str
    kind: str
    created_at: NotRequired[Timestamp]
    released_at: NotRequired[Timestamp]
    ended_at: NotRequired[Timestamp]
    """when its last member ended; none while one has not"""
    members: int
    """ever"""
    failing: int
    """members that ended without success and fail the flow: those that no other needs"""
    count: NotRequired[dict[str, int]]
    """members by state"""
    creator: NotRequired[str]
    revision: NotRequired[int]
    """revision of its members"""
    changed_at: NotRequired[Timestamp]
    """when members were added last"""
    edges: int
    purged: NotRequired[int]
    """members that are no longer retained"""
    backlog: NotRequired[int]
    """pieces of unfinished work"""
    policy: NotRequired[CancellationPolicy]
    """cancellation policy: cancel_all, cancel_pending or flow_only"""
    cancelled_at: NotRequired[Timestamp]
    cancelled_by: NotRequired[str]
    cancel_reason: NotRequired[str]
    siblings: NotRequired[SiblingCancels]
    """those that nobody needed any more once others had decided"""
    tags: NotRequired[dict[str, str]]
    nodes: list[MemberRecord]
    """each after those that it depends on"""


class NodesBody(TypedDict):
    """What addToFlow takes."""

    nodes: list[NodeBody]
    """1..1000, each after those of them that it depends on; other names are of nodes that the flow has"""


class FlowCancel(TypedDict):
    """What cancelFlow takes."""

    policy: NotRequired[str]
    """cancel_all (default), cancel_pending or flow_only"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class FlowCancellation(TypedDict):
    """What cancelFlow answers."""

    already: bool
    """it was cancelled before: policy and reason are what was said then"""
    policy: CancellationPolicy
    reason: str
    unended: int
    """members that had not ended when this was answered, those that the policy leaves alone included"""


class FlowReplay(TypedDict):
    """What replayFlow takes."""

    nodes: NotRequired[list[str]]
    """these instead of all that did not succeed"""
    everything: NotRequired[bool]
    """also those that nobody needs any more, such as the losers of a race"""
    from_scratch: NotRequired[bool]
    """replay only: forget the recorded steps"""
    from_step: NotRequired[str]
    """replay only: forget this step and everything recorded after it"""
    force: NotRequired[bool]
    """replay only: include successes"""
    request: NotRequired[str]
    """id of the request: a repeat with the same id replays once"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class NodeRefusal(TypedDict):
    node: str
    id: str
    error: str
    """why it was not"""
    code: NotRequired[str]
    """code of that error"""


class FlowReplayed(TypedDict):
    """What replayFlow answers."""

    request: str
    runnable: int
    """may be claimed now"""
    blocked: int
    """wait for what they depend on"""
    already: int
    """members that this request had replayed before"""
    unneeded: int
    """did not succeed, and nobody needs them any more"""
    kept: NotRequired[list[str]]
    """nodes that stay completed behind a node that is replayed whatever came before it"""
    refused: NotRequired[list[NodeRefusal]]
    """nodes that were not replayed"""


class LaneBody(TypedDict):
    """What setLane takes."""

    namespace: NotRequired[str]
    state: NotRequired[LaneState]
    """active, paused, draining or disabled"""
    retention_s: NotRequired[dict[str, int]]
    """by completed, failed, cancelled and expired: how many seconds what ended so is kept; 0 is the default"""
    ageing_ms: NotRequired[int]
    """how much waiting outweighs a step of priority, up to a day; 0: none does"""
    weight: NotRequired[int]
    """weight of the namespace in the lane, 1..1000; 0 is the default, 1"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class KindSchemas(TypedDict):
    input: NotRequired[Any]
    """JSON Schema (2020-12) of its input, at most 64 KiB"""
    result: NotRequired[Any]
    """JSON Schema (2020-12) of its result, at most 64 KiB"""


class WorkerBody(TypedDict):
    """What openWorker takes."""

    name: NotRequired[str]
    """for people, 1..24 of A-Z a-z 0-9 . _ -; default http"""
    namespaces: NotRequired[list[str]]
    """namespaces that it serves, its own first; * is every one. Over HTTP * is for tokens that may see all, and the
    default is those of the token, or default
    """
    lanes: NotRequired[list[str]]
    """over HTTP the default is default"""
    lane_weights: NotRequired[dict[str, int]]
    """how its lanes share its claims while several have work, where a weight is not 1: 1..1000 for a lane of lanes"""
    kinds: list[str]
    """kinds that it handles, over HTTP 1..256"""
    capabilities: NotRequired[list[str]]
    """capabilities that executions may require"""
    concurrency: NotRequired[int]
    """its slots: executions that it can run at once. Over HTTP for people, and 1 by default"""
    version: NotRequired[str]
    """version of the application"""
    labels: NotRequired[dict[str, str]]
    """labels of the application"""
    lease_ms: NotRequired[int]
    """of what is claimed for it over HTTP, how long it has an execution without renewing it: 2000..600000, default
    30000
    """
    schemas: NotRequired[dict[str, KindSchemas]]
    """of its kinds: what inputs must fit. The last worker to say something counts; an empty object takes it back.
    Default: nothing is said
    """


class WorkerOpened(TypedDict):
    """What openWorker answers."""

    session: str
    """name it in every call. It ends a minute after the last call plus a lease, or with close"""
    lease_ms: int


class MindedBody(TypedDict):
    lease: str
    """of the execution, as it came with the claim"""
    stopping: NotRequired[str]
    """the stop of it that the worker has heard of, which is not told again"""


class CompleteBody(TypedDict):
    lease: str
    """of the execution, as it came with the claim"""
    result: NotRequired[Any]
    """any JSON value, at most 1 MiB; default null"""


class ClaimBody(TypedDict):
    """What claim takes."""

    max: NotRequired[int]
    """1..100, default 1; 0 with complete or leases: take nothing"""
    wait_ms: NotRequired[int]
    """how long to wait until there is some: 0..30000, default 20000"""
    leases: NotRequired[list[MindedBody]]
    """of everything that it works on, at most 1000. They are renewed, once, and the answer comes without waiting for
    work when one of them is not held or has a stop, also while the claim waits
    """
    complete: NotRequired[list[CompleteBody]]
    """executions that are done, at most 100, each as in complete. They end before the claim. If one of them has not
    completed, the answer comes without waiting for work
    """


class StoredSignal(TypedDict):
    id: str
    waitpoint: str
    """its key"""
    name: str
    category: NotRequired[str]
    source_type: NotRequired[str]
    source: NotRequired[str]
    """sender, as the sender claims"""
    correlation: NotRequired[str]
    idempotency_key: NotRequired[str]
    created_at: NotRequired[Timestamp]
    """by the sender's clock"""
    accepted_at: NotRequired[Timestamp]
    """by the server's"""
    encoding: NotRequired[str]
    """json, utf8 or bytes"""
    effect: NotRequired[str]
    late_by_ms: NotRequired[int]
    """after the end of the wait"""
    order: NotRequired[int]
    """among all signals that the execution accepted, from 1; none: made by a timeout"""
    payload: Payload
    """what a program stored or sent"""


class SuspendResult(TypedDict):
    name: NotRequired[str]
    """under which the handler waited"""
    cause: Cause
    """signal, message, children, operator, timeout or already_satisfied"""
    resumed_at: NotRequired[Timestamp]
    timeout_at: NotRequired[Timestamp]
    closer: NotRequired[str]
    """the id of the signal that closed the condition"""
    by: NotRequired[str]
    """the operator who resumed it"""
    reason: NotRequired[str]
    """their reason"""
    signals: NotRequired[list[StoredSignal]]


class Receipt(TypedDict):
    messages: list[Message]
    nothing: NotRequired[Cause]
    """why there is none, and will be none: looked, or how the wait for one ended, timeout or operator"""


class ChildOutcome(TypedDict):
    id: str
    outcome: NotRequired[str]
    """completed, failed, cancelled, expired or skipped; empty: it has not ended"""
    result: NotRequired[Payload]
    """of one that completed; left out when those before it have 1 MiB together"""


class Claimed(TypedDict):
    namespace: str
    lane: str
    kind: str
    capabilities: NotRequired[list[str]]
    """capabilities that its worker needs"""
    gates: NotRequired[list[str]]
    """gates that must admit it before it runs, and limits of keys, in words"""
    lease: str
    """proves in every write that the execution is this worker's; opaque"""
    lease_ms: int
    """renew before that is over"""
    id: str
    attempt: int
    """1 for the first"""
    attempt_type: str
    """initial, retry, reclaim, replay, continue, or resumed when the attempt goes on"""
    continues: NotRequired[int]
    """how often it went on with another input (see :continue)"""
    takes: NotRequired[int]
    """how often it was replayed or rewound"""
    stopping: NotRequired[str]
    """the request of a stop that no run has heeded yet. See the turn of a step"""
    priority: int
    created_at: NotRequired[Timestamp]
    retries: int
    reclaims: int
    time_left_ms: NotRequired[int]
    """of the attempt's timeout; 0: none"""
    deadline_in_ms: NotRequired[int]
    """0: none"""
    last_sequence: int
    """of the frames that this attempt has; the next one is one more"""
    input: Payload
    """what a program stored or sent"""
    input_lost: NotRequired[bool]
    """somebody deleted it from the store; fail the execution"""
    tags: NotRequired[dict[str, str]]
    steps: NotRequired[dict[str, Payload]]
    """recorded by earlier runs, by name: do not run these again"""
    waits: NotRequired[dict[str, SuspendResult]]
    """what ended the waits of earlier runs, by name"""
    receipts: NotRequired[dict[str, dict[str, Receipt]]]
    """what earlier runs received, by mailbox and number"""
    children: NotRequired[dict[str, dict[str, ChildOutcome]]]
    """how the children of earlier waits ended, by the names of the wait and of the child"""
    flow: NotRequired[str]
    node: NotRequired[str]
    inputs: NotRequired[dict[str, Payload]]
    """results of upstream nodes, by the name of the input"""


class CompletedAnswer(TypedDict):
    lease: str
    held: bool
    """the execution was this worker's to complete. Else stop working on it, and tell nobody"""
    already: bool
    """an earlier call had done it"""
    code: NotRequired[str]
    """why it has not completed; absent: it has. One that is held can still fail"""


class LeaseAnswer(TypedDict):
    lease: str
    held: bool
    code: NotRequired[str]
    """why it is not: stop working on it"""
    stopping: NotRequired[str]
    """somebody asked the execution to end what it says, and to keep what it has: the request of the newest stop, which
    is told again with every renewal. See the turn of a step
    """


class ClaimAnswer(TypedDict):
    """What claim answers."""

    executions: list[Claimed]
    """none when the time was over"""
    completed: NotRequired[list[CompletedAnswer]]
    """what became of complete, in its order"""
    leases: NotRequired[list[LeaseAnswer]]
    """those of leases that are not held, or have a stop that the worker has not heard of; all others are held"""


class LeasesBody(TypedDict):
    """What renew takes."""

    leases: list[str]
    """of everything that it still works on, at most 1000"""


class LeasesAnswer(TypedDict):
    """What renew answers."""

    leases: list[LeaseAnswer]
    """in the order of the request"""


class FrameBody(TypedDict):
    type: NotRequired[str]
    """at most 128 bytes, such as token; default token"""
    text: NotRequired[str]
    """either text, or json, or base64; at most 64 KiB"""
    json: NotRequired[Any]
    """any JSON value"""
    base64: NotRequired[Base64]
    correlation: NotRequired[str]
    source: NotRequired[str]
    """who wrote it, for example a model or a tool: at most 64 bytes"""
    live_ms: NotRequired[int]
    """only for those who listen now, and gone after twice so long: 1000..60000"""


class BatchBody(TypedDict):
    lease: str
    """of the execution, as it came with the claim"""
    first: int
    """as without batches"""
    frames: list[FrameBody]
    """as without batches"""


class FramesBody(TypedDict):
    """What appendFrames takes."""

    lease: NotRequired[str]
    """of the execution, as it came with the claim. Required without batches"""
    first: NotRequired[int]
    """sequence of the first frame; they count from 1 in an attempt, without gaps. What was sent before is recognised by
    it
    """
    frames: NotRequired[list[FrameBody]]
    """1..100, at most 512 KiB together"""
    batches: NotRequired[list[BatchBody]]
    """instead: frames of several executions, 1..100 of them, each on its own"""


class BatchFrames(TypedDict):
    lease: str
    held: bool
    """the execution is this worker's. Else stop working on it, and tell nobody"""
    last_sequence: NotRequired[int]
    code: NotRequired[str]
    """why the frames of this batch, all of them, are not stored; absent: they are"""


class FramesAnswer(TypedDict):
    """What appendFrames answers."""

    last_sequence: NotRequired[int]
    """absent with batches"""
    batches: NotRequired[list[BatchFrames]]
    """what became of them, in their order"""


class StepBody(TypedDict):
    """What recordStep takes."""

    lease: str
    """of the execution, as it came with the claim"""
    name: str
    """1..128 bytes of printable ASCII, unique within the execution"""
    value: NotRequired[Any]
    """any JSON value, at most 256 KiB; later runs get it with the claim. Default null"""
    took_ms: NotRequired[int]
    """how long the step ran, by the worker's clock; for people"""
    turn: NotRequired[str]
    """what the step is to a handler that talks, in turns: over, it ends a turn, and is refused with turn_stopped while
    a stop waits; stopped, it ends a turn as that stop asks, which has been heeded then; begin, it begins the next
    turn. Default: nothing of this
    """


class StepAnswer(TypedDict):
    """What recordStep answers."""

    already: bool
    """an earlier call had done it"""
    stopping: NotRequired[str]
    """the request of a stop that waits to be heeded, or that this step has heeded"""


class ProgressBody(TypedDict):
    """What reportProgress takes."""

    lease: str
    """of the execution, as it came with the claim"""
    percent: NotRequired[int]
    """0..100"""
    message: NotRequired[str]
    """at most 1 KiB"""


class LineBody(TypedDict):
    at: NotRequired[Timestamp]
    """when it was logged; default now"""
    level: NotRequired[str]
    """debug, info (default), warn or error"""
    message: NotRequired[str]
    """cut, with the attributes, to 8 KiB"""
    attributes: NotRequired[dict[str, Any]]


class LogBody(TypedDict):
    """What appendLog takes."""

    lease: str
    """of the execution, as it came with the claim"""
    first: int
    """number of the first line; under one lease they count from 1, also what may not have been stored. What was sent
    before is recognised by it
    """
    dropped: NotRequired[int]
    """lines that came before these and were not sent"""
    lines: list[LineBody]
    """1..100. An attempt keeps its last 1,000 lines and 256 KiB"""


class SpendBody(TypedDict):
    """What spend takes."""

    lease: str
    """of the execution, as it came with the claim"""
    gate: str
    """one of the gates of the claim that is no limit of a key, or one above it: parent of an answer. What is counted
    below counts there, too, so spend there as well
    """
    sequence: int
    """1, 2, … for each gate under one lease; a repeat counts nothing"""
    key: NotRequired[str]
    """1..64 bytes of printable ASCII without spaces: the gate counts the key of an execution once within 24 h, also
    under another lease
    """
    amounts: dict[str, int]
    """by dimension. What is used is counted also when the lease is over"""


class Breach(TypedDict):
    dimension: str
    hard: bool
    used: int
    """with the report, if it was counted"""
    limit: int
    crossed: NotRequired[bool]


class Reported(TypedDict):
    """What spend answers, what reportUsage answers."""

    verdict: str
    """OK, SOFT_BREACH or HARD_BREACH"""
    counted: bool
    late: bool
    """the execution is another worker's by now; it was counted all the same"""
    repeated: bool
    """this is the answer of the first time"""
    action: NotRequired[HardAction]
    """what the gate wants done about a hard breach: reject (the worker decides), fail, block (release it), ask (a
    person for more), warn
    """
    left_ms: NotRequired[int]
    """of the period; absent: it does not end"""
    period: int
    parent: NotRequired[str]
    """the gate above it"""
    breaches: NotRequired[list[Breach]]


class ReserveBody(TypedDict):
    """What reserve takes."""

    lease: str
    """of the execution, as it came with the claim"""
    reservation: int
    """its number: 1, 2, … under one lease"""
    amounts: dict[str, int]
    """by dimension, 1..64 of them: the most that the call may use"""


class ReserveAnswer(TypedDict):
    """What reserve answers."""

    reserved: bool
    """make the call, then settle. Else nothing is set aside in any gate"""
    gates: NotRequired[list[str]]
    """those that have it; absent with reserved: no gate of the execution counts these amounts"""
    over: NotRequired[bool]
    """this number was settled, given back or refused before: reserve under the next one"""
    gate: NotRequired[str]
    """the one that refused it"""
    action: NotRequired[HardAction]
    """what that gate wants done: reject (the worker decides), fail, block (release the execution), or ask (suspend it
    with a question)
    """
    left_ms: NotRequired[int]
    """of the gate's period; absent: it does not end"""
    breaches: NotRequired[list[Breach]]
    """of the gate that refused it"""


class SettleBody(TypedDict):
    """What settle takes."""

    lease: str
    """of the execution, as it came with the claim"""
    reservation: int
    """its number: 1, 2, … under one lease"""
    amounts: NotRequired[dict[str, int]]
    """by dimension: what the call used, whatever was reserved. Counted also when the lease is over. Absent: nothing was
    used
    """


class SettledGate(TypedDict):
    gate: str
    verdict: str
    """OK, SOFT_BREACH or HARD_BREACH; it is counted whatever it is"""
    breaches: NotRequired[list[Breach]]


class SettleAnswer(TypedDict):
    """What settle answers."""

    already: bool
    """an earlier call had done it"""
    gates: NotRequired[list[SettledGate]]
    """what those say that count amounts"""


class ReservationBody(TypedDict):
    """What unreserve takes."""

    lease: str
    """of the execution, as it came with the claim"""
    reservation: int
    """its number: 1, 2, … under one lease"""


class Already(TypedDict):
    """What unreserve answers, what endCall answers, what closeWaitpoint answers, what complete answers, what delay
    answers, what continueWork answers, what cancelWork answers, what release answers.
    """

    already: bool
    """an earlier call had done it"""


class AcquireBody(TypedDict):
    """What acquire takes."""

    lease: str
    """of the execution, as it came with the claim"""
    service: str
    """the name of its gate, such as openai/gpt-5"""
    call: int
    """its number: 1, 2, … under one lease, whatever the service. Ask again for the same call under the same number"""
    estimate: NotRequired[dict[str, int]]
    """by dimension, at most 8: what the call will use at most or about. Of requests it is 1 unless it says more. The
    same when it has ended
    """
    waited_ms: NotRequired[int]
    """how long the worker has waited for this call, since it asked for it first, at most an hour"""


class AcquireAnswer(TypedDict):
    """What acquire answers."""

    admitted: bool
    """make the call, then end-call. A repeat answers so again"""
    stay: NotRequired[bool]
    """not yet: ask again in retry_ms. Else delay the execution by retry_ms, with the service"""
    retry_ms: NotRequired[int]
    """milliseconds"""
    place: NotRequired[int]
    """in line, from 1"""
    waiting: NotRequired[int]
    """executions in line"""


class EndCallBody(TypedDict):
    """What endCall takes."""

    lease: str
    """of the execution, as it came with the claim"""
    service: str
    """the name of its gate, such as openai/gpt-5"""
    call: int
    """its number: 1, 2, … under one lease, whatever the service. Ask again for the same call under the same number"""
    estimate: NotRequired[dict[str, int]]
    """by dimension, at most 8: what the call will use at most or about. Of requests it is 1 unless it says more. The
    same when it has ended
    """
    how: str
    """settled: it was made. released: it was certainly not made. refused: the service answered that there are too many
    calls (status 429)
    """
    used: NotRequired[dict[str, int]]
    """by dimension, of one that settled; absent: as much as was estimated"""
    retry_after_ms: NotRequired[int]
    """of one that was refused: when the service wants to be asked again, at most an hour; 0: it did not say"""


class WaitpointBody(TypedDict):
    """What openWaitpoint takes."""

    lease: str
    """of the execution, as it came with the claim"""
    key: str
    """1..128 bytes of printable ASCII; the same key has the same token in every run"""
    life_ms: NotRequired[int]
    """until the execution waits for it: 1000..7 days, default 1 day"""


class WaitpointToken(TypedDict):
    """What openWaitpoint answers."""

    token: str
    """its bearer may answer: pass it on inside a step. Empty when the waitpoint is closed"""


class ExpectBody(TypedDict):
    """What expectEvent takes."""

    lease: str
    """of the execution, as it came with the claim"""
    key: str
    """1..128 bytes of printable ASCII: the wait on it gets the event. Each takes one event; number those of a loop"""
    subject: str
    """of the event, in the namespace of the execution; at most 128 bytes"""
    where: NotRequired[dict[str, Any]]
    """fields of the data, by names joined by dots, and the string, number, boolean or null that each must have; at most
    8. Default: every event of the subject
    """


class CloseWaitpointBody(TypedDict):
    """What closeWaitpoint takes."""

    lease: str
    """of the execution, as it came with the claim"""
    key: str
    """of a waitpoint that was opened and that nothing waits for"""


class ReceiveBody(TypedDict):
    """What receiveMessages takes."""

    lease: str
    """of the execution, as it came with the claim"""
    mailbox: str
    """1..96 bytes of printable ASCII"""
    number: int
    """of the receipt: 1, 2, … for each mailbox, from 1 in every run of the handler. What a receipt took before is
    answered again
    """
    max: NotRequired[int]
    """messages, 1..100, default 1; at most 128 KiB of them"""
    look: NotRequired[bool]
    """do not wait: that there was nothing is recorded, and later runs get the same"""


class ReceiveAnswer(TypedDict):
    """What receiveMessages answers."""

    messages: list[Message]
    nothing: NotRequired[Cause]
    """why there is none, and will be none: looked, or how the wait for one ended, timeout or operator"""
    wait: bool
    """there is none yet, and nothing was recorded: suspend until this mailbox and number"""


class ConditionLeaf(TypedDict):
    signal: NotRequired[str]
    """a signal on the waitpoint of this key"""
    named: NotRequired[str]
    """of this name only; with signal or count"""
    count: NotRequired[int]
    """so many signals …"""
    of: NotRequired[list[str]]
    """… on the waitpoints of these keys"""
    by: NotRequired[str]
    """… counted as waitpoints (default), signals or sources"""
    message: NotRequired[str]
    """a message in this mailbox, which stays there for receive to take"""


class ConditionGroup(TypedDict):
    signal: NotRequired[str]
    """a signal on the waitpoint of this key"""
    named: NotRequired[str]
    """of this name only; with signal or count"""
    count: NotRequired[int]
    """so many signals …"""
    of: NotRequired[list[str]]
    """… on the waitpoints of these keys"""
    by: NotRequired[str]
    """… counted as waitpoints (default), signals or sources"""
    message: NotRequired[str]
    """a message in this mailbox, which stays there for receive to take"""
    all: NotRequired[list[ConditionLeaf]]
    any: NotRequired[list[ConditionLeaf]]


class ConditionBody(TypedDict):
    signal: NotRequired[str]
    """a signal on the waitpoint of this key"""
    named: NotRequired[str]
    """of this name only; with signal or count"""
    count: NotRequired[int]
    """so many signals …"""
    of: NotRequired[list[str]]
    """… on the waitpoints of these keys"""
    by: NotRequired[str]
    """… counted as waitpoints (default), signals or sources"""
    message: NotRequired[str]
    """a message in this mailbox, which stays there for receive to take"""
    all: NotRequired[list[ConditionGroup]]
    """all of these"""
    any: NotRequired[list[ConditionGroup]]
    """one of these"""
    mailbox: NotRequired[str]
    """a message of this mailbox, for receive to take …"""
    number: NotRequired[int]
    """… under this number"""
    operator: NotRequired[bool]
    """only an operator resumes it"""
    timeout: NotRequired[bool]
    """only the time does"""


class SuspendBodyOptions(TypedDict):
    """Members of SuspendBody besides lease, wait, question, until."""

    reason: NotRequired[str]
    """waiting_for_signal (default), waiting_for_approval, waiting_for_callback, waiting_for_tool_result,
    waiting_for_operator_review or waiting_for_children; the default with a question is waiting_for_approval, of
    children waiting_for_children
    """
    within_ms: NotRequired[int]
    """how long at most, up to ten years; default for ever"""
    on_timeout: NotRequired[str]
    """fail (default), cancel, expire, auto_resume, auto_resume_with_timeout_signal, auto_resume_open (waitpoints that
    were opened before the wait stay open for the next one on their keys) or escalate
    """
    resume_after_ms: NotRequired[int]
    """pause between the end of the wait and the next run, up to 30 days"""


class SuspendBody(SuspendBodyOptions):
    """What suspend takes."""

    lease: str
    """of the execution, as it came with the claim"""
    wait: NotRequired[str]
    """its name, 1..128 bytes of printable ASCII, unique within a run; later runs find the answer under it. None with a
    mailbox
    """
    question: NotRequired[Question]
    """that people are asked. Without until, one of its choices answers the wait, on the waitpoint of the same name"""
    until: NotRequired[ConditionBody]
    """what ends the wait; default: a signal on the waitpoint of the same name. Of children what ends it, too, whichever
    comes first: mailbox and operator do not belong there, and with this, or one of the following, operators can
    resume the wait, and a later claim brings the answer among the waits
    """


class SuspendAnswer(TypedDict):
    """What suspend answers."""

    suspended: bool
    """the lease is given up; a later claim brings the answer"""
    answer: NotRequired[SuspendResult]
    """signals came early and suffice: go on, under the same lease"""


class OtherBody(TypedDict):
    name: str
    """in this wait: 1..64 bytes, unlike those of the children"""
    execution: str
    """its id, in any partition. One that does not exist or was purged is refused"""
    cancel: NotRequired[bool]
    """cancel it, with its flow, if it is open when the wait is over, or when this execution ends before"""


class ChildrenBodyOptions(TypedDict):
    """Members of ChildrenBody besides lease, wait, children."""

    mode: NotRequired[str]
    """all (default): until all have ended; first; success: until one has succeeded, or all have ended; fail_fast: until
    one did not succeed, or all have ended
    """
    cancel_remaining: NotRequired[bool]
    """cancel those that are open when the wait is over"""
    leave: NotRequired[bool]
    """let them run on when this execution ends before them"""
    others: NotRequired[list[OtherBody]]
    """executions that somebody else made and that are waited for like children, up to 1000 with these. Nobody cancels
    those without cancel
    """
    until: NotRequired[ConditionBody]
    """what ends the wait; default: a signal on the waitpoint of the same name. Of children what ends it, too, whichever
    comes first: mailbox and operator do not belong there, and with this, or one of the following, operators can
    resume the wait, and a later claim brings the answer among the waits
    """
    reason: NotRequired[str]
    """waiting_for_signal (default), waiting_for_approval, waiting_for_callback, waiting_for_tool_result,
    waiting_for_operator_review or waiting_for_children; the default with a question is waiting_for_approval, of
    children waiting_for_children
    """
    within_ms: NotRequired[int]
    """how long at most, up to ten years; default for ever"""
    on_timeout: NotRequired[str]
    """fail (default), cancel, expire, auto_resume, auto_resume_with_timeout_signal, auto_resume_open (waitpoints that
    were opened before the wait stay open for the next one on their keys) or escalate
    """
    resume_after_ms: NotRequired[int]
    """pause between the end of the wait and the next run, up to 30 days"""


class ChildrenBody(ChildrenBodyOptions):
    """What waitChildren takes."""

    lease: str
    """of the execution, as it came with the claim"""
    wait: str
    """its name, 1..128 bytes of printable ASCII, unique within a run; later runs find the outcomes under it"""
    children: NotRequired[list[NodeBody]]
    """up to 1000, each after those that it depends on. A name stands for the same child in every run, with the same
    input. Required without others
    """


class ChildrenAnswer(TypedDict):
    """What waitChildren answers."""

    parked: bool
    """the lease is given up; a later claim brings the outcomes"""
    answer: NotRequired[SuspendResult]
    """what ended a wait with a condition or a limit at once"""
    outcomes: NotRequired[dict[str, ChildOutcome]]
    """by the name of the child; enough had ended: go on, under the same lease"""


class FailBody(TypedDict):
    """What fail takes."""

    lease: str
    """of the execution, as it came with the claim"""
    category: NotRequired[str]
    """1..64 bytes, for lists and alerts; default handler_error"""
    message: NotRequired[str]
    """cut to 1 KiB"""
    permanent: NotRequired[bool]
    """no retry, whatever the policy says"""
    retry_after_ms: NotRequired[int]
    """instead of the pause of the policy"""
    step: NotRequired[str]
    """the step that failed, if one did; for people"""
    step_took_ms: NotRequired[int]
    """how long it ran"""


class FailAnswer(TypedDict):
    """What fail answers."""

    retry: bool
    """it runs again; else it has failed for good"""
    retry_in_ms: int
    already: bool
    """an earlier call had done it"""


class AsideBody(TypedDict):
    """What delay takes."""

    lease: str
    """of the execution, as it came with the claim"""
    delay_ms: int
    """0..10 years; the same attempt goes on later, and no retry is used up"""
    service: NotRequired[str]
    """for whose turn it waits (acquire): it goes on sooner if that comes"""


class ContinueBody(TypedDict):
    """What continueWork takes."""

    lease: str
    """of the execution, as it came with the claim"""
    input: NotRequired[Any]
    """any JSON value, at most 1 MiB; default null. Steps, waits and retries start over; the id and the messages in
    mailboxes stay
    """


class GiveUpBody(TypedDict):
    """What cancelWork takes."""

    lease: str
    """of the execution, as it came with the claim"""
    reason: NotRequired[str]


class Leased(TypedDict):
    """What release takes."""

    lease: str
    """of the execution, as it came with the claim"""


class CloseBody(TypedDict):
    """What closeWorker takes."""

    leases: NotRequired[list[str]]
    """of everything that it still works on, at most 1000; default none"""


class Dead(TypedDict):
    """What markWorkerDead answers."""

    held: int
    """executions that it held, which others take"""


class Missed(TypedDict):
    first_at: Timestamp
    last_at: Timestamp
    count: int
    reason: str


class ScheduleInfo(TypedDict):
    name: str
    partition: int
    revision: int
    """grows with every change of the definition"""
    incarnation: NotRequired[int]
    """the revision of its creation"""
    catch_up: NotRequired[CatchUp]
    """last (default), all or skip: which of the instants that were missed are run"""
    overlap: NotRequired[Overlap]
    """allow (default) or skip, while the last one has not ended"""
    until: NotRequired[Timestamp]
    """no run after this time; default without end"""
    max_runs: NotRequired[int]
    """it ends after so many runs since its creation; 0: without end"""
    jitter_ms: NotRequired[int]
    """each run starts up to so much later, at most 24 h and halfway to the next run"""
    owner: NotRequired[str]
    """owner that declares it"""
    nodes: NotRequired[int]
    """number of nodes of the flow that each run submits; absent for an execution"""
    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    namespace: NotRequired[str]
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    creator: NotRequired[str]
    spec: NotRequired[str]
    """its times in words"""
    error: NotRequired[str]
    """why it cannot be read"""
    input_bytes: int
    runs_left: NotRequired[int]
    """runs left of max_runs"""
    ended: NotRequired[str]
    """why it has no next run: runs, until, or spec, which has no further instant"""
    next_at: NotRequired[Timestamp]
    next_runs: NotRequired[list[Timestamp]]
    last_due_at: NotRequired[Timestamp]
    """the last instant that was fired"""
    last_execution: NotRequired[str]
    last_flow: NotRequired[str]
    fired: int
    missed: int
    """instants that were not fired"""
    last_missed: NotRequired[Missed]
    """the last run of them"""
    missed_reasons: NotRequired[dict[str, int]]
    """all of them, by reason"""
    paused: bool
    paused_at: NotRequired[Timestamp]
    """the last time"""
    paused_by: NotRequired[str]
    resumed_at: NotRequired[Timestamp]
    """when the last pause ended"""
    resumed_by: NotRequired[str]
    created_at: NotRequired[Timestamp]
    updated_at: NotRequired[Timestamp]
    updated_by: NotRequired[str]


class ScheduleList(TypedDict):
    """What listSchedules answers."""

    items: list[ScheduleInfo]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class SchedulePutOptions(TypedDict):
    """Members of SchedulePut besides kind."""

    cron: NotRequired[str]
    """minute hour day month weekday"""
    zone: NotRequired[str]
    """of the cron expression, such as Europe/Berlin; default UTC"""
    every_ms: NotRequired[int]
    """instead of cron"""
    anchor: NotRequired[Timestamp]
    """a time that every_ms counts from; default 1970-01-01T00:00:00Z"""
    first_run_now: NotRequired[bool]
    """run once at the creation as well; a schedule that exists is not run by it"""
    catch_up: NotRequired[CatchUp]
    """last (default), all or skip: which of the instants that were missed are run"""
    overlap: NotRequired[Overlap]
    """allow (default) or skip, while the last one has not ended"""
    until: NotRequired[Timestamp]
    """no run after this time; default without end"""
    max_runs: NotRequired[int]
    """it ends after so many runs since its creation; 0: without end"""
    jitter_ms: NotRequired[int]
    """each run starts up to so much later, at most 24 h and halfway to the next run"""
    namespace: NotRequired[str]
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    input: NotRequired[Any]
    """any JSON value, at most 1 MiB; the input of the handler. Default null"""
    input_base64: NotRequired[Base64]
    """instead of input, bytes that are not JSON"""
    nodes: NotRequired[list[NodeBody]]
    """each run submits a flow of these nodes, which say lane, priority, times, retries, retention and capabilities
    themselves
    """
    owned_by: NotRequired[str]
    """the owner that declares it: a schedule of another owner is not changed; absent: it belongs to nobody"""
    if_new: NotRequired[bool]
    """refuse to change a schedule that exists"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class SchedulePut(SchedulePutOptions):
    """What putSchedule takes."""

    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""


class ScheduleSet(TypedDict):
    """What putSchedule answers, what editSchedule answers."""

    name: str
    already: bool
    """it was so before, nothing changed"""
    revision: int
    next_at: NotRequired[Timestamp]
    """absent: it is over"""


class ScheduleBody(TypedDict):
    cron: NotRequired[str]
    """minute hour day month weekday"""
    zone: NotRequired[str]
    """of the cron expression, such as Europe/Berlin; default UTC"""
    every_ms: NotRequired[int]
    """instead of cron"""
    anchor: NotRequired[Timestamp]
    """a time that every_ms counts from; default 1970-01-01T00:00:00Z"""
    first_run_now: NotRequired[bool]
    """run once at the creation as well; a schedule that exists is not run by it"""
    catch_up: NotRequired[CatchUp]
    """last (default), all or skip: which of the instants that were missed are run"""
    overlap: NotRequired[Overlap]
    """allow (default) or skip, while the last one has not ended"""
    until: NotRequired[Timestamp]
    """no run after this time; default without end"""
    max_runs: NotRequired[int]
    """it ends after so many runs since its creation; 0: without end"""
    jitter_ms: NotRequired[int]
    """each run starts up to so much later, at most 24 h and halfway to the next run"""
    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    namespace: NotRequired[str]
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    input: NotRequired[Any]
    """any JSON value, at most 1 MiB; the input of the handler. Default null"""
    input_base64: NotRequired[Base64]
    """instead of input, bytes that are not JSON"""
    nodes: NotRequired[list[NodeBody]]
    """each run submits a flow of these nodes, which say lane, priority, times, retries, retention and capabilities
    themselves
    """


class OwnedBody(TypedDict):
    """What syncSchedules takes."""

    schedules: dict[str, ScheduleBody]
    """by name; the owner's other schedules are removed"""


class ScheduleSync(TypedDict):
    """What syncSchedules answers."""

    created: NotRequired[list[str]]
    updated: NotRequired[list[str]]
    unchanged: NotRequired[list[str]]
    removed: NotRequired[list[str]]


class TimesBody(TypedDict):
    """What editSchedule takes."""

    cron: NotRequired[str]
    """minute hour day month weekday"""
    zone: NotRequired[str]
    """of the cron expression; default UTC"""
    every_ms: NotRequired[int]
    """instead of cron"""
    anchor: NotRequired[Timestamp]
    """a time that every_ms counts from"""
    until: NotRequired[Timestamp]
    """no run after this time; default without end"""
    max_runs: NotRequired[int]
    """it ends after so many; default without end"""
    jitter_ms: NotRequired[int]
    """each run starts up to so much later"""
    catch_up: NotRequired[CatchUp]
    """last (default), all or skip"""
    overlap: NotRequired[Overlap]
    """allow (default) or skip"""
    input: NotRequired[Any]
    """any JSON value, at most 1 MiB; the input of the handler. Default null"""
    input_base64: NotRequired[Base64]
    """instead of input, bytes that are not JSON"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class ScheduleRun(TypedDict):
    """What runSchedule answers."""

    due_at: Timestamp
    """the instant; of a run now, when it was asked for"""
    execution: NotRequired[str]
    flow: NotRequired[str]
    """instead of an execution"""
    existed: NotRequired[bool]
    """it was submitted before, and nothing was done"""
    error: NotRequired[str]
    """why it was refused"""


RangeBody = TypedDict(
    "RangeBody",
    {
        # the first instant may be this one
        "from": Timestamp,
        # and the last this one; default now
        "to": NotRequired[Timestamp],
        # the audit trail and a history keep 1 KiB of it; of a hold at most 256
        "reason": NotRequired[str],
    },
)
"""What backfillSchedule takes."""


class Backfilled(TypedDict):
    """What backfillSchedule answers."""

    created: int
    """instants that were submitted now"""
    existed: int
    """instants that had been submitted before"""
    refused: int
    """instants that could not be submitted; their items say why"""
    items: list[ScheduleRun]
    """in their order"""


class Limit(TypedDict):
    hard: NotRequired[int]
    """work waits when it is reached; 0: none"""
    soft: NotRequired[int]
    """only warns; 0: none"""


class Service(TypedDict):
    per_minute: NotRequired[dict[str, int]]
    """how much may pass in a minute, by dimension, 2..1000000000"""
    burst: NotRequired[dict[str, int]]
    """how much may come at once, at most half; absent: a fortieth"""
    calls: NotRequired[int]
    """how many are made at once, at most 1000000; 0: no bound"""
    patience_ms: NotRequired[int]
    """waited in a slot, at most 60000; absent: 2000"""
    weights: NotRequired[dict[str, int]]
    """how namespaces share it, 1..1000; 1 for others"""


class Spender(TypedDict):
    execution: str
    at: Timestamp
    """of its last report, or when it asked last"""
    period: int
    late: NotRequired[int]
    """reports under a lease that was not the newest of the execution"""
    used: NotRequired[dict[str, int]]
    reserved: NotRequired[dict[str, int]]
    """for calls that have not settled"""
    waits_for: NotRequired[dict[str, int]]
    """what it waits for, in line"""
    refusals: NotRequired[int]
    """how often it was refused that"""
    namespace: NotRequired[str]
    """of a service: by whose weight it waits"""
    turn_ms: NotRequired[int]
    """of a service: in how long its turn comes"""
    away: NotRequired[bool]
    """of a service: it waits without a slot"""


class ServiceState(TypedDict):
    room: dict[str, int]
    """what may pass at once, by dimension; below 0 after a large call"""
    share: int
    """of its rates, per mille: less after it refused calls"""
    under_way: int
    """calls that have not ended"""
    at_once: NotRequired[int]
    """how many may be under way now; absent: no bound"""
    waiting: int
    """executions in line"""
    closed_until: NotRequired[Timestamp]
    """nobody calls it before that: it refused calls"""
    refused: int
    """calls that it refused, since it was idle for two hours"""
    last_refused_at: NotRequired[Timestamp]
    call_ms: NotRequired[int]
    """how long a call takes, a moving average"""


class Hold(TypedDict):
    execution: str
    epoch: NotRequired[int]
    """of its lease"""


class Gate(TypedDict):
    name: NotRequired[str]
    scope: NotRequired[str]
    """what it is for, for people; at most 128 bytes"""
    parent: NotRequired[str]
    """the gate above it: what counts here counts there, too"""
    limits: NotRequired[dict[str, Limit]]
    """of what may be used in a period, by dimension, at most 64"""
    reset_ms: NotRequired[int]
    """a period, 1000..ten years; 0 never resets"""
    on_hard: NotRequired[HardAction]
    """what happens to an execution whose spend is refused: reject (default), fail, block or ask"""
    warn: NotRequired[bool]
    """it only warns: counts what passes a hard limit, and blocks nothing"""
    warn_soft: NotRequired[bool]
    """note the crossing of a soft limit, once per period and dimension"""
    strict: NotRequired[bool]
    """refuse dimensions that have no limits here; else they are counted only"""
    refund: NotRequired[list[str]]
    """failed, cancelled, expired: what such executions used in this period is given back"""
    rate: NotRequired[int]
    """starts within any window_ms, at most 1000000; 0: no bound"""
    window_ms: NotRequired[int]
    """at most 30 days; needed with rate"""
    jitter_ms: NotRequired[int]
    """added at random to the time of the next try, at most 60000"""
    concurrency: NotRequired[int]
    """how many run at once, at most 1000000; 0: no bound"""
    service: NotRequired[Service]
    """for the gate of a service, asked for each call; without other meters"""


class AuditEntry(TypedDict):
    at: Timestamp
    what: str
    """created, changed, adjusted, raised, allowed (raised for one execution alone), period, release or soft_limit"""
    by: NotRequired[str]
    """who, or the execution that passed a soft limit"""
    detail: NotRequired[str]
    gate: NotRequired[Gate]
    """what it was created with, or changed to"""
    amounts: NotRequired[dict[str, int]]
    """what an adjustment or a raise added, a release gave back, or was used in a period that ended"""
    reason: NotRequired[str]
    """of an adjustment or a raise"""
    period: NotRequired[int]
    """the one that ended"""
    period_began_at: NotRequired[Timestamp]
    periods_missed: NotRequired[int]
    """after the one that ended"""
    execution: NotRequired[str]
    """of a release, who was allowed more, or who passed a soft limit"""
    outcome: NotRequired[str]
    """of a release: how the execution ended, or asked"""
    breach: NotRequired[Breach]
    """of a soft limit"""


class GateRecord(TypedDict):
    name: NotRequired[str]
    scope: NotRequired[str]
    """what it is for, for people; at most 128 bytes"""
    parent: NotRequired[str]
    """the gate above it: what counts here counts there, too"""
    limits: NotRequired[dict[str, Limit]]
    """of what may be used in a period, by dimension, at most 64"""
    reset_ms: NotRequired[int]
    """a period, 1000..ten years; 0 never resets"""
    on_hard: NotRequired[HardAction]
    """what happens to an execution whose spend is refused: reject (default), fail, block or ask"""
    warn: NotRequired[bool]
    """it only warns: counts what passes a hard limit, and blocks nothing"""
    warn_soft: NotRequired[bool]
    """note the crossing of a soft limit, once per period and dimension"""
    strict: NotRequired[bool]
    """refuse dimensions that have no limits here; else they are counted only"""
    refund: NotRequired[list[str]]
    """failed, cancelled, expired: what such executions used in this period is given back"""
    rate: NotRequired[int]
    """starts within any window_ms, at most 1000000; 0: no bound"""
    window_ms: NotRequired[int]
    """at most 30 days; needed with rate"""
    jitter_ms: NotRequired[int]
    """added at random to the time of the next try, at most 60000"""
    concurrency: NotRequired[int]
    """how many run at once, at most 1000000; 0: no bound"""
    service: NotRequired[Service]
    """for the gate of a service, asked for each call; without other meters"""
    revision: int
    created_at: NotRequired[Timestamp]
    updated_by: NotRequired[str]
    waiting: int
    """queues that wait for it: routes of partitions"""
    period: int
    """how often it was reset"""
    period_began_at: NotRequired[Timestamp]
    next_reset_at: NotRequired[Timestamp]
    last_reset_at: NotRequired[Timestamp]
    periods_missed: NotRequired[int]
    """that passed without a reset before the last one"""
    hard_breaches: int
    soft_breaches: int
    last_breach_at: NotRequired[Timestamp]
    """of a hard limit, in this period"""
    last_breach_dimension: NotRequired[str]
    used: NotRequired[dict[str, int]]
    reserved: NotRequired[dict[str, int]]
    """what of it is set aside for calls that have not settled"""
    refused: NotRequired[dict[str, int]]
    """in this period, by dimension with a limit: what was to be counted, and did not fit"""
    raised: NotRequired[dict[str, int]]
    """by how much hard limits are higher in this period"""
    hours: NotRequired[dict[str, list[int]]]
    """used in each of the last 24 hours of UTC and in this one, by dimension: 25 numbers, the oldest first; not in
    lists
    """
    headroom: NotRequired[dict[str, int]]
    """until the hard limit, by dimension that has one"""
    exhausted: NotRequired[list[str]]
    """dimensions without room"""
    empty_at: NotRequired[Timestamp]
    """when the first limit is reached if it goes on like this; absent: not before the period ends"""
    waiting_for_amounts: int
    """queues"""
    line: NotRequired[list[Spender]]
    """who waits for amounts, the first in front; not in lists"""
    spenders: NotRequired[list[Spender]]
    """who used of it, the newest first; not in lists"""
    state: NotRequired[ServiceState]
    """of a service"""
    started: int
    """in the window"""
    held: int
    """slots that are taken"""
    free: NotRequired[int]
    """slots that are not; absent: it does not limit how many run at once"""
    suspect: int
    """holds that were not confirmed for a while"""
    waiting_for_slots: int
    waiting_for_rate: int
    """for room in the window"""
    holds: NotRequired[list[Hold]]
    """who has the slots, at most 1000; not in lists"""
    events: NotRequired[list[AuditEntry]]
    """what happened to it, the newest first; not in lists"""


class GateList(TypedDict):
    """What listGates answers."""

    items: list[GateRecord]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class GateBody(TypedDict):
    """What putGate takes."""

    name: NotRequired[str]
    scope: NotRequired[str]
    """what it is for, for people; at most 128 bytes"""
    parent: NotRequired[str]
    """the gate above it: what counts here counts there, too"""
    limits: NotRequired[dict[str, Limit]]
    """of what may be used in a period, by dimension, at most 64"""
    reset_ms: NotRequired[int]
    """a period, 1000..ten years; 0 never resets"""
    on_hard: NotRequired[HardAction]
    """what happens to an execution whose spend is refused: reject (default), fail, block or ask"""
    warn: NotRequired[bool]
    """it only warns: counts what passes a hard limit, and blocks nothing"""
    warn_soft: NotRequired[bool]
    """note the crossing of a soft limit, once per period and dimension"""
    strict: NotRequired[bool]
    """refuse dimensions that have no limits here; else they are counted only"""
    refund: NotRequired[list[str]]
    """failed, cancelled, expired: what such executions used in this period is given back"""
    rate: NotRequired[int]
    """starts within any window_ms, at most 1000000; 0: no bound"""
    window_ms: NotRequired[int]
    """at most 30 days; needed with rate"""
    jitter_ms: NotRequired[int]
    """added at random to the time of the next try, at most 60000"""
    concurrency: NotRequired[int]
    """how many run at once, at most 1000000; 0: no bound"""
    service: NotRequired[Service]
    """for the gate of a service, asked for each call; without other meters"""
    revision: NotRequired[int]
    """of the gate that is to be changed, as it was read; 0: make it, unless it is there as the body says"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class GateEnsure(TypedDict):
    """What ensureGate takes."""

    name: NotRequired[str]
    scope: NotRequired[str]
    """what it is for, for people; at most 128 bytes"""
    parent: NotRequired[str]
    """the gate above it: what counts here counts there, too"""
    limits: NotRequired[dict[str, Limit]]
    """of what may be used in a period, by dimension, at most 64"""
    reset_ms: NotRequired[int]
    """a period, 1000..ten years; 0 never resets"""
    on_hard: NotRequired[HardAction]
    """what happens to an execution whose spend is refused: reject (default), fail, block or ask"""
    warn: NotRequired[bool]
    """it only warns: counts what passes a hard limit, and blocks nothing"""
    warn_soft: NotRequired[bool]
    """note the crossing of a soft limit, once per period and dimension"""
    strict: NotRequired[bool]
    """refuse dimensions that have no limits here; else they are counted only"""
    refund: NotRequired[list[str]]
    """failed, cancelled, expired: what such executions used in this period is given back"""
    rate: NotRequired[int]
    """starts within any window_ms, at most 1000000; 0: no bound"""
    window_ms: NotRequired[int]
    """at most 30 days; needed with rate"""
    jitter_ms: NotRequired[int]
    """added at random to the time of the next try, at most 60000"""
    concurrency: NotRequired[int]
    """how many run at once, at most 1000000; 0: no bound"""
    service: NotRequired[Service]
    """for the gate of a service, asked for each call; without other meters"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class AdjustBody(TypedDict):
    """What adjustUsage takes."""

    amounts: dict[str, int]
    """by dimension, up or down. A repeat counts again"""
    reason: NotRequired[str]
    """at most 256 bytes"""


class Used(TypedDict):
    """What adjustUsage answers."""

    used: dict[str, int]


class RaiseBody(TypedDict):
    """What raiseLimits takes."""

    amounts: dict[str, int]
    """by dimension, 0 or more: by how much hard limits are higher in this period. A repeat raises again"""
    execution: NotRequired[str]
    """the only one that may pass the limits; absent: the limits are higher for all"""
    reason: NotRequired[str]
    """at most 256 bytes"""


class Raised(TypedDict):
    """What raiseLimits answers."""

    raised: dict[str, int]
    """by dimension: by how much limits are higher in this period, or what the execution may pass them by"""


class ResetBody(TypedDict):
    """What resetUsage takes."""

    move: NotRequired[bool]
    """the next period begins a whole interval after this; else when it would have anyway"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class Period(TypedDict):
    """What resetUsage answers."""

    period: int
    left_ms: NotRequired[int]
    """of the period; absent: it does not end"""


class UsageBody(TypedDict):
    """What reportUsage takes."""

    key: str
    """names the report, at most 128 bytes without spaces: repeated with the same within a day it counts once"""
    execution: NotRequired[str]
    """in whose ledger it goes"""
    amounts: dict[str, int]
    """by dimension, 0 or more"""


class RefundBody(TypedDict):
    """What refundUsage takes."""

    execution: str
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class Returned(TypedDict):
    """What refundUsage answers."""

    returned: bool


class Scope(TypedDict):
    namespace: NotRequired[str]
    """alone: all of it"""
    lane: NotRequired[str]
    """of the namespace, or of the default one"""
    tag_key: NotRequired[str]
    """goes with neither"""
    tag: NotRequired[str]
    """its value"""


class AttachedGates(TypedDict):
    scope: Scope
    gates: NotRequired[list[str]]
    """those of limits of keys in words"""
    changed_at: NotRequired[Timestamp]
    by: NotRequired[str]
    mixed: NotRequired[bool]
    """partitions differ, because a change did not reach all of them: make it again"""


class Closing(TypedDict):
    code: str
    """amount, rate, cap, gate_not_found, unavailable, or other: see text"""
    gate: NotRequired[str]
    limit_key: NotRequired[str]
    """of a limit of a key"""
    key_limit: NotRequired[str]
    """what that limit is"""
    dimension: NotRequired[str]
    """of an amount"""
    used: NotRequired[int]
    """of the dimension"""
    limit: NotRequired[int]
    """of the dimension"""
    refused: NotRequired[int]
    """what does not fit"""
    text: str
    """for people"""


class ClosedRoute(TypedDict):
    partition: int
    namespace: str
    lane: str
    kind: str
    capabilities: NotRequired[list[str]]
    """capabilities that its worker needs"""
    gates: NotRequired[list[str]]
    """gates that must admit it before it runs, and limits of keys, in words"""
    until: NotRequired[Timestamp]
    """when it opens by itself"""
    reason: Closing
    waiting: int
    """executions"""


class BusyGate(TypedDict):
    gate: NotRequired[str]
    limit_key: NotRequired[str]
    """of a limit of a key"""
    key_limit: NotRequired[str]
    """what that limit is"""
    waiting: int
    """executions that it holds back: those of closed queues, and those in line for a service"""
    queues: int
    """queues that it keeps closed: one for each partition, lane and kind"""
    why: NotRequired[str]
    """for people, as the queue says it that is tried first"""
    next_at: NotRequired[Timestamp]
    """when the first of these queues is tried again by itself"""
    since: NotRequired[Timestamp]
    """when a hard limit was reached last in this period, or when the service refused a call last"""
    period_ends_at: NotRequired[Timestamp]
    """of a gate with amounts"""
    held: int
    """slots that are taken, or calls under way"""
    holders: NotRequired[list[Hold]]
    """who has these slots, the first ten"""
    in_line: int
    """executions that wait in line: for amounts as far as they are read, or for a call of a service"""
    line: NotRequired[list[Spender]]
    """the first ten of the line, and what each waits for"""
    spenders: NotRequired[list[Spender]]
    """the ten that used most in this period, of the last hundred that used something"""


class GatedAnswer(TypedDict):
    """What listGated answers."""

    attached: list[AttachedGates]
    closed: list[ClosedRoute]
    """work that is not handed out, what opens first in front; at most 1024 of each partition"""
    outbox: int
    """messages that gates have not got yet"""
    partitions: int
    """number of partitions that answered"""
    missing: NotRequired[str]
    """which partitions did not answer"""
    busy: NotRequired[list[BusyGate]]
    """with busy=true: the gates, services and limits of keys that hold work back, at most fifty, the one that holds
    back most in front
    """


class AttachBody(TypedDict):
    """What attachGates takes, what detachGates takes."""

    scope: Scope
    """{} is everything"""
    gates: NotRequired[list[str]]
    """to detach none is to detach all"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class Check(TypedDict):
    check: str
    """the name of the check; it is there once for each node, or for the deployment"""
    status: Status
    """ok, warn, fail, or skip: the check could not be made"""
    node: NotRequired[str]
    """the address of the node"""
    found: str
    """for people"""
    do: NotRequired[str]
    """remedy"""


class Checkup(TypedDict):
    """What examine answers."""

    healthy: bool
    """no check has failed"""
    keys: int
    """that the primaries have"""
    checked_keys: int
    """how many of them were compared with the indexes: all, or 0; the API makes none"""
    checks: list[Check]


class Timer(TypedDict):
    count: int
    head: NotRequired[Timestamp]
    """the earliest; absent when nothing waits"""


class Totals(TypedDict):
    purged: int
    completed: int
    failed: int
    cancelled: int
    expired: int
    skipped: int


class Partition(TypedDict):
    partition: int
    error: NotRequired[str]
    """why it does not answer; then the rest says nothing"""
    now: NotRequired[Timestamp]
    """by its server's clock, with which its other times are compared"""
    protocol: int
    frozen: bool
    """it refuses every call"""
    frozen_reason: NotRequired[str]
    booted_at: NotRequired[Timestamp]
    wake_at: NotRequired[Timestamp]
    """when a tick is due; absent when nothing waits for one"""
    owner: NotRequired[str]
    """the process that makes its ticks; absent when there is none"""
    tick_overdue: bool
    """nobody ticks although it is time"""
    route_table: int
    """version of the route table"""
    recording: NotRequired[str]
    """the recorded part of the feed and its end; absent without subscribers"""
    ready: int
    """queues that have work which is handed out, those with gates included"""
    routes: int
    lanes: int
    """lanes that an operator configured"""
    feed: int
    """entries of the feed"""
    delayed: Timer
    alarms: Timer
    """deadlines, timeouts of attempts and of suspensions"""
    sessions: Timer
    """a head that is due may belong to a session that was renewed since: the tick files it again"""
    pending_waitpoints: Timer
    """waitpoints without a wait yet"""
    suspended: Timer
    """by when they were suspended"""
    ended: Timer
    """by when they may be purged"""
    workers: Timer
    """workers registered here, by expiry"""
    schedules: Timer
    """schedules that are not paused"""
    blocked: Timer
    """members of flows that wait for others, or for the release of their flow, by when they were created"""
    flows: Timer
    """retained ones, by when they were created"""
    flows_due: Timer
    """staged flows to be given up, and empty ones to be forgotten"""
    flow_backlog: Timer
    """unfinished work of flows, by when it was looked at last"""
    closed: Timer
    """queues that a gate keeps back, by when they open again"""
    held: Timer
    """executions that operators hold, by since when"""
    outbox: Timer
    """reports to gates that are not delivered, by filing time"""
    lag_ms: int
    """for how long the earliest thing is due that nobody has done"""
    behind_ms: int
    """for how long unfinished work of flows waits"""
    undelivered_ms: int
    """for how long a message to gates waits"""
    totals: Totals
    """totals of executions since the store was created"""
    flow_totals: Totals
    """totals of flows since the store was created; skipped counts members; a reopened flow counts again"""
    siblings: SiblingCancels
    tokens_refused: int
    """refused tokens of waitpoints since the store was created: unknown ones, or of a removed key"""


class PartitionList(TypedDict):
    """What listPartitions answers."""

    items: list[Partition]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class TokenKey(TypedDict):
    kid: str
    fingerprint: str
    """fingerprint of its secret, 16 hex digits"""
    current: bool
    """it signs"""
    expires_at: NotRequired[Timestamp]
    """absent for the current one"""
    open_waitpoints: int
    """under it"""
    needed_until: NotRequired[Timestamp]
    """when the last of them ends; far in the future if one has no end"""


class PartitionKeys(TypedDict):
    partition: int
    current: NotRequired[str]
    """the id of the key that signs"""
    keys: list[TokenKey]
    error: NotRequired[str]


class TokenKeyList(TypedDict):
    """What listTokenKeys answers."""

    items: list[PartitionKeys]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class RotateBody(TypedDict):
    """What rotateTokenKeys takes."""

    kid: str
    """id of the key that signs from now on; this process must have it"""
    grace_ms: NotRequired[int]
    """how long tokens of the key before stay good; default a day"""
    force: NotRequired[bool]
    """although tokens of open waitpoints then end before they are needed"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class KeyRotated(TypedDict):
    partition: int
    previous: NotRequired[str]
    """the key that signed until now"""
    already: bool
    """it was the key before"""
    forgotten_keys: int
    """keys whose grace was over"""
    open_waitpoints: int
    """under the key before"""
    error: NotRequired[str]
    """why it was not done there; repeat the request"""


class RotatedList(TypedDict):
    """What rotateTokenKeys answers."""

    items: list[KeyRotated]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


Change = TypedDict(
    "Change",
    {
        "at": Timestamp,
        # the verb
        "action": str,
        # to what kind of thing
        "on": str,
        # its id or name; the filter of a bulk action
        "name": str,
        "namespace": NotRequired[str],
        # author of the change; over the API the name of the token; empty if unknown
        "by": str,
        # api, cli, go or link, with address or host; or an assistant first
        "from": NotRequired[str],
        # the reason that was given
        "why": NotRequired[str],
        # details, for example the new value
        "detail": NotRequired[str],
        # all of it in a sentence
        "text": str,
    },
)


class ChangePage(TypedDict):
    """What listTrail answers."""

    items: list[Change]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class AttachedSetting(TypedDict):
    scope: Scope
    """{} is everything"""
    gates: list[str]
    """at least these"""


class LaneSetting(TypedDict):
    name: str
    namespace: NotRequired[str]
    state: NotRequired[LaneState]
    """active, paused, draining or disabled"""
    retention_s: NotRequired[dict[str, int]]
    """by completed, failed, cancelled and expired: how many seconds what ended so is kept; 0 is the default"""
    ageing_ms: NotRequired[int]
    """how much waiting outweighs a step of priority, up to a day; 0: none does"""
    weight: NotRequired[int]
    """weight of the namespace in the lane, 1..1000; 0 is the default, 1"""


class IndexChange(TypedDict):
    all: NotRequired[bool]
    """lists of all states in the order of creation; absent: as it is"""
    tags: NotRequired[list[str]]
    """tag keys that can be asked for, at most 8; absent: as they are"""


class SettledSchedule(TypedDict):
    cron: NotRequired[str]
    """minute hour day month weekday"""
    zone: NotRequired[str]
    """of the cron expression, such as Europe/Berlin; default UTC"""
    every_ms: NotRequired[int]
    """instead of cron"""
    anchor: NotRequired[Timestamp]
    """a time that every_ms counts from; default 1970-01-01T00:00:00Z"""
    first_run_now: NotRequired[bool]
    """run once at the creation as well; a schedule that exists is not run by it"""
    catch_up: NotRequired[CatchUp]
    """last (default), all or skip: which of the instants that were missed are run"""
    overlap: NotRequired[Overlap]
    """allow (default) or skip, while the last one has not ended"""
    until: NotRequired[Timestamp]
    """no run after this time; default without end"""
    max_runs: NotRequired[int]
    """it ends after so many runs since its creation; 0: without end"""
    jitter_ms: NotRequired[int]
    """each run starts up to so much later, at most 24 h and halfway to the next run"""
    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    namespace: NotRequired[str]
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""
    input: NotRequired[Any]
    """any JSON value, at most 1 MiB; the input of the handler. Default null"""
    input_base64: NotRequired[Base64]
    """instead of input, bytes that are not JSON"""
    nodes: NotRequired[list[NodeBody]]
    """each run submits a flow of these nodes, which say lane, priority, times, retries, retention and capabilities
    themselves
    """
    owned_by: NotRequired[str]
    """who declares it, if not the owner of the file; empty: nobody"""


class TriggerSetting(TypedDict):
    name: str
    subject: str
    """of the events that start something"""
    where: NotRequired[dict[str, Any]]
    """fields of the data, by names joined by dots, and the string, number, boolean or null that each must have; at most
    8
    """
    kind: str
    """kind of the work; for a flow, the name of flows of this shape"""
    namespace: NotRequired[str]
    lane: NotRequired[str]
    priority: NotRequired[int]
    """0..9000, higher first"""
    capabilities: NotRequired[list[str]]
    deadline_ms: NotRequired[int]
    """milliseconds"""
    retries: NotRequired[int]
    """0..1000, default 3"""
    timeout_ms: NotRequired[int]
    """timeout of one attempt"""
    retention_s: NotRequired[dict[str, int]]
    """seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"""
    tags: NotRequired[dict[str, str]]
    gates: NotRequired[list[str]]
    """gates by name"""
    limits: NotRequired[list[KeyLimit]]
    """limits of keys"""


class SettingsBody(TypedDict):
    """What planSettings takes."""

    owner: NotRequired[str]
    """who declares the schedules; required with schedules"""
    prune: NotRequired[bool]
    """also remove what is not named: schedules of the owner, and tags of the index"""
    gates: NotRequired[dict[str, Gate]]
    """budgets, quotas and governors of services, by name"""
    attached: NotRequired[list[AttachedSetting]]
    """scopes, with gates for what is created there"""
    lanes: NotRequired[list[LaneSetting]]
    index: NotRequired[IndexChange]
    """by what executions can be found"""
    schedules: NotRequired[dict[str, SettledSchedule]]
    """by name"""
    triggers: NotRequired[list[TriggerSetting]]


SettingField = TypedDict(
    "SettingField",
    {
        "name": str,
        # absent: it is not set
        "was": NotRequired[Any],
        # absent: it will not be set
        "is": NotRequired[Any],
    },
)


class SettingChange(TypedDict):
    on: str
    """gate, scope, lane, store, schedule or trigger, as in the audit trail"""
    name: NotRequired[str]
    namespace: NotRequired[str]
    """of a lane or a trigger"""
    action: str
    """create, change or remove"""
    field: str
    """where the file has it; of what is removed: the owner"""
    revision: NotRequired[int]
    """of the gate that is changed"""
    fields: NotRequired[list[SettingField]]
    """members that differ"""


class SettingsPlan(TypedDict):
    """What planSettings answers."""

    changes: list[SettingChange]
    """in the order in which they are to be made"""
    same: int
    """settings that are as the file says"""


class SettingLeftOut(TypedDict):
    on: str
    """scope, schedule or trigger"""
    name: str
    why: str


class SettingsFile(TypedDict):
    """What getSettings answers."""

    settings: SettingsBody
    """what planSettings takes. Applied to this store it changes nothing"""
    left_out: NotRequired[list[SettingLeftOut]]
    """what no file can say, so that it is not in the settings"""


class IndexedTag(TypedDict):
    key: str
    ready: bool
    """lists use it"""
    values: int
    """how many values the partition has that has most of them"""
    full_at: NotRequired[Timestamp]
    """since when a partition has too many values"""


class Index(TypedDict):
    """What getIndex answers, what setIndex answers."""

    all: bool
    """lists of all states are in the order of creation"""
    tags: list[IndexedTag]
    """tags whose values can be asked for, by key"""
    building: NotRequired[bool]
    """what was there before is not in it yet"""


class IndexBody(TypedDict):
    """What setIndex takes."""

    all: NotRequired[bool]
    """lists of all states in the order of creation; absent: as it is"""
    tags: NotRequired[list[str]]
    """tag keys that can be asked for, at most 8; absent: as they are"""
    reason: NotRequired[str]
    """the audit trail and a history keep 1 KiB of it; of a hold at most 256"""


class Lane(TypedDict):
    namespace: str
    name: str
    state: LaneState
    """active, paused, draining or disabled"""
    retention_s: NotRequired[dict[str, int]]
    """seconds that it keeps what ended in it, by outcome, where it does not keep it as long as is usual: 24 h of what
    completed, else 14 days
    """
    since: NotRequired[Timestamp]
    """when somebody said something of it last"""
    by: NotRequired[str]
    """author of that change"""
    ageing_ms: NotRequired[int]
    """waiting that outweighs a step of priority; absent where no waiting does"""
    weight: NotRequired[int]
    """weight of the namespace in the lane; absent for the default, 1"""
    mixed: NotRequired[bool]
    """partitions differ, because a change did not reach all of them: make it again"""
    routes: int
    """queues, over all partitions"""
    waiting: int
    """executions"""


class LaneList(TypedDict):
    """What listLanes answers."""

    items: list[Lane]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class Queue(TypedDict):
    namespace: str
    lane: str
    kind: str
    capabilities: NotRequired[list[str]]
    """capabilities that a worker needs"""
    lane_state: LaneState
    """state of the lane in most partitions: active, paused, draining or disabled"""
    mixed: NotRequired[bool]
    """partitions differ in the lane's state"""
    waiting: int
    """executions"""
    oldest_at: NotRequired[Timestamp]
    """creation of the oldest that waits"""
    highest_priority: int
    """highest priority of the next claims, over all partitions"""
    stored: int
    """executions in any state, until they are purged"""
    drift: NotRequired[str]
    """damage of the rows"""


class QueueList(TypedDict):
    """What listQueues answers."""

    items: list[Queue]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class WorkerSession(TypedDict):
    partition: int
    id: str
    expires_at: NotRequired[Timestamp]
    alive: bool
    """not given up, and not expired on the server's clock"""
    dead: NotRequired[bool]
    """given up: the tick takes what it holds"""
    reason: NotRequired[str]
    """why an operator gave it up"""
    held: int
    """executions"""


class Worker(TypedDict):
    instance: str
    pool: NotRequired[str]
    namespaces: NotRequired[list[str]]
    """namespaces that it serves, its own first; * is every one. Over HTTP * is for tokens that may see all, and the
    default is those of the token, or default
    """
    lanes: NotRequired[list[str]]
    """over HTTP the default is default"""
    lane_weights: NotRequired[dict[str, int]]
    """how its lanes share its claims while several have work, where a weight is not 1: 1..1000 for a lane of lanes"""
    kinds: NotRequired[list[str]]
    """kinds that it handles, over HTTP 1..256"""
    capabilities: NotRequired[list[str]]
    """capabilities that executions may require"""
    concurrency: NotRequired[int]
    """its slots: executions that it can run at once. Over HTTP for people, and 1 by default"""
    host: NotRequired[str]
    """for operators"""
    pid: NotRequired[int]
    """for operators"""
    library_revision: NotRequired[int]
    """revision of the library that the process would load"""
    version: NotRequired[str]
    """version of the application"""
    labels: NotRequired[dict[str, str]]
    """labels of the application"""
    started_at: NotRequired[Timestamp]
    truncated: NotRequired[bool]
    """its lists were cut, because they are very long"""
    lease_ms: NotRequired[int]
    """of what is claimed for it over HTTP, how long it has an execution without renewing it: 2000..600000, default
    30000
    """
    alive: bool
    dead: NotRequired[bool]
    """an operator gave it up; one that is neither alive nor dead is lost"""
    reason: NotRequired[str]
    """why it was given up"""
    registered: bool
    """false: its registration was forgotten, and it still holds something"""
    registered_at: NotRequired[Timestamp]
    """first, by this process"""
    seen_at: NotRequired[Timestamp]
    """when it renewed its registration last"""
    expires_at: NotRequired[Timestamp]
    """expiry of the registration, unless it is renewed"""
    in_flight: int
    """executions that its sessions hold"""
    reported: NotRequired[int]
    """handlers that were at work when it was last seen, each in one of its slots"""
    stuck: NotRequired[int]
    """those of them that ignored the end of their context: their slots are not free until they return"""
    sessions: NotRequired[list[WorkerSession]]
    """its leases: open ones, and dead ones that still hold something; for operators"""


class WorkerList(TypedDict):
    """What listWorkers answers."""

    items: list[Worker]
    next_cursor: NotRequired[str]
    """absent after the last page"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not in the list"""


class Version(TypedDict):
    version: str
    """as workers say it; empty: those that say none, or a version that was forgotten"""
    workers: int
    """live ones"""
    kinds: NotRequired[list[str]]
    """kinds that these claim"""
    since: NotRequired[Timestamp]
    """when the first of these registered"""
    seen_at: NotRequired[Timestamp]
    """when a worker of it was last heard of"""
    active: int
    """executions that its workers hold"""
    suspended: int
    """suspended executions that it claimed last, like the counts that follow"""
    delayed: int
    waiting: int
    """waiting or held ones: they go on, on a worker of any version unless they require one"""
    oldest_claimed_at: NotRequired[Timestamp]
    """when it claimed the first of those that are suspended, delayed or waiting"""


class Versions(TypedDict):
    """What listVersions answers."""

    items: list[Version]
    """the version whose workers came last in front"""
    more: NotRequired[list[PublicState]]
    """states of which only 10,000 executions were looked at, so that counts may be too low"""
    missing: NotRequired[str]
    """which partitions did not answer, so that what they have is not counted"""


class Schemas(TypedDict):
    """What listSchemas answers."""

    namespace: str
    kinds: dict[str, KindSchemas]
    """by kind, those of which workers say something"""


class Percentiles(TypedDict):
    count: int
    """of how many; 0: there are no percentiles"""
    p50_ms: int
    """milliseconds"""
    p90_ms: int
    """milliseconds"""
    p99_ms: int
    """milliseconds"""


class TimesStep(TypedDict):
    at: Timestamp
    """when it begins"""
    completed: int
    """executions"""
    failed: int
    """executions whose attempt failed, and that are not tried again"""
    retried: int
    """attempts that failed and are tried again"""
    other: int
    """runs that ended otherwise: suspended, delayed, continued, released, cancelled by the handler"""
    waited: Percentiles
    """of first attempts, but of members of flows: from the creation, a requested delay included, until the handler
    began
    """
    ran: Percentiles
    """of what completed, failed or is tried again: its last run"""


class TimesSum(TypedDict):
    completed: int
    """executions"""
    failed: int
    """executions whose attempt failed, and that are not tried again"""
    retried: int
    """attempts that failed and are tried again"""
    other: int
    """runs that ended otherwise: suspended, delayed, continued, released, cancelled by the handler"""
    waited: Percentiles
    """of first attempts, but of members of flows: from the creation, a requested delay included, until the handler
    began
    """
    ran: Percentiles
    """of what completed, failed or is tried again: its last run"""


class KindTimes(TypedDict):
    kind: str
    """empty: those above the 256 kinds of a namespace that are told apart"""
    completed: int
    """executions"""
    failed: int
    """executions whose attempt failed, and that are not tried again"""
    retried: int
    """attempts that failed and are tried again"""
    other: int
    """runs that ended otherwise: suspended, delayed, continued, released, cancelled by the handler"""
    waited: Percentiles
    """of first attempts, but of members of flows: from the creation, a requested delay included, until the handler
    began
    """
    ran: Percentiles
    """of what completed, failed or is tried again: its last run"""


class Times(TypedDict):
    """What readTimes answers."""

    namespace: str
    """* for all"""
    kind: NotRequired[str]
    """absent: all kinds together"""
    since: Timestamp
    """the begin of the first step, a whole minute of the store's clock"""
    step_ms: int
    """how long a step is: whole minutes"""
    steps: list[TimesStep]
    """all of them, oldest first, also those in which nothing ended"""
    total: TimesSum
    """of all steps together"""
    kinds: NotRequired[list[KindTimes]]
    """with by_kind: of each kind, what ran most often first"""


class Self(TypedDict):
    """What whoAmI answers."""

    name: str
    role: Role
    namespaces: NotRequired[list[str]]
    """absent: all of them"""
    operations: list[str]
    """the operations of this document that they may use"""


class UsedUp(TypedDict):
    gate: str
    waiting: int
    """executions"""


class AdminOverview(TypedDict):
    at: Timestamp
    waiting: int
    oldest_at: NotRequired[Timestamp]
    """creation of the oldest that waits"""
    stored: int
    """executions in any state"""
    delayed: int
    suspended: int
    held: int
    waiting_children: int
    """wait for others"""
    active: int
    ended: int
    """and still stored"""
    closed: int
    """queues that a gate keeps back, by partition"""
    gates_used_up: NotRequired[list[UsedUp]]
    """gates that have no room for the work that waits for them, over HTTP at most ten, those for which most waits in
    front
    """
    outbox: int
    """messages that gates have not got yet"""
    schedules: int
    """schedules that are not paused"""
    totals: Totals
    """totals of executions since the store was created"""
    created_per_s: float
    """over the last ten seconds, like the rates that follow"""
    ended_per_s: float
    completed_per_s: float
    failed_per_s: float
    """failed or expired"""
    workers: int
    """live workers"""
    workers_lost: int
    """workers lost within the last hour"""
    slots: int
    """executions that the workers can run at once"""
    partitions: int
    """partitions that answer"""
    partitions_silent: int
    """partitions that do not answer"""
    partitions_maintained: int
    """a process runs their timers"""
    partitions_frozen: int
    partitions_overdue: int
    """no process runs their timers"""
    lag_ms: int
    """for how long the earliest thing is due that nobody has done"""


class Point(TypedDict):
    at: Timestamp
    waiting: int
    active: int
    suspended: int
    completed_per_s: float
    failed_per_s: float


class Overview(TypedDict):
    """What getOverview answers."""

    now: AdminOverview
    queues: list[Queue]
    """the fifty with most work"""
    history: list[Point]
    """of the last hour, every ten seconds, as far as this process has looked; empty for a token that is bound to
    namespaces
    """


class WatchedOverview(TypedDict):
    """What followOverview answers."""

    now: AdminOverview
    queues: list[Queue]
    """the fifty with most work"""


class Health(TypedDict):
    """What healthz answers, what readyz answers."""

    status: str
