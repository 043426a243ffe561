import { html, useEffect, useState } from "../vendor/preact-htm.js"
import { get } from "../api.js"
import { may, me, namespace, offers, pulse, unreplaced, useLoad, useStore } from "../live.js"
import { Chart } from "../chart.js"
import { Chip, Empty, Field, Loaded, number, plural, rate, Section, shortID, Since, span, Table, Time, to, visible } from "../ui.js"

function Tile({ name, value, note, href, bad, calm }) {
  const inner = html`<span class="name">${name}</span><span class="value">${value}</span><span class="note">${note ?? ""}</span>`
  const kind = "tile" + (bad ? " bad" : "") + (calm ? " calm" : "")
  return href ? html`<a class=${kind} href=${href}>${inner}</a>` : html`<div class=${kind}>${inner}</div>`
}

// warnings are what somebody should look at, the worst first: [key, text, where to look, link, whether work stands still].
function warnings(now, queues, checks, some, lost) {
  const list = [], are = n => n === 1 ? "is" : "are", health = [to(["health"]), "See the health page"], workers = [to(["workers"]), "See the workers"], usedUp = now.gates_used_up ?? []
  if (now.partitions_silent) list.push(["silent", `${plural(now.partitions_silent, "partition")} of the store ${now.partitions_silent === 1 ? "does" : "do"} not answer.`, ...health, true])
  if (now.partitions_frozen) list.push(["frozen", `${plural(now.partitions_frozen, "partition")} ${are(now.partitions_frozen)} frozen and refuse every call.`, ...health, true])
  if (now.partitions_overdue) list.push(["overdue", `No process runs the timers of ${plural(now.partitions_overdue, "partition")}: delays and timeouts come late.`, ...health, true])
  if (!some && now.waiting && !now.workers && now.partitions) list.push(["nobody", `${plural(now.waiting, "execution")} ${now.waiting === 1 ? "waits" : "wait"} and no worker runs.`, ...workers, true])
  for (const c of checks) if (c.status === "fail") list.push([c.check + c.node, `${c.check}: ${c.found}.`, ...health, true])
  for (const g of usedUp.slice(0, 3)) list.push(["used " + g.gate, `The budget ${g.gate} is used up: ${plural(g.waiting, "execution")} ${g.waiting === 1 ? "waits" : "wait"} for it.`, to(["gates"]), "See the gates"])
  if (usedUp.length > 3) list.push(["used", `${plural(usedUp.length - 3, "other budget")} ${are(usedUp.length - 3)} used up.`, to(["gates"]), "See the gates"])
  for (const c of checks.filter(c => c.status === "warn")) {
    if (c.check === "served" && !(!now.workers && now.waiting)) list.push(["served", `${c.found}.`, to(["queues"]), "See the queues"])
    else if (c.check === "gates" && !usedUp.length) list.push(["gates", `${c.found}.`, to(["gates"]), "See the gates"])
  }
  if (lost) list.push(["lost", `${plural(lost, "worker")} stopped without saying so in the last hour, and no other took ${lost === 1 ? "its" : "their"} place.`, ...workers])
  const paused = queues.filter(q => q.waiting && q.lane_state !== "active" && q.lane_state !== "draining")
  if (paused.length) list.push(["paused", `Work waits in ${plural(new Set(paused.map(q => q.namespace + " " + q.lane)).size, "lane")} that ${are(paused.length)} not open.`, to(["queues"]), "See the queues"])
  return list
}

const groupFilter = g => ({ state: "failed", kind: g.kind, category: g.category, shape: g.shape || g.key })

// Groups are failures that say the same but for numbers, names and the like: each is one thing to look at.
function Groups({ of: data, ns, reload }) {
  const replay = async g => { await (await import("./executions.js")).changeAll("replay", groupFilter(g), ns, `All executions of kind ${g.kind} that failed like this: ${g.shape}`); reload() }
  return html`<ul class="plain groups">${data.items.slice(0, 8).map(g => html`<li key=${[g.kind, g.category, g.shape].join(" ")}>
      <p class="row"><b class="num">${number(g.count)}×</b> <a href=${to(["executions"], groupFilter(g))}>${g.kind}</a> <${Chip} kind="bad">${g.category.replaceAll("_", " ")}<//> <span class="dim">last <${Time} at=${g.last_at} />${g.count > 1 ? html`, first <${Time} at=${g.first_at} />` : ""}</span>
        ${may("bulk") && may("replay") && html`<button type="button" class="small" aria-label=${`Replay ${g.count} of ${g.kind}`} onClick=${() => replay(g)}>Replay…</button>`}</p>
      <p class="bad-text">${visible(g.shape || "no message")}</p>
      ${g.examples?.length > 0 && html`<p class="dim small">For example ${g.examples.map(id => html`<a key=${id} class="mono" href=${to(["executions", id])}>${shortID(id)}</a> `)}</p>`}</li>`)}</ul>
    ${(data.more || data.items.length > 8) && html`<p class="dim">${data.items.length > 8 ? `${plural(data.items.length - 8, "smaller group")} ${data.items.length === 9 ? "is" : "are"} not shown. ` : ""}${data.more ? "Older failures are in no count. " : ""}<a href=${to(["executions"], { state: "failed" })}>All failures</a></p>`}`
}

const Recent = ({ of: data }) => html`<ul class="plain">${data.items.map(x => html`<li key=${x.id}>
  <a href=${to(["executions", x.id])}>${x.kind} ${shortID(x.id)}</a> <span class="dim"><${Time} at=${x.ended_at} /></span>
  <p>${visible(x.failure?.message || x.failure?.category || x.state)}</p></li>`)}</ul>`

const perSecond = v => `${Number.isInteger(v) ? number(v) : rate(v)}/s`

const time = t => t?.count ? html`<span><span>${span(t.p50_ms)}</span> / <span>${span(t.p99_ms)}</span></span>` : html`<span class="none">–</span>`

// Latency says how long executions waited and ran: in a table by kind, and in a chart over the last hour, of all kinds or of one.
function Latency({ of: all, ns, kind, choose }) {
  const one = useLoad(signal => kind ? get("times", { namespace: ns, kind }, signal) : null, [ns, kind], { about: kind, least: 20000 })
  const kinds = all.kinds ?? [], steps = (kind ? one.data?.steps : all.steps) ?? []
  return html`<div class="two times"><div>
      <${Field} label="Kind" kind="choice" value=${kind} onInput=${choose} options=${[["", "all kinds"], ...kinds.filter(k => k.kind).map(k => [k.kind, k.kind])]} />
      <${Chart} key=${kind} points=${steps} least=${0} say=${span} label=${`How long executions ${kind ? `of kind ${kind} ` : ""}waited and ran in the last hour`} series=${[["Ran, half", t => t.ran.count ? t.ran.p50_ms : null, "main"], ["Ran, 99 %", t => t.ran.count ? t.ran.p99_ms : null, "pause"], ["Waited, 99 %", t => t.waited.count ? t.waited.p99_ms : null, "wait"]]} /></div>
    <${Table} label="Times by kind" id=${r => r.kind} rows=${kinds.slice(0, 12)} columns=${[
      { name: "Kind", class: "head name", cell: r => r.kind ? html`<a class="clip" title=${r.kind} href=${to(["executions"], { kind: r.kind })}>${r.kind}</a>` : "others" },
      { name: "Completed", class: "num", cell: r => number(r.completed) }, { name: "Failed", class: "num", cell: r => r.failed ? html`<span class="bad-text">${number(r.failed)}</span>` : "0" },
      { name: "Waited", class: "num", title: "Waited, half / 99 %", cell: r => time(r.waited) }, { name: "Ran", class: "num", title: "Ran, half / 99 %", cell: r => time(r.ran) }]} /></div>`
}

const none = error => { if (error.status === 404 || error.status === 405) return null; throw error }

export default function Overview() {
  const live = useStore(pulse), who = useStore(me), ns = useStore(namespace), some = !!who.namespaces
  const [history, setHistory] = useState([])
  const first = useLoad(signal => get("overview", {}, signal), [], { live: false })
  useEffect(() => { if (first.data) setHistory(first.data.history) }, [first.data])
  useEffect(() => { // what comes while the page is open continues the history
    const now = live.now
    if (!now || who.namespaces) return
    setHistory(h => h.length && Date.parse(now.at) - Date.parse(h[h.length - 1].at) < 8500 ? h : [...h, now].slice(-360))
  }, [live.now])
  const failed = useLoad(async signal => {
    const since = new Date(Math.floor(Date.now() / 60000) * 60000 - 86400000).toISOString()
    const groups = offers(/^(list|get|read)?failures$/i) ? await get("failures", { namespace: ns, since }, signal).catch(none) : null
    return { groups, ...groups ?? await get("executions", { state: ["failed", "expired"], newest: true, limit: 8, namespace: ns, since }, signal) }
  }, [ns], { least: 5000 })
  const times = useLoad(signal => offers(/^(list|get|read)?times$/i) ? get("times", { namespace: ns, by_kind: true }, signal).catch(none) : null, [ns], { least: 20000 }) // a minute is counted when it is over
  const [kind, choose] = useState("")
  const doctor = useLoad(signal => may("examine") ? get("doctor", {}, signal).then(d => ({ checks: d.checks.filter(c => c.status === "fail" || c.status === "warn") }), () => ({ checks: [] })) : { checks: [] }, [], { live: false, least: 20000 })
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) doctor.again() }, 60000)
    return () => clearInterval(timer)
  }, [])
  const [late, setLate] = useState(false) // what the doctor found and what failed move all that is below: they are waited for, but not for long
  useEffect(() => { const t = setTimeout(() => setLate(true), 1000); return () => clearTimeout(t) }, [])
  const now = live.now ?? first.data?.now, queues = (live.now ? live.queues : first.data?.queues) ?? []
  const workers = useLoad(signal => now?.workers_lost && may("listWorkers") ? get("workers", {}, signal) : null, [now?.workers_lost], { live: false })
  if (!now || !(doctor.data && (failed.data || failed.error)) && !late) return html`<div><h1>Overview</h1><${Loaded} of=${first}>${() => null}<//></div>`
  const lost = workers.data ? unreplaced(workers.data.items).length : 0, replaced = now.workers_lost - lost
  const list = warnings(now, queues, doctor.data?.checks ?? [], some, lost)
  const groups = failed.data?.groups, broken = groups?.items.reduce((n, g) => n + g.count, 0), asked = ns && ns !== "*" ? ` of ${visible(ns)}` : ""
  const full = !some && now.slots > 0 && now.active >= now.slots
  return html`<div><h1>Overview</h1>
    <div role="status">${list.length > 0 && html`<div class=${"notice warn" + (list.some(w => w[4]) ? " alarm" : "")}><ul>${list.map(([key, text, href, link]) => html`<li key=${key}>${visible(text)} <a href=${href}>${link}</a></li>`)}</ul></div>`}</div>
    ${some && html`<p class="lead">You see what belongs to the namespace ${visible(ns || who.namespaces[0])}.</p>`}
    <div class="tiles">
      ${!some && html`<${Tile} name="Failing" value=${`${rate(now.failed_per_s)}/s`} note=${broken ? html`<span class="bad-text">${groups.more && "over "}${number(broken)}${asked} in 24 h</span>` : "failed or expired"} bad=${now.failed_per_s > 0} calm=${!now.failed_per_s} href=${to(["executions"], { state: "failed" })} />`}
      <${Tile} name="Waiting" value=${number(now.waiting)} note=${now.oldest_at ? html`oldest <${Since} at=${now.oldest_at} />` : "nothing waits"} calm=${!now.waiting} href=${to(["executions"], { state: "waiting", newest: "false" })} />
      ${!some && html`<${Tile} name="Running" value=${number(now.active)} note=${full ? `all ${plural(now.slots, "slot")}` : `of ${plural(now.slots, "slot")}`} calm=${!now.active} href=${to(["executions"], { state: "active" })} />
      <${Tile} name="Completed" value=${`${rate(now.completed_per_s)}/s`} note=${`${number(now.ended)} ended`} calm=${!now.completed_per_s} href=${to(["executions"], { state: "completed" })} />
      <${Tile} name="Suspended" value=${number(now.suspended)} note="wait for an answer" calm=${!now.suspended} href=${to(["approvals"])} />
      <${Tile} name="Delayed" value=${number(now.delayed)} note=${now.waiting_children ? `${number(now.waiting_children)} wait for others` : "and retries"} calm=${!now.delayed} href=${to(["executions"], { state: "delayed", newest: "false" })} />
      <${Tile} name="Held" value=${number(now.held)} note=${now.closed ? `gates close ${plural(now.closed, "queue")}` : "by people"} calm=${!now.held && !now.closed} href=${now.closed && !now.held ? to(["gates"]) : to(["executions"], { state: "held" })} />
      <${Tile} name="Workers" value=${number(now.workers)} note=${lost ? `${number(lost)} lost` : replaced > 0 && workers.data ? `${number(replaced)} replaced` : "alive"} bad=${lost > 0 || !now.workers && now.waiting > 0} href=${to(["workers"])} />`}
    </div>
    ${!some && html`<div class="two hour">
      <${Section} id="throughput" title="Throughput" note="last hour"><${Chart} points=${history} group="hour" least=${0.5} say=${perSecond} series=${[["Completed", p => p.completed_per_s, "good"], ["Failed", p => p.failed_per_s, "bad"]]} label="Completed and failed executions a second in the last hour" /><//>
      <${Section} id="load" title="Load" note="executions, last hour"><${Chart} points=${history} group="hour" series=${[["Waiting", p => p.waiting, "wait"], ["Running", p => p.active, "main"]]} label="Waiting and running executions in the last hour" /><//></div>`}
    <div class="two">
    <${Section} id="failures" title="Failures" note=${failed.data?.groups ? "of the last 24 hours, those alike together" : "of the last 24 hours"} actions=${html`<a href=${to(["executions"], { state: "failed" })}>All failures</a>`}>
      <${Loaded} of=${failed}>${data => data.items.length === 0 ? html`<${Empty} title="Nothing has failed"><p>What fails for good is listed here, with what to do next.</p><//>` : data.groups ? html`<${Groups} of=${data} ns=${ns} reload=${failed.reload} />` : html`<${Recent} of=${data} />`}<//><//>
    <${Section} id="queues" title="Queues" note="the longest first" actions=${html`<a href=${to(["queues"])}>All queues</a>`}>
      ${queues.length === 0 ? html`<${Empty} title="No queues yet"><p>A queue appears with the first execution of a kind. Submit one on the page <a href=${to(["executions"])}>Executions</a>, or from your program.</p><//>`
        : html`<${Table} label="Queues" id=${q => [q.namespace, q.lane, q.kind, q.capabilities].join(" ")} rows=${queues.slice(0, 10)} columns=${[
          { name: "Kind", class: "head name", cell: q => html`<a class="clip" title=${q.kind} href=${to(["executions"], { kind: q.kind, lane: q.lane })}>${q.kind}</a>${q.capabilities?.length > 0 && html`<div class="needs">needs ${q.capabilities.map(visible).join(", ")}</div>`}` },
          ...(new Set(queues.map(q => q.namespace)).size > 1 ? [{ name: "Namespace", cell: q => q.namespace }] : []),
          { name: "Lane", cell: q => html`<span class="clip short" title=${q.lane}>${q.lane}</span> ${q.lane_state !== "active" && html`<${Chip} kind="warn">${q.lane_state}<//>`}` },
          { name: "Waiting", class: "num", cell: q => number(q.waiting) },
          { name: "Oldest", class: "num", cell: q => html`<${Since} at=${q.oldest_at} />` },
          { name: "Stored", class: "num wider", cell: q => number(q.stored) }]} />`}<//></div>
    ${times.data?.kinds?.length > 0 && html`<${Section} id="times" title="How long it takes" note="last hour, up to the last full minute: half of the executions took at most so long, and 99 of 100"><${Latency} of=${times.data} ns=${ns} kind=${kind} choose=${choose} /><//>`}</div>`
}
