// Transcript joins the events of an execution into what stands now: the rule of stream.Transcript in Go. It drops the frames that a later run or attempt
// repeats, and keeps notes about what happened in between.
export class Transcript {
  #entries = [] // {attempt, frame} or {note}
  #carried = [] // notes from within an answer that is written again: they go before its new beginning

  add(e) {
    switch (e.kind) {
      case "attempt": {
        const dropped = this.#keep(x => (e.reused ?? []).some(c => c.attempt === x.attempt && x.frame.sequence <= c.recorded))
        if (e.attempt_type === "reclaim") this.#note(`${died} Another worker took over. ${told(dropped)}`, died)
        break
      }
      case "resumed": {
        const dropped = this.#keep(x => x.attempt !== e.attempt || (x.frame.run ?? 0) >= e.resumed.run || x.frame.sequence <= e.resumed.recorded)
        if (e.resumed.reason === "released") this.#note(`The worker stopped and handed its work on. ${told(dropped)}`)
        break
      }
      case "frame":
        this.#push({ attempt: e.attempt, frame: e.frame })
        break
      case "gap":
        this.#note("Some older text is not kept any more.")
        break
      case "attempt_end":
        if (e.reason === "lease_expired") this.#note(died)
        else if (e.reason === "attempt_failure") this.#note(`It failed: ${e.message || e.category}`)
        break
      case "retry":
        if (e.attempt_type === "retry") this.#note("It is tried again.")
        break
    }
  }

  // blocks are the entries as they are shown. What comes behind the last whole answer is not recorded yet: loose.
  blocks() {
    const out = [], calls = new Map()
    let open = null
    for (const x of this.#entries.concat(this.#carried)) {
      if (x.note) {
        out.push({ role: "note", text: x.note })
        continue
      }
      const { type, text, value } = x.frame
      if (type === "token" || type === "reasoning") {
        if (!open) out.push(open = { role: "assistant", text: "", reasoning: "", calls: [], open: true, loose: true })
        if (type === "token") open.text += text ?? ""
        else open.reasoning += text ?? ""
      } else if (type === "message" && value?.role === "assistant") {
        if (!open) out.push(open = { role: "assistant", reasoning: "", calls: [] })
        Object.assign(open, { text: said(value), open: false, calls: (value.calls ?? []).map(c => ({ ...c })) })
        for (const c of open.calls) calls.set(c.id, c)
        for (const b of out) b.loose = false
        open = null
      } else if (type === "message" && value?.role === "tool") {
        const call = calls.get(value.call)
        if (call) Object.assign(call, { result: said(value), failed: !!value.failed })
      } else if (type === "message" && value?.role === "user") {
        out.push({ role: "user", text: said(value), loose: true })
      }
    }
    return out
  }

  #push(entry) {
    const known = entry.frame.type !== "message" || entry.frame.value?.role === "assistant"
    if (known) this.#entries.push(...this.#carried.splice(0))
    this.#entries.push(entry)
  }

  // note adds a note, in place of the one before it if that says instead.
  #note(note, instead) {
    const list = this.#carried.length ? this.#carried : this.#entries
    if (list.at(-1)?.note === instead && instead) list.pop()
    list.push({ note })
  }

  // keep drops the frames that do not stay, and tells how much text went with them.
  #keep(stays) {
    const first = this.#entries.findIndex(x => x.frame && !stays(x))
    if (first < 0) return 0
    const tail = this.#entries.splice(first)
    this.#carried.unshift(...tail.filter(x => x.note))
    const kept = tail.filter(x => x.frame && stays(x))
    this.#entries.push(...kept)
    return tail.filter(x => x.frame && !stays(x) && x.frame.type === "token").length
  }
}

const died = "The worker died here."

function told(dropped) {
  return dropped ? "What was recorded is kept; the unfinished answer is written again." : "Everything that was recorded is kept."
}

// said is what a message says: its texts, and names in the place of images and files.
const said = message => (message.parts ?? []).map(p => p.type === "text" ? p.text ?? "" : p.type === "reasoning" ? "" : `[${p.type} ${p.name || p.media || ""}]`).join("")
