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
export const kill = () => ask("kill", {});

// transcript is what is recorded.
export const transcript = async (id, owner = "") => (await ask("transcript", { id, owner })).json();

// recorded are the texts of the assistant as they are recorded.
export const recorded = async (id) => (await transcript(id)).messages
  .filter((m) => m.role === "assistant")
  .map((m) => (m.parts ?? []).filter((p) => p.type === "text").map((p) => p.text).join(""));

// post calls a route of the handler for a conversation.
export const post = async (id, act, body = {}, at = "/api/chat") => {
  const answer = await fetch(`${url}${at}/${encodeURIComponent(id)}/${act}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
};
