// Plays with the tasks of a server like python/fastmcp_server.py, as ext-tasks does on the
// client of the TypeScript SDK 2.x, and prints what it found, as JSON. Standard input has
// the target, {url} or {argv}, a label for what is run, and the id resume of a task that an
// earlier run left, to look for that. With legacy it has the tasks of 2025-11-25, in the
// session of an earlier run; with silent it leaves out tools that ask. With research the
// server is server-everything.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createTaskSessionFromClient } from "@modelcontextprotocol/ext-tasks/client";
import { setTimeout as sleep } from "node:timers/promises";
import { rawDispatch } from "./raw.mjs";

const revision = "2026-07-28";
const clientInfo = { name: "interop-ext-tasks", version: "1" };
const capabilities = { elicitation: { form: {} } };

const answers = { confirm: true, name: "Ada" };
// In 2025-11-25 the client decides. The Python SDK leaves out a ttl that nobody asked for, which
// clients here don't take.
const prefer = { task: { preference: "prefer", retentionMs: 600_000 } };

async function main() {
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  const told = JSON.parse(text);
  const { url, argv, resume, legacy } = told;
  const transport = url ? new StreamableHTTPClientTransport(new URL(url), { sessionId: told.session }) : new StdioClientTransport({ command: argv[0], args: argv.slice(1), stderr: "inherit" });
  const client = new Client(clientInfo, { versionNegotiation: { mode: legacy ? "legacy" : { pin: revision } }, capabilities });
  client.onerror = (e) => console.error(String(e?.stack ?? e));
  await client.connect(transport, { timeout: 120_000 });
  const asked = [];
  const onInputRequest = async ({ params }) => {
    asked.push(params.message);
    const names = Object.keys(params.requestedSchema.properties);
    const answerTo = (name) => answers[name] ?? params.requestedSchema.properties[name].oneOf?.[1].const;
    return { action: "accept", content: Object.fromEntries(names.map((n) => [n, answerTo(n)])) };
  };
  const framing = { rawDispatch: rawDispatch(transport), v2RequestFraming: { protocolVersion: revision, clientInfo, clientCapabilities: capabilities } };
  const session = createTaskSessionFromClient(client, { endpointId: "interop", onInputRequest, ...(!legacy && framing) });
  let found;
  if (resume) found = await resumed(session, resume, told);
  else if (told.research) found = await research(session, asked);
  else found = { ...(await play(client, session, asked, told)), session: transport.sessionId };
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
  const execution = await session.callTool(name, args, prefer);
  const { outcome } = await execution.settle();
  return { id: execution.handle?.taskId, ...outcomeOf(outcome) };
}

const without = ({ id, ...rest }) => rest;

async function play(client, session, asked, { label, legacy, silent }) {
  const offered = client.getServerCapabilities();
  const found = { offered: legacy ? offered.tasks : offered.extensions };
  found.plain = await run(session, "greet", { name: "World" });

  const slow = await session.callTool("slow_compute", { seconds: 1, label: "slow" }, prefer);
  const looked = await session.task(slow.handle.taskId).snapshot();
  // A busy machine looks when it has completed.
  found.looked = { status: looked.status.replace("completed", "working"), pollIntervalMs: looked.suggestedPollIntervalMs, sameId: looked.taskId === slow.handle.taskId };
  found.slow = outcomeOf((await slow.settle()).outcome);

  const own = await run(session, "own_id", {});
  found.ownId = own.text === own.id;
  if (!silent) {
    found.confirm = { ...without(await run(session, "confirm_delete", { filename: "a.txt" })), asked: asked.splice(0) };
    found.two = { ...without(await run(session, "multi_input", {})), asked: asked.splice(0).sort() };
  }
  found.failing = without(await run(session, "failing_job", {}));
  found.broken = without(await run(session, "protocol_error_job", {}));

  const endless = await session.callTool("slow_compute", { seconds: 600, label: "endless" }, prefer);
  await session.task(endless.handle.taskId).cancel();
  await sleep(300);
  let last = await session.task(endless.handle.taskId).snapshot();
  // A busy machine may see to it later.
  for (const end = Date.now() + 60_000; last.status === "working" && Date.now() < end; last = await session.task(endless.handle.taskId).snapshot()) await sleep(100);
  found.cancelled = { status: last.status };
  await endless.detach();

  found.unknown = await session.task("nobody-has-this").snapshot().then(outcomeOf, ({ code }) => ({ code }));

  const left = await session.callTool("slow_compute", { seconds: 2, label }, prefer);
  found.left = left.handle.taskId;
  await left.detach();
  return found;
}

/** research has server-everything's tool run to its end, ask in the middle, and be cancelled. */
async function research(session, asked) {
  const heading = ({ text, ...rest }) => ({ ...without(rest), text: text?.split("\n")[0] });
  const [plain, ambiguous] = await Promise.all([
    run(session, "simulate-research-query", { topic: "bridges" }),
    run(session, "simulate-research-query", { topic: "python", ambiguous: true }),
  ]);
  const endless = await session.callTool("simulate-research-query", { topic: "nothing" });
  await session.task(endless.handle.taskId).cancel();
  const { status } = await session.task(endless.handle.taskId).snapshot();
  await endless.detach();
  return { plain: heading(plain), ambiguous: { ...heading(ambiguous), asked }, cancelled: { status } };
}

/** resumed waits for a task that another connection made, and says how often it was run. */
async function resumed(session, taskId, { label, legacy }) {
  const execution = await session.resumeTask({ endpointId: session.endpointId, generation: legacy ? "v1" : "v2", taskId, originalOperation: "tools/call" });
  const found = outcomeOf((await execution.settle()).outcome);
  return { ...found, entered: Number((await run(session, "tally", { label })).text) };
}

await main();
