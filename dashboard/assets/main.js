// The frame around the pages: who looks, where to go, whether the API answers, and the page itself.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./vendor/preact-htm.js"
import { cameBack, get, sendAway, signedIn, signIn, signOut, signsInElsewhere, stayOut, title } from "./api.js"
import { followPulse, may, me, namespace, pulse, useStore } from "./live.js"
import { Ask, checkID, Dialogs, Failure, Field, go, number, open, place, to, Toasts } from "./ui.js"

const pages = [
  { path: "", title: "Overview", key: "o", load: () => import("./pages/overview.js") },
  { path: "executions", title: "Executions", key: "e", load: () => import("./pages/executions.js"), one: () => import("./pages/execution.js") },
  { path: "flows", title: "Flows", key: "f", load: () => import("./pages/flows.js"), one: () => import("./pages/flow.js") },
  { path: "approvals", title: "Approvals", key: "a", load: () => import("./pages/approvals.js"), badge: now => now?.suspended },
  { path: "queues", title: "Queues", key: "q", load: () => import("./pages/queues.js") },
  { path: "workers", title: "Workers", key: "w", load: () => import("./pages/workers.js") },
  { path: "schedules", title: "Schedules", key: "s", load: () => import("./pages/schedules.js") },
  { path: "gates", title: "Gates", key: "t", load: () => import("./pages/gates.js"), asks: ["listGates"] },
  { path: "trail", title: "Audit trail", key: "r", load: () => import("./pages/trail.js"), asks: ["listTrail"] },
  { path: "health", title: "Health", key: "h", load: () => import("./pages/health.js"), asks: ["examine", "listPartitions", "listTokenKeys"], badge: now => now && now.partitions_overdue + now.partitions_frozen + now.partitions_silent, bad: true },
]

// mine are the pages with something that who looks may see.
const mine = () => pages.filter(p => !p.asks || p.asks.some(may))

function usePlace() {
  const [at, set] = useState(place())
  useEffect(() => {
    const moved = () => set(place())
    addEventListener("hashchange", moved)
    return () => removeEventListener("hashchange", moved)
  }, [])
  return at
}

function Page({ at, page }) {
  const [error, retry] = useErrorBoundary()
  const [component, set] = useState(null)
  const one = at.parts.length > 1
  useEffect(() => {
    let here = true
    ;(one ? page.one : page.load)().then(m => here && set({ one, Shown: m.default }), e => here && set({ one, Shown: () => { throw e } }))
    return () => { here = false }
  }, [page, one])
  if (error) return html`<div class="card"><h1>This page has failed</h1><p class="dim">${error.message}</p><button type="button" onClick=${() => { retry(); location.reload() }}>Load it again</button></div>`
  if (component?.one !== one) return html`<p class="loading" role="status">Loading…</p>`
  const Shown = component.Shown
  return html`<${Shown} key=${at.parts.join("/")} id=${at.parts[1]} query=${at.query} />`
}

function NotFound() {
  return html`<div class="card"><h1>There is no such page</h1><p>The address leads nowhere. <a href="#/">Go to the overview.</a></p></div>`
}

function SignIn({ onDone, error }) {
  const [secret, set] = useState("")
  const [stay, setStay] = useState(false)
  const [busy, setBusy] = useState(false)
  const [wrong, setWrong] = useState(error)
  const submit = async e => {
    e.preventDefault()
    setBusy(true)
    signIn(secret.trim(), stay)
    try {
      onDone(await get("me"))
    } catch (problem) {
      signOut()
      setWrong(problem.status === 401 ? Object.assign(new Error("No token has this secret."), { status: 401 }) : problem)
      setBusy(false)
    }
  }
  return html`<main class="signin card" id="main"><form onSubmit=${submit}><h1>${title}</h1>
    ${signsInElsewhere && html`<p>You are not signed in.</p><p><button type="button" class="main" onClick=${() => sendAway(true)}>Sign in</button></p><h2>Or with a token</h2>`}
    <p>Sign in with your token. An administrator makes one with <code>flowfabric token new</code>.</p>
    <input class="hidden" type="text" name="username" value="token" autocomplete="username" tabindex="-1" aria-hidden="true" readonly />
    <${Field} label="Token" kind="password" value=${secret} onInput=${set} required autocomplete="current-password" />
    <${Field} label="Stay signed in on this computer" kind="check" value=${stay} onInput=${setStay} />
    <${Failure} error=${wrong} />
    <button type="submit" class=${signsInElsewhere ? "" : "main"} disabled=${busy || !secret.trim()}>${signsInElsewhere ? "Use the token" : "Sign in"}</button></form></main>`
}

const themes = ["auto", "light", "dark"]
const themeKey = "flowfabric.theme"
const setTheme = theme => {
  localStorage.setItem(themeKey, theme)
  theme === "auto" ? delete document.documentElement.dataset.theme : document.documentElement.dataset.theme = theme
}
setTheme(themes.includes(localStorage.getItem(themeKey)) ? localStorage.getItem(themeKey) : "auto")

function Keys({ close }) {
  return html`<div><h2 id="dialog-title">Keys</h2><table class="keys"><tbody>
    ${mine().map(p => html`<tr key=${p.key}><td><kbd>g</kbd> <kbd>${p.key}</kbd></td><td>${p.title}</td></tr>`)}
    <tr><td><kbd>/</kbd></td><td>Go to the first filter of the page, or open an execution by its id</td></tr>
    <tr><td><kbd>?</kbd></td><td>This list</td></tr></tbody></table>
    <div class="buttons"><button type="button" class="main" onClick=${() => close()}>Close</button></div></div>`
}

function openByID() {
  open(Ask, { title: "Open an execution or a flow", action: "Open", fields: [{ name: "id", label: "Id", required: true, maxlength: 64 }], run: async ({ id }) => {
    id = id.trim()
    checkID(id)
    try {
      await get(`executions/${encodeURIComponent(id)}`)
      go(["executions", id])
    } catch (e) {
      if (e.status !== 404) throw e
      await get(`flows/${encodeURIComponent(id)}`)
      go(["flows", id])
    }
  } })
}

function useKeys() {
  useEffect(() => {
    let lead = 0
    const pressed = e => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, textarea, select, dialog")) return
      if (e.key === "g") { lead = Date.now(); return }
      const page = mine().find(p => p.key === e.key)
      if (page && Date.now() - lead < 1500) { lead = 0; location.hash = "#/" + page.path } else if (e.key === "?") open(Keys)
      else if (e.key === "/") {
        const first = document.querySelector("main .filters input, main .filters select")
        first ? first.focus() : openByID()
        e.preventDefault()
      }
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [])
}

// The namespace stays when the page is loaded again.
const namespaceKey = "flowfabric.namespace"
namespace.set(sessionStorage.getItem(namespaceKey) || "")
const setNamespace = name => { sessionStorage.setItem(namespaceKey, name); namespace.set(name) }

function NamespaceChoice() {
  const who = useStore(me), chosen = useStore(namespace), { queues } = useStore(pulse)
  const known = who.namespaces ?? [...new Set([...queues.map(q => q.namespace), chosen].filter(n => n && n !== "*"))].sort()
  if (known.length < 2) return null
  return html`<label class="namespace"><span>Namespace</span><select value=${chosen} onChange=${e => setNamespace(e.target.value)}>
    ${who.namespaces ? html`<option value="" selected=${chosen === ""}>${known[0]}</option>` : html`<option value="*" selected=${chosen === "*"}>all</option>`}
    ${known.filter(n => !who.namespaces || n !== known[0]).map(n => html`<option key=${n} value=${n} selected=${chosen === n}>${n}</option>`)}</select></label>`
}

function Live() {
  const { state, why } = useStore(pulse)
  const says = { live: "Live", connecting: "Connecting…", away: why ? "The store does not answer. What you see may be old." : "The API does not answer. What you see may be old." }[state]
  return html`<span class=${"live " + state} role="status">${says}</span>`
}

function Shell({ at }) {
  const who = useStore(me), { now } = useStore(pulse)
  const [menu, setMenu] = useState(false)
  const [theme, choose] = useState(localStorage.getItem(themeKey))
  const main = useRef(null), first = useRef(true)
  useKeys()
  useEffect(() => followPulse(), [who.name])
  const path = at.parts[0] === "overview" ? "" : at.parts[0] ?? ""
  const page = pages.find(p => p.path === path && (at.parts.length === 1 || at.parts.length === 0 || at.parts.length === 2 && p.one))
  useEffect(() => {
    setMenu(false)
    document.title = page ? `${at.parts[1] ? at.parts[1] + " · " : ""}${page.title} · ${title}` : title
    if (first.current) { first.current = false; return }
    scrollTo(0, 0)
    main.current?.focus({ preventScroll: true })
  }, [at.parts.join("/")])
  return html`<div class="shell">
    <a class="skip" href="#main" onClick=${e => { e.preventDefault(); main.current.focus() }}>Skip to the page</a>
    <header><a class="brand" href="#/"><img src="assets/icon.svg" alt="" width="26" height="26" />${title}</a>
      <button type="button" class="quiet burger" aria-expanded=${menu} aria-controls="nav" onClick=${() => setMenu(!menu)}>Menu</button>
      <${Live} /><span class="fill"></span><${NamespaceChoice} />
      <button type="button" class="quiet theme" onClick=${() => { const next = themes[(themes.indexOf(theme) + 1) % 3]; setTheme(next); choose(next) }}>Theme: ${theme}</button>
      <span class="who" title=${`You are ${who.name}, ${who.role}`}>${who.name}<small>${who.role}</small></span>
      ${signedIn() && html`<button type="button" class="quiet" onClick=${() => { stayOut(); location.reload() }}>Sign out</button>`}</header>
    <nav id="nav" aria-label="Pages" class=${menu ? "shown" : ""}><ul>${mine().map(p => html`<li key=${p.path}><a href=${to(p.path ? [p.path] : [])} aria-current=${page === p ? "page" : undefined}>${p.title}
      ${p.badge?.(now) > 0 && html` <span class=${"badge" + (p.bad ? " bad" : "")}>${number(p.badge(now))}</span>`}</a></li>`)}</ul>
      <button type="button" class="quiet small" onClick=${openByID}>Open by id</button> <button type="button" class="quiet small" onClick=${() => open(Keys)}>Keys</button></nav>
    <main id="main" ref=${main} tabindex="-1">${page ? html`<${Page} key=${page.path + "/" + (at.parts[1] ?? "")} at=${at} page=${page} />` : html`<${NotFound} />`}</main>
    <${Toasts} /><${Dialogs} /></div>`
}

function App() {
  const who = useStore(me), at = usePlace()
  const [error, setError] = useState(null)
  const [asked, setAsked] = useState(false)
  const enter = w => { if (!namespace.get() && !w.namespaces) namespace.set("*"); cameBack(); me.set(w) }
  const load = () => get("me").then(w => { enter(w); setError(null) }, e => {
    setError(e)
    if (e.away) setTimeout(load, 2000)
  }).then(() => setAsked(true))
  useEffect(() => {
    load()
    const out = () => { signOut(); me.set(null); setNamespace(""); setError(null); setAsked(true) }
    addEventListener("signedout", out)
    return () => removeEventListener("signedout", out)
  }, [])
  if (who && !may("getOverview")) return html`<main class="signin card" id="main"><h1>${title}</h1><p>${who.name} is a ${who.role}, which may not look at the dashboard. Sign in with another token.</p>
    <button type="button" class="main" onClick=${() => { signOut(); location.reload() }}>Sign out</button></main>`
  if (who) return html`<${Shell} at=${at} />`
  if (!asked) return html`<p class="boot">Loading the dashboard…</p>`
  if (error && error.status !== 401) return html`<main class="signin card" id="main"><h1>${title}</h1><${Failure} error=${error} retry=${load} /></main>`
  if (sendAway()) return html`<p class="boot">You are being signed in…</p>`
  return html`<${SignIn} onDone=${enter} />`
}

const root = document.getElementById("app")
root.textContent = ""
render(html`<${App} />`, root)
