// Puts the client of the TypeScript SDK 2.x under remote control: the package
// interop/remote says how. Its only argument is the mode: auto, in which it finds out
// the server's era by itself and which is the default here, legacy, or the one modern
// revision that it insists on. To subscribe to a resource is to open a listen stream
// for it, where there are such.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ask, control, notice, timeout } from "./control.mjs";
import { Login, loggingIn } from "./login.mjs";
import { rawDispatch } from "./raw.mjs";

const [mode = "auto"] = process.argv.slice(2);
const pinned = /^\d/.test(mode);

let client;
let over; // its transport
let login;
let raw; // for a client that declares the extension of tasks, which the SDK does not know
const clientInfo = { name: "interop-2", version: "1" };
const streams = new Map(); // listen streams by URI

function transport({ transport, url, argv }) {
  switch (transport) {
    case "http":
      return new StreamableHTTPClientTransport(new URL(url), { authProvider: login });
    case "sse":
      return new SSEClientTransport(new URL(url));
    case "stdio":
      return new StdioClientTransport({ command: argv[0], args: argv.slice(1), stderr: "inherit" });
  }
  throw new Error(`the SDK has no transport ${transport}`);
}

const changed = (of) => ({ debounceMs: 0, autoRefresh: false, onChanged: () => notice(`notifications/${of}/list_changed`) });

async function initialize(target) {
  client = new Client(
    clientInfo,
    {
      versionNegotiation: { mode: pinned ? { pin: mode } : mode },
      capabilities: target.capabilities,
      listChanged: { tools: changed("tools"), prompts: changed("prompts"), resources: changed("resources") },
    },
  );
  for (const method of ["notifications/message", "notifications/resources/updated"]) client.setNotificationHandler(method, (n) => notice(method, n.params));
  if (target.capabilities.elicitation) client.setRequestHandler("elicitation/create", ask);
  client.onerror = (e) => console.error(String(e?.stack ?? e));
  over = transport(target);
  await client.connect(over, { timeout });
  raw = target.capabilities.extensions?.["io.modelcontextprotocol/tasks"] && rawly(rawDispatch(over), target.capabilities);
  return {
    protocolVersion: client.getNegotiatedProtocolVersion(),
    serverInfo: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
  };
}

/** rawly sends a request as the SDK would. */
const rawly = (dispatch, capabilities) => async (method, params) => {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": clientInfo,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const headers = { "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": params.taskId ?? params.name };
  const { result, error } = await dispatch({ method, params: { ...params, _meta } }, { context: { headers } });
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
};

const modern = () => client.getNegotiatedProtocolVersion() >= "2026-07-28";

async function subscribe({ uri }, o) {
  if (!modern()) return client.subscribeResource({ uri }, o);
  const stream = await client.listen({ resourceSubscriptions: [uri] }, o);
  const { resourceSubscriptions = [] } = stream.honoredFilter;
  if (!resourceSubscriptions.includes(uri)) throw new Error(`the server did not grant ${uri}`);
  streams.set(uri, stream);
}

async function unsubscribe({ uri }, o) {
  if (!modern()) return client.unsubscribeResource({ uri }, o);
  await streams.get(uri)?.close();
  streams.delete(uri);
}

const methods = {
  "tools/list": (p, o) => client.listTools(p, o),
  "resources/list": (p, o) => client.listResources(p, o),
  "resources/templates/list": (p, o) => client.listResourceTemplates(p, o),
  "prompts/list": (p, o) => client.listPrompts(p, o),
  "tools/call": (p, o) => (raw ? raw("tools/call", p) : client.callTool(p, o)),
  "tasks/get": (p) => raw("tasks/get", p),
  "tasks/update": (p) => raw("tasks/update", p),
  "tasks/cancel": (p) => raw("tasks/cancel", p),
  "resources/read": (p, o) => client.readResource(p, o),
  "prompts/get": (p, o) => client.getPrompt(p, o),
  "completion/complete": (p, o) => client.complete(p, o),
  "resources/subscribe": subscribe,
  "resources/unsubscribe": unsubscribe,
};

const start = (target) => {
  login = target.login && new Login(target.login);
  return login ? login.during(finish, () => initialize(target)) : initialize(target);
};

const finish = (back) => over.finishAuth(back);

async function end() {
  streams.clear(); // they end with the client
  await client?.close();
}

await control({ methods: { ...loggingIn(methods, () => login, finish), initialize: start }, end, asRefusal: (e) => Object.assign(new Error(e.message), e) });
