import { html } from "../vendor/preact-htm.js"
import { get, post } from "../api.js"
import { may, me, unreplaced, useLoad, useStore } from "../live.js"
import { act, Bar, Chip, Empty, Loaded, More, number, plural, Table, Time, to, visible } from "../ui.js"

const none = html`<span class="none">–</span>`

export default function Workers() {
  const { namespaces: own } = useStore(me)
  const page = useLoad(signal => get("workers", {}, signal), [])
  const giveUp = w => act({ title: `Give up ${w.instance}`, text: `It has not been heard of, so it is most likely gone. Other workers take the ${plural(w.in_flight, "execution")} that it holds, and what it still writes is refused.`, action: "Give it up", danger: true,
    run: v => post(`workers/${encodeURIComponent(w.instance)}:mark-dead`, { reason: v.reason }), done: r => `Given up; ${plural(r.held, "execution")} went to others.`, then: page.reload })
  return html`<div><h1>Workers</h1><p class="lead">The processes that take work. One that stopped without saying so stays in the list for an hour.</p>
    <${Loaded} of=${page}>${data => {
      const missed = new Set(unreplaced(data.items).map(w => w.instance))
      const rank = w => w.alive ? 1 : w.dead ? 3 : missed.has(w.instance) ? 0 : 2
      const rows = [...data.items].sort((a, b) => rank(a) - rank(b) || (a.instance < b.instance ? -1 : 1))
      const versions = new Set(rows.filter(w => w.alive && w.version).map(w => w.version))
      return rows.length === 0 ? own ? html`<${Empty} title="No worker of yours"><p>You see the workers that take work of ${visible(own.join(", "))} alone. Workers of all namespaces are shown to tokens that are bound to none.</p><//>`
      : html`<${Empty} title="No worker runs"><p>Start one: a program that calls <code>runtime.Run</code>, or a worker in another language that uses the HTTP API.</p><//>`
      : html`<div>${versions.size > 1 && html`<p class="notice">${plural(versions.size, "version")} take work at once: ${visible([...versions].sort().join(", "))}.</p>`}<${Table} label="Workers" rows=${rows} id=${w => w.instance} columns=${[
        { name: "State", class: "head", cell: w => w.alive ? html`<${Chip} kind="good">alive<//>` : w.dead ? html`<${Chip} title=${visible(w.reason || "")}>given up<//>` : missed.has(w.instance) ? html`<${Chip} kind="bad" title=${visible(w.reason || "")}>lost<//>` : html`<${Chip} title="Another worker took its place within a minute">replaced<//>` },
        { name: "Worker", class: "head", cell: w => html`<span class="mono" title=${w.host ? `host ${visible(w.host)}, process ${w.pid ?? "?"}` : ""}>${visible(w.instance)}</span>` },
        { name: "Version", cell: w => w.version ? html`<span title=${w.labels && Object.entries(w.labels).map(([k, v]) => visible(`${k}=${v}`)).join(", ")}>${visible(w.version)}</span>` : none },
        { name: "Running", class: "num", cell: w => html`<a href=${to(["executions"], { held_by: w.instance, state: "active" })}>${number(w.in_flight)}${w.concurrency ? ` of ${number(w.concurrency)}` : ""}</a>` },
        { name: "Load", class: "wide wider", cell: w => w.concurrency ? html`<${Bar} value=${w.in_flight} of=${w.concurrency} label=${`${w.in_flight} of ${w.concurrency} slots are taken`} />` : none },
        { name: "Kinds", class: "clip grow", cell: w => html`<span class="clip" title=${w.kinds?.join(", ")}>${w.kinds?.join(", ") ?? ""}</span>` },
        { name: "Lanes", class: "wide", cell: w => w.lanes?.join(", ") ?? "all" },
        { name: "Namespaces", class: "wide wider", cell: w => w.namespaces?.join(", ") ?? none },
        { name: "Pool", class: "wide wider", cell: w => w.pool ?? none },
        { name: "Host", class: "wide wider", cell: w => w.host ? visible(w.host) : none },
        { name: "Started", class: "num wide wider", cell: w => html`<${Time} at=${w.started_at} />` },
        { name: "Seen", class: "num", cell: w => html`<${Time} at=${w.seen_at} />` },
        ...(may("markWorkerDead") && rows.some(w => !w.alive && !w.dead) ? [{ name: "Actions", class: "end", cell: w => !w.alive && !w.dead && html`<button type="button" class="danger" onClick=${() => giveUp(w)} aria-label=${`Give up ${w.instance}`}>Give up…</button>` }] : [])]} /></div>`
    }}<//><${More} of=${page.data} what="workers" /></div>`
}
