// Each operation of the client, against a server.
import assert from "node:assert/strict"
import test from "node:test"
import { Client, FlowFabricError } from "flowfabric"
import { all, cutter, setUp, until } from "./base.js"

const PLANES = "a\u00e9\u20ac\ud7ff\ue000\u{1f600}\u{20000}\u{e0001}\u{10fffd}\u0000\u2028 \"\\</script>"
const echo = task => task.input
const refused = (code, status) => e => {
  assert.ok(e instanceof FlowFabricError, String(e))
  assert.deepEqual([e.code, e.status], [code, status])
  return true
}

test("submits, and tells the result", async t => {
  const { client, kind, serve } = await setUp(t)
  serve(echo)
  const values = [null, true, 0, -1, 2 ** 53 - 1, 1.5, "", PLANES, [[]], { "": { [PLANES]: [1, null] } }, JSON.parse('{"__proto__":1}')]
  for (const value of values) assert.deepEqual(await client.run(kind, value), value)
  assert.equal(await client.run(kind), null)
  const made = await client.submit(kind, values, {
    lane: "default", priority: 5, retries: 1, timeout_ms: 60_000, tags: { "team.region": "b" }, deadline_ms: 600_000,
    retention_s: { completed: 60 },
  })
  const answer = await client.result(made.id)
  assert.deepEqual([answer.state, answer.output.value], ["completed", values])
  assert.deepEqual((await client.get(made.id)).tags, { "team.region": "b" })
  assert.ok((await client.why(made.id)).sentence)
})

test("keys make one execution of two submissions", async t => {
  const { client, kind } = await setUp(t)
  const first = await client.submit(kind, 1, { idempotency_key: "one" })
  const again = await client.submit(kind, 1, { idempotency_key: "one" })
  assert.deepEqual([again.id, again.duplicate], [first.id, true])
  const [a, b] = await Promise.all([client.submit(kind, 1), client.submit(kind, 1)])
  assert.notEqual(a.id, b.id)
  const unique = [await client.submit(kind, 1, { unique_key: kind }), await client.submit(kind, 1, { unique_key: kind })]
  assert.equal(unique[0].id, unique[1].id)
})

test("submits many, in as many calls as they need, and lists them", async t => {
  const { client, kind, serve, output } = await setUp(t)
  const size = input => ("text" in input ? input.text.length : input.i)
  serve(task => size(task.input))
  const inputs = [...Array.from({ length: 1200 }, (_, i) => ({ i })), ...[0, 1, 2].map(() => ({ text: "x".repeat(900_000) }))]
  const made = await client.submitMany([...inputs.map(input => ({ kind, input })), { kind, priority: 10 ** 6 }])
  assert.equal(made.at(-1).problem.code, "invalid_input")
  const ids = made.slice(0, -1).map(one => one.id)
  assert.deepEqual(await Promise.all(ids.slice(-20).map(id => output(id))), inputs.slice(-20).map(size))
  await until(async () => (await all(client.executions({ kind, state: "completed", limit: 500 }))).length === ids.length)
  const listed = await all(client.executions({ kind, state: ["completed", "failed"], limit: 500 }))
  assert.deepEqual(new Set(listed.map(one => one.id)), new Set(ids))
})

test("a result that does not come in time is an error, and a wait can be ended", async t => {
  const { client, kind } = await setUp(t)
  const { id } = await client.submit(kind, 1)
  await assert.rejects(client.result(id, { withinMs: 50 }), refused("timed_out", 0))
  const enough = new Error("enough")
  const control = new AbortController()
  const waiting = client.result(id, { signal: control.signal })
  const following = all(client.tail(id, { signal: control.signal }))
  control.abort(enough)
  await assert.rejects(waiting, e => e === enough)
  await assert.rejects(following, e => e === enough)
  await client.cancel(id, { reason: "a test" })
  await client.cancel(id)
  const answer = await client.result(id)
  assert.deepEqual([answer.state, answer.reason], ["cancelled", "a test"])
})

test("a stream that said nothing for long goes on after a cut", async t => {
  let now = 0
  t.mock.method(performance, "now", () => now)
  let comments = 20
  const silent = new ReadableStream({
    pull(control) {
      now += 15_000
      if (comments-- > 0) control.enqueue(new TextEncoder().encode(": \n\n"))
      else control.error(new Error("cut"))
    },
  })
  const answers = [new Response(silent), new Response('id: 1\ndata: {"kind":"end"}\n\n')]
  const client = new Client({ fetch: async () => answers.shift(), retryForMs: 30_000 })
  assert.deepEqual(await all(client.tail("x")), [{ kind: "end" }])
})

test("errors say what is wrong", async t => {
  const { client, kind } = await setUp(t)
  await assert.rejects(client.submit(kind, 1, { priority: 10 ** 6 }), e => {
    assert.ok(e.detail && e.requestId, JSON.stringify(e))
    return refused("invalid_input", 400)(e)
  })
  const misspelt = client.api.call("POST", "/v1/executions", { body: { kind, prioritty: 5 } })
  await assert.rejects(misspelt, e => /prioritty/.test(e.field + e.message) && refused("invalid_input", 400)(e))
  await assert.rejects(client.get("4-01a22af5-c18c-7240-bf07-3f26b253c1d3"), e => e.status === 404)
  for (const id of ["", ".", "..", "\ud800"]) await assert.rejects(client.get(id), refused("invalid_input", 0))
  for (const id of ["a/../../healthz", "x?y#z", "\r\nX: y", PLANES]) await assert.rejects(client.get(id), e => e.status >= 400)
  for (const value of [10n, (() => { const a = []; a.push(a); return a })()]) {
    await assert.rejects(client.submit(kind, value), refused("invalid_input", 0))
  }
  await assert.rejects(client.submit(kind, "x".repeat(2 << 20)), e => e.status === 413)
  await assert.rejects(new Client({ url: "http://127.0.0.1:1", retryForMs: 200 }).get("x"), refused("connection_lost", 0))
  for (const url of ["ftp://x", "x", "http://u:p@h", "http://h?q"]) {
    const message = `url is ${url}, want http:// or https:// with no user, query or fragment`
    assert.throws(() => new Client({ url }), { name: "TypeError", message })
  }
})

test("a tail has every frame, and goes on after any event", async t => {
  const { client, kind, serve } = await setUp(t)
  serve(async task => {
    for (let i = 0; i < 250; i++) await task.frame(String(i))
    await task.frames([{ json: { n: 2 ** 50 } }, { data: Uint8Array.of(0, 255) }, PLANES])
  })
  const { id } = await client.submit(kind)
  const events = await all(client.tail(id))
  const frames = events.filter(e => e.kind === "frame").map(e => e.frame)
  assert.deepEqual(frames.map(f => f.sequence), Array.from({ length: 253 }, (_, i) => i + 1))
  assert.deepEqual(frames.slice(0, 250).map(f => f.text), Array.from({ length: 250 }, (_, i) => String(i)))
  assert.deepEqual([frames[250].value, frames[251].base64, frames[252].text], [{ n: 2 ** 50 }, "AP8=", PLANES])
  for (const i of [0, 100, events.length - 2]) {
    const rest = await all(client.tail(id, { after: events[i].position }))
    assert.deepEqual(rest.map(e => e.position), events.slice(i + 1).map(e => e.position))
  }
  assert.deepEqual(await all(client.tail(id, { after: events.at(-1).position })), [])
})

test("a tail whose connection is cut again and again has every frame once", async t => {
  const { address, kind, serve, client: straight } = await setUp(t)
  const proxy = await cutter(t, address, { every: 4 })
  const client = new Client({ url: proxy.url })
  serve(async task => {
    for (let i = 0; i < 300; i++) {
      await task.frame(`${i} `)
      if (i % 3 === 0) await task.flush() // so that they come in many pieces
    }
    return task.input
  })
  const { id } = await client.submit(kind, 7)
  const positions = []
  let text = ""
  for await (const e of client.tail(id)) {
    positions.push(e.position)
    text += e.frame?.text ?? ""
  }
  assert.equal(text, Array.from({ length: 300 }, (_, i) => `${i} `).join(""))
  assert.equal(new Set(positions).size, positions.length)
  assert.deepEqual(positions, (await all(straight.tail(id))).map(e => e.position))
  assert.ok(proxy.cuts > 3, `it was cut ${proxy.cuts} times`)
})

test("a submission whose answer is cut makes one execution", async t => {
  const { address, kind, client: straight } = await setUp(t)
  const proxy = await cutter(t, address, { every: 2, bytes: 40 })
  const client = new Client({ url: proxy.url })
  const ids = []
  for (let i = 0; i < 10; i++) ids.push((await client.submit(kind, i)).id)
  const many = await client.submitMany(Array.from({ length: 10 }, (_, input) => ({ kind, input })))
  assert.ok(proxy.cuts >= 5, `it was cut ${proxy.cuts} times`)
  const there = await all(straight.executions({ kind }))
  assert.deepEqual(there.map(e => e.id).sort(), [...ids, ...many.map(one => one.id)].sort())
})

test("flows", async t => {
  const { client, kind, serve, output } = await setUp(t)
  serve(task => Object.values(task.inputs).reduce((a, b) => a + b, task.input))
  const flow = await client.createFlow("sum", [
    { name: "a", kind, input: 1 },
    { name: "b", kind, input: 2, after: ["a"], inputs: { a: "a" } },
  ])
  assert.equal(await output(flow.nodes.b), 3)
  assert.equal((await client.getFlow(flow.id)).nodes.length, 2)
  const other = await client.createFlow("sum", [{ name: "a", kind: "nobody" }], { idempotency_key: kind })
  await client.cancelFlow(other.id, { reason: "a test" })
  assert.equal((await client.result(other.nodes.a)).state, "cancelled")
  const listed = (await all(client.flows({ limit: 1 }))).map(f => f.id)
  assert.ok(listed.includes(flow.id) && listed.includes(other.id))
})

test("schedules", async t => {
  const { client, kind } = await setUp(t)
  const made = await client.putSchedule(kind, kind, { cron: "0 3 * * *", zone: "UTC", input: { a: 1 } })
  assert.deepEqual([made.name, made.already], [kind, false])
  await client.pauseSchedule(kind)
  assert.equal((await client.getSchedule(kind)).paused, true)
  await client.resumeSchedule(kind)
  const info = await client.getSchedule(kind, { next: 3 })
  assert.deepEqual([info.paused, info.next_runs.length], [false, 3])
  assert.ok((await all(client.schedules({ limit: 1 }))).some(s => s.name === kind))
  assert.equal(await client.deleteSchedule(kind, { reason: "a test" }), true)
  assert.equal(await client.deleteSchedule(kind), false)
})

test("the pause that the server asks for is made, and its refusals are told in the end", async () => {
  const busy = () => new Response('{"code":"closed","detail":"it ends"}', { status: 503, headers: { "Retry-After": "0.05" } })
  const answers = [busy, busy, () => Response.json({ id: "x" })]
  const times = []
  const answer = async () => (times.push(performance.now()), (answers.shift() ?? busy)())
  const client = new Client({ fetch: answer, token: async () => "secret" })
  assert.equal((await client.get("x")).id, "x")
  assert.ok(times[1] - times[0] >= 49 && times[2] - times[1] >= 49)
  await assert.rejects(new Client({ fetch: answer, retryForMs: 1 }).get("x"), refused("closed", 503))
})

test("answers that are no JSON, or end early, are errors of the package", async () => {
  for (const [text, code] of [["<html>", "protocol_error"], ['{"id":', "protocol_error"]]) {
    await assert.rejects(new Client({ fetch: async () => new Response(text) }).get("x"), refused(code, 0))
  }
  const silent = (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
  await assert.rejects(new Client({ fetch: silent, timeoutMs: 20, retryForMs: 0 }).get("x"), refused("timed_out", 0))
  const events = 'id: 1\r\nevent: frame\r\ndata: {"kind":\r\ndata: "frame"}\r\n\r\n: hi\n\nid: 2\ndata:{"kind":"end"}\n\n'
  const pieces = new ReadableStream({
    start(c) {
      for (const byte of new TextEncoder().encode(events)) c.enqueue(Uint8Array.of(byte))
      c.close()
    },
  })
  const read = await all(new Client({ fetch: async () => new Response(pieces) }).tail("x"))
  assert.deepEqual(read, [{ kind: "frame" }, { kind: "end" }])
})

test("an application's own JSON keeps large numbers", async t => {
  const { address, kind } = await setUp(t)
  const json = {
    parse: text => JSON.parse(text.replace(/(?<=[:[,]|^)\d{16,}(?=[,\]}]|$)/g, '"big $&"'), (_, v) => (String(v).startsWith("big ") ? BigInt(v.slice(4)) : v)),
    stringify: value => JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `big ${v}` : v))?.replace(/"big (\d+)"/g, "$1"),
  }
  const client = new Client({ url: address, json })
  const { Worker } = await import("flowfabric")
  const worker = new Worker({ client }).handle(kind, async task => [task.input.n, await task.step("one", () => task.input.n + 1n)])
  const running = worker.run()
  t.after(() => (worker.stop(), running))
  assert.deepEqual(await client.run(kind, { n: 2n ** 64n }), [2n ** 64n, 2n ** 64n + 1n])
})
