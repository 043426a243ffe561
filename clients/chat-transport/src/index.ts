// A ChatTransport for useChat on the chat handler of FlowFabric. It adds what the one of the AI SDK cannot do: an abort
// stops the model, an approval carries edited arguments, and a stream that breaks goes on behind its last event.
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai"

export interface Options {
  /** Where the handler is mounted; default "/api/chat". */
  api?: string
  /** Headers of each request, asked for each time, so that a token may change; default none. */
  headers?: () => HeadersInit | Promise<HeadersInit>
  /** Credentials of each request; default "same-origin". */
  credentials?: RequestCredentials
  /** How often in a row a request is tried; a pause of 250 ms doubles up to 5 s. Default 10, about 30 s. */
  tries?: number
  /** What sends requests; default fetch. */
  fetch?: typeof fetch
}

/** What a person says about a call of a tool. */
export interface Answer {
  approvalId: string
  approved: boolean
  reason?: string // for the model
  arguments?: unknown // for the tool, instead of what the model wrote
}

const path = (chatId: string, rest: string) => `/${encodeURIComponent(chatId)}/${rest}`

type Send<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0]
type Resume<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0]

/** Serves any number of chats. An abort of a request, which is what stop() of a chat does, stops the model. */
export class FlowFabricChatTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  readonly resumeStreamIsReplay = true
  readonly #resumes = new Map<string, number>() // how often each chat was resumed

  constructor(private readonly options: Options = {}) {}

  /** Sends the last message only: the server has the others. A repeat after a lost connection says nothing twice. */
  async sendMessages(o: Send<M>): Promise<ReadableStream<UIMessageChunk>> {
    this.#stopsOnAbort(o.chatId, o.abortSignal)
    const body = { ...o.body, id: o.chatId, trigger: o.trigger, messageId: o.messageId, messages: o.messages.slice(-1) }
    return this.#follow(o, await this.#request("", o.abortSignal, o.headers, body))
  }

  /** Follows the answer that comes just now from its beginning, whichever device asked for it; null without one. */
  async reconnectToStream(o: Resume<M>): Promise<ReadableStream<UIMessageChunk> | null> {
    this.#resumes.set(o.chatId, (this.#resumes.get(o.chatId) ?? 0) + 1)
    this.#stopsOnAbort(o.chatId, o.abortSignal)
    const response = await this.#request(path(o.chatId, "stream"), o.abortSignal, o.headers)
    return response.status === 204 ? null : this.#follow(o, response)
  }

  /** Stops the answer that comes just now, on all devices. What was said stays. */
  async stop(chatId: string): Promise<void> {
    await this.#request(path(chatId, "stop"), undefined, undefined, {})
  }

  /** Answers what the agent asks. Call resumeStream() of the chat behind it. It throws the server's words. */
  async answer(chatId: string, answer: Answer): Promise<void> {
    await this.#request(path(chatId, "answer"), undefined, undefined, answer)
  }

  // A chat aborts a resume when it begins another one at once, which stops nothing.
  #stopsOnAbort(chatId: string, signal?: AbortSignal) {
    const resumed = this.#resumes.get(chatId)
    signal?.addEventListener("abort", () => queueMicrotask(() => {
      if (this.#resumes.get(chatId) === resumed) this.stop(chatId).catch(() => {})
    }))
  }

  async #request(to: string, signal?: AbortSignal, more?: HeadersInit, body?: object): Promise<Response> {
    const o = { ...this.options }, tries = o.tries ?? 10
    for (let tried = 1; ; tried++) {
      const headers = new Headers(await o.headers?.())
      new Headers(more).forEach((value, name) => headers.set(name, value))
      if (body) headers.set("Content-Type", "application/json")
      const response = await (o.fetch ?? fetch)((o.api ?? "/api/chat") + to, {
        method: body ? "POST" : "GET", headers, signal: signal ?? null, credentials: o.credentials ?? "same-origin",
        ...(body ? { body: JSON.stringify(body) } : {}),
      }).catch((error: unknown) => {
        if (signal?.aborted || tried >= tries) throw error
      })
      if (response?.ok) return response
      if (response && (response.status < 502 || tried >= tries)) throw new Error(await said(response))
      await pause(Math.min(250 * 2 ** (tried - 1), 5000), signal)
    }
  }

  // follow reads an answer to its end, over any number of connections.
  #follow(o: Resume<M>, first: Response): ReadableStream<UIMessageChunk> {
    const chunks = this.#chunks(o, first)
    return new ReadableStream<UIMessageChunk>({
      async pull(controller) {
        const { value, done } = await chunks.next()
        done ? controller.close() : controller.enqueue(value)
      },
      cancel: async () => void (await chunks.return()),
    })
  }

  async *#chunks(o: Resume<M>, first: Response): AsyncGenerator<UIMessageChunk, void, void> {
    for (let response = first, last = "", over = false; response.status !== 204; ) {
      const before = last
      try {
        for await (const { id, data } of events(response.body!)) {
          const chunk = data === "[DONE]" ? { type: "abort" as const } : (JSON.parse(data) as UIMessageChunk)
          if (chunk.type === "start" && before) return // another answer: the page resumes, and gets all of it
          if (data !== "[DONE]") yield chunk
          over ||= chunk.type === "finish" || chunk.type === "abort"
          last = id || last
        }
      } catch (error) {
        if (o.abortSignal?.aborted || error instanceof SyntaxError) throw error
      }
      if (over || !last) return
      if (last === before) await pause(1000, o.abortSignal)
      response = await this.#request(path(o.chatId, "stream"), o.abortSignal,
        { ...Object.fromEntries(new Headers(o.headers)), "Last-Event-ID": last })
    }
  }
}

async function* events(body: ReadableStream<Uint8Array>) {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let rest = "", id = "", data = ""
  try {
    for (let r = await reader.read(); !r.done; r = await reader.read()) {
      const lines = (rest + r.value).split(/\r?\n/)
      rest = lines.pop() ?? ""
      for (const line of lines) {
        if (line.startsWith("id:")) id = line.slice(3).trim()
        else if (line.startsWith("data:")) data += line.slice(5).trimStart()
        else if (line === "" && data) [, data] = [yield { id, data }, ""]
      }
    }
  } finally {
    reader.cancel().catch(() => {})
  }
}

async function said(response: Response): Promise<string> {
  const text = await response.text()
  const problem = await new Response(text).json().catch(() => ({}))
  return problem.detail ?? (text || `the server answered ${response.status}`)
}

const pause = (ms: number, signal?: AbortSignal) => new Promise<void>((resolve, reject) => {
  const timer = setTimeout(resolve, ms)
  signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true })
})
