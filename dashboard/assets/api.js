// How the page speaks to the HTTP API: calls, problems, and events that go on after an interruption.

// base is where the page is mounted: this file is in the folder assets below it.
export const base = new URL("../", import.meta.url)

const kept = "flowfabric.token"
let token = sessionStorage.getItem(kept) || localStorage.getItem(kept) || ""

// told is what the configuration of the page says.
const told = name => document.querySelector(`meta[name=flowfabric-${name}]`)?.content || ""

// title is what the page is called.
export const title = told("title") || "FlowFabric"

const sent = "flowfabric.sent" // set while somebody is away to sign in: no other way back brings a token

// sendAway leads to where people sign in, unless they come from there; false: there is no such place. by: they ask for it.
export function sendAway(by) {
  const to = told("sign-in")
  if (!to || !by && sessionStorage.getItem(sent)) return false
  sessionStorage.setItem(sent, "1")
  location.assign(to.replaceAll("{return}", encodeURIComponent(location.href)))
  return true
}

export const signsInElsewhere = told("sign-in") !== ""

// What comes back from there with #token=… is taken, and leaves the address. Without a sign-in of this tab a link cannot bring a token.
const brought = /(?:^|#)token=([^&#]+)/.exec(location.hash)
if (brought) {
  if (sessionStorage.getItem(sent) === "1") {
    token = decodeURIComponent(brought[1])
    sessionStorage.setItem(kept, token)
  }
  history.replaceState(null, "", location.pathname + location.search + (location.hash.replace(brought[0], "") || "#/"))
}

export const cameBack = () => sessionStorage.removeItem(sent)

// stayOut is for somebody who signs out: the page does not sign them in again by itself.
export const stayOut = () => { signOut(); if (signsInElsewhere) sessionStorage.setItem(sent, "out") }

export const signedIn = () => token !== ""

// signIn remembers a token for this tab, or for this browser.
export function signIn(secret, stay) {
  signOut()
  token = secret
  ;(stay ? localStorage : sessionStorage).setItem(kept, secret)
}

export function signOut() {
  token = ""
  sessionStorage.removeItem(kept)
  localStorage.removeItem(kept)
}

// Problem is a refusal of the API, or status 0 when it did not answer.
export class Problem extends Error {
  constructor(status, doc) {
    super((doc.field ? doc.field.replace(/^\/(payload\/)?/, "") + ": " : "") + (doc.detail || doc.title || `The API answered ${status}.`))
    this.status = status
    this.code = doc.code || ""
    this.field = doc.field || ""
    this.request = doc.request_id || ""
    this.retryAfter = doc.retryAfter || 0
  }
  get away() { return this.status === 0 || this.status === 503 }
}

function address(path, query) {
  const url = new URL("v1/" + path, base)
  for (const [name, value] of Object.entries(query || {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "" && one !== false) url.searchParams.append(name, one)
    }
  }
  return url
}

async function ask(url, init) {
  const headers = { Accept: "application/json", ...init.headers }
  if (token) headers.Authorization = "Bearer " + token
  let answer
  try {
    answer = await fetch(url, { ...init, headers, credentials: "same-origin", cache: "no-store" })
  } catch (e) {
    if (e.name === "AbortError") throw e
    throw new Problem(0, { detail: "The API does not answer. The page tries again." })
  }
  if (answer.ok) return answer
  let doc = {}
  try { doc = await answer.json() } catch { /* a proxy answered */ }
  doc.retryAfter = Number(answer.headers.get("Retry-After")) || 0
  const problem = new Problem(answer.status, doc)
  if (answer.status === 401) window.dispatchEvent(new CustomEvent("signedout"))
  throw problem
}

// exactly keeps numbers that JavaScript would round: payloads of programs are shown and sent as they are.
export function exactly(text) {
  return JSON.parse(text, (_, v, c) => typeof v === "number" && !Number.isSafeInteger(v) && c?.source !== undefined && String(v) !== c.source && JSON.rawJSON ? JSON.rawJSON(c.source) : v)
}

const payloads = /\/(input|result|summary|transcript|frames|messages|wait|approvals|steps\/[^/]*)$/

async function body(answer) {
  if (answer.status === 204) return null
  const text = await answer.text()
  if (!(answer.headers.get("Content-Type") || "").includes("json")) return text
  return payloads.test(new URL(answer.url).pathname) ? exactly(text) : JSON.parse(text)
}

// get reads. While a page loads by itself, an answer will do that somebody else got at most signal.recent seconds ago.
export const get = async (path, query, signal) => body(await ask(address(path, query), { signal, headers: signal?.recent ? { "Cache-Control": `max-age=${signal.recent}` } : {} }))

export async function send(method, path, value, query, headers) {
  return body(await ask(address(path, query), { method, body: JSON.stringify(value ?? {}), headers: { "Content-Type": "application/json", ...headers } }))
}

export const post = (path, value, query, headers) => send("POST", path, value, query, headers)

// remove has no body.
export const remove = async (path, query) => body(await ask(address(path, query), { method: "DELETE" }))

// silence is after how long without anything, not even a comment, a stream is taken for dead.
const silence = 40000

// follow reads server-sent events until signal ends or the server says that nothing follows, and reconnects behind the last one. It uses fetch,
// because EventSource sends no headers. on(name, data, id) is told every event, state(live) whether it is connected.
export async function follow(path, { query, signal, on, state }) {
  let last = "", pause = 500
  while (!signal.aborted) {
    const attempt = new AbortController()
    const stop = () => attempt.abort()
    signal.addEventListener("abort", stop)
    let timer = setTimeout(stop, silence)
    try {
      const answer = await ask(address(path, query), { signal: attempt.signal, headers: { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) } })
      if (answer.status === 204) return
      state?.(true)
      pause = 500
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
      let text = "", event = { name: "message", data: "", id: "" }
      for (;;) {
        const { value, done } = await reader.read()
        if (done) break
        clearTimeout(timer)
        timer = setTimeout(stop, silence)
        text += value
        let end
        while ((end = text.indexOf("\n")) >= 0) {
          const line = text.slice(0, end)
          text = text.slice(end + 1)
          if (line === "") {
            if (event.id) last = event.id
            if (event.data) on(event.name, JSON.parse(event.data), last)
            event = { name: "message", data: "", id: "" }
            continue
          }
          const colon = line.indexOf(":")
          const field = colon < 0 ? line : line.slice(0, colon)
          const content = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "")
          if (field === "event") event.name = content
          else if (field === "data") event.data += (event.data && "\n") + content
          else if (field === "id") event.id = content
        }
      }
    } catch (e) {
      if (signal.aborted) return
      if (e instanceof Problem && e.status >= 400 && e.status < 500 && e.status !== 429) {
        state?.(false, e)
        return
      }
      if (e instanceof Problem && e.retryAfter) pause = Math.max(pause, e.retryAfter * 1000)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener("abort", stop)
      attempt.abort()
    }
    state?.(false)
    await new Promise(resolve => setTimeout(resolve, pause * (0.75 + Math.random() / 2)))
    pause = Math.min(pause * 2, 10000)
  }
}
