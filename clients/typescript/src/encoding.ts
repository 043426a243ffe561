import { FlowFabricError } from "./errors.js"
import type { Payload } from "./models.js"

/**
 * Reads and writes JSON. An application gives another one to keep whole numbers beyond 2^53 of payloads, which
 * JSON.parse rounds: parse must return a number for those below.
 */
export interface Codec {
  parse(text: string): unknown
  stringify(value: unknown): string | undefined
}

/** The JSON of a value; null for undefined and functions. What JSON cannot have is refused with invalid_input. */
export function encode(json: Codec, value: unknown): string {
  try {
    return json.stringify(value) ?? "null"
  } catch (cause) {
    throw new FlowFabricError("invalid_input", `the value is no JSON: ${String(cause)}`, { cause })
  }
}

const utf8 = new TextEncoder()

/** How many bytes a text has in UTF-8. */
export function bytesOf(text: string): number {
  return utf8.encode(text).length
}

export function toBase64(data: Uint8Array): string {
  let text = ""
  for (let i = 0; i < data.length; i += 0x8000) text += String.fromCharCode(...data.subarray(i, i + 0x8000))
  return btoa(text)
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), c => c.charCodeAt(0))
}

/** The value of a payload, or its bytes as a Uint8Array if it is not JSON. */
export function payloadValue(payload: Payload | undefined): unknown {
  if (payload?.base64 !== undefined) return fromBase64(payload.base64)
  return payload && "value" in payload ? payload.value : undefined
}

/** A text that is new each time. crypto.randomUUID alone is not there in pages without TLS. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map(b => b.toString(16).padStart(2, "0")).join("")
}
