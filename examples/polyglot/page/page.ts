// The TypeScript part: shows the newest research as it is written, and asks what the worker asks. See README.md.
import { Client, type models } from "flowfabric"
import type { ResearchInput, ResearchResult } from "./kinds.js"

const client = new Client({ url: location.origin, retryForMs: Infinity })
const at = <T extends HTMLElement>(id: string) => document.getElementById(id) as T

/** Shows one execution until it has ended or the signal is aborted. */
async function follow(id: string, signal: AbortSignal): Promise<void> {
  const input = await client.api.call<models.Payload>("GET", `/v1/executions/${id}/input`, { signal })
  at("question").textContent = (input.value as ResearchInput).question
  let frames: models.TailEvent[] = []
  for await (const event of client.tail(id, { own: true, signal })) {
    if (event.kind === "frame") frames.push(event)
    if (event.kind === "attempt") frames = frames.filter(f => stays(f, event)) // the others are written again
    at("text").textContent = frames.map(f => f.frame?.text).join("")
    at("status").textContent = event.attempt ? `attempt ${event.attempt}` : "waiting for worker.py"
    offer(id, event.kind === "suspended" ? await wait(id, signal) : undefined)
  }
  const { state, output } = await client.result(id, { signal })
  const by = (output?.value as ResearchResult | undefined)?.published_by
  at("status").textContent = state !== "completed" ? state : by ? `published by ${by}` : "not published"
}

/** Whether a frame is of a step that an earlier attempt recorded. */
function stays(event: models.TailEvent, attempt: models.TailEvent): boolean {
  return !!attempt.reused?.some(r => r.attempt === event.attempt && event.frame!.sequence <= r.recorded)
}

/** What the execution waits for now, with the question; undefined if it goes on meanwhile. */
function wait(id: string, signal: AbortSignal): Promise<models.Approval | undefined> {
  return client.api.call("GET", `/v1/executions/${id}/wait`, { signal })
}

/** Shows the choices of a question as buttons, or hides them if there is none. */
function offer(id: string, asked: models.Approval | undefined): void {
  const box = at("choices")
  box.hidden = !asked?.question
  box.querySelectorAll("button").forEach(b => b.remove())
  at("title").textContent = asked?.question?.title ?? ""
  for (const choice of asked?.question?.choices ?? []) {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = choice.label ?? choice.name
    button.onclick = () => {
      const answer = { choice: choice.name, by: at<HTMLInputElement>("name").value }
      client.answer(id, asked!.name, answer).catch(e => (at("status").textContent = String(e)))
    }
    box.append(" ", button)
  }
}

/** The newest execution, whatever its state. */
async function newest(): Promise<string | undefined> {
  for await (const found of client.executions({ kind: "research", newest: true, limit: 1 })) return found.id
  return undefined
}

let shown: string | undefined
let watch = new AbortController()
at("status").textContent = "waiting for main.go"
for (;;) {
  const id = await newest()
  if (id && id !== shown) {
    shown = id
    watch.abort()
    watch = new AbortController()
    const { signal } = watch
    follow(id, signal).catch(e => signal.aborted || (at("status").textContent = String(e)))
  }
  await new Promise(resolve => setTimeout(resolve, 1000))
}
