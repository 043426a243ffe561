import type * as m from "./models.js"

/** From which level on lines are kept; off keeps nothing. */
export type LogLevel = "debug" | "info" | "warn" | "error" | "off"

/** All of them, the lowest first. */
export const LEVELS: LogLevel[] = ["debug", "info", "warn", "error", "off"]
const LINGER_MS = 200 // for which the first line of a call waits for others
const MOST_LINES = 100 // of a call
const MOST_KEPT = 1000 // lines that wait
const MOST_BYTES = 8192 // of a message, and of an attribute

export type Attributes = Record<string, unknown>

/**
 * What a handler says of its run. Lines are sent in the background, many in one call, and kept with the execution: of
 * each attempt the last 1,000 lines and 256 KiB. Logging never fails and never waits; lines that could not be sent are
 * counted.
 */
export class TaskLog {
  readonly #least: number
  readonly #send: (body: Omit<m.LogBody, "lease">) => Promise<unknown>
  #lines: m.LineBody[] = []
  #dropped = 0
  #next = 1
  #timer: ReturnType<typeof setTimeout> | undefined
  #sending: Promise<void> | undefined
  #closed = false

  constructor(least: LogLevel, send: (body: Omit<m.LogBody, "lease">) => Promise<unknown>) {
    this.#least = LEVELS.indexOf(least)
    this.#send = send
  }

  debug(message: string, attributes?: Attributes): void {
    this.#add("debug", message, attributes)
  }

  info(message: string, attributes?: Attributes): void {
    this.#add("info", message, attributes)
  }

  warn(message: string, attributes?: Attributes): void {
    this.#add("warn", message, attributes)
  }

  error(message: string, attributes?: Attributes): void {
    this.#add("error", message, attributes)
  }

  #add(level: LogLevel, message: string, attributes?: Attributes): void {
    if (this.#closed || LEVELS.indexOf(level) < this.#least) return
    const line: m.LineBody = { at: new Date().toISOString(), level, message: cut(String(message)) }
    if (attributes) line.attributes = flat({}, "", attributes)
    this.#lines.push(line)
    if (this.#lines.length > MOST_KEPT) {
      this.#lines.shift()
      this.#dropped++
    }
    if (this.#sending) return // which goes on with what came meanwhile
    if (this.#lines.length === MOST_LINES) void this.flush()
    else this.#timer ??= setTimeout(() => void this.flush(), LINGER_MS)
  }

  /** Tries to send what waits, and returns when that is done. It does not throw. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#sending) await this.#sending
    if (this.#lines.length === 0) return
    this.#sending = this.#sendAll()
    await this.#sending
  }

  async #sendAll(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines.splice(0, MOST_LINES)
      const first = this.#next
      const dropped = this.#dropped
      this.#next += lines.length // also if nobody knows whether they are stored
      this.#dropped = 0
      try {
        await this.#send({ first, lines, ...(dropped ? { dropped } : {}) })
      } catch {
        this.#dropped = dropped + lines.length
      }
    }
    this.#sending = undefined
  }

  /** Drops what waits, and takes no more. */
  close(): void {
    this.#closed = true
    this.#lines = []
    clearTimeout(this.#timer)
  }
}

function cut(text: string): string {
  const start = text.length <= MOST_BYTES ? text : `${text.slice(0, MOST_BYTES)}…`
  return new TextDecoder().decode(new TextEncoder().encode(start)) // without half characters, which JSON refuses
}

/** The attributes of groups get names with dots, and what JSON has no form for becomes a text. */
function flat(out: Attributes, group: string, attributes: Attributes, depth = 0): Attributes {
  for (const [name, value] of Object.entries(attributes)) {
    const key = cut(group + name)
    if (plain(value) && depth < 8) flat(out, `${key}.`, value, depth + 1)
    else out[key] = bounded(value)
  }
  return out
}

function plain(value: unknown): value is Attributes {
  return value !== null && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype
}

function bounded(value: unknown): unknown {
  if (typeof value === "string") return cut(value)
  if (value instanceof Error) return cut(String(value))
  try {
    const text = JSON.stringify(value)?.replace(/\\ud[89a-f]../g, "\\ufffd") ?? JSON.stringify(String(value))
    return text.length <= MOST_BYTES ? JSON.parse(text) : cut(text)
  } catch {
    return cut(String(value))
  }
}
