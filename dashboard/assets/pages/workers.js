import { html } from "../vendor/preact-htm.js"
import { get, post } from "../api.js"
import { may, me, namespace, unreplaced, useLoad, useStore } from "../live.js"
import { act, Bar, Chip, Empty, Loaded, More, number, plural, Section, Table, Time, to, visible } from "../ui.js"

const none = html`<span class="none">–</span>`

// several are names, which a long list has folded.
const several = (list, what) => !list ? "" : list.length < 5 ? list.join(", ") : html`<details><summary>${plural(list.length, what)}</summary>${list.join(", ")}</details>`

// Versions tells what each version of the application still holds, so that nobody stops one too early.
function Versions({ of }) {
  if (!of || of.items.filter(v => v.version).length === 0) return null
  const least = state => of.more?.includes(state) ? "≥ " : ""
  const held = (v, state, n) => n === 0 ? "0" : v.version ? html`<a href=${to(["executions"], { version: v.version, state: state === "waiting" ? ["waiting", "waiting_gate", "held"] : state })}>${least(state)}${number(n)}</a>` : least(state) + number(n)
  const taking = of.items.filter(v => v.version && v.workers > 0).length
  return html`<${Section} id="versions" title="Versions" note=${taking > 1 ? `${number(taking)} take work at once` : "of the application, and what each still holds"}><${Table} label="Versions" rows=${of.items} id=${v => v.version} columns=${[
    { name: "Version", class: "head whole", cell: v => v.version ? html`<a href=${to(["executions"], { version: v.version })}><b>${visible(v.version)}</b></a>` : html`<span class="dim">not said</span>` }, { name: "State", class: "head", cell: v => v.workers > 0 ? html`<${Chip} kind="good">takes work<//>` : html`<${Chip} kind="warn" title="What it holds goes on, on a worker of another version unless it requires this one">no worker<//>` },
    { name: "Workers", class: "num", cell: v => number(v.workers) }, { name: "Running", class: "num", cell: v => held(v, "active", v.active) }, { name: "Suspended", class: "num", cell: v => held(v, "suspended", v.suspended) }, { name: "Delayed", class: "num", cell: v => held(v, "delayed", v.delayed) }, { name: "Waiting", class: "num", cell: v => held(v, "waiting", v.waiting) },
    { name: "Failed", class: "num wide", cell: v => v.version ? html`<a href=${to(["executions"], { version: v.version, state: "failed" })} aria-label=${`See what version ${v.version} failed`}>See</a>` : none },
    { name: "Oldest claim", class: "num", cell: v => v.oldest_claimed_at ? html`<${Time} at=${v.oldest_claimed_at} />` : none }, { name: "Since", class: "num wide", cell: v => v.since ? html`<${Time} at=${v.since} />` : none }]} /><//>`
}

export default function Workers() {
  const { namespaces: own } = useStore(me)
  const ns = useStore(namespace)
  const page = useLoad(signal => get("workers", {}, signal), [])
  const held = useLoad(signal => may("listVersions") ? get("versions", { namespace: ns }, signal) : { items: [] }, [ns], { least: 10000 })
  const giveUp = w => act({ title: `Give up ${w.instance}`, text: `It has not been heard of, so it is most likely gone. Other workers take the ${plural(w.in_flight, "execution")} that it holds, and what it still writes is refused.`, action: "Give it up", danger: true,
    run: v => post(`workers/${encodeURIComponent(w.instance)}:mark-dead`, { reason: v.reason }), done: r => `Given up; ${plural(r.held, "execution")} went to others.`, then: page.reload })
  return html`<div><h1>Workers</h1><p class="lead">The processes that take work. One that stopped without saying so stays in the list for an hour.</p>
    <${Loaded} of=${page}>${data => {
      const missed = new Set(unreplaced(data.items).map(w => w.instance))
      const rank = w => w.alive ? 1 : w.dead ? 3 : missed.has(w.instance) ? 0 : 2
      const rows = [...data.items].sort((a, b) => rank(a) - rank(b) || (a.instance < b.instance ? -1 : 1))
      return rows.length === 0 ? own ? html`<${Empty} title="No worker of yours"><p>You see the workers that take work of ${visible(own.join(", "))} alone. Workers of all namespaces are shown to tokens that are bound to none.</p><//>`
      : html`<${Empty} title="No worker runs"><p>Start one: a program that calls <code>runtime.Run</code>, or a worker in another language that uses the HTTP API.</p><//>`
      : html`<${Table} label="Workers" rows=${rows} id=${w => w.instance} columns=${[
        { name: "State", class: "head", cell: w => w.alive ? html`<${Chip} kind="good">alive<//>` : w.dead ? html`<${Chip} title=${visible(w.reason || "")}>given up<//>` : missed.has(w.instance) ? html`<${Chip} kind="bad" title=${visible(w.reason || "")}>lost<//>` : html`<${Chip} title="Another worker took its place within a minute">replaced<//>` },
        { name: "Worker", class: "head", cell: w => html`<span class="mono" title=${w.host ? `host ${visible(w.host)}, process ${w.pid ?? "?"}` : ""}>${visible(w.instance)}</span>` },
        { name: "Version", cell: w => w.version ? html`<span title=${w.labels && Object.entries(w.labels).map(([k, v]) => visible(`${k}=${v}`)).join(", ")}>${visible(w.version)}</span>` : none },
        { name: "Running", class: "num", cell: w => html`<a href=${to(["executions"], { held_by: w.instance, state: "active" })}>${number(w.in_flight)}${w.concurrency ? ` of ${number(w.concurrency)}` : ""}</a>` },
        { name: "Load", class: "wide wider", cell: w => w.concurrency ? html`<${Bar} value=${w.in_flight} of=${w.concurrency} label=${`${w.in_flight} of ${w.concurrency} slots are taken`} />` : none },
        { name: "Kinds", class: "grow named whole", cell: w => several(w.kinds, "kind") },
        { name: "Lanes", class: "wide whole", cell: w => w.lanes ? several(w.lanes, "lane") : "all" },
        { name: "Namespaces", class: "wide wider", cell: w => w.namespaces?.join(", ") ?? none },
        { name: "Pool", class: "wide wider", cell: w => w.pool ?? none },
        { name: "Host", class: "wide wider", cell: w => w.host ? visible(w.host) : none },
        { name: "Started", class: "num wide wider", cell: w => html`<${Time} at=${w.started_at} />` },
        { name: "Seen", class: "num", cell: w => html`<${Time} at=${w.seen_at} />` },
        ...(may("markWorkerDead") && rows.some(w => !w.alive && !w.dead) ? [{ name: "Actions", class: "end", cell: w => !w.alive && !w.dead && html`<button type="button" class="danger" onClick=${() => giveUp(w)} aria-label=${`Give up ${w.instance}`}>Give up…</button>` }] : [])]} />`
    }}<//><${More} of=${page.data} what="workers" /><${Versions} of=${held.data} /></div>`
}
