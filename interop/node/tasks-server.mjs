// A server whose tools run as tasks of 2025-11-25, on the TypeScript SDK 1.32.2, as its
// authors had them: registerToolTask and the stores in memory. It has the tools that the
// conformance suite's scenarios tasks-* name, own_id, tally, which says how often
// slow_compute was entered, quiz, which checks that each answer is to its question, ledger,
// which says what the server has seen of its tasks, and die. Its arguments are --http ADDRESS
// (at /mcp), or none for standard input and output.
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { McpServer } from "sdk-1.32.2/server/mcp.js";
import { StdioServerTransport } from "sdk-1.32.2/server/stdio.js";
import { StreamableHTTPServerTransport } from "sdk-1.32.2/server/streamableHttp.js";
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from "sdk-1.32.2/experimental/tasks/stores/in-memory.js";
import { ElicitResultSchema, ErrorCode, isInitializeRequest, McpError } from "sdk-1.32.2/types.js";

const often = 200; // ms between looks

/** Store has tasks that end with an error of the protocol, too, which the SDK's can't. */
class Store extends InMemoryTaskStore {
  errors = new Map();

  async getTaskResult(taskId, sessionId) {
    if ((await this.getTask(taskId, sessionId)) && this.errors.has(taskId)) throw this.errors.get(taskId);
    return super.getTaskResult(taskId, sessionId);
  }
}

const store = new Store();
const queue = new InMemoryTaskMessageQueue();
const entered = new Map(); // by the label of slow_compute
const seen = new Map(); // by task: what ledger says

const noteOf = (taskId) => {
  if (!seen.has(taskId)) seen.set(taskId, { open: 0, most: 0, looks: 0, cancels: 0, questions: [] });
  return seen.get(taskId);
};

/** watched counts what is asked about tasks, and how many tasks/result are open at once. */
function watched(transport) {
  const open = new Map(); // tasks/result that are not answered, their tasks by the request's id
  const { onmessage } = transport; // the SDK's own
  const close = (id) => {
    const taskId = open.get(id);
    if (open.delete(id)) noteOf(taskId).open--;
  };
  transport.onmessage = (message, ...rest) => {
    const { id, method, params } = message;
    if (method === "tasks/get") noteOf(params.taskId).looks++;
    if (method === "tasks/cancel") noteOf(params.taskId).cancels++;
    if (method === "tasks/result") {
      const note = noteOf(params.taskId);
      open.set(id, params.taskId);
      note.most = Math.max(note.most, ++note.open);
    }
    if (method === "notifications/cancelled") close(params.requestId);
    return onmessage(message, ...rest);
  };
  const send = transport.send.bind(transport);
  transport.send = (message, ...rest) => {
    if (message.method === undefined) close(message.id);
    return send(message, ...rest);
  };
}

const text = (words, more) => ({ content: [{ type: "text", text: words }], ...more });

/** ask asks the client; a question of a task goes out on its tasks/result. */
async function ask(extra, taskId, message, properties) {
  const note = taskId === undefined ? undefined : noteOf(taskId);
  const question = { message };
  note?.questions.push(question);
  const requestedSchema = { type: "object", properties, required: Object.keys(properties) };
  const options = taskId === undefined ? {} : { relatedTask: { taskId } };
  const said = await extra.sendRequest({ method: "elicitation/create", params: { mode: "form", message, requestedSchema } }, ElicitResultSchema, { timeout: 600_000, ...options });
  question.answers = (question.answers ?? 0) + 1;
  question.answer = said.action === "accept" ? said.content : said.action;
  return said.action === "accept" ? said.content : undefined;
}

/** asking asks several things at once for a task, which waits for input meanwhile as the SDK says by itself. */
async function asking(extra, taskId, questions) {
  const answers = await Promise.all(questions.map(([message, properties]) => ask(extra, taskId, message, properties)));
  await extra.taskStore.updateTaskStatus(taskId, "working");
  return answers;
}

/** run runs the work of a task in the background. A task that was cancelled takes no result. */
async function run(extra, taskId, work) {
  const live = async () => (await store.getTask(taskId))?.status === "working";
  try {
    const result = await work(live);
    if (await live()) await extra.taskStore.storeTaskResult(taskId, result.isError ? "failed" : "completed", result);
  } catch (e) {
    if (!(await live())) return;
    store.errors.set(taskId, e instanceof McpError ? e : new McpError(ErrorCode.InternalError, String(e)));
    await extra.taskStore.updateTaskStatus(taskId, "failed", e.message);
  }
}

/** The tools that run as tasks: schema, whether they must, what comes before, and the work. */
const jobs = {
  slow_compute: {
    inputSchema: { seconds: z.number(), label: z.string().default("") },
    support: "optional",
    before: ({ label }) => entered.set(label, (entered.get(label) ?? 0) + 1),
    work: async ({ seconds, label }, { live, extra, taskId }) => {
      const progressToken = extra._meta?.progressToken;
      if (progressToken !== undefined) await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2 } }, { relatedTask: { taskId } });
      for (const end = Date.now() + 1000 * seconds; Date.now() < end && (await live()); ) await sleep(Math.min(100, end - Date.now()));
      return text(`computed ${label} in ${seconds} s`);
    },
  },
  own_id: { support: "required", work: async (_, { taskId }) => text(taskId) },
  failing_job: {
    support: "required",
    work: async () => {
      await sleep(300);
      return text("the job failed", { isError: true });
    },
  },
  protocol_error_job: {
    support: "required",
    work: async () => {
      throw new McpError(ErrorCode.InternalError, "the job broke the protocol", { of: "protocol_error_job" });
    },
  },
  confirm_delete: {
    inputSchema: { filename: z.string() },
    support: "required",
    work: async ({ filename }, { extra, taskId }) => {
      const [said] = await asking(extra, taskId, [[`Delete ${filename}?`, { confirm: { type: "boolean" } }]]);
      return text(said?.confirm ? `deleted ${filename}` : `kept ${filename}`);
    },
  },
  multi_input: {
    support: "required",
    work: async (_, { extra, taskId }) => {
      const [name, confirm] = await asking(extra, taskId, [
        ["What is its name?", { name: { type: "string" } }],
        ["Is that right?", { confirm: { type: "boolean" } }],
      ]);
      return text(`name ${name?.name}, confirmed ${confirm?.confirm ? "True" : "False"}`);
    },
  },
  test_tool_with_task: {
    support: "required",
    before: (_, extra) => ask(extra, undefined, "Who is there?", { name: { type: "string" } }),
    work: async (_, { first }) => text(`${first?.name ?? "nobody"} is there`),
  },
  quiz: {
    // Each round asks so many questions at once; the right answer to each is its message.
    inputSchema: { label: z.string(), rounds: z.array(z.number()) },
    support: "required",
    work: async ({ label, rounds }, { extra, taskId }) => {
      const count = { asked: 0, right: 0, wrong: [], refused: 0 };
      for (const [round, n] of rounds.entries()) {
        const messages = Array.from({ length: n }, (_, i) => `${label}/${round}/${i}`);
        const answers = await asking(extra, taskId, messages.map((message) => [message, { echo: { type: "string" } }]));
        count.asked += n;
        for (const [i, said] of answers.entries()) {
          if (said === undefined) count.refused++;
          else if (said.echo === messages[i]) count.right++;
          else count.wrong.push(`${said.echo} to ${messages[i]}`);
        }
      }
      return text(JSON.stringify(count));
    },
  },
};

/** createTask makes the task of a job, after what comes before it, and sets it to work. */
const createTask = ({ before, work }) => async (args, extra) => {
  const first = await before?.(args, extra);
  const task = await extra.taskStore.createTask({ ttl: extra.taskRequestedTtl ?? 600_000, pollInterval: often });
  run(extra, task.taskId, (live) => work(args, { extra, taskId: task.taskId, live, first }));
  return { task };
};

const getTask = async (...told) => told.at(-1).taskStore.getTask(told.at(-1).taskId);
const getTaskResult = async (...told) => told.at(-1).taskStore.getTaskResult(told.at(-1).taskId);

function newServer() {
  const capabilities = { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
  const s = new McpServer({ name: "tasks-2025", version: "1.32.2" }, { capabilities, taskStore: store, taskMessageQueue: queue, defaultTaskPollInterval: often, instructions: "Some tools take a while." });
  s.registerTool("greet", { description: "Greets, and never as a task.", inputSchema: { name: z.string() } }, async ({ name }) => text(`Hello, ${name}!`));
  s.registerTool("tally", { description: "Says how often slow_compute was entered with the label.", inputSchema: { label: z.string() } }, async ({ label }) => text(String(entered.get(label) ?? 0), { structuredContent: { result: entered.get(label) ?? 0 } }));
  s.registerTool("ledger", { description: "Says what the server has seen of its tasks." }, async () => text(JSON.stringify(Object.fromEntries(seen))));
  s.registerTool("die", { description: "Ends the process, without a word." }, () => process.kill(process.pid, "SIGKILL"));
  for (const [name, job] of Object.entries(jobs)) {
    const config = { description: `Runs ${name} as a task.`, inputSchema: job.inputSchema ?? {}, execution: { taskSupport: job.support } };
    s.experimental.tasks.registerToolTask(name, config, { createTask: createTask(job), getTask, getTaskResult });
  }
  return s;
}

async function serve(address) {
  const sessions = new Map();
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += chunk;
    const message = body && JSON.parse(body);
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (!transport && !isInitializeRequest(message)) return res.writeHead(req.headers["mcp-session-id"] ? 404 : 400).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => void sessions.set(id, transport), onsessionclosed: (id) => void sessions.delete(id) });
      await newServer().connect(transport);
      watched(transport);
    }
    await transport.handleRequest(req, res, message || undefined);
  });
  const [, host, port] = /^(.*):(\d+)$/.exec(address);
  server.listen(Number(port), host);
  process.once("SIGTERM", () => {
    store.cleanup();
    server.close();
    server.closeAllConnections();
    process.exit(0); // tasks that go on would hold it
  });
}

if (process.argv[2] === "--http") {
  await serve(process.argv[3]);
} else {
  const transport = new StdioServerTransport();
  await newServer().connect(transport);
  watched(transport);
  process.stdin.once("end", () => process.exit(0)); // tasks that go on would hold it
}
