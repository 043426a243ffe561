// What the page asks of the chat handler beside the streams of useChat.
import type { UIMessage } from "ai"

export const api = "/api/chat"

/** What a message of the assistant says about itself. */
export interface Metadata {
  model?: string
  usage?: { inputTokens?: number; outputTokens?: number; totalTokens?: number }
}

export type Message = UIMessage<Metadata>

/** A conversation, as the server has it. */
export interface Saved {
  id: string
  title: string
  state: "idle" | "answering" | "asking" | "ended"
  messages: Message[]
}

export type Entry = Omit<Saved, "messages">

/** A refusal of the server, in its words. */
export class Refused extends Error {
  constructor(readonly status: number, text: string) {
    super(text)
  }
}

async function ask(method: string, path: string, body?: object): Promise<Response> {
  const response = await fetch(api + path, {
    method, ...(body ? { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } } : {}),
  })
  if (!response.ok) throw new Refused(response.status, words(await response.text()))
  return response
}

/** words is what an error says: the detail of a problem, if it is one. */
export function words(text: string): string {
  try {
    const problem = JSON.parse(text)
    return problem.detail ?? problem.title ?? text
  } catch {
    return text || "the server said nothing"
  }
}

const of = (id: string, rest = "") => `/${encodeURIComponent(id)}${rest}`

export const list = async (): Promise<Entry[]> => (await (await ask("GET", "/")).json()).conversations

/** load reads a conversation; null if there is none of that id yet. */
export async function load(id: string): Promise<Saved | null> {
  try {
    return await (await ask("GET", of(id))).json()
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null
    throw error
  }
}

export const rename = (id: string, title: string) => ask("PATCH", of(id), { title })
export const remove = (id: string) => ask("DELETE", of(id))
export const stop = (id: string) => ask("POST", of(id, "/stop"), {})
export const answer = (id: string, what: object) => ask("POST", of(id, "/answer"), what)

/** allowMore raises the budget of a conversation, before the question about it is answered: a route of examples/chat. */
export async function allowMore(id: string) {
  const response = await fetch(`/chat/conversations${of(id, "/more")}`, { method: "POST" })
  if (!response.ok) throw new Refused(response.status, words(await response.text()))
}

/** watch calls changed when something has changed, whoever did it, and after each lost connection. It ends with the returned function. */
export function watch(id: string, changed: () => void): () => void {
  let source: EventSource | undefined
  let timer = 0
  const open = () => {
    source?.close()
    clearTimeout(timer)
    if (document.hidden) return // a tab in the background needs no connection
    source = new EventSource(api + of(id, "/watch"))
    source.onopen = source.onmessage = changed
    source.onerror = () => {
      if (source?.readyState === EventSource.CLOSED) timer = window.setTimeout(open, 2000)
    }
  }
  open()
  document.addEventListener("visibilitychange", open)
  return () => {
    document.removeEventListener("visibilitychange", open)
    clearTimeout(timer)
    source?.close()
  }
}
