// A server with the extension io.modelcontextprotocol/skills and all its methods, whose
// skills are as that extension wants them. Of 2026-07-28 it is for modern-server.mjs, as
// its features; of 2025-11-25, on the TypeScript SDK 1.32.2 over Streamable HTTP:
// node skillbook.mjs HOST:PORT
import { Server } from "@modelcontextprotocol/server";
import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Server as LegacyServer } from "sdk-1.32.2/server/index.js";
import { StreamableHTTPServerTransport } from "sdk-1.32.2/server/streamableHttp.js";
import { isInitializeRequest } from "sdk-1.32.2/types.js";

const info = { name: "skillbook", version: "1" };
const capabilities = { resources: {}, extensions: { "io.modelcontextprotocol/skills": { directoryRead: true } } };
const hints = { ttlMs: 60_000, cacheScope: "public" };

const written = (name, description) => `---\nname: ${name}\ndescription: ${description}\n---\n\nSee the references.\n`;
const book = [
  ["bind-books", "Binds leaves to a book."],
  ["mend-books", "Mends the spine of a book."],
].map(([name, description]) => {
  const root = `skill://${name}`;
  const files = new Map([
    [`${root}/SKILL.md`, written(name, description)],
    [`${root}/references/GLUE.md`, "# Glue\n\nWheat paste, größer als 3 %.\n"],
    [`${root}/references/tools/KNIFE.md`, "# Knife\n"],
  ]);
  const resources = [...files].map(([uri, text]) => ({ uri, digest: `sha256:${createHash("sha256").update(text).digest("hex")}`, size: Buffer.byteLength(text) }));
  return { files, name, description, entry: { uri: `${root}/SKILL.md`, frontmatter: { name, description }, resources } };
});
const files = new Map(book.flatMap((skill) => [...skill.files]));
const described = new Map(book.map(({ entry, name, description }) => [entry.uri, { name, description }]));

const invalid = (message) => Object.assign(new Error(message), { code: -32602 });
const unknown = () => { throw Object.assign(new Error("Method not found"), { code: -32601 }); };
const found = (what, uri) => what ?? (() => { throw invalid(`nothing at ${uri}`); })();
const resource = (uri) => ({ uri, name: uri.split("/").at(-1), mimeType: "text/markdown", ...described.get(uri) });

/** children returns what stands directly in a directory, or nothing if it is none. */
function children(directory) {
  const names = new Map();
  for (const uri of files.keys()) {
    if (!uri.startsWith(`${directory}/`)) continue;
    const [name, ...below] = uri.slice(directory.length + 1).split("/");
    const at = `${directory}/${name}`;
    names.set(at, below.length ? { uri: at, name, mimeType: "inode/directory" } : resource(at));
  }
  return names.size ? [...names.values()] : undefined;
}

/** page returns one of a list's pages of one each; a cursor is its place. */
function page(list, { cursor = "0" } = {}) {
  const at = Number(cursor);
  if (!(at in list)) throw invalid(`no page ${cursor}`);
  return { page: [list[at]], ...(at + 1 < list.length && { nextCursor: String(at + 1) }) };
}

/** What the methods answer, by their names. */
const answers = {
  "resources/list": () => ({ resources: [...files.keys()].map(resource), ...hints }),
  "resources/read": ({ uri }) => ({ contents: [{ uri, mimeType: "text/markdown", text: found(files.get(uri), uri) }], ...hints }),
  "resources/directory/read": ({ uri, cursor }) => {
    const { page: resources, ...next } = page(found(children(uri), uri), { cursor });
    return { resources, ...next, ...hints };
  },
  "skills/list": (params) => {
    const { page: skills, ...next } = page(book.map(({ entry }) => entry), params);
    return { skills, ...next, ...hints };
  },
  "skills/get": ({ uri }) => ({ skill: found(book.find(({ entry }) => entry.uri === uri), uri).entry, ...hints }),
};

const anything = { "~standard": { version: 1, vendor: "interop", validate: (value) => ({ value }) } };

export function newServer() {
  const s = new Server(info, { capabilities });
  for (const [method, answer] of Object.entries(answers)) {
    if (method === "resources/list" || method === "resources/read") s.setRequestHandler(method, ({ params }) => answer(params ?? {}));
    else s.setRequestHandler(method, { params: anything, result: anything }, (params) => answer(params ?? {}));
  }
  return s;
}

/** newLegacyServer has what was before 2026-07-28: results without hints. */
function newLegacyServer() {
  const s = new LegacyServer(info, { capabilities });
  s.fallbackRequestHandler = async ({ method, params }) => {
    const { ttlMs, cacheScope, ...result } = (answers[method] ?? unknown)(params ?? {});
    return result;
  };
  return s;
}

async function serveLegacy(address) {
  const sessions = new Map();
  const server = createServer(async (req, res) => {
    let text = "";
    for await (const chunk of req) text += chunk;
    const body = text && JSON.parse(text);
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (!transport && !isInitializeRequest(body)) return res.writeHead(req.headers["mcp-session-id"] ? 404 : 400).end();
    if (!transport) {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => void sessions.set(id, transport), onsessionclosed: (id) => void sessions.delete(id) });
      await newLegacyServer().connect(transport);
    }
    await transport.handleRequest(req, res, body || undefined);
  });
  const [, host, port] = /^(.*):(\d+)$/.exec(address);
  server.listen(Number(port), host, () => console.error(`skillbook: listening on http://${address}`));
  process.once("SIGTERM", () => {
    server.close();
    server.closeAllConnections();
  });
}

if (process.argv[1].endsWith("skillbook.mjs")) await serveLegacy(process.argv[2]);
