// What the suites share: a booth (chat/npm_test.go) with two handlers, and a model that does what the user says.
import assert from "node:assert/strict";

export const url = process.env.CHAT_URL;
let count = 0;

// fresh is the name of a conversation that nobody has used.
export const fresh = () => `chat ${process.pid}/${++count}`;

const ask = async (path, params) => {
  const answer = await fetch(`${url}/test/${path}?${new URLSearchParams(params)}`);
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer;
};

// allow lets the model say so many words slowly, wanted waits until it wants to say its n-th.
export const allow = (id, n) => ask("allow", { id, n });
export const wanted = (id, n) => ask("wanted", { id, n });

// kill is SIGKILL for the worker, and a new one.
const kill = () => ask("kill", {});

// transcript is what is recorded.
export const transcript = async (id, owner = "") => (await ask("transcript", { id, owner })).json();

// recorded are the texts of the assistant as they are recorded.
export const recorded = async (id) => (await transcript(id)).messages
  .filter((m) => m.role === "assistant")
  .map((m) => (m.parts ?? []).filter((p) => p.type === "text").map((p) => p.text).join(""));

// checked is an answer whose events are noted on their way, each with its data and its id.
export function checked(answer, note) {
  assert.match(answer.headers.get("content-type"), /^text\/event-stream/);
  let rest = "";
  return new Response(answer.body.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream({
    async transform(text, out) {
      const parts = (rest + text).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const field = (name) => part.split("\n").find((l) => l.startsWith(`${name}: `))?.slice(name.length + 2);
        const data = field("data");
        if (data && data !== "[DONE]") await note(JSON.parse(data), field("id"));
        out.enqueue(`${part}\n\n`);
      }
    },
    flush() { assert.equal(rest, "", "half an event"); },
  })).pipeThrough(new TextEncoderStream()), answer);
}

// owned are the headers of a request of an owner.
export const owned = (owner) => owner ? { "X-Owner": owner } : {};

// midWord has a front end ask for words, and returns when it was told n of them. running ends with the answer.
export async function midWord(front, words, n) {
  const id = front.conversation;
  const running = front.say(`slowly ${words}`);
  await allow(id, n);
  await front.until((e) => e.delta === `${words.split(" ")[n - 1]} `);
  return { id, running };
}

// killed kills the worker, whose successor has said nothing yet.
export async function killed(id) {
  await allow(id, 0);
  await kill();
}

// post calls a route of the handler for a conversation.
export const post = async (id, act, body = {}, at = "/api/chat") => {
  const answer = await fetch(`${url}${at}/${encodeURIComponent(id)}/${act}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
};
