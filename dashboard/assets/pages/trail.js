import { html, useState } from "../vendor/preact-htm.js"
import { loadAll, namespace, useLoad, useStore } from "../live.js"
import { become, Empty, Field, Loaded, plural, shortID, Table, Time, to, useDraft, visible } from "../ui.js"

const things = ["execution", "executions", "flow", "lane", "schedule", "gate", "scope", "worker", "partition", "token key"]
const places = { lane: "queues", schedule: "schedules", gate: "gates", worker: "workers", partition: "health", "token key": "health" }

function link(c) {
  if (c.on === "execution") return html`<a class="mono" href=${to(["executions", c.name])}>${shortID(c.name)}</a>`
  if (c.on === "flow") return html`<a class="mono" href=${to(["flows", c.name])}>${shortID(c.name)}</a>`
  return places[c.on] ? html`<a href=${to([places[c.on]])}>${visible(c.name)}</a>` : visible(c.name)
}

export default function Trail({ query }) {
  const f = { by: query.get("by") || "", on: query.get("on") || "", name: query.get("name") || "", within: query.get("within") || "" }, { within, ...rest } = f
  const [want, setWant] = useState(50)
  const ns = useStore(namespace)
  const page = useLoad(signal => loadAll("trail", { ...rest, since: within && new Date(Math.floor(Date.now() / 1000 - within) * 1000).toISOString(), namespace: ns === "*" ? "" : ns, limit: 50 }, want, signal), [JSON.stringify(f), ns, want])
  const [draft, change] = useDraft(f, typed => become(["trail"], typed))
  return html`<div><h1>Audit trail</h1><p class="lead">Who changed what, and why: people and programs, the newest first.</p>
    <form class="filters" onSubmit=${e => e.preventDefault()} aria-label="Filters"><div class="fields">
      <${Field} label="By" value=${draft.by} onInput=${change("by")} placeholder="anybody" /><${Field} label="On" kind="choice" options=${[["", "anything"], ...things.map(t => [t, t])]} value=${draft.on} onInput=${change("on")} />
      <${Field} label="Name or id" value=${draft.name} onInput=${change("name")} placeholder="any" />
      <${Field} label="When" kind="choice" options=${[["", "any time"], ["3600", "last hour"], ["86400", "last 24 hours"], ["604800", "last 7 days"]]} value=${draft.within} onInput=${change("within")} /></div></form>
    <${Loaded} of=${page}>${data => data.items.length === 0 ? html`<${Empty} title="No change matches"><p>Every change by a person or a program is noted here.</p><//>`
      : html`<div><${Table} label="Audit trail" rows=${data.items.map((c, i) => ({ ...c, i }))} id=${c => c.i} columns=${[
        { name: "When", class: "num head", cell: c => html`<${Time} at=${c.at} />` }, { name: "Who", class: "head", cell: c => html`<a href=${to(["trail"], { ...f, by: c.by })}><b>${visible(c.by || "nobody named")}</b></a>` }, { name: "Did", class: "head", cell: c => visible(c.action) },
        { name: "To", class: "head whole", cell: c => html`<span>${c.on} ${link(c)}</span>` }, { name: "Why", class: "grow whole", cell: c => visible([c.why, c.detail].filter(Boolean).join(" · ")) },
        { name: "From", class: "wide", cell: c => visible(c.from || "") }]} />
      <p class="foot dim">${plural(data.items.length, "change")} shown. ${data.cursor && html`<button type="button" onClick=${() => setWant(want + 100)}>Show more</button>`}</p></div>`}<//></div>`
}
