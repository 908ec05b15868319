// A server of 2026-07-28 with the extensions io.modelcontextprotocol/skills and
// io.modelcontextprotocol/ui, for modern-server.mjs: methods of its own, with hints how
// long a client may keep what they answer, and a tool with a page.
import { McpServer } from "@modelcontextprotocol/server";
import { createHash } from "node:crypto";

const as = (value) => ({ value });
const anything = { "~standard": { version: 1, vendor: "interop", validate: as } };

const folder = "skill://grün/";
const files = { [`${folder}SKILL.md`]: "---\nname: grün\ndescription: Paints.\n---\n", [`${folder}tones/dark.md`]: "# Dark\n" };
const digest = (s) => `sha256:${createHash("sha256").update(s).digest("hex")}`;
const resources = Object.entries(files).map(([uri, text]) => ({ uri, digest: digest(text), size: Buffer.byteLength(text) }));
const skill = { uri: `${folder}SKILL.md`, frontmatter: { name: "grün", description: "Paints.", metadata: { precise: 1.0e2 } }, resources };

const page = "ui://paint/page.html";
const html = '<!doctype html><title>Grün &amp; "blau"</title><script>1 < 2 && "\\u2028"</script>\u2028';
const ui = { resourceUri: page, csp: { connectDomains: ["https://example.com"] }, prefersBorder: true };

let asked = 0; // how often skills/get arrived

export function newServer() {
  const extensions = { "io.modelcontextprotocol/skills": { directoryRead: true }, "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
  const s = new McpServer({ name: "skills", version: "1" }, { capabilities: { extensions, resources: {}, tools: {} } });
  s.registerTool("paint", { description: "Paints.", inputSchema: undefined, _meta: { ui } }, () => ({ content: [{ type: "text", text: "painted" }], _meta: { ui: { shade: "dark" } } }));
  s.registerResource("page", page, { mimeType: "text/html;profile=mcp-app", _meta: { ui: { prefersBorder: true } } }, () => ({
    contents: [{ uri: page, mimeType: "text/html;profile=mcp-app", text: html, _meta: { ui: { csp: ui.csp } } }],
  }));
  const own = { params: anything, result: anything };
  s.server.setRequestHandler("skills/list", own, () => ({ skills: [skill], nextCursor: "2", ttlMs: 60_000, cacheScope: "public" }));
  s.server.setRequestHandler("skills/get", own, ({ uri }) => ({ skill: { ...skill, uri }, asked: ++asked, ttlMs: 0, cacheScope: "private" }));
  s.server.setRequestHandler("resources/directory/read", own, ({ uri }) => ({
    resources: [{ uri: `${uri}/dark.md`, name: "dark.md", mimeType: "text/markdown" }],
    ttlMs: 1234,
    cacheScope: "public",
  }));
  return s;
}
