import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js"
import { follow, get, post } from "../api.js"
import { may, offers, serverNow, useBeat, useLoad, whileVisible } from "../live.js"
import { act, bytes, checkID, Chip, Copy, Empty, Facts, Failure, Field, go, instant, Loaded, Menu, number, Payload, plural, Said, sayEnd, Section, segment, shortID, Since, span, State, stateWord, Tags, Time, to, visible } from "../ui.js"
import { Conversation, isEcho } from "../conversation.js"
import { firstBar, picture, Timeline } from "../timeline.js"
import { Answer, questionsOf, titleOf } from "../answer.js"
import { mailboxOf, Messages, sendMessage } from "../message.js"

const ended = new Set(["completed", "failed", "cancelled", "expired", "skipped"])
export const isEnded = state => ended.has(state)
const isHeld = x => x.blocking_reason === "held_by_operator"

// saidBy is a message of an agent's conversation, in lines, null for anything else. What was shown in pieces is not repeated.
function saidBy(m, shown) {
  if (!["user", "assistant", "tool"].includes(m?.role)) return null
  const text = (m.parts ?? []).map(p => p.text ?? `[${p.type}]`).join("")
  const who = m.role === "tool" ? `${m.tool ?? "tool"}${m.failed ? " failed" : ""}` : m.from || m.role
  return [...(text && !(shown && m.role === "assistant") ? [`${who}: ${text}`] : []), ...(m.calls ?? []).map(c => `calls ${c.name} ${JSON.stringify(c.arguments)}`)]
}

const turnActs = { stop: "The answer was stopped", interrupt: "The answer was interrupted by a message" }

// turnOf is what became of an agent's turn, in a line, null for anything else.
function turnOf(f) {
  if (f.type !== "turn" || typeof f.value?.act !== "string") return null
  const v = f.value, list = (what, of) => of?.length ? ` ${what}: ${of.map(String).join(", ")}.` : ""
  const tokens = v.tokens ? ` ${plural(v.tokens, "token")} paid${v.estimated ? ", by estimate" : ""}.` : ""
  return `${turnActs[v.act] ?? v.act}${v.by ? ` by ${v.by}` : ""}${v.reason ? `: ${v.reason}` : ""}.${tokens}${list("Done", v.done)}${list("Not made", v.not_made)}${list("May have been made", v.unknown)}`
}

// summaryOf says that an agent's model sees a summary in the place of the beginning, null for any other frame.
const summaryOf = f => f.type === "summary" && Number.isInteger(f.value?.messages) ? `For its model a summary takes the place of the first ${plural(f.value.messages, "message")} (about ${number(f.value.before)} tokens, now ${number(f.value.after)}): ${f.value.text ?? ""}` : null

// nearly lists the limits of which four fifths are used. A history forgets its oldest entry once it is full.
function nearly(x, steps, history) {
  const size = steps.reduce((sum, s) => sum + (s.bytes || 0), 0)
  const events = history.filter(e => !["created", "claimed", "attempt_ended", "ended"].includes(e.kind)).length
  return [[x.steps, 1000, `steps ${number(x.steps)} of 1,000`], [size, 8 << 20, `bytes of steps ${bytes(size)} of 8 MiB`], [events, 1000, `history ${number(Math.min(events, 1000))} of 1,000`]]
    .filter(([used, most]) => used >= most * .8).map(([, , text]) => text)
}

// Output follows what the handler puts out. Its text is kept outside of the page's parts, because it may grow by many pieces a second.
// What an agent says is shown as a conversation, and all that was put out beside it.
function Output({ id, steps, onMoved, onFilled }) {
  const log = useRef(null), pane = useRef(null), stick = useRef(true), talk = useRef(null)
  const [raw, setRaw] = useState(false)
  const [info, setInfo] = useState({ state: "connecting", frames: 0, gaps: 0, ended: false })
  useEffect(() => {
    const out = log.current, conversation = talk.current = new Conversation()
    pane.current.replaceChildren(conversation.root)
    let live = { frames: 0, gaps: 0, state: "connecting", ended: false, run: null, size: 0 }
    let queue = [], frame = 0
    let child = "", last = ""
    const spoke = {} // by whom the last frame was a piece of an answer
    const note = (text, kind) => { queue.push([child ? `${child}: ${text}` : text, "note " + kind]) }
    const flush = () => {
      frame = 0
      let open = out.lastElementChild
      for (const [text, kind] of queue) {
        if (!open || open.className !== kind || kind !== "text" || (kind === "text" && open.firstChild.length > 20000)) {
          open = document.createElement(kind === "text" ? "span" : "p")
          open.className = kind
          if (kind === "text") open.dir = "auto"
          open.append(document.createTextNode(""))
          out.append(open)
        }
        open.firstChild.appendData(text)
      }
      queue = []
      while (out.childElementCount > 400) out.firstElementChild.remove()
      if (stick.current) for (const e of [out, pane.current]) e.scrollTop = e.scrollHeight
      setInfo({ ...live, talk: live.talk ||= conversation.begun })
    }
    const open = () => { until = -1; onFilled(); later() }
    let wait = setTimeout(open, 1000), until = 0 // what is there already comes in pieces, and is shown at once; what is below comes then
    const later = () => {
      if (until < 0) { frame ||= requestAnimationFrame(flush); return }
      until ||= performance.now() + 600
      clearTimeout(wait)
      wait = setTimeout(open, live.ended || performance.now() > until ? 0 : 80)
    }
    const show = (name, d) => {
      const at = d.attempt
      child = d.child ? visible(d.child.path.join(" › ")) : ""
      if (name === "frame" && child !== last) { last = child; queue.push([child || "its own output", "note whose"]) }
      if (name === "attempt") { if (d.attempt_type !== "initial") note(d.attempt_type === "continue" ? `Attempt ${at} begins, with another input` : `Attempt ${at} begins (${d.attempt_type})${d.reused?.length ? ", what earlier attempts recorded stays" : ""}`, "mark") }
      else if (name === "frame") {
        live.frames++
        const f = d.frame, told = turnOf(f) ?? summaryOf(f), lines = told ? [told] : f.type === "message" && saidBy(f.value, spoke[child])
        const echo = conversation.begun && isEcho(f)
        if (!told && !echo) spoke[child] = f.type === "token"
        if (told) conversation.note(d, told)
        if (echo) { /* the messages say it */ }
        else if (lines) lines.forEach(line => queue.push([visible(line), "note mark"]))
        else queue.push([visible(f.encrypted ? "(encrypted)" : f.text ?? (f.value !== undefined ? (typeof f.value === "string" ? f.value : JSON.stringify(f.value)) : `[${plural(Math.floor((f.base64 || "").length * 3 / 4), "byte")}]`)), "text"])
        if (!echo && !lines && f.value !== undefined && typeof f.value !== "string") queue.push(["\n", "text"])
      }
      else if (name === "resumed") note(`It goes on${d.resumed?.reason ? ` (${d.resumed.reason.replaceAll("_", " ")})` : ""} and repeats what no step has recorded`, "mark")
      else if (name === "gap") { live.gaps += (d.missed || 0) + (d.trimmed || 0); note("Some output was gone before it could be read", "warn") }
      else if (name === "suspended") note(d.suspension?.reason === "waiting_for_children" ? "It waits for its children" : mailboxOf(d.suspension?.name) ? `It waits for a message to “${mailboxOf(d.suspension.name)}”` : `It waits for an answer${d.suspension?.name ? ` under “${d.suspension.name}”` : ""}`, "mark")
      else if (name === "attempt_end") { if (d.reason === "forked") note("Up to here it is the output of what it was forked from", "mark")
        else if (d.reason === "rewound") note(`It goes on from an earlier step${d.by ? `, says ${visible(d.by)}` : ""}${d.message ? `: ${visible(d.message)}` : ""}. What it said since then does not count`, "mark")
        else if (d.reason !== "attempt_success" && d.reason !== "continued") note(`Attempt ${at} ended: ${(d.reason || "").replaceAll("_", " ")}${d.message ? `: ${visible(d.message)}` : ""}`, "warn") }
      else if (name === "retry") note(`Another attempt begins at ${instant(d.at)}`, "mark")
      else if (name === "end") { live.ended ||= !child; note(`It has ended: ${stateWord(d.state)}`, "mark") }
      else if (name === "problem") note(d.detail || "The stream ended.", "warn")
      conversation.show(name, d)
      if (name !== "frame") onMoved()
      later()
    }
    let after = ""
    const leave = whileVisible(signal => { // back in front it goes on where it was
      if (!live.ended) follow(`executions/${id}/events`, { query: { after }, signal, on(name, d, last) { after = last; show(name, d) }, state(up, e) { live.state = up ? "live" : e ? "over" : "away"; later() } })
    })
    return () => { leave(); clearTimeout(wait); cancelAnimationFrame(frame) }
  }, [id])
  useEffect(() => {
    const names = new Map(steps.filter(s => s.kind === "step" && s.state !== "failed").map(s => [/(?:^| )model (\d+)$/.exec(s.name)?.[1], s.name]))
    talk.current?.cost(async n => names.has(String(n)) ? (await get(`executions/${id}/steps/${segment(names.get(String(n)))}`)).value : null)
  }, [id, steps, info.talk])
  const both = info.talk, onScroll = e => { stick.current = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 40 }
  return html`<div class="output">${both && html`<div class="views" role="group" aria-label="What is shown"><button type="button" class="small" aria-pressed=${!raw} onClick=${() => setRaw(false)}>Conversation</button><button type="button" class="small" aria-pressed=${raw} onClick=${() => setRaw(true)}>All output</button></div>`}
    <div ref=${pane} class="pane" tabindex="0" role="log" aria-label="Conversation" aria-live="off" hidden=${!both || raw} onScroll=${onScroll}></div>
    <div ref=${log} class="log" tabindex="0" role="log" aria-label="Output" aria-live="off" hidden=${both && !raw} onScroll=${onScroll}></div>
    ${info.frames === 0 && html`<p class="dim">${info.ended ? "No output." : "No output yet. It appears here as it comes."}</p>`}
    <p class="dim" role="status">${info.ended && !info.frames && !info.gaps ? "" : plural(info.frames, "frame")}${info.gaps ? `, ${number(info.gaps)} were lost` : ""}${info.ended ? "" : info.state === "live" ? ", live" : info.state === "away" ? ", connecting again…" : ""}</p></div>`
}

// Steps are what the handler has done once and for all.
function Steps({ id, steps }) {
  const [shown, set] = useState({})
  const [error, setError] = useState(null)
  const show = async s => {
    try { const value = await get(`executions/${id}/steps/${segment(s.name)}`); set(v => ({ ...v, [s.name]: value })) } catch (e) { setError(e) }
  }
  return html`<div><${Failure} error=${error} /><ul class="plain steps">${steps.map(s => html`<li key=${s.name + s.state + s.attempt}>
    <span class=${"state s-" + (s.state === "failed" ? "failed" : "completed")}><span aria-hidden="true">${s.state === "failed" ? "✕" : "✓"}</span> ${s.state}</span> <b>${visible(mailboxOf(s.name) || s.name)}</b>
    ${s.kind !== "step" && html` <${Chip}>${s.kind}<//>`}${s.kind === "messages" && s.name.includes("·") && html` <span class="dim">receipt ${s.name.slice(s.name.indexOf("·") + 1)}</span>`} <span class="dim">attempt ${s.attempt}${s.ended_at ? html`, <${Time} at=${s.ended_at} />` : ""}${s.started_at && s.ended_at && s.kind !== "messages" ? `, took ${span(Date.parse(s.ended_at) - Date.parse(s.started_at))}` : ""}${s.bytes ? `, ${bytes(s.bytes)}` : ""}</span>
    ${s.state !== "failed" && s.kind === "step" && !shown[s.name] && html` <button type="button" class="quiet small" onClick=${() => show(s)} aria-label=${`Show the value of ${s.name}`}>Value</button>`}
    ${s.error && html`<p class="bad-text">${visible(s.error)}</p>`}${shown[s.name] && html`<${Payload} of=${shown[s.name]} name=${`value of ${s.name}`} />`}</li>`)}</ul></div>`
}

// inOrder puts a step that failed behind those that were recorded in the same millisecond: they came first.
function inOrder(steps) {
  for (let i = 0; i + 1 < steps.length; i++) {
    const a = steps[i], b = steps[i + 1]
    if (a.state === "failed" && b.state !== "failed" && a.attempt === b.attempt && a.ended_at === b.ended_at) { steps[i] = b; steps[i + 1] = a }
  }
  return steps
}

// whatIsGone says of an act which steps stay behind or are forgotten.
const whatIsGone = names => names?.length ? ` ${plural(names.length, "step")}: ${names.slice(0, 5).map(visible).join(", ")}${names.length > 5 ? " …" : ""}.` : ""

// stepsToGo are the steps that an execution may go on from.
const stepsToGo = steps => steps.filter(s => s.kind === "step" && s.state !== "failed").map(s => s.name)

// replay asks from where an execution runs again.
const replay = (x, steps, reload, from = "") => act({ title: "Replay", text: `This is ${x.kind} ${shortID(x.id)}. ${x.state === "completed" ? "It has succeeded. Run again, it may repeat its effects." : "It runs again. Recorded steps are not repeated unless you say so."}`, action: "Replay",
  fields: [{ name: "from", label: "From", kind: "choice", value: from, hint: "A step that is chosen is forgotten, and so is what was recorded after it.", options: [["", "where it stopped: recorded steps are kept"], ...stepsToGo(steps).map(n => ["step " + n, `the step ${visible(n)}`]), ["scratch", "scratch: recorded steps are forgotten"]] }],
  run: v => post(`executions/${x.id}:replay`, { reason: v.reason, from_scratch: v.from === "scratch", from_step: v.from.startsWith("step ") ? v.from.slice(5) : undefined, force: x.state === "completed" }), done: "It runs again.", then: reload })

// turnActions are those of people who changed their minds: each goes on from a recorded step.
function turnActions(x, steps, reload) {
  const path = `executions/${x.id}`, end = isEnded(x.state)
  const names = stepsToGo(steps)
  const latest = names.filter(n => /(^| )model \d+$/.test(n)).pop() ?? names.at(-1) ?? ""
  const step = hint => ({ name: "step", label: "From the step", kind: "choice", required: true, value: latest, options: names.map(n => [n, visible(n)]), hint })
  return [
    !end && may("stop") && { label: "Stop the answer…", run: () => act({ title: "Stop the answer", text: `An agent ends what it says where it is, and its run goes on. A call that runs ends by itself; those that have not begun are not made. Tokens stay paid. Other handlers do not hear it.`, action: "Stop it",
      run: v => post(`${path}:stop`, { reason: v.reason }), done: v => v.already ? "Somebody had stopped it already." : `Stopped.${v.done?.length ? " Done in this turn:" + whatIsGone(v.done) : ""}`, then: reload }) },
    names.length > 0 && may("rewind") && { label: "Go on from a step…", danger: true, run: () => act({ title: "Go on from a step", text: "The step is forgotten, and so is what was recorded after it. The handler does it again, in a new attempt. What was paid stays paid, and effects that are done stay done. Children that run are cancelled.", action: "Go on from there", danger: true,
      fields: [step("An agent's answers are “model 1”, “model 2” and so on."), { name: "message", label: "What the user says instead", kind: "area", hint: "Only before an answer of an agent; empty to keep what was said" }],
      run: v => post(`${path}:rewind`, { step: v.step, attempt: x.attempts, message: v.message || undefined, reason: v.reason }), done: v => `It goes on from there, in attempt ${v.attempt}. Forgotten:${whatIsGone(v.dropped)}`, then: reload }) },
    names.length > 0 && may("fork") && { label: "Fork…", run: () => act({ title: "Fork", text: "Another execution begins with what was recorded before the step, and goes on from there by itself. Nothing of it is done or paid again. This one goes on as it is.", action: "Fork",
      fields: [step()], run: v => post(`${path}:fork`, { step: v.step, reason: v.reason }), done: "Forked. This is the new one.", then: v => go(["executions", v.id]) }) },
  ]
}

function actions(x, steps, reload) {
  const path = `executions/${x.id}`
  const end = isEnded(x.state)
  const say = what => `This is ${x.kind} ${shortID(x.id)}. ${what}`
  const simple = (operation, name, label, text, done, danger) => may(operation) && { label: label + "…", danger, run: () => act({ title: label, text: say(text), action: label, danger, run: v => post(`${path}:${name}`, { reason: v.reason }), done, then: reload }) }
  const held = isHeld(x)
  return [
    !end && simple("cancel", "cancel", "Cancel", "It ends as cancelled. A handler that runs is told to stop.", "Cancelled.", true),
    end && may("replay") && { label: "Replay…", run: () => replay(x, steps, reload) },
    x.state === "suspended" && may("resume") && { label: "Resume without an answer…", run: () => act({ title: "Resume without an answer", text: say("The handler goes on as if nobody had answered. What it then does is its decision."), action: "Resume", reason: "required",
      run: v => post(`${path}:resume`, { reason: v.reason }), done: "Resumed.", then: reload }) },
    !end && may("sendMessage") && { label: "Send a message…", run: () => sendMessage({ id: x.id, kind: x.kind, then: reload }) },
    ...turnActions(x, steps, reload),
    x.state === "delayed" && simple("runNow", "run-now", "Run now", "It no longer waits for its time.", "It may run now."),
    x.state === "active" && simple("revoke", "revoke", "Take it from its worker", `${x.worker || "Its worker"} is told to stop, and another one begins a new attempt. No retry is used up.`, "Taken away.", true),
    !end && !held && x.state !== "suspended" && x.state !== "active" && simple("hold", "hold", "Hold", "No worker gets it until somebody lets it go on.", "Held."),
    held && may("unhold") && { label: "Let it go on…", run: () => act({ title: "Let it go on", text: say("Workers may have it again."), action: "Let it go on", run: v => post(`${path}:unhold`, { reason: v.reason }), done: "It goes on.", then: reload }) },
    !end && may("setPriority") && { label: "Set the priority…", run: () => act({ title: "Set the priority", text: say(`Its priority is ${x.priority}.`), action: "Set it", fields: [{ name: "priority", label: "Priority", kind: "number", min: 0, max: 9000, required: true, value: String(x.priority), hint: "0..9000, higher first" }],
      run: v => post(`${path}:priority`, { priority: Number(v.priority), reason: v.reason }), done: "The priority is set.", then: reload }) },
    x.state === "delayed" && may("setDelay") && { label: "Change the delay…", run: () => act({ title: "Change the delay", text: say("It waits for so long from now."), action: "Change it", fields: [{ name: "seconds", label: "Seconds", kind: "number", min: 0, required: true, value: "3600" }],
      run: v => post(`${path}:delay`, { delay_ms: Number(v.seconds) * 1000, reason: v.reason }), done: "The delay is changed.", then: reload }) },
    may("setTags") && { label: "Change tags…", run: () => act({ title: "Change tags", text: say("Set a tag, or leave its value empty to take it away."), action: "Change", fields: [{ name: "key", label: "Key", required: true, maxlength: 64, hint: "With a dot, such as team.name" }, { name: "value", label: "Value", maxlength: 256 }],
      run: v => post(`${path}:tags`, { reason: v.reason, ...(v.value ? { set: { [v.key.trim()]: v.value } } : { remove: [v.key.trim()] }) }), done: "Changed.", then: reload }) },
    end && may("purge") && { label: "Purge…", danger: true, run: () => act({ title: "Purge", text: say("Everything that is stored of it is removed for good. This cannot be taken back."), action: "Purge it", danger: true, run: v => post(`${path}:purge`, { reason: v.reason }), done: "Purged.", then: () => go(["executions"]) }) },
  ]
}

// Next says what happens next, and when. What was said above, of a failure, is not repeated.
function Next({ why, said }) {
  useBeat()
  if (said && !why.next) return null
  return html`<div class="next" role="status">${!said && html`<p class=${why.sentence.length > 200 ? "" : "strong"}><${Said} text=${why.sentence} /></p>`}${why.next && html`<p><${Said} text=${why.next} /></p>`}
    ${why.ahead !== undefined && html`<p class="dim">${why.ahead === 0 ? "It is the next of its queue." : `${plural(why.ahead, "execution")} ${why.ahead === 1 ? "is" : "are"} before it.`}${why.serving !== undefined ? ` ${plural(why.serving, "worker")} ${why.serving === 1 ? "serves" : "serve"} its kind.` : ""}</p>`}</div>`
}

// Broken is what a failed execution begins with: its error, where it happened, and what to do.
function Broken({ x, steps, reload }) {
  const last = x.attempt_log?.at(-1), step = steps.filter(s => s.state === "failed" && s.attempt === x.attempts).at(-1), from = stepsToGo(steps)
  const message = x.failure.message || x.failure.category.replaceAll("_", " ")
  return html`<section class="card broken" aria-labelledby="why-failed"><h2 id="why-failed">${x.state === "expired" ? "It expired" : "It failed"}${step ? html` in step <span class="mono">${visible(step.name)}</span> of` : " in"}${x.attempts ? ` attempt ${number(x.attempts)}` : " no attempt"}</h2>
    <p class="said pre">${visible(message)}</p>
    <p class="dim"><${Time} at=${x.ended_at} />${last?.worker || x.worker ? html` on ${visible(last?.worker || x.worker)}` : ""}, ${x.failure.category.replaceAll("_", " ")}${x.max_retries ? `, after ${number(x.retries)} of ${plural(x.max_retries, "retry", "retries")}` : ""}. <a href=${to(["executions"], { state: x.state, kind: x.kind, category: x.failure.category })}>Others that failed like this</a></p>
    ${may("replay") && html`<div class="buttons start"><button type="button" class="main" onClick=${() => replay(x, steps, reload)}>Replay</button>
      ${from.length > 0 && html`<button type="button" onClick=${() => replay(x, steps, reload, "step " + from.at(-1))}>Replay from a step</button>`}</div>`}</section>`
}

const levels = ["all levels", "debug", "info", "warn", "error"]

// Logs are what the handler logged in an attempt, or during a part of it.
function Logs({ id, attempt, from, to, live }) {
  const [least, choose] = useState(0), [want, more] = useState(100)
  const page = useLoad(signal => get(`executions/${id}/logs`, { attempt, level: least ? levels[least] : "", limit: want }, signal).catch(missing), [id, attempt, least, want], { live: live && !may("followLogs") })
  const reload = useRef(null), last = useRef("")
  reload.current = page.reload
  last.current = page.data?.items.at(-1)?.cursor ?? ""
  useEffect(() => { // a line moves no sum of the store, so that lines are followed
    if (!live || !page.data || !may("followLogs")) return
    let soon = 0
    const leave = whileVisible(signal => follow(`executions/${id}/logs/events`, { query: { attempt, level: least ? levels[least] : "", after: last.current }, signal, on() { soon ||= setTimeout(() => { soon = 0; reload.current() }, 300) } }))
    return () => { clearTimeout(soon); leave() }
  }, [id, attempt, least, live, !page.data])
  if (!page.data) return html`<div class="logs">${page.error ? html`<${Failure} error=${page.error} />` : ""}</div>`
  const lines = page.data.items.filter(l => !from || Date.parse(l.at) >= from && Date.parse(l.at) <= to)
  return html`<div class="logs"><h3 id="logs">Logs</h3><${Field} label="From level" kind="choice" value=${String(least)} onInput=${v => choose(Number(v))} options=${levels.map((l, n) => [String(n), l])} />
    ${lines.length === 0 ? html`<p class="none">${least ? "Nothing of such a level." : "Nothing was logged."}</p>` : html`<ol class="lines" tabindex="0" aria-labelledby="logs">${lines.map((l, n) => html`<li key=${l.cursor ?? n} class=${"l-" + String(l.level).toLowerCase()}>
      <time datetime=${l.at} title=${l.at}>${new Date(l.at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 })}</time> <b>${visible(l.level)}</b> <span>${l.message === undefined ? html`<span class="none">not shown</span>` : visible(l.message)}</span>
      ${l.dropped > 0 && html`<span class="dim">(${plural(l.dropped, "line")} before it could not be kept)</span>`}${l.attributes && html`<span class="attrs"> ${Object.entries(l.attributes).map(([k, v]) => html`<span key=${k}><i>${visible(k)}=</i>${visible(typeof v === "string" ? v : JSON.stringify(v))}</span> `)}</span>`}</li>`)}</ol>`}
    ${page.data.next_cursor && want < 1000 && html`<button type="button" class="small" onClick=${() => more(1000)}>Show more</button>`}</div>`
}

// Chosen is what is known of the bar that was chosen in the timeline.
function Chosen({ x, bar: b }) {
  useBeat()
  const step = b.type === "step" && b.step.state !== "failed" && b.step, open = b.kind === "active" || b.open
  const value = useLoad(signal => step && step.bytes <= 65536 ? get(`executions/${x.id}/steps/${segment(step.name)}`, {}, signal).catch(missing) : null, [x.id, b.key], { live: false, about: b.key })
  const how = { good: "succeeded", bad: "failed", lost: "its worker lost it", pause: "ran until a wait", active: "running", next: "continued with another input", step: b.step?.state ?? "received" }[b.kind] ?? b.title
  return html`<${Section} id="chosen" title=${visible(b.type === "wait" || b.type === "person" ? b.type === "wait" ? "Waiting" : "People" : b.title)} note=${b.type === "step" || b.type === "message" ? `attempt ${b.attempt}` : ""}>
    ${b.error && html`<p class="said bad-text pre">${visible(b.error)}</p>`}
    <${Facts} rows=${[["What", b.type === "person" ? visible(b.text) : visible(how)], ["Took", b.to > b.from || b.type === "attempt" ? `${span((open ? serverNow() : b.to) - b.from)}${open ? " so far" : ""}` : ""], ["Began", instant(b.from)], ["Worker", b.worker && html`<a href=${to(["executions"], { held_by: b.worker, state: "active" })}>${visible(b.worker)}</a>`],
      ["Category", b.category?.replaceAll("_", " ")], ["Size", step && step.bytes ? bytes(step.bytes) : ""]]} />
    ${step && (step.bytes > 65536 ? html`<p class="dim">Its value has ${bytes(step.bytes)}. It is in the list of steps.</p>` : value.data && html`<h3>Value</h3><${Payload} of=${value.data} name=${`value of ${step.name}`} />`)}
    ${b.attempt && offers(/^(list|get|read)?(execution)?logs?$/i) && html`<${Logs} key=${b.attempt + (b.type === "step" ? b.key : "")} id=${x.id} attempt=${b.attempt} from=${b.type === "step" ? b.from : 0} to=${b.to} live=${!isEnded(x.state)} />`}<//>`
}

// traceOf is the address of the trace that an execution belongs to, if the deployment has told where traces are.
function traceOf(x) {
  const where = document.querySelector("meta[name=flowfabric-trace]")?.content, id = /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(x.tags?.["otel.traceparent"] ?? "")?.[1]
  return where && id && where.replaceAll("{trace}", id)
}

const missing = error => { if (error.status === 404 || error.status === 405) return null; throw error }

export default function Execution({ id }) {
  const load = async signal => {
    checkID(id)
    const x = await get(`executions/${id}`, {}, signal)
    const path = `executions/${id}`
    const [history, why, steps, messages, waits] = await Promise.all([
      get(path + "/history", {}, signal), get(path + "/why", {}, signal), get(path + "/steps", {}, signal).catch(missing), get(path + "/messages", {}, signal).catch(missing),
      x.state === "suspended" ? get(path + "/wait", {}, signal).catch(missing) : null])
    const family = !x.flow && may("getFlow") && (history.items.some(e => e.kind === "suspended" && e.detail === "waiting_for_children") || steps?.items.some(s => s.kind === "children")) && !!await get("flows/" + id, {}, signal).catch(missing)
    return { x, full: nearly(x, steps?.items ?? [], history.items), history: history.items.filter(e => e.kind !== "attempt_ended" || e.detail !== "continued"), why, steps: inOrder(steps?.items ?? []), messages, ask: waits, family }
  }
  const page = useLoad(load, [id], { least: 8000 }) // its events come at once
  const input = useLoad(async signal => checkID(id) && get(`executions/${id}/input`, {}, signal), [id], { live: false })
  const state = page.data?.x.state
  const result = useLoad(signal => state && isEnded(state) ? get(`executions/${id}/result`, {}, signal) : null, [id, state, page.data?.x.replays], { live: false })
  const flow = useLoad(signal => page.data?.x.flow && may("getFlow") ? get("flows/" + page.data.x.flow, {}, signal).catch(missing) : null, [page.data?.x.flow], { live: false })
  const [chosen, choose] = useState(null)
  useBeat()
  const soon = useRef(0)
  const [filled, setFilled] = useState("") // the execution whose output is shown: what is below it would move
  const moved = () => { soon.current ||= setTimeout(() => { soon.current = 0; page.reload() }, 150) }
  useEffect(() => () => clearTimeout(soon.current), [id])
  if (page.error && (page.error.status === 404 || page.error.status === 410 || page.error.status === 400)) {
    return html`<div><h1>Execution</h1><${Empty} title=${page.error.status === 410 ? "It was purged" : "There is no such execution"}><p class="mono">${visible(id)}</p><p>${visible(page.error.message)}</p><p><a href="#/executions">All executions</a></p><//></div>`
  }
  return html`<${Loaded} of=${page}>${({ x, full, history, why, steps, messages, ask, family }) => {
    const all = actions(x, steps, page.reload).filter(Boolean), broken = (x.state === "failed" || x.state === "expired") && x.failure
    const drawn = picture(x, history, steps, serverNow()), bar = drawn.bars.find(b => b.key === chosen) ?? drawn.bars.find(b => b.key === firstBar(x, drawn))
    const parent = flow.data?.nodes?.find(n => n.id === x.flow && n.id !== x.id), plan = x.tags?.["schedule.name"], trace = traceOf(x)
    return html`<div><div class="title"><div><p class="crumb"><a href="#/executions">Executions</a> / <a href=${to(["executions"], { kind: x.kind })}>${x.kind}</a></p>
        <h1><span class="mono">${x.id}</span> <${Copy} text=${x.id} label="Copy the id" /></h1></div>
        <div class="actions"><${State} state=${isHeld(x) ? "held" : x.state} />${all.length > 0 && html`<${Menu} label="Actions" kind="main" items=${all} />`}</div></div>
      ${broken && html`<${Broken} x=${x} steps=${steps} reload=${page.reload} />`}
      ${ask && questionsOf(ask).map((q, n) => html`<${Section} key=${q.waitpoints.map(w => w.id).join()} id=${n ? `ask-${n + 1}` : "ask"} title=${visible(titleOf(q))} note=${!mailboxOf(q.name) && (q.waitpoints[0]?.question ? q.waitpoints[0].key : q.name)}><${Answer} key=${q.execution + q.waitpoints.map(w => w.id).join()} item=${q} onDone=${page.reload} /><//>`)}
      <div class="two wide-left story"><div>
        <${Section} id="timeline" title="Timeline" note=${x.started_at ? html`${isEnded(x.state) ? "took" : "for"} <${Since} at=${x.created_at} until=${x.ended_at} />` : html`created <${Time} at=${x.created_at} />`}>
          <${Timeline} of=${drawn} chosen=${bar?.key} choose=${choose} /><${Next} why=${why} said=${broken} /><//>
        <${Section} id="output" title="Output"><${Output} id=${id} steps=${steps} onMoved=${moved} onFilled=${() => setFilled(id)} /><//>
        ${filled === id && html`${messages?.waiting > 0 && html`<${Section} id="messages" title="Messages" note=${`${number(messages.waiting)} not received yet`}><${Messages} of=${messages} /><//>`}
        ${!(broken && x.state === "failed") && html`<${Section} id="result" title=${isEnded(x.state) && x.state !== "completed" ? "How it ended" : "Result"}>
          ${!isEnded(x.state) ? html`<p class="none">It has not ended.</p>` : html`<${Loaded} of=${result}>${r => r && (r.output ? html`<${Payload} of=${r.output} name="result" />` : html`<${Facts} rows=${[["State", html`<${State} state=${r.state} />`], ["Category", r.failure?.category], ["Message", r.failure?.message && html`<span class="bad-text">${visible(r.failure.message)}</span>`], ["By", r.by && visible(r.by)], ["Reason", r.reason && visible(r.reason)]]} />`)}<//>`}
          ${x.failure && !isEnded(x.state) && html`<p class="bad-text">The last attempt failed (${x.failure.category}): ${visible(x.failure.message || "")}</p>`}<//>`}
        <${Section} id="input" title="Input" note=${bytes(x.input_bytes)}><${Loaded} of=${input}>${p => html`<${Payload} of=${p} name="input" />`}<//><//>`}
      </div><div>
        ${bar && html`<${Chosen} key=${bar.key} x=${x} bar=${bar} />`}
        <${Section} id="facts" title="Facts"><${Facts} rows=${[["Kind", x.kind], ["Namespace", x.namespace], ["Lane", x.lane], ["Priority", x.priority], ["Attempts", `${number(x.attempts)}${x.retries ? `, ${plural(x.retries, "retry", "retries")} of ${x.max_retries}` : ""}`],
          ["Lost leases", x.reclaims || ""], ["Replays", x.replays || ""], ["Continued", x.continues ? `${plural(x.continues, "time")}, with another input` : ""], ["Worker", x.worker && html`<a href=${to(["executions"], { held_by: x.worker, state: "active" })}>${x.worker}</a>`], ["Version", x.version && html`<a href=${to(["executions"], { version: x.version })}>${visible(x.version)}</a>`], ["Lease until", x.lease_expires_at && x.state === "active" && html`<${Time} at=${x.lease_expires_at} />`],
          ["Created", html`<${Time} at=${x.created_at} />`], ["By", x.creator !== x.flow && x.creator], ["Started", x.started_at && html`<${Time} at=${x.started_at} />`], ["Ended", x.ended_at && html`<${Time} at=${x.ended_at} />`], ["Delayed until", x.state === "delayed" && html`<${Time} at=${x.delay_until} />`], ["Deadline", x.deadline_at && html`<${Time} at=${x.deadline_at} />`],
          ["Nearly full", full.length > 0 && full.map(text => html`<${Chip} key=${text} kind="warn">${text}<//> `)], ["Progress", x.progress && html`${x.progress.percent !== undefined ? html`<progress max="100" value=${x.progress.percent} aria-label="Progress"></progress> ${x.progress.percent} % ` : ""}${visible(x.progress.message || "")}`],
          ["Parent", parent && html`<a href=${to(["executions", parent.id])}>${visible(parent.kind)} ${shortID(parent.id)}</a>`], ["Flow", x.flow && html`<a href=${to(["flows", x.flow])}>${flow.data?.kind ? visible(flow.data.kind) + " " : ""}${shortID(x.flow)}</a>${x.node ? `, node ${visible(x.node)}` : ""}`],
          ["Schedule", plan && html`<a href=${to(["schedules"])}>${visible(plan)}</a>${x.tags["schedule.due"] ? html`, due <${Time} at=${x.tags["schedule.due"]} />` : ""}`], ["Trace", trace && html`<a href=${trace} target="_blank" rel="noreferrer noopener">See its trace</a>`], ["Fork of", x.fork_of && html`<a href=${to(["executions", x.fork_of.id])}>${shortID(x.fork_of.id)}</a>${x.fork_of.step ? `, from ${visible(x.fork_of.step)}` : ""}`], ["Children", family && html`<a href=${to(["flows", x.id])}>the flow of its children</a>`], ["Needs", x.capabilities?.join(", ")], ["Debounced", x.key_held === "until_claimed" && (x.replaced ? `the last of ${number(x.replaced + 1)} submits` : "another submit under its key replaces the input")], ["Key", x.key_held && `held ${x.key_held.replaceAll("_", " ")}`], ["Tags", x.tags && html`<${Tags} tags=${x.tags} />`]]} /><//>
        ${steps.length > 0 && html`<${Section} id="steps" title="Steps" note=${plural(steps.length, "step")}><${Steps} id=${id} steps=${steps} /><//>`}
        <${Section} id="history" title="History" note=${plural(history.length, "event")}><ol class="history">${history.map((e, i) => html`<li key=${i}><${Time} at=${e.at} /><p>${sayEvent(e)}</p></li>`)}</ol><//>
      </div></div></div>`
  }}<//>`
}

// sayFork says of a fork's history whose fork it is, and of the other one's which fork was made.
function sayFork(detail) {
  const [way, id = "", ...step] = (detail || "").split(" ")
  return html`${way === "<" ? "Forked from" : "Fork made:"} <a class="mono" href=${to(["executions", id])}>${shortID(id)}</a>${step.length ? `, up to before ${visible(step.join(" "))}` : ""}`
}

// sayEvent is an event of the history in words.
export function sayEvent(e) {
  const who = e.by ? html` by <b>${visible(e.by)}</b>${e.from ? html` <span class="dim">(${visible(e.from)})</span>` : ""}` : ""
  const why = e.reason && e.kind !== "resumed" ? html`: ${visible(e.reason)}` : ""
  const what = {
    created: "Created", claimed: html`Attempt ${e.attempt} taken by ${e.worker || "a worker"}`, attempt_ended: html`Attempt ${e.attempt}: ${visible(sayEnd(e.detail))}`,
    ended: html`Ended${e.detail ? `: ${visible(e.detail.replaceAll("_", " "))}` : ""}`, continued: html`Attempt ${e.attempt} continued with another input`, delayed: "Put aside by its handler", released: "Given back by its worker", revoked: "Taken from its worker",
    cancelled: "Cancelled", expired: "Expired", priority: html`Priority changed ${visible(e.detail || "")}`, replayed: "Replayed", stopped: "The answer was stopped", rewound: html`Goes on from ${visible(e.detail || "an earlier step")}`, forked: sayFork(e.detail), suspended: html`Suspended (${visible((e.detail || "").replaceAll("_", " "))})`,
    resumed: html`Resumed (${visible((e.detail || "").replaceAll("_", " "))}${e.reason && e.reason !== "signal" ? html` <b>${visible(e.reason)}</b>` : ""})`, escalated: "Escalated to an operator", suspension_timeout: html`The wait timed out: ${visible((e.detail || "").replaceAll("_", " "))}`, skipped: "Skipped", held: "Held", unheld: "Let go on",
    delay_changed: "Delay changed", tagged: html`Tags changed ${visible(e.detail || "")}`, token_reissued: html`Token made anew for ${visible(e.detail || "")}`,
  }[e.kind] ?? visible(e.kind.replaceAll("_", " "))
  return html`${what}${who}${why}${e.until ? e.kind === "replayed" ? html`; it had ended <${Time} at=${e.until} />` : html`, until <${Time} at=${e.until} />` : ""}`
}
