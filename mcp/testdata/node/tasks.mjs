// What a program does that has the official client and its package for tasks: node tasks.mjs <url> <token> <command> [argument]. Each run is a process of
// its own, and prints one JSON value.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";

const [url, token, command, argument] = process.argv.slice(2);
const protocolVersion = "2026-07-28";
const clientInfo = { name: "tasks.mjs", version: "1" };
const clientCapabilities = { elicitation: { form: {} } };

const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: { pin: protocolVersion } } });
client.setRequestHandler("elicitation/create", (request) => approve(request.params));
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));

function approve(params) {
  if (params.requestedSchema.properties.choice.enum[0] !== "approve") throw new Error("another question: " + params.message);
  return { action: "accept", content: { choice: "approve", comment: "seen: " + params.message } };
}

// The package leaves the sending of requests for tasks to the program.
let next = 0;
async function rawDispatch(request, options) {
  const name = request.params?.taskId ?? request.params?.name;
  const response = await fetch(url, {
    method: "POST",
    signal: options?.signal,
    headers: {
      "Content-Type": "application/json", Accept: "application/json, text/event-stream", Authorization: `Bearer ${token}`,
      "Mcp-Protocol-Version": protocolVersion, "Mcp-Method": request.method, ...(name === undefined ? {} : { "Mcp-Name": name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++next, ...request }),
  });
  const text = await response.text();
  const line = response.headers.get("Content-Type")?.startsWith("text/event-stream")
    ? text.split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).filter(Boolean).at(-1)
    : text;
  const message = JSON.parse(line);
  return message.error === undefined ? { kind: "result", result: message.result } : { kind: "error", error: message.error };
}

const session = createTaskSessionFromClient(client, {
  endpointId: "flowfabric", rawDispatch, v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  onInputRequest: (request) => approve(request.params),
});

const commands = {
  // Calls a tool that asks, and exits at once. The reference is all that is left. (To close the session would cancel the task.)
  async start() {
    const execution = await session.callTool("publish", { topic: argument });
    if (execution.kind !== "task") throw new Error("no task: " + execution.kind);
    let reference;
    await execution.handoff((r) => { reference = r; });
    console.log(JSON.stringify(reference));
    process.exit(0);
  },
  // Comes back for a task, answers what it asks, and waits for the result.
  async resume() {
    const statuses = [];
    const execution = await session.resumeTask(JSON.parse(argument));
    const { outcome } = await execution.settle({ onEvent: (e) => { if (e.type === "task") statuses.push(e.task.status); } });
    return { statuses, text: resultFromTaskOutcome(outcome).content[0].text };
  },
  // Calls a tool that takes its time, cancels it, and looks what became of it.
  async cancel() {
    const execution = await session.callTool("stuck", {});
    await execution.cancel();
    const task = session.task(execution.handle.taskId);
    let seen;
    do seen = await task.snapshot(); while (seen.status === "working");
    return { status: seen.status, outcome: (await execution.result()).status };
  },
  // Tries everything with the task of another caller.
  async steal() {
    const { taskId } = JSON.parse(argument);
    const task = session.task(taskId);
    const codes = [];
    for (const attempt of [() => task.snapshot(), () => task.cancel(), () => task.update({})])
      codes.push(await attempt().then(() => "no error", (error) => error.code ?? error.cause?.code ?? String(error)));
    return codes;
  },
  // A tool that fails is a task that completes, with a result that is an error.
  async fail() {
    const { outcome } = await (await session.callTool("broken", { input: argument })).settle();
    return { status: outcome.status, isError: outcome.result?.isError, code: outcome.error?.code };
  },
  // Without tasks: the client itself asks its user, in rounds.
  async plain() {
    const result = await client.callTool({ name: "publish", arguments: { topic: argument } });
    return result.content[0].text;
  },
};

try {
  console.log(JSON.stringify(await commands[command]()));
} finally {
  await session.close();
  await client.close();
}
