import { mayRetry, path } from "./api.js"
import { onAbort } from "./cancel.js"
import type { Client } from "./client.js"
import { bytesOf, encode, type Codec } from "./encoding.js"
import { FlowFabricError, Permanent, Suspended } from "./errors.js"
import { FrameSender } from "./frames.js"
import { Leases } from "./leases.js"
import { LEVELS, type LogLevel } from "./log.js"
import type * as m from "./models.js"
import { Task, type TaskWorker } from "./task.js"

/** Handles the executions of a kind, and returns the result. */
export type Handler<Input = unknown, Output = unknown> = (task: Task<Input>) => Output | Promise<Output>

/** What a worker is. */
export interface WorkerOptions {
  client: Client
  /** that it serves, its own first. Default those of the token, or default */
  namespaces?: string[]
  /** Default default */
  lanes?: string[]
  /** that executions may require */
  capabilities?: string[]
  /** of the application, for people */
  labels?: Record<string, string>
  /** of the application, for people */
  version?: string
  /** for people, 1..24 of A-Z a-z 0-9 . _ -. Default node */
  name?: string
  /** handlers that run at once, 1..1000. Default 64 */
  concurrency?: number
  /** how long a worker that died keeps its executions, 2,000..600,000 ms. Default 30,000 */
  leaseMs?: number
  /** how long handlers may go on when the worker ends. Default 20,000 ms */
  drainMs?: number
  /** how its lanes share its claims: 1..1000 for a lane of lanes. Default 1 */
  laneWeights?: Record<string, number>
  /** from which level on lines of task.log are kept with their execution; off keeps none. Default info */
  keepLogs?: LogLevel
  /** in Node.js: SIGTERM and SIGINT end run. Default false */
  handleSignals?: boolean
  /** Default: warnings go to console.warn */
  log?: (level: "info" | "warn", text: string, error?: unknown) => void
}

/** A completion on its way. */
interface Done {
  task: Task
  text: string
  bytes: number
}

const MOST_CLAIM = 100
const MOST_CLAIMS = 4 // at once, each for a part of the slots: a small one is answered sooner
const MOST_COMPLETES = 1 // calls that only complete, at once
const MOST_BODY = 1_300_000
const MOST_RESULT = 1024 * 1024
const WAIT_MS = 20_000
const SPARE_MS = 30_000 // for the answer of a claim, after its wait
const PATIENCE_MS = 10_000 // with a server that opens no session, before a warning
const LAST_WORDS_MS = 3_000 // for handlers that are told to end, and for the calls that end a session

const later: (call: () => void) => void =
  (globalThis as { setImmediate?: (call: () => void) => void }).setImmediate ?? (call => setTimeout(call))

interface Process {
  on(name: string, call: () => void): void
  off(name: string, call: () => void): void
}

/**
 * Handlers of many kinds in one session. It takes work when there is a free slot, completes with its next claim, and
 * renews all leases with one call.
 */
export class Worker implements TaskWorker {
  readonly concurrency: number
  readonly leaseMs: number
  readonly drainMs: number
  readonly json: Codec
  readonly keepLogs: LogLevel
  readonly #client: Client
  readonly #options: WorkerOptions
  readonly #handlers = new Map<string, Handler>()
  readonly #schemas: Record<string, m.KindSchemas> = {}
  readonly #log: NonNullable<WorkerOptions["log"]>
  readonly #frames: FrameSender
  readonly #unsettled = new Map<string, Task>() // by lease: the server does not know yet how the run ends
  readonly #working = new Set<Task>() // whose handler runs
  readonly #closed = new AbortController() // ends all calls
  #taking = new AbortController() // ends the claims that wait
  #done: Done[] = []
  #reserved = 0 // slots of claims under way
  #claims = 0
  #completes = 0
  #session = ""
  #opening: Promise<void> | undefined
  #woken = false
  #idle: (() => void)[] = []
  #fatal: ((e: unknown) => void) | undefined
  #state: "new" | "running" | "draining" | "ended" = "new"

  constructor(options: WorkerOptions) {
    const { concurrency = 64, leaseMs = 30_000, drainMs = 20_000 } = options
    bounded("concurrency", concurrency, 1, 1000)
    bounded("leaseMs", leaseMs, 2_000, 600_000)
    bounded("drainMs", drainMs, 0, 2 ** 31 - 1)
    this.concurrency = concurrency
    this.leaseMs = leaseMs
    this.drainMs = drainMs
    this.keepLogs = options.keepLogs ?? "info"
    if (!LEVELS.includes(this.keepLogs)) throw new RangeError(`keepLogs is none of ${LEVELS.join(", ")}`)
    this.#options = options
    this.#client = options.client
    this.json = options.client.api.json
    this.#log = options.log ?? ((level, text, error) => {
      if (level === "warn") console.warn(`flowfabric: ${text}`, ...(error === undefined ? [] : [error]))
    })
    this.#frames = new FrameSender(body => this.call("frames", body), later)
  }

  /**
   * Has a function handle the executions of a kind. Schemas say what it takes and gives, as JSON Schemas: an input that
   * does not fit is refused when it is submitted, and producers make types of both.
   */
  handle<Input = unknown, Output = unknown>(
    kind: string, handler: Handler<Input, Output>, schemas?: m.KindSchemas,
  ): this {
    if (this.#handlers.has(kind)) throw new TypeError(`kind ${JSON.stringify(kind)} has a handler already`)
    this.#handlers.set(kind, handler as Handler)
    if (schemas) this.#schemas[kind] = schemas
    return this
  }

  // Life

  /**
   * Works until the signal is aborted, or stop; then drains. A refusal of the session itself is thrown. A worker runs
   * once.
   */
  async run(signal?: AbortSignal): Promise<void> {
    if (this.#handlers.size === 0) throw new TypeError("the worker has no handlers")
    if (this.#state !== "new") throw new TypeError("a worker runs once")
    this.#state = "running"
    const stop = () => this.stop()
    const off = onAbort(signal, stop)
    const process = (globalThis as { process?: Process }).process
    const signals = this.#options.handleSignals && process ? ["SIGTERM", "SIGINT"] : []
    for (const one of signals) process?.on(one, stop)
    const leases = new Leases({
      leaseMs: this.leaseMs, working: this.#working, closed: this.#closed.signal, log: this.#log,
      renew: (body, signal, timeoutMs) => this.#renew(body, signal, timeoutMs),
      lose: (task, code) => this.lose(task, code),
    })
    try {
      const failed = new Promise<never>((_, reject) => (this.#fatal = reject))
      await Promise.race([failed, this.#untilStopped()])
    } finally {
      await this.#drain()
      leases.close()
      for (const one of signals) process?.off(one, stop)
      off()
    }
  }

  /** Takes no more work, and lets handlers end. */
  stop(): void {
    this.#taking.abort(new Suspended())
  }

  async #untilStopped(): Promise<void> {
    const stopped = new Promise<void>(resolve => onAbort(this.#taking.signal, resolve))
    try {
      await this.#open("", this.#taking.signal)
    } catch (e) {
      if (!this.#taking.signal.aborted) throw e
    }
    this.#wake()
    await stopped
  }

  async #drain(): Promise<void> {
    this.#state = "draining"
    this.stop()
    this.#wake()
    await this.#untilIdle(this.drainMs)
    const left = [...this.#unsettled.values()].filter(task => !task.signal.aborted).map(task => task.claim.lease)
    for (const task of this.#unsettled.values()) this.lose(task, "draining")
    await this.#untilIdle(LAST_WORDS_MS)
    this.#state = "ended"
    this.#closed.abort(new Suspended())
    if (!this.#session) return
    try { // what is left goes back at once
      await this.#client.api.call("POST", `${path("workers", this.#session)}:close`, {
        body: { leases: left }, retryForMs: LAST_WORDS_MS, timeoutMs: LAST_WORDS_MS,
      })
    } catch (e) {
      this.#log("warn", "the session was not closed", e)
    }
  }

  /** Waits until all that was taken is settled, and no handler runs. */
  #untilIdle(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#idle.push(() => (clearTimeout(timer), resolve()))
      this.#settled()
    })
  }

  #settled(): void {
    if (this.#unsettled.size === 0 && this.#working.size === 0) for (const one of this.#idle.splice(0)) one()
  }

  // Calls

  /** A call of the worker protocol, repeated until it is answered. A session that is gone is opened again. */
  async call<T>(verb: string, body: object | string, signal = this.#closed.signal, timeoutMs?: number): Promise<T> {
    for (;;) {
      const session = this.#session
      try {
        return await this.#client.api.call<T>("POST", `${path("workers", session)}:${verb}`, {
          body, signal, retryForMs: Infinity, ...(timeoutMs === undefined ? {} : { timeoutMs }),
        })
      } catch (e) {
        if (!(e instanceof FlowFabricError) || e.code !== "session_not_found") throw e
      }
      await this.#open(session, this.#closed.signal)
    }
  }

  /** Opens a session in the place of one that is gone, once for all calls that miss it. */
  #open(gone: string, signal: AbortSignal): Promise<void> {
    if (this.#session !== gone) return Promise.resolve()
    this.#opening ??= this.#openSession(signal).finally(() => (this.#opening = undefined))
    return this.#opening
  }

  async #openSession(signal: AbortSignal): Promise<void> {
    const { name = "node", namespaces, lanes, laneWeights, capabilities, labels, version } = this.#options
    const body: m.WorkerBody = {
      name, kinds: [...this.#handlers.keys()].sort(), concurrency: this.concurrency, lease_ms: this.leaseMs,
      ...(namespaces ? { namespaces } : {}),
      ...(lanes ? { lanes } : {}),
      ...(laneWeights ? { lane_weights: laneWeights } : {}),
      ...(capabilities ? { capabilities } : {}),
      ...(labels ? { labels } : {}),
      ...(version ? { version } : {}),
      ...(Object.keys(this.#schemas).length > 0 ? { schemas: this.#schemas } : {}),
    }
    const opened = await this.#register(body, signal)
    for (const task of this.#unsettled.values()) this.lose(task, "session_not_found") // its leases are refused
    this.#session = opened.session
    this.#log("info", `session ${opened.session} takes ${body.kinds.join(", ")}`)
  }

  async #register(body: m.WorkerBody, signal: AbortSignal): Promise<m.WorkerOpened> {
    for (;;) {
      try {
        return await this.#client.api.call("POST", path("workers"), { body, signal, retryForMs: PATIENCE_MS })
      } catch (e) {
        if (!mayRetry(e)) throw e
        this.#log("warn", "the server does not answer, trying on", e)
      }
    }
  }

  wake(frames: Task["frameBuffer"]): void {
    this.#frames.wake(frames)
  }

  // Claims

  /** Looks what is to be done, when everything that ends now has ended. */
  #wake(): void {
    if (this.#woken) return
    this.#woken = true
    later(() => {
      this.#woken = false
      this.#next()
    })
  }

  /** Makes the calls that can be made: claims for free slots, which complete what is done, and completions alone. */
  #next(): void {
    if (this.#state === "ended") return
    const taking = this.#state === "running" && this.#session !== ""
    while (taking && this.#claims < MOST_CLAIMS) {
      const room = 2 * this.concurrency - this.#unsettled.size // a server that settles slowly is given no more
      const part = Math.min(Math.ceil(this.concurrency / MOST_CLAIMS), MOST_CLAIM)
      const free = Math.min(this.concurrency - this.#working.size - this.#reserved, room, part)
      if (free < 1) break
      void this.#claim(free)
    }
    while (this.#done.length > 0 && this.#completes < MOST_COMPLETES) void this.#claim(0)
  }

  /** Takes so many executions, after it has completed what is done. */
  async #claim(max: number): Promise<void> {
    const list = this.#takeDone()
    const body = `{"max":${max},"wait_ms":${WAIT_MS},"complete":[${list.map(one => one.text).join(",")}]}`
    this.#reserved += max
    if (max > 0) this.#claims++
    else this.#completes++
    try {
      const signal = max > 0 ? this.#taking.signal : this.#closed.signal
      const answer = await this.call<m.ClaimAnswer>("claim", body, signal, WAIT_MS + SPARE_MS)
      list.forEach((one, i) => this.#completed(one, answer.completed?.[i]))
      for (const claim of answer.executions) this.#start(claim)
    } catch (e) {
      await this.#notClaimed(list, e)
    } finally {
      this.#reserved -= max
      if (max > 0) this.#claims--
      else this.#completes--
      this.#wake()
    }
  }

  /** As many completions as go in one call. */
  #takeDone(): Done[] {
    let count = 0
    let bytes = 0
    for (const one of this.#done) {
      if (count === MOST_CLAIM || (count > 0 && bytes + one.bytes > MOST_BODY)) break
      count++
      bytes += one.bytes
    }
    return this.#done.splice(0, count)
  }

  #completed({ task }: Done, answer: m.CompletedAnswer | undefined): void {
    if (answer?.held && answer.code) {
      void this.#fail(task, badResult(answer.code))
      return
    }
    if (answer && !answer.held) this.#log("info", `${task.id} is not ours any more: ${answer.code}`)
    this.#forget(task)
  }

  /** A claim failed: what it was to complete is not told yet. */
  async #notClaimed(list: Done[], e: unknown): Promise<void> {
    if (e instanceof Suspended) { // the worker ends
      this.#done.unshift(...list)
    } else if (e instanceof FlowFabricError && (e.status === 400 || e.status === 413) && list.length > 0) {
      await Promise.all(list.map(one => this.#completeAlone(one))) // one of them refuses all
    } else {
      for (const { task } of list) this.#unknown(task, e)
      this.#fatal?.(e)
      this.stop()
    }
  }

  async #completeAlone({ task, text }: Done): Promise<void> {
    try {
      await this.call("complete", text)
      this.#forget(task)
    } catch (e) {
      const refused = e instanceof FlowFabricError && (e.status === 400 || e.status === 413)
      if (refused) await this.#fail(task, badResult(e.message))
      else this.#unknown(task, e)
    }
  }

  // Handlers

  #start(claim: m.Claimed): void {
    const task = new Task(this, claim)
    task.until = performance.now() + this.leaseMs
    this.#unsettled.set(claim.lease, task)
    this.#working.add(task)
    void this.#work(task)
  }

  async #work(task: Task): Promise<void> {
    try {
      const text = await this.#handle(task)
      if (task.ended) return this.#forget(task)
      task.ended = true
      const line = `{"lease":${JSON.stringify(task.claim.lease)},"result":${text}}`
      this.#done.push({ task, text: line, bytes: bytesOf(line) })
    } catch (e) {
      if (task.ended || task.signal.aborted) this.#forget(task)
      else await this.#fail(task, e)
    } finally {
      this.#wake()
    }
  }

  /** Runs the handler, and returns the JSON of its result when all frames were sent. */
  async #handle(task: Task): Promise<string> {
    let result: unknown
    try {
      const handler = this.#handlers.get(task.kind)
      if (!handler) throw new Permanent(`the worker has no handler of kind ${task.kind}`)
      if (task.claim.input_lost) throw new Permanent("the input was deleted from the store", { category: "input_lost" })
      result = await handler(task)
    } finally { // another handler may run while this execution is settled
      this.#working.delete(task)
      this.#wake()
    }
    if (!task.ended) await task.sendAll()
    task.signal.throwIfAborted()
    try {
      const text = encode(this.json, result)
      const bytes = bytesOf(text)
      if (bytes > MOST_RESULT) throw new RangeError(`it has ${bytes} bytes, want at most ${MOST_RESULT}`)
      return text
    } catch (cause) {
      throw badResult(cause)
    }
  }

  async #fail(task: Task, error: unknown): Promise<void> {
    task.ended = false
    this.#log("info", `${task.id} fails`, error)
    try {
      await task.tellFailure(error)
      this.#forget(task)
    } catch (e) {
      this.#unknown(task, e)
    }
  }

  /** The server could not be told how a run ended. If it still is ours, it comes back when its lease is over. */
  #unknown(task: Task, error: unknown): void {
    if (!task.signal.aborted) this.#log("warn", `${task.id} was not settled`, error)
    this.#forget(task)
  }

  #forget(task: Task): void {
    this.#unsettled.delete(task.claim.lease)
    this.#settled()
  }

  // Leases

  /** One try to renew leases. */
  async #renew(body: m.ClaimBody, signal: AbortSignal, timeoutMs: number): Promise<m.ClaimAnswer> {
    const session = this.#session
    try {
      return await this.#client.api.call<m.ClaimAnswer>("POST", `${path("workers", session)}:claim`, {
        body, signal, retryForMs: 0, timeoutMs,
      })
    } catch (e) {
      if (!(e instanceof FlowFabricError) || e.code !== "session_not_found") throw e
      await this.#open(session, this.#closed.signal)
      throw new Suspended()
    }
  }

  /** Tells a handler that its lease is lost. Nobody else is told. */
  lose(task: Task, code: string): void {
    if (task.signal.aborted) return
    this.#log("info", `${task.id} is not ours any more: ${code}`)
    task.lose(code)
    if (!this.#working.has(task)) this.#forget(task)
  }
}

function badResult(cause: unknown): Permanent {
  return new Permanent(`the result was refused: ${String(cause)}`, { category: "invalid_result", cause })
}

function bounded(name: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(`${name} is ${value}, want a whole number from ${least} to ${most}`)
  }
}
