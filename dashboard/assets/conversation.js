// A run of an agent as a conversation, made of the frames of its stream: what people and the model said, the calls of
// tools with what came of them, and the conversations of its sub-agents inside the calls that made them.
import { number, plural, span, visible } from "./ui.js"

const most = 300 // bubbles of one conversation that are shown; older ones go

const make = (tag, kind, text) => {
  const e = document.createElement(tag)
  if (kind) e.className = kind
  if (text !== undefined) e.textContent = text
  return e
}

const said = parts => (parts ?? []).filter(p => p.type !== "reasoning").map(p => p.text ?? `[${p.type}${p.media_type ? ` ${p.media_type}` : ""}${p.name ? ` ${p.name}` : ""}]`).join("")
const thought = parts => (parts ?? []).filter(p => p.type === "reasoning").map(p => p.text ?? "").join("")
const called = / (\d+\.\d+)(?: t\d+)?$/ // the number of the call in the name of a sub-agent, maybe with the take behind
const json = value => typeof value === "string" ? value : JSON.stringify(value, null, 2)

// brief is what a call was given, in a line: two calls of a tool are told apart by it.
const brief = given => {
  const line = given && typeof given === "object" && !Array.isArray(given) ? Object.entries(given).map(([k, v]) => `${k}: ${typeof v === "string" ? v : JSON.stringify(v)}`).join(", ") : json(given) ?? ""
  return line.length > 200 ? line.slice(0, 199) + "…" : line
}

// isTalk says of a frame that it belongs to a conversation.
export const isTalk = f => f.type === "message" && ["user", "assistant", "tool"].includes(f.value?.role)

// isEcho says of a frame of a conversation that its messages say the same: a call as the model writes it, a result
// before the model is shown it, what an answer cost.
export const isEcho = f => f.type === "call" && typeof f.value?.name === "string" || f.type === "arguments" && !!f.correlation || f.type === "result" && f.value?.role === "tool" || f.type === "usage" && Number.isInteger(f.value?.turn)

// Talk is the conversation of one agent. Its items are what its execution has put out and what still counts.
class Talk {
  constructor() { Object.assign(this, { items: [], root: make("div", "talk"), children: new Map(), head: null }); this.clear() }

  clear() { this.root.replaceChildren(...(this.head ? [this.head] : [])); Object.assign(this, { answers: 0, open: null, cards: new Map(), calls: new Map() }) }

  // add takes a frame of an attempt over. Pieces of one answer are one item: no step is recorded between them.
  add(attempt, f) {
    if (isEcho(f)) return
    const piece = f.type === "token" || f.type === "reasoning", text = f.text ?? (typeof f.value === "string" ? f.value : "")
    const last = this.items.at(-1)
    if (piece && last?.attempt === attempt && last.f.type === f.type && last.piece) last.f = { ...last.f, text: last.f.text + text }
    else this.items.push({ attempt, sequence: f.sequence, piece, f: piece ? { type: f.type, text } : f })
    this.apply(piece ? { type: f.type, text } : f)
    if (f.type !== "message" || f.value?.role !== "assistant") return
    const whole = this.items.pop(), at = this.items.findIndex(i => i.piece && i.attempt === attempt)
    this.items.splice(at < 0 ? this.items.length : at, 0, whole)
    this.items = this.items.filter(i => !i.piece || i.attempt !== attempt) // it has them
  }

  // keep drops items that do not count any more, and shows the rest anew.
  keep(counts) {
    const left = this.items.filter(counts)
    if (left.length === this.items.length) return
    this.items = left
    this.clear()
    for (const i of left) this.apply(i.f)
    for (const [name, child] of this.children) {
      child.root.remove()
      if (called.test(name) && !this.calls.has(called.exec(name)[1])) this.children.delete(name) // its answer was dropped
      else this.nest(name, child)
    }
  }

  apply(f) {
    if (f.type === "token" || f.type === "reasoning") return this.piece(f)
    if (isTalk(f)) return this.message(f.value)
    if (f.note) return this.line(f.note)
  }

  push(e) {
    this.root.append(e)
    while (this.root.childElementCount > most) this.root.firstElementChild.remove()
  }

  line(text) { this.push(make("p", "aside", visible(text))) }

  bubble(role, who) {
    const e = make("article", "said " + role)
    e.append(make("h3", "by", visible(who)))
    this.push(e)
    return e
  }

  piece(f) {
    this.open ??= { e: this.bubble("assistant", "assistant"), text: null, thought: null }
    if (f.type === "reasoning") this.open.thought ??= this.fold(this.open.e)
    else this.open.text ??= this.words(this.open.e)
    const into = f.type === "reasoning" ? this.open.thought : this.open.text
    into.firstChild.appendData(visible(f.text))
  }

  words(e) {
    const p = make("p", "words", "")
    p.dir = "auto"
    p.append(document.createTextNode(""))
    e.append(p)
    return p
  }

  fold(e) {
    const d = make("details", "thought"), p = make("p", "words", "")
    p.append(document.createTextNode(""))
    d.append(make("summary", "", "Reasoning"), p)
    e.append(d)
    return p
  }

  message(m) {
    if (m.role === "tool") return this.result(m)
    if (m.role === "user") {
      this.words(this.bubble("user", m.from || "user")).firstChild.appendData(visible(said(m.parts)))
      return
    }
    this.answers++
    const e = this.bubble("assistant", "assistant")
    this.open?.e.replaceWith(e) // the whole answer takes the place of its pieces, before a note that it was stopped
    this.open = null
    e.dataset.answer = this.answers
    const why = thought(m.parts), text = said(m.parts)
    if (why) this.fold(e).firstChild.appendData(visible(why))
    if (text) this.words(e).firstChild.appendData(visible(text))
    ;(m.calls ?? []).forEach((c, i) => {
      const card = make("details", "call"), head = make("summary", "")
      const state = make("span", "state", "…")
      head.append(make("b", "", visible(c.name)), " ", make("span", "given", visible(brief(c.arguments))), " ", state)
      card.append(head, make("h4", "", "Arguments"), make("pre", "", visible(json(c.arguments))))
      const value = { card, state, number: `${this.answers}.${i + 1}` }
      this.cards.set(c.id, value)
      this.calls.set(value.number, card)
      e.append(card)
    })
  }

  result(m) {
    const text = said(m.parts), c = this.cards.get(m.call)
    if (!c) return void this.words(this.bubble("tool", `${m.tool || "tool"}${m.failed ? " failed" : ""}`)).firstChild.appendData(visible(text))
    this.cards.delete(m.call)
    c.state.textContent = m.failed ? "✕ failed" : m.edited ? `✓ done, changed by ${visible(m.edited.by || "a person")}` : "✓ done"
    c.card.classList.add(m.failed ? "bad" : "good")
    c.card.append(make("h4", "", m.failed ? "What the model was told" : "Result"), make("pre", "", visible(text)))
  }

  // child is the conversation of a sub-agent, by the way to it and its id.
  child(path, id) {
    let child = this.children.get(path[0])
    if (!child) {
      child = new Talk()
      if (path.length === 1) {
        const own = make("a", "own", `${visible(path[0])}: its own page`)
        own.href = `#/executions/${encodeURIComponent(id)}`
        child.head = own
        child.clear()
      }
      this.children.set(path[0], child)
      this.nest(path[0], child)
    }
    return path.length > 1 ? child.child(path.slice(1), id) : child
  }

  // nest puts a sub-agent into the call that made it: its name ends with the number of that, maybe with the take behind.
  nest(name, child) {
    const call = this.calls.get(called.exec(name)?.[1])
    if (!call) return this.push(child.root)
    call.open = true
    child.root.dataset.name = visible(name)
    call.append(child.root)
  }
}

// Conversation is what a page shows of a stream: show takes its events over, in order, and note what happened besides;
// root is the element.
export class Conversation {
  constructor() {
    this.own = new Talk()
    this.root = this.own.root
    this.paid = new Map()
  }

  // begun says that there is something to show.
  get begun() { return this.own.items.some(i => isTalk(i.f)) }

  of(d) { return d.child ? this.own.child(d.child.path, d.child.id) : this.own }

  show(name, d) {
    if (name === "frame") { if (!d.frame.encrypted) this.of(d).add(d.attempt, d.frame) }
    else if (name === "attempt" || name === "resumed") {
      const stays = new Map((d.reused ?? []).map(c => [c.attempt, c.recorded]))
      this.of(d).keep(name === "attempt" ? i => i.attempt >= d.attempt || i.sequence <= (stays.get(i.attempt) ?? 0)
        : i => i.attempt !== d.attempt || i.sequence <= d.resumed.recorded)
      if (!d.child) this.paid.clear() // an answer that is made again costs anew
    }
  }

  note(d, text) { this.of(d).add(d.attempt, { type: "note", sequence: d.frame.sequence, note: text }) }

  // cost shows below the answers what each has cost: read returns the value of the step of an answer, by its number, and
  // null if that is not recorded yet. Those of sub-agents are on their own pages.
  async cost(read) {
    for (const e of [...this.root.querySelectorAll(":scope > .assistant[data-answer]")].slice(-50)) {
      const answer = e.dataset.answer
      if (e.querySelector(":scope > .cost")) continue
      if (!this.paid.has(answer)) this.paid.set(answer, read(Number(answer)))
      const v = await this.paid.get(answer).catch(() => undefined)
      if (v === null) this.paid.delete(answer) // it is asked for again
      if (!v?.usage || e.querySelector(":scope > .cost")) continue // encrypted, or of another codec
      const u = v.usage
      e.append(make("p", "cost", [`${plural(u.input, "token")} in, ${number(u.output)} out${u.cache_read ? `, ${number(u.cache_read)} from the cache` : ""}${u.estimated ? ", by estimate" : ""}`, visible(v.model ?? ""), v.took ? span(v.took / 1e6) : ""].filter(Boolean).join(" · ")))
    }
  }
}
