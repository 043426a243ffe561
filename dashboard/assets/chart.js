// A chart of the last hour. The library for it is loaded when the first chart is shown.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { base } from "./api.js"
import { rate } from "./ui.js"

let loading = null

function library() {
  loading ??= new Promise((resolve, reject) => {
    const style = document.createElement("link")
    style.rel = "stylesheet"
    style.href = new URL("assets/vendor/uplot.css", base)
    const script = document.createElement("script")
    script.src = new URL("assets/vendor/uplot.js", base)
    script.onload = () => resolve(window.uPlot)
    script.onerror = () => { loading = null; reject(new Error("The chart could not be loaded.")) }
    document.head.append(style, script)
  })
  return loading
}

const clock = seconds => t => new Date(t * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }) })

const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim()

// Chart draws series of points: [name, value of a point, color].
export function Chart({ points, series, label }) {
  const frame = useRef(null), plot = useRef(null)
  const [failed, setFailed] = useState("")
  const [theme, setTheme] = useState(0)
  const data = [points.map(p => Date.parse(p.at) / 1000), ...series.map(([, value]) => points.map(value))]
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)"), turn = () => setTheme(t => t + 1)
    dark.addEventListener("change", turn)
    const watch = new MutationObserver(turn)
    watch.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] })
    return () => { dark.removeEventListener("change", turn); watch.disconnect() }
  }, [])
  const some = points.length > 1
  useEffect(() => {
    if (!some) return
    let here = true, resize
    library().then(uPlot => {
      if (!here) return
      const axis = { stroke: color("dim"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 }, font: "12px system-ui" }
      plot.current = new uPlot({
        width: frame.current.clientWidth, height: 170, cursor: { y: false }, legend: { show: false },
        scales: { y: { range: (_, min, max) => [0, Math.max(1, max * 1.1)] } },
        axes: [{ ...axis, space: 70, values: (u, list) => list.map(clock(u.scales.x.max - u.scales.x.min < 300)) }, { ...axis, size: 48, values: (_, list) => list.map(v => v >= 10000 ? `${v / 1000}k` : v) }],
        series: [{}, ...series.map(([name, , c]) => ({ label: name, stroke: color(c), width: 2, fill: color(c) + "22", points: { show: false } }))],
      }, data, frame.current)
      resize = new ResizeObserver(() => frame.current && plot.current.setSize({ width: frame.current.clientWidth, height: 170 }))
      resize.observe(frame.current)
    }, e => here && setFailed(e.message))
    return () => { here = false; resize?.disconnect(); plot.current?.destroy(); plot.current = null }
  }, [theme, some])
  useEffect(() => { plot.current?.setData(data) }, [points])
  const last = points[points.length - 1]
  return html`<div class="chart"><p class="legend">${series.map(([name, value, c]) => html`<span key=${name}><i class=${"dot c-" + c}></i>${name} <b>${last ? (Number.isInteger(value(last)) ? value(last).toLocaleString("en") : rate(value(last))) : "–"}</b></span>`)}</p>
    <div ref=${frame} class="plot" role="img" aria-label=${label}></div>${failed && html`<p class="dim">${failed}</p>`}
    ${!some && html`<p class="dim">The server begins to look when it starts. The line grows by a point every ten seconds.</p>`}</div>`
}
