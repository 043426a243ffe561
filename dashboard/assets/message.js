// Messages to the mailboxes of an execution: what waits there, and how a person sends one.
import { html, useState } from "./vendor/preact-htm.js"
import { post } from "./api.js"
import { Prose } from "./markdown.js"
import { act, asJSON, bytes, number, Payload, plural, shortID, Time, visible } from "./ui.js"

// mailboxOf is the mailbox of a receipt, whose name is the mailbox, a dot in the middle and a number; "" for the name of any other wait.
export const mailboxOf = name => (name || "").includes("·") ? name.slice(0, name.indexOf("·")) : ""

// sendMessage asks for a message and sends it. Sent again after a fault, it counts once.
export function sendMessage({ id, kind, mailbox = "", then }) {
  const key = [...crypto.getRandomValues(new Uint8Array(12))].map(b => b.toString(16).padStart(2, "0")).join("")
  return act({ title: "Send a message", text: `This is ${kind} ${shortID(id)}. Its handler receives the message when it asks for one. Until then it is kept.`, action: "Send", reason: false,
    fields: [{ name: "mailbox", label: "Mailbox", value: mailbox, required: true, maxlength: 96 }, { name: "payload", label: "Payload", kind: "area", rows: "4", value: "", hint: "JSON, at most 64 KiB; a text needs quotes" }],
    run: v => post(`executions/${id}/messages`, { mailbox: v.mailbox.trim(), payload: asJSON(v.payload, "The payload") ?? null, idempotency_key: key }),
    done: r => r.waiting === 1 ? "The message was sent." : `The message was sent. ${plural(r.waiting, "message")} are not received yet.`, then })
}

const glimpse = 240 // characters of a payload that are shown at once

// Messages are those that nobody has received yet.
export function Messages({ of: list }) {
  const [open, set] = useState({})
  const rest = list.waiting - list.items.length
  return html`<div><ul class="plain messages">${list.items.map(m => {
    const text = m.payload.encrypted ? "(encrypted)" : m.payload.value === undefined ? bytes(Math.floor((m.payload.base64 || "").length * 3 / 4)) : typeof m.payload.value === "string" ? m.payload.value : JSON.stringify(m.payload.value)
    const short = m.payload.value !== undefined && text.length <= glimpse
    const said = short && typeof m.payload.value === "string"
    return html`<li key=${m.number}><b>${visible(m.mailbox)}</b> <span class="dim">number ${number(m.number)}${m.by ? html`, by ${visible(m.by)}` : ""}, <${Time} at=${m.sent_at} /></span>
      ${open[m.number] ? html`<${Payload} of=${m.payload} name=${`message ${m.number}`} />` : said ? html`<${Prose} text=${text} />` : html`<p dir="auto">${visible(short ? text : text.slice(0, glimpse) + (text.length > glimpse ? "…" : ""))}
        ${!short && html` <button type="button" class="quiet small" onClick=${() => set(o => ({ ...o, [m.number]: true }))} aria-label=${`Show message ${m.number}`}>Show all</button>`}</p>`}</li>`
  })}</ul>${rest > 0 && html`<p class="dim">${plural(rest, "more message")} ${rest === 1 ? "waits" : "wait"} behind them.</p>`}</div>`
}
