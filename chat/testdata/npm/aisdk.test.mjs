// The AI SDK, as it is, against the handler: its Chat without a framework around it, and its transport. Each chunk and
// each history is checked by the SDK's own schemas.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, readUIMessageStream,
  uiMessageChunkSchema, validateUIMessages } from "ai";
import { allow, checked, fresh, killed, midWord, owned, post, recorded, transcript, url, wanted } from "./booth.mjs";

// State is what a page keeps.
class State {
  status = "ready";
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage = (m) => { this.messages = this.messages.concat(m); };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (at, m) => { this.messages = this.messages.toSpliced(at, 1, structuredClone(m)); };
  snapshot = (thing) => structuredClone(thing);
}

class Chat extends AbstractChat {}

const schema = uiMessageChunkSchema();

// valid is an answer whose chunks are valid.
function valid(answer, note) {
  assert.equal(answer.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  return checked(answer, async (chunk, place) => {
    const result = await schema.validate(chunk);
    assert.ok(result.success, `${JSON.stringify(chunk)}: ${result.error}`);
    note(chunk, place);
  });
}

// chunksOf are the chunks of an answer.
async function chunksOf(answer) {
  const chunks = [];
  await valid(answer, (c) => chunks.push(c)).text();
  return chunks;
}

// page is a page with a chat. One whose stream is void comes back by itself, as a page should.
function page(id, { messages = [], at = "/api/chat", owner = "", ...init } = {}) {
  const chunks = [], places = [], data = [];
  let woken = () => {}, cameBack;
  const back = new Promise((resolve) => { cameBack = resolve; });
  const chat = new Chat({
    id, state: new State(messages), onData: (d) => data.push(d), onError: (e) => { chat.failure = e; },
    onFinish: ({ isAbort }) => { chat.aborted = isAbort; }, ...init,
    transport: new DefaultChatTransport({
      api: url + at, headers: owned(owner),
      fetch: async (where, options) => {
        const answer = await fetch(where, options);
        if (options.method === "GET") cameBack();
        return answer.body && answer.ok ? valid(answer, (chunk, place) => {
          chunks.push(chunk);
          places.push(place);
          woken();
        }) : answer;
      },
    }),
  });
  chat.conversation = id;
  chat.say = (text) => chat.sendMessage({ text });
  chat.chunks = chunks;
  chat.places = places;
  chat.data = data;
  chat.back = back; // when the page is back for the first time
  chat.types = () => chunks.map((c) => c.type);
  // until waits for a chunk.
  chat.until = (holds) => new Promise((resolve) => {
    const look = () => { if (chunks.some(holds)) resolve(); };
    woken = look;
    look();
  });
  // whole waits until the answer is whole. After an abort that is not the last word the page comes back. If the answer
  // has become whole meanwhile, nothing is being answered, and the page reads the conversation.
  chat.whole = async (acting) => {
    await acting;
    while (chunks.at(-1)?.type === "abort") {
      const before = chunks.length;
      await chat.resumeStream();
      if (chunks.length > before) continue;
      chat.messages = (await shown(id)).messages;
      return;
    }
  };
  return chat;
}

const name = () => fresh().replaceAll(/[ /]/g, "-");
const said = (m) => m.parts.filter((p) => p.type === "text").map((p) => p.text).join("");
const texts = (chat) => chat.messages.filter((m) => m.role === "assistant").map(said);
const tool = (chat) => chat.messages.flatMap((m) => m.parts).find((p) => p.type.startsWith("tool-"));

// shown is the history of a conversation as the server has it, which the SDK finds valid.
async function shown(id) {
  const answer = await fetch(`${url}/api/chat/${encodeURIComponent(id)}`);
  const { messages, state } = await answer.json();
  await validateUIMessages({ messages });
  return { messages, state };
}

// plainly leaves out of messages what only one side has, such as who sent them, in the page that did.
const plainly = (messages) => JSON.parse(JSON.stringify(messages, (key, value) =>
  ["providerMetadata", "callProviderMetadata", "rawInput"].includes(key) ||
    key === "metadata" && value?.by ? undefined
    : value?.type === "reasoning" ? { ...value, id: undefined } : value));

// same says that a page shows what the server has, and what is recorded.
async function same(chat) {
  const { messages } = await shown(chat.id);
  await validateUIMessages({ messages: chat.messages });
  assert.deepEqual(plainly(chat.messages), plainly(messages));
  assert.equal(texts(chat).join(""), (await recorded(chat.id)).join(""));
}

test("a message is answered, word for word what is recorded", async () => {
  const a = page(name());
  await a.say("say Grüße aus Köln 🎉");
  assert.deepEqual(texts(a), ["Grüße aus Köln 🎉"]);
  assert.deepEqual(a.types().at(-1), "finish");
  assert.equal(a.chunks.at(-1).finishReason, "stop");
  assert.deepEqual(a.messages[1].metadata, { model: "puppet", usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10,
    reasoningTokens: 1 } });
  await same(a);
  await a.say("say more");
  assert.deepEqual(texts(a), ["Grüße aus Köln 🎉", "more"]);
  await same(a);
});

test("what the model thinks, steps, and a tool whose input streams", async () => {
  const a = page(name());
  await a.say("think it is so");
  assert.equal(a.messages[1].parts.find((p) => p.type === "reasoning").text, "hm let me see");
  await a.say("add 2 3");
  assert.ok(a.types().filter((t) => t === "tool-input-delta").length > 1);
  assert.deepEqual([tool(a).type, tool(a).state, tool(a).input, tool(a).output],
    ["tool-add", "output-available", { a: 2, b: 3 }, "5"]);
  assert.equal(a.messages[3].parts.filter((p) => p.type === "step-start").length, 2);
  await same(a);
});

for (const [how, approved, reason, state] of [["approved", true, undefined, "output-available"],
  ["rejected", false, "too much", "output-denied"]]) {
  test(`a call is ${how}`, async () => {
    const a = page(name(), { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses });
    await a.say("pay 5");
    assert.equal(tool(a).state, "approval-requested");
    await validateUIMessages({ messages: a.messages });
    assert.equal((await shown(a.id)).state, "asking");
    await a.addToolApprovalResponse({ id: tool(a).approval.id, approved, reason });
    await a.until((c) => c.type === "finish" && c.finishReason === "stop");
    while (a.status !== "ready") await new Promise(setImmediate);
    assert.equal(tool(a).state, state);
    assert.equal(texts(a).length, 1);
    assert.deepEqual(texts(a), [(await recorded(a.id)).join("")]);
    await validateUIMessages({ messages: a.messages });
  });
}

test("a call is approved with other arguments, and another page sees it", async () => {
  const a = page(name());
  await a.say("pay 5");
  const b = page(a.id, { messages: (await shown(a.id)).messages });
  const { id } = tool(b).approval;
  const bad = await post(a.id, "answer", { approvalId: id, approved: true, arguments: { cents: "many" } });
  assert.deepEqual([bad.status, bad.body.code], [422, "arguments_refused"]);
  const good = await post(a.id, "answer", { approvalId: id, approved: true, arguments: { cents: 3, to: "bob" } });
  assert.equal(good.status, 200);
  for (const p of [a, b]) {
    await p.whole(p.resumeStream());
    p.messages = (await shown(a.id)).messages;
    assert.deepEqual([tool(p).state, tool(p).input, tool(p).output], ["output-available", { cents: 3, to: "bob" },
      "paid 3"]);
    await same(p);
  }
});

test("files, sources and data", async () => {
  const a = page(name());
  const bytes = Buffer.from("\x89PNG".repeat(500), "latin1").toString("base64");
  await a.sendMessage({ text: "draw here it is", files: [{ type: "file", mediaType: "image/png", filename: "x.png",
    url: `data:image/png;base64,${bytes}` }] });
  const drawn = a.messages[1].parts.find((p) => p.type === "file");
  const file = await fetch(url + drawn.url);
  assert.equal(file.headers.get("content-type"), "image/png");
  const [sent] = (await shown(a.id)).messages;
  const own = sent.parts.find((p) => p.type === "file");
  assert.equal(Buffer.from(await (await fetch(url + own.url)).arrayBuffer()).toString("base64"), bytes);

  const b = page(name());
  await b.say("note 3");
  const kinds = b.messages[1].parts.map((p) => p.type);
  for (const kind of ["source-url", "source-document", "data-weather"]) assert.ok(kinds.includes(kind), `${kinds}`);
  assert.deepEqual(b.messages[1].parts.find((p) => p.type === "data-weather").data, { city: "Rome", sun: true });
  assert.ok(b.data.some((d) => d.type === "data-state" && d.data.done === 3));
  await same(b);
});

test("a page that is loaded in mid-word gets the whole message, and goes on", async () => {
  const a = page(name());
  const { id, running } = await midWord(a, "one two three four", 2);
  const b = page(id, { messages: (await shown(id)).messages });
  assert.deepEqual(texts(b), ["one two "]);
  const other = b.resumeStream();
  await b.until((c) => c.delta === "two ");
  await allow(id, 4);
  await Promise.all([running, other]);
  assert.deepEqual(texts(b), ["one two three four"]);
  assert.deepEqual(plainly(b.messages), plainly(a.messages));
  await same(b);
  assert.equal((await fetch(`${url}/api/chat/${id}/stream`)).status, 204);
});

test("who comes back behind any chunk gets exactly the rest", async () => {
  const a = page(name());
  const { id, running } = await midWord(a, "one two three", 2);
  const place = a.places.findLast(Boolean);
  const rest = await fetch(`${url}/other/${id}/stream`, { headers: { "Last-Event-ID": place } });
  await allow(id, 3);
  await running;
  const chunks = await chunksOf(rest);
  assert.deepEqual(chunks.filter((c) => c.type === "text-delta").map((c) => c.delta), ["three"]);
  assert.equal(chunks.at(-1).type, "finish");
});

test("a stop from another page ends the words", async () => {
  const a = page(name());
  const { id, running } = await midWord(a, "one two three", 1);
  const { status, body } = await post(id, "stop");
  assert.deepEqual([status, body.stopped], [200, true]);
  await running;
  assert.deepEqual(texts(a), ["one "]);
  assert.equal(a.status, "ready");
  assert.deepEqual((await recorded(id)), ["one "]);
  assert.equal(a.messages[1].metadata.stopped.act, "stop");
  await a.say("say and on");
  assert.deepEqual(texts(a), ["one ", "and on"]);
  await same(a);
});

test("two pages stop at once, and one of them sends", async () => {
  const a = page(name());
  const { id, running } = await midWord(a, "one two", 1);
  const b = page(id, { messages: (await shown(id)).messages });
  const [one, two] = await Promise.all([post(id, "stop"), post(id, "stop"), b.say("say hi")]);
  assert.deepEqual([one.status, two.status], [200, 200]);
  await allow(id, 2);
  await running;
  const { messages } = await shown(id);
  assert.equal(said(messages.at(-1)), "hi");
  assert.equal(said(b.messages.at(-1)), "hi");
});

test("a worker that is killed in mid-word: the page shows what is recorded", async () => {
  const a = page(name());
  const { id, running } = await midWord(a, "one two three", 2);
  await killed(id);
  await wanted(id, 1);
  await allow(id, 3);
  await a.whole(running);
  assert.ok(a.types().includes("abort"));
  assert.deepEqual(texts(a), ["one two three"]);
  await same(a);
});

test("a worker that is killed while the page waits: what comes back is told under the same id", async () => {
  const a = page(name());
  const { id, running } = await midWord(a, "one two three", 2);
  await killed(id);
  await running;
  const more = a.resumeStream();
  await a.back;
  await allow(id, 3);
  await more;
  assert.equal(a.types().at(-1), "finish");
  assert.deepEqual(texts(a), ["one two three"]);
  await same(a);
});

test("an answer is made again, and a message is changed", async () => {
  const a = page(name());
  await a.say("say one");
  await a.regenerate();
  assert.deepEqual(texts(a), ["one"]);
  assert.equal((await transcript(a.id)).messages.length, 2);
  await same(a);
  await a.sendMessage({ text: "say two", messageId: a.messages[0].id });
  assert.deepEqual(a.messages.map(said), ["say two", "two"]);
  await same(a);
});

test("a POST that is sent twice is one message", async () => {
  const a = page(name());
  await a.say("say one");
  const again = await fetch(`${url}/api/chat`, { method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ id: a.id, messages: [a.messages[0]], trigger: "submit-message" }) });
  const chunks = await chunksOf(again);
  assert.equal(chunks.filter((c) => c.type === "text-delta").map((c) => c.delta).join(""), "one");
  assert.equal((await transcript(a.id)).messages.length, 2);
});

test("a history that is not the server's is refused", async () => {
  const a = page(name());
  await a.say("say one");
  const forged = structuredClone(a.messages);
  forged[0].parts[0].text = "say something else";
  const b = page(a.id, { messages: forged });
  await b.say("say two");
  assert.equal(b.status, "error");
  assert.match(b.failure.message, /history_differs/);
  assert.deepEqual(await recorded(a.id), ["one"]);
});

test("a failure is told, without what it says of the server", async () => {
  const a = page(name());
  await a.say("fail");
  assert.equal(a.status, "error");
  assert.doesNotMatch(JSON.stringify(a.chunks), /secret/);
  assert.equal(a.chunks.at(-1).type, "error");
  await shown(a.id);
});

test("the stream is what readUIMessageStream reads", async () => {
  const id = name();
  const transport = new DefaultChatTransport({ api: `${url}/api/chat` });
  const stream = await transport.sendMessages({ chatId: id, trigger: "submit-message", messages: [{ id: "u1",
    role: "user", parts: [{ type: "text", text: "both 2 3" }] }] });
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  assert.equal(last.id, "re-u1");
  assert.equal(said(last), "It says 5 and 5");
  assert.deepEqual(plainly([last]), plainly([(await shown(id)).messages[1]]));
});

test("someone else's conversation is not there", async () => {
  const a = page(name());
  await a.say("say mine");
  const answer = await fetch(`${url}/api/chat/${a.id}`, { headers: { "X-Owner": "bob" } });
  assert.equal(answer.status, 404);
  const b = page(a.id, { owner: "bob" });
  await b.say("say his");
  assert.deepEqual(b.messages.map(said), ["say his", "his"]);
});
