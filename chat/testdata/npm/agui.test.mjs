// The client of AG-UI, as it is, against the handler. Each event is checked by the schemas of the protocol before the
// client sees it, and the client checks their order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";
import { EventSchemas, MessageSchema, RunAgentInputSchema } from "@ag-ui/core/schemas";
import { allow, checked, fresh, killed, midWord, owned, post, recorded, transcript, url, wanted } from "./booth.mjs";

// client is an agent of a thread, and what it was sent.
function client(threadId, { at = "/api/chat", owner = "", messages = [] } = {}) {
  const events = [];
  const agent = new HttpAgent({
    url: `${url}${at}/agui`, threadId, initialMessages: messages, headers: owned(owner),
    fetch: async (where, init) => {
      RunAgentInputSchema.parse(JSON.parse(init.body));
      const answer = await fetch(where, init);
      return !answer.ok ? answer : checked(answer, (data) => {
        const event = EventSchemas.parse(data);
        events.push(event);
        agent.seen?.(event);
      });
    },
  });
  agent.conversation = threadId;
  agent.events = events;
  agent.types = () => events.map((e) => e.type);
  agent.last = () => events[events.length - 1];
  // say adds a message of the user and runs.
  agent.say = (content, parameters) => {
    const id = `u${agent.messages.length}-${Math.random().toString(36).slice(2)}`;
    agent.addMessage({ id, role: "user", content });
    return agent.runAgent(parameters);
  };
  // until waits for an event.
  agent.until = (holds) => new Promise((resolve) => {
    if (events.some(holds)) return resolve();
    agent.seen = (e) => { if (holds(e)) resolve(); };
  });
  return agent;
}

const texts = (agent) => agent.messages.filter((m) => m.role === "assistant").map((m) => m.content ?? "");
const dialogue = (agent) => agent.messages.map((m) => `${m.role}: ${typeof m.content === "string" ? m.content : "…"}`);
const count = (agent, type) => agent.types().filter((t) => t === type).length;

function finished(agent, outcome = "success") {
  assert.equal(agent.last()?.type, "RUN_FINISHED", JSON.stringify(agent.last()));
  assert.equal(agent.last().outcome.type, outcome);
  for (const m of agent.messages) MessageSchema.parse(m);
}

// says checks that a run has ended, and that the client shows the answers that are recorded.
async function says(agent, ...answers) {
  finished(agent);
  assert.deepEqual(texts(agent), answers);
  assert.deepEqual(await recorded(agent.threadId), answers);
}

function failed(agent, code) {
  assert.equal(agent.last().type, "RUN_ERROR");
  assert.equal(agent.last().code, code);
}

// resume is the answer to the first question.
const resume = ({ pendingInterrupts: open }, answer) => buildResumeArray(open, { [open[0].id]: answer });

test("a message is answered, word for word what is recorded", async () => {
  const a = client(fresh());
  await a.say("say Grüße aus Köln 🎉");
  await says(a, "Grüße aus Köln 🎉");
  assert.equal(count(a, "MESSAGES_SNAPSHOT"), 0);
  assert.ok(count(a, "TEXT_MESSAGE_CONTENT") > 2);
  assert.deepEqual(a.last().usage, [{ model: "puppet", inputTokens: 7, outputTokens: 3, totalTokens: 10,
    reasoningTokens: 1 }]);
  assert.equal(a.events[0].protocolVersion, "1.0");
});

test("a thread goes on, run after run", async () => {
  const a = client(fresh());
  for (const word of ["one", "two", "three"]) await a.say(`say ${word}`);
  await says(a, "one", "two", "three");
  assert.equal(count(a, "MESSAGES_SNAPSHOT"), 0);
});

test("what the model thinks is shown", async () => {
  const a = client(fresh());
  await a.say("think it is so");
  finished(a);
  assert.deepEqual(dialogue(a).slice(1), ["reasoning: hm let me see", "assistant: it is so"]);
});

test("a call of a tool, its arguments as they stream, and its result", async () => {
  const a = client(fresh());
  await a.say("add 2 3");
  finished(a);
  assert.ok(count(a, "TOOL_CALL_ARGS") > 1);
  const [, wants, result, answer] = a.messages;
  assert.deepEqual([wants.toolCalls[0].function, result.toolCallId, result.content, answer.content],
    [{ name: "add", arguments: `{"a":2,"b":3}` }, wants.toolCalls[0].id, "5", "It says 5"]);
  assert.equal(count(a, "STEP_STARTED"), 2);
  assert.deepEqual(texts(a), await recorded(a.threadId));
});

test("two calls at once", async () => {
  const a = client(fresh());
  await a.say("both 2 3");
  finished(a);
  assert.equal(a.messages[1].toolCalls.length, 2);
  assert.deepEqual(dialogue(a).slice(2), ["tool: 5", "tool: 5", "assistant: It says 5 and 5"]);
});

for (const [name, payload, content] of [
  ["as it is", { approved: true }, /^paid 5$/],
  ["with other arguments", { approved: true, editedArgs: { cents: 3, to: "bob" } }, /paid 3$/],
  ["not at all", { approved: false, reason: "too much" }, /rejected by owner: too much/],
]) {
  test(`a call is approved ${name}`, async () => {
    const a = client(fresh());
    await a.say("pay 5");
    finished(a, "interrupt");
    const [interrupt] = a.pendingInterrupts;
    assert.equal(interrupt.reason, "tool_call");
    assert.equal(interrupt.toolCallId, a.messages[1].toolCalls[0].id);
    assert.ok(interrupt.responseSchema.properties.editedArgs.properties.cents);
    const before = a.events.length;
    await a.runAgent({ resume: resume(a, { status: "resolved", payload }) });
    finished(a);
    const result = a.messages.find((m) => m.role === "tool");
    assert.match(result.content, content);
    assert.equal(result.toolCallId, interrupt.toolCallId);
    assert.deepEqual(a.pendingInterrupts, []);
    assert.deepEqual(texts(a), await recorded(a.threadId));
    const again = a.events.slice(before).map((e) => e.type);
    assert.ok(!again.includes("TOOL_CALL_START"), "the call is told twice");
    assert.ok(!again.includes("MESSAGES_SNAPSHOT"), "the client has what was told");
  });
}

test("an interrupt that is cancelled is a rejection", async () => {
  const a = client(fresh());
  await a.say("pay 5");
  await a.runAgent({ resume: resume(a, { status: "cancelled" }) });
  finished(a);
  assert.match(a.messages.find((m) => m.role === "tool").content, /rejected/);
});

test("a resume that is sent twice changes nothing", async () => {
  const a = client(fresh());
  await a.say("pay 5");
  const twice = { resume: resume(a, { status: "resolved", payload: { approved: true } }) };
  await a.runAgent(twice);
  const has = dialogue(a);
  await a.runAgent(twice);
  finished(a);
  assert.deepEqual(dialogue(a), has);
  assert.equal((await transcript(a.threadId)).messages.length, 4);
});

test("arguments that do not fit are refused, and the question stays", async () => {
  const a = client(fresh());
  await a.say("pay 5");
  const answer = (payload) => resume(asked, { status: "resolved", payload });
  const asked = { pendingInterrupts: a.pendingInterrupts };
  await a.runAgent({ resume: answer({ approved: true, editedArgs: { cents: "many" } }) });
  failed(a, "arguments_refused");
  assert.match(a.last().message, /cents/);
  await a.runAgent({ resume: answer({ approved: true }) });
  finished(a);
});

test("while people are asked, a message is refused; a page that is loaded again is asked again", async () => {
  const id = fresh();
  const a = client(id);
  await a.say("pay 5");
  const b = client(id);
  await b.say("say more");
  failed(b, "interrupts_pending");
  const c = client(id);
  await c.runAgent();
  finished(c, "interrupt");
  assert.deepEqual(c.pendingInterrupts, a.pendingInterrupts);
  assert.deepEqual(dialogue(c), dialogue(a));
});

test("state, activities and events of the application", async () => {
  const a = client(fresh());
  await a.say("note 5");
  finished(a);
  assert.equal(a.state.done, 5);
  assert.equal(a.state.of, 5);
  assert.ok(count(a, "STATE_SNAPSHOT") > 0);
  const kept = a.messages.filter((m) => m.role === "activity").map((m) => [m.activityType, m.content]);
  assert.deepEqual(kept, [["source", { url: "https://example.com/a", title: "A" }],
    ["source", { media_type: "application/pdf", title: "B", filename: "b.pdf" }],
    ["weather", { city: "Rome", sun: true }]]);
  assert.ok(a.events.some((e) => e.type === "CUSTOM" && e.name === "tick" && e.value === 1));
  const b = client(a.threadId);
  await b.runAgent();
  assert.deepEqual(b.state, a.state);
  assert.deepEqual(b.messages, a.messages.map(({ metadata, ...m }) => m));
});

test("images, sent and drawn", async () => {
  const a = client(fresh());
  const bytes = Buffer.from("\x89PNG".repeat(500), "latin1").toString("base64");
  await a.say([{ type: "text", text: "draw here it is" },
    { type: "image", source: { type: "data", value: bytes, mimeType: "image/png" }, metadata: { filename: "x.png" } }]);
  finished(a);
  const drawn = a.messages.find((m) => m.role === "activity");
  assert.equal(drawn.activityType, "file");
  const file = await fetch(url + drawn.content.url);
  assert.equal(file.headers.get("content-type"), "image/png");
  const b = client(a.threadId);
  await b.runAgent();
  const [sent] = b.messages;
  assert.deepEqual(sent.content[0], { type: "text", text: "draw here it is" });
  assert.equal(sent.content[1].source.type, "url");
  assert.equal(Buffer.from(await (await fetch(url + sent.content[1].source.value)).arrayBuffer()).toString("base64"),
    bytes);
});

test("a page that is loaded in mid-word goes on behind the word", async () => {
  const a = client(fresh());
  const { id, running } = await midWord(a, "one two three four", 2);
  const b = client(id);
  const other = b.runAgent();
  await b.until((e) => e.delta === "two ");
  await allow(id, 4);
  await Promise.all([running, other]);
  finished(a);
  assert.deepEqual(dialogue(a), dialogue(b));
  await says(b, "one two three four");
});

test("a client that goes away stops nothing, and comes back through another gateway", async () => {
  const a = client(fresh());
  const { id, running } = await midWord(a, "one two three", 1);
  a.abortRun();
  await running;
  const b = client(id, { at: "/other", messages: a.messages });
  const other = b.runAgent();
  await b.until((e) => e.type === "RUN_STARTED");
  await allow(id, 3);
  await other;
  await says(b, "one two three");
});

test("a stop from another page ends the words, and the run is cancelled", async () => {
  const a = client(fresh());
  const { id, running } = await midWord(a, "one two three", 1);
  const { status, body } = await post(id, "stop");
  assert.deepEqual([status, body.stopped], [200, true]);
  await running;
  finished(a, "cancelled");
  assert.deepEqual(texts(a), ["one "]);
  assert.deepEqual(texts(a), await recorded(id));
  await a.say("say and on");
  finished(a);
  assert.deepEqual(texts(a), await recorded(id));
});

test("a worker that is killed in mid-word: the answer is made again, and the words are right", async () => {
  const a = client(fresh());
  const { id, running } = await midWord(a, "one two three", 2);
  await killed(id);
  await wanted(id, 1);
  await allow(id, 3);
  await running;
  await says(a, "one two three");
  assert.ok(count(a, "MESSAGES_SNAPSHOT") > 0);
});

test("a history that is not the server's is refused, or is an edit", async () => {
  const a = client(fresh());
  await a.say("say one");
  await a.say("say two");
  const forged = structuredClone(a.messages);
  forged[2].content = "say something else";
  const b = client(a.threadId, { messages: forged });
  await b.say("say three");
  failed(b, "history_differs");
  assert.deepEqual(await recorded(a.threadId), ["one", "two"]);

  const c = client(a.threadId, { at: "/other", messages: forged.slice(0, 3) });
  await c.runAgent();
  await says(c, "one", "something else");
});

test("a page that lacks the newest messages gets them", async () => {
  const a = client(fresh());
  await a.say("say one");
  const b = client(a.threadId, { messages: structuredClone(a.messages) });
  await a.say("say two");
  await b.say("say three");
  await says(b, "one", "two", "three");
});

test("an answer is made again, and a message is changed", async () => {
  const a = client(fresh());
  await a.say("say one");
  const id = a.messages[0].id;
  await a.runAgent({ forwardedProps: { trigger: "regenerate-message" } });
  finished(a);
  assert.deepEqual(texts(a), ["one"]);
  assert.equal((await transcript(a.threadId)).messages.length, 2);
  a.setMessages([{ id, role: "user", content: "say two" }]);
  await a.runAgent({ forwardedProps: { messageId: id } });
  finished(a);
  assert.deepEqual(dialogue(a), ["user: say two", "assistant: two"]);
  assert.deepEqual(texts(a), await recorded(a.threadId));
});

test("a POST that is sent twice is one message", async () => {
  const a = client(fresh());
  await a.say("say one");
  const b = client(a.threadId, { messages: [a.messages[0]] });
  await b.runAgent();
  finished(b);
  assert.deepEqual(dialogue(b), dialogue(a));
  assert.equal((await transcript(a.threadId)).messages.length, 2);
});

test("a failure is told, without what it says of the server", async () => {
  const a = client(fresh());
  await a.say("fail");
  assert.equal(a.last().type, "RUN_ERROR");
  assert.doesNotMatch(JSON.stringify(a.events), /secret/);
});

test("a thread that nobody has begun has nothing to say, and one of somebody else is not there", async () => {
  const a = client(fresh());
  await a.runAgent();
  finished(a);
  assert.deepEqual(a.types(), ["RUN_STARTED", "RUN_FINISHED"]);
  await a.say("say mine");
  const b = client(a.threadId, { owner: "bob" });
  await b.runAgent();
  assert.deepEqual(b.messages, []);
  const c = client(a.threadId, { owner: "nobody" });
  await assert.rejects(c.runAgent(), /401/);
});

test("two clients that begin the same thread at once", async () => {
  const id = fresh();
  const [a, b] = [client(id), client(id)];
  await Promise.all([a.say("say left"), b.say("say right")]);
  finished(a);
  finished(b);
  assert.deepEqual((await transcript(id)).messages.filter((m) => m.role === "user").length, 2);
});
