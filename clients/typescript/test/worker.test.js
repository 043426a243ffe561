// Each operation of the worker, against a server.
import assert from "node:assert/strict"
import test from "node:test"
import { Client, GateRefused, LeaseLost, Permanent, Worker } from "flowfabric"
import { all, cutter, event, folder, setUp, start, until } from "./base.js"

const approvals = (client, kind) => all(client.approvals({ kind }))
const rest = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)))
  })

test("steps run once, and waits bring their answers", async t => {
  const { client, kind, serve, output } = await setUp(t)
  const did = []
  const handedOut = event()
  serve(async task => {
    const [one, same] = await Promise.all([1, 2].map(() => task.step("first", () => (did.push("first"), { n: 2 ** 50, gone: undefined }))))
    assert.deepEqual(one, same)
    await task.step("token", async () => handedOut.happen(await task.token("a")))
    const answer = await task.wait("a")
    const reply = await task.ask("b", "Is it good?", { text: "Look.", choices: ["yes", { name: "no", label: "No" }] })
    return [one, answer.value, ["signal", "already_satisfied"].includes(answer.cause), reply.name, reply.value, task.recorded("first")]
  })
  const { id } = await client.submit(kind)
  await client.signal(await handedOut.happened, { x: 1 })
  const [found] = await until(async () => (await approvals(client, kind)).filter(one => one.name === "b").length && approvals(client, kind))
  assert.deepEqual(found.question.choices.map(c => c.name), ["yes", "no"])
  await client.answer(id, found.waitpoints[0].key, { choice: "yes" })
  const [one, value, cause, name, reply, recorded] = await output(id)
  assert.deepEqual([one, value, cause, name, recorded, reply.choice], [{ n: 2 ** 50 }, { x: 1 }, true, "yes", true, "yes"])
  assert.deepEqual(did, ["first"])
})

test("failures have their category, and are retried or not", async t => {
  const { client, kind, serve, runOne } = await setUp(t)
  const loop = []
  loop.push(loop)
  const deeds = {
    retry: task => (task.attempt === 1 ? task.fail("no ink", { category: "ink", retryAfterMs: 0 }) : task.attempt),
    permanent: () => { throw new Permanent("never", { category: "ink" }) },
    step: task => task.step("bad", () => { throw new RangeError("too far") }),
    loop: () => loop,
    large: () => "x".repeat(1024 * 1024 + 1),
    lone: () => "\ud800",
    category: task => task.fail("wrong", { category: "x".repeat(65), permanent: true }),
    frame: task => task.frame("x".repeat(70_000)),
    none: () => { throw null },
  }
  serve(task => deeds[task.input](task))
  assert.equal(await runOne("retry", { retries: 2 }), 2)
  const failure = async input => {
    const made = await client.submit(kind, input, { retries: 0 })
    const answer = await client.result(made.id, { withinMs: 60_000 })
    return [made.id, answer.state, answer.failure?.category, answer.failure?.message]
  }
  assert.deepEqual((await failure("permanent")).slice(1), ["failed", "ink", "never"])
  const [id, ...step] = await failure("step")
  assert.deepEqual(step, ["failed", "handler_error", "RangeError: too far"])
  const steps = await client.api.call("GET", `/v1/executions/${id}/steps`)
  assert.ok(steps.items.some(s => s.name === "bad" && s.error), JSON.stringify(steps))
  for (const input of ["loop", "large"]) assert.equal((await failure(input))[2], "invalid_result")
  assert.match((await failure("category"))[3], /^wrong \(and .*category/)
  assert.match((await failure("frame"))[3], /payload_too_large/)
  assert.equal((await failure("none"))[3], "null")
  assert.ok(["completed", "failed"].includes((await failure("lone"))[1]))
  const nobody = await client.submit(kind, "retry")
  assert.equal((await client.result(nobody.id)).state, "completed") // the worker goes on
})

test("one result that the server refuses lets the others complete", async t => {
  const { client, kind, serve } = await setUp(t)
  const together = []
  const all3 = event()
  const json = { parse: JSON.parse, stringify: value => (value?.bad ? "{bad" : JSON.stringify(value)) }
  serve(async task => {
    together.push(task.input)
    if (together.length === 3) all3.happen()
    await all3.happened
    return task.input === 1 ? { bad: true } : task.input
  }, { client: new Client({ url: client.api.url, json }) })
  const made = await client.submitMany([0, 1, 2].map(input => ({ kind, input, retries: 0 })))
  const answers = await Promise.all(made.map(one => client.result(one.id, { withinMs: 60_000 })))
  assert.deepEqual(answers.map(a => a.state), ["completed", "failed", "completed"])
  assert.equal(answers[1].failure.category, "invalid_result")
})

test("one frame that the server refuses lets those of others through", async t => {
  const { client, kind, serve, frames } = await setUp(t)
  const there = []
  const all3 = event()
  serve(async task => {
    if (there.push(task.id) === 3) all3.happen()
    await all3.happened
    await task.frame(task.input === 1 ? { text: "bad", type: "x".repeat(129) } : "good")
  })
  const made = await client.submitMany([0, 1, 2].map(input => ({ kind, input, retries: 0 })))
  const answers = await Promise.all(made.map(one => client.result(one.id, { withinMs: 60_000 })))
  assert.deepEqual(answers.map(a => a.state), ["completed", "failed", "completed"])
  assert.match(answers[1].failure.message, /128|129|type/)
  assert.deepEqual(await Promise.all(made.map(async one => (await frames(one.id)).map(f => f.text))), [["good"], [], ["good"]])
})

test("messages come one by one, the same in every run", async t => {
  const { client, kind, serve, output, frames } = await setUp(t)
  serve(async task => {
    const got = [(await task.receive("none", { look: true })) ?? null]
    for (;;) {
      const message = await task.receive("user")
      if (message.value === "bye") break
      got.push(message.value)
      await task.step(`say ${got.length}`, () => task.frame(`you said ${message.value}. `))
    }
    got.push((await task.receive("user", { within_ms: 50, on_timeout: "auto_resume" })) ?? null)
    return got
  })
  const { id } = await client.submit(kind)
  await client.send(id, "user", "one")
  await until(async () => (await client.get(id)).state === "suspended")
  await client.send(id, "user", "two")
  await client.send(id, "user", "bye", { idempotency_key: "k" })
  await output(id).then(got => assert.deepEqual(got, [null, "one", "two", null]))
  assert.deepEqual((await frames(id)).map(f => f.text), ["you said one. ", "you said two. "])
})

test("a repeated message is told as one", async t => {
  const { client, kind } = await setUp(t)
  const { id } = await client.submit(kind)
  assert.equal((await client.send(id, "user", "bye", { idempotency_key: "k" })).duplicate, false)
  assert.equal((await client.send(id, "user", "bye", { idempotency_key: "k" })).duplicate, true)
})

test("children run, and their outcomes come", async t => {
  const { kind, serve, runOne } = await setUp(t)
  serve({
    [`${kind}-leaf`]: task => (task.input === 3 ? task.fail("three", { permanent: true }) : task.input * 2),
    [kind]: task => task.children("all", [1, 2, 3].map(input => ({ name: String(input), kind: `${kind}-leaf`, input }))),
  })
  const out = await runOne()
  assert.deepEqual(["1", "2", "3"].map(name => [out[name].outcome, out[name].value]),
    [["completed", 2], ["completed", 4], ["failed", undefined]])
})

test("a run ends by continue, delay, release and cancel", async t => {
  const { client, kind, serve, runOne } = await setUp(t)
  const seen = []
  serve(async task => {
    seen.push(`${task.input} ${task.claim.continues ?? 0}`)
    const first = seen.filter(one => one === seen.at(-1)).length === 1
    if (task.input === "start") await task.continueAs("again")
    if (task.input === "delay" && first) await task.delay(20)
    if (task.input === "release" && first) await task.release()
    if (task.input === "swallow" && first) await task.release().catch(() => {}) // the run is over all the same
    if (task.input === "cancel") await task.cancel("enough")
    if (!first || task.input === "again") await task.progress(50, "half")
    return task.input
  })
  assert.equal(await runOne("start"), "again")
  assert.ok(seen.includes("again 1"))
  for (const input of ["delay", "release", "swallow"]) {
    assert.equal(await runOne(input), input)
    assert.equal(seen.filter(one => one === `${input} 0`).length, 2)
  }
  const { id } = await client.submit(kind, "cancel")
  const answer = await client.result(id)
  assert.deepEqual([answer.state, answer.reason], ["cancelled", "enough"])
})

test("amounts are counted, reserved and refused", async t => {
  const { client, kind, serve, runOne } = await setUp(t)
  const gate = `${kind}-gate`
  await client.api.call("PUT", `/v1/gates/${gate}`, { body: { limits: { tokens: { hard: 100 } } } })
  serve(async task => {
    await Promise.all([1, 2, 3, 4, 5].map(() => task.spend({ tokens: 2 })))
    const a = await task.reserve({ tokens: 50 })
    await task.settle(a, { tokens: 20 })
    await task.unreserve(await task.reserve({ tokens: 50 }))
    await assert.rejects(task.spend({ tokens: 500 }), GateRefused)
    return task.reserve({ tokens: 500 }).catch(e => (assert.ok(e instanceof GateRefused), e.gate))
  })
  assert.equal(await runOne(null, { gates: [gate] }), gate)
  const record = await client.api.call("GET", `/v1/gates/${gate}`)
  assert.match(JSON.stringify(record), /"tokens":30\b/)
})

test("a call to a service has its turn, and says how it ended", async t => {
  const { client, kind, serve, runOne } = await setUp(t)
  const service = { per_minute: { tokens: 100_000 }, calls: 2 }
  await client.api.call("PUT", `/v1/gates/${kind}%2Fmodel`, { body: { service } })
  serve(async task => {
    await (await task.acquire(`${kind}/model`, { tokens: 10 })).settled({ tokens: 5 })
    await (await task.acquire(`${kind}/model`, { tokens: 10 })).released()
    await (await task.acquire(`${kind}/model`, { tokens: 10 })).refused(10)
    return "done"
  })
  assert.equal(await runOne(), "done")
})

test("200 jobs with frames complete, and all frames are in order", async t => {
  const { client, kind, serve, frames } = await setUp(t)
  let calls = 0
  const counting = new Client({ url: client.api.url, fetch: (q, init) => (String(q).endsWith(":frames") && calls++, fetch(q, init)) })
  serve(async task => {
    for (let i = 0; i < 20; i++) await task.frame(`${task.input}.${i} `, { source: "test" })
    return task.input
  }, { client: counting })
  const inputs = Array.from({ length: 200 }, (_, i) => i)
  const made = await client.submitMany(inputs.map(input => ({ kind, input })))
  const results = await Promise.all(made.map(({ id }) => client.result(id, { withinMs: 100_000 })))
  assert.deepEqual(results.map(r => r.output?.value), inputs)
  for (const [i, { id }] of made.entries()) {
    const got = await frames(id)
    assert.deepEqual(got.map(f => [f.sequence, f.text]), Array.from({ length: 20 }, (_, n) => [n + 1, `${i}.${n} `]))
  }
  assert.ok(calls < 100, `the frames took ${calls} calls`)
})

test("many frames of one execution wait for room, and none is lost", async t => {
  const { client, kind, serve, output, frames } = await setUp(t)
  const large = "x".repeat(60_000)
  serve(async task => {
    const list = []
    for (let i = 0; i < 40; i++) list.push(large, `${i}`)
    await task.frames(list)
    for (let i = 0; i < 2500; i++) await task.frame(`${i}`)
  })
  const { id } = await client.submit(kind)
  await output(id)
  const got = await frames(id)
  assert.deepEqual(got.map(f => f.sequence), Array.from({ length: 2580 }, (_, i) => i + 1))
  assert.deepEqual(got.slice(80).map(f => f.text), Array.from({ length: 2500 }, (_, i) => `${i}`))
})

test("a cancelled execution aborts its handler at once, and nothing more is told", async t => {
  const { client, kind, serve } = await setUp(t)
  const began = event()
  const ended = event()
  serve(async task => {
    began.happen()
    await rest(600_000, task.signal).catch(ended.happen)
    await assert.rejects(task.frame("late"), LeaseLost)
    await assert.rejects(task.step("late", () => 1), LeaseLost)
    return "late"
  }, { leaseMs: 600_000 }) // so that news comes by the call that waits, and not by a renewal
  const { id } = await client.submit(kind)
  await began.happened
  await client.cancel(id)
  const reason = await ended.happened
  assert.ok(reason instanceof LeaseLost, String(reason))
  assert.equal(reason.code, "cancelled")
  assert.equal((await client.result(id)).state, "cancelled")
})

test("a handler outlives its lease while the server is there, and is aborted when nobody can renew it", async t => {
  const { address, client, kind, serve, runOne } = await setUp(t)
  const runs = []
  const began = event()
  const ended = event()
  const proxy = await cutter(t, address, { every: Infinity })
  serve(async task => {
    runs.push(task.attempt)
    if (task.input > 60_000) began.happen()
    await rest(task.input, task.signal).catch(e => (ended.happen(e), Promise.reject(e)))
  }, { client: new Client({ url: proxy.url }), leaseMs: 2000 })
  await runOne(4500)
  assert.deepEqual(runs, [1])
  await client.submit(kind, 600_000)
  await began.happened
  proxy.every = 1
  proxy.bytes = 0
  assert.equal((await ended.happened).code, "lease_expired")
  proxy.every = Infinity
})

test("a stop is heard of at once, and heeded by a step", async t => {
  const { client, kind, serve, output } = await setUp(t)
  const began = event()
  serve(async task => {
    await task.step("begin", () => 1, { turn: "begin" })
    began.happen()
    await rest(600_000, task.stopping).catch(() => {})
    await assert.rejects(task.step("over", () => 1, { turn: "over" }), e => e.code === "turn_stopped")
    await task.step("stopped", () => 1, { turn: "stopped" })
    assert.equal(task.stopping.aborted, false)
    await rest(1000) // the next renewal tells of the stop again, which was heeded
    return task.stopping.aborted
  }, { leaseMs: 2000 })
  const { id } = await client.submit(kind)
  await began.happened
  await client.stop(id)
  assert.equal(await output(id), false)
})

test("a drain lets handlers end, and gives the rest back", async t => {
  const { client, kind, serve, output } = await setUp(t)
  const began = []
  const go = event()
  const { worker, running } = serve(async task => {
    began.push(task.input)
    if (task.input === "short") return go.happened.then(() => "one")
    await rest(600_000, task.signal)
  }, { drainMs: 300, leaseMs: 600_000 })
  const [short, long] = await client.submitMany(["short", "long"].map(input => ({ kind, input })))
  await until(() => began.length === 2)
  worker.stop()
  const late = await client.submit(kind, "late")
  go.happen()
  await running
  assert.equal(await output(short.id), "one")
  assert.deepEqual(began.sort(), ["long", "short"]) // nothing new
  serve(() => "two") // it need not wait for the lease
  assert.equal(await output(long.id), "two")
  assert.equal(await output(late.id), "two")
})

test("run ends with its signal, at once when there is nothing to do, and with a refusal of its session", async t => {
  const { client, kind } = await setUp(t)
  const control = new AbortController()
  const running = new Worker({ client }).handle(kind, () => 1).run(control.signal)
  assert.equal(await client.run(kind), 1)
  control.abort()
  await running
  await new Worker({ client }).handle(kind, () => 1).run(AbortSignal.abort())
  const wrong = new Worker({ client, name: "a name with spaces" }).handle(kind, () => 1)
  await assert.rejects(wrong.run(), e => e.status === 400 && e.field === "/name")
  await assert.rejects(wrong.run(), TypeError)
  await assert.rejects(new Worker({ client }).run(), TypeError)
  for (const options of [{ concurrency: 0 }, { concurrency: 1001 }, { leaseMs: 1999 }, { drainMs: -1 }]) {
    assert.throws(() => new Worker({ client, ...options }), RangeError)
  }
})

test("a session that is gone is opened again, and what it had is not told", async t => {
  const { client, kind, serve, runOne, output } = await setUp(t)
  const began = event()
  const sessions = []
  const reasons = []
  serve(async task => {
    if (task.input !== "long" || reasons.length > 0) return task.input
    began.happen()
    await rest(600_000, task.signal).catch(e => reasons.push(e.code))
  }, { leaseMs: 2000, log: (_, text) => text.startsWith("session ") && sessions.push(text.split(" ")[1]) })
  const long = await client.submit(kind, "long")
  await began.happened
  await client.api.call("POST", `/v1/workers/${sessions[0]}:close`, { body: {} })
  assert.equal(await runOne(5), 5)
  assert.equal(await output(long.id), "long")
  assert.equal(sessions.length, 2)
  assert.equal(reasons.length, 1)
})

test("a worker whose answers are cut does each step once, and all frames are in order", async t => {
  const { address, client, kind, serve, output, frames } = await setUp(t)
  const did = []
  const proxy = await cutter(t, address, { every: 7, bytes: 40 })
  serve(async task => {
    for (let i = 0; i < 20; i++) {
      await task.step(`s${i}`, () => did.push(`${task.input} ${i}`))
      await task.frame(`${i} `)
    }
    return task.input
  }, { client: new Client({ url: proxy.url }) })
  const made = await client.submitMany([0, 1, 2, 3].map(input => ({ kind, input })))
  for (const [i, { id }] of made.entries()) {
    assert.equal(await output(id), i)
    const got = await frames(id)
    assert.deepEqual(got.map(f => f.sequence), got.map((_, n) => n + 1))
  }
  assert.equal(did.length, 80)
  assert.equal(new Set(did).size, 80)
  assert.ok(proxy.cuts > 5, `it was cut ${proxy.cuts} times`)
})

test("a worker goes on when the server is killed and starts again", async t => {
  const data = ["--data", await folder(t), "--fsync", "always"]
  const first = await start(...data)
  const { client, kind, serve, output } = await setUp(t, first.api)
  const did = []
  const began = event()
  const go = event()
  serve(async task => {
    await task.step("before", () => did.push(task.input))
    if (task.input === 0) began.happen()
    await go.happened
    await task.frame("after")
    return task.step("after", () => task.input)
  }, { concurrency: 8, leaseMs: 10_000 })
  const made = await client.submitMany([0, 1, 2, 3].map(input => ({ kind, input })))
  await until(() => did.length === 4)
  await began.happened
  await first.end()
  go.happen() // the calls that follow find nobody
  const later = client.submit(kind, 4)
  const second = await start(...data, "--http", new URL(first.api).host)
  t.after(() => second.end())
  for (const [i, { id }] of made.entries()) assert.equal(await output(id, 100_000), i)
  assert.equal(await output((await later).id, 100_000), 4)
  assert.deepEqual(did.sort(), [0, 1, 2, 3, 4]) // each step once
})

test("lines of a log are kept in order, whatever is in them, and none with logs off", async t => {
  const { address, client, kind, serve } = await setUp(t)
  const loop = [] // a group is an object
  loop.push(loop)
  const counted = await cutter(t, address, { every: Infinity })
  const quiet = new Client({ url: counted.url })
  const off = new Worker({ client: quiet, keepLogs: "off", drainMs: 1000, leaseMs: 3000, log: () => {} })
  let seen = 0
  off.handle(`${kind}-off`, task => { seen = counted.requests; for (let n = 0; n < 200; n++) task.log.error("x") })
  const running = off.run()
  t.after(() => (off.stop(), running))
  serve(task => {
    task.log.debug("left out")
    for (let n = 0; n < 3000; n++) task.log.info(String(n))
  })
  const made = await client.submit(kind)
  assert.equal((await client.result(made.id, { withinMs: 60_000 })).state, "completed")
  const lines = await all(client.logs(made.id))
  assert.ok(lines.length <= 1000 && lines.at(-1).message === "2999" && lines.every(one => one.level === "info"))
  assert.ok(lines.reduce((n, one) => n + (one.dropped ?? 0), 0) > 0)
  const odd = `${kind}-odd`
  serve({ [odd]: task => {
    task.log.info("\ud800", { big: 2n, loop, gone: undefined, list: ["\ud800"], error: new RangeError("far"), a: { b: { c: null } } })
    task.log.warn("x".repeat(20_000), { y: "y".repeat(20_000) })
  } })
  const other = await client.submit(odd)
  assert.equal((await client.result(other.id, { withinMs: 60_000 })).state, "completed")
  const [first, second] = await all(client.logs(other.id))
  assert.equal(first.message, "\ufffd")
  assert.deepEqual([first.attributes.big, first.attributes.gone, first.attributes.list, first.attributes.error, first.attributes["a.b.c"]],
    ["2", "undefined", ["\ufffd"], "RangeError: far", null])
  assert.ok(second.message.endsWith("…") && second.message.length < 8192 && second.level === "warn")
  const third = await client.submit(`${kind}-off`)
  assert.equal((await client.result(third.id, { withinMs: 60_000 })).state, "completed")
  assert.deepEqual(await all(client.logs(third.id)), [])
  assert.ok(seen > 0 && counted.requests - seen <= 3, `${counted.requests - seen} requests`)
})
