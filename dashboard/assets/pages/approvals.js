import { html, useState } from "../vendor/preact-htm.js"
import { get } from "../api.js"
import { loadAll, namespace, useLoad, useStore } from "../live.js"
import { become, Chip, Empty, Field, Loaded, plural, shortID, Since, to, useDraft, visible } from "../ui.js"
import { Answer } from "../answer.js"
import { mailboxOf } from "../message.js"

export default function Approvals({ query }) {
  const ns = useStore(namespace)
  const f = { kind: query.get("kind") || "", lane: query.get("lane") || "", assignee: query.get("assignee") || "", root: query.get("root") || "" }
  const [draft, change] = useDraft(f, typed => become(["approvals"], typed))
  const [want, setWant] = useState(50)
  const page = useLoad(signal => loadAll("approvals", { ...f, namespace: ns, limit: 50 }, want, signal), [JSON.stringify(f), ns, want])
  return html`<div><h1>Approvals</h1><p class="lead">What people are asked at the moment, the oldest first. Nothing runs, and nothing is held, while it waits for you.</p>
    <form class="filters" onSubmit=${e => e.preventDefault()} aria-label="Filters"><div class="fields">
      <${Field} label="Assigned to" value=${draft.assignee} onInput=${change("assignee")} placeholder="anybody" />
      <${Field} label="Kind" value=${draft.kind} onInput=${change("kind")} /><${Field} label="Lane" value=${draft.lane} onInput=${change("lane")} />
      <${Field} label="Below execution" value=${draft.root} onInput=${change("root")} placeholder="id" /></div></form>
    <${Loaded} of=${page}>${data => {
      const questions = data.items.filter(i => i.question), others = data.items.filter(i => !i.question)
      return data.items.length === 0 ? html`<${Empty} title="Nobody waits for an answer"><p>A handler asks with <code>Task.Ask</code>. Its question appears here, and in the link that it mails.</p><//>`
      : html`<div><ul class="plain inbox">${questions.map(i => html`<${Item} key=${i.execution + i.waitpoints.map(w => w.id).join()} item=${i} reload=${page.reload} />`)}</ul>
        ${others.length > 0 && html`<h2 class="between">Other waits</h2><p class="dim">They wait without a question: for a message, a callback, a program, or an operator.</p>
          <ul class="plain inbox">${others.map(i => html`<${Item} key=${i.execution} item=${i} reload=${page.reload} />`)}</ul>`}
        <p class="foot dim">${plural(questions.length, "question")} and ${plural(others.length, "other wait")} shown. ${data.cursor && html`<button type="button" onClick=${() => setWant(want + 50)}>Show more</button>`}</p></div>`
    }}<//></div>`
}

function Item({ item: i, reload }) {
  return html`<li class="card"><article aria-label=${visible(i.question?.title || `${i.kind} waits`)}>
    <div class="head"><h2>${visible(i.question?.title || (mailboxOf(i.name) ? `${i.kind} waits for a message` : i.reason === "waiting_for_children" ? `${i.kind} waits for its children` : `${i.kind} waits under “${i.name}”`))}</h2><p class="dim">waits for <${Since} at=${i.since} /></p></div>
    <p class="dim">${i.kind} <a class="mono" href=${to(["executions", i.execution])}>${shortID(i.execution)}</a> in lane ${i.lane} ${i.question?.assignee && html`<${Chip}>for ${visible(i.question.assignee)}<//> `}
      ${i.reason && html`<${Chip}>${i.reason.replaceAll("_", " ")}<//>`} ${i.question && i.waitpoints[0] && html`key <code>${visible(i.waitpoints[0].key)}</code> `}${i.path && html`<span>below <a class="mono" href=${to(["executions", i.root])}>${shortID(i.root)}</a>: ${visible(i.path.join(" › "))}</span> `}${i.flow && !i.path && html`<a href=${to(["flows", i.flow])}>flow ${shortID(i.flow)}</a>`}</p>
    <${Answer} key=${i.execution + i.waitpoints.map(w => w.id).join()} item=${i} onDone=${reload} /></article></li>`
}
