import { html } from "../vendor/preact-htm.js"
import { get, post, remove, send } from "../api.js"
import { may, namespace, useLoad, useStore } from "../live.js"
import { act, asJSON, Chip, Empty, instant, Loaded, Menu, More, number, segment, Table, Time, to, visible } from "../ui.js"

const short = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" })
const day = at => short.format(new Date(at)).replace(",", "")
const span = ms => ms < 60_000 ? `${ms / 1000} s` : ms < 3_600_000 ? `${Math.round(ms / 6000) / 10} min` : `${Math.round(ms / 360_000) / 10} h`
const over = { runs: "it has run as often as it may", until: "its last run has passed", spec: "its times have no further run" }
// limits are what ends a schedule, and how far its starts are spread.
const limits = s => [s.runs_left !== undefined && `${number(s.runs_left)} of ${number(s.max_runs)} runs left`, s.until && `until ${day(s.until)}`, s.jitter_ms && `starts up to ${span(s.jitter_ms)} later`].filter(Boolean)

export default function Schedules() {
  const ns = useStore(namespace)
  const page = useLoad(signal => get("schedules", {}, signal), [])
  const change = (s, verb, text, run, done, danger) => act({ title: `${verb} ${s.name}`, text, action: verb, danger, run, done, then: page.reload })
  const path = s => `schedules/${segment(s.name)}`
  const put = () => act({ title: "New schedule", action: "Save", fields: [
    { name: "name", label: "Name", required: true, maxlength: 64 }, { name: "kind", label: "Kind", required: true, maxlength: 64 },
    { name: "cron", label: "Cron", hint: "minute hour day month weekday; leave it empty for a period" }, { name: "zone", label: "Time zone", hint: "of Cron, such as Europe/Berlin; default UTC" },
    { name: "every", label: "Every so many seconds", kind: "number", min: 1, value: "" }, { name: "until", label: "Until", hint: "such as 2026-12-31T17:00:00Z; leave it empty for no end" }, { name: "runs", label: "Runs", kind: "number", min: 1, value: "", hint: "it ends after so many" },
    { name: "jitter", label: "Start up to so many seconds later", kind: "number", min: 0, value: "" }, { name: "input", label: "Input", kind: "area", rows: 3, value: "{}", hint: "JSON" }],
    run: v => {
      if (page.data?.items.some(s => s.name === v.name.trim())) throw new Error("A schedule has this name already. Remove it first.")
      if (v.zone.trim() && !v.cron.trim()) throw new Error("A time zone goes with Cron. Leave it empty for a period.")
      return send("PUT", `schedules/${segment(v.name.trim())}`, { reason: v.reason, kind: v.kind.trim(), cron: v.cron.trim() || undefined, zone: v.zone.trim() || undefined, every_ms: Number(v.every) * 1000 || undefined, until: v.until.trim() || undefined, max_runs: Number(v.runs) || undefined, jitter_ms: Number(v.jitter) * 1000 || undefined, input: asJSON(v.input, "The input"), namespace: ns && ns !== "*" ? ns : undefined })
    }, done: "The schedule is saved.", then: page.reload })
  return html`<div><div class="title"><h1>Schedules</h1><div class="actions">${may("putSchedule") && html`<button type="button" class="main" onClick=${put}>New schedule</button>`}</div></div>
    <${Loaded} of=${page}>${data => data.items.length === 0 ? html`<${Empty} title="Nothing is scheduled"><p>A schedule submits an execution by cron or period, once for each instant however many processes run. Make one here, or with <code>client.Schedule</code>.</p><//>`
      : html`<${Table} label="Schedules" rows=${data.items} id=${s => s.name} columns=${[
        { name: "Schedule", cell: s => html`<b>${s.name}</b>` },
        { name: "State", cell: s => s.error ? html`<${Chip} kind="bad" title=${visible(s.error)}>broken<//>` : s.paused ? html`<${Chip} kind="warn" title=${s.paused_by && `by ${visible(s.paused_by)}`}>paused<//>` : s.ended ? html`<${Chip} title=${over[s.ended]}>over<//>` : html`<${Chip} kind="good">on<//>` },
        { name: "When", cell: s => html`<span class="mono">${(s.spec ?? "").replace(" from 1970-01-01T00:00:00Z", "")}</span>${limits(s).map(text => html`<br /><small>${text}</small>`)}` },
        { name: "Next", class: "num", cell: s => s.paused || !s.next_at ? html`<span class="none">–</span>` : html`<span title=${s.next_runs?.map(instant).join("\n")}><${Time} at=${s.next_at} /></span>` },
        { name: "Then", class: "wide wider", cell: s => s.paused ? "" : s.next_runs?.slice(1, 3).map(day).join(", ") },
        { name: "Kind", cell: s => s.nodes ? html`<a href=${to(["flows"], { kind: s.kind })}>${s.kind}</a><br /><small>flow of ${number(s.nodes)}</small>` : html`<a href=${to(["executions"], { kind: s.kind })}>${s.kind ?? ""}</a>` },
        { name: "Owner", class: "wide wider", cell: s => s.owner ? visible(s.owner) : "" },
        { name: "Last", class: "num", cell: s => s.last_execution ? html`<a href=${to(["executions", s.last_execution])}><${Time} at=${s.last_due_at} /></a>` : s.last_flow ? html`<a href=${to(["flows", s.last_flow])}><${Time} at=${s.last_due_at} /></a>` : html`<span class="none">never</span>` },
        { name: "Runs", class: "num wide", cell: s => html`${number(s.fired)}${s.missed ? html` <${Chip} kind="warn">${number(s.missed)} missed<//>` : ""}` },
        ...(may("pauseSchedule") ? [{ name: "Actions", class: "end", cell: s => html`<${Menu} label="Change" items=${[
          s.paused ? { label: "Let it go on…", run: () => change(s, "Let it go on:", `The next run is at ${s.next_at ? instant(s.next_at) : "its next instant"}. What was missed is treated as its definition says.`, v => post(path(s) + ":resume", { reason: v.reason }), "It goes on.") }
            : { label: "Pause…", run: () => change(s, "Pause", "It submits nothing until somebody lets it go on.", v => post(path(s) + ":pause", { reason: v.reason }), "Paused.") },
          may("removeSchedule") && { label: "Remove…", danger: true, run: () => change(s, "Remove", "It submits nothing any more. Executions that it has submitted stay. A program that declares it makes it again.", v => remove(path(s), { reason: v.reason }), "Removed.", true) }]} />` }] : [])]} />`}<//><${More} of=${page.data} what="schedules" /></div>`
}
