import { encode, payloadValue, type Codec } from "./encoding.js"
import { Failed, FlowFabricError, LeaseLost, Suspended, type FailOptions } from "./errors.js"
import { FrameBuffer, frameText, type FrameOptions } from "./frames.js"
import { Gates, type Amounts, type Host, type ServiceCall } from "./gates.js"
import { TaskLog, type LogLevel } from "./log.js"
import type * as m from "./models.js"

/** What ended a wait. */
export interface Answer<Value = unknown> {
  cause: m.Cause
  /** payload of the first signal */
  value: Value
  /** name of the first signal; of an answer to a question: the choice */
  name: string
  /** the operator who ended the wait */
  by: string
  reason: string
  signals: m.StoredSignal[]
}

/** A message of a mailbox. */
export interface Message<Value = unknown> {
  /** its place among all messages of the execution, from 1 */
  number: number
  value: Value
  by: string
  sentAt: m.Timestamp | undefined
}

/** How a child ended. */
export interface Outcome<Value = unknown> {
  id: string
  /** completed, failed, cancelled, expired or skipped; empty: it has not ended */
  outcome: string
  value: Value
}

/** Options of a wait, as the bodies of the API have them. */
export type WaitOptions = Omit<m.SuspendBody, "lease" | "wait">

/** Options of a question: those of a wait, and of what people see. */
export interface AskOptions extends Omit<WaitOptions, "question">, Omit<m.Question, "title" | "choices"> {
  choices?: (string | m.Choice)[]
}

/** Options of a wait for children, as the bodies of the API have them. */
export type ChildrenOptions = Omit<m.ChildrenBody, "lease" | "wait" | "children">

/** Options of a receipt: those of a wait, and look. */
export interface ReceiveOptions extends Omit<WaitOptions, "question" | "until"> {
  /** do not wait: undefined when there is no message */
  look?: boolean
}

/** What a task asks of its worker. */
export interface TaskWorker {
  readonly json: Codec
  readonly keepLogs: LogLevel
  call<T>(verb: string, body: object, signal?: AbortSignal): Promise<T>
  lose(task: Task, code: string): void
  wake(frames: FrameBuffer): void
}

// Refusals which say that the execution is not this worker's any more.
const LOST = new Set([
  "stale_lease", "lease_expired", "lease_revoked", "lease_lost", "cancelled", "execution_deadline", "attempt_timeout",
  "execution_expired", "execution_not_active", "execution_not_found", "execution_terminal", "rewound",
  "stale_owner_cannot_append", "stream_closed",
])

/**
 * One run of a handler. After a wait or a retry the handler runs again from the top, so what must not be repeated is a
 * step. A method throws the reason of signal when the lease is lost; let that pass.
 */
export class Task<Input = unknown> {
  readonly id: string
  readonly kind: string
  /** 1 for the first */
  readonly attempt: number
  readonly input: Input
  /** results of upstream nodes of a flow, by the name of the input */
  readonly inputs: Record<string, unknown>
  readonly tags: Record<string, string>
  /** all that the server said of the execution */
  readonly claim: m.Claimed
  /** whether the run has told how it ends */
  ended = false
  /** when the lease ends, by performance.now(), as far as the worker knows */
  until = 0
  /** the request of the newest stop that was heard of */
  heard: string | undefined
  readonly began = performance.now()
  /** What the handler says of its run, kept with the execution. */
  readonly log: TaskLog
  readonly frameBuffer: FrameBuffer
  readonly #worker: TaskWorker
  readonly #lost = new AbortController()
  readonly #gates: Gates
  readonly #steps = new Map<string, Promise<unknown>>()
  readonly #received = new Map<string, number>()
  #stop = new AbortController()
  #failedStep: { error: unknown; step: string; step_took_ms: number } | undefined

  constructor(worker: TaskWorker, claim: m.Claimed) {
    this.#worker = worker
    this.claim = claim
    this.id = claim.id
    this.kind = claim.kind
    this.attempt = claim.attempt
    this.input = payloadValue(claim.input) as Input
    this.inputs = mapped(claim.inputs, payloadValue)
    this.tags = claim.tags ?? {}
    for (const [name, value] of Object.entries(claim.steps ?? {})) {
      this.#steps.set(name, Promise.resolve(payloadValue(value)))
    }
    this.frameBuffer = new FrameBuffer(claim.lease, claim.last_sequence, code => worker.lose(this, code))
    this.log = new TaskLog(worker.keepLogs, body => this.#call("log", body))
    const host: Host = {
      gates: claim.gates ?? [],
      signal: this.signal,
      call: (verb, body) => this.#call(verb, body),
      tell: (verb, body) => this.#worker.call(verb, { lease: claim.lease, ...body }),
      release: () => this.release(),
      delay: (ms, options) => this.delay(ms, options),
      ask: (name, title, options) => this.ask(name, title, options),
    }
    this.#gates = new Gates(host)
    this.hear(claim.stopping)
  }

  /** Aborted when the lease is lost, with LeaseLost as its reason. Hand it to everything that takes a signal. */
  get signal(): AbortSignal {
    return this.#lost.signal
  }

  /** Aborted when somebody asks the execution to stop its turn. A step with turn: "stopped" heeds that. */
  get stopping(): AbortSignal {
    return this.#stop.signal
  }

  /** Takes note of a stop. */
  hear(request: string | undefined): void {
    if (!request || request === this.heard) return
    this.heard = request
    this.#stop.abort(new Error("somebody asked the execution to stop"))
  }

  /** Takes note that the lease is lost. */
  lose(code: string): void {
    const reason = new LeaseLost(code)
    this.#lost.abort(reason)
    this.log.close()
    this.frameBuffer.fail(reason)
  }

  #check(): void {
    this.signal.throwIfAborted()
    if (this.ended) throw new Suspended()
  }

  async #call<T>(verb: string, body: object): Promise<T> {
    this.#check()
    try {
      return await this.#worker.call<T>(verb, { lease: this.claim.lease, ...body }, this.signal)
    } catch (e) {
      if (e instanceof FlowFabricError && LOST.has(e.code)) {
        this.#worker.lose(this, e.code)
        throw this.signal.reason
      }
      throw e
    }
  }

  /** Waits until the server has all frames, and lines of the log as far as it takes them. */
  async sendAll(): Promise<void> {
    await this.log.flush()
    await this.flush()
  }

  /** Ends the run with a call, after all frames were sent. */
  async #end(verb: string, body: object): Promise<never> {
    await this.sendAll()
    await this.#call(verb, body)
    return this.#leave()
  }

  #leave(): never {
    this.ended = true
    throw new Suspended()
  }

  // Output

  /**
   * Appends output that others follow live: a text, or a frame. Frames are sent in the background, many in one call.
   * It waits while a thousand of them wait to be sent, so await it.
   */
  frame(frame: string | FrameOptions, options: Omit<FrameOptions, "text" | "json" | "data"> = {}): Promise<void> {
    return this.frames([typeof frame === "string" ? { ...options, text: frame } : frame])
  }

  /** Appends several frames. */
  frames(list: Iterable<string | FrameOptions>): Promise<void> {
    const done = this.#append(list)
    done.catch(() => {}) // who does not await it hears of the error from flush, or at the end
    return done
  }

  async #append(list: Iterable<string | FrameOptions>): Promise<void> {
    for (const one of list) {
      this.#check()
      this.frameBuffer.add(frameText(this.#worker.json, typeof one === "string" ? { text: one } : one))
      this.#worker.wake(this.frameBuffer)
      await this.frameBuffer.room()
    }
  }

  /** Waits until the server has all frames. */
  flush(): Promise<void> {
    return this.frameBuffer.flush()
  }

  /** Says how far the execution is: 0..100 percent, and a text of at most 1 KiB. */
  async progress(percent?: number, message?: string): Promise<void> {
    await this.#call("progress", { percent, message })
  }

  // What is kept between runs

  /** Whether a step was recorded, by this run or an earlier one. */
  recorded(name: string): boolean {
    return this.#steps.has(name)
  }

  /**
   * Runs a function once and records what it returns, as JSON of at most 256 KiB. Later runs get the record. turn says
   * what the step is to a handler that talks in turns: over, stopped or begin.
   */
  step<Value>(name: string, run: () => Value | Promise<Value>, options: { turn?: string } = {}): Promise<Value> {
    let done = this.#steps.get(name) as Promise<Value> | undefined
    if (!done) {
      done = this.#step(name, run, options)
      this.#steps.set(name, done)
      done.catch(() => this.#steps.delete(name))
    }
    return done
  }

  async #step<Value>(name: string, run: () => Value | Promise<Value>, options: { turn?: string }): Promise<Value> {
    this.#check()
    const began = performance.now()
    let value: unknown
    try {
      value = await run()
    } catch (error) {
      this.#failedStep = { error, step: name, step_took_ms: Math.round(performance.now() - began) }
      throw error
    }
    const took_ms = Math.round(performance.now() - began)
    const text = encode(this.#worker.json, value)
    await this.flush()
    const body = { name, value: this.#worker.json.parse(text), took_ms, ...options }
    const { stopping } = await this.#call<m.StepAnswer>("step", body)
    if (options.turn === "stopped") {
      this.heard = stopping ?? this.heard
      this.#stop = new AbortController()
    } else {
      this.hear(stopping)
    }
    return body.value as Value // as later runs see it
  }

  /** The token of a waitpoint, with which others may answer. Hand it out inside a step. Empty when it is closed. */
  async token(key: string, options: { life_ms?: number } = {}): Promise<string> {
    return (await this.#call<m.WaitpointToken>("waitpoint", { key, ...options })).token
  }

  /**
   * Has the wait of this name take the next event of a subject that is published and matches. where has fields of its
   * data, by names joined by dots, and the string, number, boolean or null that each must have. Call it in every run,
   * before what leads to the event, and then wait(key), whose value is the data. An event that comes before the wait is
   * kept for it. The wait has to begin within 7 days.
   */
  async expect(key: string, subject: string, where?: m.ExpectBody["where"]): Promise<void> {
    await this.#call("expect", { key, subject, where })
  }

  /** Takes the token of a waitpoint back, or expects its event no more. */
  async closeToken(key: string): Promise<void> {
    await this.#call("close-waitpoint", { key })
  }

  /** Waits for a signal on the waitpoint of this name, or for until. The slot is free meanwhile. */
  async wait<Value = unknown>(name: string, options: WaitOptions = {}): Promise<Answer<Value>> {
    const answer = own(this.claim.waits, name) ?? (await this.#suspend({ wait: name, ...options }))
    const signals = answer.signals ?? []
    const [first] = signals
    return {
      cause: answer.cause, value: payloadValue(first?.payload) as Value, name: first?.name ?? "",
      by: answer.by ?? "", reason: answer.reason ?? "", signals,
    }
  }

  /** Asks people, and waits for their answer. name of the answer is the choice. */
  ask<Value = unknown>(name: string, title: string, options: AskOptions = {}): Promise<Answer<Value>> {
    const { text, choices, assignee, arguments: args, schema, ...rest } = options
    const listed = choices?.map(one => (typeof one === "string" ? { name: one } : one))
    const question: m.Question = {
      title,
      ...(text ? { text } : {}),
      ...(listed ? { choices: listed } : {}),
      ...(assignee ? { assignee } : {}),
      ...(args === undefined ? {} : { arguments: args }),
      ...(schema === undefined ? {} : { schema }),
    }
    return this.wait(name, { ...rest, question })
  }

  async #suspend(body: Omit<m.SuspendBody, "lease">): Promise<m.SuspendResult> {
    await this.sendAll()
    const { suspended, answer } = await this.#call<m.SuspendAnswer>("suspend", body)
    if (suspended || !answer) return this.#leave()
    return answer
  }

  /**
   * The next message of a mailbox, which every later run gets, too. Without one it waits, unless look says otherwise;
   * undefined if the wait ended in another way.
   */
  async receive<Value = unknown>(mailbox: string, options: ReceiveOptions = {}): Promise<Message<Value> | undefined> {
    const { look, ...wait } = options
    const number = (this.#received.get(mailbox) ?? 0) + 1
    this.#received.set(mailbox, number)
    let took: Omit<m.ReceiveAnswer, "wait"> | undefined = own(own(this.claim.receipts, mailbox), String(number))
    while (!took) {
      await this.flush()
      const body = { mailbox, number, ...(look ? { look } : {}) }
      const said = await this.#call<m.ReceiveAnswer>("receive", body)
      if (said.wait) await this.#suspend({ until: { mailbox, number }, ...wait })
      else took = said
    }
    const [first] = took.messages
    if (!first) return undefined
    const value = payloadValue(first.payload) as Value
    return { number: first.number, value, by: first.by ?? "", sentAt: first.sent_at }
  }

  /** Runs other executions, and returns how they ended, by name. */
  async children<Value = unknown>(
    wait: string, children: m.NodeBody[], options: ChildrenOptions = {},
  ): Promise<Record<string, Outcome<Value>>> {
    let outcomes = own(this.claim.children, wait)
    if (!outcomes) {
      await this.sendAll()
      const said = await this.#call<m.ChildrenAnswer>("children", { wait, children, ...options })
      if (said.parked) return this.#leave()
      outcomes = said.outcomes
    }
    return mapped(outcomes, one => ({
      id: one.id, outcome: one.outcome ?? "", value: payloadValue(one.result) as Value,
    }))
  }

  // Amounts and calls to services

  /**
   * Counts what was used, at every gate of the execution and those above. Without a gate it counts nothing. It counts
   * also when the lease is lost. A gate counts the same key once within 24 hours, also in later runs of the execution;
   * without a key every run counts again.
   */
  spend(amounts: Amounts, options: { key?: string } = {}): Promise<void> {
    return this.#gates.spend(amounts, options)
  }

  /** Sets aside the most that a call may use, and returns the number for settle or unreserve. */
  reserve(amounts: Amounts): Promise<number> {
    return this.#gates.reserve(amounts)
  }

  /** Says what the call used. It counts also when the lease is lost. */
  settle(reservation: number, amounts: Amounts): Promise<void> {
    return this.#gates.settle(reservation, amounts)
  }

  /** Gives a reservation back: the call was certainly not made. */
  unreserve(reservation: number): Promise<void> {
    return this.#gates.unreserve(reservation)
  }

  /** Waits for the turn of a call to a service. The slot is free when the turn is far. */
  acquire(service: string, estimate: Amounts = {}): Promise<ServiceCall> {
    return this.#gates.acquire(service, estimate)
  }

  // Ends

  /** Starts the execution anew with another input, under its id. It does not return. */
  continueAs(input?: unknown): Promise<never> {
    return this.#end("continue", { input })
  }

  /** Goes on later, after some milliseconds. It does not return. */
  delay(ms: number, options: { service?: string } = {}): Promise<never> {
    return this.#end("delay", { delay_ms: Math.max(0, Math.round(ms)), ...options })
  }

  /** Gives the execution back. It does not return. */
  release(): Promise<never> {
    return this.#end("release", {})
  }

  /** Cancels the execution. It does not return. */
  cancel(reason?: string): Promise<never> {
    return this.#end("cancel", { reason })
  }

  /** Fails the attempt, as a Failed that the handler throws does. It does not return. */
  fail(message: string, options: FailOptions = {}): never {
    throw new Failed(message, options)
  }

  /** Tells the server that the run failed. The policy of the execution decides whether it is retried. */
  async tellFailure(error: unknown): Promise<void> {
    const { category, permanent, retryAfterMs }: FailOptions = error instanceof Failed ? error.options : {}
    const of = this.#failedStep?.error === error ? this.#failedStep : undefined
    const body: Omit<m.FailBody, "lease"> = {
      message: messageOf(error), category, permanent, step: of?.step, step_took_ms: of?.step_took_ms,
      retry_after_ms: retryAfterMs === undefined ? undefined : Math.max(0, Math.round(retryAfterMs)),
    }
    await this.sendAll().catch(() => {}) // often the reason for which it fails
    try {
      await this.#call("fail", body)
    } catch (e) {
      if (!(e instanceof FlowFabricError) || e.status !== 400) throw e
      await this.#call("fail", { message: shortened(`${body.message} (and ${e.message})`), permanent })
    }
    this.ended = true
  }
}

function mapped<A, B>(values: Record<string, A> | undefined, change: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, change(value)]))
}

/** A member of a record, and nothing that all objects have. */
function own<T>(values: Record<string, T> | undefined, name: string): T | undefined {
  return values && Object.hasOwn(values, name) ? values[name] : undefined
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return shortened(String(error))
  const plain = error instanceof Failed || error.name === "Error"
  return shortened(plain ? error.message : `${error.name}: ${error.message}`)
}

/** A text in at most 1 KiB of valid UTF-8. */
function shortened(text: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, 1022))
}
