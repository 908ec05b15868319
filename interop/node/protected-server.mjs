// A server that serves the tokens of one issuer alone, on the TypeScript SDK's requireBearerAuth:
//
//   node protected-server.mjs PORT ISSUER
//
// at http://127.0.0.1:PORT/mcp, clients of both eras. Its tokens have to be for that URL, with
// the scope read. The tool whoami says what its caller's token says, and GET /control which
// tokens came, refused ones among them, by their claims. Its metadata names the issuer.
import { createMcpHandler, McpServer, OAuthError, OAuthErrorCode, requireBearerAuth } from "@modelcontextprotocol/server";
import { createRemoteJWKSet, decodeJwt, jwtVerify } from "jose";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

const [, , port, issuer] = process.argv;
const url = `http://127.0.0.1:${port}/mcp`;
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`), { cooldownDuration: 1000 });
const came = [];

const verifier = {
  async verifyAccessToken(token) {
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, typ: "at+jwt" });
      const { aud, client_id, scope = "", exp, sub, jti, act } = payload;
      return { token, clientId: client_id, scopes: scope.split(" "), expiresAt: exp, resource: new URL(aud), extra: { sub, aud, jti, act, client: client_id } };
    } catch (e) {
      throw new OAuthError(OAuthErrorCode.InvalidToken, String(e));
    }
  },
};
const metadata = { resource: url, authorization_servers: [issuer], scopes_supported: ["read"] };
const gate = requireBearerAuth({ verifier, requiredScopes: ["read"], expectedResource: new URL(url) });

function newServer() {
  const server = new McpServer({ name: "protected", version: "1" }, { capabilities: { tools: {} } });
  server.registerTool("whoami", { description: "Says what your token says." }, (ctx) => ({ content: [{ type: "text", text: JSON.stringify(ctx.http.authInfo.extra) }] }));
  return server;
}
const handler = createMcpHandler(newServer);

/** note keeps what a request's token says, verified or not. */
function note(authorization, status) {
  let of = {};
  try {
    of = decodeJwt(authorization.replace(/^Bearer /i, ""));
  } catch {
    // there is none, or it is opaque
  }
  const { sub, aud, jti, client_id: client } = of;
  came.push({ sub, aud, jti, client, status });
}

function webRequest(req, signal) {
  const body = req.method === "GET" || req.method === "HEAD" ? undefined : Readable.toWeb(req);
  const headers = new Headers();
  for (let i = 0; i < req.rawHeaders.length; i += 2) headers.append(req.rawHeaders[i], req.rawHeaders[i + 1]);
  return new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers, body, duplex: "half", signal });
}

async function answer(req, res) {
  if (req.url === "/.well-known/oauth-protected-resource/mcp") return res.setHeader("content-type", "application/json").end(JSON.stringify(metadata));
  if (req.url === "/control") return res.setHeader("content-type", "application/json").end(JSON.stringify(came));
  const gone = new AbortController();
  res.on("close", () => gone.abort());
  const request = webRequest(req, gone.signal);
  const auth = await gate(request);
  const response = auth instanceof Response ? auth : await handler.fetch(request, { authInfo: auth });
  note(req.headers.authorization ?? "", response.status);
  res.writeHead(response.status, Object.fromEntries(response.headers));
  res.flushHeaders();
  if (!response.body) return res.end();
  await pipeline(Readable.fromWeb(response.body), res).catch(() => {}); // the client is gone
}

createServer((req, res) => {
  answer(req, res).catch((e) => {
    console.error("protected-server:", e);
    res.destroy();
  });
}).listen(Number(port), "127.0.0.1");
