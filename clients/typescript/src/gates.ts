import { pause } from "./cancel.js"
import { GateRefused, Permanent } from "./errors.js"
import type * as m from "./models.js"

/** Amounts by dimension, whole numbers. */
export type Amounts = Record<string, number>

/** What counts and asks needs of a task. */
export interface Host {
  readonly gates: readonly string[]
  readonly signal: AbortSignal
  call<T>(verb: string, body: object): Promise<T>
  tell<T>(verb: string, body: object): Promise<T>
  release(): Promise<never>
  delay(ms: number, options?: { service?: string }): Promise<never>
  ask(name: string, title: string, options: { choices: string[] }): Promise<{ name: string }>
}

/** A call to a service whose turn has come. Say how it ended, by one of its methods. */
export class ServiceCall {
  constructor(private readonly host: Host, private readonly body: object) {}

  /** The call was made, and used this; default: what was estimated. */
  settled(used?: Amounts): Promise<void> {
    return this.#end({ how: "settled", ...(used ? { used } : {}) })
  }

  /** The call was certainly not made. */
  released(): Promise<void> {
    return this.#end({ how: "released" })
  }

  /** The service answered 429, maybe with a pause. */
  refused(retryAfterMs = 0): Promise<void> {
    return this.#end({ how: "refused", retry_after_ms: Math.round(retryAfterMs) })
  }

  async #end(how: Omit<m.EndCallBody, "lease" | "service" | "call">): Promise<void> {
    await this.host.tell("end-call", { ...how, ...this.body })
  }
}

/** Counts amounts against the gates of one execution, and asks for the turns of its calls to services. */
export class Gates {
  readonly #gates: string[]
  readonly #spent = new Map<string, number>()
  #spending: Promise<unknown> = Promise.resolve()
  #reserved = 0
  #calls = 0
  #asks = 0

  constructor(private readonly host: Host) {
    this.#gates = host.gates.filter(gate => !gate.includes(":")) // others are limits of keys
  }

  /** One spend after the other: a gate takes a sequence that is below its last one for a repeat. */
  spend(amounts: Amounts, options: { key?: string }): Promise<void> {
    const spent = this.#spending.then(() => this.#spend(amounts, options))
    this.#spending = spent.catch(() => {})
    return spent
  }

  async #spend(amounts: Amounts, options: { key?: string }): Promise<void> {
    for (const gate of this.#gates) { // the list grows
      let said: m.Reported
      for (;;) {
        const sequence = (this.#spent.get(gate) ?? 0) + 1
        this.#spent.set(gate, sequence)
        said = await this.host.tell("spend", { gate, sequence, amounts, ...options })
        if (said.verdict !== "HARD_BREACH" || said.counted) break
        await this.#noRoom(gate, said, amounts)
      }
      if (said.parent && !this.#gates.includes(said.parent)) this.#gates.push(said.parent)
    }
  }

  async reserve(amounts: Amounts): Promise<number> {
    for (;;) {
      const reservation = ++this.#reserved
      const said = await this.host.call<m.ReserveAnswer>("reserve", { reservation, amounts })
      if (said.reserved) return reservation
      if (!said.over) await this.#noRoom(said.gate ?? "", said, amounts) // over: a lost answer used the number up
    }
  }

  async settle(reservation: number, amounts: Amounts): Promise<void> {
    await this.host.tell("settle", { reservation, amounts })
  }

  async unreserve(reservation: number): Promise<void> {
    await this.host.tell("unreserve", { reservation })
  }

  /** Does what the gate says. It returns when a person granted more. */
  async #noRoom(gate: string, said: Pick<m.Reported, "action" | "breaches">, amounts: Amounts): Promise<void> {
    const { action, breaches } = said
    if (action === "block") await this.host.release() // it comes back when there is room for the amounts
    if (action === "fail") {
      throw new Permanent(`gate ${gate} has no room: ${JSON.stringify(breaches)}`, { category: "gate" })
    }
    if (action !== "ask") throw new GateRefused(gate, breaches)
    const listed = Object.keys(amounts).sort().map(name => `${amounts[name]} ${name}`).join(", ")
    const name = `${gate.slice(0, 60)} ${listed.slice(0, 50)} #${++this.#asks}`
    const title = `${gate} needs ${listed}`.slice(0, 200)
    const answer = await this.host.ask(name, title, { choices: ["approve", "reject"] })
    if (answer.name !== "approve") throw new GateRefused(gate, breaches)
  }

  async acquire(service: string, estimate: Amounts): Promise<ServiceCall> {
    const body = { service, call: ++this.#calls, estimate }
    const began = performance.now()
    for (;;) {
      const waited_ms = Math.round(performance.now() - began)
      const said = await this.host.call<m.AcquireAnswer>("acquire", { ...body, waited_ms })
      if (said.admitted) return new ServiceCall(this.host, body)
      const ms = said.retry_ms ?? 0
      if (!said.stay) await this.host.delay(ms, { service })
      await pause(ms, this.host.signal)
    }
  }
}
