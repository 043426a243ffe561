import { html, useEffect, useState } from "../vendor/preact-htm.js"
import { get, post } from "../api.js"
import { loadAll, may, me, namespace, pulse, useLoad, useSeveral, useStore } from "../live.js"
import { isEnded } from "./execution.js"
import { act, asJSON, become, Chip, Empty, Failure, Field, go, Loaded, Menu, number, open, plural, shortID, Since, State, stateWord, Table, Tags, Time, to, useDraft, visible } from "../ui.js"

export const states = ["waiting", "active", "delayed", "suspended", "held", "waiting_children", "waiting_gate", "completed", "failed", "cancelled", "expired", "skipped"]
const pageSize = 100
const others = ["flow", "held_by", "category", "shape", "version"] // filters that other pages lead to
const times = [["", "any time"], ["3600", "last hour"], ["86400", "last 24 hours"], ["604800", "last 7 days"]]

// filterOf reads the filter from the address.
function filterOf(query) {
  const f = { state: query.getAll("state"), newest: query.get("newest") !== "false" }
  for (const name of ["kind", "lane", "tag", "error", "within", ...others]) f[name] = query.get(name) || ""
  return f
}

// asked is the filter as the API takes it.
export function asked(f, ns) {
  const { within, newest, tag, ...rest } = f
  const query = { ...rest, namespace: ns, tag: tag ? tag.split(",").map(t => t.trim()).filter(Boolean) : [], newest }
  if (within) query.since = new Date(Math.floor((Date.now() - within * 1000) / 1000) * 1000).toISOString()
  return query
}

const counted = 50 // so many of a state are counted by listing them, if the store has no index that counts

// keeps says whether the store keeps what a filter asks for in the order of creation, and so can count it.
const keeps = (index, f) => !!index && !index.building && (f.tag ? !f.tag.includes(",") && !!index.tags?.some(t => t.ready && f.tag.trim().startsWith(t.key + "=")) : index.all)

// useCounts counts what the filter matches in each state: [number, whether there are more].
function useCounts(f, ns, page, index) {
  const { now } = useStore(pulse), who = useStore(me)
  const { state, newest, ...rest } = f, key = JSON.stringify(rest) + ns
  const whole = may("countExecutions") && keeps(index, f) && !f.error && others.every(k => !f[k])
  const all = page && !page.cursor && !state.length // then the list itself has them
  const bare = ns === "*" && !who.namespaces && Object.values(rest).every(v => !v)
  const known = now && bare ? { waiting: now.waiting, active: now.active, delayed: now.delayed, suspended: now.suspended, held: now.held, waiting_children: now.waiting_children } : {}
  const ask = useLoad(async signal => {
    if (all || !page) return {}
    if (whole) {
      const { newest, ...query } = asked({ ...rest, newest: true }, ns), got = await get("executions:count", query, signal)
      return Object.fromEntries(states.map(s => [s, [got.states[s] ?? 0, !!got.more]]))
    }
    const out = {}, left = states.filter(s => known[s] === undefined), work = async () => {
      for (let s = left.shift(); s; s = left.shift()) {
        const got = await get("executions", { ...asked({ ...rest, state: [s], newest: true }, ns), limit: counted }, signal)
        out[s] = [got.items.length, !!got.next_cursor]
      }
    }
    await Promise.all([work(), work()])
    return out
  }, [key, !page, all, whole], { live: false, about: key, least: 20000 })
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) ask.again() }, 30000)
    return () => clearInterval(timer)
  }, [])
  if (all) return Object.fromEntries(states.map(s => [s, [page.items.filter(x => stateOf(x) === s).length, false]]))
  return { ...ask.data, ...Object.fromEntries(Object.entries(known).map(([s, n]) => [s, [n, false]])) }
}

const stateOf = x => x.state === "waiting" && x.blocking_reason === "held_by_operator" ? "held" : x.state

const brief = { waiting_children: "for others", waiting_gate: "for a gate" }
const few = n => n < 100000 ? number(n) : n < 1e6 ? `${Math.round(n / 1000)}k` : `${(n / 1e6).toFixed(1)}M`

function Filters({ f, set, counts, ns, ordered }) {
  const [draft, change] = useDraft(f, typed => set(typed, become))
  const [shown, show] = useState(false) // on a phone they take the room of the list
  const queues = useLoad(signal => may("listQueues") ? get("queues", { namespace: ns }, signal) : { items: [] }, [ns], { live: false })
  const names = what => [...new Set((queues.data?.items ?? []).map(q => q[what]))].sort()
  const used = ["kind", "lane", "tag", "error", "within"].filter(n => f[n]).length
  const flip = state => { // of what the address says: it is new before the page is drawn again, and people click fast
    const on = filterOf(new URLSearchParams(location.hash.split("?")[1])).state
    set({ ...draft, state: on.includes(state) ? on.filter(s => s !== state) : [...on, state] })
  }
  return html`<form class="filters slim" onSubmit=${e => { e.preventDefault(); set(draft) }} aria-label="Filters">
    <button type="button" class="unfold" aria-expanded=${shown} aria-controls="fields" onClick=${() => show(!shown)}>${used ? `Filters: ${used}` : "Filters"} <span aria-hidden="true">▾</span></button>
    <div class=${"fields" + (shown ? " shown" : "")} id="fields"><${Field} label="Kind" value=${draft.kind} onInput=${change("kind")} maxlength="64" list="kinds" placeholder="any" />
    <${Field} label="Lane" value=${draft.lane} onInput=${change("lane")} maxlength="64" list="lanes" placeholder="any" />
    <${Field} label="Tags" value=${draft.tag} onInput=${change("tag")} placeholder="key=value, …" />
    <${Field} label="Error message" value=${draft.error} onInput=${change("error")} placeholder="contains" />
    <${Field} label="Time" kind="choice" options=${times} value=${draft.within} onInput=${v => set({ ...draft, within: v })} />
    <${Field} label="Order" kind="choice" options=${[["true", ordered ? "newest first" : "newest per state"], ["false", "next first"]]} value=${String(draft.newest)} onInput=${v => set({ ...draft, newest: v === "true" })} /></div>
    <datalist id="kinds">${names("kind").map(k => html`<option key=${k} value=${k} />`)}</datalist><datalist id="lanes">${names("lane").map(l => html`<option key=${l} value=${l} />`)}</datalist>
    <fieldset><legend class="hidden">States</legend><div class="facets">${states.map(s => html`<button key=${s} type="button" class=${"facet" + (draft.state.includes(s) ? " on" : counts[s]?.[0] === 0 ? " zero" : "")} aria-pressed=${draft.state.includes(s)}
      data-count=${counts[s] ? `${few(counts[s][0])}${counts[s][1] ? "+" : ""}` : "·"} onClick=${() => flip(s)}>${brief[s] ?? stateWord(s)}</button>`)}</div></fieldset></form>`
}

// Views are filters with a name, kept in this browser: each is the part of the address behind the question mark.
const viewsKey = "flowfabric.views", mostViews = 30
const readViews = () => {
  try { return JSON.parse(localStorage.getItem(viewsKey) || "[]").filter(v => typeof v?.name === "string" && typeof v.query === "string") } catch { return [] }
}
const usual = [["Failed in the last hour", "state=failed&state=expired&within=3600"], ["Running now", "state=active"], ["What waits, the next first", "state=waiting&newest=false"], ["Held by people", "state=held"]].map(([name, query]) => ({ name, query }))

function Views({ query }) {
  const [own, set] = useState(readViews), here = query.toString()
  const keep = next => { localStorage.setItem(viewsKey, JSON.stringify(next)); set(next) }
  const known = [...own, ...usual], current = known.find(v => v.query === here)
  return html`<${Menu} label=${current ? `View: ${visible(current.name)}` : "Views"} items=${[
    ...known.map(v => ({ label: visible(v.name), run: () => { location.hash = "#/executions?" + v.query } })),
    here && !current && { label: "Save this view…", run: () => act({ title: "Save this view", text: "Its filters get a name. It is kept in this browser; to pass it on, copy the address of the page.", action: "Save", reason: false, fields: [{ name: "name", label: "Name", required: true, maxlength: 40 }],
      run: ({ name }) => {
        const next = [...own.filter(v => v.name !== name.trim()), { name: name.trim(), query: here }]
        if (!name.trim()) throw new Error("Name: give the view a name of 1 to 40 characters.")
        if (next.length > mostViews) throw new Error(`Name: ${mostViews} views are kept. Remove one first.`)
        keep(next)
      }, done: "Saved." }) },
    own.includes(current) && { label: `Remove “${visible(current.name)}”`, danger: true, run: () => keep(own.filter(v => v !== current)) }]} />`
}

// sayFilter is a filter in words.
export function sayFilter(f) {
  const parts = []
  if (f.kind) parts.push(`of kind ${f.kind}`)
  if (f.lane) parts.push(`in lane ${f.lane}`)
  if (f.state.length) parts.push(`that are ${f.state.map(stateWord).join(" or ")}`)
  if (f.tag) parts.push(`tagged ${f.tag}`)
  if (f.error) parts.push(`whose failure says “${f.error}”`)
  if (f.within) parts.push(`of the ${times.find(([v]) => v === f.within)?.[1] ?? "time chosen"}`)
  if (f.category) parts.push(`that failed as ${f.category}`)
  if (f.flow) parts.push(`of flow ${f.flow}`)
  if (f.held_by) parts.push(`held by ${f.held_by}`)
  if (f.shape) parts.push(`whose failure is like “${f.shape}”`)
  if (f.version) parts.push(`of version ${f.version}`)
  return parts.length ? "All executions " + parts.join(", ") : "All executions of the namespace"
}

const bulkActions = {
  cancel: { label: "Cancel", verb: "be cancelled", danger: true, open: true }, replay: { label: "Replay", verb: "run again", ended: true }, run_now: { label: "Run now", verb: "run now", open: true },
  hold: { label: "Hold", verb: "be held", open: true }, unhold: { label: "Let go on", verb: "go on", open: true }, priority: { label: "Set the priority", verb: "get another priority", priority: true, open: true },
  purge: { label: "Purge", verb: "be removed for good", danger: true, need: "purge", ended: true },
}

// Bulk counts what an action would be done to, and does it while it tells how far it is.
function Bulk({ action, query, what, close, hold }) {
  const a = bulkActions[action]
  const [count, setCount] = useState(null)
  const [values, set] = useState({ reason: "", priority: "0" })
  const [run, setRun] = useState(null)
  const [error, setError] = useState(null)
  const [stop] = useState({ now: false })
  const body = extra => ({ action, reason: values.reason, priority: action === "priority" && values.priority !== "" ? Number(values.priority) : undefined, ...extra })
  useEffect(() => {
    let here = true
    const look = async () => {
      let matched = 0, cursor = ""
      do {
        const r = await post("executions:bulk", body({ dry_run: true, cursor: cursor || undefined }), query)
        matched += r.matched
        cursor = r.cursor || ""
        if (!here) return
        setCount({ matched, more: !!cursor })
        setError(null)
      } while (cursor)
    }
    setCount(null)
    const t = setTimeout(() => look().catch(e => here && setError(e)), 200) // a priority is typed digit by digit
    return () => { here = false; clearTimeout(t) }
  }, [values.priority])
  useEffect(() => () => { stop.now = true }, [])
  const start = async e => {
    e.preventDefault()
    setError(null)
    hold(true)
    const sum = { done: 0, skipped: 0, failed: 0, errors: [] }
    setRun({ ...sum, busy: true })
    try {
      let cursor = ""
      do {
        const r = await post("executions:bulk", body({ limit: 500, cursor: cursor || undefined }), query)
        sum.done += r.done
        sum.skipped += r.skipped
        sum.failed += r.failed
        sum.errors.push(...(r.errors || []))
        cursor = r.cursor || ""
        setRun({ ...sum, busy: !!cursor && !stop.now })
      } while (cursor && !stop.now)
      setRun({ ...sum, busy: false, over: true, stopped: stop.now && !!cursor })
      hold(false)
    } catch (problem) {
      hold(false)
      setRun({ ...sum, busy: false })
      setError(problem)
    }
  }
  const n = count?.matched ?? 0
  return html`<form onSubmit=${start}><h2 id="dialog-title">${a.label}: ${count ? plural(n, "execution") : "counting…"}</h2>
    <div class="say"><p>${what}. ${!count ? "Counting…" : n === 0 ? "Nothing matches, so there is nothing to do." : html`<b>${plural(n, "execution")}</b> ${count.more ? "so far " : ""}match and will ${a.verb}. Those to which it does not apply, because of their state, are left as they are.`}</p></div>
    ${a.priority && html`<${Field} label="Priority" kind="number" min="0" max="9000" required value=${values.priority} onInput=${v => set({ ...values, priority: v })} hint="0..9000, higher first" />`}
    ${!run?.over && html`<${Field} label="Reason" value=${values.reason} onInput=${v => set({ ...values, reason: v })} hint="Noted with your name in each history." maxlength="500" />`}
    ${run && html`<div role="status"><progress max=${Math.max(n, 1)} value=${run.done + run.skipped + run.failed} aria-label="Progress"></progress>
      <p>${plural(run.done, "execution")} done${run.skipped ? `, ${number(run.skipped)} left as they are` : ""}${run.failed ? `, ${number(run.failed)} failed` : ""}${run.stopped ? ". Stopped." : ""}</p>
      ${run.errors.slice(0, 10).map(e => html`<p key=${e} class="dim clip">${visible(e)}</p>`)}</div>`}
    <${Failure} error=${error} />
    <div class="buttons">${run?.over ? html`<button type="button" class="main" onClick=${() => close(true)}>Close</button>`
      : run?.busy ? html`<button type="button" onClick=${() => { stop.now = true }}>Stop</button>`
      : html`<button type="button" class="quiet" onClick=${() => close()}>Leave it</button><button type="submit" class=${a.danger ? "danger" : "main"} disabled=${!count || count.more || n === 0}>${a.label} ${number(n)}</button>`}</div></form>`
}

// changeAll asks about an action on all that a filter matches, and does it.
export const changeAll = (action, f, ns, what) => open(Bulk, { action, query: asked(f, ns), what })

function submitNew(ns, then) {
  act({ title: "Submit an execution", action: "Submit", reason: false, fields: [
    { name: "kind", label: "Kind", required: true, maxlength: 64, hint: "A worker must have a handler for it." },
    { name: "input", label: "Input", kind: "area", rows: 6, value: "{}", hint: "JSON, at most 1 MiB" },
    { name: "lane", label: "Lane", maxlength: 64, hint: "Default: default" },
    { name: "priority", label: "Priority", kind: "number", min: 0, max: 9000, value: "0" },
    { name: "delay", label: "Delay in seconds", kind: "number", min: 0, value: "0" },
    { name: "debounce", label: "Debounce key", maxlength: 256, hint: "With one, a further submit replaces the input of an execution that no worker was given yet, and delays it again. It needs a delay." },
    { name: "unique", label: "Unique key", maxlength: 256, hint: "With one, an execution that has the key and has not ended is shown instead of a second one." },
  ], run: v => post("executions", { kind: v.kind.trim(), input: asJSON(v.input, "The input"), lane: v.lane.trim() || undefined, namespace: ns && ns !== "*" ? ns : undefined,
    priority: Number(v.priority) || undefined, [v.debounce.trim() ? "debounce_ms" : "delay_ms"]: Number(v.delay) * 1000 || undefined, unique_key: v.unique.trim() || undefined, debounce_key: v.debounce.trim() || undefined }),
    done: r => r.replaced ? "Input replaced." : r.duplicate ? "That execution existed already." : "Submitted.", then: r => { then?.(); go(["executions", r.id]) } })
}

export default function Executions({ query }) {
  const ns = useStore(namespace)
  const f = filterOf(query), key = JSON.stringify(f)
  const [want, setWant] = useState(pageSize)
  const [chosen, choose] = useState(new Set())
  useEffect(() => { setWant(pageSize); choose(new Set()) }, [key, ns])
  const index = useLoad(signal => may("getIndex") ? get("index", {}, signal).catch(() => null) : null, [], { live: false })
  const set = (next, move = go) => move(["executions"], { ...next, newest: next.newest ? "" : "false" })
  const page = useLoad(signal => loadAll("executions", { ...asked(f, ns), limit: pageSize }, want, signal), [key, ns, want], { live: want <= 1000, about: key + ns })
  const picked = (page.data?.items ?? []).filter(x => chosen.has(x.id))
  const bulk = async action => { if (await open(Bulk, { action, query: asked(f, ns), what: sayFilter(f) })) page.reload() }
  // The rows that were picked are few: each is changed on its own.
  const each = (action, label, verb, run, danger) => act({ title: `${label}: ${plural(picked.length, "execution")}`, text: `${plural(picked.length, "chosen execution")} will ${verb}.`, action: label, danger,
    run: async v => {
      let done = 0
      const failed = []
      for (const x of picked) {
        try { await run(x, v); done++ } catch (e) { failed.push(`${shortID(x.id)}: ${e.message}`) }
      }
      if (done === 0 && failed.length) throw new Error(failed.slice(0, 3).join("; "))
      return { done, failed }
    }, done: r => `${plural(r.done, "execution")} done${r.failed.length ? `; ${plural(r.failed.length, "other")} refused: ${r.failed[0]}` : ""}.`, then: () => { choose(new Set()); page.reload() } })
  const one = name => (x, v) => post(`executions/${x.id}:${name}`, { reason: v.reason })
  const several = useSeveral()
  const canBulk = may("bulk"), counts = useCounts(f, ns, page.data, index.data)
  return html`<div><div class="title"><h1>Executions</h1><div class="actions"><${Views} query=${query} />
      ${canBulk && html`<${Menu} label="All that match" items=${Object.entries(bulkActions).filter(([, a]) => (!a.need || may(a.need)) && (!f.state.length || f.state.some(s => isEnded(s) ? a.ended : a.open))).map(([name, a]) => ({ label: `${a.label}…`, danger: a.danger, run: () => bulk(name) }))} />`}
      ${may("submit") && html`<button type="button" class="main" onClick=${() => submitNew(ns)}>Submit one</button>`}</div></div>
    <${Filters} f=${f} set=${set} counts=${counts} ns=${ns} ordered=${f.state.length === 1 || !may("getIndex") || index.loading || keeps(index.data, f)} />
    ${picked.length > 0 && html`<div class="picked" role="status"><b>${plural(picked.length, "execution")} chosen</b>
      ${may("cancel") && html`<button type="button" class="danger" onClick=${() => each("cancel", "Cancel", "be cancelled", one("cancel"), true)}>Cancel…</button>`}
      ${may("replay") && html`<button type="button" onClick=${() => each("replay", "Replay", "run again", one("replay"))}>Replay…</button>`}
      ${may("runNow") && html`<button type="button" onClick=${() => each("run-now", "Run now", "run now", one("run-now"))}>Run now…</button>`}
      ${may("hold") && html`<button type="button" onClick=${() => each("hold", "Hold", "be held", one("hold"))}>Hold…</button>`}
      <button type="button" class="quiet" onClick=${() => choose(new Set())}>Choose none</button></div>`}
    ${others.some(k => f[k]) && html`<p class="also">${others.filter(k => f[k]).map(k => html`<button key=${k} type="button" class="pill on" onClick=${() => set({ ...f, [k]: "" })} aria-label=${`Take the filter away: ${k.replace("_", " ")} ${f[k]}`}>${k.replace("_", " ")} ${visible(k === "flow" ? shortID(f[k]) : f[k])} ✕</button>`)}</p>`}
    <${Loaded} of=${page}>${data => data.items.length === 0
      ? html`<${Empty} title="No execution matches">${key === JSON.stringify(filterOf(new URLSearchParams()))
        ? html`<p>Nothing was submitted yet. Submit one here, or from your program with <code>client.Submit</code>.</p>` : html`<p>Take a filter away, or <a href="#/executions">show all</a>.</p>`}<//>`
      : html`<div><${Table} label="Executions" rows=${data.items} id=${x => x.id} chosen=${may("cancel") ? chosen : undefined} onChoose=${choose} columns=${[
        { name: "State", class: "head", cell: x => html`<${State} state=${stateOf(x)} />` },
        { name: "Kind", class: "head name", cell: x => html`<a class="clip" href=${to(["executions"], { ...f, newest: "", kind: x.kind })} title=${`${x.kind}: show only this kind`}>${x.kind}</a>` },
        { name: "Execution", class: "head", cell: x => html`<a href=${to(["executions", x.id])} class="mono" title=${x.id}>${shortID(x.id)}</a>` },
        { name: "Error or tags", class: "clip grow", cell: x => x.drift ? html`<${Chip} kind="bad">${x.drift}<//>` : x.failure ? html`<span class=${"clip" + (x.state === "skipped" ? " dim" : " bad-text")} title=${visible(x.failure.message || x.failure.category)}>${visible(x.failure.message || x.failure.category.replaceAll("_", " "))}</span>` : html`<${Tags} tags=${x.tags} short />` },
        { name: "Worker", cell: x => x.worker ? html`<span class="clip short" title=${x.worker}>${x.worker}</span>` : html`<span class="none">–</span>` },
        { name: "Lane", class: "roomy", cell: x => html`<span class="clip short" title=${x.lane}>${x.lane}</span>` },
        ...(several ? [{ name: "Namespace", cell: x => x.namespace }] : []),
        { name: "Attempts", class: "num wider", cell: x => x.attempts ? number(x.attempts) : html`<span class="none">0</span>` },
        { name: "Priority", class: "num wider", cell: x => x.priority ? number(x.priority) : html`<span class="none">0</span>` },
        { name: "Created", class: "num", cell: x => html`<${Time} at=${x.created_at} />` },
        { name: "Took", class: "num", title: "Took", cell: x => isEnded(x.state) || x.state === "active" ? html`<${Since} at=${x.started_at} until=${x.ended_at} />` : html`<span class="none">–</span>` }]} />
      <p class="foot dim">${plural(data.items.length, "execution")} shown${data.cursor ? "" : ", that is all"}.${want > 1000 ? " So many rows do not follow what changes." : ""} ${data.cursor && html`<button type="button" onClick=${() => setWant(data.items.length + (data.items.length >= 1000 ? 1000 : pageSize))} disabled=${page.loading}>${page.loading ? "Loading…" : "Show more"}</button>`}</p></div>`}<//></div>`
}
