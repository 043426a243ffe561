// The graph of a flow. The library that places its nodes is loaded with the first flow that is shown.
import { html, useMemo } from "./vendor/preact-htm.js"
import { stateWord, to, visible } from "./ui.js"

const width = 176, height = 46

// rules say when a node runs.
const rules = { all: "once all before it succeeded", any: "once one before it succeeded", quorum: "once enough before it succeeded", ended: "once all before it ended", failed: "once all before it ended, if one failed" }

export const mostNodes = 400 // drawn; a larger flow is a table

let library = null, failed = ""

// prepare loads the library, so that the graph is there together with its flow and moves nothing.
export const prepare = () => import("./vendor/dagre.js").then(m => { library = m }, e => { failed = e.message })

function place(nodes) {
  const g = new library.Graph().setGraph({ rankdir: "LR", nodesep: 18, ranksep: 46, marginx: 8, marginy: 8 }).setDefaultEdgeLabel(() => ({}))
  const known = new Set(nodes.map(n => n.id))
  for (const n of nodes) g.setNode(n.id, { width, height })
  for (const n of nodes) for (const { from } of n.edges || []) if (known.has(from)) g.setEdge(from, n.id)
  library.layout(g)
  return { g, size: g.graph() }
}

// Graph needs prepare.
export function Graph({ nodes }) {
  const shape = nodes.map(n => n.id + ">" + (n.edges || []).map(e => e.from).join(",")).join(";")
  const placed = useMemo(() => library && place(nodes), [shape, library])
  if (!placed) return html`<p class="dim">The graph could not be drawn: ${failed}</p>`
  const watching = new Set(nodes.filter(n => n.group?.policy === "ended" || n.group?.policy === "failed").map(n => n.id)) // they run whatever those came to
  const line = e => { // from the right side of a node to the left side of the next, level at both ends
    const from = placed.g.node(e.v), to = placed.g.node(e.w), between = placed.g.edge(e).points.slice(1, -1)
    const points = [{ x: from.x + width / 2, y: from.y }, ...(between.length > 1 ? between : []), { x: to.x - width / 2, y: to.y }]
    return points.map((p, i) => i === 0 ? `M${p.x} ${p.y}` : `C${(points[i - 1].x + p.x) / 2} ${points[i - 1].y} ${(points[i - 1].x + p.x) / 2} ${p.y} ${p.x} ${p.y}`).join("")
  }
  const text = s => { const t = visible(s); return t.length > 22 ? t.slice(0, 21) + "…" : t }
  return html`<div class="graph scroll" tabindex="0" role="group" aria-label="Graph of the flow"><svg width=${placed.size.width} height=${placed.size.height} viewBox=${`0 0 ${placed.size.width} ${placed.size.height}`} role="group" aria-label="Nodes">
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
    ${placed.g.edges().map(e => html`<path key=${e.v + e.w} class=${"edge" + (watching.has(e.w) ? " watch" : "")} d=${line(e)} marker-end="url(#arrow)" />`)}
    ${nodes.map(n => { const p = placed.g.node(n.id); return p && html`<a key=${n.id} href=${to(["executions", n.id])}>
      <title>${`${visible(n.name)}: ${stateWord(n.state || "purged")}${n.group ? ` (${rules[n.group.policy] || n.group.policy})` : ""}`}</title>
      <g class=${"node n-" + (n.state || "purged")} transform=${`translate(${p.x - width / 2} ${p.y - height / 2})`}><rect width=${width} height=${height} rx="7" /><rect class="side" width="6" height=${height} rx="3" />
        <text x="16" y="19">${text(n.name)}</text><text x="16" y="36" class="dim">${text(stateWord(n.state || "purged"))}</text></g></a>` })}</svg></div>`
}
