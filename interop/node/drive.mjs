// Stands between the conformance suite's mock server and itself as its client:
// the suite runs `node drive.mjs URL`, which starts mcpbridge before URL and
// does what the scenario wants of a client, with a client of the other era. The
// status is 0 if the client saw what it should.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Client as LegacyClient } from "sdk-1.32.2/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "sdk-1.32.2/client/streamableHttp.js";
import { ElicitRequestSchema, ResultSchema } from "sdk-1.32.2/types.js";

const bridgeBinary = fileURLToPath(new URL("../bin/mcpbridge", import.meta.url));
const modern = "2026-07-28";
const options = { timeout: 60_000 };
const info = { name: "interop-drive", version: "1" };
const env = process.env;

/** startBridge starts mcpbridge and returns its endpoint when it serves. */
async function startBridge(url) {
  const bridge = spawn(bridgeBinary, ["serve", url, "--listen", "127.0.0.1:0", "--admin", "off", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  for await (const chunk of bridge.stdout) {
    said += chunk;
    if (said.trimEnd().endsWith("\n}")) return { bridge, endpoint: new URL(JSON.parse(said).endpoints[0].url) };
  }
  throw new Error(`mcpbridge ended without an endpoint; it said: ${said}`);
}

async function stopBridge(bridge) {
  const ended = once(bridge, "exit");
  bridge.kill("SIGTERM");
  const [status, signal] = await ended;
  assert.ok(status === 0 || signal === "SIGTERM", `mcpbridge ended with status ${status}`);
}

/** connect makes a client of the era that the mock server does not speak. */
async function connect(endpoint, mockRevision, elicit) {
  const capabilities = elicit ? { elicitation: {} } : {};
  if (mockRevision === modern) {
    const client = new LegacyClient(info, { capabilities });
    if (elicit) client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicit(client, params));
    await client.connect(new LegacyTransport(endpoint), options);
    return client;
  }
  const client = new Client(info, { versionNegotiation: { mode: { pin: modern } }, capabilities });
  if (elicit) client.setRequestHandler("elicitation/create", ({ params }) => elicit(client, params));
  await client.connect(new StreamableHTTPClientTransport(endpoint), options);
  return client;
}

// Both SDKs name their methods alike; they differ in where options stand.
const call = (client, params) => (client instanceof LegacyClient ? client.callTool(params, undefined, options) : client.callTool(params, options));
const called = async (client, name, args, want) => assert.equal((await call(client, { name, arguments: args })).content[0]?.text, want);

/** sampleArguments has something for each argument that must be there. */
const sampleArguments = ({ inputSchema }) => Object.fromEntries((inputSchema.required ?? []).map((name) => [name, { integer: 1, number: 1, boolean: true }[inputSchema.properties[name].type] ?? "x"]));

// The extension io.modelcontextprotocol/skills, which neither SDK has: what a host must check.
const anything = { "~standard": { version: 1, vendor: "interop", validate: (value) => ({ value }) } };
const listSkills = async (client) => (await client.request({ method: "skills/list", params: {} }, client instanceof LegacyClient ? ResultSchema : anything, options)).skills;
const digest = (text) => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const frontmatter = (text) => Object.fromEntries(text.split("---\n")[1].trim().split("\n").map((line) => line.split(": ")));

/** wrongWith says what of a skill's file is not as its entry says, or nothing. */
function wrongWith(text, file, skill) {
  if (Buffer.byteLength(text) !== file.size) return "size";
  if (digest(text) !== file.digest) return "digest";
  if (file.uri === skill.uri && JSON.stringify(frontmatter(text)) !== JSON.stringify(skill.frontmatter)) return "frontmatter";
}

/** refuses returns a client that loads a skill, and refuses its first file for the reason. */
const refuses = (reason) => ({
  async run(client) {
    const found = [];
    for (const skill of await listSkills(client)) {
      for (const file of skill.resources) {
        const { contents } = await client.readResource({ uri: file.uri }, options);
        found.push(wrongWith(contents[0].text, file, skill));
        if (found.at(-1)) break;
      }
    }
    assert.deepEqual(found, [reason]);
  },
});

/** What a client does in each scenario, and which questions it answers. */
const scenarios = {
  initialize: {
    run: async (client) => assert.deepEqual((await client.listTools(undefined, options)).tools, []),
  },
  tools_call: {
    async run(client) {
      assert.deepEqual((await client.listTools(undefined, options)).tools.map((t) => t.name), ["add_numbers"]);
      await called(client, "add_numbers", { a: 5, b: 3 }, "The sum of 5 and 3 is 8");
    },
  },
  "elicitation-sep1034-client-defaults": {
    // The answer is made of what arrived: a default lost on the way is missed.
    elicit: (_, { requestedSchema }) => ({ action: "accept", content: Object.fromEntries(Object.entries(requestedSchema.properties).map(([name, p]) => [name, p.default])) }),
    async run(client) {
      const { content } = await call(client, { name: "test_client_elicitation_defaults", arguments: {} });
      const defaults = { name: "John Doe", age: 30, score: 95.5, status: "active", verified: true };
      assert.deepEqual(JSON.parse(content[0].text.replace(/^Elicitation completed: /, "")), defaults);
    },
  },
  "sse-retry": {
    run: (client) => called(client, "test_reconnection", {}, "Reconnection test completed successfully"),
  },
  "request-metadata": {
    // The server has no capabilities; the list may be refused.
    run: (client) => client.listTools(undefined, options).catch(() => {}),
  },
  "sep-2322-client-request-state": {
    // Another call between the rounds must not carry what belongs to this one.
    async elicit(client) {
      await called(client, "test_mrtr_unrelated", {}, "unrelated-ok");
      return { action: "accept", content: { confirmed: true } };
    },
    async run(client) {
      await called(client, "test_mrtr_echo_state", {}, "echo-state-ok");
      await called(client, "test_mrtr_no_state", {}, "no-state-ok");
      await called(client, "test_mrtr_no_result_type", {}, "no-result-type-test-ok");
    },
  },
  "http-standard-headers": {
    async run(client) {
      const { tools } = await client.listTools(undefined, options);
      for (const { name } of tools) await call(client, { name, arguments: {} });
      for (const { uri } of (await client.listResources(undefined, options)).resources) await client.readResource({ uri }, options);
      for (const { name } of (await client.listPrompts(undefined, options)).prompts) await client.getPrompt({ name }, options);
      assert.equal(tools.length, 2);
    },
  },
  "http-custom-headers": {
    async run(client) {
      await client.listTools(undefined, options);
      for (const c of JSON.parse(env.MCP_CONFORMANCE_CONTEXT).toolCalls) await call(client, c);
    },
  },
  "http-invalid-tool-headers": {
    async run(client) {
      const { tools } = await client.listTools(undefined, options);
      for (const tool of tools) await call(client, { name: tool.name, arguments: sampleArguments(tool) });
      assert.deepEqual(tools.map((t) => t.name), ["valid_tool"]);
    },
  },
  "json-schema-ref-no-deref": {
    async run(client) {
      const { tools } = await client.listTools(undefined, options);
      assert.match(tools[0].inputSchema.properties.profile.$ref, /^http:/);
    },
  },
  "sep-2640-client-no-prefetch": {
    run: async (client) => assert.deepEqual((await listSkills(client)).map((skill) => skill.frontmatter.name), ["pdf-processing"]),
  },
  "sep-2640-client-verify-digest": refuses("digest"),
  "sep-2640-client-verify-size": refuses("size"),
  "sep-2640-client-verify-frontmatter": refuses("frontmatter"),
};

const { run, elicit } = scenarios[env.MCP_CONFORMANCE_SCENARIO];
const { bridge, endpoint } = await startBridge(process.argv[2]);
try {
  const client = await connect(endpoint, env.MCP_CONFORMANCE_PROTOCOL_VERSION, elicit);
  await run(client);
  await client.close();
} finally {
  await stopBridge(bridge);
}
