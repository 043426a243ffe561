// How a person answers what an execution waits for.
import { html, useState } from "./vendor/preact-htm.js"
import { post } from "./api.js"
import { may } from "./live.js"
import { mailboxOf, sendMessage } from "./message.js"
import { asJSON, Failure, Field, instant, tell, tellProblem, Time, visible } from "./ui.js"

// Answer shows a question with its choices, or, when none was stored, a field for the payload of a signal.
export function Answer({ item, onDone }) {
  const point = item.waitpoints[0]
  const [key, setKey] = useState(point?.key ?? "")
  const [comment, setComment] = useState("")
  const [payload, setPayload] = useState("null")
  const [error, setError] = useState(null)
  const [busy, setBusy] = useState(false)
  const question = item.question
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
      <${Field} label="Comment" value=${comment} onInput=${setComment} maxlength="2000" hint="The handler gets it with your name." />
      <div class="buttons start">${question.choices.map((c, i) => html`<button key=${c.name} type="button" class=${i === 0 ? "main" : ""} disabled=${busy}
        onClick=${() => send({ name: c.name, payload: { choice: c.name, comment: comment || undefined } })}>${visible(c.label || c.name)}</button>`)}</div>`
    : html`${item.waitpoints.length > 1 && html`<${Field} label="Waitpoint" kind="choice" options=${item.waitpoints.map(w => [w.key, visible(w.key) + (w.signals ? ` (${w.signals} received)` : "")])} value=${key} onInput=${setKey} />`}
      <${Field} label="Payload" kind="area" rows="3" value=${payload} onInput=${setPayload} hint="JSON, at most 64 KiB: what the handler reads as the answer" />
      <div class="buttons start"><button type="button" class="main" disabled=${busy} onClick=${() => { try { send({ payload: asJSON(payload, "The payload") ?? null }) } catch (e) { setError(e) } }}>Send</button></div>`}</div>`
}
