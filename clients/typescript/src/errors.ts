import type { Problem } from "./models.js"

/** What is known of a failed call. */
export interface FlowFabricErrorOptions {
  /** HTTP status of the answer; 0: there was none */
  status?: number
  /** the answer, if it was a problem document of the API */
  problem?: Partial<Problem> & { remedy?: string }
  /** milliseconds that the server wants the caller to wait */
  retryAfterMs?: number
  cause?: unknown
}

/**
 * A call that failed. A refusal of the API has a status, and a code of the reference page of errors. Without an answer
 * the status is 0, and the code is connection_lost or timed_out (the call was carried out or not), protocol_error (the
 * answer is not JSON) or invalid_input (the call was not made).
 */
export class FlowFabricError extends Error {
  override readonly name: string = "FlowFabricError"
  readonly code: string
  readonly status: number
  readonly detail: string
  /** the member of the body that is wrong */
  readonly field: string
  /** what to do about it, if the server says so */
  readonly remedy: string
  /** names the line in the server's log */
  readonly requestId: string
  readonly retryAfterMs: number | undefined
  readonly problem: Partial<Problem>

  constructor(code: string, detail = "", options: FlowFabricErrorOptions = {}) {
    const problem = options.problem ?? {}
    const place = problem.field ? ` (${problem.field})` : ""
    super(code + place + (detail && `: ${detail}`), options.cause === undefined ? {} : { cause: options.cause })
    this.code = code
    this.status = options.status ?? 0
    this.detail = detail
    this.field = problem.field ?? ""
    this.remedy = problem.remedy ?? ""
    this.requestId = problem.request_id ?? ""
    this.retryAfterMs = options.retryAfterMs
    this.problem = problem
  }
}

/** The error for an answer of the API. */
export function refusal(status: number, body: unknown, retryAfterMs?: number): FlowFabricError {
  const problem: Record<string, unknown> = {}
  if (typeof body === "object" && body !== null) Object.assign(problem, body)
  const text = (name: string) => (typeof problem[name] === "string" ? problem[name] : "")
  return new FlowFabricError(text("code") || `http_${status}`, text("detail") || text("title"), {
    status,
    problem,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  })
}

/** How a handler fails. */
export interface FailOptions {
  /** 1..64 bytes, for lists and alerts. Default handler_error */
  category?: string
  /** no retry, whatever the policy of the execution says */
  permanent?: boolean
  /** pause before the next attempt in milliseconds, instead of the policy's */
  retryAfterMs?: number
  cause?: unknown
}

/** A handler throws it to fail the attempt, and to say how. Any other error is a failure with the default options. */
export class Failed extends Error {
  override readonly name: string = "Failed"

  constructor(message: string, readonly options: FailOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
  }
}

/** A failure that no retry can repair. */
export class Permanent extends Failed {
  override readonly name = "Permanent"

  constructor(message: string, options: Omit<FailOptions, "permanent"> = {}) {
    super(message, { ...options, permanent: true })
  }
}

/** The execution is another worker's by now, was cancelled, or has ended. The reason of task.signal. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost"

  /** code says why, as the reference page of errors has it; draining: the worker ends */
  constructor(readonly code: string) {
    super(`the execution is not this worker's any more: ${code}`)
  }
}

/** A gate has no room for the amounts, and leaves it to the handler what to do. */
export class GateRefused extends Error {
  override readonly name = "GateRefused"

  constructor(readonly gate: string, readonly breaches: unknown) {
    super(`gate ${gate} has no room: ${JSON.stringify(breaches)}`)
  }
}

/** Ends a run whose end the server knows already, such as a wait. Handlers let it pass. */
export class Suspended extends Error {
  override readonly name = "Suspended"

  constructor() {
    super("the run ends here, and the handler runs again later")
  }
}
