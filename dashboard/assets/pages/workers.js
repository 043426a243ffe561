import { html } from "../vendor/preact-htm.js"
import { get, post } from "../api.js"
import { may, me, useLoad, useStore } from "../live.js"
import { act, Bar, Chip, Empty, Loaded, More, number, plural, Table, Time, to, visible } from "../ui.js"

export default function Workers() {
  const { namespaces: own } = useStore(me)
  const page = useLoad(signal => get("workers", {}, signal), [])
  const giveUp = w => act({ title: `Give up ${w.instance}`, text: `Do this for a process that is gone for good. Other workers take the ${plural(w.in_flight, "execution")} that it holds, and what it still writes is refused.`, action: "Give it up", danger: true,
    run: v => post(`workers/${encodeURIComponent(w.instance)}:mark-dead`, { reason: v.reason }), done: r => `Given up; ${plural(r.held, "execution")} went to others.`, then: page.reload })
  return html`<div><h1>Workers</h1><p class="lead">The processes that take work. One that stopped without saying so stays in the list for an hour.</p>
    <${Loaded} of=${page}>${data => data.items.length === 0 ? own ? html`<${Empty} title="No worker of yours"><p>You see the workers that take work of ${visible(own.join(", "))} alone. Workers of all namespaces are shown to tokens that are bound to none.</p><//>`
      : html`<${Empty} title="No worker runs"><p>Start one: a program that calls <code>runtime.Run</code>, or a worker in another language that uses the HTTP API.</p><//>`
      : html`<${Table} label="Workers" rows=${data.items} id=${w => w.instance} columns=${[
        { name: "State", cell: w => w.alive ? html`<${Chip} kind="good">alive<//>` : html`<${Chip} kind=${w.dead ? "" : "bad"} title=${visible(w.reason || "")}>${w.dead ? "given up" : "lost"}<//>` },
        { name: "Worker", cell: w => html`<span class="mono">${w.instance}</span>` },
        { name: "Version", class: "wide", cell: w => html`<span title=${w.labels && Object.entries(w.labels).map(([k, v]) => visible(`${k}=${v}`)).join(", ")}>${visible(w.version ?? "")}</span>` },
        { name: "Running", class: "num", cell: w => html`<a href=${to(["executions"], { held_by: w.instance, state: "active" })}>${number(w.in_flight)}${w.concurrency ? ` of ${number(w.concurrency)}` : ""}</a>` },
        { name: "Load", class: "wide", cell: w => w.concurrency ? html`<${Bar} value=${w.in_flight} of=${w.concurrency} label=${`${w.in_flight} of ${w.concurrency} slots are taken`} />` : "" },
        { name: "Kinds", class: "clip grow", cell: w => html`<span class="clip" title=${w.kinds?.join(", ")}>${w.kinds?.join(", ") ?? ""}</span>` },
        { name: "Lanes", class: "wide wider", cell: w => w.lanes?.join(", ") ?? "all" },
        { name: "Namespaces", class: "wide", cell: w => w.namespaces?.join(", ") ?? "" },
        { name: "Pool", class: "wide wider", cell: w => w.pool ?? "" },
        { name: "Seen", class: "num", cell: w => html`<${Time} at=${w.seen_at} />` },
        ...(may("markWorkerDead") ? [{ name: "Actions", class: "end", cell: w => !w.dead && html`<button type="button" onClick=${() => giveUp(w)} aria-label=${`Give up ${w.instance}`}>Give up…</button>` }] : [])]} />`}<//><${More} of=${page.data} what="workers" /></div>`
}
