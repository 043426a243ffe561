import { html, useState } from "../vendor/preact-htm.js"
import { get } from "../api.js"
import { loadAll, me, namespace, useLoad, useStore } from "../live.js"
import { Chip, Empty, Field, go, Loaded, plural, shortID, Since, Time, to, visible } from "../ui.js"
import { Answer } from "../answer.js"

export default function Approvals({ query }) {
  const ns = useStore(namespace)
  const f = { kind: query.get("kind") || "", lane: query.get("lane") || "", assignee: query.get("assignee") || "" }
  const set = name => value => go(["approvals"], { ...f, [name]: value })
  const [want, setWant] = useState(50)
  const page = useLoad(signal => loadAll("approvals", { ...f, namespace: ns, limit: 50 }, want, signal), [JSON.stringify(f), ns, want])
  return html`<div><h1>Approvals</h1><p class="lead">What people are asked at the moment, the oldest first. Nothing runs, and nothing is held, while it waits for you.</p>
    <form class="filters" onSubmit=${e => e.preventDefault()} aria-label="Filters"><div class="fields">
      <${Field} label="Assigned to" value=${f.assignee} onInput=${set("assignee")} placeholder="anybody" />
      <${Field} label="Kind" value=${f.kind} onInput=${set("kind")} /><${Field} label="Lane" value=${f.lane} onInput=${set("lane")} /></div></form>
    <${Loaded} of=${page}>${data => data.items.length === 0 ? html`<${Empty} title="Nobody waits for an answer"><p>A handler asks with <code>suspend.Ask</code>. Its question appears here, and in the link that it mails.</p><//>`
      : html`<div><ul class="plain inbox">${data.items.map(i => html`<li key=${i.execution} class="card"><article aria-label=${i.question?.title || `${i.kind} waits`}>
        <div class="head"><h2>${visible(i.question?.title || `${i.kind} waits under “${i.name}”`)}</h2><p class="dim">waits for <${Since} at=${i.since} /></p></div>
        <p class="dim">${i.kind} <a class="mono" href=${to(["executions", i.execution])}>${shortID(i.execution)}</a> in lane ${i.lane} ${i.question?.assignee && html`<${Chip}>for ${visible(i.question.assignee)}<//>`}
          ${i.reason && html`<${Chip}>${i.reason.replaceAll("_", " ")}<//>`}</p>
        <${Answer} key=${i.execution + i.waitpoints.map(w => w.id).join()} item=${i} onDone=${page.reload} /></article></li>`)}</ul>
      <p class="foot dim">${plural(data.items.length, "question")} shown. ${data.cursor && html`<button type="button" onClick=${() => setWant(want + 50)}>Show more</button>`}</p></div>`}<//></div>`
}
