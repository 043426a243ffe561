// A chat that follows its conversation: what other tabs and devices do, streams that break, answers that are made again.
import { Chat } from "@ai-sdk/react"
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type ChatTransport } from "ai"
import { FlowFabricChatTransport } from "@flowfabric/chat-transport"
import { allowMore, api, load, stop, answer, words, type Message, type Saved } from "./api"

const pauses = [0, 500, 1000, 2000, 4000]

export class Follower {
  readonly chat: Chat<Message>
  saved: Saved | null
  trouble = ""
  draft = "" // a text that was refused
  settled: boolean // nothing more comes by itself
  changed = () => {}

  readonly #ours: FlowFabricChatTransport<Message> | undefined
  #own = 0 // requests of this tab that run
  #late = false // something changed meanwhile
  #reading = false
  #broken = 0 // streams in a row that broke
  #timer = 0
  #alive = true

  constructor(readonly id: string, saved: Saved | null, ours: boolean) {
    this.saved = saved
    this.settled = saved?.state !== "answering"
    this.#ours = ours ? new FlowFabricChatTransport<Message>({ api }) : undefined
    const transport: ChatTransport<Message> = this.#ours ?? new DefaultChatTransport<Message>({ api })
    this.chat = new Chat<Message>({
      id, messages: saved?.messages ?? [], transport,
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      onFinish: ({ isAbort, isError, finishReason }) => {
        this.settled = !!finishReason && !isAbort && !isError
        if (this.settled) this.#broken = 0 // what follows from it, the watch tells
        else this.#soon(isAbort ? 0 : this.#pause())
        this.changed()
      },
    })
  }

  get exists() {
    return this.saved !== null
  }

  close() {
    this.#alive = false
    clearTimeout(this.#timer)
  }

  open() {
    this.#alive = true
    this.#soon(0)
  }

  // look is for who knows that something has changed.
  look = () => this.#soon(50)

  #pause() {
    return pauses[Math.min(this.#broken++, pauses.length - 1)]!
  }

  #soon(ms: number) {
    clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => this.sync(), ms)
  }

  #busy() {
    return this.#own > 0 || this.chat.status === "submitted" || this.chat.status === "streaming"
  }

  // sync takes what the server has, and follows the answer that comes just now, if there is one.
  sync = async () => {
    if (this.#busy() || this.#reading || !this.#alive) {
      this.#late = true
      return
    }
    this.#reading = true
    this.#late = false
    try {
      const saved = await load(this.id)
      if (this.#busy()) {
        this.#late = true
        return
      }
      if (saved) {
        const unsent = this.#unsent(saved)
        this.saved = saved
        this.trouble = ""
        if (unsent) {
          void this.#run(() => this.chat.sendMessage())
          return
        }
        this.chat.messages = saved.messages
        this.chat.clearError()
        this.settled = saved.state !== "answering"
        this.changed()
        await this.chat.resumeStream()
      } else if (this.saved) {
        this.trouble = "The conversation was deleted."
        this.close()
        this.changed()
      } else if (this.#unsent()) {
        void this.#run(() => this.chat.sendMessage())
      }
    } catch (error) {
      this.trouble = error instanceof TypeError ? "No connection. The page tries again." : words((error as Error).message)
      this.changed()
      if (error instanceof TypeError) this.#soon(this.#pause())
    } finally {
      this.#reading = false
      if (this.#late && !this.#busy()) this.#soon(50)
    }
  }

  // unsent tells whether the connection was lost before the server had the last message. A repeat says nothing twice.
  #unsent(saved?: Saved) {
    const last = this.chat.messages.at(-1)
    return this.chat.status === "error" && last?.role === "user" && this.chat.error instanceof TypeError &&
      !saved?.messages.some(m => m.id === last.id)
  }

  async #run(act: () => Promise<unknown>) {
    this.#own++
    try {
      await act()
    } catch (error) {
      this.trouble = words((error as Error).message)
    } finally {
      this.#own--
    }
    const { error, status } = this.chat
    if (status === "error" && error && !(error instanceof TypeError)) this.#refused(error)
    if (this.#late || !this.exists || status === "error") this.#soon(status === "error" ? 500 : 0)
    this.changed()
  }

  // refused takes a message back that the server did not want.
  #refused(error: Error) {
    this.trouble = words(error.message)
    const last = this.chat.messages.at(-1)
    if (last?.role !== "user") return
    this.draft = textOf(last)
    this.chat.messages = this.chat.messages.slice(0, -1)
  }

  send = (text: string, files?: FileList) => this.#run(() => this.chat.sendMessage(files?.length ? { text, files } : { text }))
  edit = (messageId: string, text: string) => this.#run(() => this.chat.sendMessage({ text, messageId }))
  regenerate = (messageId: string) => this.#run(() => this.chat.regenerate({ messageId }))

  // stop stops the model, on all devices. With the transport of the AI SDK the answer then ends by itself; ours does both.
  stop = async () => {
    try {
      await (this.#ours ? this.chat.stop() : stop(this.id))
    } catch (error) {
      this.trouble = words((error as Error).message)
      this.changed()
    }
  }

  // approve answers what the agent asks about a call. The stock way takes no arguments, so edited ones go beside it.
  approve = async (approvalId: string, approved: boolean, reason?: string, args?: unknown) => {
    const waits = this.chat.messages.flatMap(m => m.parts).filter(p => "approval" in p && p.state === "approval-requested")
    if (args === undefined && waits.length === 1) {
      await this.#run(async () => {
        await this.chat.addToolApprovalResponse({ id: approvalId, approved, ...(reason ? { reason } : {}) })
        await new Promise(resolve => setTimeout(resolve)) // its request has begun then
      })
      return
    }
    const what = { approvalId, approved, ...(reason ? { reason } : {}), ...(args === undefined ? {} : { arguments: args }) }
    await (this.#ours ? this.#ours.answer(this.id, what) : answer(this.id, what))
    this.#soon(0)
  }

  // choose answers any other question of the handler.
  choose = async (id: string, choice: string, comment?: string) => {
    if (choice === "more") await allowMore(this.id)
    await answer(this.id, { id, choice, ...(comment ? { comment } : {}) })
    this.#soon(0)
  }
}

export const textOf = (m: Message) => m.parts.map(p => (p.type === "text" ? p.text : "")).join("")
