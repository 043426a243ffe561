// What programs and people wrote is shown as text nodes only.

export const $ = id => document.getElementById(id)

// el makes an element; children that are strings become text.
export function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") e.className = value
    else if (name.startsWith("on")) e.addEventListener(name.slice(2), value)
    else if (value === true) e.setAttribute(name, "")
    else if (value !== false && value != null) e.setAttribute(name, value)
  }
  e.append(...children)
  return e
}

// linked splits a text into text and links to what was published here.
function linked(text) {
  return text.split(/(\/published\/[0-9a-f]{12}\.txt)/).map((part, i) => i % 2 ? el("a", { href: part, target: "_blank", rel: "noreferrer" }, part) : part)
}

// showBlocks makes the list say what blocks say. It touches only those that changed, so that a selection and open details stay.
export function showBlocks(list, blocks) {
  while (list.children.length > blocks.length) list.lastChild.remove()
  blocks.forEach((block, i) => {
    const now = JSON.stringify(block), there = list.children[i]
    if (there?.says === now) return
    if (there?.role0 === "assistant" && block.role === "assistant") update(there, block)
    else if (there) there.replaceWith(make(block))
    else list.append(make(block))
    list.children[i].says = now
    list.children[i].role0 = block.role
  })
}

function make(b) {
  if (b.role === "note") return el("li", { class: "note" }, b.text)
  if (b.role === "user") {
    const li = el("li", { class: "user", "data-role": "user", "data-loose": !!b.dropped }, el("span", { class: "hidden" }, "You: "), el("div", { class: "text", dir: "auto" }, b.text))
    if (b.pending) li.append(el("small", { class: "dim" }, "sent, not read yet"))
    return li
  }
  const li = el("li", { class: "assistant" }, el("span", { class: "hidden" }, "Agent: "))
  li.append(el("details", { class: "reasoning", hidden: true }, el("summary", {}, "Reasoning"), el("div", { class: "thought", dir: "auto" })),
    el("strong", { class: "lost", hidden: true }, "Not paid for, so not recorded."), el("div", { class: "text", dir: "auto" }), el("ul", { class: "calls" }))
  update(li, b)
  return li
}

function update(li, b) {
  li.dataset.role = "assistant"
  li.toggleAttribute("data-loose", !!b.dropped)
  li.classList.toggle("open", !!b.open && !b.dropped)
  li.querySelector(".lost").hidden = !b.dropped
  const thought = li.querySelector(".reasoning")
  thought.hidden = !b.reasoning
  thought.querySelector(".thought").textContent = b.reasoning
  const text = li.querySelector(".text")
  text.hidden = !b.text
  text.replaceChildren(...linked(b.text))
  const calls = li.querySelector(".calls")
  b.calls.forEach((c, i) => {
    const now = JSON.stringify(c) + (c.waits ?? "")
    if (calls.children[i]?.says === now) return
    const item = callItem(c)
    item.says = now
    if (calls.children[i]) calls.children[i].replaceWith(item)
    else calls.append(item)
  })
  while (calls.children.length > b.calls.length) calls.lastChild.remove()
}

function callItem(c) {
  const done = c.result !== undefined
  const item = el("li", { class: "call" + (c.failed ? " failed" : done ? " done" : ""), "data-tool": c.name },
    el("div", { class: "line" }, el("strong", {}, c.name), el("span", { class: "outcome" }, c.failed ? "✗ no result" : done ? "✓ done" : c.waits ? "waits for you" : "… running")),
    el("code", { class: "arguments", dir: "auto" }, typeof c.written === "string" ? c.written : JSON.stringify(c.arguments)))
  if (done) item.append(el("details", {}, el("summary", {}, c.failed ? "Why" : "Result"), el("pre", { class: "result", dir: "auto" }, ...linked(c.result))))
  return item
}

// took is a duration for people.
export function took(ms) {
  if (!(ms >= 0)) return ""
  return ms < 995 ? `${Math.round(ms)} ms` : ms < 59_500 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`
}

export const clock = at => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false })

// showSteps lists what was recorded, the newest first, below what runs now.
export function showSteps(list, steps, running) {
  const rows = steps.map(s => {
    const [icon, label] = labelled(s)
    return { key: s.name + s.attempt + s.state, icon, label, detail: s.state === "failed" ? s.error || "failed" : "", bad: s.state === "failed", at: s.ended_at,
      ms: s.kind === "messages" ? NaN : new Date(s.ended_at) - new Date(s.started_at) }
  }).filter(r => r.label)
  rows.reverse()
  const now = JSON.stringify([rows, running])
  if (list.says === now) return
  list.says = now
  list.replaceChildren(...(running ? [el("li", { class: "now" }, el("span", { class: "icon", "aria-hidden": "true" }, "●"), el("span", { class: "what" }, running), el("span", { class: "ms" }, "now"))] : []),
    ...rows.map(r => el("li", { class: r.bad ? "bad" : "" }, el("span", { class: "icon", "aria-hidden": "true" }, r.icon), el("span", { class: "what" }, r.label, r.detail ? el("small", {}, r.detail) : ""),
      el("span", { class: "ms" }, took(r.ms)), r.at ? el("time", { datetime: r.at, title: new Date(r.at).toLocaleString() }, clock(r.at)) : "")))
}

// labelled is a step in words.
function labelled(s) {
  let m
  if (m = s.name.match(/^model (\d+)$/)) return ["✎", `Model call ${m[1]}`]
  if (m = s.name.match(/^tool [\d.]+ (.*)$/)) return ["⚙", `Tool ${m[1]}`]
  if (m = s.name.match(/^approve [\d.]+ (.*)$/)) return s.kind === "waitpoint" ? ["", ""] : ["✋", `Approval of ${m[1]}`]
  if (s.name.startsWith("budget ")) return s.kind === "waitpoint" ? ["", ""] : ["✋", "More budget"]
  if (s.kind === "messages") return s.bytes > 8 ? ["✉", "Message received"] : ["", ""] // a mailbox that was empty is a few bytes
  return ["·", s.name]
}
