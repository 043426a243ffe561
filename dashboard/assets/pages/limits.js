import { html } from "../vendor/preact-htm.js"
import { get, post, remove, send } from "../api.js"
import { may, useLoad } from "../live.js"
import { act, asJSON, Bar, Bound, Chip, Empty, Loaded, Menu, More, number, open, plural, Section, segment, shortID, span, Table, Time, to, visible } from "../ui.js"

const scope = s => s.tag_key ? `tag ${s.tag_key}=${s.tag}` : s.lane ? `lane ${s.lane} of ${s.namespace || "default"}` : s.namespace ? `namespace ${s.namespace}` : "everything"

function Log({ title, load, close }) {
  const got = useLoad(load, [], { live: false })
  return html`<div><h2 id="dialog-title">${title}</h2><${Loaded} of=${got}>${d => html`<div>
    ${d.spenders?.length > 0 && html`<h3>Who used it last</h3><ul class="plain">${d.spenders.map(s => html`<li key=${s.execution}><a href=${to(["executions", s.execution])} onClick=${() => close()} class="mono">${shortID(s.execution)}</a> ${Object.entries(s.used).map(([k, n]) => `${number(n)} ${k}`).join(", ")} <span class="dim"><${Time} at=${s.at} /></span></li>`)}</ul>`}
    ${d.holds?.length > 0 && html`<h3>Who has its slots</h3><ul class="plain">${d.holds.slice(0, 100).map(h => html`<li key=${h.execution}><a class="mono" href=${to(["executions", h.execution])} onClick=${() => close()}>${shortID(h.execution)}</a></li>`)}</ul>`}
    <h3>What happened to it</h3>${d.events?.length ? html`<ul class="plain">${d.events.map((e, i) => html`<li key=${i}>${visible(e.what)}${e.by && html` by <b>${visible(e.by)}</b>`} ${visible(e.detail || "")} <span class="dim"><${Time} at=${e.at} /></span></li>`)}</ul>` : html`<p class="none">Nothing yet.</p>`}</div>`}<//>
    <div class="buttons"><button type="button" class="main" onClick=${() => close()}>Close</button></div></div>`
}

export default function Limits() {
  if (!may("listBudgets")) return html`<div><h1>Budgets & quotas</h1><${Bound} what="budgets and quotas belong" /></div>`
  return html`<${All} />`
}

function All() {
  const page = useLoad(async signal => {
    const [budgets, quotas, gates] = await Promise.all([get("budgets", {}, signal), get("quotas", {}, signal), get("gates", {}, signal).catch(e => { if (e.status === 403) return { attached: [], closed: [] }; throw e })])
    return { budgets: budgets.items, quotas: quotas.items, gates, all: { budgets, quotas } }
  }, [])
  const path = (what, b) => `${what}/${segment(b.name)}`
  const edit = (what, b, body) => act({ title: b ? `Change ${b.name}` : what === "budgets" ? "New budget" : "New quota", action: "Save", fields: [...(b ? [] : [{ name: "name", label: "Name", required: true, maxlength: 64 }]),
    { name: "text", label: "Definition", kind: "area", rows: 12, value: JSON.stringify(body, null, 2), hint: what === "budgets" ? "JSON: limits by dimension with hard and soft, on_hard, reset_ms, …" : "JSON: rate within window_ms, cap at once, …" }],
    run: v => send("PUT", path(what, b ?? { name: v.name.trim() }), { reason: v.reason, ...asJSON(v.text, "The definition"), ...(b && { revision: b.revision }) }), done: "Saved.", then: page.reload })
  const definition = ({ scope, warn, on_hard, warn_soft, reset_ms, strict, refund, limits }) => ({ scope, warn, on_hard, warn_soft, reset_ms, strict, refund, limits })
  const quotaDefinition = ({ scope, rate, window_ms, cap, jitter_ms }) => ({ scope, rate, window_ms, cap, jitter_ms })
  const drop = (what, b) => act({ title: `Remove ${b.name}`, text: "Work that names it is refused until it is made again. Work that waits for it goes on waiting.", action: "Remove", danger: true, run: v => remove(path(what, b), { reason: v.reason }), done: "Removed.", then: page.reload })
  const correct = b => act({ title: `Correct ${b.name}`, text: "The amount is added to what was used; a negative one is taken away.", action: "Correct", fields: [{ name: "dimension", label: "Dimension", kind: "choice", value: Object.keys(b.used ?? b.limits ?? {})[0] ?? "", options: Object.keys({ ...b.limits, ...b.used }).map(d => [d, d]) },
    { name: "amount", label: "Amount", kind: "number", required: true, value: "0" }], run: v => post(path("budgets", b) + ":adjust", { amounts: { [v.dimension]: Number(v.amount) }, reason: v.reason }), done: "Corrected.", then: page.reload })
  const reset = b => act({ title: `Reset ${b.name}`, text: `A new period begins now: what was used counts no more${b.waiting ? `, and ${plural(b.waiting, "queue")} that wait for it may go on` : ""}.`, action: "Reset", run: v => post(path("budgets", b) + ":reset", { reason: v.reason }), done: "A new period has begun.", then: page.reload })
  return html`<div><h1>Budgets & quotas</h1>
    <${Loaded} of=${page}>${({ budgets, quotas, gates }) => html`<div>
    <${Section} id="budgets" title="Budgets" note="what may be used in a period" actions=${may("putBudget") && html`<button type="button" onClick=${() => edit("budgets", null, { limits: { tokens: { hard: 1000000, soft: 800000 } }, on_hard: "reject", reset_ms: 86400000 })}>New budget</button>`}>
      ${budgets.length === 0 ? html`<${Empty} title="No budgets"><p>A budget stops work for good when its tokens or money are used up. Make one here, then name it in <code>flowfabric.Budgets</code>.</p><//>`
      : html`<ul class="plain limits">${budgets.map(b => html`<li key=${b.name}><div class="row"><b>${b.name}</b> ${b.exhausted?.length ? html`<${Chip} kind="bad">used up<//>` : ""}${b.warn ? html`<${Chip}>only warns<//>` : ""}${b.waiting ? html`<${Chip} kind="warn">${plural(b.waiting, "queue")} wait<//>` : ""}
          <span class="dim">${b.scope ? visible(b.scope) + ", " : ""}${b.next_reset_at ? html`resets <${Time} at=${b.next_reset_at} />` : "never resets"}</span><span class="fill"></span>
          <${Menu} label="Change" items=${[{ label: "What happened…", run: () => open(Log, { title: b.name, load: s => get(path("budgets", b), {}, s) }) }, may("putBudget") && { label: "Edit…", run: () => edit("budgets", b, definition(b)) }, may("adjustBudget") && { label: "Correct…", run: () => correct(b) },
            may("resetBudget") && { label: "Reset…", run: () => reset(b) }, may("removeBudget") && { label: "Remove…", danger: true, run: () => drop("budgets", b) }]} /></div>
        ${Object.entries({ ...b.limits, ...Object.fromEntries(Object.keys(b.used ?? {}).filter(d => !b.limits?.[d]).map(d => [d, {}])) }).map(([d, l]) => html`<div key=${d} class="meter"><span>${d}</span><span class="num">${number(b.used?.[d] ?? 0)}${l.hard ? ` of ${number(l.hard)}` : ""}${l.soft ? html` <span class="dim">warns at ${number(l.soft)}</span>` : ""}${b.refused?.[d] ? html` <span class="dim">${number(b.refused[d])} refused</span>` : ""}</span>
          ${l.hard ? html`<${Bar} value=${b.used?.[d] ?? 0} of=${l.hard} label=${`${d}: ${number(b.used?.[d] ?? 0)} of ${number(l.hard)}`} />` : ""}</div>`)}</li>`)}</ul>`}<//>
    <${Section} id="quotas" title="Quotas" note="how much at once, and how often" actions=${may("putQuota") && html`<button type="button" onClick=${() => edit("quotas", null, { cap: 10, rate: 100, window_ms: 60000 })}>New quota</button>`}>
      ${quotas.length === 0 ? html`<${Empty} title="No quotas"><p>A quota bounds how many executions run at once, or start in a while. For limits per customer or key use <code>flowfabric.LimitKey</code>, which needs no quota.</p><//>`
      : html`<ul class="plain limits">${quotas.map(q => html`<li key=${q.name}><div class="row"><b>${q.name}</b> ${q.waiting ? html`<${Chip} kind="warn">${plural(q.waiting, "queue")} wait<//>` : ""} <span class="dim">${q.scope ? visible(q.scope) : ""}</span><span class="fill"></span>
          <${Menu} label="Change" items=${[{ label: "What happened…", run: () => open(Log, { title: q.name, load: s => get(path("quotas", q), {}, s) }) }, may("putQuota") && { label: "Edit…", run: () => edit("quotas", q, quotaDefinition(q)) }, may("removeQuota") && { label: "Remove…", danger: true, run: () => drop("quotas", q) }]} /></div>
        ${q.cap ? html`<div class="meter"><span>at once</span><span class="num">${number(q.held)} of ${number(q.cap)}</span><${Bar} value=${q.held} of=${q.cap} label=${`${q.held} of ${q.cap} slots`} /></div>` : ""}
        ${q.rate ? html`<div class="meter"><span>in ${span(q.window_ms)}</span><span class="num">${number(q.started)} of ${number(q.rate)}</span><${Bar} value=${q.started} of=${q.rate} label=${`${q.started} of ${q.rate} starts`} /></div>` : ""}</li>`)}</ul>`}<//>
    ${gates.closed.length > 0 && html`<${Section} id="closed" title="Kept back" note="queues that wait for a budget, a quota or a limit"><${Table} label="Queues that are kept back" rows=${gates.closed} id=${c => [c.partition, c.namespace, c.lane, c.kind, c.reason.text].join("/")} columns=${[
      { name: "Kind", cell: c => html`<a href=${to(["executions"], { kind: c.kind, lane: c.lane })}>${c.kind}</a>` }, { name: "Lane", cell: c => c.lane }, { name: "Why", class: "grow", cell: c => html`<span class="clip" title=${visible(c.reason.text)}>${visible(c.reason.text)}</span>` },
      { name: "Waiting", class: "num", cell: c => number(c.waiting) }, { name: "Until", class: "num", cell: c => html`<${Time} at=${c.until} />` }, { name: "Partition", class: "num wide", cell: c => c.partition }]} /><//>`}
    ${gates.attached.length > 0 && html`<${Section} id="attached" title="Attached" note="applied to everything created in a scope"><ul class="plain">${gates.attached.map(a => html`<li key=${JSON.stringify(a.scope)}><b>${scope(a.scope)}</b>: ${[...(a.budgets ?? []).map(b => `budget ${b}`), ...(a.quotas ?? []).map(q => `quota ${q}`)].join(", ")} <span class="dim">${a.by && `by ${a.by} `}<${Time} at=${a.changed_at} /></span></li>`)}</ul><//>`}</div>`}<//><${More} of=${page.data?.all.budgets} what="budgets" /><${More} of=${page.data?.all.quotas} what="quotas" /></div>`
}
