import { html } from "../vendor/preact-htm.js"
import { get, post } from "../api.js"
import { may, useLoad } from "../live.js"
import { act, checkID, Copy, Empty, Facts, Loaded, Menu, number, plural, Section, shortID, Since, State, Table, Tags, tally, Time, to, visible } from "../ui.js"
import { Graph, mostNodes, prepare, took } from "../graph.js"

const over = new Set(["completed", "failed", "cancelled"])

// waits says what a node waits for.
const waits = n => ({ any: "any of ", quorum: `${n.group?.k} of `, ended: "end of ", failed: "failure in " }[n.group?.policy] || "") + number(n.edges.length)

export default function Flow({ id }) {
  const page = useLoad(async signal => checkID(id) && (await Promise.all([get(`flows/${id}`, {}, signal), prepare()]))[0], [id])
  if (page.error && (page.error.status === 404 || page.error.status === 410 || page.error.status === 400)) {
    return html`<div><h1>Flow</h1><${Empty} title=${page.error.status === 410 ? "It was purged" : "There is no such flow"}><p>${visible(page.error.message)}</p><p><a href="#/flows">All flows</a></p><//></div>`
  }
  return html`<${Loaded} of=${page}>${x => {
    const say = text => `This is flow ${x.kind} ${shortID(x.id)} with ${plural(x.members, "node")}. ${text}`
    const items = [
      !over.has(x.state) && may("cancelFlow") && { label: "Cancel…", danger: true, run: () => act({ title: "Cancel the flow", text: say("Choose what happens to its nodes."), action: "Cancel the flow", danger: true,
        fields: [{ name: "policy", label: "Nodes", kind: "choice", value: "cancel_all", options: [["cancel_all", "Cancel all that have not ended"], ["cancel_pending", "Cancel those that do not run"], ["flow_only", "Leave them alone"]] }],
        run: v => post(`flows/${x.id}:cancel`, { policy: v.policy, reason: v.reason }), done: "The flow is cancelled.", then: page.reload }) },
      over.has(x.state) && may("replayFlow") && { label: "Replay…", run: () => act({ title: "Replay the flow", text: say("What did not succeed runs again, and then what depends on it."), action: "Replay",
        fields: [{ name: "from_scratch", label: "From scratch: forget recorded steps", kind: "check" }], run: v => post(`flows/${x.id}:replay`, { from_scratch: !!v.from_scratch, reason: v.reason }),
        done: r => `${plural(r.runnable, "node")} may run, ${number(r.blocked)} wait for them.${r.refused?.length ? ` ${plural(r.refused.length, "node")} refused: ${r.refused[0].node}: ${r.refused[0].error}` : ""}`, then: page.reload }) },
      x.seal && x.seal !== "sealed" && x.seal !== "seal" && !over.has(x.state) && may("sealFlow") && { label: "Seal…", run: () => act({ title: "Seal the flow", text: say("No more nodes can be added to it."), action: "Seal", run: v => post(`flows/${x.id}:seal`, { reason: v.reason }), done: "Sealed.", then: page.reload }) },
    ].filter(Boolean)
    return html`<div><div class="title"><div><p class="crumb"><a href="#/flows">Flows</a> / <a href=${to(["flows"], { kind: x.kind })}>${x.kind}</a></p><h1><span class="mono">${x.id}</span> <${Copy} text=${x.id} label="Copy the id" /></h1></div>
        <div class="actions"><${State} state=${x.state} />${items.length > 0 && html`<${Menu} label="Actions" kind="main" items=${items} />`}</div></div>
      <${Section} id="graph" title="Graph" note=${tally(x.count)}>
        ${x.nodes.length > mostNodes ? html`<p class="dim">The flow has ${number(x.nodes.length)} nodes; the picture shows up to ${mostNodes}. The table below has all of them.</p>` : html`<${Graph} nodes=${x.nodes} />`}<//>
      <${Section} id="nodes" title="Nodes"><${Table} label="Nodes" rows=${x.nodes} columns=${[
        { name: "State", class: "head", cell: n => n.state ? html`<${State} state=${n.state} />` : html`<span class="none">purged</span>` },
        { name: "Node", class: "head name", cell: n => html`<a class="clip" title=${visible(n.name)} href=${to(["executions", n.id])}>${visible(n.name)}</a>` },
        { name: "Kind", class: "name", cell: n => html`<span class="clip" title=${n.kind}>${n.kind}</span>` },
        { name: "Took", class: "num", cell: n => took(n) === undefined ? html`<span class="none">–</span>` : html`<span><${Since} at=${n.started_at} until=${n.ended_at} />${n.attempt > 1 && html` <small class="dim">attempt ${n.attempt}</small>`}</span>` },
        { name: "Waits for", class: "num wide", cell: n => n.edges ? html`<span title=${n.group ? `${number(n.group.succeeded)} succeeded, ${number(n.group.failed)} failed, ${number(n.group.skipped)} skipped` : ""}>${waits(n)}</span>` : html`<span class="none">–</span>` },
        { name: "Failure", class: "whole", cell: n => n.category ? html`<span class=${n.state === "failed" || n.state === "expired" ? "bad-text" : "dim"}>${n.category.replaceAll("_", " ")}</span>` : "" }]} /><//>
      <${Section} id="facts" title="Facts"><div class="across"><${Facts} rows=${[["Kind", x.kind], ["Namespace", x.namespace], ["By", x.creator], ["Created", html`<${Time} at=${x.created_at} />`], ["Ended", x.ended_at && html`<${Time} at=${x.ended_at} />`],
        ["Took", html`<${Since} at=${x.created_at} until=${x.ended_at} />`], ["Growth", x.seal && x.seal !== "seal" && x.seal !== "sealed" && x.seal], ["Failing ends", x.failing || ""], ["Cancelled by", x.cancelled_by && visible(x.cancelled_by)], ["Reason", x.cancel_reason && visible(x.cancel_reason)], ["Tags", x.tags && html`<${Tags} tags=${x.tags} />`],
        ["Executions", html`<a href=${to(["executions"], { flow: x.id })}>List them</a>`]]} /></div><//></div>`
  }}<//>`
}
