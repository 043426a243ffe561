// The transport against a server that breaks streams, is away, and refuses.
import assert from "node:assert/strict"
import { createServer } from "node:http"
import test from "node:test"
import { AbstractChat } from "ai"
import { FlowFabricChatTransport } from "../dist/index.js"

// serve answers each request by the next of the answers, and keeps what was asked.
async function serve(t, answers) {
  const asked = []
  const server = createServer(async (q, w) => {
    let body = ""
    for await (const piece of q) body += piece
    asked.push({ method: q.method, url: q.url, body: body && JSON.parse(body), after: q.headers["last-event-id"], token: q.headers.token })
    const answer = answers.shift()
    if (!answer) w.writeHead(500).end()
    else await answer(w, q)
  })
  await new Promise(resolve => server.listen(0, "127.0.0.1", resolve))
  t.after(() => (server.closeAllConnections(), server.close()))
  return { api: `http://127.0.0.1:${server.address().port}/api/chat`, asked, left: answers }
}

const stream = (events, end) => w => {
  w.writeHead(200, { "content-type": "text/event-stream" })
  for (const [id, chunk] of events) w.write(`id: ${id}\r\ndata: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\r\n\r\n`)
  if (end === "break") setImmediate(() => setImmediate(() => w.destroy()))
  else if (end !== "hang") w.end()
}
const text = (id, delta) => ({ type: "text-delta", id: "t", delta })
const head = [["1", { type: "start", messageId: "re-u" }], ["2", { type: "text-start", id: "t" }], ["3", text("t", "The w")]]
const tail = [["4", text("t", "ord")], ["5", { type: "text-end", id: "t" }], ["6", { type: "finish", finishReason: "stop" }], ["", "[DONE]"]]

class Chat extends AbstractChat {
  constructor(init) {
    const state = {
      status: "ready", error: undefined, messages: [],
      pushMessage(m) { state.messages = [...state.messages, m] },
      popMessage() { state.messages = state.messages.slice(0, -1) },
      replaceMessage(i, m) { state.messages = state.messages.with(i, structuredClone(m)) },
      snapshot: x => structuredClone(x),
    }
    super({ ...init, state })
  }
}
const said = chat => chat.messages.map(m => m.parts.map(p => p.text ?? "").join(""))

test("a stream that breaks goes on behind its last event, and the server may be away meanwhile", async t => {
  const s = await serve(t, [
    stream(head, "break"), w => w.destroy(), w => w.writeHead(503).end(), stream([["4", text("t", "or")]], ""), stream([["4b", text("t", "d")], ...tail.slice(1)], ""),
  ])
  let finish
  const chat = new Chat({ id: "a/b", transport: new FlowFabricChatTransport({ api: s.api, headers: () => ({ token: "x" }) }), onFinish: f => (finish = f) })
  chat.messages = [{ id: "old", role: "user", parts: [{ type: "text", text: "old" }] }]
  await chat.sendMessage({ id: "u", parts: [{ type: "text", text: "hello" }] })
  assert.deepEqual(said(chat), ["old", "hello", "The word"])
  assert.deepEqual([finish.finishReason, finish.isError, chat.status], ["stop", false, "ready"])
  assert.deepEqual(s.asked[0].body.messages.map(m => m.id), ["u"]) // the last one only
  assert.deepEqual(s.asked.slice(1).map(q => [q.method, q.url, q.after, q.token]), ["3", "3", "3", "4"].map(after => ["GET", "/api/chat/a%2Fb/stream", after, "x"]))
})

test("a message whose answer is lost is sent again under its id", async t => {
  const s = await serve(t, [w => w.destroy(), w => w.writeHead(502).end(), stream([...head, ...tail], "")])
  const chat = new Chat({ id: "a", transport: new FlowFabricChatTransport({ api: s.api }) })
  await chat.sendMessage({ id: "u", parts: [{ type: "text", text: "hello" }] })
  assert.deepEqual(said(chat), ["hello", "The word"])
  assert.deepEqual(s.asked.map(q => q.body.messages[0].id), ["u", "u", "u"])
})

test("an answer that is made again ends without finish, and a resume replaces it", async t => {
  const s = await serve(t, [
    stream([...head, ["3", { type: "abort", reason: "again" }], ["", "[DONE]"]], ""), stream([...head, ...tail], ""), w => w.writeHead(204).end(),
  ])
  const finishes = []
  const chat = new Chat({ id: "a", transport: new FlowFabricChatTransport({ api: s.api }), onFinish: f => finishes.push(f) })
  await chat.sendMessage({ id: "u", parts: [{ type: "text", text: "hello" }] })
  assert.deepEqual([finishes[0].finishReason, finishes[0].isAbort, finishes[0].isError], [undefined, false, false])
  await chat.resumeStream()
  assert.deepEqual(said(chat), ["hello", "The word"])
  assert.equal(finishes[1].finishReason, "stop")
  await chat.resumeStream() // nothing is being answered
  assert.equal(finishes.length, 2)
  assert.equal(s.left.length, 0)
})

test("another answer in the place of a broken one is left to a resume", async t => {
  const s = await serve(t, [stream(head, "break"), stream([...head, ...tail], "")])
  let finish
  const chat = new Chat({ id: "a", transport: new FlowFabricChatTransport({ api: s.api }), onFinish: f => (finish = f) })
  await chat.sendMessage({ id: "u", parts: [{ type: "text", text: "hello" }] })
  assert.deepEqual([said(chat), finish.finishReason], [["hello", "The w"], undefined])
})

test("stop() stops the model, and a resume in the place of another one stops nothing", async t => {
  let stopped, streaming
  const shown = new Promise(resolve => (streaming = resolve))
  const stop = new Promise(resolve => (stopped = resolve))
  const either = (w, q) => (q.method === "GET" ? stream(head, "hang")(w) : (w.writeHead(200).end("{}"), stopped(q.url)))
  const s = await serve(t, [either, either, either, either]) // an aborted request may not arrive
  const chat = new Chat({ id: "a", transport: new FlowFabricChatTransport({ api: s.api }) })
  const first = chat.resumeStream()
  const second = chat.resumeStream()
  await first
  const third = chat.resumeStream()
  await second
  const wait = () => (said(chat)[0] === "The w" ? streaming() : setImmediate(wait))
  wait()
  await shown
  await chat.stop()
  await third
  assert.equal(await stop, "/api/chat/a/stop")
  assert.equal(s.asked.filter(q => q.method === "POST").length, 1)
  assert.equal(chat.status, "ready")
})

test("answers, and refusals in the server's words", async t => {
  const s = await serve(t, [
    w => w.writeHead(200).end("{}"), w => w.writeHead(422, { "content-type": "application/problem+json" }).end(`{"detail":"amount is 0"}`), w => w.writeHead(409).end(`{"detail":"busy"}`),
  ])
  const transport = new FlowFabricChatTransport({ api: s.api })
  const answer = { approvalId: "w1", approved: true, reason: "ok", arguments: { amount: 1 } }
  await transport.answer("a", answer)
  assert.deepEqual([s.asked[0].url, s.asked[0].body], ["/api/chat/a/answer", answer])
  await assert.rejects(transport.answer("a", answer), { message: "amount is 0" })
  const chat = new Chat({ id: "a", transport })
  await chat.sendMessage({ text: "hello" })
  assert.deepEqual([chat.status, chat.error.message], ["error", "busy"])
})

test("a server that stays away is an error", async t => {
  const s = await serve(t, [w => w.destroy(), w => w.destroy()])
  const chat = new Chat({ id: "a", transport: new FlowFabricChatTransport({ api: s.api, tries: 2 }) })
  await chat.sendMessage({ text: "hello" })
  assert.deepEqual([chat.status, s.asked.length], ["error", 2])
})
