// Code generated from the types of the HTTP API; DO NOT EDIT. Write it again with FLOWFABRIC_GOLDEN=write go test
// ./httpapi -run TestMakesTheModels.
//
// Whole numbers of the API are below 2^53: a number holds them exactly. Only values that programs stored or sent
// (payloads, steps, results, frames) can have larger ones, which JSON.parse rounds. A newer server may send further
// members, and further values of the enumerations.

/** A time as RFC 3339 has it, such as 2026-01-31T17:00:00Z. */
export type Timestamp = string

/** Bytes in base64. */
export type Base64 = string

/** AttemptType says why an attempt exists. */
export type AttemptType =
  | "initial"
  | "retry"
  | "reclaim"
  | "replay"
  | "continue"
  | "resumed"

/** CancellationPolicy says what becomes of the members of a cancelled flow. */
export type CancellationPolicy =
  | "cancel_all"
  | "cancel_pending"
  | "flow_only"

/** CatchUp says what happens to instants that nobody fired in time, because no process maintained the store. */
export type CatchUp =
  | "last"
  | "skip"
  | "all"

/**
 * Cause is what ended a wait: one of the constants or, only in a Record, "cancelled", "deadline" or "rewound": the
 * execution was cancelled, its deadline passed, or it went on from an earlier step.
 */
export type Cause =
  | "signal"
  | "message"
  | "children"
  | "operator"
  | "timeout"
  | "already_satisfied"
  | (string & {})

/** FlowState is where a flow stands. */
export type FlowState =
  | "staging"
  | "open"
  | "completed"
  | "failed"
  | "cancelled"

/** HardAction decides what happens to an execution whose report would pass a hard limit. */
export type HardAction =
  | "reject"
  | "fail"
  | "block"
  | "ask"

/** LaneState says whether a lane accepts and dispatches work. */
export type LaneState =
  | "active"
  | "paused"
  | "draining"
  | "disabled"

/** Overlap says what happens when an instant comes while the schedule's previous execution has not ended. */
export type Overlap =
  | "allow"
  | "skip"

/** PublicState is the one word that producers and dashboards show. */
export type PublicState =
  | "waiting"
  | "delayed"
  | "waiting_gate"
  | "waiting_children"
  | "active"
  | "suspended"
  | "completed"
  | "failed"
  | "cancelled"
  | "expired"
  | "skipped"

/** Role decides which routes a Principal may use. */
export type Role =
  | "viewer"
  | "producer"
  | "operator"
  | "admin"
  | "worker"

/** Status is the result of a check. */
export type Status =
  | "ok"
  | "warn"
  | "fail"
  | "skip"

/** TailKind says what a TailEvent tells. */
export type TailKind =
  | "attempt"
  | "gap"
  | "resumed"
  | "frame"
  | "suspended"
  | "attempt_end"
  | "retry"
  | "end"

/** Every refusal. */
export interface Problem {
  type: string
  title: string
  status: number
  detail?: string
  code: string
  field?: string
  request_id: string
  /** the id under which a submission that was not answered may still happen */
  execution?: string
  /** of a change that each partition makes by itself: those that did not make it. Repeat the request */
  failed_partitions?: number
  /** that were asked to make it */
  partitions?: number
}

export interface KeyLimit {
  key: string
  /** how many run at once */
  concurrency?: number
  /** how many start within per_ms */
  rate?: number
  /** milliseconds */
  per_ms?: number
}

/** What submit takes. */
export interface Submission {
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  delay_ms?: number
  delay_until?: Timestamp
  /** milliseconds */
  deadline_ms?: number
  deadline_at?: Timestamp
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  /** a second submission with an equal key and input is answered with the first one */
  idempotency_key?: string
  /** only one has it until it has ended; a second submission is answered with that one */
  unique_key?: string
  /** the key stays taken for so long at least */
  key_window_ms?: number
  /**
   * further submissions replace the input of an execution that was never claimed, and put it off by debounce_ms again
   */
  debounce_key?: string
  /** how long it waits for a further submission under its debounce_key */
  debounce_ms?: number
  /** it may run at the latest so long after its creation */
  debounce_max_ms?: number
  /** any JSON value, at most 1 MiB; the input of the handler. Default null */
  input?: unknown
  /** instead of input, bytes that are not JSON */
  input_base64?: Base64
}

/** What submit answers. */
export interface Submitted {
  id: string
  /** its key led to an execution that existed */
  duplicate: boolean
  /** its debounce key replaced the input of that execution */
  replaced?: boolean
}

/** What submitBatch takes. */
export interface Batch {
  /** 1..1000 */
  items: Submission[]
}

export interface BatchItem {
  id?: string
  duplicate?: boolean
  /** why it was refused; the others are not affected */
  problem?: Problem
}

/** What submitBatch answers. */
export interface BatchAnswer {
  items: BatchItem[]
}

export interface Failure {
  /** the reference page of categories lists them */
  category: string
  message?: string
}

export interface Listed {
  /** absent for an entry that names none */
  id?: string
  /** damage of the entry, for example that its execution is missing; then the rest may be empty */
  drift?: string
  /**
   * waiting, waiting_gate, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or
   * skipped
   */
  state: PublicState
  /**
   * why no worker runs it now: waiting_for_worker, held_by_operator, waiting_for_delay, …; absent: one does, or it has
   * ended
   */
  blocking_reason?: string
  namespace: string
  lane: string
  kind: string
  /** capabilities that its worker needs */
  capabilities?: string[]
  /** gates that must admit it before it runs, and limits of keys, in words */
  gates?: string[]
  priority: number
  /** attempts started so far, and so the number of the last one */
  attempts: number
  /** initial, retry, reclaim or replay */
  attempt_type?: AttemptType
  epoch?: number
  session?: string
  /** the instance that has it, or had it last */
  worker?: string
  /** retries used so far; a replay starts over at 0 */
  retries: number
  /** reclaims used so far; a replay starts over at 0 */
  reclaims: number
  created_at?: Timestamp
  started_at?: Timestamp
  claimed_at?: Timestamp
  ended_at?: Timestamp
  delay_until?: Timestamp
  deadline_at?: Timestamp
  /** failure of the last failed attempt; absent after completion */
  failure?: Failure
  /** the person or token that asked for it, if one was named */
  cancelled_by?: string
  /**
   * operator_override (somebody who asked for it), owner (its worker), flow_cascade (its flow, or who depends on it) or
   * system_timeout_policy (its wait lasted too long)
   */
  cancel_source?: string
  tags?: Record<string, string>
  /** when it was suspended or held; of those only */
  since?: Timestamp
  /** time of the purge; ended executions only */
  purge_at?: Timestamp
}

/** What listExecutions answers. */
export interface ExecutionPage {
  items: Listed[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

/** What countExecutions answers. */
export interface Counts {
  /** by state; held ones apart from those that wait */
  states: Record<string, number>
  /** the counts are those of the newest ones, about 10,000 */
  more?: boolean
}

export interface FailureGroup {
  /** names the group where a filter wants a shape: it takes exactly this kind, category and shape */
  key: string
  kind: string
  category: string
  /** the message with placeholders for what differs: <n>, <id>, <text>, <path>, <time>; at most 200 characters */
  shape: string
  count: number
  /** when the first of them ended */
  first_at: Timestamp
  /** when the last of them ended */
  last_at: Timestamp
  /** up to three, the newest first */
  examples: string[]
}

/** What listFailures answers. */
export interface Failures {
  /** the largest group first */
  items: FailureGroup[]
  /** there are older failures, which are in no count: 10,000 were looked at */
  more?: boolean
  /** when the oldest failure ended that is counted */
  from?: Timestamp
}

export interface ForkOf {
  id?: string
  /** it began with the steps recorded before this one; absent: with all */
  step?: string
}

export interface Progress {
  percent?: number
  message?: string
  at?: Timestamp
}

export interface Wait {
  /** name in the handler */
  name: string
  since?: Timestamp
  /** absent: it has no end of its own */
  timeout_at?: Timestamp
}

export interface AttemptRecord {
  /** number of the attempt, 1 for the first */
  index: number
  type: AttemptType
  /**
   * ended_failure, interrupted_reclaimed, ended_cancelled, ended_success (before a replay), rewound (to an earlier
   * step) continued (with another input) or forked (the fork has no more of it)
   */
  state: string
  claimed_at?: Timestamp
  ended_at?: Timestamp
  category?: string
  message?: string
  worker?: string
  session?: string
  epoch?: number
  claim?: number
}

/** What getExecution answers. */
export interface Snapshot {
  id: string
  /**
   * waiting, waiting_gate, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or
   * skipped
   */
  state: PublicState
  /**
   * why no worker runs it now: waiting_for_worker, held_by_operator, waiting_for_delay, …; absent: one does, or it has
   * ended
   */
  blocking_reason?: string
  namespace: string
  lane: string
  kind: string
  /** capabilities that its worker needs */
  capabilities?: string[]
  /** gates that must admit it before it runs, and limits of keys, in words */
  gates?: string[]
  priority: number
  /** attempts started so far, and so the number of the last one */
  attempts: number
  /** initial, retry, reclaim or replay */
  attempt_type?: AttemptType
  epoch?: number
  session?: string
  /** the instance that has it, or had it last */
  worker?: string
  /** retries used so far; a replay starts over at 0 */
  retries: number
  /** reclaims used so far; a replay starts over at 0 */
  reclaims: number
  created_at?: Timestamp
  started_at?: Timestamp
  claimed_at?: Timestamp
  ended_at?: Timestamp
  delay_until?: Timestamp
  deadline_at?: Timestamp
  /** failure of the last failed attempt; absent after completion */
  failure?: Failure
  /** the person or token that asked for it, if one was named */
  cancelled_by?: string
  /**
   * operator_override (somebody who asked for it), owner (its worker), flow_cascade (its flow, or who depends on it) or
   * system_timeout_policy (its wait lasted too long)
   */
  cancel_source?: string
  tags?: Record<string, string>
  creator?: string
  max_retries: number
  /** the attempt that it is in: attempts, and one more while it waits for a replay */
  attempt: number
  lease_expires_at?: Timestamp
  /** of the application whose worker has it or had it last, if it is known */
  version?: string
  replays: number
  /** how often it went on with another input */
  continues: number
  /** the execution that it was made of, by a fork */
  fork_of?: ForkOf
  /** time of the last creation, claim, suspension, or end of an attempt or of the execution */
  changed_at?: Timestamp
  cancel_reason?: string
  input_bytes: number
  /** recorded steps */
  steps: number
  /** progress of the current or last attempt */
  progress?: Progress
  /** flow that it is a node or a child of */
  flow?: string
  /** its name in the flow */
  node?: string
  /** its wait while it is suspended */
  wait?: Wait
  /**
   * how long it has the key that it was submitted with: until_ended, retained, until_time (see key_until) or
   * until_claimed (a debounce key)
   */
  key_held?: string
  key_until?: Timestamp
  /** how many further submissions under its debounce key it took in, each of which replaced the one before */
  replaced?: number
  /** ended attempts that were not the last, and a failed last one */
  attempt_log?: AttemptRecord[]
}

/** What getInput answers, what getStep answers. */
export interface Payload {
  /** if it is not */
  base64?: Base64
  /** base64 is as it is stored: the server has no key for it */
  encrypted?: boolean
  /** if it is JSON: any JSON value */
  value?: unknown
}

/** What getResult answers. */
export interface Result {
  /** completed, failed, cancelled, expired or skipped */
  state: string
  /** what the handler returned, if it completed */
  output?: Payload
  failure?: Failure
  /** who cancelled it: a person or token, if one was named */
  by?: string
  /** what kind of source cancelled it: operator_override, owner (its worker), flow_cascade or system_timeout_policy */
  source?: string
  /** why it was cancelled */
  reason?: string
  attempts?: number
}

/** What getResult answers. */
export interface Unfinished {
  state: string
}

export interface FlowfabricEvent {
  at?: Timestamp
  kind: string
  /** 1 for the first */
  attempt?: number
  epoch?: number
  session?: string
  worker?: string
  /** the person or token that asked for it */
  by?: string
  /**
   * of a cancellation and an end what kind of source cancelled it, as in the result; of a resumption the type of the
   * signal's source, message, operator or auto_resume
   */
  source?: string
  /** from where, if that is known */
  from?: string
  /** of an end how it ended, of a replay how the run before had */
  state?: PublicState
  detail?: string
  /**
   * of an end, a revocation, a cancellation, a hold or a replay; of a suspension the name under which the handler
   * waits, and of its end the name of the signal, which is the choice that a person made
   */
  reason?: string
  until?: Timestamp
  /** the same in a sentence */
  text: string
}

/** What getHistory answers. */
export interface History {
  items: FlowfabricEvent[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

/** What explain answers. */
export interface Explanation {
  id: string
  state?: PublicState
  /** the stable name of the explanation */
  reason: string
  sentence: string
  /** the next event that moves it */
  next: string
  /** when that happens by itself, at the latest */
  at?: Timestamp
  /** live workers that take its kind from its lane */
  serving?: number
  /** those of them that have all its capabilities */
  capable?: number
  /** how many are before it in its queue */
  ahead?: number
  closed_until?: Timestamp
  closed_why?: string
}

export interface Choice {
  /** 1..128 bytes; an answer is a signal of this name */
  name: string
  /** at most 128 bytes; default the name */
  label?: string
}

export interface Question {
  /** 1..200 bytes, one line of plain text */
  title: string
  /** at most 4 KiB; pages show simple Markdown, and no HTML */
  text?: string
  /** 2..8; default approve and reject */
  choices?: Choice[]
  /** at most 128 bytes: who should answer, for lists */
  assignee?: string
  /** an object, which the answer may change */
  arguments?: unknown
  /** JSON Schema that changed arguments must fit */
  schema?: unknown
}

export interface Waitpoint {
  id: string
  key: string
  /** of the event that it takes */
  subject?: string
  /** pending (opened before its wait), active, closed or expired */
  state: string
  /** id of the key that signs its token */
  kid?: string
  /** 16 hex digits */
  token_fingerprint?: string
  created_at?: Timestamp
  /** when an execution began to wait for it */
  activated_at?: Timestamp
  /** pending: by itself; active: the end of the wait */
  expires_at?: Timestamp
  /** the wait on it, now or earlier */
  suspension?: string
  /** of several, the one that it takes answers to */
  question?: Question
  /** number of its signals */
  signals: number
  /** number of signals that count for the wait */
  matched: number
  last_signal_at?: Timestamp
  closed_at?: Timestamp
  close_reason?: string
  /** when a token was last refused for it */
  refused_at?: Timestamp
}

/** What getWait answers. */
export interface Approval {
  execution: string
  namespace: string
  lane: string
  kind: string
  /** capabilities that its worker needs */
  capabilities?: string[]
  /** gates that must admit it before it runs, and limits of keys, in words */
  gates?: string[]
  /** if it is a node or a child of one */
  flow?: string
  /** the execution above it that no handler made */
  root?: string
  /** names of the children from the root to it */
  path?: string[]
  /** under which the handler waits */
  name: string
  reason?: string
  question?: Question
  since?: Timestamp
  timeout_at?: Timestamp
  /** those that are open; none if only an operator or the time ends the wait */
  waitpoints: Waitpoint[]
}

/** What listWaitpoints answers. */
export interface WaitpointList {
  items: Waitpoint[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface StepRecord {
  /** name in the handler; one entry for each attempt that failed in the step, and one for the recorded value */
  name: string
  /**
   * step; or wait (an answer), waitpoint (opened before a wait), messages (what a receipt took from a mailbox; its name
   * is the mailbox, · and a number) or children (how those of a wait ended)
   */
  kind: string
  /** the attempt that ran it, 1 for the first */
  attempt: number
  started_at?: Timestamp
  ended_at?: Timestamp
  /** size of the value, at most 256 KiB; 0 if it failed */
  bytes: number
  /** recorded, or failed: the attempt failed with the error of this step */
  state: string
  error?: string
}

/** What listSteps answers. */
export interface StepList {
  items: StepRecord[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface Message {
  /** its place among all messages of the execution, from 1 */
  number: number
  mailbox: string
  /** when the server accepted it */
  sent_at?: Timestamp
  /** sender, as the sender claims */
  by?: string
  /** json, utf8 or bytes, of the payload */
  encoding?: string
  /** what a program stored or sent */
  payload: Payload
}

/** What listMessages answers. */
export interface Mailboxes {
  /** messages that came so far */
  total: number
  /** those that nobody has received yet */
  waiting: number
  /** stored size of these messages */
  bytes: number
  /** the oldest of these messages; at most 100 and 128 KiB */
  items: Message[]
}

/** What sendMessage takes. */
export interface MessageBody {
  /** 1..96 bytes of printable ASCII; it needs no opening */
  mailbox: string
  /** any JSON value, at most 64 KiB; default null */
  payload?: unknown
  /** instead of payload, bytes that are not JSON */
  base64?: Base64
  /** 1..256 bytes: a repeat is recognised among the last 1,000 messages of the execution */
  idempotency_key?: string
}

/** What sendMessage answers. */
export interface Sent {
  /** its place among all messages of the execution, from 1 */
  number: number
  /** messages of the execution that nobody has received yet */
  waiting: number
  /** a message with this key came before; number is that one's */
  duplicate: boolean
}

/** What getSummary answers. */
export interface Summary {
  /** 1 for the first */
  attempt: number
  /** deltas merged into it so far */
  version: number
  /** a JSON object */
  document?: unknown
  /** the document is left out: the server has no key for it */
  encrypted?: boolean
  first_at?: Timestamp
  updated_at?: Timestamp
  /** payload bytes of all frames that the attempt appended so far, also of trimmed ones */
  stream_bytes: number
}

export interface Frame {
  cursor: string
  sequence: number
  type?: string
  correlation?: string
  /** its writer, for example a model or a tool */
  source?: string
  produced_at?: Timestamp
  /** the payload is as stored: the server has no key for it */
  encrypted?: boolean
  /** durable, summary or best_effort */
  mode: string
  summary_version?: number
  run?: number
  /** if it is neither */
  base64?: Base64
  /** what it has, if that is a text */
  text?: string
  /** if it is JSON: any JSON value */
  value?: unknown
}

/** What listFrames answers. */
export interface FramePage {
  items: Frame[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface LogLine {
  cursor: string
  attempt: number
  at: Timestamp
  /** debug, info, warn or error */
  level: string
  message?: string
  /** an object; names in groups have dots */
  attributes?: unknown
  /** lines before this one that the worker could not store */
  dropped?: number
}

/** What listLogs answers. */
export interface LogPage {
  items: LogLine[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface Child {
  path: string[]
  id: string
}

export interface Covered {
  attempt: number
  recorded: number
}

export interface Resumption {
  run: number
  epoch?: number
  /** why the run before it stopped */
  reason?: string
  first?: string
  /** sequence of the last recorded frame: those after it are repeated */
  recorded: number
}

export interface SuspendRecord {
  /** the execution's state now */
  state: PublicState
  /** flow that the execution is a node or a child of */
  flow?: string
  /** the execution above it that no handler made */
  root?: string
  /** names of the children from the root to it */
  path?: string[]
  /** none: it was never suspended */
  id?: string
  /** under which the handler waits */
  name: string
  reason?: string
  /** of several the first open one */
  question?: Question
  on_timeout?: string
  created_at?: Timestamp
  timeout_at?: Timestamp
  /** milliseconds */
  resume_after_ms?: number
  /** number of its signals */
  signals: number
  /** number of signals that count */
  matched: number
  last_signal_at?: Timestamp
  /** none: it is open */
  closed_at?: Timestamp
  close_reason?: string
  cause?: Cause
  /** signal, operator, auto_resume, timeout, cancelled, deadline or rewound */
  trigger?: string
  /** person or token that ended it */
  by?: string
  /** every one that is still known, also of earlier suspensions */
  waitpoints: Waitpoint[]
}

/** What followExecution answers. */
export interface TailEvent {
  /** attempt, resumed, frame, gap, suspended, attempt_end, retry or end; also the name of the event */
  kind: TailKind
  /** 1 for the first; absent if none began */
  attempt?: number
  /** behind this event, the same for every reader */
  position: string
  /** whose event this is, if a child's; all else is then of it */
  child?: Child
  /** type of the attempt that begins */
  attempt_type?: AttemptType
  at?: Timestamp
  /** frames of earlier attempts that stay */
  reused?: Covered[]
  frame?: Frame
  resumed?: Resumption
  suspension?: SuspendRecord
  trimmed?: number
  missed?: number
  /** why the attempt ended */
  reason?: string
  category?: string
  message?: string
  /** at the end: the person or token that cancelled or rewound it, if one was named */
  by?: string
  /** at the end: the kind of source that cancelled it */
  source?: string
  /** at the end of an attempt: sequence of the last recorded frame, absent for none; later frames are repeated */
  recorded?: number
  state?: PublicState
}

/** What createStreamToken takes. */
export interface StreamTokenRequest {
  /** how long it is valid, 1..3600 s, default 300 */
  life_s?: number
  /** it also reads record, wait and messages, sends, stops, and answers if an operator made it */
  write?: boolean
  /** with write: who is at the page, for the trail; at most 64 bytes, default browser */
  name?: string
}

/** What createStreamToken answers. */
export interface StreamTokenAnswer {
  access_token: string
  expires_at: Timestamp
}

/**
 * What cancel takes, what stop takes, what hold takes, what unhold takes, what runNow takes, what sealFlow takes, what
 * markWorkerDead takes, what pauseSchedule takes, what resumeSchedule takes, what runSchedule takes, what
 * freezePartition takes, what thawPartition takes.
 */
export interface Why {
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What stop answers. */
export interface Stopped {
  /** the recorded steps of the turn, in their order: what these did is done */
  done: string[]
  /** somebody else had stopped it before */
  already: boolean
  /** who stopped it, if that is known */
  by?: string
}

/** What rewind takes. */
export interface RewindBody {
  /** the step of the handler that is forgotten, with everything that was recorded after it */
  step: string
  /** the attempt that it was seen in: in another one nothing is done; absent for any */
  attempt?: number
  /** what is said in the place of what was said before the step, any JSON; at most 64 KiB */
  message?: unknown
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What rewind answers. */
export interface Rewound {
  /** the attempt that begins next */
  attempt: number
  /** the steps of the handler that are forgotten, in the order in which they were recorded */
  dropped: string[]
  /** a repeat of the call was applied; dropped is not known */
  already?: boolean
}

/** What fork takes. */
export interface ForkBody {
  /** the fork has the steps that were recorded before this one; default: all */
  step?: string
  /** repeated with the same, it makes one fork */
  request?: string
  /** another input, any JSON value of at most 1 MiB; default: that of the execution */
  input?: unknown
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What fork answers. */
export interface Forked {
  id: string
  /** recorded steps, answers and messages that it begins with */
  steps: number
  /** names of the steps that it does not have; what they did is done */
  left?: string[]
  /** the request had made it before */
  already?: boolean
}

/** What replay takes. */
export interface ReplayBody {
  /** replay only: forget the recorded steps */
  from_scratch?: boolean
  /** replay only: forget this step and everything recorded after it */
  from_step?: string
  /** replay only: include successes */
  force?: boolean
  /** id of the request: a repeat with the same id replays once */
  request?: string
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What revoke takes. */
export interface RevokeBody {
  /** only from the worker that has this session */
  held_by?: string
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What resume takes. */
export interface ResumeBody {
  /** resume only if it still is this suspension; default any */
  suspension?: string
  /** before a worker may go on with it, up to 30 days */
  delay_ms?: number
  /** id of the request: a repeat with the same id resumes once */
  request?: string
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What setDelay takes. */
export interface DelayBody {
  /** from now, 0 is at once, at most ten years */
  delay_ms: number
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What setPriority takes. */
export interface PriorityBody {
  /** 0..9000, higher first */
  priority: number
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What setTags takes, what setFlowTags takes. */
export interface TagsBody {
  set?: Record<string, string>
  remove?: string[]
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What purge takes. */
export interface PurgeBody {
  /** of a purge: how long ids stay taken, 24 h to ten years; default 24 h */
  keep_ms?: number
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What answerWaitpoint takes. */
export interface Reply {
  /** name of the signal, 1..128 bytes; default the choice of the payload, if it has one, else signal */
  name?: string
  /** a word for readers of the log, at most 64 bytes */
  category?: string
  /** id in the sender's own system, at most 256 bytes */
  correlation?: string
  idempotency_key?: string
  /**
   * any JSON value, at most 64 KiB; default null. To a question: choice, and maybe comment, by, and arguments, if those
   * of the question are changed
   */
  payload?: unknown
}

/** What answerWaitpoint answers, what signal answers. */
export interface Delivered {
  /** its id, or that of the delivery that it repeats */
  signal: string
  /** its effect on the wait */
  effect: string
  /** another delivery with this idempotency key came first */
  duplicate: boolean
  /** the waitpoint takes more signals */
  open: boolean
}

/** What signal takes. */
export interface Signal {
  token: string
  /** name of the signal, 1..128 bytes; default the choice of the payload, if it has one, else signal */
  name?: string
  /** a word for readers of the log, at most 64 bytes */
  category?: string
  /** id in the sender's own system, at most 256 bytes */
  correlation?: string
  idempotency_key?: string
  /**
   * any JSON value, at most 64 KiB; default null. To a question: choice, and maybe comment, by, and arguments, if those
   * of the question are changed
   */
  payload?: unknown
}

/** What bulk takes. */
export interface BulkBody {
  /** replay, cancel, purge, run_now, priority, hold or unhold */
  action: string
  /** of action priority, which needs it: 0..9000, higher first */
  priority?: number
  /** replay only: forget the recorded steps */
  from_scratch?: boolean
  /** replay only: forget this step and everything recorded after it */
  from_step?: string
  /** replay only: include successes */
  force?: boolean
  /** id of the request: a repeat with the same id replays once */
  request?: string
  /** of a purge: how long ids stay taken, 24 h to ten years; default 24 h */
  keep_ms?: number
  /** only count */
  dry_run?: boolean
  /** how many at most; 0, the default: all */
  limit?: number
  /** cursor of the previous answer, with the same filter and action */
  cursor?: string
  /** calls at a time, 1..256; default 32 */
  concurrency?: number
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What bulk answers. */
export interface BulkResult {
  matched: number
  done: number
  /** changed meanwhile, so that the action does not apply */
  skipped: number
  failed: number
  /** the first ten */
  errors?: string[]
  /** there is more */
  cursor?: string
  /** nothing was changed */
  dry_run?: boolean
}

export interface ChildOutput {
  path: string[]
  id: string
  /** the durable frames, one after the other */
  text: string
  frames: Frame[]
  /** frames that were gone before they could be read */
  lost: number
}

/** What getTranscript answers. */
export interface Transcript {
  /** the durable frames, one after the other */
  text: string
  frames: Frame[]
  /** frames that were gone before they could be read */
  lost: number
  /** children whose output is shown in that of the execution */
  children?: ChildOutput[]
  /** pass it to the events as after */
  position: string
  /** this is the beginning, of about 4 MiB: what follows are its events after position */
  more?: boolean
}

/** What listApprovals answers. */
export interface ApprovalPage {
  items: Approval[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

/** What followEvents answers. */
export interface FeedEvent {
  /** end, lease or signal; also the name of the event */
  kind: string
  execution: string
  at?: Timestamp
  state?: PublicState
  blocking_reason?: string
  /** 1 for the first */
  attempt?: number
  epoch?: number
  session?: string
  worker?: string
  waitpoint_id?: string
  signal_id?: string
  effect?: string
  /** the name of a signal */
  signal?: string
}

/** What publishEvent takes. */
export interface EventBody {
  namespace?: string
  /** what happened, such as order.paid; at most 128 bytes */
  subject: string
  /** a repeat within a day is known by it */
  id?: string
  /** any JSON value, at most 64 KiB; the input of what it starts. Default null */
  data?: unknown
}

/** What publishEvent answers. */
export interface Published {
  /** of the event */
  id: string
  /** how many executions it starts, one for each trigger that it matched */
  starts: number
  /** how many waits it goes to (handler.Task.Expect) */
  resumes: number
  /** it was published before, in the last day, and this call did nothing */
  duplicate: boolean
}

export interface Trigger {
  name: string
  subject: string
  /** values of fields of the data, all of which an event must have */
  where?: Record<string, unknown>
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  deadline_ms?: number
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  creator?: string
  updated_at: Timestamp
  updated_by?: string
  /** how many events matched it */
  matched: number
  /** when the last of them was published */
  last_at?: Timestamp
  /** its id */
  last_event?: string
  /** the code of the last refusal to start something */
  refused?: string
  refused_at?: Timestamp
  refused_event?: string
  /** why the definition cannot be read; then it starts nothing */
  error?: string
}

/** What listTriggers answers. */
export interface TriggerList {
  items: Trigger[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

/** What putTrigger takes. */
export interface TriggerPut {
  /** of the events that start something */
  subject: string
  /**
   * fields of the data, by names joined by dots, and the string, number, boolean or null that each must have; at most 8
   */
  where?: Record<string, unknown>
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  deadline_ms?: number
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What putTrigger answers. */
export interface TriggerSet {
  name: string
  /** it was so before, nothing changed */
  already: boolean
}

export interface NodeBody {
  name: string
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  delay_ms?: number
  delay_until?: Timestamp
  /** milliseconds */
  deadline_ms?: number
  deadline_at?: Timestamp
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  /** any JSON value, at most 1 MiB; the input of the handler. Default null */
  input?: unknown
  /** instead of input, bytes that are not JSON */
  input_base64?: Base64
  /** names of nodes that it depends on */
  after?: string[]
  /** results that its handler is given: the name of the input, and of the node it comes from */
  inputs?: Record<string, string>
  /**
   * what those must come to: all (default), any or quorum must succeed; ended: all have ended, in whatever way; failed:
   * likewise, and at least one did not succeed, else it is skipped
   */
  policy?: string
  /** of a quorum */
  k?: number
  /** of all, any and quorum: cancel the others once enough have succeeded, or cannot any more */
  cancel_rest?: boolean
}

/** What submitFlow takes. */
export interface FlowBody {
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  /** a second submission with an equal key and input is answered with the first one */
  idempotency_key?: string
  /** only one has it until it has ended; a second submission is answered with that one */
  unique_key?: string
  /** it takes more nodes until it is sealed, and ends only then */
  open?: boolean
  /** 1..1000, each after those that it depends on */
  nodes: NodeBody[]
}

/** What submitFlow answers, what addToFlow answers. */
export interface FlowMade {
  id: string
  duplicate: boolean
  /** the executions of the nodes */
  nodes: Record<string, string>
}

export interface FlowSummary {
  id: string
  /** staging, open, completed, failed or cancelled */
  state: FlowState
  /** how it may grow: seal (not at all), grow (by its members) or open (until it is sealed) */
  seal?: string
  namespace: string
  kind: string
  created_at?: Timestamp
  released_at?: Timestamp
  /** when its last member ended; none while one has not */
  ended_at?: Timestamp
  /** ever */
  members: number
  /** members that ended without success and fail the flow: those that no other needs */
  failing: number
  /** members by state */
  count?: Record<string, number>
}

/** What listFlows answers. */
export interface FlowPage {
  items: FlowSummary[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface SiblingCancels {
  cancelled: number
  already_terminal: number
  not_found: number
  spared: number
}

export interface GroupRecord {
  /** all, any, quorum, ended or failed */
  policy: string
  /** size of a quorum */
  k?: number
  /** the others are cancelled once it is decided */
  cancel_rest?: boolean
  total: number
  succeeded: number
  failed: number
  skipped: number
  pending?: boolean
  satisfied?: boolean
  impossible?: boolean
  /** one that is skipped because nothing failed does not fail its flow */
  optional?: boolean
}

export interface WaitRecord {
  /** all, first, success or fast */
  mode: string
  total: number
  succeeded: number
  /** upstreams that ended without success */
  others: number
  pending?: boolean
}

export interface EdgeRecord {
  from: string
  input?: string
  /** how that ended; none while it has not */
  outcome?: PublicState
  /** the one that ended so */
  attempt?: number
  /** it succeeded after the group was decided: the input is not given */
  late?: boolean
  /** it was to be cancelled, but others need it */
  spared?: boolean
}

export interface MemberRecord {
  id: string
  /** those that depend on a member have higher ones than it */
  number: number
  name: string
  /**
   * waiting, waiting_gate, waiting_children, delayed, active, suspended, completed, failed, cancelled, expired or
   * skipped
   */
  state: PublicState
  /**
   * why no worker runs it now: waiting_for_worker, held_by_operator, waiting_for_delay, …; absent: one does, or it has
   * ended
   */
  blocking_reason?: string
  kind?: string
  lane?: string
  /** number of the last attempt; none before the first */
  attempt?: number
  /** category of its failure, or the reason for the skip */
  category?: string
  /** beginning of its last attempt */
  started_at?: Timestamp
  ended_at?: Timestamp
  /** condition for it to run */
  group?: GroupRecord
  /** the children that it waits for */
  wait?: WaitRecord
  /** its dependencies */
  edges?: EdgeRecord[]
  /** the ids of those that depend on it */
  dependants?: string[]
}

/** What getFlow answers. */
export interface FlowSnapshot {
  /** the server's */
  now?: Timestamp
  id: string
  /** staging, open, completed, failed or cancelled */
  state: FlowState
  /** how it may grow: seal (not at all), grow (by its members) or open (until it is sealed) */
  seal?: string
  namespace: string
  kind: string
  created_at?: Timestamp
  released_at?: Timestamp
  /** when its last member ended; none while one has not */
  ended_at?: Timestamp
  /** ever */
  members: number
  /** members that ended without success and fail the flow: those that no other needs */
  failing: number
  /** members by state */
  count?: Record<string, number>
  creator?: string
  /** revision of its members */
  revision?: number
  /** when members were added last */
  changed_at?: Timestamp
  edges: number
  /** members that are no longer retained */
  purged?: number
  /** pieces of unfinished work */
  backlog?: number
  /** cancellation policy: cancel_all, cancel_pending or flow_only */
  policy?: CancellationPolicy
  cancelled_at?: Timestamp
  cancelled_by?: string
  cancel_reason?: string
  /** those that nobody needed any more once others had decided */
  siblings?: SiblingCancels
  tags?: Record<string, string>
  /** each after those that it depends on */
  nodes: MemberRecord[]
}

/** What addToFlow takes. */
export interface NodesBody {
  /** 1..1000, each after those of them that it depends on; other names are of nodes that the flow has */
  nodes: NodeBody[]
}

/** What cancelFlow takes. */
export interface FlowCancel {
  /** cancel_all (default), cancel_pending or flow_only */
  policy?: string
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What cancelFlow answers. */
export interface FlowCancellation {
  /** it was cancelled before: policy and reason are what was said then */
  already: boolean
  policy: CancellationPolicy
  reason: string
  /** members that had not ended when this was answered, those that the policy leaves alone included */
  unended: number
}

/** What replayFlow takes. */
export interface FlowReplay {
  /** these instead of all that did not succeed */
  nodes?: string[]
  /** also those that nobody needs any more, such as the losers of a race */
  everything?: boolean
  /** replay only: forget the recorded steps */
  from_scratch?: boolean
  /** replay only: forget this step and everything recorded after it */
  from_step?: string
  /** replay only: include successes */
  force?: boolean
  /** id of the request: a repeat with the same id replays once */
  request?: string
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

export interface NodeRefusal {
  node: string
  id: string
  /** why it was not */
  error: string
  /** code of that error */
  code?: string
}

/** What replayFlow answers. */
export interface FlowReplayed {
  request: string
  /** may be claimed now */
  runnable: number
  /** wait for what they depend on */
  blocked: number
  /** members that this request had replayed before */
  already: number
  /** did not succeed, and nobody needs them any more */
  unneeded: number
  /** nodes that stay completed behind a node that is replayed whatever came before it */
  kept?: string[]
  /** nodes that were not replayed */
  refused?: NodeRefusal[]
}

/** What setLane takes. */
export interface LaneBody {
  namespace?: string
  /** active, paused, draining or disabled */
  state?: LaneState
  /** by completed, failed, cancelled and expired: how many seconds what ended so is kept; 0 is the default */
  retention_s?: Record<string, number>
  /** how much waiting outweighs a step of priority, up to a day; 0: none does */
  ageing_ms?: number
  /** weight of the namespace in the lane, 1..1000; 0 is the default, 1 */
  weight?: number
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

export interface KindSchemas {
  /** JSON Schema (2020-12) of its input, at most 64 KiB */
  input?: unknown
  /** JSON Schema (2020-12) of its result, at most 64 KiB */
  result?: unknown
}

/** What openWorker takes. */
export interface WorkerBody {
  /** for people, 1..24 of A-Z a-z 0-9 . _ -; default http */
  name?: string
  /**
   * namespaces that it serves, its own first; * is every one. Over HTTP * is for tokens that may see all, and the
   * default is those of the token, or default
   */
  namespaces?: string[]
  /** over HTTP the default is default */
  lanes?: string[]
  /** how its lanes share its claims while several have work, where a weight is not 1: 1..1000 for a lane of lanes */
  lane_weights?: Record<string, number>
  /** kinds that it handles, over HTTP 1..256 */
  kinds: string[]
  /** capabilities that executions may require */
  capabilities?: string[]
  /** its slots: executions that it can run at once. Over HTTP for people, and 1 by default */
  concurrency?: number
  /** version of the application */
  version?: string
  /** labels of the application */
  labels?: Record<string, string>
  /**
   * of what is claimed for it over HTTP, how long it has an execution without renewing it: 2000..600000, default 30000
   */
  lease_ms?: number
  /**
   * of its kinds: what inputs must fit. The last worker to say something counts; an empty object takes it back.
   * Default: nothing is said
   */
  schemas?: Record<string, KindSchemas>
}

/** What openWorker answers. */
export interface WorkerOpened {
  /** name it in every call. It ends a minute after the last call plus a lease, or with close */
  session: string
  lease_ms: number
}

export interface MindedBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** the stop of it that the worker has heard of, which is not told again */
  stopping?: string
}

export interface CompleteBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** any JSON value, at most 1 MiB; default null */
  result?: unknown
}

/** What claim takes. */
export interface ClaimBody {
  /** 1..100, default 1; 0 with complete or leases: take nothing */
  max?: number
  /** how long to wait until there is some: 0..30000, default 20000 */
  wait_ms?: number
  /**
   * of everything that it works on, at most 1000. They are renewed, once, and the answer comes without waiting for work
   * when one of them is not held or has a stop, also while the claim waits
   */
  leases?: MindedBody[]
  /**
   * executions that are done, at most 100, each as in complete. They end before the claim. If one of them has not
   * completed, the answer comes without waiting for work
   */
  complete?: CompleteBody[]
}

export interface StoredSignal {
  id: string
  /** its key */
  waitpoint: string
  name: string
  category?: string
  source_type?: string
  /** sender, as the sender claims */
  source?: string
  correlation?: string
  idempotency_key?: string
  /** by the sender's clock */
  created_at?: Timestamp
  /** by the server's */
  accepted_at?: Timestamp
  /** json, utf8 or bytes */
  encoding?: string
  effect?: string
  /** after the end of the wait */
  late_by_ms?: number
  /** among all signals that the execution accepted, from 1; none: made by a timeout */
  order?: number
  /** what a program stored or sent */
  payload: Payload
}

export interface SuspendResult {
  /** under which the handler waited */
  name?: string
  /** signal, message, children, operator, timeout or already_satisfied */
  cause: Cause
  resumed_at?: Timestamp
  timeout_at?: Timestamp
  /** the id of the signal that closed the condition */
  closer?: string
  /** the operator who resumed it */
  by?: string
  /** their reason */
  reason?: string
  signals?: StoredSignal[]
}

export interface Receipt {
  messages: Message[]
  /** why there is none, and will be none: looked, or how the wait for one ended, timeout or operator */
  nothing?: Cause
}

export interface ChildOutcome {
  id: string
  /** completed, failed, cancelled, expired or skipped; empty: it has not ended */
  outcome?: string
  /** of one that completed; left out when those before it have 1 MiB together */
  result?: Payload
}

export interface Claimed {
  namespace: string
  lane: string
  kind: string
  /** capabilities that its worker needs */
  capabilities?: string[]
  /** gates that must admit it before it runs, and limits of keys, in words */
  gates?: string[]
  /** proves in every write that the execution is this worker's; opaque */
  lease: string
  /** renew before that is over */
  lease_ms: number
  id: string
  /** 1 for the first */
  attempt: number
  /** initial, retry, reclaim, replay, continue, or resumed when the attempt goes on */
  attempt_type: string
  /** how often it went on with another input (see :continue) */
  continues?: number
  /** how often it was replayed or rewound */
  takes?: number
  /** the request of a stop that no run has heeded yet. See the turn of a step */
  stopping?: string
  priority: number
  created_at?: Timestamp
  retries: number
  reclaims: number
  /** of the attempt's timeout; 0: none */
  time_left_ms?: number
  /** 0: none */
  deadline_in_ms?: number
  /** of the frames that this attempt has; the next one is one more */
  last_sequence: number
  /** what a program stored or sent */
  input: Payload
  /** somebody deleted it from the store; fail the execution */
  input_lost?: boolean
  tags?: Record<string, string>
  /** recorded by earlier runs, by name: do not run these again */
  steps?: Record<string, Payload>
  /** what ended the waits of earlier runs, by name */
  waits?: Record<string, SuspendResult>
  /** what earlier runs received, by mailbox and number */
  receipts?: Record<string, Record<string, Receipt>>
  /** how the children of earlier waits ended, by the names of the wait and of the child */
  children?: Record<string, Record<string, ChildOutcome>>
  flow?: string
  node?: string
  /** results of upstream nodes, by the name of the input */
  inputs?: Record<string, Payload>
}

export interface CompletedAnswer {
  lease: string
  /** the execution was this worker's to complete. Else stop working on it, and tell nobody */
  held: boolean
  /** an earlier call had done it */
  already: boolean
  /** why it has not completed; absent: it has. One that is held can still fail */
  code?: string
}

export interface LeaseAnswer {
  lease: string
  held: boolean
  /** why it is not: stop working on it */
  code?: string
  /**
   * somebody asked the execution to end what it says, and to keep what it has: the request of the newest stop, which is
   * told again with every renewal. See the turn of a step
   */
  stopping?: string
}

/** What claim answers. */
export interface ClaimAnswer {
  /** none when the time was over */
  executions: Claimed[]
  /** what became of complete, in its order */
  completed?: CompletedAnswer[]
  /** those of leases that are not held, or have a stop that the worker has not heard of; all others are held */
  leases?: LeaseAnswer[]
}

/** What renew takes. */
export interface LeasesBody {
  /** of everything that it still works on, at most 1000 */
  leases: string[]
}

/** What renew answers. */
export interface LeasesAnswer {
  /** in the order of the request */
  leases: LeaseAnswer[]
}

export interface FrameBody {
  /** at most 128 bytes, such as token; default token */
  type?: string
  /** either text, or json, or base64; at most 64 KiB */
  text?: string
  /** any JSON value */
  json?: unknown
  base64?: Base64
  correlation?: string
  /** who wrote it, for example a model or a tool: at most 64 bytes */
  source?: string
  /** only for those who listen now, and gone after twice so long: 1000..60000 */
  live_ms?: number
}

export interface BatchBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** as without batches */
  first: number
  /** as without batches */
  frames: FrameBody[]
}

/** What appendFrames takes. */
export interface FramesBody {
  /** of the execution, as it came with the claim. Required without batches */
  lease?: string
  /**
   * sequence of the first frame; they count from 1 in an attempt, without gaps. What was sent before is recognised by
   * it
   */
  first?: number
  /** 1..100, at most 512 KiB together */
  frames?: FrameBody[]
  /** instead: frames of several executions, 1..100 of them, each on its own */
  batches?: BatchBody[]
}

export interface BatchFrames {
  lease: string
  /** the execution is this worker's. Else stop working on it, and tell nobody */
  held: boolean
  last_sequence?: number
  /** why the frames of this batch, all of them, are not stored; absent: they are */
  code?: string
}

/** What appendFrames answers. */
export interface FramesAnswer {
  /** absent with batches */
  last_sequence?: number
  /** what became of them, in their order */
  batches?: BatchFrames[]
}

/** What recordStep takes. */
export interface StepBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** 1..128 bytes of printable ASCII, unique within the execution */
  name: string
  /** any JSON value, at most 256 KiB; later runs get it with the claim. Default null */
  value?: unknown
  /** how long the step ran, by the worker's clock; for people */
  took_ms?: number
  /**
   * what the step is to a handler that talks, in turns: over, it ends a turn, and is refused with turn_stopped while a
   * stop waits; stopped, it ends a turn as that stop asks, which has been heeded then; begin, it begins the next turn.
   * Default: nothing of this
   */
  turn?: string
}

/** What recordStep answers. */
export interface StepAnswer {
  /** an earlier call had done it */
  already: boolean
  /** the request of a stop that waits to be heeded, or that this step has heeded */
  stopping?: string
}

/** What reportProgress takes. */
export interface ProgressBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** 0..100 */
  percent?: number
  /** at most 1 KiB */
  message?: string
}

export interface LineBody {
  /** when it was logged; default now */
  at?: Timestamp
  /** debug, info (default), warn or error */
  level?: string
  /** cut, with the attributes, to 8 KiB */
  message?: string
  attributes?: Record<string, unknown>
}

/** What appendLog takes. */
export interface LogBody {
  /** of the execution, as it came with the claim */
  lease: string
  /**
   * number of the first line; under one lease they count from 1, also what may not have been stored. What was sent
   * before is recognised by it
   */
  first: number
  /** lines that came before these and were not sent */
  dropped?: number
  /** 1..100. An attempt keeps its last 1,000 lines and 256 KiB */
  lines: LineBody[]
}

/** What spend takes. */
export interface SpendBody {
  /** of the execution, as it came with the claim */
  lease: string
  /**
   * one of the gates of the claim that is no limit of a key, or one above it: parent of an answer. What is counted
   * below counts there, too, so spend there as well
   */
  gate: string
  /** 1, 2, … for each gate under one lease; a repeat counts nothing */
  sequence: number
  /**
   * 1..64 bytes of printable ASCII without spaces: the gate counts the key of an execution once within 24 h, also under
   * another lease
   */
  key?: string
  /** by dimension. What is used is counted also when the lease is over */
  amounts: Record<string, number>
}

export interface Breach {
  dimension: string
  hard: boolean
  /** with the report, if it was counted */
  used: number
  limit: number
  crossed?: boolean
}

/** What spend answers, what reportUsage answers. */
export interface Reported {
  /** OK, SOFT_BREACH or HARD_BREACH */
  verdict: string
  counted: boolean
  /** the execution is another worker's by now; it was counted all the same */
  late: boolean
  /** this is the answer of the first time */
  repeated: boolean
  /**
   * what the gate wants done about a hard breach: reject (the worker decides), fail, block (release it), ask (a person
   * for more), warn
   */
  action?: HardAction
  /** of the period; absent: it does not end */
  left_ms?: number
  period: number
  /** the gate above it */
  parent?: string
  breaches?: Breach[]
}

/** What reserve takes. */
export interface ReserveBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** its number: 1, 2, … under one lease */
  reservation: number
  /** by dimension, 1..64 of them: the most that the call may use */
  amounts: Record<string, number>
}

/** What reserve answers. */
export interface ReserveAnswer {
  /** make the call, then settle. Else nothing is set aside in any gate */
  reserved: boolean
  /** those that have it; absent with reserved: no gate of the execution counts these amounts */
  gates?: string[]
  /** this number was settled, given back or refused before: reserve under the next one */
  over?: boolean
  /** the one that refused it */
  gate?: string
  /**
   * what that gate wants done: reject (the worker decides), fail, block (release the execution), or ask (suspend it
   * with a question)
   */
  action?: HardAction
  /** of the gate's period; absent: it does not end */
  left_ms?: number
  /** of the gate that refused it */
  breaches?: Breach[]
}

/** What settle takes. */
export interface SettleBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** its number: 1, 2, … under one lease */
  reservation: number
  /**
   * by dimension: what the call used, whatever was reserved. Counted also when the lease is over. Absent: nothing was
   * used
   */
  amounts?: Record<string, number>
}

export interface SettledGate {
  gate: string
  /** OK, SOFT_BREACH or HARD_BREACH; it is counted whatever it is */
  verdict: string
  breaches?: Breach[]
}

/** What settle answers. */
export interface SettleAnswer {
  /** an earlier call had done it */
  already: boolean
  /** what those say that count amounts */
  gates?: SettledGate[]
}

/** What unreserve takes. */
export interface ReservationBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** its number: 1, 2, … under one lease */
  reservation: number
}

/**
 * What unreserve answers, what endCall answers, what closeWaitpoint answers, what complete answers, what delay answers,
 * what continueWork answers, what cancelWork answers, what release answers.
 */
export interface Already {
  /** an earlier call had done it */
  already: boolean
}

/** What acquire takes. */
export interface AcquireBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** the name of its gate, such as openai/gpt-5 */
  service: string
  /** its number: 1, 2, … under one lease, whatever the service. Ask again for the same call under the same number */
  call: number
  /**
   * by dimension, at most 8: what the call will use at most or about. Of requests it is 1 unless it says more. The same
   * when it has ended
   */
  estimate?: Record<string, number>
  /** how long the worker has waited for this call, since it asked for it first, at most an hour */
  waited_ms?: number
}

/** What acquire answers. */
export interface AcquireAnswer {
  /** make the call, then end-call. A repeat answers so again */
  admitted: boolean
  /** not yet: ask again in retry_ms. Else delay the execution by retry_ms, with the service */
  stay?: boolean
  /** milliseconds */
  retry_ms?: number
  /** in line, from 1 */
  place?: number
  /** executions in line */
  waiting?: number
}

/** What endCall takes. */
export interface EndCallBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** the name of its gate, such as openai/gpt-5 */
  service: string
  /** its number: 1, 2, … under one lease, whatever the service. Ask again for the same call under the same number */
  call: number
  /**
   * by dimension, at most 8: what the call will use at most or about. Of requests it is 1 unless it says more. The same
   * when it has ended
   */
  estimate?: Record<string, number>
  /**
   * settled: it was made. released: it was certainly not made. refused: the service answered that there are too many
   * calls (status 429)
   */
  how: string
  /** by dimension, of one that settled; absent: as much as was estimated */
  used?: Record<string, number>
  /** of one that was refused: when the service wants to be asked again, at most an hour; 0: it did not say */
  retry_after_ms?: number
}

/** What openWaitpoint takes. */
export interface WaitpointBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** 1..128 bytes of printable ASCII; the same key has the same token in every run */
  key: string
  /** until the execution waits for it: 1000..7 days, default 1 day */
  life_ms?: number
}

/** What openWaitpoint answers. */
export interface WaitpointToken {
  /** its bearer may answer: pass it on inside a step. Empty when the waitpoint is closed */
  token: string
}

/** What expectEvent takes. */
export interface ExpectBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** 1..128 bytes of printable ASCII: the wait on it gets the event. Each takes one event; number those of a loop */
  key: string
  /** of the event, in the namespace of the execution; at most 128 bytes */
  subject: string
  /**
   * fields of the data, by names joined by dots, and the string, number, boolean or null that each must have; at most
   * 8. Default: every event of the subject
   */
  where?: Record<string, unknown>
}

/** What closeWaitpoint takes. */
export interface CloseWaitpointBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** of a waitpoint that was opened and that nothing waits for */
  key: string
}

/** What receiveMessages takes. */
export interface ReceiveBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** 1..96 bytes of printable ASCII */
  mailbox: string
  /**
   * of the receipt: 1, 2, … for each mailbox, from 1 in every run of the handler. What a receipt took before is
   * answered again
   */
  number: number
  /** messages, 1..100, default 1; at most 128 KiB of them */
  max?: number
  /** do not wait: that there was nothing is recorded, and later runs get the same */
  look?: boolean
}

/** What receiveMessages answers. */
export interface ReceiveAnswer {
  messages: Message[]
  /** why there is none, and will be none: looked, or how the wait for one ended, timeout or operator */
  nothing?: Cause
  /** there is none yet, and nothing was recorded: suspend until this mailbox and number */
  wait: boolean
}

export interface ConditionLeaf {
  /** a signal on the waitpoint of this key */
  signal?: string
  /** of this name only; with signal or count */
  named?: string
  /** so many signals … */
  count?: number
  /** … on the waitpoints of these keys */
  of?: string[]
  /** … counted as waitpoints (default), signals or sources */
  by?: string
  /** a message in this mailbox, which stays there for receive to take */
  message?: string
}

export interface ConditionGroup {
  /** a signal on the waitpoint of this key */
  signal?: string
  /** of this name only; with signal or count */
  named?: string
  /** so many signals … */
  count?: number
  /** … on the waitpoints of these keys */
  of?: string[]
  /** … counted as waitpoints (default), signals or sources */
  by?: string
  /** a message in this mailbox, which stays there for receive to take */
  message?: string
  all?: ConditionLeaf[]
  any?: ConditionLeaf[]
}

export interface ConditionBody {
  /** a signal on the waitpoint of this key */
  signal?: string
  /** of this name only; with signal or count */
  named?: string
  /** so many signals … */
  count?: number
  /** … on the waitpoints of these keys */
  of?: string[]
  /** … counted as waitpoints (default), signals or sources */
  by?: string
  /** a message in this mailbox, which stays there for receive to take */
  message?: string
  /** all of these */
  all?: ConditionGroup[]
  /** one of these */
  any?: ConditionGroup[]
  /** a message of this mailbox, for receive to take … */
  mailbox?: string
  /** … under this number */
  number?: number
  /** only an operator resumes it */
  operator?: boolean
  /** only the time does */
  timeout?: boolean
}

/** What suspend takes. */
export interface SuspendBody {
  /** of the execution, as it came with the claim */
  lease: string
  /**
   * its name, 1..128 bytes of printable ASCII, unique within a run; later runs find the answer under it. None with a
   * mailbox
   */
  wait?: string
  /** that people are asked. Without until, one of its choices answers the wait, on the waitpoint of the same name */
  question?: Question
  /**
   * what ends the wait; default: a signal on the waitpoint of the same name. Of children what ends it, too, whichever
   * comes first: mailbox and operator do not belong there, and with this, or one of the following, operators can resume
   * the wait, and a later claim brings the answer among the waits
   */
  until?: ConditionBody
  /**
   * waiting_for_signal (default), waiting_for_approval, waiting_for_callback, waiting_for_tool_result,
   * waiting_for_operator_review or waiting_for_children; the default with a question is waiting_for_approval, of
   * children waiting_for_children
   */
  reason?: string
  /** how long at most, up to ten years; default for ever */
  within_ms?: number
  /**
   * fail (default), cancel, expire, auto_resume, auto_resume_with_timeout_signal, auto_resume_open (waitpoints that
   * were opened before the wait stay open for the next one on their keys) or escalate
   */
  on_timeout?: string
  /** pause between the end of the wait and the next run, up to 30 days */
  resume_after_ms?: number
}

/** What suspend answers. */
export interface SuspendAnswer {
  /** the lease is given up; a later claim brings the answer */
  suspended: boolean
  /** signals came early and suffice: go on, under the same lease */
  answer?: SuspendResult
}

export interface OtherBody {
  /** in this wait: 1..64 bytes, unlike those of the children */
  name: string
  /** its id, in any partition. One that does not exist or was purged is refused */
  execution: string
  /** cancel it, with its flow, if it is open when the wait is over, or when this execution ends before */
  cancel?: boolean
}

/** What waitChildren takes. */
export interface ChildrenBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** its name, 1..128 bytes of printable ASCII, unique within a run; later runs find the outcomes under it */
  wait: string
  /**
   * all (default): until all have ended; first; success: until one has succeeded, or all have ended; fail_fast: until
   * one did not succeed, or all have ended
   */
  mode?: string
  /** cancel those that are open when the wait is over */
  cancel_remaining?: boolean
  /** let them run on when this execution ends before them */
  leave?: boolean
  /**
   * up to 1000, each after those that it depends on. A name stands for the same child in every run, with the same
   * input. Required without others
   */
  children?: NodeBody[]
  /**
   * executions that somebody else made and that are waited for like children, up to 1000 with these. Nobody cancels
   * those without cancel
   */
  others?: OtherBody[]
  /**
   * what ends the wait; default: a signal on the waitpoint of the same name. Of children what ends it, too, whichever
   * comes first: mailbox and operator do not belong there, and with this, or one of the following, operators can resume
   * the wait, and a later claim brings the answer among the waits
   */
  until?: ConditionBody
  /**
   * waiting_for_signal (default), waiting_for_approval, waiting_for_callback, waiting_for_tool_result,
   * waiting_for_operator_review or waiting_for_children; the default with a question is waiting_for_approval, of
   * children waiting_for_children
   */
  reason?: string
  /** how long at most, up to ten years; default for ever */
  within_ms?: number
  /**
   * fail (default), cancel, expire, auto_resume, auto_resume_with_timeout_signal, auto_resume_open (waitpoints that
   * were opened before the wait stay open for the next one on their keys) or escalate
   */
  on_timeout?: string
  /** pause between the end of the wait and the next run, up to 30 days */
  resume_after_ms?: number
}

/** What waitChildren answers. */
export interface ChildrenAnswer {
  /** the lease is given up; a later claim brings the outcomes */
  parked: boolean
  /** what ended a wait with a condition or a limit at once */
  answer?: SuspendResult
  /** by the name of the child; enough had ended: go on, under the same lease */
  outcomes?: Record<string, ChildOutcome>
}

/** What fail takes. */
export interface FailBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** 1..64 bytes, for lists and alerts; default handler_error */
  category?: string
  /** cut to 1 KiB */
  message?: string
  /** no retry, whatever the policy says */
  permanent?: boolean
  /** instead of the pause of the policy */
  retry_after_ms?: number
  /** the step that failed, if one did; for people */
  step?: string
  /** how long it ran */
  step_took_ms?: number
}

/** What fail answers. */
export interface FailAnswer {
  /** it runs again; else it has failed for good */
  retry: boolean
  retry_in_ms: number
  /** an earlier call had done it */
  already: boolean
}

/** What delay takes. */
export interface AsideBody {
  /** of the execution, as it came with the claim */
  lease: string
  /** 0..10 years; the same attempt goes on later, and no retry is used up */
  delay_ms: number
  /** for whose turn it waits (acquire): it goes on sooner if that comes */
  service?: string
}

/** What continueWork takes. */
export interface ContinueBody {
  /** of the execution, as it came with the claim */
  lease: string
  /**
   * any JSON value, at most 1 MiB; default null. Steps, waits and retries start over; the id and the messages in
   * mailboxes stay
   */
  input?: unknown
}

/** What cancelWork takes. */
export interface GiveUpBody {
  /** of the execution, as it came with the claim */
  lease: string
  reason?: string
}

/** What release takes. */
export interface Leased {
  /** of the execution, as it came with the claim */
  lease: string
}

/** What closeWorker takes. */
export interface CloseBody {
  /** of everything that it still works on, at most 1000; default none */
  leases?: string[]
}

/** What markWorkerDead answers. */
export interface Dead {
  /** executions that it held, which others take */
  held: number
}

export interface Missed {
  first_at: Timestamp
  last_at: Timestamp
  count: number
  reason: string
}

export interface ScheduleInfo {
  name: string
  partition: number
  /** grows with every change of the definition */
  revision: number
  /** the revision of its creation */
  incarnation?: number
  /** last (default), all or skip: which of the instants that were missed are run */
  catch_up?: CatchUp
  /** allow (default) or skip, while the last one has not ended */
  overlap?: Overlap
  /** no run after this time; default without end */
  until?: Timestamp
  /** it ends after so many runs since its creation; 0: without end */
  max_runs?: number
  /** each run starts up to so much later, at most 24 h and halfway to the next run */
  jitter_ms?: number
  /** owner that declares it */
  owner?: string
  /** number of nodes of the flow that each run submits; absent for an execution */
  nodes?: number
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  deadline_ms?: number
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  creator?: string
  /** its times in words */
  spec?: string
  /** why it cannot be read */
  error?: string
  input_bytes: number
  /** runs left of max_runs */
  runs_left?: number
  /** why it has no next run: runs, until, or spec, which has no further instant */
  ended?: string
  next_at?: Timestamp
  next_runs?: Timestamp[]
  /** the last instant that was fired */
  last_due_at?: Timestamp
  last_execution?: string
  last_flow?: string
  fired: number
  /** instants that were not fired */
  missed: number
  /** the last run of them */
  last_missed?: Missed
  /** all of them, by reason */
  missed_reasons?: Record<string, number>
  paused: boolean
  /** the last time */
  paused_at?: Timestamp
  paused_by?: string
  /** when the last pause ended */
  resumed_at?: Timestamp
  resumed_by?: string
  created_at?: Timestamp
  updated_at?: Timestamp
  updated_by?: string
}

/** What listSchedules answers. */
export interface ScheduleList {
  items: ScheduleInfo[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

/** What putSchedule takes. */
export interface SchedulePut {
  /** minute hour day month weekday */
  cron?: string
  /** of the cron expression, such as Europe/Berlin; default UTC */
  zone?: string
  /** instead of cron */
  every_ms?: number
  /** a time that every_ms counts from; default 1970-01-01T00:00:00Z */
  anchor?: Timestamp
  /** run once at the creation as well; a schedule that exists is not run by it */
  first_run_now?: boolean
  /** last (default), all or skip: which of the instants that were missed are run */
  catch_up?: CatchUp
  /** allow (default) or skip, while the last one has not ended */
  overlap?: Overlap
  /** no run after this time; default without end */
  until?: Timestamp
  /** it ends after so many runs since its creation; 0: without end */
  max_runs?: number
  /** each run starts up to so much later, at most 24 h and halfway to the next run */
  jitter_ms?: number
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  deadline_ms?: number
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  /** any JSON value, at most 1 MiB; the input of the handler. Default null */
  input?: unknown
  /** instead of input, bytes that are not JSON */
  input_base64?: Base64
  /**
   * each run submits a flow of these nodes, which say lane, priority, times, retries, retention and capabilities
   * themselves
   */
  nodes?: NodeBody[]
  /** the owner that declares it: a schedule of another owner is not changed; absent: it belongs to nobody */
  owned_by?: string
  /** refuse to change a schedule that exists */
  if_new?: boolean
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What putSchedule answers, what editSchedule answers. */
export interface ScheduleSet {
  name: string
  /** it was so before, nothing changed */
  already: boolean
  revision: number
  /** absent: it is over */
  next_at?: Timestamp
}

export interface ScheduleBody {
  /** minute hour day month weekday */
  cron?: string
  /** of the cron expression, such as Europe/Berlin; default UTC */
  zone?: string
  /** instead of cron */
  every_ms?: number
  /** a time that every_ms counts from; default 1970-01-01T00:00:00Z */
  anchor?: Timestamp
  /** run once at the creation as well; a schedule that exists is not run by it */
  first_run_now?: boolean
  /** last (default), all or skip: which of the instants that were missed are run */
  catch_up?: CatchUp
  /** allow (default) or skip, while the last one has not ended */
  overlap?: Overlap
  /** no run after this time; default without end */
  until?: Timestamp
  /** it ends after so many runs since its creation; 0: without end */
  max_runs?: number
  /** each run starts up to so much later, at most 24 h and halfway to the next run */
  jitter_ms?: number
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  deadline_ms?: number
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  /** any JSON value, at most 1 MiB; the input of the handler. Default null */
  input?: unknown
  /** instead of input, bytes that are not JSON */
  input_base64?: Base64
  /**
   * each run submits a flow of these nodes, which say lane, priority, times, retries, retention and capabilities
   * themselves
   */
  nodes?: NodeBody[]
}

/** What syncSchedules takes. */
export interface OwnedBody {
  /** by name; the owner's other schedules are removed */
  schedules: Record<string, ScheduleBody>
}

/** What syncSchedules answers. */
export interface ScheduleSync {
  created?: string[]
  updated?: string[]
  unchanged?: string[]
  removed?: string[]
}

/** What editSchedule takes. */
export interface TimesBody {
  /** minute hour day month weekday */
  cron?: string
  /** of the cron expression; default UTC */
  zone?: string
  /** instead of cron */
  every_ms?: number
  /** a time that every_ms counts from */
  anchor?: Timestamp
  /** no run after this time; default without end */
  until?: Timestamp
  /** it ends after so many; default without end */
  max_runs?: number
  /** each run starts up to so much later */
  jitter_ms?: number
  /** last (default), all or skip */
  catch_up?: CatchUp
  /** allow (default) or skip */
  overlap?: Overlap
  /** any JSON value, at most 1 MiB; the input of the handler. Default null */
  input?: unknown
  /** instead of input, bytes that are not JSON */
  input_base64?: Base64
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What runSchedule answers. */
export interface ScheduleRun {
  /** the instant; of a run now, when it was asked for */
  due_at: Timestamp
  execution?: string
  /** instead of an execution */
  flow?: string
  /** it was submitted before, and nothing was done */
  existed?: boolean
  /** why it was refused */
  error?: string
}

/** What backfillSchedule takes. */
export interface RangeBody {
  /** the first instant may be this one */
  from: Timestamp
  /** and the last this one; default now */
  to?: Timestamp
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What backfillSchedule answers. */
export interface Backfilled {
  /** instants that were submitted now */
  created: number
  /** instants that had been submitted before */
  existed: number
  /** instants that could not be submitted; their items say why */
  refused: number
  /** in their order */
  items: ScheduleRun[]
}

export interface Limit {
  /** work waits when it is reached; 0: none */
  hard?: number
  /** only warns; 0: none */
  soft?: number
}

export interface Service {
  /** how much may pass in a minute, by dimension, 2..1000000000 */
  per_minute?: Record<string, number>
  /** how much may come at once, at most half; absent: a fortieth */
  burst?: Record<string, number>
  /** how many are made at once, at most 1000000; 0: no bound */
  calls?: number
  /** waited in a slot, at most 60000; absent: 2000 */
  patience_ms?: number
  /** how namespaces share it, 1..1000; 1 for others */
  weights?: Record<string, number>
}

export interface Spender {
  execution: string
  /** of its last report, or when it asked last */
  at: Timestamp
  period: number
  /** reports under a lease that was not the newest of the execution */
  late?: number
  used?: Record<string, number>
  /** for calls that have not settled */
  reserved?: Record<string, number>
  /** what it waits for, in line */
  waits_for?: Record<string, number>
  /** how often it was refused that */
  refusals?: number
  /** of a service: by whose weight it waits */
  namespace?: string
  /** of a service: in how long its turn comes */
  turn_ms?: number
  /** of a service: it waits without a slot */
  away?: boolean
}

export interface ServiceState {
  /** what may pass at once, by dimension; below 0 after a large call */
  room: Record<string, number>
  /** of its rates, per mille: less after it refused calls */
  share: number
  /** calls that have not ended */
  under_way: number
  /** how many may be under way now; absent: no bound */
  at_once?: number
  /** executions in line */
  waiting: number
  /** nobody calls it before that: it refused calls */
  closed_until?: Timestamp
  /** calls that it refused, since it was idle for two hours */
  refused: number
  last_refused_at?: Timestamp
  /** how long a call takes, a moving average */
  call_ms?: number
}

export interface Hold {
  execution: string
  /** of its lease */
  epoch?: number
}

export interface Gate {
  name?: string
  /** what it is for, for people; at most 128 bytes */
  scope?: string
  /** the gate above it: what counts here counts there, too */
  parent?: string
  /** of what may be used in a period, by dimension, at most 64 */
  limits?: Record<string, Limit>
  /** a period, 1000..ten years; 0 never resets */
  reset_ms?: number
  /** what happens to an execution whose spend is refused: reject (default), fail, block or ask */
  on_hard?: HardAction
  /** it only warns: counts what passes a hard limit, and blocks nothing */
  warn?: boolean
  /** note the crossing of a soft limit, once per period and dimension */
  warn_soft?: boolean
  /** refuse dimensions that have no limits here; else they are counted only */
  strict?: boolean
  /** failed, cancelled, expired: what such executions used in this period is given back */
  refund?: string[]
  /** starts within any window_ms, at most 1000000; 0: no bound */
  rate?: number
  /** at most 30 days; needed with rate */
  window_ms?: number
  /** added at random to the time of the next try, at most 60000 */
  jitter_ms?: number
  /** how many run at once, at most 1000000; 0: no bound */
  concurrency?: number
  /** for the gate of a service, asked for each call; without other meters */
  service?: Service
}

export interface AuditEntry {
  at: Timestamp
  /** created, changed, adjusted, raised, allowed (raised for one execution alone), period, release or soft_limit */
  what: string
  /** who, or the execution that passed a soft limit */
  by?: string
  detail?: string
  /** what it was created with, or changed to */
  gate?: Gate
  /** what an adjustment or a raise added, a release gave back, or was used in a period that ended */
  amounts?: Record<string, number>
  /** of an adjustment or a raise */
  reason?: string
  /** the one that ended */
  period?: number
  period_began_at?: Timestamp
  /** after the one that ended */
  periods_missed?: number
  /** of a release, who was allowed more, or who passed a soft limit */
  execution?: string
  /** of a release: how the execution ended, or asked */
  outcome?: string
  /** of a soft limit */
  breach?: Breach
}

export interface GateRecord {
  name?: string
  /** what it is for, for people; at most 128 bytes */
  scope?: string
  /** the gate above it: what counts here counts there, too */
  parent?: string
  /** of what may be used in a period, by dimension, at most 64 */
  limits?: Record<string, Limit>
  /** a period, 1000..ten years; 0 never resets */
  reset_ms?: number
  /** what happens to an execution whose spend is refused: reject (default), fail, block or ask */
  on_hard?: HardAction
  /** it only warns: counts what passes a hard limit, and blocks nothing */
  warn?: boolean
  /** note the crossing of a soft limit, once per period and dimension */
  warn_soft?: boolean
  /** refuse dimensions that have no limits here; else they are counted only */
  strict?: boolean
  /** failed, cancelled, expired: what such executions used in this period is given back */
  refund?: string[]
  /** starts within any window_ms, at most 1000000; 0: no bound */
  rate?: number
  /** at most 30 days; needed with rate */
  window_ms?: number
  /** added at random to the time of the next try, at most 60000 */
  jitter_ms?: number
  /** how many run at once, at most 1000000; 0: no bound */
  concurrency?: number
  /** for the gate of a service, asked for each call; without other meters */
  service?: Service
  revision: number
  created_at?: Timestamp
  updated_by?: string
  /** queues that wait for it: routes of partitions */
  waiting: number
  /** how often it was reset */
  period: number
  period_began_at?: Timestamp
  next_reset_at?: Timestamp
  last_reset_at?: Timestamp
  /** that passed without a reset before the last one */
  periods_missed?: number
  hard_breaches: number
  soft_breaches: number
  /** of a hard limit, in this period */
  last_breach_at?: Timestamp
  last_breach_dimension?: string
  used?: Record<string, number>
  /** what of it is set aside for calls that have not settled */
  reserved?: Record<string, number>
  /** in this period, by dimension with a limit: what was to be counted, and did not fit */
  refused?: Record<string, number>
  /** by how much hard limits are higher in this period */
  raised?: Record<string, number>
  /**
   * used in each of the last 24 hours of UTC and in this one, by dimension: 25 numbers, the oldest first; not in lists
   */
  hours?: Record<string, number[]>
  /** until the hard limit, by dimension that has one */
  headroom?: Record<string, number>
  /** dimensions without room */
  exhausted?: string[]
  /** when the first limit is reached if it goes on like this; absent: not before the period ends */
  empty_at?: Timestamp
  /** queues */
  waiting_for_amounts: number
  /** who waits for amounts, the first in front; not in lists */
  line?: Spender[]
  /** who used of it, the newest first; not in lists */
  spenders?: Spender[]
  /** of a service */
  state?: ServiceState
  /** in the window */
  started: number
  /** slots that are taken */
  held: number
  /** slots that are not; absent: it does not limit how many run at once */
  free?: number
  /** holds that were not confirmed for a while */
  suspect: number
  waiting_for_slots: number
  /** for room in the window */
  waiting_for_rate: number
  /** who has the slots, at most 1000; not in lists */
  holds?: Hold[]
  /** what happened to it, the newest first; not in lists */
  events?: AuditEntry[]
}

/** What listGates answers. */
export interface GateList {
  items: GateRecord[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

/** What putGate takes. */
export interface GateBody {
  name?: string
  /** what it is for, for people; at most 128 bytes */
  scope?: string
  /** the gate above it: what counts here counts there, too */
  parent?: string
  /** of what may be used in a period, by dimension, at most 64 */
  limits?: Record<string, Limit>
  /** a period, 1000..ten years; 0 never resets */
  reset_ms?: number
  /** what happens to an execution whose spend is refused: reject (default), fail, block or ask */
  on_hard?: HardAction
  /** it only warns: counts what passes a hard limit, and blocks nothing */
  warn?: boolean
  /** note the crossing of a soft limit, once per period and dimension */
  warn_soft?: boolean
  /** refuse dimensions that have no limits here; else they are counted only */
  strict?: boolean
  /** failed, cancelled, expired: what such executions used in this period is given back */
  refund?: string[]
  /** starts within any window_ms, at most 1000000; 0: no bound */
  rate?: number
  /** at most 30 days; needed with rate */
  window_ms?: number
  /** added at random to the time of the next try, at most 60000 */
  jitter_ms?: number
  /** how many run at once, at most 1000000; 0: no bound */
  concurrency?: number
  /** for the gate of a service, asked for each call; without other meters */
  service?: Service
  /** of the gate that is to be changed, as it was read; 0: make it, unless it is there as the body says */
  revision?: number
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What ensureGate takes. */
export interface GateEnsure {
  name?: string
  /** what it is for, for people; at most 128 bytes */
  scope?: string
  /** the gate above it: what counts here counts there, too */
  parent?: string
  /** of what may be used in a period, by dimension, at most 64 */
  limits?: Record<string, Limit>
  /** a period, 1000..ten years; 0 never resets */
  reset_ms?: number
  /** what happens to an execution whose spend is refused: reject (default), fail, block or ask */
  on_hard?: HardAction
  /** it only warns: counts what passes a hard limit, and blocks nothing */
  warn?: boolean
  /** note the crossing of a soft limit, once per period and dimension */
  warn_soft?: boolean
  /** refuse dimensions that have no limits here; else they are counted only */
  strict?: boolean
  /** failed, cancelled, expired: what such executions used in this period is given back */
  refund?: string[]
  /** starts within any window_ms, at most 1000000; 0: no bound */
  rate?: number
  /** at most 30 days; needed with rate */
  window_ms?: number
  /** added at random to the time of the next try, at most 60000 */
  jitter_ms?: number
  /** how many run at once, at most 1000000; 0: no bound */
  concurrency?: number
  /** for the gate of a service, asked for each call; without other meters */
  service?: Service
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What adjustUsage takes. */
export interface AdjustBody {
  /** by dimension, up or down. A repeat counts again */
  amounts: Record<string, number>
  /** at most 256 bytes */
  reason?: string
}

/** What adjustUsage answers. */
export interface Used {
  used: Record<string, number>
}

/** What raiseLimits takes. */
export interface RaiseBody {
  /** by dimension, 0 or more: by how much hard limits are higher in this period. A repeat raises again */
  amounts: Record<string, number>
  /** the only one that may pass the limits; absent: the limits are higher for all */
  execution?: string
  /** at most 256 bytes */
  reason?: string
}

/** What raiseLimits answers. */
export interface Raised {
  /** by dimension: by how much limits are higher in this period, or what the execution may pass them by */
  raised: Record<string, number>
}

/** What resetUsage takes. */
export interface ResetBody {
  /** the next period begins a whole interval after this; else when it would have anyway */
  move?: boolean
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What resetUsage answers. */
export interface Period {
  period: number
  /** of the period; absent: it does not end */
  left_ms?: number
}

/** What reportUsage takes. */
export interface UsageBody {
  /** names the report, at most 128 bytes without spaces: repeated with the same within a day it counts once */
  key: string
  /** in whose ledger it goes */
  execution?: string
  /** by dimension, 0 or more */
  amounts: Record<string, number>
}

/** What refundUsage takes. */
export interface RefundBody {
  execution: string
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

/** What refundUsage answers. */
export interface Returned {
  returned: boolean
}

export interface Scope {
  /** alone: all of it */
  namespace?: string
  /** of the namespace, or of the default one */
  lane?: string
  /** goes with neither */
  tag_key?: string
  /** its value */
  tag?: string
}

export interface AttachedGates {
  scope: Scope
  /** those of limits of keys in words */
  gates?: string[]
  changed_at?: Timestamp
  by?: string
  /** partitions differ, because a change did not reach all of them: make it again */
  mixed?: boolean
}

export interface Closing {
  /** amount, rate, cap, gate_not_found, unavailable, or other: see text */
  code: string
  gate?: string
  /** of a limit of a key */
  limit_key?: string
  /** what that limit is */
  key_limit?: string
  /** of an amount */
  dimension?: string
  /** of the dimension */
  used?: number
  /** of the dimension */
  limit?: number
  /** what does not fit */
  refused?: number
  /** for people */
  text: string
}

export interface ClosedRoute {
  partition: number
  namespace: string
  lane: string
  kind: string
  /** capabilities that its worker needs */
  capabilities?: string[]
  /** gates that must admit it before it runs, and limits of keys, in words */
  gates?: string[]
  /** when it opens by itself */
  until?: Timestamp
  reason: Closing
  /** executions */
  waiting: number
}

export interface BusyGate {
  gate?: string
  /** of a limit of a key */
  limit_key?: string
  /** what that limit is */
  key_limit?: string
  /** executions that it holds back: those of closed queues, and those in line for a service */
  waiting: number
  /** queues that it keeps closed: one for each partition, lane and kind */
  queues: number
  /** for people, as the queue says it that is tried first */
  why?: string
  /** when the first of these queues is tried again by itself */
  next_at?: Timestamp
  /** when a hard limit was reached last in this period, or when the service refused a call last */
  since?: Timestamp
  /** of a gate with amounts */
  period_ends_at?: Timestamp
  /** slots that are taken, or calls under way */
  held: number
  /** who has these slots, the first ten */
  holders?: Hold[]
  /** executions that wait in line: for amounts as far as they are read, or for a call of a service */
  in_line: number
  /** the first ten of the line, and what each waits for */
  line?: Spender[]
  /** the ten that used most in this period, of the last hundred that used something */
  spenders?: Spender[]
}

/** What listGated answers. */
export interface GatedAnswer {
  attached: AttachedGates[]
  /** work that is not handed out, what opens first in front; at most 1024 of each partition */
  closed: ClosedRoute[]
  /** messages that gates have not got yet */
  outbox: number
  /** number of partitions that answered */
  partitions: number
  /** which partitions did not answer */
  missing?: string
  /**
   * with busy=true: the gates, services and limits of keys that hold work back, at most fifty, the one that holds back
   * most in front
   */
  busy?: BusyGate[]
}

/** What attachGates takes, what detachGates takes. */
export interface AttachBody {
  /** {} is everything */
  scope: Scope
  /** to detach none is to detach all */
  gates?: string[]
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

export interface Check {
  /** the name of the check; it is there once for each node, or for the deployment */
  check: string
  /** ok, warn, fail, or skip: the check could not be made */
  status: Status
  /** the address of the node */
  node?: string
  /** for people */
  found: string
  /** remedy */
  do?: string
}

/** What examine answers. */
export interface Checkup {
  /** no check has failed */
  healthy: boolean
  /** that the primaries have */
  keys: number
  /** how many of them were compared with the indexes: all, or 0; the API makes none */
  checked_keys: number
  checks: Check[]
}

export interface Timer {
  count: number
  /** the earliest; absent when nothing waits */
  head?: Timestamp
}

export interface Totals {
  purged: number
  completed: number
  failed: number
  cancelled: number
  expired: number
  skipped: number
}

export interface Partition {
  partition: number
  /** why it does not answer; then the rest says nothing */
  error?: string
  /** by its server's clock, with which its other times are compared */
  now?: Timestamp
  protocol: number
  /** it refuses every call */
  frozen: boolean
  frozen_reason?: string
  booted_at?: Timestamp
  /** when a tick is due; absent when nothing waits for one */
  wake_at?: Timestamp
  /** the process that makes its ticks; absent when there is none */
  owner?: string
  /** nobody ticks although it is time */
  tick_overdue: boolean
  /** version of the route table */
  route_table: number
  /** the recorded part of the feed and its end; absent without subscribers */
  recording?: string
  /** queues that have work which is handed out, those with gates included */
  ready: number
  routes: number
  /** lanes that an operator configured */
  lanes: number
  /** entries of the feed */
  feed: number
  delayed: Timer
  /** deadlines, timeouts of attempts and of suspensions */
  alarms: Timer
  /** a head that is due may belong to a session that was renewed since: the tick files it again */
  sessions: Timer
  /** waitpoints without a wait yet */
  pending_waitpoints: Timer
  /** by when they were suspended */
  suspended: Timer
  /** by when they may be purged */
  ended: Timer
  /** workers registered here, by expiry */
  workers: Timer
  /** schedules that are not paused */
  schedules: Timer
  /** members of flows that wait for others, or for the release of their flow, by when they were created */
  blocked: Timer
  /** retained ones, by when they were created */
  flows: Timer
  /** staged flows to be given up, and empty ones to be forgotten */
  flows_due: Timer
  /** unfinished work of flows, by when it was looked at last */
  flow_backlog: Timer
  /** queues that a gate keeps back, by when they open again */
  closed: Timer
  /** executions that operators hold, by since when */
  held: Timer
  /** reports to gates that are not delivered, by filing time */
  outbox: Timer
  /** for how long the earliest thing is due that nobody has done */
  lag_ms: number
  /** for how long unfinished work of flows waits */
  behind_ms: number
  /** for how long a message to gates waits */
  undelivered_ms: number
  /** totals of executions since the store was created */
  totals: Totals
  /** totals of flows since the store was created; skipped counts members; a reopened flow counts again */
  flow_totals: Totals
  siblings: SiblingCancels
  /** refused tokens of waitpoints since the store was created: unknown ones, or of a removed key */
  tokens_refused: number
}

/** What listPartitions answers. */
export interface PartitionList {
  items: Partition[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface TokenKey {
  kid: string
  /** fingerprint of its secret, 16 hex digits */
  fingerprint: string
  /** it signs */
  current: boolean
  /** absent for the current one */
  expires_at?: Timestamp
  /** under it */
  open_waitpoints: number
  /** when the last of them ends; far in the future if one has no end */
  needed_until?: Timestamp
}

export interface PartitionKeys {
  partition: number
  /** the id of the key that signs */
  current?: string
  keys: TokenKey[]
  error?: string
}

/** What listTokenKeys answers. */
export interface TokenKeyList {
  items: PartitionKeys[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

/** What rotateTokenKeys takes. */
export interface RotateBody {
  /** id of the key that signs from now on; this process must have it */
  kid: string
  /** how long tokens of the key before stay good; default a day */
  grace_ms?: number
  /** although tokens of open waitpoints then end before they are needed */
  force?: boolean
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

export interface KeyRotated {
  partition: number
  /** the key that signed until now */
  previous?: string
  /** it was the key before */
  already: boolean
  /** keys whose grace was over */
  forgotten_keys: number
  /** under the key before */
  open_waitpoints: number
  /** why it was not done there; repeat the request */
  error?: string
}

/** What rotateTokenKeys answers. */
export interface RotatedList {
  items: KeyRotated[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface Change {
  at: Timestamp
  /** the verb */
  action: string
  /** to what kind of thing */
  on: string
  /** its id or name; the filter of a bulk action */
  name: string
  namespace?: string
  /** author of the change; over the API the name of the token; empty if unknown */
  by: string
  /** api, cli, go or link, with address or host; or an assistant first */
  from?: string
  /** the reason that was given */
  why?: string
  /** details, for example the new value */
  detail?: string
  /** all of it in a sentence */
  text: string
}

/** What listTrail answers. */
export interface ChangePage {
  items: Change[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface AttachedSetting {
  /** {} is everything */
  scope: Scope
  /** at least these */
  gates: string[]
}

export interface LaneSetting {
  name: string
  namespace?: string
  /** active, paused, draining or disabled */
  state?: LaneState
  /** by completed, failed, cancelled and expired: how many seconds what ended so is kept; 0 is the default */
  retention_s?: Record<string, number>
  /** how much waiting outweighs a step of priority, up to a day; 0: none does */
  ageing_ms?: number
  /** weight of the namespace in the lane, 1..1000; 0 is the default, 1 */
  weight?: number
}

export interface IndexChange {
  /** lists of all states in the order of creation; absent: as it is */
  all?: boolean
  /** tag keys that can be asked for, at most 8; absent: as they are */
  tags?: string[]
}

export interface SettledSchedule {
  /** minute hour day month weekday */
  cron?: string
  /** of the cron expression, such as Europe/Berlin; default UTC */
  zone?: string
  /** instead of cron */
  every_ms?: number
  /** a time that every_ms counts from; default 1970-01-01T00:00:00Z */
  anchor?: Timestamp
  /** run once at the creation as well; a schedule that exists is not run by it */
  first_run_now?: boolean
  /** last (default), all or skip: which of the instants that were missed are run */
  catch_up?: CatchUp
  /** allow (default) or skip, while the last one has not ended */
  overlap?: Overlap
  /** no run after this time; default without end */
  until?: Timestamp
  /** it ends after so many runs since its creation; 0: without end */
  max_runs?: number
  /** each run starts up to so much later, at most 24 h and halfway to the next run */
  jitter_ms?: number
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  deadline_ms?: number
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
  /** any JSON value, at most 1 MiB; the input of the handler. Default null */
  input?: unknown
  /** instead of input, bytes that are not JSON */
  input_base64?: Base64
  /**
   * each run submits a flow of these nodes, which say lane, priority, times, retries, retention and capabilities
   * themselves
   */
  nodes?: NodeBody[]
  /** who declares it, if not the owner of the file; empty: nobody */
  owned_by?: string
}

export interface TriggerSetting {
  name: string
  /** of the events that start something */
  subject: string
  /**
   * fields of the data, by names joined by dots, and the string, number, boolean or null that each must have; at most 8
   */
  where?: Record<string, unknown>
  /** kind of the work; for a flow, the name of flows of this shape */
  kind: string
  namespace?: string
  lane?: string
  /** 0..9000, higher first */
  priority?: number
  capabilities?: string[]
  /** milliseconds */
  deadline_ms?: number
  /** 0..1000, default 3 */
  retries?: number
  /** timeout of one attempt */
  timeout_ms?: number
  /** seconds to keep it after its end, by outcome: completed, failed, cancelled, expired */
  retention_s?: Record<string, number>
  tags?: Record<string, string>
  /** gates by name */
  gates?: string[]
  /** limits of keys */
  limits?: KeyLimit[]
}

/** What planSettings takes. */
export interface SettingsBody {
  /** who declares the schedules; required with schedules */
  owner?: string
  /** also remove what is not named: schedules of the owner, and tags of the index */
  prune?: boolean
  /** budgets, quotas and governors of services, by name */
  gates?: Record<string, Gate>
  /** scopes, with gates for what is created there */
  attached?: AttachedSetting[]
  lanes?: LaneSetting[]
  /** by what executions can be found */
  index?: IndexChange
  /** by name */
  schedules?: Record<string, SettledSchedule>
  triggers?: TriggerSetting[]
}

export interface SettingField {
  name: string
  /** absent: it is not set */
  was?: unknown
  /** absent: it will not be set */
  is?: unknown
}

export interface SettingChange {
  /** gate, scope, lane, store, schedule or trigger, as in the audit trail */
  on: string
  name?: string
  /** of a lane or a trigger */
  namespace?: string
  /** create, change or remove */
  action: string
  /** where the file has it; of what is removed: the owner */
  field: string
  /** of the gate that is changed */
  revision?: number
  /** members that differ */
  fields?: SettingField[]
}

/** What planSettings answers. */
export interface SettingsPlan {
  /** in the order in which they are to be made */
  changes: SettingChange[]
  /** settings that are as the file says */
  same: number
}

export interface SettingLeftOut {
  /** scope, schedule or trigger */
  on: string
  name: string
  why: string
}

/** What getSettings answers. */
export interface SettingsFile {
  /** what planSettings takes. Applied to this store it changes nothing */
  settings: SettingsBody
  /** what no file can say, so that it is not in the settings */
  left_out?: SettingLeftOut[]
}

export interface IndexedTag {
  key: string
  /** lists use it */
  ready: boolean
  /** how many values the partition has that has most of them */
  values: number
  /** since when a partition has too many values */
  full_at?: Timestamp
}

/** What getIndex answers, what setIndex answers. */
export interface Index {
  /** lists of all states are in the order of creation */
  all: boolean
  /** tags whose values can be asked for, by key */
  tags: IndexedTag[]
  /** what was there before is not in it yet */
  building?: boolean
}

/** What setIndex takes. */
export interface IndexBody {
  /** lists of all states in the order of creation; absent: as it is */
  all?: boolean
  /** tag keys that can be asked for, at most 8; absent: as they are */
  tags?: string[]
  /** the audit trail and a history keep 1 KiB of it; of a hold at most 256 */
  reason?: string
}

export interface Lane {
  namespace: string
  name: string
  /** active, paused, draining or disabled */
  state: LaneState
  /**
   * seconds that it keeps what ended in it, by outcome, where it does not keep it as long as is usual: 24 h of what
   * completed, else 14 days
   */
  retention_s?: Record<string, number>
  /** when somebody said something of it last */
  since?: Timestamp
  /** author of that change */
  by?: string
  /** waiting that outweighs a step of priority; absent where no waiting does */
  ageing_ms?: number
  /** weight of the namespace in the lane; absent for the default, 1 */
  weight?: number
  /** partitions differ, because a change did not reach all of them: make it again */
  mixed?: boolean
  /** queues, over all partitions */
  routes: number
  /** executions */
  waiting: number
}

/** What listLanes answers. */
export interface LaneList {
  items: Lane[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface Queue {
  namespace: string
  lane: string
  kind: string
  /** capabilities that a worker needs */
  capabilities?: string[]
  /** state of the lane in most partitions: active, paused, draining or disabled */
  lane_state: LaneState
  /** partitions differ in the lane's state */
  mixed?: boolean
  /** executions */
  waiting: number
  /** creation of the oldest that waits */
  oldest_at?: Timestamp
  /** highest priority of the next claims, over all partitions */
  highest_priority: number
  /** executions in any state, until they are purged */
  stored: number
  /** damage of the rows */
  drift?: string
}

/** What listQueues answers. */
export interface QueueList {
  items: Queue[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface WorkerSession {
  partition: number
  id: string
  expires_at?: Timestamp
  /** not given up, and not expired on the server's clock */
  alive: boolean
  /** given up: the tick takes what it holds */
  dead?: boolean
  /** why an operator gave it up */
  reason?: string
  /** executions */
  held: number
}

export interface Worker {
  instance: string
  pool?: string
  /**
   * namespaces that it serves, its own first; * is every one. Over HTTP * is for tokens that may see all, and the
   * default is those of the token, or default
   */
  namespaces?: string[]
  /** over HTTP the default is default */
  lanes?: string[]
  /** how its lanes share its claims while several have work, where a weight is not 1: 1..1000 for a lane of lanes */
  lane_weights?: Record<string, number>
  /** kinds that it handles, over HTTP 1..256 */
  kinds?: string[]
  /** capabilities that executions may require */
  capabilities?: string[]
  /** its slots: executions that it can run at once. Over HTTP for people, and 1 by default */
  concurrency?: number
  /** for operators */
  host?: string
  /** for operators */
  pid?: number
  /** revision of the library that the process would load */
  library_revision?: number
  /** version of the application */
  version?: string
  /** labels of the application */
  labels?: Record<string, string>
  started_at?: Timestamp
  /** its lists were cut, because they are very long */
  truncated?: boolean
  /**
   * of what is claimed for it over HTTP, how long it has an execution without renewing it: 2000..600000, default 30000
   */
  lease_ms?: number
  alive: boolean
  /** an operator gave it up; one that is neither alive nor dead is lost */
  dead?: boolean
  /** why it was given up */
  reason?: string
  /** false: its registration was forgotten, and it still holds something */
  registered: boolean
  /** first, by this process */
  registered_at?: Timestamp
  /** when it renewed its registration last */
  seen_at?: Timestamp
  /** expiry of the registration, unless it is renewed */
  expires_at?: Timestamp
  /** executions that its sessions hold */
  in_flight: number
  /** handlers that were at work when it was last seen, each in one of its slots */
  reported?: number
  /** those of them that ignored the end of their context: their slots are not free until they return */
  stuck?: number
  /** its leases: open ones, and dead ones that still hold something; for operators */
  sessions?: WorkerSession[]
}

/** What listWorkers answers. */
export interface WorkerList {
  items: Worker[]
  /** absent after the last page */
  next_cursor?: string
  /** which partitions did not answer, so that what they have is not in the list */
  missing?: string
}

export interface Version {
  /** as workers say it; empty: those that say none, or a version that was forgotten */
  version: string
  /** live ones */
  workers: number
  /** kinds that these claim */
  kinds?: string[]
  /** when the first of these registered */
  since?: Timestamp
  /** when a worker of it was last heard of */
  seen_at?: Timestamp
  /** executions that its workers hold */
  active: number
  /** suspended executions that it claimed last, like the counts that follow */
  suspended: number
  delayed: number
  /** waiting or held ones: they go on, on a worker of any version unless they require one */
  waiting: number
  /** when it claimed the first of those that are suspended, delayed or waiting */
  oldest_claimed_at?: Timestamp
}

/** What listVersions answers. */
export interface Versions {
  /** the version whose workers came last in front */
  items: Version[]
  /** states of which only 10,000 executions were looked at, so that counts may be too low */
  more?: PublicState[]
  /** which partitions did not answer, so that what they have is not counted */
  missing?: string
}

/** What listSchemas answers. */
export interface Schemas {
  namespace: string
  /** by kind, those of which workers say something */
  kinds: Record<string, KindSchemas>
}

export interface Percentiles {
  /** of how many; 0: there are no percentiles */
  count: number
  /** milliseconds */
  p50_ms: number
  /** milliseconds */
  p90_ms: number
  /** milliseconds */
  p99_ms: number
}

export interface TimesStep {
  /** when it begins */
  at: Timestamp
  /** executions */
  completed: number
  /** executions whose attempt failed, and that are not tried again */
  failed: number
  /** attempts that failed and are tried again */
  retried: number
  /** runs that ended otherwise: suspended, delayed, continued, released, cancelled by the handler */
  other: number
  /**
   * of first attempts, but of members of flows: from the creation, a requested delay included, until the handler began
   */
  waited: Percentiles
  /** of what completed, failed or is tried again: its last run */
  ran: Percentiles
}

export interface TimesSum {
  /** executions */
  completed: number
  /** executions whose attempt failed, and that are not tried again */
  failed: number
  /** attempts that failed and are tried again */
  retried: number
  /** runs that ended otherwise: suspended, delayed, continued, released, cancelled by the handler */
  other: number
  /**
   * of first attempts, but of members of flows: from the creation, a requested delay included, until the handler began
   */
  waited: Percentiles
  /** of what completed, failed or is tried again: its last run */
  ran: Percentiles
}

export interface KindTimes {
  /** empty: those above the 256 kinds of a namespace that are told apart */
  kind: string
  /** executions */
  completed: number
  /** executions whose attempt failed, and that are not tried again */
  failed: number
  /** attempts that failed and are tried again */
  retried: number
  /** runs that ended otherwise: suspended, delayed, continued, released, cancelled by the handler */
  other: number
  /**
   * of first attempts, but of members of flows: from the creation, a requested delay included, until the handler began
   */
  waited: Percentiles
  /** of what completed, failed or is tried again: its last run */
  ran: Percentiles
}

/** What readTimes answers. */
export interface Times {
  /** * for all */
  namespace: string
  /** absent: all kinds together */
  kind?: string
  /** the begin of the first step, a whole minute of the store's clock */
  since: Timestamp
  /** how long a step is: whole minutes */
  step_ms: number
  /** all of them, oldest first, also those in which nothing ended */
  steps: TimesStep[]
  /** of all steps together */
  total: TimesSum
  /** with by_kind: of each kind, what ran most often first */
  kinds?: KindTimes[]
}

/** What whoAmI answers. */
export interface Self {
  name: string
  role: Role
  /** absent: all of them */
  namespaces?: string[]
  /** the operations of this document that they may use */
  operations: string[]
}

export interface UsedUp {
  gate: string
  /** executions */
  waiting: number
}

export interface AdminOverview {
  at: Timestamp
  waiting: number
  /** creation of the oldest that waits */
  oldest_at?: Timestamp
  /** executions in any state */
  stored: number
  delayed: number
  suspended: number
  held: number
  /** wait for others */
  waiting_children: number
  active: number
  /** and still stored */
  ended: number
  /** queues that a gate keeps back, by partition */
  closed: number
  /**
   * gates that have no room for the work that waits for them, over HTTP at most ten, those for which most waits in
   * front
   */
  gates_used_up?: UsedUp[]
  /** messages that gates have not got yet */
  outbox: number
  /** schedules that are not paused */
  schedules: number
  /** totals of executions since the store was created */
  totals: Totals
  /** over the last ten seconds, like the rates that follow */
  created_per_s: number
  ended_per_s: number
  completed_per_s: number
  /** failed or expired */
  failed_per_s: number
  /** live workers */
  workers: number
  /** workers lost within the last hour */
  workers_lost: number
  /** executions that the workers can run at once */
  slots: number
  /** partitions that answer */
  partitions: number
  /** partitions that do not answer */
  partitions_silent: number
  /** a process runs their timers */
  partitions_maintained: number
  partitions_frozen: number
  /** no process runs their timers */
  partitions_overdue: number
  /** for how long the earliest thing is due that nobody has done */
  lag_ms: number
}

export interface Point {
  at: Timestamp
  waiting: number
  active: number
  suspended: number
  completed_per_s: number
  failed_per_s: number
}

/** What getOverview answers. */
export interface Overview {
  now: AdminOverview
  /** the fifty with most work */
  queues: Queue[]
  /**
   * of the last hour, every ten seconds, as far as this process has looked; empty for a token that is bound to
   * namespaces
   */
  history: Point[]
}

/** What followOverview answers. */
export interface WatchedOverview {
  now: AdminOverview
  /** the fifty with most work */
  queues: Queue[]
}

/** What healthz answers, what readyz answers. */
export interface Health {
  status: string
}
