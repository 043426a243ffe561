import { bytesOf, encode, toBase64, type Codec } from "./encoding.js"
import { FlowFabricError } from "./errors.js"
import type { BatchFrames, FrameBody, FramesAnswer } from "./models.js"

/** Output that others follow live: one of text, json and data, at most 64 KiB. */
export interface FrameOptions extends Omit<FrameBody, "base64"> {
  /** bytes that are not text */
  data?: Uint8Array
}

const MOST_FRAMES = 100 // of one execution in one call
const MOST_BYTES = 512 * 1024
const MOST_BATCHES = 100 // executions in one call
const MOST_BODY = 1_300_000
const MOST_CALLS = 4 // at once
const MOST_WAITING = 1000 // frames of an execution that wait, before frame() waits
const MOST_WAITING_BYTES = 1024 * 1024

/** The JSON of a frame, as the API takes it. */
export function frameText(json: Codec, frame: FrameOptions): string {
  const { data, ...rest } = frame
  return encode(json, data ? { ...rest, base64: toBase64(data) } : rest)
}

/** The frames of one execution, from frame() until the server has them. They are sent in order. */
export class FrameBuffer {
  #waiting: { text: string; bytes: number }[] = []
  #bytes = 0
  #error: Error | undefined
  #waiters: { full: () => boolean; resolve: () => void; reject: (e: Error) => void }[] = []
  sending = false

  constructor(readonly lease: string, private last: number, private readonly lost: (code: string) => void) {}

  get empty(): boolean {
    return this.#waiting.length === 0
  }

  add(text: string): void {
    if (this.#error) throw this.#error
    const bytes = bytesOf(text)
    this.#waiting.push({ text, bytes })
    this.#bytes += bytes
  }

  /** Waits until there is room for another frame. */
  room(): Promise<void> {
    return this.#until(() => this.#waiting.length >= MOST_WAITING || this.#bytes >= MOST_WAITING_BYTES)
  }

  /** Waits until the server has all frames. */
  flush(): Promise<void> {
    return this.#until(() => this.#waiting.length > 0)
  }

  #until(full: () => boolean): Promise<void> {
    if (this.#error) return Promise.reject(this.#error)
    if (!full()) return Promise.resolve()
    return new Promise((resolve, reject) => this.#waiters.push({ full, resolve, reject }))
  }

  /** The next frames that fit in so many bytes; none, if the first does not, unless alone. */
  next(room: number, alone: boolean): Batch | undefined {
    let count = 0
    let bytes = 0
    for (const one of this.#waiting) {
      const fits = bytes + one.bytes <= Math.min(room, MOST_BYTES) || (alone && count === 0)
      if (count === MOST_FRAMES || !fits) break
      count++
      bytes += one.bytes + 1
    }
    if (count === 0) return undefined
    const frames = this.#waiting.slice(0, count).map(one => one.text)
    const head = `{"lease":${JSON.stringify(this.lease)},"first":${this.last + 1},"frames":[`
    return { buffer: this, count, bytes: bytes + head.length + 2, text: `${head}${frames.join(",")}]}` }
  }

  /** Takes the server's answer about the first frames that wait. */
  told(count: number, answer: BatchFrames): void {
    if (this.#error) return
    if (!answer.held) return this.lost(answer.code ?? "stale_lease")
    if (answer.code) return this.fail(new FlowFabricError(answer.code, "the server refused frames of the execution"))
    this.last += count
    for (const { bytes } of this.#waiting.splice(0, count)) this.#bytes -= bytes
    this.#waiters = this.#waiters.filter(one => one.full() || one.resolve())
  }

  /** Gives up what waits: the error is told to the handler. */
  fail(error: unknown): void {
    this.#error ??= error instanceof Error ? error : new Error(String(error))
    this.#waiting = []
    for (const one of this.#waiters.splice(0)) one.reject(this.#error)
  }
}

interface Batch {
  buffer: FrameBuffer
  count: number
  bytes: number
  text: string
}

/** Sends the frames of all executions of a worker, many in one call. What comes while calls are under way waits. */
export class FrameSender {
  readonly #queue = new Set<FrameBuffer>()
  #calls = 0
  #woken = false

  constructor(
    private readonly call: (body: string) => Promise<FramesAnswer>,
    private readonly later: (call: () => void) => void,
  ) {}

  /** Sends what waits in a buffer, soon. */
  wake(buffer: FrameBuffer): void {
    if (buffer.sending || buffer.empty) return
    this.#queue.add(buffer)
    if (this.#woken || this.#calls >= MOST_CALLS) return
    this.#woken = true
    this.later(() => {
      this.#woken = false
      while (this.#calls < MOST_CALLS && this.#queue.size > 0) void this.#send(this.#take())
    })
  }

  #take(): Batch[] {
    const list: Batch[] = []
    let room = MOST_BODY
    for (const buffer of this.#queue) {
      const batch = buffer.next(room, list.length === 0)
      if (batch) {
        list.push(batch)
        room -= batch.bytes
        buffer.sending = true
      } else if (!buffer.empty) break // the call is full
      this.#queue.delete(buffer)
      if (list.length === MOST_BATCHES) break
    }
    return list
  }

  async #send(list: Batch[]): Promise<void> {
    if (list.length === 0) return
    this.#calls++
    try {
      await this.#tell(list)
    } finally {
      this.#calls--
      for (const { buffer } of list) {
        buffer.sending = false
        this.wake(buffer)
      }
      for (const buffer of this.#queue) this.wake(buffer) // those that waited for a call
    }
  }

  async #tell(list: Batch[]): Promise<void> {
    try {
      const answer = await this.call(`{"batches":[${list.map(one => one.text).join(",")}]}`)
      list.forEach(({ buffer, count }, i) => {
        const told = answer.batches?.[i]
        if (told) buffer.told(count, told)
      })
    } catch (e) {
      // One frame that is wrong refuses the whole call: find whose it is.
      const guess = e instanceof FlowFabricError && (e.status === 400 || e.status === 413) && list.length > 1
      if (!guess) return list.forEach(({ buffer }) => buffer.fail(e))
      for (const one of list) await this.#tell([one])
    }
  }
}
