// Plays with the tasks of 2025-11-25 on server-everything, with the TypeScript SDK 1.32.2,
// and prints what it found, as JSON. Standard input has the target, {url} or {argv}. The
// client holds tasks itself, too: the server asks a question that is answered as one.
import { Client } from "sdk-1.32.2/client/index.js";
import { StdioClientTransport } from "sdk-1.32.2/client/stdio.js";
import { StreamableHTTPClientTransport } from "sdk-1.32.2/client/streamableHttp.js";
import { InMemoryTaskStore } from "sdk-1.32.2/experimental/tasks/stores/in-memory.js";
import { CallToolResultSchema, CreateTaskResultSchema, ElicitRequestSchema } from "sdk-1.32.2/types.js";

const research = "simulate-research-query";
const hosted = {};
const asked = [];

/** elicit answers at once, or as a task of the client's if it is asked to. */
async function elicit({ params }, { taskStore }) {
  if (!params.task) {
    asked.push(params.message);
    return { action: "accept", content: { interpretation: "snake" } };
  }
  // Over HTTP a server on this SDK sends a question again when the client resumes its stream.
  hosted.ttl = params.task.ttl;
  const task = await taskStore.createTask({ ttl: params.task.ttl, pollInterval: 100 });
  const content = { name: "Ada", agreeToTerms: true, favoriteColor: "blue" };
  setTimeout(() => taskStore.storeTaskResult(task.taskId, "completed", { action: "accept", content }), 200);
  return { task };
}

const heading = (result) => result.content[0].text.split("\n")[0];

/** stream runs the tool as the SDK does it by itself, and says what it was told. */
async function stream(client, args) {
  const told = [];
  for await (const message of client.experimental.tasks.callToolStream({ name: research, arguments: args }, CallToolResultSchema, { timeout: 120_000 })) {
    const { type, task, result, error } = message;
    told.push(type === "taskStatus" ? task.status : type);
    if (result) return { told: told.filter((t, i) => t !== told[i - 1]), text: heading(result) };
    if (error) throw error;
  }
}

async function cancelled(client) {
  const params = { name: research, arguments: { topic: "nothing" }, task: { ttl: 60_000 } };
  const { task } = await client.request({ method: "tools/call", params }, CreateTaskResultSchema);
  const { tasks } = client.experimental;
  const listed = (await tasks.listTasks()).tasks.some(({ taskId }) => taskId === task.taskId);
  const { status } = await tasks.cancelTask(task.taskId);
  const again = await tasks.cancelTask(task.taskId).then(() => 0, (e) => e.code);
  return { first: task.status, listed, status, later: (await tasks.getTask(task.taskId)).status, again };
}

async function askedBack(client) {
  const result = await client.callTool({ name: "trigger-elicitation-request-async", arguments: {} }, undefined, { timeout: 120_000 });
  return { ...hosted, texts: result.content.slice(0, 2).map(({ text }) => text) };
}

async function main() {
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  const { url, argv } = JSON.parse(text);
  const transport = url ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport({ command: argv[0], args: argv.slice(1), stderr: "inherit" });
  const capabilities = { elicitation: {}, tasks: { list: {}, cancel: {}, requests: { elicitation: { create: {} } } } };
  const client = new Client({ name: "interop-tasks", version: "1" }, { capabilities, taskStore: new InMemoryTaskStore() });
  client.setRequestHandler(ElicitRequestSchema, elicit);
  client.onerror = (e) => console.error(String(e?.stack ?? e));
  await client.connect(transport, { timeout: 120_000 });
  await client.listTools(); // callToolStream looks there whether the tool runs as a task
  const found = { offered: client.getServerCapabilities().tasks };
  // A server on this SDK tells which question belongs to which task by the stream alone.
  found.plain = await stream(client, { topic: "bridges" });
  found.ambiguous = { ...(await stream(client, { topic: "python", ambiguous: true })), asked };
  found.cancelled = await cancelled(client);
  found.hosted = await askedBack(client);
  found.unknown = await client.experimental.tasks.getTask("nobody-has-this").then(() => 0, (e) => e.code);
  await transport.terminateSession?.();
  await client.close();
  console.log(JSON.stringify(found));
  process.exit(0); // the store's timers would hold it
}

await main();
