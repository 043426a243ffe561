// Runs the scenarios with the package for TypeScript, and prints a line for each: its name, and what went wrong.

import { readFileSync } from "node:fs"
import { Client, Failed, FlowFabricError, GateRefused, Worker } from "flowfabric"

const { PROXY, DIRECT } = process.env
const PATIENCE_MS = 60_000

class Wrong extends Error {}

// A codec that keeps whole numbers beyond 2^53, for payloads. Texts of the scenarios have no such digits.
const BIG = /(?<=[[:,]\s*)-?\d{16,}(?=\s*[,\]}])|^-?\d{16,}$/g
const json = {
  parse: text => JSON.parse(text.replace(BIG, n => (Number.isSafeInteger(Number(n)) ? n : `"big:${n}"`)),
    (_, v) => (typeof v === "string" && /^big:-?\d+$/.test(v) ? BigInt(v.slice(4)) : v)),
  stringify: value => JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `big:${v}` : v))?.replace(/"big:(-?\d+)"/g, "$1"),
}

const own = (o, k) => (o !== null && typeof o === "object" && Object.hasOwn(o, k) ? o[k] : undefined)
const set = (o, k, v) => Object.defineProperty(o, k, { value: v, enumerable: true, writable: true, configurable: true })
const mapped = (o, change) => Object.entries(o).reduce((out, [k, v]) => set(out, k, change(v, k)), {})
const turn = () => new Promise(resolve => setTimeout(resolve, 20))

/** Whether an answer is as a scenario wants it. An object may have more members. */
function matches(want, got, fill) {
  if (typeof want === "string") want = fill(want)
  if (want === "$any") return true
  if (want === "$none") return got === undefined || got === null
  if (Array.isArray(want)) return Array.isArray(got) && got.length === want.length && want.every((one, i) => matches(one, got[i], fill))
  if (want !== null && typeof want === "object") {
    if ("$count" in want) return Array.isArray(got) && got.length === want.$count
    if ("$numbered" in want) return Array.isArray(got) && got.length === want.$numbered && got.every((one, i) => one === String(i))
    if ("$contains" in want) return typeof got === "string" && got.includes(want.$contains)
    return Object.entries(want).every(([k, v]) => got !== null && typeof got === "object" && matches(v, own(got, k), fill))
  }
  return want === got
}

/** Whether two values are the same. */
function same(a, b) {
  const sorted = v => (v === null || typeof v !== "object" ? v : Array.isArray(v) ? v.map(sorted)
    : Object.entries(v).sort(([x], [y]) => (x < y ? -1 : 1)).map(([k, w]) => ["member", k, sorted(w)]))
  return json.stringify(sorted(a)) === json.stringify(sorted(b))
}

class Flag {
  constructor() { this.done = new Promise(resolve => (this.raise = resolve)) }
}

class Scenario {
  constructor(data, unique) {
    Object.assign(this, { data, vars: { u: unique }, effects: {}, flags: {}, told: {}, workers: {}, ports: {} })
    for (const name of Object.keys(data.kinds)) this.vars[name] = `${unique}-${name}`
  }

  // Values

  fill(value, more = {}) {
    if (Array.isArray(value)) return value.map(v => this.fill(v, more))
    if (value !== null && typeof value === "object") {
      if ("$repeat" in value) return value.$repeat.repeat(value.times)
      if ("$numbers" in value) return Array.from({ length: value.$numbers }, (_, i) => i)
      if ("$nested" in value) return Array.from({ length: value.$nested }).reduce(out => ({ in: out }), {})
      return mapped(value, v => this.fill(v, more))
    }
    if (typeof value !== "string") return value
    if (/^\$[a-z]/i.test(value) && value !== "$any" && value !== "$none") return this.look(value.slice(1), more)
    return value.replace(/\$\{([^}]*)\}/g, (_, path) => String(this.look(path, more)))
  }

  look(path, more) {
    const [first, ...rest] = path.split(".")
    if (!(first in more) && !(first in this.vars)) throw new Wrong(`there is no ${first}`)
    return rest.reduce((value, part) => own(value, part), first in more ? more[first] : this.vars[first])
  }

  // What handlers do

  effect(name, n = 1) { return (this.effects[name] = (this.effects[name] ?? 0) + n) }
  flag(name) { return (this.flags[name] ??= new Flag()) }

  handler(ops) {
    return async task => {
      const { input, inputs, tags, id, attempt, kind } = task
      return (await this.ops(task, ops, { input, inputs, tags, id, attempt, kind })).value
    }
  }

  async ops(task, ops, known) {
    for (const op of ops) {
      const [[what, given]] = Object.entries(op)
      const arg = this.fill(given, known)
      if (what === "return") return { done: true, value: arg }
      if (what === "if" || what === "if_attempt") {
        const met = what === "if" ? arg[0] === arg[1] : task.attempt === arg
        const ended = met ? await this.ops(task, op.then, known) : {}
        if (ended.done) return ended
        continue
      }
      const value = await this.do[what].call(this, task, arg, this.fill(op, known))
      if (op.as) known[op.as] = value
    }
    return {}
  }

  do = {
    effect(_, name) { this.effect(name) },
    count(_, name) { return this.effect(name) },
    tell(_, name, op) { this.told[name] = op.value; this.flag(`told ${name}`).raise() },
    same(_, [a, b]) { return same(a, b) },
    async frames(task, texts) { for (const text of texts) await task.frame(text) },
    async count_frames(task, n) { for (let i = 0; i < n; i++) await task.frame(String(i)) },
    frame_json: (task, value) => task.frame({ json: value }),
    log: (task, [level, message, attributes]) => task.log[level](message, attributes),
    progress: (task, [percent, message]) => task.progress(percent, message),
    recorded: (task, name) => task.recorded(name),
    token: (task, key) => task.token(key),
    expect_event: (task, key, op) => task.expect(key, op.subject, op.where),
    close_token: (task, key) => task.closeToken(key),
    continue: (task, input) => task.continueAs(input),
    delay: (task, ms) => task.delay(ms),
    release: task => task.release(),
    cancel: (task, reason) => task.cancel(reason),
    spend: (task, amounts) => task.spend(amounts),
    settle: (task, number, op) => task.settle(number, op.amounts),
    unreserve: (task, number) => task.unreserve(number),
    fail(_, message, { category, permanent, retry_after_ms }) {
      throw new Failed(message, { category, permanent, retryAfterMs: retry_after_ms })
    },
    step(task, name, op) {
      return task.step(name, () => {
        this.effect(`step ${name}`)
        if ("fail" in op) this.do.fail.call(this, task, op.fail, op)
        return op.value
      }, op.turn ? { turn: op.turn } : {})
    },
    wait: (task, name, op) => task.wait(name, op.options),
    ask: (task, name, op) => task.ask(name, op.title, op.options),
    async receive(task, mailbox, op) { return (await task.receive(mailbox, op.options))?.value ?? null },
    children: (task, wait, op) => task.children(wait, op.list, op.options),
    async reserve(task, amounts, op) {
      try {
        return await task.reserve(amounts)
      } catch (e) {
        if (op.refused && e instanceof GateRefused) return "refused"
        throw e
      }
    },
    async acquire(task, service, op) {
      const call = await task.acquire(service, op.estimate)
      await (op.end === "settled" ? call.settled(op.amounts) : call.released())
    },
    async hold(task, name) {
      this.flag(`reached ${name}`).raise()
      const lost = new Promise((_, reject) => task.signal.addEventListener("abort", () => reject(task.signal.reason)))
      try {
        await Promise.race([this.flag(`let ${name}`).done, lost])
      } catch (e) {
        this.effect(`lost ${name}`)
        throw e
      }
    },
    async hold_until_stopped(task, name) {
      this.flag(`reached ${name}`).raise()
      if (!task.stopping.aborted) await new Promise(resolve => task.stopping.addEventListener("abort", resolve))
    },
    enter(_, name) { this.effects[`most ${name}`] = Math.max(this.effects[`most ${name}`] ?? 0, this.effect(`in ${name}`)) },
    leave(_, name) { this.effect(`in ${name}`, -1) },
  }

  // What the driver does

  async run() {
    this.client = new Client({ url: await this.port("client"), json })
    try {
      if (!this.data.manual) await this.on.start.call(this, "w", this.data.worker ?? {})
      for (const step of this.data.do) await this.step(step)
    } finally {
      for (const [name, flag] of Object.entries(this.flags)) if (name.startsWith("let ")) flag.raise()
      for (const { worker } of Object.values(this.workers)) worker.stop()
      await Promise.allSettled(Object.values(this.workers).map(one => one.running))
    }
  }

  async port(name) {
    this.ports[name] ??= await api(PROXY, "POST", "/new", {})
    return this.ports[name].url
  }

  async step(step) {
    const [what] = Object.keys(step)
    const { as, expect, error, ...rest } = step
    const op = this.fill(rest)
    const fill = text => this.fill(text)
    let got, timer
    try {
      const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Wrong("no end")), PATIENCE_MS)))
      got = await Promise.race([late, this.on[what].call(this, op[what], op)])
    } catch (e) {
      if (e instanceof FlowFabricError && error !== undefined && matches(error, e.code, fill)) return
      throw new Wrong(`${JSON.stringify(step)}: ${e.stack}`)
    } finally {
      clearTimeout(timer)
    }
    if (error !== undefined || (expect !== undefined && !matches(expect, got, fill))) {
      throw new Wrong(`${JSON.stringify(step)}: it answers ${json.stringify(got)}`)
    }
    if (as) this.vars[as] = got
  }

  on = {
    submit(kind, op) { return this.client.submit(kind, op.input, op.options) },
    submit_many(items) { return this.client.submitMany(items) },
    submit_numbers(kind, op) { return this.client.submitMany(Array.from({ length: op.count }, (_, input) => ({ kind, input }))) },
    run(kind, op) { return this.client.run(kind, op.input, op.options) },
    result(id, op) { return this.client.result(id, { withinMs: op.within_ms ?? 50_000 }) },
    results(all) { return Promise.all(all.map(one => this.client.result(one.id, { withinMs: 50_000 }))) },
    get(id) { return this.client.get(id) },
    why(id) { return this.client.why(id) },
    cancel(id, { reason }) { return this.client.cancel(id, reason ? { reason } : {}) },
    stop(id) { return this.client.stop(id) },
    signal(token, op) { return this.client.signal(token, op.payload) },
    answer(id, op) { return this.client.answer(id, op.waitpoint, op.payload) },
    send(id, op) { return this.client.send(id, op.mailbox, op.payload, op.options) },
    async list(what, op) {
      const out = []
      for await (const one of this.client[what](op.filters)) out.push(one)
      return out
    },
    publish(subject, op) { return this.client.publish(subject, op.data, op.options) },
    async follow_logs(id, op) {
      const out = []
      for await (const line of this.client.followLogs(id, op.options)) {
        out.push(line)
        if (line.message === op.upon) this.flag(`let ${op.lets}`).raise()
      }
      return out
    },
    create_flow(kind, op) { return this.client.createFlow(kind, op.nodes, op.options) },
    cancel_flow(id) { return this.client.cancelFlow(id) },
    put_schedule(name, op) { return this.client.putSchedule(name, op.kind, op.options) },
    get_schedule(name) { return this.client.getSchedule(name) },
    pause_schedule(name) { return this.client.pauseSchedule(name) },
    resume_schedule(name) { return this.client.resumeSchedule(name) },
    delete_schedule(name) { return this.client.deleteSchedule(name) },
    effects(name) { return this.effects[name] ?? 0 },
    let(name) { this.flag(`let ${name}`).raise() },
    reached(name) { return this.flag(`reached ${name}`).done },
    async told(name) { await this.flag(`told ${name}`).done; return this.told[name] },
    same([a, b]) { return same(a, b) },
    http(call, op) { return api(DIRECT, ...call.split(" "), op.body) },
    async tail(id, op) {
      const out = { frames: [], positions: [], end: undefined }
      for await (const { kind, frame, position, state } of this.client.tail(id, op.options)) {
        if (kind === "frame") out.positions.push(position), out.frames.push("value" in frame ? frame.value : frame.text)
        if (kind === "end") out.end = state
      }
      return out
    },
    async until(what, { id }) {
      const active = list => list.items.some(w => w.key === what.slice(8) && w.state === "active")
      for (;;) {
        if (what.startsWith("flow ") ? (await this.client.getFlow(id)).state === what.slice(5)
          : what.startsWith("waiting ") ? active(await api(DIRECT, "GET", `/v1/executions/${encodeURIComponent(id)}/waitpoints`))
          : (await this.client.get(id)).state === what) return
        await turn()
      }
    },
    async until_schema(kind) { while (!own((await api(DIRECT, "GET", "/v1/schemas")).kinds, kind)) await turn() },
    async until_logged(message, { id }) {
      for (;;) {
        for await (const line of this.client.logs(id)) if (line.message === message) return
        await turn()
      }
    },
    async until_effect(name, op) { while ((this.effects[name] ?? 0) < op.is) await turn() },
    async fault(port, op) {
      await this.port(port)
      await api(PROXY, "POST", `/${this.ports[port].id}`, { on: op.on, how: op.how, times: op.times ?? 1 })
    },
    async start(name, op) {
      if (op.fault) await this.on.fault.call(this, name, op.fault)
      const worker = new Worker({
        client: new Client({ url: await this.port(name), json }), concurrency: op.concurrency ?? 16,
        leaseMs: op.lease_ms ?? 10_000, drainMs: op.drain_ms ?? 20_000, log: () => {},
      })
      for (const [kind, ops] of Object.entries(this.data.kinds)) worker.handle(this.vars[kind], this.handler(ops), this.data.schemas?.[kind])
      this.workers[name] = { worker, running: worker.run() }
      this.workers[name].running.catch(() => {})
    },
    drain(name) { this.workers[name].worker.stop() },
    drained(name) { return this.workers[name].running },
  }
}

function api(url, method, target, body) {
  return new Client({ url }).api.call(method, target, body === undefined ? {} : { body })
}

const scenarios = json.parse(readFileSync(process.argv[2], "utf8")).filter(one => !one.not?.includes("typescript"))
const waiting = [...scenarios.entries()]
await Promise.all(Array.from({ length: 8 }, async () => {
  for (let next; (next = waiting.shift()); ) {
    const [i, data] = next
    let wrong = ""
    try {
      await new Scenario(data, `ts${i}`).run()
    } catch (e) {
      wrong = e instanceof Wrong ? e.message : String(e.stack)
    }
    console.log(JSON.stringify({ name: data.name, wrong }))
  }
}))
