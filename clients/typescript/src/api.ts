import { onAbort, pause } from "./cancel.js"
import { encode, type Codec } from "./encoding.js"
import { FlowFabricError, refusal } from "./errors.js"

/** How to reach a server. */
export interface ApiOptions {
  /** address of the API. Default http://127.0.0.1:8080 */
  url?: string
  /** bearer token; a function is asked before each request. Default none */
  token?: string | (() => string | Promise<string>)
  /** namespace of submissions, flows and lists that name none. Default the server's */
  namespace?: string
  /** milliseconds of one try. Default 30,000 */
  timeoutMs?: number
  /** milliseconds of all tries of a call together; Infinity tries for ever. Default 60,000 */
  retryForMs?: number
  /** a stream of events is opened again when it says nothing for so long. Default 90,000 ms */
  quietMs?: number
  /** Default the platform's */
  fetch?: typeof fetch
  /** Default JSON */
  json?: Codec
}

/** Names and values of a query: undefined and false are left out, lists repeated, records written as key=value. */
export type Query = Record<string, unknown>

/** What one call says beside its path. */
export interface CallOptions {
  /** a value for JSON, or a text that is JSON */
  body?: unknown
  query?: Query
  headers?: Record<string, string>
  timeoutMs?: number
  retryForMs?: number
  signal?: AbortSignal | undefined
}

interface OpenOptions extends Omit<CallOptions, "body" | "retryForMs"> {
  text?: string | undefined
}

const AGAIN = [429, 502, 503, 504]
const MAX_PAUSE = 5_000
const MAX_RETRY_AFTER = 300_000

/** Whether the same call may succeed later. */
export function mayRetry(e: unknown): e is FlowFabricError {
  return (
    e instanceof FlowFabricError && (e.code === "connection_lost" || e.code === "timed_out" || AGAIN.includes(e.status))
  )
}

/** A path of the API. A name is quoted, so it cannot reach another route. */
export function path(...parts: string[]): string {
  return parts.reduce((out, part) => {
    if (["", ".", ".."].includes(part)) {
      throw new FlowFabricError("invalid_input", "an id or a name is empty, or only dots")
    }
    try {
      return `${out}/${encodeURIComponent(part)}`
    } catch (cause) {
      throw new FlowFabricError("invalid_input", "an id or a name is no valid Unicode", { cause })
    }
  }, "/v1")
}

function queryOf(values: Query): string {
  const out = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === null || value === false) continue
    const list = Array.isArray(value)
      ? value
      : typeof value === "object"
        ? Object.entries(value).map(([k, v]) => `${k}=${v}`)
        : [value]
    for (const one of list) out.append(name, String(one))
  }
  return out.size > 0 ? `?${out}` : ""
}

/** Pauses between tries. They grow and have jitter. */
export class Backoff {
  readonly #withinMs: number
  #until = 0
  #next = 0

  constructor(withinMs: number) {
    this.#withinMs = withinMs
    this.restart()
  }

  /** Begins again: the server has answered. */
  restart(): void {
    this.#until = performance.now() + this.#withinMs
    this.#next = 100
  }

  /** Waits for the next try, or throws the error when the time for tries is over. */
  async pause(error: FlowFabricError, signal?: AbortSignal): Promise<void> {
    const wanted = error.retryAfterMs
    const ms = wanted === undefined ? this.#next * (0.5 + Math.random() / 2) : wanted * (1 + Math.random() / 10)
    if (performance.now() + ms > this.#until) throw error
    this.#next = Math.min(this.#next * 2, MAX_PAUSE)
    await pause(ms, signal)
  }
}

/** A request that is under way. close ends it. */
export class Exchange {
  answer!: Response
  readonly #control = new AbortController()
  readonly #off: () => void
  #timer: ReturnType<typeof setTimeout> | undefined
  #late = false

  constructor(readonly timeoutMs: number, readonly caller: AbortSignal | undefined) {
    this.#off = onAbort(caller, () => this.#control.abort())
    this.touch()
  }

  get signal(): AbortSignal {
    return this.#control.signal
  }

  /** Starts the time of the timeout again. */
  touch(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => ((this.#late = true), this.#control.abort()), this.timeoutMs)
  }

  /** Ends the request, unless its answer was read to the end. */
  close(read = false): void {
    clearTimeout(this.#timer)
    this.#off()
    if (!read) this.#control.abort()
  }

  /** The whole body. */
  async text(): Promise<string> {
    try {
      const text = await this.answer.text()
      this.close(true)
      return text
    } catch (e) {
      this.close()
      throw this.errorOf(e)
    }
  }

  /** The body piece by piece. */
  async *pieces(): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder()
    const reader = this.answer.body?.getReader()
    try {
      while (reader) {
        const { done, value } = await reader.read()
        if (done) return
        this.touch()
        yield decoder.decode(value, { stream: true })
      }
    } catch (e) {
      throw this.errorOf(e)
    } finally {
      this.close()
    }
  }

  /** What the caller is told of an error of fetch. */
  errorOf(e: unknown): unknown {
    if (e instanceof FlowFabricError) return e
    if (this.caller?.aborted) return this.caller.reason
    if (this.#late) return new FlowFabricError("timed_out", `no answer within ${this.timeoutMs} ms`, { cause: e })
    return new FlowFabricError("connection_lost", reasonOf(e), { cause: e })
  }
}

/** One server, and what every call needs. Many calls may be under way. */
export class Api {
  readonly json: Codec
  readonly timeoutMs: number
  readonly retryForMs: number
  readonly quietMs: number
  readonly url: string
  readonly #token: ApiOptions["token"]
  readonly #fetch: typeof fetch

  constructor(options: ApiOptions) {
    const given = options.url ?? "http://127.0.0.1:8080"
    const url = URL.canParse(given) ? new URL(given) : undefined
    if (!url || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
      throw new TypeError(`url is ${given}, want http:// or https:// with no user, query or fragment`)
    }
    this.url = url.href.replace(/\/+$/, "")
    this.#token = options.token
    this.#fetch = options.fetch ?? ((q, init) => fetch(q, init))
    this.json = options.json ?? JSON
    this.timeoutMs = options.timeoutMs ?? 30_000
    this.retryForMs = options.retryForMs ?? 60_000
    this.quietMs = options.quietMs ?? 90_000
  }

  /**
   * Carries out a call and returns its answer, undefined if that is empty. While the server is away, or asks for a
   * pause, the call is repeated: all calls of the package may be.
   */
  async call<T>(method: string, target: string, options: CallOptions = {}): Promise<T> {
    const { body, signal } = options
    const text = body === undefined || typeof body === "string" ? body : encode(this.json, body)
    const headers = { ...options.headers, ...(text === undefined ? {} : { "Content-Type": "application/json" }) }
    const backoff = new Backoff(options.retryForMs ?? this.retryForMs)
    for (;;) {
      try {
        const exchange = await this.open(method, target, { ...options, headers, text })
        const answer = await exchange.text()
        return (answer === "" ? undefined : this.parse(answer)) as T
      } catch (e) {
        if (!mayRetry(e)) throw e
        await backoff.pause(e, signal)
      }
    }
  }

  /** Makes one request, and gives the answer to read. It throws refusals, and the reason of the signal. */
  async open(method: string, target: string, options: OpenOptions): Promise<Exchange> {
    options.signal?.throwIfAborted()
    const exchange = new Exchange(options.timeoutMs ?? this.timeoutMs, options.signal)
    try {
      const token = typeof this.#token === "function" ? await this.#token() : this.#token
      const headers = { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...options.headers }
      const body = options.text === undefined ? {} : { body: options.text }
      const url = this.url + target + queryOf(options.query ?? {})
      exchange.answer = await this.#fetch(url, { method, headers, signal: exchange.signal, ...body })
      if (!exchange.answer.ok) throw await this.#refusal(exchange.answer)
      return exchange
    } catch (e) {
      exchange.close()
      throw exchange.errorOf(e)
    }
  }

  /** Reads JSON that the server sent. */
  parse(text: string): unknown {
    try {
      return this.json.parse(text)
    } catch (cause) {
      throw new FlowFabricError("protocol_error", `the answer is no JSON: ${String(cause)}`, { cause })
    }
  }

  async #refusal(answer: Response): Promise<FlowFabricError> {
    const after = Number(answer.headers.get("Retry-After") || NaN) // of a date nothing is known: the usual pause
    const text = await answer.text()
    let problem: unknown
    try {
      problem = JSON.parse(text)
    } catch {
      // a proxy answered
    }
    return refusal(answer.status, problem, after >= 0 ? Math.min(after * 1000, MAX_RETRY_AFTER) : undefined)
  }

  /** The items of a list, page by page. */
  async *pages<T>(target: string, query: Query, signal?: AbortSignal): AsyncGenerator<T, void, undefined> {
    let cursor: string | undefined
    do {
      const page = await this.call<{ items?: T[]; next_cursor?: string }>("GET", target, {
        query: { ...query, cursor }, signal,
      })
      yield* page.items ?? []
      cursor = page.next_cursor
    } while (cursor)
  }
}

/** What a failed fetch says, and why. */
function reasonOf(e: unknown): string {
  if (!(e instanceof Error)) return String(e)
  return e.cause instanceof Error ? `${e.message}: ${e.cause.message}` : e.message
}
