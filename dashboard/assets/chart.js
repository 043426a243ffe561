// A chart of a while. The library for it is loaded when the first chart is shown.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { base } from "./api.js"
import { number, rate } from "./ui.js"

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

const count = v => Number.isInteger(v) ? number(v) : rate(v)
// whole are the steps of an axis of counts.
const whole = [1, 2, 5].flatMap(n => [0, 1, 2, 3, 4, 5, 6, 7, 8].map(e => n * 10 ** e)).sort((a, b) => a - b)

const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize)

// Chart draws series of points: [name, value of a point, color]. The line above it has the values of the point under the mouse, or of the one that the arrow keys
// chose, else those of the last. Charts with the same group show the same instant. say makes a text of a value; null is a gap. least is the smallest step of the axis: 0 for any.
export function Chart({ points, series, label, group, say = count, least = 1 }) {
  const frame = useRef(null), plot = useRef(null)
  const [failed, setFailed] = useState("")
  const [theme, setTheme] = useState(0)
  const [at, setAt] = useState(null)
  const data = [points.map(p => Date.parse(p.at) / 1000), ...series.map(([, value]) => points.map(value))]
  const latest = useRef(data)
  latest.current = data
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
      const px = rem(), axis = { stroke: color("dim"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 }, font: `${0.75 * px}px system-ui` }
      plot.current = new uPlot({
        width: frame.current.clientWidth, height: frame.current.clientHeight, legend: { show: false },
        cursor: { y: false, drag: { x: false }, ...(group && { sync: { key: group } }) },
        hooks: { setCursor: [u => setAt(u.cursor.left >= 0 ? u.cursor.idx ?? null : null)] },
        scales: { y: { range: (_, min, max) => [0, Math.max(1, max * 1.1)] } },
        axes: [{ ...axis, size: 1.9 * px, space: 4.4 * px, values: (u, list) => list.map(clock(u.scales.x.max - u.scales.x.min < 300)) }, { ...axis, size: (say === count ? 3 : 4) * px, space: 1.6 * px, ...(least && { incrs: least < 1 ? [least, ...whole] : whole }), values: (_, list) => list.map(v => say === count ? v >= 10000 ? `${v / 1000}k` : v : say(v)) }],
        series: [{}, ...series.map(([name, , c]) => ({ label: name, stroke: color(c), width: 2, fill: color(c) + "22", points: { show: (u, n) => u.data[n].includes(null), size: 5, fill: color(c) } }))],
      }, latest.current, frame.current)
      resize = new ResizeObserver(() => frame.current && plot.current.setSize({ width: frame.current.clientWidth, height: frame.current.clientHeight }))
      resize.observe(frame.current)
    }, e => here && setFailed(e.message))
    return () => { here = false; resize?.disconnect(); plot.current?.destroy(); plot.current = null; setAt(null) }
  }, [theme, some])
  useEffect(() => { plot.current?.setData(data) }, [points])
  const i = Math.min(at ?? Infinity, points.length - 1), shown = points[i]
  const values = series.map(([name, value]) => [name, shown && value(shown) !== null ? say(value(shown)) : "–"])
  const when = shown ? clock(true)(data[0][i]) : ""
  const show = n => plot.current?.setCursor(n === null ? { left: -10, top: -10 } : { left: plot.current.valToPos(data[0][n], "x"), top: 10 }, true, true)
  const keys = e => {
    const filled = points.map((_, n) => n).filter(n => data.slice(1).some(values => values[n] !== null)), here = filled.findLastIndex(n => n <= i) // gaps are passed over
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, PageUp: here - 10, PageDown: here + 10, Home: 0, End: filled.length - 1 }[e.key]
    if (e.key === "Escape") show(null)
    else if (to !== undefined) { if (filled.length) show(filled[Math.max(0, Math.min(filled.length - 1, to))]); e.preventDefault() }
  }
  return html`<div class="chart"><p class="legend">${values.map(([name, text], n) => html`<span key=${name}><i class=${"dot c-" + series[n][2]}></i>${name} <b>${text}</b></span>`)}<span class="when">${at === null ? "now" : when}</span></p>
    ${some ? html`<div key="plot" ref=${frame} class="plot" role="slider" tabindex="0" aria-label=${label} aria-valuemin="0" aria-valuemax=${points.length - 1} aria-valuenow=${i} aria-valuetext=${`${when}: ${values.map(v => v.join(" ")).join(", ")}`} onKeyDown=${keys} onBlur=${() => show(null)}></div>`
      : html`<p key="none" class="plot none">The server begins to look when it starts.<br />The line grows by a point every ten seconds.</p>`}
    ${failed && html`<p class="dim">${failed}</p>`}</div>`
}
