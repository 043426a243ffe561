// What pages share to stay up to date: the overview that one stream brings, loading that repeats itself, and the time.
import { useEffect, useRef, useState } from "./vendor/preact-htm.js"
import { follow, get, Problem } from "./api.js"

// A store has one value and tells those who use it when it changes.
export function makeStore(value) {
  const users = new Set()
  return {
    get: () => value,
    set(next) { value = next; users.forEach(f => f(value)) },
    listen(f) { users.add(f); return () => users.delete(f) },
  }
}

export function useStore(store) {
  const [value, set] = useState(store.get())
  useEffect(() => { set(store.get()); return store.listen(set) }, [store])
  return value
}

// me is who looks: name, role, namespaces, operations.
export const me = makeStore(null)
export const may = operation => !!me.get() && me.get().operations.includes(operation)

// offers tells whether the API has an operation of such a name for who looks: an older server has fewer.
export const offers = name => !!me.get() && me.get().operations.some(o => name.test(o))

// namespace is the one that lists are about: "" is the default of the API, "*" all of them.
export const namespace = makeStore("")

// useSeveral tells whether lists have executions of several namespaces, so that they say which.
export const useSeveral = () => {
  const all = useStore(namespace) === "*", { queues } = useStore(pulse)
  return all && new Set(queues.map(q => q.namespace)).size > 1
}

// pulse is how the store was a moment ago, and whether the API answers.
export const pulse = makeStore({ state: "connecting", now: null, queues: [] })

// Times are compared with the clock of the server.
let skew = 0
export const serverNow = () => Date.now() + skew

// beat ticks once a second for times that are shown.
const beat = makeStore(0)
setInterval(() => { if (!document.hidden) beat.set(beat.get() + 1) }, 1000)
export const useBeat = () => useStore(beat)

// whileVisible runs something that takes a signal while the tab is in front: a browser has few connections for one host, and a tab that
// nobody sees needs none.
export function whileVisible(run) {
  let control = null
  const turn = () => {
    if (document.hidden) {
      control?.abort()
      control = null
    } else if (!control) {
      control = new AbortController()
      run(control.signal)
    }
  }
  document.addEventListener("visibilitychange", turn)
  turn()
  return () => {
    document.removeEventListener("visibilitychange", turn)
    control?.abort()
  }
}

// followPulse keeps pulse up to date.
export function followPulse() {
  return whileVisible(signal => follow("overview/events", {
    signal,
    on(name, data) {
      if (name === "sample") {
        skew = Date.parse(data.now.at) - Date.now()
        pulse.set({ state: "live", why: "", now: data.now, queues: data.queues })
      } else if (name === "away") {
        pulse.set({ ...pulse.get(), state: "away", why: data.detail })
      }
    },
    state(live) { if (!live) pulse.set({ ...pulse.get(), state: "away", why: "" }) },
  }))
}

// moved is what tells one sample from the next, but for the time.
function moved(now) {
  if (!now) return ""
  const { at, lag_ms, created_per_s, completed_per_s, failed_per_s, oldest_at, ...rest } = now
  return JSON.stringify(rest) + (created_per_s + completed_per_s + failed_per_s > 0 ? at : "")
}

// share is which part of the time a page may load by itself: what takes long is loaded less often, so that many open pages cost the store little.
const share = 150, restShare = 600, rest = 8000 // the latter two, in ms, while no sum moves

// useLoad loads something and keeps it: again when what it depends on changes, when the store has moved, after a fault, and on reload().
// again() is reload() where an answer will do that another page got a moment ago.
// The last value stays while the next one is on its way, unless it is about something else. least is the shortest pause in ms between loads by itself.
export function useLoad(load, depends, { live = true, about, least = 2000 } = {}) {
  const [got, set] = useState({ data: null, error: null, loading: true })
  const turn = useRef(0), busy = useRef(false), wanted = useRef(false), latest = useRef(load), shown = useRef("")
  latest.current = load
  const control = useRef(null), run = useRef(null)
  const again = useRef(0), stale = useRef(0), subject = useRef(about), timer = useRef(0) // from when on it may load again by itself
  run.current = async alone => {
    if (busy.current) { wanted.current = true; return }
    busy.current = true
    const mine = turn.current, began = performance.now()
    control.current = new AbortController()
    control.current.signal.recent = alone ? Math.floor(least / 1000) : 0
    try {
      const data = await latest.current(control.current.signal)
      if (mine === turn.current) set({ data, error: null, loading: false })
    } catch (error) {
      if (mine === turn.current && error.name !== "AbortError") {
        set(was => ({ ...was, error, loading: false }))
        if (error instanceof Problem && error.away) setTimeout(() => mine === turn.current && run.current(), 2000 + 1000 * Math.random())
      }
    }
    if (mine !== turn.current) return
    busy.current = false
    const now = performance.now(), took = now - began
    again.current = now + Math.max(least, Math.min(15000, share * took))
    stale.current = now + Math.min(60000, Math.max(rest, restShare * took))
    if (wanted.current) { wanted.current = false; run.current() }
  }
  useEffect(() => {
    turn.current++
    control.current?.abort()
    busy.current = false
    const other = about !== subject.current // what is shown is of something else
    subject.current = about
    set(was => ({ data: other ? null : was.data, error: null, loading: true }))
    run.current()
    return () => { turn.current++; control.current?.abort() }
  }, depends)
  useEffect(() => {
    if (!live) return
    shown.current = moved(pulse.get().now)
    return pulse.listen(p => {
      const next = moved(p.now)
      if (p.state !== "live" || document.hidden) return
      if (next === shown.current && performance.now() < stale.current) return // progress and renewals move no sum
      shown.current = next
      timer.current ||= setTimeout(() => { timer.current = 0; run.current(true) }, Math.max(0, again.current - performance.now()))
    })
  }, [live])
  useEffect(() => () => { clearTimeout(timer.current); timer.current = 0 }, [])
  return { ...got, reload: () => run.current(), again: () => run.current(true) }
}

// loadAll follows cursors until there are n items.
export async function loadAll(path, query, n, signal) {
  const items = []
  let cursor = ""
  do {
    const page = await get(path, { ...query, limit: Math.min(n - items.length, query.limit || 1000), cursor }, signal)
    items.push(...page.items)
    cursor = page.next_cursor || ""
  } while (cursor && items.length < n)
  return { items, cursor }
}

// unreplaced are the lost workers whose place no other one took within a minute: of the same pool, or on the same host if they have none.
export function unreplaced(workers) {
  const taken = new Set(), same = (a, b) => a.pool ? a.pool === b.pool : !!a.host && a.host === b.host && !b.pool
  return workers.filter(w => !w.alive && !w.dead).filter(w => {
    const other = workers.find(o => o.alive && !taken.has(o.instance) && same(w, o) && Math.abs(Date.parse(o.registered_at) - Date.parse(w.seen_at)) <= 60000)
    if (other) taken.add(other.instance)
    return !other
  })
}
