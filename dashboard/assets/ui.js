// The parts that pages are made of.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js"
import { exactly } from "./api.js"
import { makeStore, me, serverNow, useBeat, useStore } from "./live.js"

// ---- links: the place is in the address behind the #, so that going back works and a filter can be passed on ----

export function place() {
  const text = location.hash.replace(/^#\/?/, "")
  const [path, query = ""] = text.split("?", 2)
  let parts
  try { parts = path.split("/").filter(Boolean).map(decodeURIComponent) } catch { parts = ["?"] }
  return { parts, query: new URLSearchParams(query) }
}

export function to(parts, query) {
  const text = new URLSearchParams()
  for (const [name, value] of Object.entries(query || {})) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== "" && one !== undefined && one !== null && one !== false) text.append(name, one)
  }
  const tail = text.toString()
  return "#/" + [].concat(parts).map(encodeURIComponent).join("/") + (tail ? "?" + tail : "")
}

export const go = (parts, query) => { location.hash = to(parts, query) }

// ---- texts ----

export const number = n => (n ?? 0).toLocaleString("en")
export const plural = (n, word, words = word + "s") => `${number(n)} ${n === 1 ? word : words}`
export const rate = n => n >= 100 ? number(Math.round(n)) : n >= 10 ? n.toFixed(0) : n > 0 ? n.toFixed(1) : "0"
// shortID has the partition and the end of an id: ids that were made at the same time begin alike.
export const shortID = id => id.length > 16 ? id.slice(0, id.indexOf("-")) + "…" + id.slice(-8) : id

export function bytes(n) {
  if (n < 1024) return plural(n, "byte")
  for (const unit of ["KiB", "MiB", "GiB"]) {
    n /= 1024
    if (n < 1024) return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${unit}`
  }
  return `${Math.round(n / 1024)} TiB`
}

// span is a duration in milliseconds in two units at most.
export function span(ms) {
  ms = Math.max(0, ms)
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10000 && ms % 1000) return `${(ms / 1000).toFixed(1)} s`
  const units = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]]
  const at = units.findIndex(([, size]) => ms >= size)
  const [name, size] = units[at]
  const whole = Math.floor(ms / size)
  const next = units[at + 1]
  const rest = next && whole < 10 ? Math.floor((ms - whole * size) / next[1]) : 0
  return `${whole} ${name}${rest ? ` ${rest} ${next[0]}` : ""}`
}

const whole = d => d < 60000 ? Math.round(d / 1000) * 1000 : d

export function ago(at) {
  const d = serverNow() - Date.parse(at)
  if (Math.abs(d) < 1500) return "now"
  return d > 0 ? `${span(whole(d))} ago` : `in ${span(whole(-d))}`
}

const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" })
export const instant = at => exact.format(new Date(at))

export function Time({ at }) {
  useBeat()
  if (!at) return html`<span class="none">–</span>`
  return html`<time datetime=${at} title=${`${instant(at)} (${at})`}>${ago(at)}</time>`
}

// since is a running duration.
export function Since({ at, until }) {
  useBeat()
  if (!at) return html`<span class="none">–</span>`
  return html`<time datetime=${at} title=${instant(at)}>${until ? span(Date.parse(until) - Date.parse(at)) : span(whole(serverNow() - Date.parse(at)))}</time>`
}

// Said is a text of the API, in which times are shown as here, and names of Go functions are left out.
export function Said({ text }) {
  useBeat()
  const parts = visible(text).replace(/ \((?:client|admin|flowfabric)\.[^)]*\)/g, "").replace(/\ba tick\b/g, "the store").split(/(\d{4}-\d\d-\d\dT[\d:.]+Z(?: \([^)]*\))?)/)
  return html`<span>${parts.map((p, i) => i % 2 ? html`<time key=${i} datetime=${p.split(" ")[0]}>${instant(p.split(" ")[0])} (${ago(p.split(" ")[0])})</time>` : p)}</span>`
}

// ---- states: a word and a sign, not a colour alone ----

const signs = {
  waiting: "○", waiting_gate: "◔", waiting_children: "◌", delayed: "◷", active: "▶", suspended: "?", held: "■",
  completed: "✓", failed: "✕", cancelled: "⊘", expired: "⌛", skipped: "⤼", running: "▶", open: "▶", cancelling: "⊘",
}
const words = { waiting_gate: "waits for a gate", waiting_children: "waits for others", active: "running" }

export const stateWord = state => words[state] || state.replaceAll("_", " ")

// tally is how many are in which state, in words.
export const tally = counts => Object.entries(counts || {}).map(([s, n]) => `${number(n)} ${n === 1 ? stateWord(s) : stateWord(s).replace(/^waits/, "wait")}`).join(", ")

export function State({ state }) {
  return html`<span class=${"state s-" + state}><span aria-hidden="true">${signs[state] || "•"}</span> ${stateWord(state)}</span>`
}

export function Chip({ kind = "", children, title }) {
  return html`<span class=${"chip " + kind} title=${title}>${children}</span>`
}

const ends = {
  ended_success: "succeeded", ended_failure: "failed", ended_cancelled: "cancelled", ended_expired: "expired", "interrupted_reclaimed lease_expired": "its worker was lost",
  "interrupted_reclaimed lease_revoked": "taken from its worker", rewound: "left for an earlier step", forked: "the fork goes on behind it",
}
const causes = { handler_error: "", attempt_timeout: "it took too long", suspension_timeout: "nobody answered in time" }

// sayEnd is how an attempt ended, in words: its state and its category.
export function sayEnd(detail) {
  if (ends[detail]) return ends[detail]
  const [state, category = ""] = (detail || "").split(" ")
  const cause = causes[category] ?? category.replaceAll("_", " ")
  return (ends[state] ?? state.replaceAll("_", " ")) + (cause ? ` (${cause})` : "")
}

// ---- small things ----

export function Copy({ text, label = "Copy" }) {
  const [done, set] = useState(false)
  useEffect(() => { if (done) { const t = setTimeout(() => set(false), 1500); return () => clearTimeout(t) } }, [done])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      const field = document.createElement("textarea")
      field.value = text
      document.body.append(field)
      field.select()
      document.execCommand("copy")
      field.remove()
    }
    set(true)
  }
  return html`<button type="button" class="quiet small" onClick=${copy} aria-label=${`${label}: ${text.length > 60 ? "the text" : text}`}>${done ? "Copied" : label}</button>`
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="big">${title}</p>${children && html`<div>${children}</div>`}</div>`
}

// Bound says to somebody who is bound to namespaces why there is nothing to see: what is named belongs to all namespaces. Others see nothing of it.
export function Bound({ what }) {
  const { namespaces: own } = useStore(me)
  return own && html`<${Empty} title="Not with this token"><p>Your token is for ${own.length === 1 ? "namespace" : "namespaces"} ${visible(own.join(", "))} alone. To see ${what}, sign in with a token for all namespaces.</p><//>`
}

export function Failure({ error, retry }) {
  if (!error) return null
  return html`<div class="notice bad" role="alert"><p>${error.message}</p>
    ${error.request && html`<p class="dim">Request ${error.request}${error.code ? `, ${error.code}` : ""}</p>`}
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}</div>`
}

// Loaded shows what was loaded, or why it was not. Something that was loaded before stays in sight.
export function Loaded({ of: got, children }) {
  const gone = got.error && !got.error.away
  return html`<div class="loaded" aria-busy=${got.loading}>${got.error && html`<${Failure} error=${got.error} retry=${got.reload} />`}
    ${got.data && !(gone && got.error.status === 404) ? children(got.data) : !got.error && html`<p class="loading" role="status">Loading…</p>`}</div>`
}

export function Section({ title, note, actions, children, id }) {
  return html`<section class="card" aria-labelledby=${id}><div class="head"><h2 id=${id}>${title}</h2>${note && html`<p class="dim">${note}</p>`}
    ${actions && html`<div class="actions">${actions}</div>`}</div>${children}</section>`
}

export function Facts({ rows }) {
  return html`<dl class="facts">${rows.filter(([, v]) => v !== null && v !== undefined && v !== "" && v !== false).map(([name, value]) =>
    html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`
}

const brief = key => key.replace(/\.name$/, "").replace(/^.*\./, "") // team.name is team, schedule.due is due

export function Tags({ tags, short }) { // in a list there is little room: keys are brief there, and the shortest tags come first
  const all = Object.entries(tags || {}).map(([k, v]) => [visible(`${k}=${v}`), visible(`${short ? brief(k) : k}=${v}`)])
  if (short) all.sort(([, a], [, b]) => a.length - b.length)
  return html`<span class="tags">${all.map(([whole, text]) => html`<${Chip} key=${whole} title=${whole}>${text}<//>`)}</span>`
}

const most = 64 << 10 // characters of a payload that are shown at once

// Payload shows what a program stored, as text and nothing else.
export function Payload({ of: payload, name = "payload" }) {
  const [all, setAll] = useState(false)
  if (!payload || (payload.value === undefined && payload.base64 === undefined)) return html`<p class="none">empty</p>`
  let text
  if (payload.value !== undefined) {
    text = typeof payload.value === "string" ? payload.value : JSON.stringify(payload.value, null, 2)
  } else {
    let raw = ""
    try { raw = atob(payload.base64) } catch { raw = payload.base64 }
    if (raw === "") return html`<p class="none">empty</p>`
    if (payload.encrypted) return html`<p class="none">Encrypted, ${bytes(raw.length)}: this server has no key for it</p>`
    try {
      const plain = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(raw, c => c.charCodeAt(0)))
      return html`<div class="payload"><p class="dim">Text that is not JSON</p><pre tabindex="0" dir="auto" aria-label=${name}>${visible(plain.slice(0, most))}</pre><${Copy} text=${plain} label=${`Copy ${name}`} /></div>`
    } catch { /* bytes */ }
    return html`<div class="payload"><p class="dim">${bytes(raw.length)} that are not JSON</p>
      <pre tabindex="0" aria-label=${name}>${[...raw.slice(0, 512)].map(c => c.charCodeAt(0).toString(16).padStart(2, "0")).join(" ")}${raw.length > 512 ? " …" : ""}</pre></div>`
  }
  const cut = !all && text.length > most
  return html`<div class="payload"><pre tabindex="0" dir="auto" aria-label=${name}>${visible(cut ? text.slice(0, most) : text)}</pre>
    ${cut && html`<button type="button" onClick=${() => setAll(true)}>Show all ${bytes(text.length)}</button>`}
    <${Copy} text=${text} label=${`Copy ${name}`} /></div>`
}

// visible lets control characters, and those that turn the direction of writing, be seen instead of acting.
export function visible(text) {
  return String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069\u200e\u200f]/g, c =>
    c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : c === "\u007f" ? "\u2421" : "⟦U+" + c.charCodeAt(0).toString(16).toUpperCase() + "⟧")
}

// Bar shows a share. part of value, from its end, is not certain yet: it is hatched.
export function Bar({ value, of, label, bad, part = 0 }) {
  const share = of > 0 ? Math.min(1, value / of) : 0
  return html`<div class=${"bar" + (bad || share >= 1 ? " full" : share >= 0.8 ? " high" : "")} role="img" aria-label=${label}><span style=${{ width: `${share * 100}%` }}>${part > 0 && value > 0 ? html`<i style=${{ width: `${Math.min(1, part / value) * 100}%` }}></i>` : ""}</span></div>`
}

// ---- tables: only the rows in sight exist, so ten thousand of them scroll like ten ----

const windowed = 120 // from so many rows on

// On a phone each row is a card (see app.css): a cell has the name of its column before it, unless its class has head, and is not there if it is empty.
export function Table({ columns, rows, id = r => r.id, label, chosen, onChoose }) {
  const body = useRef(null)
  const [[from, to, rowHeight], setRange] = useState([0, windowed, 40])
  const all = rows.length <= windowed
  useLayoutEffect(() => {
    if (all) return
    let frame = 0
    const look = () => {
      frame = 0
      const top = body.current?.getBoundingClientRect().top ?? 0
      const drawn = [...body.current?.querySelectorAll("tr:not(.gap)") ?? []]
      setRange(was => {
        const high = drawn.length ? (drawn.at(-1).getBoundingClientRect().bottom - drawn[0].getBoundingClientRect().top) / drawn.length : 40 // cards are not alike
        const row = Math.abs(high - was[2]) > was[2] / 10 ? high : was[2]
        const first = Math.max(0, Math.floor(-top / row) - 20)
        const last = Math.max(first, Math.min(rows.length, Math.ceil((innerHeight - top) / row) + 20))
        return was[0] === first && was[1] === last && was[2] === row ? was : [first, last, row]
      })
    }
    const later = () => { frame ||= requestAnimationFrame(look) }
    look()
    addEventListener("scroll", later, { passive: true })
    addEventListener("resize", later)
    return () => { removeEventListener("scroll", later); removeEventListener("resize", later); cancelAnimationFrame(frame) }
  }, [rows.length, all])
  const [first, last] = all ? [0, rows.length] : [Math.min(from, rows.length), Math.min(to, rows.length)]
  const every = chosen && rows.length > 0 && rows.every(r => chosen.has(id(r)))
  const flip = r => { const next = new Set(chosen); next.has(id(r)) ? next.delete(id(r)) : next.add(id(r)); onChoose(next) }
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${`${label}, table`}><table class=${all ? "" : "windowed"} aria-rowcount=${rows.length + 1}>
    <thead><tr>${chosen && html`<th class="pick"><input type="checkbox" aria-label="Choose all rows" checked=${every} onChange=${() => onChoose(every ? new Set() : new Set(rows.map(id)))} /></th>`}
      ${columns.map(c => html`<th key=${c.name} scope="col" class=${c.class}>${c.title ?? c.name}</th>`)}</tr></thead>
    <tbody ref=${body}>
      ${first > 0 && html`<tr key="above" class="gap" aria-hidden="true"><td colspan=${columns.length + 1} style=${{ height: `${first * rowHeight}px` }}></td></tr>`}
      ${rows.slice(first, last).map((r, i) => html`<tr key=${id(r)} aria-rowindex=${first + i + 2} class=${chosen?.has(id(r)) ? "chosen" : ""}>
        ${chosen && html`<td class="pick"><input type="checkbox" aria-label=${`Choose ${id(r)}`} checked=${chosen.has(id(r))} onChange=${() => flip(r)} /></td>`}
        ${columns.map(c => html`<td key=${c.name} class=${c.class} data-name=${c.title ?? c.name}>${c.cell(r)}</td>`)}</tr>`)}
      ${last < rows.length && html`<tr key="below" class="gap" aria-hidden="true"><td colspan=${columns.length + 1} style=${{ height: `${(rows.length - last) * rowHeight}px` }}></td></tr>`}
    </tbody></table></div>`
}

// ---- messages and dialogs ----

const toasts = makeStore([])
let toastNumber = 0

export function tell(text, kind = "good") {
  const toast = { id: ++toastNumber, text, kind }
  toasts.set([...toasts.get(), toast].slice(-4))
  if (kind === "good") setTimeout(() => toasts.set(toasts.get().filter(t => t !== toast)), 6000)
}

export const tellProblem = (doing, error) => tell(`${doing}: ${error.message}`, "bad")

export function Toasts() {
  const list = useStore(toasts)
  return html`<div class="toasts" role="status" aria-live="polite">${list.map(t => html`<div key=${t.id} class=${"toast " + t.kind}><p>${visible(t.text)}</p>
    <button type="button" class="quiet small" aria-label="Close this message" onClick=${() => toasts.set(toasts.get().filter(x => x !== t))}>✕</button></div>`)}</div>`
}

const dialogs = makeStore([])

// open shows a dialog: a component that is given close(value). The promise has that value, null if it was dismissed.
export function open(component, props = {}) {
  return new Promise(resolve => {
    const before = document.activeElement
    const dialog = { component, props, close(value = null) {
      dialogs.set(dialogs.get().filter(d => d !== dialog))
      setTimeout(() => before?.isConnected && before.focus()) // not before the dialog is gone, which keeps the focus inside
      resolve(value)
    } }
    dialogs.set([...dialogs.get(), dialog])
  })
}

export function Dialogs() {
  return useStore(dialogs).map(d => html`<${Dialog} key=${d} of=${d} />`)
}

function Dialog({ of: d }) {
  const frame = useRef(null), outside = useRef(false), busy = useRef(false)
  useLayoutEffect(() => { frame.current.showModal() }, [])
  const leave = () => { if (!busy.current) d.close() } // what is being done is not left without its answer
  useEffect(() => {
    addEventListener("hashchange", leave)
    return () => removeEventListener("hashchange", leave)
  }, [])
  return html`<dialog ref=${frame} aria-labelledby="dialog-title" onCancel=${e => { e.preventDefault(); leave() }} onPointerDown=${e => { outside.current = e.target === frame.current }}
    onClick=${e => { if (outside.current && e.target === frame.current) leave() }}><div class="inside"><${d.component} ...${d.props} close=${d.close} hold=${v => { busy.current = v }} /></div></dialog>`
}

// Ask is a dialog that says what will happen, asks for what it needs, and does it. do(values) does; its failure is shown and the dialog stays.
export function Ask({ title, text, fields = [], action, danger, run, close, hold }) {
  const [values, set] = useState(Object.fromEntries(fields.map(f => [f.name, f.value ?? ""])))
  const [error, setError] = useState(null)
  const [busy, setBusy] = useState(false)
  const form = useRef(null)
  useEffect(() => { if (error) form.current.querySelector(".notice").scrollIntoView({ block: "nearest" }) }, [error]) // a long dialog has it out of sight
  const submit = async e => {
    e.preventDefault()
    setBusy(true)
    hold(true)
    setError(null)
    try {
      const value = await run(values)
      hold(false)
      close(value ?? true)
    } catch (problem) {
      setError(problem)
      setBusy(false)
      hold(false)
    }
  }
  return html`<form ref=${form} onSubmit=${submit}><h2 id="dialog-title">${title}</h2>
    ${text && html`<div class="say">${typeof text === "function" ? text(values) : html`<p>${text}</p>`}</div>`}
    ${fields.map(f => html`<${Field} key=${f.name} ...${f} value=${values[f.name]} onInput=${v => set(was => ({ ...was, [f.name]: v }))} />`)}
    <${Failure} error=${error} />
    <div class="buttons"><button type="button" class="quiet" disabled=${busy} onClick=${() => close()}>Leave it</button>
      <button type="submit" class=${danger ? "danger" : "main"} disabled=${busy}>${busy ? "One moment…" : action}</button></div></form>`
}

let fieldNumber = 0

export function Field({ label, kind = "text", value, onInput, hint, options, ...rest }) {
  const [id] = useState(() => `field-${++fieldNumber}`)
  const about = hint ? id + "-hint" : undefined
  delete rest.name
  let control
  if (kind === "area") control = html`<textarea id=${id} aria-describedby=${about} value=${value} onInput=${e => onInput(e.target.value)} spellcheck=${false} ...${rest}></textarea>`
  else if (kind === "choice") control = html`<select id=${id} aria-describedby=${about} value=${value} onChange=${e => onInput(e.target.value)} ...${rest}>
    ${options.map(([v, text]) => html`<option key=${v} value=${v} selected=${v === value}>${text}</option>`)}</select>`
  else if (kind === "check") return html`<div class="field check"><input id=${id} type="checkbox" checked=${!!value} onChange=${e => onInput(e.target.checked)} ...${rest} /><label for=${id}>${label}</label></div>`
  else control = html`<input id=${id} type=${kind} aria-describedby=${about} value=${value} onInput=${e => onInput(e.target.value)} autocomplete="off" ...${rest} />`
  return html`<div class="field"><label for=${id}>${label}</label>${control}${hint && html`<p class="dim" id=${about}>${hint}</p>`}</div>`
}

// More says of a list that it does not end with what is shown of it.
export const More = ({ of, what }) => of?.next_cursor && html`<p class="dim">These are the first ${number(of.items.length)} ${what}. The command <code>flowfabric</code> lists all of them.</p>`

const reasonField = { name: "reason", label: "Reason", hint: "Noted with your name.", maxlength: 500 }

// act asks, also for the reason of a change, does, says that it is done, and lets the page load again.
export async function act({ title, text, action, danger, fields = [], reason = true, run, done, then }) {
  const value = await open(Ask, { title, text, action, danger, fields: reason ? [...fields, { ...reasonField, required: reason === "required" }] : fields, run })
  if (value !== null) {
    if (done) tell(typeof done === "function" ? done(value) : done)
    then?.(value)
  }
}

// Menu is a button with a list of actions.
export function Menu({ label, items, kind = "" }) {
  const shown = items.filter(Boolean)
  const [up, set] = useState(false)
  const root = useRef(null)
  useLayoutEffect(() => {
    if (!up) return
    const list = root.current.querySelector("[role=menu]"), button = root.current.querySelector("button").getBoundingClientRect()
    list.style.top = `${Math.max(8, Math.min(button.bottom + 4, innerHeight - list.offsetHeight - 8))}px` // fixed, so that no table cuts it off
    list.style.left = `${Math.max(8, button.right - list.offsetWidth)}px`
    const away = e => { if (!root.current?.contains(e.relatedTarget ?? e.target)) set(false) }
    const gone = () => set(false)
    list.querySelector("[role=menuitem]")?.focus({ preventScroll: true })
    document.addEventListener("pointerdown", away)
    addEventListener("scroll", gone, true)
    return () => { document.removeEventListener("pointerdown", away); removeEventListener("scroll", gone, true) }
  }, [up])
  if (shown.length === 0) return null
  const keys = e => {
    const list = [...root.current.querySelectorAll("[role=menuitem]")]
    const at = list.indexOf(document.activeElement)
    if (e.key === "Home") list[0]?.focus()
    else if (e.key === "End") list[list.length - 1]?.focus()
    else if (e.key === "Escape") { set(false); root.current.querySelector("button").focus() }
    else if (e.key === "ArrowDown") list[(at + 1) % list.length]?.focus()
    else if (e.key === "ArrowUp") list[(at - 1 + list.length) % list.length]?.focus()
    else if (e.key === "Tab") { set(false); return }
    else return
    e.preventDefault()
  }
  return html`<div class="menu" ref=${root} onKeyDown=${up ? keys : e => { if (e.key === "ArrowDown") { set(true); e.preventDefault() } }}>
    <button type="button" class=${kind} aria-haspopup="menu" aria-expanded=${up} onClick=${() => set(!up)}>${label} <span aria-hidden="true">▾</span></button>
    ${up && html`<div role="menu" aria-label=${label}>${shown.map(i => html`<button key=${i.label} type="button" role="menuitem" class=${i.danger ? "danger-text" : ""}
      onClick=${() => { set(false); root.current.querySelector("button").focus(); i.run() }}>${i.label}</button>`)}</div>`}</div>`
}

// useDraft is a filter that is being edited: what is typed counts after a moment, and replaces the address instead of adding one to go back to.
export function useDraft(filter, set) {
  const [draft, edit] = useState(filter)
  const now = JSON.stringify(filter), typed = JSON.stringify(draft)
  const known = useRef(now) // what the address says, as far as it was taken over here or written from here: what is typed meanwhile stays
  useEffect(() => { if (known.current !== now) { known.current = now; edit(filter) } }, [now])
  useEffect(() => {
    if (typed === now) return
    const t = setTimeout(() => { known.current = typed; set(draft) }, 400)
    return () => clearTimeout(t)
  }, [typed])
  return [draft, name => value => edit({ ...draft, [name]: value })]
}

// become goes to a place in place of this one.
export function become(parts, query) {
  history.replaceState(null, "", to(parts, query))
  dispatchEvent(new HashChangeEvent("hashchange"))
}

// checkID refuses what cannot be an id before it becomes part of an address.
export function checkID(id) {
  if (!/^[0-9a-z-]{1,64}$/i.test(id)) throw Object.assign(new Error("This is no id of an execution or a flow."), { status: 400 })
  return true
}

// segment is a name as the last part of an address.
export function segment(name) {
  if (name === "." || name === "..") throw new Error("This name cannot be part of an address.")
  return encodeURIComponent(name)
}

// asJSON reads a field with JSON in it.
export function asJSON(text, what = "The text", are = "is") {
  if (text.trim() === "") return undefined
  try {
    return exactly(text)
  } catch (e) {
    throw new Error(`${what} ${are} not JSON: ${e.message}`)
  }
}
