// Plays with the tasks of a server like python/fastmcp_server.py, as ext-tasks does on the
// client of the TypeScript SDK 2.x, and prints what it found, as JSON. Standard input has
// the target, {url} or {argv}, a label for what is run, and the id resume of a task that an
// earlier run left, to look for that.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";
import { setTimeout as sleep } from "node:timers/promises";

const revision = "2026-07-28";
const clientInfo = { name: "interop-ext-tasks", version: "1" };
const capabilities = { elicitation: { form: {} } };

/**
 * rawDispatch sends requests around the SDK's client, which refuses results of types that
 * it does not know. Their ids are strings, which the client's own never are.
 */
function rawDispatch(transport) {
  const waiting = new Map();
  const { onmessage } = transport; // the client's own
  transport.onmessage = (message, ...rest) => {
    const answer = message.method === undefined && waiting.get(message.id);
    if (!answer) return onmessage(message, ...rest);
    waiting.delete(message.id);
    answer(message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
  };
  let last = 0;
  return async (request, { context } = {}) => {
    const id = `task-${++last}`;
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    await transport.send({ jsonrpc: "2.0", id, ...request }, { headers: context?.headers });
    return answered;
  };
}

const answers = { confirm: true, name: "Ada" };

async function main() {
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  const { url, argv, label, resume } = JSON.parse(text);
  const transport = url ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport({ command: argv[0], args: argv.slice(1), stderr: "inherit" });
  const client = new Client(clientInfo, { versionNegotiation: { mode: { pin: revision } }, capabilities });
  client.onerror = (e) => console.error(String(e?.stack ?? e));
  await client.connect(transport, { timeout: 30_000 });
  const asked = [];
  const onInputRequest = async ({ params }, { taskId }) => {
    asked.push(params.message);
    const names = Object.keys(params.requestedSchema.properties);
    return { action: "accept", content: Object.fromEntries(names.map((n) => [n, answers[n]])) };
  };
  const session = createTaskSessionFromClient(client, {
    endpointId: "interop",
    onInputRequest,
    rawDispatch: rawDispatch(transport),
    v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities: capabilities },
  });
  const found = resume ? await resumed(session, resume, label) : await play(client, session, asked, label);
  await client.close(); // to close the session cancels the tasks that it has left
  console.log(JSON.stringify(found));
}

/** outcomeOf says how a task ended: its status, and its text, or error. */
const outcomeOf = ({ status, result, error }) => ({
  status,
  ...(result && { text: result.content[0]?.text, isError: result.isError ?? false }),
  ...(error && { code: error.code, message: error.message }),
});

async function run(session, name, args) {
  const execution = await session.callTool(name, args);
  const { outcome } = await execution.settle();
  return { id: execution.handle?.taskId, ...outcomeOf(outcome) };
}

const without = ({ id, ...rest }) => rest;

async function play(client, session, asked, label) {
  const found = { offered: client.getServerCapabilities().extensions };
  found.plain = await run(session, "greet", { name: "World" });

  const slow = await session.callTool("slow_compute", { seconds: 1, label: "slow" });
  const looked = await session.task(slow.handle.taskId).snapshot();
  found.looked = { status: looked.status, pollIntervalMs: looked.suggestedPollIntervalMs, sameId: looked.taskId === slow.handle.taskId };
  found.slow = outcomeOf((await slow.settle()).outcome);

  const own = await run(session, "own_id", {});
  found.ownId = own.text === own.id;
  found.confirm = { ...without(await run(session, "confirm_delete", { filename: "a.txt" })), asked: asked.splice(0) };
  found.two = { ...without(await run(session, "multi_input", {})), asked: asked.splice(0).sort() };
  found.failing = without(await run(session, "failing_job", {}));
  found.broken = without(await run(session, "protocol_error_job", {}));

  const endless = await session.callTool("slow_compute", { seconds: 600, label: "endless" });
  await session.task(endless.handle.taskId).cancel();
  await sleep(300);
  found.cancelled = { status: (await session.task(endless.handle.taskId).snapshot()).status };
  await endless.detach();

  found.unknown = await session.task("nobody-has-this").snapshot().then(outcomeOf, ({ code }) => ({ code }));

  const left = await session.callTool("slow_compute", { seconds: 2, label });
  found.left = left.handle.taskId;
  await left.detach();
  return found;
}

/** resumed waits for a task that another connection made, and says how often it was run. */
async function resumed(session, taskId, label) {
  const execution = await session.resumeTask({ endpointId: session.endpointId, generation: "v2", taskId, originalOperation: "tools/call" });
  const found = outcomeOf((await execution.settle()).outcome);
  return { ...found, entered: Number((await run(session, "tally", { label })).text) };
}

await main();
