import { Api, Backoff, mayRetry, path, type ApiOptions, type Query } from "./api.js"
import { pause } from "./cancel.js"
import { bytesOf, encode, newKey, payloadValue } from "./encoding.js"
import { FlowFabricError, refusal } from "./errors.js"
import type * as m from "./models.js"
import { EventReader } from "./sse.js"

/** Options of a submission, as the bodies of the API have them. */
export type SubmitOptions = Omit<m.Submission, "kind" | "input">

/** Options of a flow, as the bodies of the API have them. */
export type FlowOptions = Omit<m.FlowBody, "kind" | "nodes">

/** Options of a schedule, as the bodies of the API have them. One of cron and every_ms is needed. */
export type ScheduleOptions = Omit<m.SchedulePut, "kind">

/** Filters of a list of executions. */
export interface ListOptions {
  namespace?: string
  /** also ended and held */
  state?: string | string[]
  lane?: string
  kind?: string
  category?: string | string[]
  /** from this time on: of the end of what ended, else of the creation */
  since?: m.Timestamp
  until?: m.Timestamp
  /** part of the error message */
  error?: string
  /** of a group of failures: its key, or the shape of its message */
  shape?: string
  /** of the application, whose worker claimed last */
  version?: string
  tag?: Record<string, string>
  flow?: string
  held_by?: string
  newest?: boolean
  /** items of a page, 1..1000. Default 100 */
  limit?: number
}

/** Filters of a list of flows. */
export interface FlowListOptions extends Pick<ListOptions, "namespace" | "state" | "kind" | "limit"> {
  oldest?: boolean
}

/** Filters of a list of open waits. A page has at most 100. */
export interface ApprovalListOptions extends Pick<ListOptions, "namespace" | "lane" | "kind" | "limit"> {
  assignee?: string
  /** only waits with a question */
  asked?: boolean
  /** only children of this execution, and theirs */
  root?: string
}

/** Where a tail begins, and what it leaves out. */
export interface TailOptions {
  /** position of the last event that was seen */
  after?: string
  /** only this attempt, 1 for the first */
  attempt?: number
  /** leave out what is stored */
  fromNow?: boolean
  /** leave out frames that were not meant to last */
  durable?: boolean
  /** leave out the events of children */
  own?: boolean
  signal?: AbortSignal
}

/** How long to wait. */
export interface WaitingOptions {
  /** milliseconds. Default: until it has ended */
  withinMs?: number
  signal?: AbortSignal
}

const MOST_WAIT_S = 60
const MOST_BATCH = 1000
const MOST_BYTES = 1_300_000
const ENDED = ["completed", "failed", "cancelled", "expired", "skipped"]

/** Gives a body an idempotency key, so that a repeat of the call is recognised. */
function keyed<T extends object>(body: T, ...others: string[]): T {
  const has = (name: string) => (body as Record<string, unknown>)[name] !== undefined
  return ["idempotency_key", ...others].some(has) ? body : { ...body, idempotency_key: newKey() }
}

/**
 * A client of one server. Calls are repeated while the server is away or asks for a pause. A repeat is recognised:
 * what creates something has an idempotency key, made here when the caller gives none. It needs no close.
 */
export class Client {
  /** for routes that have no method here */
  readonly api: Api
  readonly #scope: { namespace?: string }

  constructor(options: ApiOptions = {}) {
    this.api = new Api(options)
    this.#scope = options.namespace === undefined ? {} : { namespace: options.namespace }
  }

  #post<T>(target: string, body: object): Promise<T> {
    return this.api.call<T>("POST", target, { body })
  }

  // Executions

  /** Submits an execution. The answer has its id, and duplicate if an earlier submission made it. */
  async submit(kind: string, input?: unknown, options: SubmitOptions = {}): Promise<m.Submitted> {
    return this.api.call("POST", path("executions"), { body: this.#submission({ kind, input, ...options }) })
  }

  #submission(s: m.Submission): m.Submission {
    const body = { ...this.#scope, ...s }
    if (body.input_base64 !== undefined) delete body.input
    return keyed(body, "unique_key", "debounce_key")
  }

  /** Submits many. Each answer has an id or a problem, in the order of the submissions. */
  async submitMany(submissions: Iterable<m.Submission>): Promise<m.BatchItem[]> {
    const out: m.BatchItem[] = []
    let texts: string[] = []
    let size = 0
    const send = async () => {
      if (texts.length === 0) return
      const body = `{"items":[${texts.join(",")}]}`
      texts = []
      size = 0
      out.push(...(await this.api.call<m.BatchAnswer>("POST", "/v1/executions:batch", { body })).items)
    }
    for (const one of submissions) {
      const text = encode(this.api.json, this.#submission(one))
      const bytes = bytesOf(text)
      if (texts.length === MOST_BATCH || size + bytes > MOST_BYTES) await send()
      texts.push(text)
      size += bytes
    }
    await send()
    return out
  }

  /** How an execution is. */
  async get(id: string): Promise<m.Snapshot> {
    return this.api.call("GET", path("executions", id))
  }

  /** Why an execution does not run, or what it does. */
  async why(id: string): Promise<m.Explanation> {
    return this.api.call("GET", path("executions", id) + "/why")
  }

  /**
   * Waits until an execution has ended, and returns how: its state, and output or failure. A FlowFabricError with the
   * code timed_out: it has not ended in time.
   */
  async result(id: string, options: WaitingOptions = {}): Promise<m.Result> {
    const { withinMs = Infinity, signal } = options
    const until = performance.now() + withinMs
    for (;;) {
      const wait = Math.max(0, Math.min(MOST_WAIT_S, Math.floor((until - performance.now()) / 1000)))
      const answer = await this.api.call<m.Result>("GET", path("executions", id) + "/result", {
        headers: wait > 0 ? { Prefer: `wait=${wait}` } : {}, timeoutMs: wait * 1000 + this.api.timeoutMs, signal,
      })
      if (ENDED.includes(answer.state)) return answer
      const left = until - performance.now()
      if (left <= 0) throw new FlowFabricError("timed_out", `${id} has not ended, it is ${answer.state}`)
      if (left < 1000) await pause(Math.min(left, 100), signal)
    }
  }

  /**
   * Submits an execution, waits for its end, and returns its output. One that does not complete is a FlowFabricError
   * with the category of its failure, or its state, as code.
   */
  async run<Output = unknown>(
    kind: string, input?: unknown, options: SubmitOptions = {}, waiting: WaitingOptions = {},
  ): Promise<Output> {
    const made = await this.submit(kind, input, options)
    const { state, output, failure, reason } = await this.result(made.id, waiting)
    if (state !== "completed") throw new FlowFabricError(failure?.category || state, failure?.message || reason)
    return payloadValue(output) as Output
  }

  /**
   * Follows the events of an execution until its end. position of an event is the after of a later call. A connection
   * that was cut is made again, and no event is lost or given twice. Leaving the loop ends the request.
   */
  async *tail(id: string, options: TailOptions = {}): AsyncGenerator<m.TailEvent, void, undefined> {
    const { attempt, durable, own, signal, fromNow, after } = options
    const query = { attempt, durable, own, from_now: fromNow }
    const events = this.#follow<m.TailEvent>(path("executions", id) + "/events", query, after, signal)
    for await (const event of events) {
      yield event
      if (event.kind === "end" && !event.child) return
    }
  }

  /** The events of a stream, over as many connections as it takes. The server says when there are no more. */
  async *#follow<T>(
    target: string, query: Query, after = "", signal?: AbortSignal,
  ): AsyncGenerator<T, void, undefined> {
    const backoff = new Backoff(this.api.retryForMs)
    for (let ended = false; ; ) {
      try {
        const headers = { Accept: "text/event-stream", ...(after ? { "Last-Event-ID": after } : {}) }
        const exchange = await this.api.open("GET", target, { headers, query, signal, timeoutMs: this.api.quietMs })
        if (exchange.answer.status === 204) return exchange.close()
        const reader = new EventReader()
        let first = true // a piece that every connection has, while all others say that the server is well
        for await (const piece of exchange.pieces()) {
          if (!first) backoff.restart()
          first = false
          for (const { id: position, name, data } of reader.read(piece)) {
            const event = this.api.parse(data)
            if (name === "problem") throw refusal((event as m.Problem).status, event)
            after = position || after
            backoff.restart()
            ended = false
            yield event as T
          }
        }
        if (ended) throw new FlowFabricError("connection_lost", "the stream of events ended early")
        ended = true // the next answer tells whether that was all
      } catch (e) {
        if (!mayRetry(e)) throw e
        await backoff.pause(e, signal)
      }
    }
  }

  /** What the handler of an execution logged, as far as it is kept, the oldest line first. */
  logs(
    id: string, filters: { attempt?: number; level?: string; limit?: number } = {}, signal?: AbortSignal,
  ): AsyncGenerator<m.LogLine, void, undefined> {
    return this.api.pages(path("executions", id) + "/logs", filters, signal)
  }

  /**
   * Follows what the handler of an execution logs, the oldest line first, until the execution ends, or the attempt if
   * one is named. cursor of a line is the after of a later call. A connection that was cut is made again, and no line is
   * lost or given twice. Leaving the loop ends the request.
   */
  followLogs(
    id: string, filters: { attempt?: number; level?: string; after?: string } = {}, signal?: AbortSignal,
  ): AsyncGenerator<m.LogLine, void, undefined> {
    const { after, ...query } = filters
    return this.#follow(path("executions", id) + "/logs/events", query, after, signal)
  }

  /** Sends a message to a mailbox of an execution. */
  async send(
    id: string, mailbox: string, payload?: unknown, options: Pick<m.MessageBody, "idempotency_key"> = {},
  ): Promise<m.Sent> {
    return this.#post(path("executions", id) + "/messages", keyed({ mailbox, payload, ...options }))
  }

  /** Sends a signal with the token of its waitpoint. */
  async signal(
    token: string, payload?: unknown, options: Omit<m.Signal, "token" | "payload"> = {},
  ): Promise<m.Delivered> {
    return this.#post(path("signals"), keyed({ token, payload, ...options }))
  }

  /** Answers a waitpoint as an operator. A payload such as { choice: "yes" } answers a question. */
  async answer(
    id: string, waitpoint: string, payload?: unknown, options: Omit<m.Reply, "payload"> = {},
  ): Promise<m.Delivered> {
    return this.#post(path("executions", id, "waitpoints", waitpoint) + ":answer", keyed({ payload, ...options }))
  }

  /** Cancels an execution. */
  async cancel(id: string, options: m.Why = {}): Promise<void> {
    return this.#post(path("executions", id) + ":cancel", options)
  }

  /** Asks an execution to end its turn and to keep what it has. */
  async stop(id: string, options: m.Why = {}): Promise<m.Stopped> {
    return this.#post(path("executions", id) + ":stop", options)
  }

  /** All executions that match. */
  executions(filters: ListOptions = {}, signal?: AbortSignal): AsyncGenerator<m.Listed, void, undefined> {
    return this.#list("executions", filters, signal)
  }

  /** Open waits, the oldest first; with `asked` those with a question. */
  approvals(filters: ApprovalListOptions = {}, signal?: AbortSignal): AsyncGenerator<m.Approval, void, undefined> {
    return this.#list("approvals", filters, signal)
  }

  #list<T>(what: string, filters: object, signal?: AbortSignal): AsyncGenerator<T, void, undefined> {
    return this.api.pages(path(what), { ...this.#scope, ...filters }, signal)
  }

  /**
   * Publishes an event: each trigger of its subject whose filter the data matches starts one execution, with the data
   * as its input. The server knows an id for a day: a repeat starts nothing and is a duplicate, and other data under it
   * is refused with idempotency_conflict. Without an id one is made here.
   */
  async publish(
    subject: string, data?: unknown, options: Omit<m.EventBody, "subject" | "data"> = {},
  ): Promise<m.Published> {
    return this.#post("/v1/events:publish", { ...this.#scope, ...options, id: options.id || newKey(), subject, data })
  }

  // Flows

  /** Creates a flow. The answer has its id, and the executions of its nodes by name. */
  async createFlow(kind: string, nodes: m.NodeBody[], options: FlowOptions = {}): Promise<m.FlowMade> {
    return this.#post(path("flows"), keyed({ ...this.#scope, kind, nodes, ...options }, "unique_key"))
  }

  /** How a flow is, and its nodes. */
  async getFlow(id: string): Promise<m.FlowSnapshot> {
    return this.api.call("GET", path("flows", id))
  }

  /** Cancels a flow. */
  async cancelFlow(id: string, options: m.FlowCancel = {}): Promise<m.FlowCancellation> {
    return this.#post(path("flows", id) + ":cancel", options)
  }

  /** All flows that match. */
  flows(filters: FlowListOptions = {}, signal?: AbortSignal): AsyncGenerator<m.FlowSummary, void, undefined> {
    return this.#list("flows", filters, signal)
  }

  // Schedules

  /** Creates a schedule, or changes it. */
  async putSchedule(name: string, kind: string, options: ScheduleOptions): Promise<m.ScheduleSet> {
    return this.api.call("PUT", path("schedules", name), { body: { ...this.#scope, kind, ...options } })
  }

  /** How a schedule is, and its next runs: 5, or next of them. */
  async getSchedule(name: string, options: { next?: number } = {}): Promise<m.ScheduleInfo> {
    return this.api.call("GET", path("schedules", name), { query: { ...options } })
  }

  /** Lets a schedule start nothing until it is resumed. */
  async pauseSchedule(name: string, options: m.Why = {}): Promise<void> {
    return this.#post(path("schedules", name) + ":pause", options)
  }

  /** Resumes a schedule that was paused. */
  async resumeSchedule(name: string, options: m.Why = {}): Promise<void> {
    return this.#post(path("schedules", name) + ":resume", options)
  }

  /** Deletes a schedule. False: there is none, or a repeat of the call found it deleted. */
  async deleteSchedule(name: string, options: m.Why = {}): Promise<boolean> {
    try {
      await this.api.call("DELETE", path("schedules", name), { query: { ...options } })
      return true
    } catch (e) {
      if (e instanceof FlowFabricError && e.status === 404) return false
      throw e
    }
  }

  /** All schedules. */
  schedules(filters: { limit?: number } = {}, signal?: AbortSignal): AsyncGenerator<m.ScheduleInfo, void, undefined> {
    return this.api.pages(path("schedules"), filters, signal)
  }
}
