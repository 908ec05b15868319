// An authorization server for tests: oidc-provider, which consents by itself.
//
//   node authorization-server.mjs PORT
//
// It issues JWTs for every resource, but opaque tokens where the control says so, and rotates
// refresh tokens. Clients register, or have a metadata document. The header X-User of the
// browser says who logs in (alice if it has none), X-Consent: deny refuses. The client exchanger
// exchanges tokens (RFC 8693), but those of mallory; also for a grant (ID-JAG) for an issuer that trusts
// this one, which issues tokens for such grants (RFC 7523) to its client granted.
//
// A test steers it by POST /control with any of
//   {"ttl": seconds}        of access tokens from here on
//   {"opaque": [resource]}  get tokens to introspect
//   {"rotate": true}        signs with a new key, and forgets the old one
//   {"revoke": "access"}    forgets all opaque access tokens; "all": refresh tokens and grants, too
//   {"delay": milliseconds} before each answer of the token endpoint
//   {"down": true}          answers 503 to everything but this
//   {"shape": {header, claims}}  writes JWTs as another issuer does: these members take the place
//                           of its own, and null leaves one out; null for its own shape
//   {"trusts": issuer}      takes the grants of that issuer, which is another one of these
// and GET /control returns what happened, as a list of events.
import { createLocalJWKSet, createRemoteJWKSet, decodeJwt, importJWK, jwtVerify, SignJWT } from "jose";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider, { errors } from "oidc-provider";

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const settings = { ttl: 300, opaque: [], delay: 0, down: false, shape: null, trusts: null };
const events = [];
const stored = new Map();

/** Adapter keeps all that the provider stores, in this process. It outlives a change of keys. */
class Adapter {
  constructor(model) {
    this.model = model;
  }
  key = (id) => `${this.model}:${id}`;
  async upsert(id, payload, seconds) {
    stored.set(this.key(id), { payload, ends: seconds ? Date.now() + seconds * 1000 : Infinity });
    if (stored.size > 20_000) this.sweep();
  }
  sweep() {
    for (const [key, { ends }] of stored) if (ends < Date.now()) stored.delete(key);
  }
  async find(id) {
    const found = stored.get(this.key(id));
    return found && found.ends > Date.now() ? found.payload : undefined;
  }
  async findByUid(uid) {
    for (const [key, { payload }] of stored) if (key.startsWith(`${this.model}:`) && payload.uid === uid) return payload;
  }
  async findByUserCode() {}
  async consume(id) {
    const found = await this.find(id);
    if (found) found.consumed = Math.floor(Date.now() / 1000);
  }
  async destroy(id) {
    stored.delete(this.key(id));
  }
  async revokeByGrantId(grant) {
    for (const [key, { payload }] of stored) if (payload.grantId === grant) stored.delete(key);
  }
}

const signingKey = () => ({ ...generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" }), kid: randomUUID(), alg: "RS256", use: "sig" });
const scopes = ["openid", "offline_access", "mcp:use", "read", "write", "admin"];

const exchangeType = "urn:ietf:params:oauth:grant-type:token-exchange";
const accessTokenType = "urn:ietf:params:oauth:token-type:access_token";
const exchangeParameters = ["audience", "resource", "scope", "requested_token_type", "subject_token", "subject_token_type"];

/** exchanger issues a token for another resource in exchange for one of this issuer's. */
function exchanger(provider, keys, key) {
  return async function exchange(ctx) {
    const { client, params } = ctx.oidc;
    const { resource, scope = "", subject_token: subject, subject_token_type: type, requested_token_type: wanted = accessTokenType } = params;
    if (type !== accessTokenType || (wanted !== accessTokenType && wanted !== idJagType) || !subject) throw new errors.InvalidRequest("access tokens alone are exchanged");
    const had = await jwtVerify(subject, keys, { issuer, typ: "at+jwt" }).then(({ payload }) => payload, (e) => {
      throw new errors.InvalidGrant("subject_token is not valid", String(e));
    });
    if (had.client_id === client.clientId || had.sub === "mallory") throw new errors.InvalidGrant("subject_token may not be exchanged");
    if (!resource || Array.isArray(resource) || resource === had.aud) throw new errors.InvalidTarget();
    if (wanted === idJagType) return grantFor(ctx, key, had);
    const server = new provider.ResourceServer(resource, { ...resourceServer(resource), accessTokenTTL: Math.min(settings.ttl, had.exp - Math.floor(Date.now() / 1000)) });
    const token = new provider.AccessToken({ accountId: had.sub, client, gty: "token_exchange", scope });
    token.resourceServer = server;
    const value = await token.save();
    const { jti } = decodeJwt(value);
    events.push({ kind: "exchange", client: client.clientId, resource, scope, sub: had.sub, had: had.jti, jti });
    ctx.body = { access_token: value, issued_token_type: accessTokenType, token_type: token.tokenType, expires_in: token.expiration, scope };
  };
}

const idJagType = "urn:ietf:params:oauth:token-type:id-jag";
const bearerType = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** grantFor answers an exchange with a grant for another issuer: the audience. */
async function grantFor(ctx, key, had) {
  const { audience, resource, scope = "" } = ctx.oidc.params;
  const claims = { resource, scope, client_id: "granted" };
  const grant = await new SignJWT(claims).setProtectedHeader({ alg: "RS256", typ: "oauth-id-jag+jwt", kid: key.kid })
    .setIssuer(issuer).setSubject(had.sub).setAudience(audience).setJti(randomUUID()).setIssuedAt().setExpirationTime("1m").sign(await importJWK(key, "RS256"));
  events.push({ kind: "id-jag", client: ctx.oidc.client.clientId, resource, scope, sub: had.sub, had: had.jti });
  ctx.body = { access_token: grant, issued_token_type: idJagType, token_type: "N_A", expires_in: 60, scope };
}

/** granting issues tokens for grants of the issuer that this one trusts. */
const granting = (provider) => async (ctx) => {
  const { client, params } = ctx.oidc;
  if (!settings.trusts) throw new errors.InvalidGrant("nobody's grants are taken");
  const from = createRemoteJWKSet(new URL(`${settings.trusts}/jwks`));
  const { payload } = await jwtVerify(params.assertion, from, { issuer: settings.trusts, audience: issuer, typ: "oauth-id-jag+jwt" }).catch((e) => {
    throw new errors.InvalidGrant("the grant is not valid", String(e));
  });
  if (payload.client_id !== client.clientId) throw new errors.InvalidGrant("the grant is another client's");
  const token = new provider.AccessToken({ accountId: payload.sub, client, gty: "jwt_bearer", scope: payload.scope });
  token.resourceServer = new provider.ResourceServer(payload.resource, resourceServer(payload.resource));
  const value = await token.save();
  events.push({ kind: "granted", client: client.clientId, resource: payload.resource, sub: payload.sub, jti: decodeJwt(value).jti });
  ctx.body = { access_token: value, token_type: token.tokenType, expires_in: token.expiration, scope: payload.scope };
};

const resourceServer = (resource) => ({
  scope: scopes.join(" "),
  audience: resource,
  accessTokenTTL: settings.ttl,
  accessTokenFormat: settings.opaque.includes(resource) ? "opaque" : "jwt",
  jwt: { sign: { alg: "RS256" } },
});

/** shape makes a JWT what another issuer would have written, but for who signs it and until when. */
function shape(parts) {
  if (!settings.shape) return;
  const { header, claims } = settings.shape;
  parts.header = Object.fromEntries(Object.entries(header).map(([name, value]) => [name, value ?? undefined]));
  Object.assign(parts.payload, claims);
  for (const [name, value] of Object.entries(parts.payload)) if (value === null) delete parts.payload[name];
}

function makeProvider() {
  const key = signingKey();
  const made = new Provider(issuer, {
    adapter: Adapter,
    jwks: { keys: [key] },
    cookies: { keys: ["of a test"] },
    scopes,
    // What confidential clients of a configuration are.
    clients: [
      { client_id: "service", client_secret: "service-secret", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
      { client_id: "exchanger", client_secret: "exchanger-secret", grant_types: [exchangeType], redirect_uris: [], response_types: [] },
      { client_id: "granted", client_secret: "granted-secret", grant_types: [bearerType], redirect_uris: [], response_types: [] },
      { client_id: "introspector", client_secret: "introspector-secret", grant_types: [], redirect_uris: [], response_types: [] },
      { client_id: "known", client_secret: "known-secret", application_type: "native", grant_types: ["authorization_code", "refresh_token"], redirect_uris: ["http://127.0.0.1/callback"] },
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: "draft-02", cacheDuration: { min: 1, max: 60 } },
      introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === "introspector" },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => resourceServer(resource),
      },
    },
    // The documents of clients are on loopback, where oidc-provider wouldn't look, and on a busy
    // machine they take longer than it would wait.
    fetch: (url, { dispatcher: _, signal: _2, ...options }) => fetch(url, { ...options, signal: AbortSignal.timeout(60_000) }),
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, team: "red" }) }),
    extraTokenClaims: (_, token) => ({ team: token.accountId === "bob" ? "blue" : "red", ...(token.gty === "token_exchange" && { act: { sub: token.clientId } }) }),
    formats: { customizers: { jwt: (_, _token, parts) => shape(parts) } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
    expiresWithSession: () => false,
    rotateRefreshToken: true,
    pkce: { required: () => true },
    ttl: { ClientCredentials: () => settings.ttl, AccessToken: () => settings.ttl, RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 60, AuthorizationCode: 60, IdToken: 60 },
    renderError: (ctx, out) => {
      ctx.type = "json";
      ctx.body = out;
    },
  });
  const { d: _d, p: _p, q: _q, dp: _dp, dq: _dq, qi: _qi, ...published } = key;
  made.registerGrantType(exchangeType, exchanger(made, createLocalJWKSet({ keys: [published] }), key), exchangeParameters, ["audience", "resource"]);
  made.registerGrantType(bearerType, granting(made), ["assertion"]);
  const note = (kind, of) => made.on(kind, (ctx, ...rest) => events.push({ kind, ...of(ctx, ...rest) }));
  const client = (ctx) => ctx.oidc?.client?.clientId;
  note("authorization.success", (ctx) => ({ client: client(ctx), ...pick(ctx.oidc.params, "scope", "resource", "redirect_uri", "code_challenge_method") }));
  note("authorization.error", (ctx, e) => ({ client: client(ctx), error: e.message, description: e.error_description }));
  note("grant.success", (ctx) => ({ client: client(ctx), ...pick(ctx.oidc.params, "grant_type", "scope", "resource") }));
  note("grant.error", (ctx, e) => ({ client: client(ctx), ...pick(ctx.oidc.params ?? {}, "grant_type"), error: e.message, description: e.error_description ?? e.error_detail }));
  note("registration_create.success", (ctx, c) => ({ client: c.clientId, ...pick(c.metadata(), "client_name", "application_type", "token_endpoint_auth_method") }));
  note("registration_create.error", (ctx, e) => ({ error: e.message, description: e.error_description }));
  note("introspection.error", (ctx, e) => ({ error: e.message, description: e.error_description }));
  note("server_error", (ctx, e) => ({ error: String(e?.stack ?? e) }));
  return made;
}

const pick = (from, ...names) => Object.fromEntries(names.map((name) => [name, from[name]]).filter(([, value]) => value !== undefined));

let provider = makeProvider();

/** interact logs somebody in and consents to all that is asked for. */
async function interact(req, res) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
  if (req.headers["x-consent"] === "deny") {
    return provider.interactionFinished(req, res, { error: "access_denied", error_description: "the user refused" });
  }
  if (prompt.name === "login") {
    return provider.interactionFinished(req, res, { login: { accountId: req.headers["x-user"] ?? "alice" } });
  }
  const grant = (grantId && (await provider.Grant.find(grantId))) || new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(" "));
  for (const [resource, of] of Object.entries(missingResourceScopes ?? {})) grant.addResourceScope(resource, of.join(" "));
  return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } }, { mergeWithLastSubmission: true });
}

async function control(req, res) {
  if (req.method === "POST") {
    let text = "";
    for await (const chunk of req) text += chunk;
    const { rotate, revoke, ...rest } = JSON.parse(text);
    Object.assign(settings, rest);
    if (rotate) provider = makeProvider();
    const revoked = revoke === "all" ? /^(RefreshToken|Grant|AccessToken):/ : /^AccessToken:/;
    if (revoke) for (const key of stored.keys()) if (revoked.test(key)) stored.delete(key);
  }
  res.setHeader("content-type", "application/json").end(JSON.stringify(events));
}

async function handle(req, res) {
  if (req.url === "/control") return control(req, res);
  if (settings.down) return res.writeHead(503).end();
  if (req.url.startsWith("/interaction/")) return interact(req, res);
  if (req.url === "/token" && settings.delay) await new Promise((done) => setTimeout(done, settings.delay));
  return provider.callback()(req, res);
}

createServer((req, res) => {
  handle(req, res).catch((e) => {
    events.push({ kind: "fault", error: String(e?.stack ?? e) });
    if (!res.headersSent) res.writeHead(500);
    res.end();
  });
}).listen(port, "127.0.0.1");
