// How a person answers what an execution waits for.
import { html, useState } from "./vendor/preact-htm.js"
import { exactly, post } from "./api.js"
import { may } from "./live.js"
import { mailboxOf, sendMessage } from "./message.js"
import { Prose } from "./markdown.js"
import { asJSON, Failure, Field, instant, tell, tellProblem, Time, to, visible } from "./ui.js"

// questionsOf are the items that an execution's wait is shown as: one, or one for each of several questions.
export const questionsOf = wait => {
  const asked = wait.waitpoints.filter(w => w.question)
  return asked.length === 0 ? [wait] : asked.map(w => ({ ...wait, question: w.question, waitpoints: [w], timeout_at: w.expires_at }))
}

// titleOf is what a wait is called: its question, or what it is for.
export const titleOf = item => item.question?.title || (mailboxOf(item.name) ? "It waits for a message" : item.reason === "waiting_for_children" ? "It waits for its children" : "It waits for an answer")

const same = (text, json) => { try { return JSON.stringify(exactly(text), null, 2) === json } catch { return false } }

// Answer shows a question with its choices, or, when none was stored, a field for the payload of a signal.
// brief, which a list says, leaves out what the list says itself, and cuts a long text while it is true. more is one more button.
export function Answer({ item, onDone, brief, more }) {
  const point = item.waitpoints[0]
  const [key, setKey] = useState(point?.key ?? "")
  const [comment, setComment] = useState("")
  const [payload, setPayload] = useState("null")
  const [error, setError] = useState(null)
  const [busy, setBusy] = useState(false)
  const question = item.question
  const before = question?.arguments && JSON.stringify(question.arguments, null, 2)
  const repeats = before && same(question.text, before) // the text is the arguments
  const [details, setDetails] = useState(before ?? "")
  const decide = choice => {
    try {
      const changed = before && details !== before ? asJSON(details, "The arguments", "are") : undefined
      if (changed === undefined && details !== (before ?? "")) throw new Error("The arguments are empty. Without any, write {}.")
      send({ name: choice, payload: { choice, comment: comment || undefined, arguments: changed } })
    } catch (e) { setError(e) }
  }
  const wrong = error && before && (error.field ? error.field.startsWith("/payload/arguments") : error.status === undefined) // told at their field
  const send = async body => {
    setBusy(true)
    setError(null)
    try {
      const r = await post(`executions/${item.execution}/waitpoints/${encodeURIComponent(key)}:answer`, body)
      tell(r.duplicate ? "This answer had been delivered before." : "Your answer was delivered.")
      onDone()
    } catch (e) {
      if (e.status === 409 || e.status === 410) { // it is no longer open: the question goes, what is told about it stays
        tellProblem("Your answer was not delivered", e)
        onDone()
      } else setError(e)
    }
    setBusy(false)
  }
  const mailbox = mailboxOf(item.name)
  if (mailbox) {
    return html`<div class="answer"><p>It waits for a message to mailbox “${visible(mailbox)}”.</p>${item.timeout_at && html`<p class="dim">It waits until ${instant(item.timeout_at)} (<${Time} at=${item.timeout_at} />).</p>`}
      ${may("sendMessage") && html`<div class="buttons start"><button type="button" class="main" onClick=${() => sendMessage({ id: item.execution, kind: item.kind, mailbox, then: onDone })}>Send a message</button></div>`}</div>`
  }
  if (item.reason === "waiting_for_children") return html`<p>It goes on by itself when they have ended. <a href=${to(["flows", item.execution])}>See its children</a></p>`
  if (!point) return question?.text ? html`<${Prose} text=${question.text} />` : html`<p>It waits for its time, or for an operator who resumes it.</p>`
  return html`<div class="answer">${question?.text && question.text !== question.title && (!repeats || !may("answerWaitpoint")) && html`<div class=${brief ? "cut" : ""}><${Prose} text=${question.text} /></div>`}
    ${question?.title === "(encrypted)" && html`<p class="dim">This server has no key for the question. Look it up where there is one before you decide.</p>`}
    ${item.timeout_at && brief === undefined && html`<p class="dim">Answers count until ${instant(item.timeout_at)} (<${Time} at=${item.timeout_at} />).</p>`}
    ${!wrong && html`<${Failure} error=${error} />`}
    ${!may("answerWaitpoint") ? html`${before && !repeats && html`<pre dir="ltr" aria-label="Arguments">${visible(before)}</pre>`}<p class="dim">You may look at it, but not answer.</p>` : question ? html`
      ${before && html`${wrong && html`<${Failure} error=${error} />`}<${Field} label="Arguments" kind="area" rows=${Math.min(14, Math.max(4, before.split("\n").length))} dir="ltr" aria-invalid=${wrong ? "true" : undefined} value=${details} onInput=${setDetails} hint="JSON, which you may change before you approve" />`}
      <${Field} label="Comment" value=${comment} onInput=${setComment} maxlength="2000" placeholder="Comment for the handler" />
      <div class="buttons start">${question.choices.map((c, i) => html`<button key=${c.name} type="button" class=${i === 0 ? "main" : ""} disabled=${busy}
        onClick=${() => decide(c.name)}>${visible(c.label || c.name)}</button>`)}${more}</div>`
    : html`${item.waitpoints.length > 1 && html`<${Field} label="Waitpoint" kind="choice" options=${item.waitpoints.map(w => [w.key, visible(w.key) + (w.signals ? ` (${w.signals} received)` : "")])} value=${key} onInput=${setKey} />`}
      <${Field} label="Payload" kind="area" rows="3" value=${payload} onInput=${setPayload} hint="JSON, at most 64 KiB: what the handler reads as the answer" />
      <div class="buttons start"><button type="button" class="main" disabled=${busy} onClick=${() => { try { send({ payload: asJSON(payload, "The payload") ?? null }) } catch (e) { setError(e) } }}>Send</button></div>`}</div>`
}
