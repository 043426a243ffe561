// The page of one conversation. Nearly all comes from the HTTP API: the events of the execution, its steps, messages, approvals and budget.
import { Transcript } from "./transcript.js"
import { $, el, showBlocks, showSteps, clock } from "./view.js"

const ideas = ["Search for the white rabbit and what is 12 * (3 + 4)?", "Tell me about the sea", "Publish a note: the shop is open on Sunday", "Search for the forest and publish it"]

let id = location.pathname.startsWith("/c/") ? decodeURIComponent(location.pathname.slice(3)) : ""
let transcript = new Transcript()
let source = null
let doing = "" // what the stream says: working, lost, ended or ""
let ending = null // the event that ended it
let retryAt = null
let seen = {} // execution, budget, steps, about, question: as they were read last
const sent = new Map() // messages by number that may not be in the stream yet

// ask calls the API or this server, and fails with its words.
async function ask(method, path, body) {
  const answer = await fetch(path, { method, headers: body ? { "Content-Type": "application/json" } : {}, body: body ? JSON.stringify(body) : undefined })
  const data = await answer.json().catch(() => null)
  if (!answer.ok) throw Object.assign(new Error(data?.detail || `the server answered ${answer.status}`), { status: answer.status })
  return data
}

const execution = rest => `/v1/executions/${encodeURIComponent(id)}${rest}`

// follow reads the conversation from its beginning. EventSource goes on behind the last event by itself after a lost connection.
function follow() {
  source = new EventSource(execution("/events"))
  for (const kind of ["attempt", "resumed", "frame", "gap", "suspended", "attempt_end", "retry", "end"]) source.addEventListener(kind, e => take(JSON.parse(e.data)))
  source.addEventListener("problem", e => trouble(JSON.parse(e.data).detail))
  source.onerror = () => { if (source.readyState === EventSource.CLOSED && doing !== "ended") trouble("The server does not know this conversation, or ended the stream. Load the page again.") }
  source.onopen = () => trouble("")
}

function take(e) {
  transcript.add(e)
  if (e.kind === "attempt" || e.kind === "resumed" || e.kind === "frame") doing = "working"
  if (e.kind === "suspended") doing = ""
  if (e.kind === "attempt_end" && e.reason !== "attempt_success") doing = "lost"
  if (e.kind === "retry") retryAt = e.at ?? null
  if (e.kind === "end") {
    doing = "ended"
    ending = e
    source.close()
  }
  if (e.kind !== "frame" || e.frame.type === "message") refreshSoon()
  draw()
}

// refresh reads what the stream does not tell. One at a time; a wish for another one in between is remembered.
let timer = 0, reading = false, again = false
function refreshSoon(after = 100) {
  clearTimeout(timer)
  timer = setTimeout(refresh, after)
}
async function refresh() {
  if (reading) {
    again = true
    return
  }
  reading = true
  try {
    const next = { about: await ask("GET", "/chat/about") }
    if (id) {
      const [x, steps, messages] = await Promise.all([ask("GET", execution("")), ask("GET", execution("/steps")), ask("GET", execution("/messages"))])
      next.execution = x
      next.steps = steps.items
      for (const m of messages.items) if (!sent.has(m.number)) sent.set(m.number, typeof m.payload.value === "string" ? m.payload.value : JSON.stringify(m.payload.value))
      next.budget = await ask("GET", `/v1/gates/${encodeURIComponent(x.tags?.["chat.budget"] ?? "")}`).catch(() => null)
      next.question = x.state === "suspended" && /^(approve|budget) /.test(x.wait?.name ?? "") ? await question() : null
      if (x.state === "active" && doing === "") doing = "working"
      if (x.state === "suspended" && doing === "working") doing = ""
    }
    seen = next
    trouble("", "connection")
  } catch (error) {
    trouble(error.status === 404 || error.status === 400 ? "There is no such conversation here: " + error.message : "No connection: " + error.message, "connection")
  }
  reading = false
  const quiet = document.hidden || !id || doing === "ended"
  if (again || !quiet) refreshSoon(again ? 100 : 1500)
  again = false
  draw()
}

// question is what this conversation asks, null once it was answered: the first of several of a turn that nobody has answered.
async function question() {
  const wait = await ask("GET", execution("/wait"))
  const open = wait?.waitpoints.find(p => p.question)
  return open ? { ...wait, name: open.key, question: open.question, waitpoints: [open] } : wait
}

let drawing = false
function draw() {
  if (drawing) return
  drawing = true
  requestAnimationFrame(() => {
    drawing = false
    const box = $("scroll"), atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 80
    paint()
    if (atEnd) box.scrollTop = box.scrollHeight
  })
}

function paint() {
  const { execution: x, budget, question: q, about } = seen
  const blocks = transcript.blocks()
  const unpaid = doing === "ended" || x?.state === "suspended" && x.wait?.name.startsWith("budget ") && doing !== "working"
  for (const b of blocks) b.dropped = !!b.loose && unpaid
  const waiting = q?.name.startsWith("approve ")
  if (waiting) {
    const call = blocks.findLast(b => b.calls?.length)?.calls[q.name.match(/^approve \d+\.(\d+) /)[1] - 1]
    if (call && call.result === undefined) call.waits = true
  }
  const heard = blocks.filter(b => b.role === "user").length
  for (const [number, text] of [...sent].sort((a, b) => a[0] - b[0])) {
    if (number > heard) blocks.push({ role: "user", text, pending: true })
  }
  showBlocks($("blocks"), blocks)
  $("welcome").hidden = !!id || blocks.length > 0
  const first = blocks.find(b => b.role === "user")
  document.title = (first ? first.text.slice(0, 40) + " · " : "") + "Chat · FlowFabric"

  const running = doing === "working" ? doingNow(blocks) : ""
  const state = stateOf(x, q, running)
  if ($("state").textContent !== state) $("state").textContent = state
  $("state").classList.toggle("busy", !!running)
  showCard(x, q)
  showSteps($("steps"), seen.steps ?? [], running)
  $("none").hidden = !!running || (seen.steps ?? []).length > 0

  const used = budget?.used?.tokens ?? 0, limit = budget?.limits?.tokens?.hard ?? about?.step ?? 0
  const spent = `${used.toLocaleString()} of ${limit.toLocaleString()} tokens used`
  if ($("spent").textContent !== spent) $("spent").textContent = spent
  $("bar").max = limit || 1
  $("bar").value = used
  $("bar").classList.toggle("full", limit > 0 && used > .9 * limit)
  if (about) {
    $("model").textContent = about.model
    $("worker").textContent = about.worker.pid ? `${about.worker.name}, process ${about.worker.pid}` : `${about.worker.name} is being started`
  }
  $("text").disabled = $("send").disabled = doing === "ended"
}

// doingNow is what the agent does, in words.
function doingNow(blocks) {
  const last = blocks.findLast(b => b.role === "assistant")
  if (last?.open) return "Writing"
  const open = last?.calls.filter(c => c.result === undefined && !c.waits).map(c => c.name) ?? []
  return open.length && blocks.at(-1) === last ? `Tool ${[...new Set(open)].join(", ")}` : "Thinking"
}

function stateOf(x, q, running) {
  if (ending) return ending.state === "completed" ? "The conversation has ended." : `The conversation has ended: ${ending.state}${ending.message ? ", " + ending.message : ""}.`
  if (!id) return ""
  if (x?.state === "waiting_gate") return "The budget is used up. The conversation waits."
  if (q) return q.name.startsWith("budget ") ? "The budget has no room. The conversation waits for your answer." : "The agent waits for your approval. Nothing runs meanwhile."
  if (doing === "lost") {
    const left = retryAt ? Math.ceil((new Date(retryAt) - Date.now()) / 1000) : 0
    return left > 0 ? `Goes on in ${left} s.` : "Waits for a worker."
  }
  if (running) return running + " …"
  return x?.state === "suspended" ? "Your turn. The conversation waits and holds nothing." : x ? "Waits for a worker." : ""
}

// showCard shows the question, once; what is typed into it stays.
let shown = ""
function showCard(x, q) {
  const gate = !q && x?.state === "waiting_gate"
  const key = doing === "ended" ? "" : q ? q.name : gate ? "gate" : ""
  if (key === shown) return
  shown = key
  if (!key) return $("card").replaceChildren()
  const budget = gate || q.name.startsWith("budget ")
  const comment = el("textarea", { id: "comment", rows: "2", maxlength: "1000", dir: "auto" })
  const say = el("p", { class: "bad", role: "alert" })
  const buttons = gate ? [{ name: "more", label: "Allow more" }] : q.question?.choices ?? []
  const card = el("section", { class: "card", "aria-labelledby": "asks" },
    el("h2", { id: "asks" }, gate ? "The budget is used up. Allow more?" : q.question?.title ?? q.name),
    el("pre", { id: "asked", class: budget ? "plain" : "", dir: "auto" }, gate ? "The hard limit is reached, so no worker may go on." : q.question?.text ?? ""),
    ...(budget ? [] : [el("label", { for: "comment" }, "Comment (optional)"), comment]),
    el("div", { class: "choices" }, ...buttons.map((c, i) => el("button", { type: "button", class: i ? "" : "main", onclick: press(c.name) },
      c.name === "more" ? `Allow ${(seen.about?.step ?? 0).toLocaleString()} more tokens` : c.label))), say)
  function press(choice) {
    return async () => {
      const all = card.querySelectorAll("button")
      for (const b of all) b.disabled = true
      try {
        if (choice === "more") await ask("POST", `/chat/conversations/${encodeURIComponent(id)}/more`, {})
        if (q) await ask("POST", execution(`/waitpoints/${encodeURIComponent(q.waitpoints[0]?.key ?? q.name)}:answer`), { payload: { choice, comment: comment.value.trim() || undefined } })
        $("text").focus()
      } catch (error) {
        say.textContent = error.message
        for (const b of all) b.disabled = false
      }
      refreshSoon(0)
    }
  }
  $("card").replaceChildren(card)
}

const troubles = new Map()
function trouble(text, of = "") {
  troubles.set(of, text)
  const all = [...troubles.values()].filter(Boolean).join(" ")
  if ($("trouble").textContent !== all) $("trouble").textContent = all
}

// send sends a message, and begins the conversation with the first one. A repeat after a failure has the same key, so nothing is said twice.
let sending = null
async function send() {
  const text = $("text").value.trim()
  if (!text || sending?.busy || doing === "ended") return
  if (sending?.text !== text) sending = { text, key: crypto.randomUUID() }
  sending.busy = true
  $("text").value = ""
  fit()
  try {
    if (!id) {
      id = (await ask("POST", "/chat/conversations", {})).id
      history.pushState(null, "", "/c/" + encodeURIComponent(id))
      follow()
    }
    const r = await ask("POST", execution("/messages"), { mailbox: "user", payload: text, idempotency_key: sending.key })
    if (!r.duplicate) sent.set(r.number, text)
    sending = null
    trouble("", "send")
    $("scroll").scrollTop = $("scroll").scrollHeight
  } catch (error) {
    sending.busy = false
    if (!$("text").value) $("text").value = text
    fit()
    trouble("The message was not sent: " + error.message, "send")
  }
  refreshSoon(0)
  draw()
}

// fit makes the field as high as its text.
function fit() {
  const t = $("text")
  t.style.height = "auto"
  t.style.height = Math.min(t.scrollHeight + 2, 160) + "px"
}

$("composer").addEventListener("submit", e => { e.preventDefault(); send() })
let lines = false // Shift is held: Enter begins a new line
$("text").addEventListener("keydown", e => {
  lines = e.shiftKey
  if (e.key !== "Enter" || lines || e.isComposing) return
  e.preventDefault()
  send()
})
$("text").addEventListener("beforeinput", e => { if (e.inputType === "insertLineBreak" && !lines) e.preventDefault() })
$("text").addEventListener("input", fit)
$("kill").addEventListener("click", async () => {
  try {
    const killed = await ask("POST", "/chat/kill", {})
    $("killed").textContent = `${killed.name}, process ${killed.pid}, was killed (SIGKILL) at ${clock(Date.now())}. ` + (doing === "working" ? `Its lease runs out within ${seen.about?.lease_s ?? "?"} s; then another worker takes over.` : "Nothing was running, so this conversation does not notice.")
  } catch (error) {
    $("killed").textContent = "Not killed: " + error.message
  }
  refreshSoon(500)
})
$("ideas").append(...ideas.map(text => el("li", {}, el("button", { type: "button", onclick: () => { $("text").value = text; send() } }, text))))
document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshSoon(0) })
addEventListener("popstate", () => location.reload())

const wide = matchMedia("(min-width: 56rem)")
const fold = () => { $("behind").open = wide.matches }
wide.addEventListener("change", fold)
fold()
if (id) follow()
refresh()
draw()
setInterval(() => { if (doing === "lost") draw() }, 500)
