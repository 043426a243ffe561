import { html, useState } from "../vendor/preact-htm.js"
import { loadAll, namespace, useLoad, useStore } from "../live.js"
import { become, Empty, Field, go, Loaded, number, plural, shortID, State, stateWord, Table, tally, Time, to, useDraft } from "../ui.js"

const flowStates = ["open", "completed", "failed", "cancelled"]

export default function Flows({ query }) {
  const ns = useStore(namespace)
  const f = { kind: query.get("kind") || "", state: query.get("state") || "" }
  const [draft, change] = useDraft(f, typed => become(["flows"], typed))
  const [want, setWant] = useState(100)
  const page = useLoad(signal => loadAll("flows", { ...f, namespace: ns, limit: 100 }, want, signal), [JSON.stringify(f), ns, want])
  return html`<div><h1>Flows</h1><p class="lead">Executions that depend on each other, the newest flow first.</p>
    <form class="filters" onSubmit=${e => e.preventDefault()} aria-label="Filters"><div class="fields">
      <${Field} label="Kind" value=${draft.kind} onInput=${change("kind")} />
      <${Field} label="State" kind="choice" options=${[["", "any"], ...flowStates.map(s => [s, stateWord(s)])]} value=${f.state} onInput=${v => go(["flows"], { ...f, state: v })} /></div></form>
    <${Loaded} of=${page}>${data => data.items.length === 0 ? html`<${Empty} title="No flow matches"><p>A flow is submitted with <code>client.SubmitFlow</code> or <code>POST /v1/flows</code>. Its graph appears here, and colours itself as it goes on.</p><//>`
      : html`<div><${Table} label="Flows" rows=${data.items} columns=${[
        { name: "State", class: "head", cell: x => html`<${State} state=${x.state} />` },
        { name: "Kind", class: "head name", cell: x => html`<span class="clip" title=${x.kind}>${x.kind}</span>` },
        { name: "Flow", class: "head", cell: x => html`<a class="mono" href=${to(["flows", x.id])} title=${x.id}>${shortID(x.id)}</a>` },
        { name: "Nodes", class: "num", cell: x => number(x.members) },
        { name: "How far", class: "grow", cell: x => html`<span class="clip" title=${tally(x.count)}>${tally(x.count)}</span>` },
        { name: "Namespace", class: "roomy", cell: x => x.namespace },
        { name: "Created", class: "num", cell: x => html`<${Time} at=${x.created_at} />` },
        { name: "Ended", class: "num wide", cell: x => html`<${Time} at=${x.ended_at} />` }]} />
      <p class="foot dim">${plural(data.items.length, "flow")} shown. ${data.cursor && html`<button type="button" onClick=${() => setWant(want + 100)}>Show more</button>`}</p></div>`}<//></div>`
}
