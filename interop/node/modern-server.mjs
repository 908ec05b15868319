// A server that speaks 2026-07-28 and nothing else, on the TypeScript SDK:
// node modern-server.mjs serves stdio, node modern-server.mjs --http HOST:PORT
// Streamable HTTP at every path. Legacy requests are refused with -32022, unless --both comes
// last: then each is served by itself, without sessions. What it offers is in
// modern-features.mjs, or in the module that the last argument names.
import { createMcpHandler, hostHeaderValidationResponse, localhostAllowedHostnames } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const features = process.argv.slice(2).find((arg) => arg.endsWith(".mjs")) ?? "./modern-features.mjs";
const { newServer } = await import(features);

/** What lives longer than one request; notify takes a kind of list, or a URI. */
const world = { changes: { tools: 0, prompts: 0, resources: 0 }, versions: new Map(), notify: () => {} };

/** webRequest is what node received, as fetch would have sent it. */
function webRequest(req, signal) {
  const body = req.method === "GET" || req.method === "HEAD" ? undefined : Readable.toWeb(req);
  const headers = new Headers();
  for (let i = 0; i < req.rawHeaders.length; i += 2) headers.append(req.rawHeaders[i], req.rawHeaders[i + 1]);
  return new Request(`http://${req.headers.host ?? "localhost"}${req.url}`, { method: req.method, headers, body, duplex: "half", signal });
}

async function answer(handler, req, res) {
  const gone = new AbortController();
  res.on("close", () => gone.abort());
  let response;
  try {
    const request = webRequest(req, gone.signal);
    response = hostHeaderValidationResponse(request, localhostAllowedHostnames()) ?? (await handler.fetch(request));
  } catch (e) {
    if (!gone.signal.aborted) console.error("modern-server:", e);
    return res.destroy();
  }
  res.writeHead(response.status, Object.fromEntries(response.headers));
  res.flushHeaders();
  if (!response.body) return res.end();
  await pipeline(Readable.fromWeb(response.body), res).catch(() => {}); // the client is gone
}

function serveHTTP(address) {
  const handler = createMcpHandler(() => newServer(world), { legacy: process.argv.at(-1) === "--both" ? "stateless" : "reject" });
  const lists = { tools: handler.notify.toolsChanged, prompts: handler.notify.promptsChanged, resources: handler.notify.resourcesChanged };
  world.notify = (what) => (lists[what] ? lists[what]() : handler.notify.resourceUpdated(what));
  const server = createServer((req, res) => void answer(handler, req, res));
  const [, host, port] = /^(.*):(\d+)$/.exec(address);
  server.listen(Number(port), host, () => console.error(`modern-server: listening on http://${address}`));
  process.once("SIGTERM", async () => {
    await handler.close(); // ends listen streams with their results
    server.close();
    server.closeAllConnections();
  });
}

function servePipe() {
  const lists = { tools: "sendToolListChanged", prompts: "sendPromptListChanged", resources: "sendResourceListChanged" };
  const factory = () => {
    const s = newServer(world);
    // One pipe has one server; a probe's is thrown away before it.
    world.notify = (what) => (lists[what] ? s.server[lists[what]]() : s.server.sendResourceUpdated({ uri: what }));
    return s;
  };
  const pipe = serveStdio(factory, { legacy: "reject" });
  process.once("SIGTERM", () => void pipe.close());
}

if (process.argv[2] === "--http") serveHTTP(process.argv[3]);
else servePipe();
