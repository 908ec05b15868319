// Puts the client of a TypeScript SDK 1.x under remote control: the package
// interop/remote says how. The SDK is named by the folder it was fetched to:
// node remote.mjs sdk-1.32.2
import { ask, control, notice, timeout } from "./control.mjs";
import { Login, loggingIn } from "./login.mjs";

const sdk = process.argv[2];
const types = await import(`${sdk}/types.js`);
const { Client } = await import(`${sdk}/client/index.js`);

let client;
let over; // its transport
let login;
let roots = { roots: [] };

async function transport({ transport, url, argv }) {
  switch (transport) {
    case "http": {
      const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
      const reconnectionOptions = { initialReconnectionDelay: 200, maxReconnectionDelay: 2_000, reconnectionDelayGrowFactor: 1.5, maxRetries: 5 };
      return new StreamableHTTPClientTransport(new URL(url), { reconnectionOptions, authProvider: login });
    }
    case "sse": {
      const { SSEClientTransport } = await import(`${sdk}/client/sse.js`);
      return new SSEClientTransport(new URL(url));
    }
    case "ws": {
      const { WebSocketClientTransport } = await import(`${sdk}/client/websocket.js`);
      return new WebSocketClientTransport(new URL(url));
    }
    case "stdio": {
      const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);
      return new StdioClientTransport({ command: argv[0], args: argv.slice(1), stderr: "inherit" });
    }
  }
  throw new Error(`the SDK has no transport ${transport}`);
}

/** overhear returns what tells the revision that the server chose: the SDK checks it and keeps it to itself. */
function overhear(over) {
  const start = over.start.bind(over);
  let revision;
  over.start = async () => {
    const { onmessage } = over; // the client's own
    over.onmessage = (message, ...rest) => {
      revision ??= message.result?.protocolVersion;
      onmessage(message, ...rest);
    };
    await start();
  };
  return () => revision;
}

async function initialize(target) {
  const { capabilities } = target;
  roots = target.roots ?? roots;
  client = new Client({ name: `interop-${sdk}`, version: "1" }, { capabilities });
  if (capabilities.sampling) client.setRequestHandler(types.CreateMessageRequestSchema, ask);
  if (capabilities.elicitation && types.ElicitRequestSchema) client.setRequestHandler(types.ElicitRequestSchema, ask);
  if (capabilities.roots) client.setRequestHandler(types.ListRootsRequestSchema, () => roots);
  client.fallbackNotificationHandler = async ({ method, params }) => notice(method, params);
  client.onerror = (e) => console.error(String(e?.stack ?? e));
  over = await transport(target);
  const revision = overhear(over);
  await client.connect(over, { timeout });
  return {
    protocolVersion: revision(),
    serverInfo: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions?.(),
  };
}

const methods = {
  ping: (_, o) => client.ping(o),
  "tools/list": (p, o) => client.listTools(p, o),
  "resources/list": (p, o) => client.listResources(p, o),
  "resources/templates/list": (p, o) => client.listResourceTemplates(p, o),
  "prompts/list": (p, o) => client.listPrompts(p, o),
  "tools/call": (p, o) => (p.task && types.CreateTaskResultSchema ? client.request({ method: "tools/call", params: p }, types.CreateTaskResultSchema, o) : client.callTool(p, undefined, o)),
  "tasks/get": (params, o) => client.request({ method: "tasks/get", params }, types.GetTaskResultSchema, o),
  "tasks/list": (params, o) => client.request({ method: "tasks/list", params }, types.ListTasksResultSchema, o),
  "tasks/result": (params, o) => client.request({ method: "tasks/result", params }, types.CallToolResultSchema, o),
  "tasks/cancel": (params, o) => client.request({ method: "tasks/cancel", params }, types.CancelTaskResultSchema, o),
  "resources/read": (p, o) => client.readResource(p, o),
  "prompts/get": (p, o) => client.getPrompt(p, o),
  "completion/complete": (p, o) => client.complete(p, o),
  "logging/setLevel": (p, o) => client.setLoggingLevel(p.level, o),
  "resources/subscribe": (p, o) => client.subscribeResource(p, o),
  "resources/unsubscribe": (p, o) => client.unsubscribeResource(p, o),
  "notifications/roots/list_changed": async (p) => {
    roots = p;
    await client.sendRootsListChanged();
    return {};
  },
};

const start = (target) => {
  login = target.login && new Login(target.login);
  return login ? login.during(finish, () => initialize(target)) : initialize(target);
};

const finish = (back) => over.finishAuth(back.get("code"));

async function end() {
  await client?.transport?.terminateSession?.();
  await client?.close();
}

await control({ methods: { ...loggingIn(methods, () => login, finish), initialize: start }, end, asRefusal: (e) => new types.McpError(e.code, e.message, e.data) });
