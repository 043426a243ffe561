import { html } from "../vendor/preact-htm.js"
import { get, post, remove, send } from "../api.js"
import { may, me, namespace, useLoad, useStore } from "../live.js"
import { act, asJSON, Chip, Empty, go, instant, Loaded, Menu, More, number, open, plural, segment, shortID, Table, Time, to, visible } from "../ui.js"

const short = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })
const yearly = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" })
const day = at => (new Date(at).getFullYear() === new Date().getFullYear() ? short : yearly).format(new Date(at)).replace(",", "")
const span = ms => ms < 60_000 ? `${ms / 1000} s` : ms < 3_600_000 ? `${Math.round(ms / 6000) / 10} min` : `${Math.round(ms / 360_000) / 10} h`
const over = { runs: "it has run as often as it may", until: "its last run has passed", spec: "its times have no further run" }
// limits are what ends a schedule, and how far its starts are spread.
const limits = s => [s.runs_left !== undefined && `${number(s.runs_left)} of ${number(s.max_runs)} runs left`, s.until && `until ${day(s.until)}`, s.jitter_ms && `starts up to ${span(s.jitter_ms)} later`, s.overlap === "skip" && "not while the last one runs", s.catch_up && s.catch_up !== "last" && `catches up: ${s.catch_up}`].filter(Boolean)

const units = { h: 3600, m: 60, s: 1, ms: 0.001 }

// timesOf reads the times of a schedule from its words: "30 2 * * * (UTC)", "every 15m0s from 1970-01-01T00:00:00Z".
function timesOf(s) {
  const every = /^every (\S+) from (\S+)$/.exec(s.spec), cron = /^(.*) \(([^)]*)\)$/.exec(s.spec)
  if (every) return { every: String([...every[1].matchAll(/([\d.]+)(ms|h|m|s)/g)].reduce((n, [, v, u]) => n + v * units[u], 0)), anchor: every[2] }
  return cron ? { cron: cron[1], zone: cron[2] } : {}
}

// spoken are the times of a schedule in its list.
const spoken = s => {
  const t = timesOf(s)
  return t.every ? `every ${span(t.every * 1000)}${t.anchor.startsWith("1970-01-01T00:00:00") ? "" : ` from ${day(t.anchor)}`}` : s.spec ?? ""
}

// fields ask for the times of a schedule.
const fields = ({ cron = "", zone = "", every = "", until = "", max_runs = "", jitter_ms = 0, overlap = "allow", catch_up = "last" }) => [
  { name: "cron", label: "Cron", value: cron, hint: "minute hour day month weekday; leave it empty for a period" }, { name: "zone", label: "Time zone", value: zone, hint: "of Cron, such as Europe/Berlin; default UTC" },
  { name: "every", label: "Every so many seconds", kind: "number", min: 1, step: "any", value: every }, { name: "until", label: "Until", value: until, hint: "such as 2026-12-31T17:00:00Z; leave it empty for no end" }, { name: "runs", label: "Runs", kind: "number", min: 1, value: max_runs || "", hint: "it ends after so many" },
  { name: "jitter", label: "Start up to so many seconds later", kind: "number", min: 0, value: jitter_ms ? jitter_ms / 1000 : "" },
  { name: "overlap", label: "While the last one has not ended", kind: "choice", value: overlap, options: [["allow", "Run it too"], ["skip", "Leave it out"]] },
  { name: "catch_up", label: "After an outage", kind: "choice", value: catch_up, options: [["last", "Run the last that was missed"], ["skip", "Run none that was missed"], ["all", "Run all that were missed"]] }]

// asked are the times as the API takes them.
function asked(v, anchor) {
  if (v.zone.trim() && !v.cron.trim()) throw new Error("A time zone goes with Cron. Leave it empty for a period.")
  return { cron: v.cron.trim() || undefined, zone: v.zone.trim() || undefined, every_ms: Math.round(Number(v.every) * 1000) || undefined, anchor: Number(v.every) ? anchor : undefined, until: v.until.trim() || undefined,
    max_runs: Number(v.runs) || undefined, jitter_ms: Math.round(Number(v.jitter) * 1000) || undefined, overlap: v.overlap, catch_up: v.catch_up }
}

const linkOf = (r, text) => r.execution ? html`<a class=${text ? "" : "mono"} href=${to(["executions", r.execution])}>${text ?? shortID(r.execution)}</a>` : html`<a class=${text ? "" : "mono"} href=${to(["flows", r.flow])}>${text ?? `flow ${shortID(r.flow)}`}</a>`

// Ran tells what became of the instants of a range.
function Ran({ name, of: b, close }) {
  return html`<div><h2 id="dialog-title">Backfill of ${visible(name)}</h2>
    <p>${plural(b.created, "run")} submitted, ${number(b.existed)} had been submitted before${b.refused ? html`, <b class="bad-text">${number(b.refused)} refused</b>` : ""}.</p>
    ${b.items.length === 0 ? html`<p class="dim">The range has no instant of the schedule.</p>` : html`<ul class="plain tall" onClick=${e => e.target.closest("a") && close()}>${b.items.map(r => html`<li key=${r.due_at}>${instant(r.due_at)} ${r.error ? html`<span class="bad-text">${visible(r.error)}</span>` : html`${linkOf(r)} ${r.existed && html`<${Chip}>existed<//>`}`}</li>`)}</ul>`}
    <div class="buttons"><button type="button" class="main" onClick=${() => close()}>Close</button></div></div>`
}

const local = at => new Date(at - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 16) // as a field shows it

export default function Schedules() {
  const ns = useStore(namespace), who = useStore(me)
  const page = useLoad(signal => get("schedules", {}, signal), [])
  const change = (s, verb, text, run, done, danger) => act({ title: `${verb} ${s.name}`, text, action: verb, danger, run, done, then: page.reload })
  const path = s => `schedules/${segment(s.name)}`
  const put = () => act({ title: "New schedule", action: "Save", fields: [
    { name: "name", label: "Name", required: true, maxlength: 64 }, { name: "kind", label: "Kind", required: true, maxlength: 64 }, ...fields({}), { name: "input", label: "Input", kind: "area", rows: 3, value: "{}", hint: "JSON" }],
    run: v => {
      if (page.data?.items.some(s => s.name === v.name.trim())) throw new Error("A schedule has this name already. Edit it instead.")
      return send("PUT", `schedules/${segment(v.name.trim())}`, { reason: v.reason, kind: v.kind.trim(), ...asked(v), input: asJSON(v.input, "The input"), namespace: ns && ns !== "*" ? ns : undefined })
    }, done: "The schedule is saved.", then: page.reload })
  const edit = s => act({ title: `Edit ${s.name}`, text: `It goes on submitting ${s.kind} in lane ${s.lane}.${s.owner ? ` Its owner ${s.owner} declares it: that puts back what is changed here.` : ""}`, action: "Save",
    fields: [...fields({ ...s, ...timesOf(s) }), { name: "input", label: "Input", kind: "area", rows: 3, value: "", hint: `JSON. Leave it empty to keep the one that is stored (${plural(s.input_bytes, "byte")}).` }],
    run: v => post(path(s) + ":edit", { reason: v.reason, ...asked(v, timesOf(s).anchor), input: asJSON(v.input, "The input") }), done: "The schedule is saved.", then: page.reload })
  const runNow = s => act({ title: `Run ${s.name} now`, text: `It submits ${s.nodes ? `the flow ${s.kind}` : s.kind} once, now. The schedule stays as it is${s.paused ? ": paused" : ""}.`, action: "Run now",
    run: v => post(path(s) + ":run", { reason: v.reason }), done: "It was submitted.", then: r => r.execution ? go(["executions", r.execution]) : go(["flows", r.flow]) })
  const backfill = async s => {
    const now = Date.now(), zone = Intl.DateTimeFormat().resolvedOptions().timeZone
    await act({ title: `Backfill ${s.name}`, text: `It submits a run for each instant in the range, at most 1,000. An instant that has run is left alone, so this may be repeated.`, action: "Backfill",
      fields: [{ name: "from", label: "From", kind: "datetime-local", required: true, value: local(now - 86400000) }, { name: "to", label: "To", kind: "datetime-local", required: true, value: local(now), hint: `Both ends are included. Your time zone is ${zone}.` }],
      run: v => post(path(s) + ":backfill", { reason: v.reason, from: new Date(v.from).toISOString(), to: new Date(v.to).toISOString() }), then: b => { page.reload(); open(Ran, { name: s.name, of: b }) } })
  }
  const items = s => [may("runSchedule") && !s.error && { label: "Run now…", run: () => runNow(s) }, may("backfillSchedule") && !s.error && { label: "Backfill…", run: () => backfill(s) }, may("editSchedule") && !s.nodes && !s.error && { label: "Edit…", run: () => edit(s) },
    may("pauseSchedule") && (s.paused ? { label: "Let it go on…", run: () => change(s, "Let it go on:", `The next run is at ${s.next_at ? instant(s.next_at) : "its next instant"}. What was missed is treated as its definition says.`, v => post(path(s) + ":resume", { reason: v.reason }), "It goes on.") }
      : !s.ended && { label: "Pause…", run: () => change(s, "Pause", "It submits nothing until somebody lets it go on.", v => post(path(s) + ":pause", { reason: v.reason }), "Paused.") }),
    may("removeSchedule") && { label: "Remove…", danger: true, run: () => change(s, "Remove", "It submits nothing any more. Executions that it has submitted stay. A program that declares it makes it again.", v => remove(path(s), { reason: v.reason }), "Removed.", true) }].filter(Boolean)
  const wanted = ns === "*" ? "" : ns || who.namespaces?.[0]
  return html`<div><div class="title"><h1>Schedules</h1><div class="actions">${may("putSchedule") && html`<button type="button" class="main" onClick=${put}>New schedule</button>`}</div></div>
    <${Loaded} of=${page}>${data => {
      const list = data.items.filter(s => !wanted || s.namespace === wanted), several = new Set(list.map(s => s.namespace)).size > 1
      return list.length === 0 ? html`<${Empty} title="Nothing is scheduled"><p>A schedule submits an execution by cron or period, once for each instant however many processes run. Make one here, or with <code>client.Schedule</code>.</p><//>`
      : html`<${Table} label="Schedules" rows=${list} id=${s => s.name} columns=${[
        { name: "Schedule", class: "head whole", cell: s => html`<b>${visible(s.name)}</b>` },
        { name: "State", class: "head whole", cell: s => s.error ? html`<${Chip} kind="bad" title=${visible(s.error)}>broken<//>` : s.paused ? html`<${Chip} kind="warn" title=${s.paused_by && `by ${visible(s.paused_by)}`}>paused${s.paused_by ? ` by ${visible(s.paused_by)}` : ""}<//>` : s.ended ? html`<${Chip} title=${over[s.ended]}>over<//>` : html`<${Chip} kind="good">on<//>` },
        { name: "When", class: "whole", cell: s => html`<span><span class="mono">${visible(spoken(s))}</span>${limits(s).length > 0 && html`<br /><small class="dim">${limits(s).join(", ")}</small>`}</span>` },
        { name: "Next", class: "whole", cell: s => s.paused || !s.next_at ? html`<span class="none">–</span>` : html`<span title=${s.next_runs?.map(instant).join("\n")}><${Time} at=${s.next_at} /> <small class="dim num">${day(s.next_at)}</small></span>` },
        { name: "Then", class: "wide wider", cell: s => s.paused || !s.next_runs?.[1] ? html`<span class="none">–</span>` : html`<small>${s.next_runs.slice(1, 3).map(day).join(", ")}</small>` },
        { name: "Last", cell: s => s.last_execution || s.last_flow ? linkOf({ execution: s.last_execution, flow: s.last_flow }, html`<${Time} at=${s.last_due_at} />`) : html`<span class="none">never</span>` },
        { name: "Runs", class: "num", cell: s => html`<span><a href=${s.nodes ? to(["flows"], { kind: s.kind }) : to(["executions"], { kind: s.kind, tag: `schedule.name=${s.name}` })} title="All runs of this schedule">${number(s.fired)}</a>${s.missed ? html` <${Chip} kind="warn" title=${Object.entries(s.missed_reasons ?? {}).map(([why, n]) => `${number(n)} ${why.replaceAll("_", " ")}`).join(", ")}>${number(s.missed)} missed<//>` : ""}</span>` },
        { name: "Kind", class: "whole", cell: s => s.nodes ? html`<span><a href=${to(["flows"], { kind: s.kind })}>${s.kind}</a> <small>flow of ${number(s.nodes)}</small></span>` : html`<a href=${to(["executions"], { kind: s.kind })}>${s.kind ?? ""}</a>` },
        ...(several ? [{ name: "Namespace", class: "wide", cell: s => s.namespace }] : []),
        ...(list.some(s => s.owner) ? [{ name: "Owner", class: "wide wider", cell: s => s.owner ? visible(s.owner) : html`<span class="none">–</span>` }] : []),
        ...(may("pauseSchedule") ? [{ name: "Actions", class: "end", cell: s => html`<${Menu} label="Change" items=${items(s)} />` }] : [])]} />`
    }}<//><${More} of=${page.data} what="schedules" /></div>`
}
