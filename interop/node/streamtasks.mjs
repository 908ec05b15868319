// Plays with the tasks of a server like tasks-server.mjs, as the TypeScript SDK 1.32.2 does
// by itself: callToolStream, and callTool for what it does not know to be a task. Prints what
// it found, as JSON. Standard input has the target, {url} or {argv}, a label for what is run,
// whether the server asks, and resume and session of a task that an earlier run left.
import { Client } from "sdk-1.32.2/client/index.js";
import { StdioClientTransport } from "sdk-1.32.2/client/stdio.js";
import { StreamableHTTPClientTransport } from "sdk-1.32.2/client/streamableHttp.js";
import { CallToolResultSchema, CreateTaskResultSchema, ElicitRequestSchema, RELATED_TASK_META_KEY } from "sdk-1.32.2/types.js";
import { setTimeout as sleep } from "node:timers/promises";

const answers = { confirm: true, name: "Ada" };
const asked = [];
const within = { timeout: 120_000 };
const task = { ttl: 600_000 }; // the Python SDK leaves out one that nobody asked for, which the SDK here does not take

const outcomeOf = (status, result) => ({ status, text: result.content[0]?.text, isError: result.isError ?? false });
const errorOf = (status, taskId, { code, message }) => ({ ...(status && { status }), code, message: message.replaceAll(taskId, "ID") });

/** stream runs a tool and returns its task as it was made, the last status, and what came of it. */
async function stream(client, name, args) {
  let made, status;
  const from = asked.length;
  for await (const { type, task: told, result, error } of client.experimental.tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, { ...within, task })) {
    if (type === "taskCreated") made = told;
    status = told?.status ?? status;
    if (result) status = "completed"; // after input_required the SDK looks no more
    const outcome = result ? outcomeOf(status, result) : error && errorOf(status, made?.taskId, error);
    const questions = asked.slice(from).sort();
    if (outcome) return { made, outcome: { ...outcome, ...(questions.length > 0 && { asked: questions }) } };
  }
}

/** create makes a task and does not wait for it. */
async function create(client, name, args) {
  const made = await client.request({ method: "tools/call", params: { name, arguments: args, task } }, CreateTaskResultSchema);
  return made.task.taskId;
}

/** fetched is what tasks/result has, which callToolStream does not ask of a task that failed. */
async function fetched(client, taskId) {
  const { tasks } = client.experimental;
  return tasks.getTaskResult(taskId, CallToolResultSchema, within).then((r) => outcomeOf(undefined, r), (e) => errorOf(undefined, taskId, e));
}

async function play(client, transport, { label, asks }) {
  const { tasks } = client.experimental;
  const found = { offered: client.getServerCapabilities().tasks };
  found.plain = outcomeOf("completed", await client.callTool({ name: "greet", arguments: { name: "World" } }));
  found.transparent = (await client.callTool({ name: "slow_compute", arguments: { seconds: 0.2, label: "unseen" } })).content[0].text;

  const slow = await create(client, "slow_compute", { seconds: 1, label: "slow" });
  const looked = await tasks.getTask(slow);
  // A busy machine looks when it has completed.
  found.looked = { status: looked.status.replace("completed", "working"), pollIntervalMs: looked.pollInterval, sameId: looked.taskId === slow };
  found.slow = outcomeOf("completed", await tasks.getTaskResult(slow, CallToolResultSchema, within));

  const own = await stream(client, "own_id", {});
  found.ownId = own.outcome.text === own.made.taskId;
  if (asks) {
    found.confirm = (await stream(client, "confirm_delete", { filename: "a.txt" })).outcome;
    found.two = (await stream(client, "multi_input", {})).outcome;
  }
  const failing = await stream(client, "failing_job", {});
  found.failing = { ...failing.outcome, fetched: await fetched(client, failing.made.taskId) };
  const broken = await stream(client, "protocol_error_job", {});
  found.broken = { ...broken.outcome, fetched: await fetched(client, broken.made.taskId) };

  const endless = await create(client, "slow_compute", { seconds: 600, label: "endless" });
  const { status } = await tasks.cancelTask(endless);
  await sleep(300);
  let last = await tasks.getTask(endless);
  // A busy machine may see to it later.
  for (const end = Date.now() + 60_000; last.status === "working" && Date.now() < end; last = await tasks.getTask(endless)) await sleep(100);
  found.cancelled = { status, text: last.status, code: await tasks.cancelTask(endless).then(() => 0, (e) => e.code) };
  found.unknown = { code: await tasks.getTask("nobody-has-this").then(() => 0, (e) => e.code) };
  found.left = await create(client, "slow_compute", { seconds: 2, label });
  found.session = transport.sessionId;
  return found;
}

/** resumed waits for a task that another connection of the session made, and says how often it was run. */
async function resumed(client, taskId, label) {
  const found = outcomeOf("completed", await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, within));
  const { content } = await client.callTool({ name: "tally", arguments: { label } });
  return { ...found, entered: Number(content[0].text) };
}

/** quiz runs tasks at once that ask at once, and says what became of each, and of which questions were whose. */
async function quiz(client, label, n, questions) {
  const ids = new Map(); // by label
  const run = async (i) => {
    const own = `${label}/${i}`;
    const rounds = Array.from({ length: 1 + (i % 3) }, (_, round) => 1 + ((i + round) % 4));
    const { made, outcome } = await stream(client, "quiz", { label: own, rounds });
    ids.set(own, made.taskId);
    return { ...JSON.parse(outcome.text), want: rounds.reduce((a, b) => a + b) };
  };
  const counts = await Promise.all(Array.from({ length: n }, (_, i) => run(i)));
  const twice = questions.length - new Set(questions.map(({ message }) => message)).size;
  const misplaced = questions.filter(({ message, taskId }) => ids.get(message.split("/").slice(0, -2).join("/")) !== taskId);
  return { counts, twice, misplaced };
}

async function main() {
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  const told = JSON.parse(text);
  const { url, argv, resume, session } = told;
  const transport = url ? new StreamableHTTPClientTransport(new URL(url), { sessionId: session }) : new StdioClientTransport({ command: argv[0], args: argv.slice(1), stderr: "inherit" });
  if (session) transport.setProtocolVersion("2025-11-25"); // the SDK shakes no hands again
  const client = new Client({ name: "interop-stream", version: "1" }, { capabilities: { elicitation: { form: {} } } });
  const questions = []; // of a quiz
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    if (told.quiz) {
      questions.push({ message: params.message, taskId: params._meta?.[RELATED_TASK_META_KEY]?.taskId });
      await sleep(50 * Math.random()); // answers are out of order
      return { action: "accept", content: { echo: params.message } };
    }
    asked.push(params.message);
    const names = Object.keys(params.requestedSchema.properties);
    return { action: "accept", content: Object.fromEntries(names.map((n) => [n, answers[n]])) };
  });
  client.onerror = (e) => console.error(String(e?.stack ?? e));
  await client.connect(transport, { timeout: 120_000 });
  if (!resume) await client.listTools(); // callToolStream looks there whether the tool runs as a task
  let found;
  if (resume) found = await resumed(client, resume, told.label);
  else if (told.quiz) found = await quiz(client, told.label, told.quiz, questions);
  else found = await play(client, transport, told);
  console.log(JSON.stringify(found));
  await client.close();
}

await main();
