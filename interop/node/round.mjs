// Takes the TypeScript SDK's client, pinned to one revision, through cells of
// matrix.json that stand on standard input, and prints a line of JSON per cell:
// {client, server, check, ok, detail}.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { text } from "node:stream/consumers";
import { brief, mismatch } from "./match.mjs";

// The bounds of one step, in milliseconds: an answer, and a notification that
// must come. server-everything repeats its notifications every 5 s. They are long:
// the machine may be busy.
const answerTime = 120_000;
const noticeTime = 60_000;
const againTime = 2_000;

/** Pours what arrives into whoever waits for it. */
class Inbox {
  #items = [];
  #wake = () => {};
  put(item) {
    this.#items.push(item);
    this.#wake();
  }
  clear() {
    this.#items = [];
  }
  /** take returns the next item, or undefined after ms milliseconds. */
  async take(ms) {
    if (this.#items.length === 0) {
      let timer;
      await new Promise((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
    }
    return this.#items.shift();
  }
  /** collect takes n items, and those that come on their heels. */
  async collect(n) {
    const got = [];
    const end = Date.now() + 10_000;
    for (;;) {
      const item = await this.take(got.length >= n ? 100 : Math.max(end - Date.now(), 1));
      if (item === undefined) return got;
      got.push(item);
    }
  }
}

const progress = new Inbox();
const messages = new Inbox();
const changed = new Inbox(); // "tools", "prompts", "resources", or the URI of a resource

const round = JSON.parse(await text(process.stdin));

/** transport leads to where the round is to be taken. */
function transport() {
  if (!round.Command) return new StreamableHTTPClientTransport(new URL(round.URL));
  const [command, ...args] = round.Command;
  return new StdioClientTransport({ command, args });
}

/** connect makes a client; one with listChanged listens for the lists by itself. */
async function connect(listChanged) {
  const client = new Client(
    { name: "interop-typescript", version: "1" },
    { versionNegotiation: { mode: { pin: round.Revision } }, ...(listChanged && { listChanged }) },
  );
  client.setNotificationHandler("notifications/message", (n) => messages.put(n.params));
  client.setNotificationHandler("notifications/resources/updated", (n) => changed.put(n.params.uri));
  await client.connect(transport(), { timeout: answerTime });
  return client;
}

const refreshed = (of) => ({
  debounceMs: 0,
  onChanged: (error, items) => changed.put(error ? `${of}: ${error}` : Array.isArray(items) ? of : `${of} without a list`),
});
const client = await connect({ tools: refreshed("tools"), prompts: refreshed("prompts"), resources: refreshed("resources") });

const lists = {
  tools: async () => (await client.listTools()).tools,
  resources: async () => (await client.listResources()).resources,
  resourceTemplates: async () => (await client.listResourceTemplates()).resourceTemplates,
  prompts: async () => (await client.listPrompts()).prompts,
};

/** page reads one page: the SDK's own list methods read all. */
const page = (of, cursor) => client.request({ method: `${of}/list`, params: cursor === undefined ? {} : { cursor } });

const ops = {
  discover: async (s) => {
    const d = await client.discover();
    if (!d.supportedVersions.includes(round.Revision)) return `supportedVersions = ${brief(d.supportedVersions)}, want ${round.Revision} among them`;
    return mismatch("result", s.Want, {
      protocolVersion: client.getNegotiatedProtocolVersion(),
      serverInfo: client.getServerVersion(),
      capabilities: d.capabilities,
      instructions: d.instructions,
    });
  },
  list: async (s) => {
    const items = await lists[s.Of]();
    if (s.Count && items.length !== s.Count) return `there are ${items.length} ${s.Of}, want ${s.Count}`;
    if (s.Names) {
      const got = items.map((i) => i.uri ?? i.uriTemplate ?? i.name).sort();
      const want = [...s.Names].sort();
      if (brief(got) !== brief(want)) return `the ${s.Of} are ${brief(got)}, want ${brief(want)}`;
    }
    return s.Want === null ? "" : mismatch(s.Of, s.Want, items);
  },
  pages: async (s) => {
    let n = 0;
    for (let cursor; n === 0 || cursor !== undefined; n++) cursor = (await page(s.Of, cursor)).nextCursor;
    return n === s.Pages ? "" : `${s.Of} came in ${n} pages, want ${s.Pages}`;
  },
  read: (s) => ask(s, () => client.readResource(s.Params)),
  prompt: (s) => ask(s, () => client.getPrompt(s.Params)),
  complete: (s) => ask(s, () => client.complete(s.Params)),
  call,
  watch: (s) => (s.URI ? watchResource(s) : heard(s, s.Of)),
};

/** ask judges a result, or the error that is wanted instead of one. */
async function ask(s, request) {
  let result;
  try {
    result = await request();
  } catch (e) {
    if (!s.Error) throw e;
    return mismatch("error", s.Error, { code: e.code, message: e.message, data: e.data });
  }
  if (s.Error) return `got result ${brief(result)}, want an error like ${brief(s.Error)}`;
  return mismatch("result", s.Want, result);
}

/** progressed allows that what came in one read with the result is missing: the SDK forgets the call before it looks at the rest. */
function progressed(s, got) {
  const last = s.Last ?? [];
  return mismatch("progress", [...s.Progress, ...last.slice(0, got.length - s.Progress.length)], got);
}

async function call(s) {
  progress.clear();
  messages.clear();
  const params = { ...s.Params, ...(s.Log && { _meta: { "io.modelcontextprotocol/logLevel": s.Log } }) };
  const options = { timeout: answerTime, ...(s.Progress && { onprogress: (p) => progress.put(p) }) };
  let why = await ask(s, () => client.callTool(params, options));
  if (!why && s.Progress) why = progressed(s, await progress.collect(s.Progress.length));
  if (!why && s.Messages) why = mismatch("messages", s.Messages, await messages.collect(s.Messages.length));
  if (!why && s.Some) why = mismatch("messages", { $has: s.Some }, await messages.collect(s.Some.length));
  return why;
}

/** watchResource opens a listen stream of its own, with more in its filter than the server may have. */
async function watchResource(s) {
  const sub = await client.listen({ resourceSubscriptions: [s.URI] }, { timeout: answerTime });
  const why = mismatch("honored", { resourceSubscriptions: [s.URI] }, sub.honoredFilter) || (await heard(s, s.URI));
  await sub.close();
  const end = await sub.closed;
  return why || (end === "local" ? "" : `the stream ended ${end}, want local`);
}

/** heard makes the change happen and waits to hear of it. */
async function heard(s, want) {
  changed.clear();
  const end = Date.now() + noticeTime;
  for (let tries = 0; Date.now() < end; tries++) {
    if (s.Trigger && (tries === 0 || !s.Once)) {
      const why = await call(s.Trigger);
      if (why) return `making a change: ${why}`;
    }
    for (let got; (got = await changed.take(againTime)) !== undefined; ) {
      if (got === want) return "";
      if (s.URI && !["tools", "prompts", "resources"].includes(got)) return `an update for ${got} arrived, subscribed was ${want}`;
    }
  }
  return `no change of ${want} within ${noticeTime} ms of making one`;
}

for (const { Feature, Steps } of round.Cells) {
  let detail = "";
  for (const s of Steps) {
    try {
      detail = await ops[s.Op](s);
    } catch (e) {
      detail = String(e?.stack ?? e);
    }
    if (detail) {
      detail = `${s.Op} ${brief(s.Params)}: ${detail}`;
      break;
    }
  }
  console.log(JSON.stringify({ client: "typescript", server: round.Server, check: Feature, ok: detail === "", detail }));
}
await client.close();
