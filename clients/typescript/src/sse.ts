import { FlowFabricError } from "./errors.js"

/** A Server-Sent Event. */
export interface ServerEvent {
  id: string
  name: string
  data: string
}

const MOST = 64 * 1024 * 1024

/** Puts the events of a stream together from pieces of its text. An event that is not complete is not given. */
export class EventReader {
  #rest = ""
  #id = ""
  #name = ""
  #data: string[] = []

  /** The events that a piece completes. */
  read(piece: string): ServerEvent[] {
    const events: ServerEvent[] = []
    const lines = (this.#rest + piece).split("\n")
    this.#rest = lines.pop() ?? ""
    if (this.#rest.length > MOST) throw new FlowFabricError("protocol_error", `an event has more than ${MOST} bytes`)
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw
      if (line === "") {
        if (this.#data.length > 0) events.push({ id: this.#id, name: this.#name, data: this.#data.join("\n") })
        this.#name = ""
        this.#data = []
        continue
      }
      const colon = line.indexOf(":")
      const field = colon < 0 ? line : line.slice(0, colon)
      const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)
      if (field === "id" && !value.includes("\0")) this.#id = value
      else if (field === "event") this.#name = value
      else if (field === "data") this.#data.push(value)
    }
    return events
  }
}
