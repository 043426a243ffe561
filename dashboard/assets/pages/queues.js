import { html } from "../vendor/preact-htm.js"
import { get, post } from "../api.js"
import { may, namespace, useLoad, useSeveral, useStore } from "../live.js"
import { act, Chip, Empty, Loaded, Menu, More, number, plural, Section, Since, Table, Time, to, visible } from "../ui.js"

const laneWords = { active: "open", paused: "paused", draining: "draining", disabled: "closed" }
const says = {
  active: "Work is accepted and handed out.", paused: "Work is accepted and waits. What runs goes on.", draining: "No new work is accepted. What waits is handed out.", disabled: "No new work is accepted, and what waits is not handed out.",
}

export function setLane(lane, state, waiting, then) {
  const verbs = { active: "Open", paused: "Pause", draining: "Drain", disabled: "Close" }
  act({ title: `${verbs[state]} lane ${lane.name}`, text: `${says[state]} ${plural(waiting, "execution")} ${waiting === 1 ? "waits" : "wait"} in it.`, action: verbs[state], danger: state === "disabled",
    run: v => post(`lanes/${encodeURIComponent(lane.name)}:set`, { namespace: lane.namespace, state, reason: v.reason }), done: `Lane ${lane.name} is ${laneWords[state]}.`, then })
}

export default function Queues() {
  const ns = useStore(namespace)
  const page = useLoad(async signal => {
    const [lanes, queues] = await Promise.all([get("lanes", { namespace: ns }, signal), get("queues", { namespace: ns }, signal)])
    return { lanes: lanes.items, queues: queues.items, all: { lanes, queues } }
  }, [ns])
  const several = useSeveral()
  const weight = (l, reload) => act({ title: `Share of ${l.namespace} in lane ${l.name}`, text: "Namespaces that share a lane get work in the proportion of their weights.", action: "Set it", fields: [{ name: "weight", label: "Weight", kind: "number", min: 0, max: 1000, required: true, hint: "1..1000; 0 is the usual, 1" }],
    run: v => post(`lanes/${encodeURIComponent(l.name)}:set`, { namespace: l.namespace, weight: Number(v.weight), reason: v.reason }), done: "The weight is set.", then: reload })
  return html`<div><h1>Queues</h1><p class="lead">A lane is a queue with a name; in it, each kind of work has a queue of its own.</p>
    <${Loaded} of=${page}>${({ lanes, queues }) => html`<div><${Section} id="lanes" title="Lanes">${lanes.length === 0 ? html`<${Empty} title="No lanes yet"><p>A lane appears with the first execution that names it. Without a name it is “default”.</p><//>`
      : html`<${Table} label="Lanes" rows=${lanes} id=${l => l.namespace + "/" + l.name} columns=${[
        { name: "Lane", class: "head", cell: l => html`<a href=${to(["executions"], { lane: l.name })}>${l.name}</a>` },
        ...(several ? [{ name: "Namespace", cell: l => l.namespace }] : []),
        { name: "State", class: "head", cell: l => html`<${Chip} kind=${l.state === "active" ? "good" : "warn"} title=${says[l.state]}>${laneWords[l.state] ?? l.state}<//>${l.mixed && html` <${Chip} kind="bad" title="Partitions differ, because a change did not reach all of them. Set it again.">mixed<//>`}` },
        { name: "Waiting", class: "num", cell: l => number(l.waiting) },
        { name: "Since", class: "num wide", cell: l => l.since ? html`<${Time} at=${l.since} /> ${l.by && html`by <a href=${to(["trail"], { on: "lane", name: l.name })} title="Why: what the audit trail says of this lane">${visible(l.by)}</a>`}` : html`<span class="none">–</span>` },
        ...(may("setLane") ? [{ name: "Actions", class: "end", cell: l => html`<${Menu} label="Change" items=${[...["active", "paused", "draining", "disabled"].filter(s => s !== l.state || l.mixed).map(s => ({ label: { active: "Open…", paused: "Pause…", draining: "Drain…", disabled: "Close…" }[s], danger: s === "disabled", run: () => setLane(l, s, l.waiting, page.reload) })), { label: "Weight…", run: () => weight(l, page.reload) }]} />` }] : [])]} />`}<//>
      <${Section} id="queues" title="Queues">${queues.length === 0 ? html`<${Empty} title="No queues yet"><p>A queue appears with the first execution of a kind.</p><//>`
      : html`<${Table} label="Queues" rows=${queues} id=${q => [q.namespace, q.lane, q.kind, q.capabilities, q.drift].join("/")} columns=${[
        { name: "Kind", class: "head", cell: q => html`<a href=${to(["executions"], { kind: q.kind, lane: q.lane })}>${q.kind || "?"}</a>${q.drift && html` <${Chip} kind="bad">${q.drift}<//>`}` },
        { name: "Lane", cell: q => q.lane },
        ...(several ? [{ name: "Namespace", cell: q => q.namespace }] : []),
        { name: "Needs", class: "wide", cell: q => q.capabilities?.join(", ") ?? html`<span class="none">–</span>` },
        { name: "Waiting", class: "num", cell: q => number(q.waiting) },
        { name: "Oldest", class: "num", cell: q => html`<${Since} at=${q.oldest_at} />` },
        { name: "Stored", class: "num", cell: q => number(q.stored) }]} />`}<//></div>`}<//><${More} of=${page.data?.all.lanes} what="lanes" /><${More} of=${page.data?.all.queues} what="queues" /></div>`
}
