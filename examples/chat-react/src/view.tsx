import { getToolName, isToolUIPart, type ToolUIPart, type DynamicToolUIPart } from "ai"
import { useState, type ReactNode } from "react"
import { textOf, type Follower } from "./follow"
import type { Message } from "./api"
import { words } from "./api"

type Part = Message["parts"][number]
type Call = ToolUIPart | DynamicToolUIPart

export function MessageView({ message, follower, busy }: { message: Message; follower: Follower; busy: boolean }) {
  const [editing, setEditing] = useState<string>()
  const mine = message.role === "user"
  if (editing !== undefined) {
    return (
      <li className="user" data-role="editing">
        <form className="edit" onSubmit={e => {
          e.preventDefault()
          follower.edit(message.id, editing.trim())
          setEditing(undefined)
        }}>
          <label htmlFor={"edit-" + message.id}>Your message</label>
          <textarea id={"edit-" + message.id} rows={3} value={editing} dir="auto" autoFocus onChange={e => setEditing(e.target.value)} />
          <div className="choices">
            <button type="submit" className="main" disabled={!editing.trim()}>Send again</button>
            <button type="button" onClick={() => setEditing(undefined)}>Cancel</button>
          </div>
        </form>
      </li>
    )
  }
  const usage = message.metadata?.usage
  return (
    <li className={mine ? "user" : "assistant"} data-role={message.role} data-id={message.id}>
      <span className="hidden">{mine ? "You: " : "Agent: "}</span>
      {message.parts.map((part, i) => <PartView key={keyOf(part, i)} part={part} follower={follower} />)}
      {!busy && (
        <div className="acts">
          {mine
            ? <button type="button" className="quiet" onClick={() => setEditing(textOf(message))}>Edit</button>
            : <button type="button" className="quiet" onClick={() => follower.regenerate(message.id)}>Answer again</button>}
          {usage?.totalTokens ? <small className="dim">{usage.totalTokens.toLocaleString()} tokens</small> : null}
        </div>
      )}
    </li>
  )
}

const keyOf = (part: Part, i: number) => (isToolUIPart(part) ? part.toolCallId : i)

function PartView({ part, follower }: { part: Part; follower: Follower }): ReactNode {
  if (isToolUIPart(part)) return <CallView call={part} follower={follower} />
  switch (part.type) {
    case "text":
      return part.text ? <div className={"text" + (part.state === "streaming" ? " open" : "")} dir="auto">{linked(part.text)}</div> : null
    case "reasoning":
      return part.text
        ? <details className="reasoning"><summary>Reasoning</summary><div className="thought" dir="auto">{part.text}</div></details>
        : null
    case "file":
      return part.mediaType.startsWith("image/")
        ? <img className="file" src={part.url} alt={part.filename ?? "an image"} />
        : <a className="file" href={part.url} download={part.filename ?? "file"}>{part.filename ?? part.mediaType}</a>
    case "source-url":
      return <a className="source" href={part.url} target="_blank" rel="noreferrer">{part.title ?? part.url}</a>
    case "source-document":
      return <span className="source">{part.title}</span>
    case "data-question":
      return <QuestionCard data={part.data as Question} follower={follower} />
  }
  return null
}

// linked splits a text into text and links to what was published here.
const linked = (text: string) => text.split(/(\/published\/[0-9a-f]{12}\.txt)/).map((part, i) =>
  i % 2 ? <a key={i} href={part} target="_blank" rel="noreferrer">{part}</a> : part)

const shown = (value: unknown) => (typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value, null, 2))

const outcomes: Record<Call["state"], string> = {
  "input-streaming": "… written", "input-available": "… running", "approval-requested": "waits for you",
  "approval-responded": "… goes on", "output-available": "✓ done", "output-error": "✗ failed", "output-denied": "✗ rejected",
}

function CallView({ call, follower }: { call: Call; follower: Follower }) {
  const name = getToolName(call)
  const failed = call.state === "output-error" || call.state === "output-denied"
  const done = call.state === "output-available" && !call.preliminary
  return (
    <section className={"call" + (failed ? " failed" : done ? " done" : "")} data-tool={name} data-state={call.state}
      aria-label={"Tool " + name}>
      <div className="line"><strong>{name}</strong><span className="outcome">{outcomes[call.state]}</span></div>
      {call.state === "approval-requested"
        ? <ApprovalCard call={call} follower={follower} />
        : <code className="arguments" dir="auto">{shown(call.input)}</code>}
      {call.state === "output-available" && (
        <details><summary>Result</summary><pre className="result" dir="auto">{linked(shown(call.output))}</pre></details>
      )}
      {call.state === "output-error" && (
        <details><summary>Why</summary><pre className="result" dir="auto">{call.errorText}</pre></details>
      )}
      {call.state === "output-denied" && <p className="dim reason">{call.approval?.reason}</p>}
    </section>
  )
}

function ApprovalCard({ call, follower }: { call: Call; follower: Follower }) {
  const before = shown(call.input)
  const [text, setText] = useState(before)
  const [comment, setComment] = useState("")
  const [trouble, setTrouble] = useState("")
  const [sent, setSent] = useState(false)
  const id = call.approval!.id
  const answer = async (approved: boolean) => {
    let args: unknown
    try {
      args = approved && text !== before ? JSON.parse(text) : undefined
    } catch (error) {
      setTrouble("The arguments are no JSON: " + (error as Error).message)
      return
    }
    setSent(true)
    try {
      await follower.approve(id, approved, comment.trim() || undefined, args)
    } catch (error) {
      setTrouble(words((error as Error).message))
      setSent(false)
    }
  }
  return (
    <div className="approval">
      <label htmlFor={"args-" + id}>What it is called with</label>
      <textarea id={"args-" + id} className="json" rows={Math.min(12, text.split("\n").length + 1)} spellCheck={false}
        value={text} onChange={e => setText(e.target.value)} />
      <label htmlFor={"comment-" + id}>Comment</label>
      <textarea id={"comment-" + id} rows={2} maxLength={1000} dir="auto" value={comment} onChange={e => setComment(e.target.value)} />
      <div className="choices">
        <button type="button" className="main" disabled={sent} onClick={() => answer(true)}>Approve</button>
        <button type="button" disabled={sent} onClick={() => answer(false)}>Reject</button>
      </div>
      <p className="bad" role="alert">{trouble}</p>
    </div>
  )
}

interface Question {
  id: string
  title?: string
  text?: string
  choices?: { name: string; label?: string }[]
  state: "open" | "over"
}

function QuestionCard({ data, follower }: { data: Question; follower: Follower }) {
  const [comment, setComment] = useState("")
  const [trouble, setTrouble] = useState("")
  const id = "comment-" + data.id
  return (
    <section className="call" aria-label={data.title ?? "A question"}>
      <strong>{data.title}</strong>
      <p className="text" dir="auto">{data.text}</p>
      {data.state === "over"
        ? <p className="dim">It was answered.</p>
        : <>
            <label htmlFor={id}>Comment</label>
            <textarea id={id} rows={2} maxLength={1000} dir="auto" value={comment} onChange={e => setComment(e.target.value)} />
            <div className="choices">
              {(data.choices ?? []).map(c => (
                <button key={c.name} type="button" onClick={() => {
                  follower.choose(data.id, c.name, comment.trim()).catch((error: Error) => setTrouble(words(error.message)))
                }}>{c.label ?? c.name}</button>
              ))}
            </div>
          </>}
      <p className="bad" role="alert">{trouble}</p>
    </section>
  )
}
