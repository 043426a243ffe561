// The story of one execution in one picture: its attempts, steps and waits, what was lost, who did what, and how long each of it took.
import { html } from "./vendor/preact-htm.js"
import { serverNow, useBeat } from "./live.js"
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

const Bar = ({ place, from, to, kind, text, label }) => {
  const left = place(from), width = Math.max(0.4, place(to) - left)
  return html`<span class=${"span t-" + kind} title=${visible(text)} role="img" aria-label=${visible(text)} tabindex="0" style=${{ left: `${Math.min(left, 99.6)}%`, width: `${width}%` }}>${label && width > 9 ? html`<i>${label}</i>` : ""}</span>`
}

export function Timeline({ x, history, steps }) {
  useBeat()
  if (!history.length) return null
  const s = spans(x, history, serverNow())
  const times = [...new Set([s.from, s.to, ...s.runs.flatMap(r => [r.from, r.to]), ...s.waits.flatMap(w => [w.from, w.to]), ...steps.flatMap(p => [p.started_at, p.ended_at].filter(Boolean).map(Date.parse))].filter(t => t >= s.from && t <= s.to))]
  const place = scale(times, true)
  const attempts = [...new Set(s.runs.map(r => r.attempt))]
  const rows = [html`<tr key="all"><th scope="row">Waiting</th><td><div class="lane">${s.waits.map((w, i) => html`<${Bar} key=${i} place=${place} from=${w.from} to=${w.to} kind=${w.kind} label=${span(w.to - w.from)} text=${`${w.text}, ${span(w.to - w.from)}${w.open ? " so far" : ""}`} />`)}</div></td></tr>`]
  for (const a of attempts) {
    const own = s.runs.filter(r => r.attempt === a), log = x.attempt_log?.find(l => l.index === a)
    rows.push(html`<tr key=${"a" + a}><th scope="row">Attempt ${a}</th><td><div class="lane">${own.map((r, i) => html`<${Bar} key=${i} place=${place} from=${r.from} to=${r.to} kind=${r.how} label=${r.how === "lost" ? "lost" : span(r.to - r.from)}
      text=${`Attempt ${a}${r.worker ? ` on ${r.worker}` : ""}: ${r.text}, ${span(r.to - r.from)}${log?.message && !r.text.includes(log.message) ? `: ${log.message}` : ""}`} />`)}</div></td></tr>`)
    for (const p of steps.filter(p => p.attempt === a && p.kind === "step" && p.ended_at)) {
      rows.push(html`<tr key=${"s" + p.name + a} class="step"><th scope="row" title=${visible(p.name)}>${visible(p.name)}</th><td><div class="lane"><${Bar} place=${place} from=${Date.parse(p.started_at ?? p.ended_at)} to=${Date.parse(p.ended_at)} kind=${p.state === "failed" ? "bad" : "step"}
        text=${`${p.name}: ${p.started_at ? span(Date.parse(p.ended_at) - Date.parse(p.started_at)) : ""} ${p.error || p.state}`} /></div></td></tr>`)
    }
    const receipts = steps.filter(p => p.attempt === a && p.kind === "messages" && p.ended_at)
    for (const box of new Set(receipts.map(p => mailboxOf(p.name) || p.name))) {
      rows.push(html`<tr key=${"m" + box + a} class="step"><th scope="row" title=${visible(`messages of ${box}`)}>✉ ${visible(box)}</th><td><div class="lane">${receipts.filter(p => (mailboxOf(p.name) || p.name) === box).map(p => html`<${Bar} key=${p.name} place=${place} from=${Date.parse(p.ended_at)} to=${Date.parse(p.ended_at)} kind="step"
        text=${`received from ${box}, ${instant(p.ended_at)}`} />`)}</div></td></tr>`)
    }
  }
  const hidden = Math.max(0, rows.length - mostRows)
  if (hidden) rows.splice(1, hidden) // the newest stay
  if (s.marks.length) rows.push(html`<tr key="marks"><th scope="row">People</th><td><div class="lane">${s.marks.map((m, i) => html`<span key=${i} class="person" title=${visible(`${m.text}, ${instant(m.at)}`)} role="img" aria-label=${visible(`${m.text}, ${instant(m.at)}`)} tabindex="0" style=${{ left: `${Math.min(99, place(m.at))}%` }}>◆</span>`)}</div></td></tr>`)
  const kinds = [["waiting", "waiting"], ["delayed", "delayed"], ["suspended", "suspended"], ["active", "running"], ["good", "succeeded"], ["bad", "failed"], ["lost", "lease lost"], ["pause", "paused"], ["next", "continued with another input"], ["step", "step"], ["held", "held"]]
  const used = new Set([...s.waits.map(w => w.kind), ...s.runs.map(r => r.how), ...(steps.some(p => p.ended_at && (p.kind === "step" || p.kind === "messages")) ? ["step"] : [])])
  return html`<div class="timeline"><table><caption class="hidden">${plural(attempts.length, "attempt")} in ${span(s.to - s.from)}; the same in words is in the history.</caption><colgroup><col class="names" /><col /></colgroup><tbody>${rows}</tbody></table>
    ${hidden > 0 && html`<p class="dim">${plural(hidden, "earlier row")} ${hidden === 1 ? "is" : "are"} left out; the history has all of it.</p>`}
    <p class="axis dim"><span>${instant(s.from)}</span><span>${span(s.to - s.from)}</span></p>
    <p class="legend">${kinds.filter(([k]) => used.has(k)).map(([k, word]) => html`<span key=${k}><i class=${"dot t-" + k}></i>${word}</span>`)}${times.length > 2 && s.to - s.from > 1000 && html`<span class="dim">Long pauses are drawn shorter than they were.</span>`}</p></div>`
}
