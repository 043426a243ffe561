// The graph of a flow. The library that places its nodes is loaded with the first flow that is shown.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact-htm.js"
import { serverNow, useBeat } from "./live.js"
import { span, stateWord, to, visible } from "./ui.js"

const width = 184, height = 48

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

const ran = new Set(["active", "completed", "failed", "cancelled", "expired", "suspended"])

// took is how long the last attempt of a node took, or takes, in ms; undefined when it has not begun.
export const took = n => n.started_at && ran.has(n.state) ? Math.max(0, (n.ended_at ? Date.parse(n.ended_at) : serverNow()) - Date.parse(n.started_at)) : undefined

const whole = n => n.ended_at ? took(n) : Math.floor(took(n) / 1000) * 1000
const marks = { any: () => "any", quorum: g => `${g.succeeded}/${g.k}`, ended: () => "end", failed: () => "if failed" }

const least = 0.35, greatest = 2, legible = 0.62 // of the scale; what does not fit legibly is panned

// Graph needs prepare. It fits the width of its place; it is moved by dragging, the wheel with Ctrl and the buttons make it larger and smaller.
export function Graph({ nodes }) {
  useBeat()
  const shape = nodes.map(n => n.id + ">" + (n.edges || []).map(e => e.from).join(",")).join(";")
  const placed = useMemo(() => library && place(nodes), [shape, library])
  const frame = useRef(null), drag = useRef(null)
  const [room, setRoom] = useState(0), [zoom, setZoom] = useState(0) // zoom 0: it fits
  useLayoutEffect(() => { if (frame.current) setRoom(frame.current.clientWidth) }, [!placed]) // before it is seen, so that nothing jumps
  useEffect(() => {
    if (!frame.current) return
    const seen = new ResizeObserver(([e]) => setRoom(e.contentRect.width))
    seen.observe(frame.current)
    const wheel = e => { if (e.ctrlKey) { e.preventDefault(); by(e.deltaY < 0 ? 1.15 : 1 / 1.15) } }
    frame.current.addEventListener("wheel", wheel, { passive: false })
    return () => { seen.disconnect(); frame.current?.removeEventListener("wheel", wheel) }
  }, [!placed])
  const fits = placed ? Math.max(legible, Math.min(1.25 * parseFloat(getComputedStyle(document.documentElement).fontSize) / 16, (room || frame.current?.clientWidth || placed.size.width) / placed.size.width)) : 1
  const latest = useRef(fits)
  latest.current = fits
  const first = placed && (nodes.find(n => n.state === "failed" || n.state === "expired") ?? nodes.find(n => n.state === "active") ?? nodes.find(n => !n.edges?.length))?.id, scale = zoom || fits
  useLayoutEffect(() => { // of what does not fit, the node that matters most is in sight
    const at = first && room && placed.g.node(first)
    if (at) frame.current.scrollTo(Math.max(0, (at.x + width / 2 + 8) * fits - room), at.y * fits - frame.current.clientHeight / 2)
  }, [placed, !room])
  const by = f => setZoom(z => Math.max(least, Math.min(greatest, (z || latest.current) * f)))
  if (!placed) return html`<p class="dim">The graph could not be drawn: ${failed}</p>`
  const watching = new Set(nodes.filter(n => n.group?.policy === "ended" || n.group?.policy === "failed").map(n => n.id)) // they run whatever those came to
  const line = e => { // from the right side of a node to the left side of the next, level at both ends
    const from = placed.g.node(e.v), to = placed.g.node(e.w), between = placed.g.edge(e).points.slice(1, -1)
    const points = [{ x: from.x + width / 2, y: from.y }, ...(between.length > 1 ? between : []), { x: to.x - width / 2, y: to.y }]
    return points.map((p, i) => i === 0 ? `M${p.x} ${p.y}` : `C${(points[i - 1].x + p.x) / 2} ${points[i - 1].y} ${(points[i - 1].x + p.x) / 2} ${p.y} ${p.x} ${p.y}`).join("")
  }
  const text = (s, most = 22) => { const t = visible(s); return t.length > most ? t.slice(0, most - 1) + "…" : t }
  const down = e => { if (e.button === 0 && e.pointerType === "mouse") drag.current = { x: e.clientX, y: e.clientY, left: frame.current.scrollLeft, top: frame.current.scrollTop, moved: false } }
  const move = e => {
    const d = drag.current
    if (!d) return
    if (!d.moved && Math.hypot(e.clientX - d.x, e.clientY - d.y) < 5) return
    if (!d.moved) { d.moved = true; frame.current.setPointerCapture(e.pointerId) }
    frame.current.scrollLeft = d.left - (e.clientX - d.x)
    frame.current.scrollTop = d.top - (e.clientY - d.y)
  }
  const up = () => { const d = drag.current; drag.current = null; if (d?.moved) { const stop = e => { e.preventDefault(); e.stopPropagation() }; addEventListener("click", stop, { capture: true, once: true }); setTimeout(() => removeEventListener("click", stop, true)) } }
  return html`<div class="drawing"><div class="graph" ref=${frame} tabindex="0" role="group" aria-label="Graph of the flow" onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${() => { drag.current = null }} onDragStart=${e => e.preventDefault()}>
    <svg width=${placed.size.width * scale} height=${placed.size.height * scale} viewBox=${`0 0 ${placed.size.width} ${placed.size.height}`} role="group" aria-label="Nodes">
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
    ${placed.g.edges().map(e => html`<path key=${e.v + e.w} class=${"edge" + (watching.has(e.w) ? " watch" : "")} d=${line(e)} marker-end="url(#arrow)" />`)}
    ${nodes.map(n => { const p = placed.g.node(n.id), mark = marks[n.group?.policy]?.(n.group), time = took(n) === undefined ? "" : span(whole(n)); return p && html`<a key=${n.id} href=${to(["executions", n.id])} draggable=${false}>
      <title>${`${visible(n.name)}: ${stateWord(n.state || "purged")}${n.category ? `, ${n.category.replaceAll("_", " ")}` : ""}${n.group ? ` (${rules[n.group.policy] || n.group.policy}${n.group.policy === "quorum" ? `: ${n.group.succeeded} of ${n.group.k}, out of ${n.group.total}` : ""})` : ""}${n.attempt > 1 ? `, attempt ${n.attempt}` : ""}`}</title>
      <g class=${"node n-" + (n.state || "purged")} transform=${`translate(${p.x - width / 2} ${p.y - height / 2})`}><rect width=${width} height=${height} rx="7" /><rect class="side" width="6" height=${height} rx="3" />
        <text x="16" y="20">${text(n.name, mark ? 16 : 22)}</text>${mark && html`<text x=${width - 10} y="20" text-anchor="end" class="mark">${mark}</text>`}<text x="16" y="38" class="dim">${text(stateWord(n.state || "purged"), 16)}</text>${time && html`<text x=${width - 10} y="38" text-anchor="end" class="dim">${time}${n.attempt > 1 ? ` #${n.attempt}` : ""}</text>`}</g></a>` })}</svg></div>
    <div class="zoom"><button type="button" class="small" aria-label="Smaller" onClick=${() => by(1 / 1.3)}>−</button><button type="button" class="small" aria-label="Larger" onClick=${() => by(1.3)}>+</button><button type="button" class="small" disabled=${!zoom} onClick=${() => setZoom(0)}>Fit</button></div></div>`
}
