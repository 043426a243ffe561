// How a person answers what an execution waits for.
import { html, useState } from "./vendor/preact-htm.js"
import { post } from "./api.js"
import { may } from "./live.js"
import { mailboxOf, sendMessage } from "./message.js"
import { asJSON, Failure, Field, instant, tell, tellProblem, Time, visible } from "./ui.js"

// questionsOf are the items that an execution's wait is shown as: one, or one for each of several questions.
export const questionsOf = wait => {
  const asked = wait.waitpoints.filter(w => w.question)
  return asked.length === 0 ? [wait] : asked.map(w => ({ ...wait, question: w.question, waitpoints: [w], timeout_at: w.expires_at }))
}

// Answer shows a question with its choices, or, when none was stored, a field for the payload of a signal.
export function Answer({ item, onDone }) {
  const point = item.waitpoints[0]
  const [key, setKey] = useState(point?.key ?? "")
  const [comment, setComment] = useState("")
  const [payload, setPayload] = useState("null")
  const [error, setError] = useState(null)
  const [busy, setBusy] = useState(false)
  const question = item.question
  const before = question?.arguments && JSON.stringify(question.arguments, null, 2)
  const [details, setDetails] = useState(before ?? "")
  const decide = choice => {
    try {
      const changed = before && details !== before ? asJSON(details, "The arguments") : undefined
      send({ name: choice, payload: { choice, comment: comment || undefined, arguments: changed } })
    } catch (e) { setError(e) }
  }
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
  if (!point) return html`<p>${question?.text ? visible(question.text) : "It waits for its time, or for an operator who resumes it."}</p>`
  return html`<div class="answer">${question?.text && question.text !== question.title && html`<p class="pre" dir="auto">${visible(question.text)}</p>`}
    ${item.timeout_at && html`<p class="dim">Answers count until ${instant(item.timeout_at)} (<${Time} at=${item.timeout_at} />).</p>`}
    <${Failure} error=${error} />
    ${!may("answerWaitpoint") ? html`<p class="dim">You may look at it, but not answer.</p>` : question ? html`
      ${before && html`<${Field} label="Arguments" kind="area" rows="4" value=${details} onInput=${setDetails} hint="JSON, which you may change before you approve" />`}
      <${Field} label="Comment" value=${comment} onInput=${setComment} maxlength="2000" hint="The handler gets it with your name." />
      <div class="buttons start">${question.choices.map((c, i) => html`<button key=${c.name} type="button" class=${i === 0 ? "main" : ""} disabled=${busy}
        onClick=${() => decide(c.name)}>${visible(c.label || c.name)}</button>`)}</div>`
    : html`${item.waitpoints.length > 1 && html`<${Field} label="Waitpoint" kind="choice" options=${item.waitpoints.map(w => [w.key, visible(w.key) + (w.signals ? ` (${w.signals} received)` : "")])} value=${key} onInput=${setKey} />`}
      <${Field} label="Payload" kind="area" rows="3" value=${payload} onInput=${setPayload} hint="JSON, at most 64 KiB: what the handler reads as the answer" />
      <div class="buttons start"><button type="button" class="main" disabled=${busy} onClick=${() => { try { send({ payload: asJSON(payload, "The payload") ?? null }) } catch (e) { setError(e) } }}>Send</button></div>`}</div>`
}
