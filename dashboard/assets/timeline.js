// The story of one execution in one picture: its attempts, steps and waits, what was lost, who did what, and how long each of it took.
import { html } from "./vendor/preact-htm.js"
import { mailboxOf } from "./message.js"
import { instant, plural, sayEnd, span, visible } from "./ui.js"

const ends = new Set(["completed", "failed", "cancelled", "expired", "skipped"])

// spans turns the history into what there is to draw: runs of attempts, waits between them, and marks of what people did.
export function spans(x, history, now) {
  const runs = [], waits = [], marks = []
  let run = null, wait = null
  const stop = (at, how, text) => { if (run) { Object.assign(run, { to: at, how, text }); runs.push(run); run = null } }
  const go = at => { if (wait) { waits.push({ ...wait, to: at }); wait = null } }
  const start = (at, kind, text) => { if (wait?.kind !== kind) { go(at); wait = { from: at, kind, text } } }
  for (const e of history) {
    const at = Date.parse(e.at), why = e.reason ? `: ${e.reason}` : ""
    const who = e.by
    if (who && e.kind !== "created" && e.kind !== "ended") marks.push({ at, text: `${e.kind.replaceAll("_", " ")} by ${who}${e.from ? ` (${e.from})` : ""}${why}` })
    switch (e.kind) {
      case "created": {
        const delayed = x.attempts === 0 && x.state === "delayed"
        start(at, delayed ? "delayed" : "waiting", delayed ? "delayed" : "waited for a worker")
        break
      }
      case "claimed": go(at); stop(at, "lost", "went on elsewhere"); run = { from: at, attempt: e.attempt, worker: e.worker }; break
      case "attempt_ended": {
        if (e.detail === "continued") break // said above
        const [how] = (e.detail || "").split(" ")
        const lost = how === "interrupted_reclaimed"
        stop(at, lost ? "lost" : how === "ended_success" ? "good" : how === "rewound" || how === "forked" ? "pause" : "bad", `${sayEnd(e.detail)}${why}`)
        const pause = !lost && x.state === "delayed" && e.attempt === x.attempts
        start(at, pause ? "delayed" : "waiting", pause ? "pause before the next attempt" : lost ? "waited for another worker" : "waited for the next attempt")
        break
      }
      case "continued": // a link whose attempts are not kept has neither a claim nor an end
        if (!run && wait) wait = { ...wait, kind: "next", text: "had another input; its attempts are not kept" }
        go(at)
        stop(at, "next", "went on with another input")
        start(at, "waiting", "waited for a worker")
        break
      case "suspended": stop(at, "pause", "suspended"); start(at, "suspended", mailboxOf(e.reason) ? `waited for a message to “${mailboxOf(e.reason)}”` : `${(e.detail || "suspended").replaceAll("_", " ")}${e.reason ? ` “${e.reason}”` : ""}`); break
      case "resumed": start(at, "waiting", `resumed by ${(e.detail || "").replaceAll("_", " ")}`); break
      case "delayed": stop(at, "pause", "put aside"); start(at, "delayed", "put aside by its handler"); break
      case "released": stop(at, "pause", "given back"); start(at, "waiting", "waited for a worker"); break
      case "revoked": stop(at, "lost", `revoked${why}`); start(at, "waiting", "waited for a worker"); break
      case "held": start(at, "held", `held${e.by ? ` by ${e.by}` : ""}${why}`); break
      case "unheld": start(at, "waiting", "waited for a worker"); break
      case "replayed": stop(at, "bad", ""); wait = null; start(at, "waiting", "waited for a worker"); break
      case "ended": case "cancelled": case "expired": case "skipped":
        stop(at, x.state === "completed" ? "good" : "bad", e.detail?.replaceAll("_", " ") || e.kind)
        if (wait && wait.from < at) go(at) // else the last attempt has just ended, and nothing was waited for
        wait = null
        break
    }
  }
  const last = ends.has(x.state) && x.ended_at ? Date.parse(x.ended_at) : now
  if (run) { runs.push({ ...run, to: last, how: ends.has(x.state) ? (x.state === "completed" ? "good" : "bad") : "active", text: ends.has(x.state) ? x.state : "runs" }) }
  if (wait && !ends.has(x.state)) waits.push({ ...wait, to: last, open: true })
  return { runs, waits, marks, from: Date.parse(history[0]?.at ?? x.created_at), to: Math.max(last, Date.parse(history[0]?.at ?? x.created_at) + 1) }
}

// scale gives long pauses less room than they took, so that what is short can still be seen: the room of a part is the logarithm of its time.
export function scale(times, compress) {
  const at = [...new Set(times)].sort((a, b) => a - b)
  const weight = d => compress ? Math.log1p(d / 20) : d
  const places = [0]
  for (let i = 1; i < at.length; i++) places.push(places[i - 1] + weight(at[i] - at[i - 1]))
  const whole = places[places.length - 1] || 1
  return t => {
    if (t <= at[0]) return 0
    if (t >= at[at.length - 1]) return 100
    let i = at.findIndex(a => a >= t)
    const share = (t - at[i - 1]) / (at[i] - at[i - 1])
    return 100 * (places[i - 1] + share * (places[i] - places[i - 1])) / whole
  }
}

const mostRows = 58

// rowsOf are what the picture shows, a row each: [key, label, bars, whether it is a step's]. What a bar is about is also what is shown beside the picture when somebody
// chooses it: a wait, an attempt, a step, received messages, or what a person did.
function rowsOf(x, s, steps) {
  const rows = [{ key: "waits", label: "Waiting", bars: s.waits.map((w, i) => ({ key: "w" + i, type: "wait", ...w, title: w.text, text: `${w.text}, ${span(w.to - w.from)}${w.open ? " so far" : ""}` })) }]
  for (const a of new Set(s.runs.map(r => r.attempt))) {
    const log = x.attempt_log?.find(l => l.index === a), own = s.runs.filter(r => r.attempt === a)
    rows.push({ key: "a" + a, label: `Attempt ${a}`, bars: own.map((r, i) => ({ key: `a${a}.${i}`, type: "attempt", ...r, kind: r.how, last: i === own.length - 1, label: r.how === "lost" ? "lost" : "", title: `Attempt ${a}`, error: r.how === "bad" || r.how === "lost" ? log?.message || (a === x.attempts && x.failure?.message) || "" : "",
      category: log?.category, text: `Attempt ${a}${r.worker ? ` on ${r.worker}` : ""}: ${r.text}, ${span(r.to - r.from)}${log?.message && !r.text.includes(log.message) ? `: ${log.message}` : ""}` })) })
    for (const p of steps.filter(p => p.attempt === a && p.kind === "step" && p.ended_at)) {
      const from = Date.parse(p.started_at ?? p.ended_at), to = Date.parse(p.ended_at)
      rows.push({ key: `s${p.name} ${a} ${p.state}`, label: p.name, step: true, bars: [{ key: `s${p.name} ${a} ${p.state}`, type: "step", step: p, attempt: a, from, to, kind: p.state === "failed" ? "bad" : "step", title: p.name, error: p.error, text: `${p.name}: ${p.started_at ? span(to - from) : ""} ${p.error || p.state}` }] })
    }
    const receipts = steps.filter(p => p.attempt === a && p.kind === "messages" && p.ended_at)
    for (const box of new Set(receipts.map(p => mailboxOf(p.name) || p.name))) {
      rows.push({ key: "m" + box + a, label: "✉ " + box, step: true, bars: receipts.filter(p => (mailboxOf(p.name) || p.name) === box).map(p => ({ key: `m${p.name} ${a}`, type: "message", attempt: a, from: Date.parse(p.ended_at), to: Date.parse(p.ended_at), kind: "step", label: " ", title: `Message of ${box}`, text: `received from ${box}, ${instant(p.ended_at)}` })) })
    }
  }
  const hidden = Math.max(0, rows.length - mostRows)
  rows.splice(1, hidden) // the newest stay
  if (s.marks.length) rows.push({ key: "people", label: "People", bars: s.marks.map((m, i) => ({ key: "p" + i, type: "person", from: m.at, to: m.at, title: "People", text: `${m.text}, ${instant(m.at)}` })) })
  return { rows, hidden }
}

// picture is all that Timeline draws, and what can be chosen in it.
export function picture(x, history, steps, now) {
  const s = spans(x, history, now), { rows, hidden } = rowsOf(x, s, steps)
  return { ...s, rows, hidden, bars: rows.flatMap(r => r.bars) }
}

// firstBar is the bar that is chosen before anybody chose one: the step that failed last, if the execution failed, else its last attempt.
export function firstBar(x, of) {
  const attempts = of.bars.filter(b => b.type === "attempt"), broken = of.bars.filter(b => b.type === "step" && b.kind === "bad" && b.attempt === x.attempts)
  return (x.state === "failed" && broken.at(-1) || attempts.at(-1) || of.bars.at(-1))?.key
}

function Bar({ of: b, place, chosen, choose, beside }) {
  const left = place(b.from), width = Math.max(0.4, place(b.to) - left), text = visible(b.text)
  const press = e => { if (e.key === "Enter" || e.key === " ") { choose(b.key); e.preventDefault() } }
  const button = { title: text, "aria-label": text, role: "button", tabindex: 0, "aria-pressed": chosen === b.key, onClick: e => { e.stopPropagation(); choose(b.key) }, onKeyDown: press }
  if (b.type === "person") return html`<span class="person" ...${button} style=${{ left: `${Math.min(99, left)}%` }}>◆</span>`
  const label = b.label || span(b.to - b.from), room = (innerWidth < 768 ? 3 : 1.5) * label.length + 2 // in hundredths of the row, about
  const inside = b.label !== " " && width > room && (!beside || b.type !== "step")
  return html`<span class=${"span t-" + b.kind} ...${button} style=${{ left: `min(${Math.min(left, 99.6)}%, calc(100% - 3px))`, width: `${Math.min(width, Math.max(0.4, 100 - left))}%` }}>${inside ? html`<i>${label}</i>` : ""}</span>
    ${beside && !inside && b.label !== " " && html`<i class="beside" style=${left + width + room < 100 ? { left: `${left + width}%` } : { right: `${100 - Math.min(left, 99.6)}%` }}>${label}</i>`}`
}

const words = [["waiting", "waiting"], ["delayed", "delayed"], ["suspended", "suspended"], ["active", "running"], ["good", "succeeded"], ["bad", "failed"], ["lost", "lease lost"], ["pause", "ran until a wait"], ["next", "continued with another input"], ["step", "step"], ["held", "held"]]

// Timeline draws a picture. chosen is the key of a bar.
export function Timeline({ of: s, chosen, choose }) {
  if (!s.rows.some(r => r.bars.length)) return null
  const steps = s.bars.filter(b => b.type === "step" || b.type === "message")
  const times = [...new Set([s.from, s.to, ...s.bars.flatMap(b => b.type === "person" ? [] : [b.from, b.to])].filter(t => t >= s.from && t <= s.to))]
  const place = scale(times, true), used = new Set([...s.waits.map(w => w.kind), ...s.runs.map(r => r.how), ...(steps.length ? ["step"] : [])])
  const attempts = new Set(s.runs.map(r => r.attempt)).size
  return html`<div class="timeline"><table><caption class="hidden">${plural(attempts, "attempt")} in ${span(s.to - s.from)}; the same in words is in the history.</caption><colgroup><col class="names" /><col /></colgroup><tbody>
    ${s.rows.map(r => html`<tr key=${r.key} class=${(r.step ? "step" : "") + (r.bars.some(b => b.key === chosen) ? " chosen" : "")} onClick=${r.bars.length === 1 ? () => choose(r.bars[0].key) : undefined}><th scope="row">${visible(r.label)}</th>
      <td><div class="lane">${r.bars.map(b => html`<${Bar} key=${b.key} of=${b} place=${place} chosen=${chosen} choose=${choose} beside=${r.bars.length === 1} />`)}</div></td></tr>`)}</tbody></table>
    ${s.hidden > 0 && html`<p class="dim">${plural(s.hidden, "earlier row")} ${s.hidden === 1 ? "is" : "are"} left out; the history has all of it.</p>`}
    <p class="axis dim"><span>${instant(s.from)}</span><span>${span(s.to - s.from)}</span></p>
    <p class="legend">${words.filter(([k]) => used.has(k)).map(([k, word]) => html`<span key=${k}><i class=${"dot t-" + k}></i>${word}</span>`)}${times.length > 2 && s.to - s.from > 1000 && html`<span class="dim">Long pauses are drawn shorter than they were.</span>`}</p></div>`
}
