import { html, useEffect, useState } from "../vendor/preact-htm.js"
import { get } from "../api.js"
import { may, me, namespace, pulse, useLoad, useStore } from "../live.js"
import { Chart } from "../chart.js"
import { Bound, Chip, Empty, Loaded, number, plural, rate, Section, shortID, Since, Table, Time, to, visible } from "../ui.js"

function Tile({ name, value, note, href, bad }) {
  const inner = html`<span class="name">${name}</span><span class="value">${value}</span><span class="note">${note ?? ""}</span>`
  return href ? html`<a class=${"tile" + (bad ? " bad" : "")} href=${href}>${inner}</a>` : html`<div class=${"tile" + (bad ? " bad" : "")}>${inner}</div>`
}

// warnings are what somebody should look at, the worst first: [key, text, where to look, link].
function warnings(now, queues, checks, some) {
  const list = [], are = n => n === 1 ? "is" : "are", health = [to(["health"]), "See the health page"]
  if (now.partitions_silent) list.push(["silent", `${plural(now.partitions_silent, "partition")} of the store ${now.partitions_silent === 1 ? "does" : "do"} not answer.`, ...health])
  if (now.partitions_frozen) list.push(["frozen", `${plural(now.partitions_frozen, "partition")} ${are(now.partitions_frozen)} frozen and refuse every call.`, ...health])
  if (now.partitions_overdue) list.push(["overdue", `No process runs the timers of ${plural(now.partitions_overdue, "partition")}: delays and timeouts come late.`, ...health])
  if (!some && now.waiting && !now.workers && now.partitions) list.push(["nobody", `${plural(now.waiting, "execution")} ${now.waiting === 1 ? "waits" : "wait"} and no worker runs.`, to(["workers"]), "See the workers"])
  if (now.workers_lost) list.push(["lost", `${plural(now.workers_lost, "worker")} stopped without saying so in the last hour.`, to(["workers"]), "See the workers"])
  for (const c of checks) {
    if (c.check === "served" && !(!now.workers && now.waiting)) list.push(["served", `${c.found}.`, to(["queues"]), "See the queues"])
    else if (c.check === "gates" && c.status === "warn") list.push(["gates", `${c.found}.`, to(["gates"]), "See the gates"])
    else if (c.status === "fail") list.push([c.check + c.node, `${c.check}: ${c.found}.`, ...health])
  }
  const paused = queues.filter(q => q.waiting && q.lane_state !== "active" && q.lane_state !== "draining")
  if (paused.length) list.push(["paused", `Work waits in ${plural(new Set(paused.map(q => q.namespace + " " + q.lane)).size, "lane")} that ${are(paused.length)} not open.`, to(["queues"]), "See the queues"])
  return list
}

export default function Overview() {
  const live = useStore(pulse), who = useStore(me), ns = useStore(namespace)
  const [history, setHistory] = useState([])
  const first = useLoad(signal => get("overview", {}, signal), [], { live: false })
  useEffect(() => { if (first.data) setHistory(first.data.history) }, [first.data])
  useEffect(() => { // what comes while the page is open continues the history
    const now = live.now
    if (!now || who.namespaces) return
    setHistory(h => h.length && Date.parse(now.at) - Date.parse(h[h.length - 1].at) < 9500 ? h : [...h, now].slice(-360))
  }, [live.now])
  const failed = useLoad(signal => get("executions", { state: ["failed", "expired"], newest: true, limit: 8, namespace: ns, since: new Date(Date.now() - 86400000).toISOString() }, signal), [ns])
  const doctor = useLoad(signal => may("examine") ? get("doctor", {}, signal).then(d => ({ checks: d.checks.filter(c => c.status === "fail" || c.status === "warn") }), () => ({ checks: [] })) : { checks: [] }, [], { live: false })
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) doctor.reload() }, 60000)
    return () => clearInterval(timer)
  }, [])
  const [late, setLate] = useState(false) // what the doctor found is above all else: it is waited for, but not for long
  useEffect(() => { const t = setTimeout(() => setLate(true), 1000); return () => clearTimeout(t) }, [])
  const now = live.now ?? first.data?.now, queues = (live.now ? live.queues : first.data?.queues) ?? []
  if (!now || !doctor.data && !late) return html`<div><h1>Overview</h1><${Loaded} of=${first}>${() => null}<//></div>`
  const some = !!who.namespaces
  return html`<div><h1>Overview</h1>
    <div role="status">${warnings(now, queues, doctor.data?.checks ?? [], some).map(([key, text, href, link]) => html`<div key=${key} class="notice warn"><p>${visible(text)} <a href=${href}>${link}</a></p></div>`)}</div>
    ${some && html`<${Bound} what="counts of what runs, of workers and of rates belong" />`}
    <div class="tiles">
      <${Tile} name="Waiting" value=${number(now.waiting)} note=${now.oldest_at ? html`oldest <${Since} at=${now.oldest_at} />` : "nothing waits"} href=${to(["executions"], { state: "waiting" })} />
      ${!some && html`<${Tile} name="Running" value=${number(now.active)} note=${`of ${plural(now.slots, "slot")}`} href=${to(["executions"], { state: "active" })} />
      <${Tile} name="Completed" value=${`${rate(now.completed_per_s)}/s`} note=${`${number(now.ended)} ended in all`} href=${to(["executions"], { state: "completed", newest: true })} />
      <${Tile} name="Failing" value=${`${rate(now.failed_per_s)}/s`} note="failed or expired" bad=${now.failed_per_s > 0} href=${to(["executions"], { state: "failed", newest: true })} />
      <${Tile} name="Suspended" value=${number(now.suspended)} note="wait for an answer" href=${to(["approvals"])} />
      <${Tile} name="Delayed" value=${number(now.delayed)} note=${now.waiting_children ? `${number(now.waiting_children)} wait for others` : "and retries"} href=${to(["executions"], { state: "delayed" })} />
      <${Tile} name="Held" value=${number(now.held)} note=${now.closed ? `${plural(now.closed, "queue")} kept back` : "by operators"} href=${to(["executions"], { state: "held" })} />
      <${Tile} name="Workers" value=${number(now.workers)} note=${now.workers_lost ? `${number(now.workers_lost)} lost` : "alive"} bad=${now.workers_lost > 0} href=${to(["workers"])} />`}
    </div>
    ${!some && html`<div class="two">
      <${Section} id="throughput" title="Throughput" note="a second, last hour"><${Chart} points=${history} series=${[["Completed", p => p.completed_per_s, "good"], ["Failed", p => p.failed_per_s, "bad"]]} label="Completed and failed executions a second in the last hour" /><//>
      <${Section} id="load" title="Load" note="executions, last hour"><${Chart} points=${history} series=${[["Waiting", p => p.waiting, "wait"], ["Running", p => p.active, "main"]]} label="Waiting and running executions in the last hour" /><//></div>`}
    <div class="two">
    <${Section} id="queues" title="Queues" note="the longest first" actions=${html`<a href=${to(["queues"])}>All queues</a>`}>
      ${queues.length === 0 ? html`<${Empty} title="No queues yet"><p>A queue appears with the first execution of a kind. Submit one on the page <a href=${to(["executions"])}>Executions</a>, or from your program.</p><//>`
        : html`<${Table} label="Queues" id=${q => [q.namespace, q.lane, q.kind, q.capabilities].join(" ")} rows=${queues.slice(0, 10)} columns=${[
          { name: "Kind", cell: q => html`<a href=${to(["executions"], { kind: q.kind, lane: q.lane })}>${q.kind}</a>` },
          ...(new Set(queues.map(q => q.namespace)).size > 1 ? [{ name: "Namespace", cell: q => q.namespace }] : []),
          { name: "Lane", cell: q => html`${q.lane} ${q.lane_state !== "active" && html`<${Chip} kind="warn">${q.lane_state}<//>`}` },
          { name: "Waiting", class: "num", cell: q => number(q.waiting) },
          { name: "Oldest", class: "num", cell: q => html`<${Since} at=${q.oldest_at} />` },
          { name: "Stored", class: "num wide", cell: q => number(q.stored) }]} />`}<//>
    <${Section} id="failures" title="Recent failures" note="of the last 24 hours" actions=${html`<a href=${to(["executions"], { state: "failed", newest: true })}>All failures</a>`}>
      <${Loaded} of=${failed}>${data => data.items.length === 0 ? html`<${Empty} title="Nothing has failed"><p>What fails for good is listed here, with what to do next.</p><//>` : html`<ul class="plain">${data.items.map(x => html`<li key=${x.id}>
        <a href=${to(["executions", x.id])}>${x.kind} ${shortID(x.id)}</a> <span class="dim"><${Time} at=${x.ended_at} /></span>
        <p class="clip">${visible(x.failure?.message || x.failure?.category || x.state)}</p></li>`)}</ul>`}<//><//></div></div>`
}
