// Stands between the mock servers of the conformance suite that demand a login and itself
// as their client: the suite runs `node drive-login.mjs URL`, which starts mcpbridge wrap
// before URL, lists the tools and calls the one there is. mcpbridge logs in, with the browser that BROWSER
// names. The status is 0 if the client saw what it should.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const bridge = process.env.BRIDGE ?? fileURLToPath(new URL("../bin/mcpbridge", import.meta.url));
const url = process.argv[2];
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const dir = mkdtempSync(join(tmpdir(), "mcpbridge-login-"));

const file = (name, text) => {
  const path = join(dir, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};

/** issuerOf returns the authorization server that the mock server names in its metadata. */
async function issuerOf(server) {
  const { origin, pathname } = new URL(server);
  const metadata = await (await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`)).json();
  return metadata.authorization_servers[0];
}

/** What mcpbridge is told beside the URL, in each scenario that needs it: keys of the configuration. */
const keys = {
  "auth/basic-cimd": () => ({ CLIENT_METADATA_URL: "https://conformance-test.local/client-metadata.json" }),
  "auth/pre-registration": ({ issuer, client_id, client_secret }) => ofServer("OAUTH", { PRINCIPAL: "anonymous", ISSUER: issuer, CLIENT_ID: client_id, CLIENT_SECRET: client_secret }),
  "auth/client-credentials-basic": async ({ client_id, client_secret }) =>
    ofServer("CLIENT_CREDENTIALS", { ISSUER: await issuerOf(url), CLIENT_ID: client_id, CLIENT_SECRET: client_secret }),
  "auth/client-credentials-jwt": async ({ client_id, private_key_pem }) =>
    ofServer("CLIENT_CREDENTIALS", { ISSUER: await issuerOf(url), CLIENT_ID: client_id, PRIVATE_KEY: file("key.pem", private_key_pem) }),
};
const ofServer = (way, of) => Object.fromEntries(Object.entries(of).map(([key, value]) => [`SERVERS__MOCK__UPSTREAM_AUTH__${way}__${key}`, value]));

const env = { ...process.env, MCPBRIDGE_STATE_DIR: dir };
for (const [key, value] of Object.entries((await keys[process.env.MCP_CONFORMANCE_SCENARIO]?.(context)) ?? {})) env[`MCPBRIDGE_${key}`] = value;
const client = new Client({ name: "interop-login", version: "1" }, { versionNegotiation: { mode: "auto" } });
await client.connect(new StdioClientTransport({ command: bridge, args: ["wrap", "--name", "mock", url], env, stderr: "inherit" }), { timeout: 60_000 });
try {
  const { tools } = await client.listTools(undefined, { timeout: 60_000 });
  assert.deepEqual(tools.map((t) => t.name), ["test-tool"]);
  const { content } = await client.callTool({ name: "test-tool", arguments: {} }, { timeout: 60_000 });
  assert.equal(content[0].text, "test");
} finally {
  await client.close();
}
