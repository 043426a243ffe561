import { html } from "../vendor/preact-htm.js"
import { get, post, remove, send } from "../api.js"
import { may, useLoad } from "../live.js"
import { act, asJSON, Bar, Bound, Chip, Empty, Loaded, Menu, More, number, open, plural, Section, segment, shortID, span, Table, Time, to, visible } from "../ui.js"

const scope = s => s.tag_key ? `tag ${s.tag_key}=${s.tag}` : s.lane ? `lane ${s.lane} of ${s.namespace || "default"}` : s.namespace ? `namespace ${s.namespace}` : "everything"

// Hours are bars of what was used of a dimension in the last 24 hours and this one.
const Hours = ({ name, list }) => {
  const most = Math.max(1, ...list)
  return html`<div class="meter"><span>${visible(name)}</span><span class="num">${number(most)} in the busiest of 25 hours</span>
    <svg viewBox="0 0 100 24" width="100%" height="24" preserveAspectRatio="none" role="img" aria-label=${`${name} by the hour, this one last: ${list.join(", ")}`}>${list.map((n, i) => n > 0 && html`<rect key=${i} x=${i * 4} width="3" y=${24 - Math.max(1, 24 * n / most)} height=${Math.max(1, 24 * n / most)} fill="currentColor"><title>${number(n)}</title></rect>`)}</svg></div>`
}

function Log({ title, load, close }) {
  const got = useLoad(load, [], { live: false })
  return html`<div><h2 id="dialog-title">${title}</h2><${Loaded} of=${got}>${d => html`<div>
    ${Object.entries(d.hours ?? {}).map(([k, list]) => html`<${Hours} key=${k} name=${k} list=${list} />`)}
    ${d.spenders?.length > 0 && html`<h3>Who used of it last</h3><ul class="plain">${d.spenders.map(s => html`<li key=${s.execution}><a href=${to(["executions", s.execution])} onClick=${() => close()} class="mono">${shortID(s.execution)}</a> ${sums(s.used)} <span class="dim"><${Time} at=${s.at} /></span></li>`)}</ul>`}
    ${d.holds?.length > 0 && html`<h3>${d.service ? "Whose calls are under way" : "Who has its slots"}</h3><ul class="plain">${d.holds.slice(0, 100).map((h, i) => html`<li key=${i}><a class="mono" href=${to(["executions", h.execution])} onClick=${() => close()}>${shortID(h.execution)}</a></li>`)}</ul>`}
    ${d.state && d.line?.length > 0 && html`<${Line} of=${d.line} close=${close} />`}
    <h3>What happened to it</h3>${d.events?.length ? html`<ul class="plain">${d.events.map((e, i) => html`<li key=${i}>${visible(e.what)}${e.by && html` by <b>${visible(e.by)}</b>`} ${visible(e.detail || "")} <span class="dim"><${Time} at=${e.at} /></span></li>`)}</ul>` : html`<p class="none">Nothing yet.</p>`}</div>`}<//>
    <div class="buttons"><button type="button" class="main" onClick=${() => close()}>Close</button></div></div>`
}

export default function Gates() {
  if (!may("listGates")) return html`<div><h1>Gates</h1><${Bound} what="gates" /></div>`
  return html`<${All} />`
}

// counts tells whether a gate has a meter of amounts.
const counts = g => !g.service && (!!Object.keys(g.limits ?? {}).length || !g.rate && !g.concurrency)
const path = g => `gates/${segment(g.name)}`
const definition = ({ scope, parent, limits, reset_ms, on_hard, warn, warn_soft, strict, refund, rate, window_ms, jitter_ms, concurrency, service }) => ({ scope, parent, limits, reset_ms, on_hard, warn, warn_soft, strict, refund, rate, window_ms, jitter_ms, concurrency, service })
const example = { limits: { tokens: { hard: 1000000, soft: 800000 } }, on_hard: "reject", reset_ms: 86400000, rate: 100, window_ms: 60000, concurrency: 10 }

// hard are the dimensions that have a hard limit.
const hard = g => Object.keys(g.limits ?? {}).filter(d => g.limits[d].hard)

// amounts are the dimensions that have limits, and then those that are only counted.
const amounts = g => Object.entries({ ...g.limits, ...Object.fromEntries(Object.keys(g.used ?? {}).filter(d => !g.limits?.[d]).map(d => [d, {}])) })

const Amount = ({ name, limit, used, reserved, refused, raised = 0 }) => html`<div class="meter"><span>${name}</span><span class="num">${number(used)}${limit.hard ? ` of ${number(limit.hard + raised)}` : ""}${limit.hard && raised ? html` <span class="dim" title="in this period only">${number(raised)} raised</span>` : ""}${reserved ? html` <span class="dim" title="set aside for calls that have not said yet what they use">${number(reserved)} reserved</span>` : ""}${limit.soft ? html` <span class="dim">warns at ${number(limit.soft)}</span>` : ""}${refused ? html` <span class="dim">${number(refused)} refused</span>` : ""}</span>
  ${limit.hard ? html`<${Bar} value=${used} of=${limit.hard + raised} part=${reserved} label=${`${name}: ${number(used)} of ${number(limit.hard + raised)}${reserved ? `, ${number(reserved)} of it reserved` : ""}`} />` : ""}</div>`

const Meter = ({ name, value, of, what }) => html`<div class="meter"><span>${name}</span><span class="num">${number(value)} of ${number(of)}</span><${Bar} value=${value} of=${of} label=${`${number(value)} of ${number(of)} ${what}`} /></div>`

// Service shows what of the rates of a service may pass, calls under way, and what it refused.
function Service({ of: { service, state } }) {
  const share = state.share < 1000 ? ` (${number(Math.round(state.share / 10))} % now)` : ""
  return html`${Object.entries(service.per_minute ?? {}).map(([d, n]) => { const burst = service.burst?.[d] || Math.max(1, Math.floor(n / 40)), room = state.room?.[d] ?? burst
      return html`<div class="meter" key=${d}><span>${d}</span><span class="num">${number(n)} a minute${share} <span class="dim">${room < 0 ? `${number(-room)} ahead of it` : `${number(room)} may pass now`}</span></span><${Bar} value=${burst - Math.max(0, room)} of=${burst} label=${`${d}: ${number(Math.max(0, room))} of ${number(burst)} may pass now`} /></div>` })}
    ${state.at_once ? html`<${Meter} name="calls" value=${state.under_way} of=${state.at_once} what="calls under way" />` : html`<div class="meter"><span>calls</span><span class="num">${number(state.under_way)} under way</span></div>`}
    ${state.refused > 0 && html`<p class="dim">${plural(state.refused, "call")} refused, the last <${Time} at=${state.last_refused_at} />${state.closed_until && html`, closed until <${Time} at=${state.closed_until} />`}</p>`}`
}

// Line lists who waits for a service.
const Line = ({ of, close }) => html`<h3>Who waits</h3><${Table} label="Executions in line" rows=${of.map((w, i) => ({ ...w, place: i + 1 }))} id=${w => w.execution} columns=${[{ name: "Place", class: "num", cell: w => w.place },
  { name: "Execution", cell: w => html`<a class="mono" href=${to(["executions", w.execution])} onClick=${() => close()}>${shortID(w.execution)}</a>` }, { name: "Namespace", cell: w => w.namespace },
  { name: "Wants", cell: w => sums(w.waits_for) }, { name: "Turn in", class: "num", cell: w => span(w.turn_ms ?? 0) }, { name: "Where", cell: w => w.away ? "away" : "in its slot" }]} />`

// waits tells for which meter.
const waits = g => [[g.waiting_for_amounts, "amounts"], [g.waiting_for_slots, "slots"], [g.waiting_for_rate, "room in the window"]].filter(([n]) => n).map(([n, what]) => `${number(n)} for ${what}`).join(", ")

const holding = g => visible(g.gate || `${g.limit_key} (${g.key_limit})`)
const sums = of => Object.entries(of ?? {}).map(([k, n]) => `${number(n)} ${k}`).join(", ")

// People lists executions that have to do with a gate.
const People = ({ title, list, close, tell }) => list?.length > 0 && html`<h3>${title}</h3><ul class="plain">${list.map((x, i) => html`<li key=${i}><a class="mono" href=${to(["executions", x.execution])} onClick=${() => close()}>${shortID(x.execution)}</a> ${tell?.(x)} ${x.at && html`<span class="dim"><${Time} at=${x.at} /></span>`}</li>`)}</ul>`

function Who({ of: g, close }) {
  return html`<div><h2 id="dialog-title">Who waits for ${holding(g)}</h2>
    <${People} title="Who has its slots" list=${g.holders} close=${close} /><${People} title="Who is in line" list=${g.line} close=${close} tell=${x => sums(x.waits_for)} /><${People} title="Who used most" list=${g.spenders} close=${close} tell=${x => sums(x.used)} />
    <div class="buttons"><button type="button" class="main" onClick=${() => close()}>Close</button></div></div>`
}

// queues are those that are kept back, of all partitions together.
function queues(closed) {
  const sums = new Map()
  for (const c of closed) {
    const key = [c.namespace, c.lane, c.kind, c.reason.text].join("/"), sum = sums.get(key)
    sums.set(key, { ...c, key, waiting: c.waiting + (sum?.waiting ?? 0), until: sum && (sum.until ?? "") < (c.until ?? "") ? sum.until : c.until })
  }
  return [...sums.values()].sort((a, b) => b.waiting - a.waiting)
}

// Busy has one row for each gate, or limit of a key, that holds work back, and the queues that wait.
function Busy({ of: { busy, closed } }) {
  const kept = queues(closed)
  return html`${busy?.length > 0 && html`<${Table} label="Gates that hold work back" rows=${busy} id=${holding} columns=${[
    { name: "Gate", class: "head whole", cell: g => html`<b>${holding(g)}</b>` }, { name: "Waiting", class: "num", cell: g => number(g.waiting) }, { name: "In line", class: "num wide", cell: g => number(g.in_line) }, { name: "Held", class: "num", cell: g => number(g.held) },
    { name: "Why", class: "grow whole", cell: g => visible(g.why || "") }, { name: "Next try", class: "num", cell: g => html`<${Time} at=${g.next_at} />` }, { name: "Period ends", class: "num wide wider", cell: g => html`<${Time} at=${g.period_ends_at} />` },
    ...(busy.some(g => g.holders || g.line || g.spenders) ? [{ name: "Actions", class: "end", cell: g => (g.holders || g.line || g.spenders) && html`<button type="button" onClick=${() => open(Who, { of: g })} aria-label=${`Who waits for ${holding(g)}`}>Who…</button>` }] : [])]} />`}
    ${kept.length > 0 && html`<details open=${kept.length < 6}><summary>${plural(kept.length, "queue")} ${kept.length === 1 ? "waits" : "wait"}</summary><${Table} label="Queues that are kept back" rows=${kept} id=${c => c.key} columns=${[
      { name: "Kind", class: "whole", cell: c => html`<a href=${to(["executions"], { kind: c.kind, lane: c.lane, state: ["waiting", "waiting_gate"] })}>${c.kind}</a>` }, { name: "Lane", class: "whole", cell: c => c.lane }, { name: "Why", class: "grow whole", cell: c => visible(c.reason.text) },
      { name: "Waiting", class: "num", cell: c => number(c.waiting) }, { name: "Until", class: "num", cell: c => html`<${Time} at=${c.until} />` }]} /></details>`}`
}

function All() {
  const page = useLoad(async signal => {
    const [all, gated] = await Promise.all([get("gates", {}, signal), may("listGated") ? get("gated", { busy: true }, signal).catch(e => { if (e.status === 403) return null; throw e }) : null])
    return { all, gated: gated ?? { attached: [], closed: [], busy: [] } }
  }, [])
  const edit = (g, body) => act({ title: g ? `Change ${g.name}` : "New gate", action: "Save", fields: [...(g ? [] : [{ name: "name", label: "Name", required: true, maxlength: 64 }]),
    { name: "text", label: "Definition", kind: "area", rows: 14, value: JSON.stringify(body, null, 2), hint: "JSON: limits of amounts with hard and soft, on_hard (reject, fail, block, ask), reset_ms; rate within window_ms; concurrency at once; service, with per_minute, calls, patience_ms and weights, for one that is asked for each call; parent, the gate above it, where its usage counts, too. What is left out is not limited." }],
    run: v => send("PUT", path(g ?? { name: v.name.trim() }), { reason: v.reason, ...asJSON(v.text, "The definition"), ...(g && { revision: g.revision }) }), done: "Saved.", then: page.reload })
  const serve = () => act({ title: "New service", text: "It is asked for each call that handlers make to it, in all workers (Task.Acquire). What is empty is not limited.", action: "Save", fields: [{ name: "name", label: "Name", required: true, maxlength: 64, hint: "such as openai/gpt-5" },
    { name: "requests", label: "Requests a minute", kind: "number" }, { name: "tokens", label: "Tokens a minute", kind: "number" }, { name: "calls", label: "Calls at once", kind: "number" }],
    run: v => send("PUT", path({ name: v.name.trim() }), { reason: v.reason, service: { per_minute: Object.fromEntries(["requests", "tokens"].filter(d => Number(v[d])).map(d => [d, Number(v[d])])), calls: Number(v.calls) || undefined } }), done: "Saved.", then: page.reload })
  const drop = g => act({ title: `Remove ${g.name}`, text: "Work that names it is refused until it is made again. Work that waits for it goes on waiting.", action: "Remove", danger: true, run: v => remove(path(g), { reason: v.reason }), done: "Removed.", then: page.reload })
  const correct = g => act({ title: `Correct ${g.name}`, text: "The amount is added to what was used; a negative one is taken away.", action: "Correct", fields: [{ name: "dimension", label: "Dimension", kind: "choice", value: Object.keys(g.used ?? g.limits ?? {})[0] ?? "", options: Object.keys({ ...g.limits, ...g.used }).map(d => [d, d]) },
    { name: "amount", label: "Amount", kind: "number", required: true, value: "0" }], run: v => post(path(g) + ":adjust", { amounts: { [v.dimension]: Number(v.amount) }, reason: v.reason }), done: "Corrected.", then: page.reload })
  const raise = g => act({ title: `Raise ${g.name}`, text: "The hard limit is higher until the period ends. To change it for good, edit the gate.", action: "Raise", fields: [{ name: "dimension", label: "Dimension", kind: "choice", value: hard(g)[0], options: hard(g).map(d => [d, d]) },
    { name: "amount", label: "By", kind: "number", required: true, value: "0" }, { name: "execution", label: "For one execution alone", maxlength: 64, hint: "Its id. Empty: for all." }],
    run: v => post(path(g) + ":raise", { amounts: { [v.dimension]: Number(v.amount) }, ...(v.execution?.trim() && { execution: v.execution.trim() }), reason: v.reason }), done: "Raised.", then: page.reload })
  const reset = g => act({ title: `Reset ${g.name}`, text: `A new period begins now: what was used counts no more${g.waiting_for_amounts ? `, and ${plural(g.waiting_for_amounts, "queue")} that wait for it may go on` : ""}.`, action: "Reset", run: v => post(path(g) + ":reset", { reason: v.reason }), done: "A new period has begun.", then: page.reload })
  return html`<div><div class="title"><h1>Gates</h1><div class="actions">${may("putGate") && html`<button type="button" class="main" onClick=${() => edit(null, example)}>New gate</button><button type="button" onClick=${serve}>New service</button>`}</div></div>
    <${Loaded} of=${page}>${({ all, gated }) => html`<div>
    ${(gated.closed.length > 0 || gated.busy?.length > 0) && html`<${Section} id="closed" title="Kept back" note="what holds work back now, over all partitions"><${Busy} of=${gated} /><//>`}
    ${all.items.length === 0 ? html`<${Empty} title="No gates"><p>A gate bounds what work uses in a period, like tokens or money, how often it starts, and how much of it runs at once. Make one here, then name it in <code>flowfabric.Gates</code>. For limits per customer or key use <code>flowfabric.LimitKey</code>, which needs no gate. For calls to a model or another service make a service.</p><//>`
    : html`<${Section} id="gates" title="All gates" note="what work may use, how often it starts, how much runs at once"><ul class="plain gates">${all.items.map(g => html`<li key=${g.name}><div class="row"><b>${g.name}</b> ${g.exhausted?.length ? html`<${Chip} kind="bad">used up<//>` : ""}${g.warn ? html`<${Chip}>only warns<//>` : ""}${g.service ? html`<${Chip}>service<//>` : ""}${g.state?.closed_until ? html`<${Chip} kind="bad">closed<//>` : ""}${g.state?.waiting ? html`<${Chip} kind="warn">${plural(g.state.waiting, "execution")} in line<//>` : ""}${g.waiting ? html`<${Chip} kind="warn" title=${waits(g)}>${plural(g.waiting, "queue")} ${g.waiting === 1 ? "waits" : "wait"}<//>` : ""}
          <span class="dim">${[g.scope && visible(g.scope), g.parent && html`below <b>${g.parent}</b>`, counts(g) && (g.next_reset_at ? html`resets <${Time} at=${g.next_reset_at} />` : "never resets")].filter(Boolean).map((part, i) => html`${i ? ", " : ""}${part}`)}</span><span class="fill"></span>
          <${Menu} label="Change" items=${[{ label: "What happened…", run: () => open(Log, { title: g.name, load: s => get(path(g), {}, s) }) }, may("putGate") && { label: "Edit…", run: () => edit(g, definition(g)) }, counts(g) && may("adjustUsage") && { label: "Correct…", run: () => correct(g) },
            hard(g).length > 0 && may("raiseLimits") && { label: "Raise…", run: () => raise(g) }, counts(g) && may("resetUsage") && { label: "Reset…", run: () => reset(g) }, may("removeGate") && { label: "Remove…", danger: true, run: () => drop(g) }]} /></div>
        ${amounts(g).map(([d, l]) => html`<${Amount} key=${d} name=${d} limit=${l} used=${g.used?.[d] ?? 0} reserved=${g.reserved?.[d]} raised=${g.raised?.[d]} refused=${g.refused?.[d]} />`)}
        ${g.service && g.state ? html`<${Service} of=${g} />` : ""}
        ${g.concurrency ? html`<${Meter} name="at once" value=${g.held} of=${g.concurrency} what="slots" />` : ""}
        ${g.rate ? html`<${Meter} name=${`in ${span(g.window_ms)}`} value=${g.started} of=${g.rate} what="starts" />` : ""}</li>`)}</ul><//>`}
    ${gated.attached.length > 0 && html`<${Section} id="attached" title="Attached" note="applied to everything created in a scope"><ul class="plain">${gated.attached.map(a => html`<li key=${JSON.stringify(a.scope)}><b>${scope(a.scope)}</b>: ${(a.gates ?? []).map(visible).join(", ")} <span class="dim">${a.by && `by ${visible(a.by)} `}<${Time} at=${a.changed_at} /></span></li>`)}</ul><//>`}</div>`}<//><${More} of=${page.data?.all} what="gates" /></div>`
}
