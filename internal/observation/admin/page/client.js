// Talks to the endpoint of a server as a client of either era does. The admin address passes the
// messages on as those of the principal admin.
import {keyHeader, login} from './api.js';

export const revisions = ['2026-07-28', '2025-11-25'];

const mostRounds = 20; // of questions during one request
const mostPages = 20;
const mostText = 32 << 20; // characters of one message
const capabilities = {elicitation: {form: {}, url: {}}, sampling: {}, roots: {}};
const meta = 'io.modelcontextprotocol/';
const named = {'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri'};

// name is that of the clients of this page, by which their calls are found in Live.
export const info = {name: 'mcpbridge-page', version: crypto.getRandomValues(new Uint32Array(1))[0].toString(36)};

// A Client is one of a server, of the era of a revision. Whoever asks it for something passes what
// is told of it: ask(method, params) returns the answer to a question, note(method, params) hears
// of progress and the like, and signal ends it.
export class Client {
  #path;
  #revision;
  #last = 0; // the id of the last request
  #session; // a promise of the headers of a legacy session; undefined while there is none
  #closed = new AbortController();

  constructor(server, revision) {
    this.#path = `/api/mcp/${encodeURIComponent(server)}`;
    this.#revision = revision;
  }

  get #modern() {
    return this.#revision === revisions[0];
  }

  // request returns the result of a request. headers are further ones.
  async request(method, params, told = {}, headers = {}) {
    if (!this.#modern) return this.#legacy(method, params, told);
    let more = {};
    for (let round = 0; round <= mostRounds; round++) {
      const result = await this.#round(method, {...params, ...more}, told, headers);
      if (result.resultType !== 'input_required') return result;
      const answers = {};
      for (const [key, q] of Object.entries(result.inputRequests ?? {})) answers[key] = await told.ask(q.method, q.params ?? {});
      more = {inputResponses: answers, requestState: result.requestState};
    }
    throw new Error(`the server asks in more than ${mostRounds} rounds`);
  }

  // list returns all that a list has, as far as it is bounded.
  async list(method, member, told) {
    const all = [];
    let cursor;
    for (let page = 0; page < mostPages; page++) {
      const got = await this.request(method, cursor ? {cursor} : {}, told);
      all.push(...(got[member] ?? []));
      cursor = got.nextCursor;
      if (!cursor) break;
    }
    return all;
  }

  // follow hears of the changes of a resource until told.signal ends it.
  async follow(uri, told) {
    if (this.#modern) return this.#round('subscriptions/listen', {notifications: {resourceSubscriptions: [uri]}}, told, {});
    await this.#legacy('resources/subscribe', {uri}, told);
    const headers = {...await this.#session, ...keyHeader(), Accept: 'text/event-stream'};
    const res = await fetch(this.#path, {headers, signal: this.#until(told.signal)});
    if (!res.ok) throw await problem(res);
    for await (const m of messages(res.body)) if (m.method && m.id === undefined) told.note?.(m.method, m.params ?? {});
    throw new Error('the stream has ended');
  }

  // close ends what runs, and then the session, if there is one. It waits for nobody.
  close() {
    this.#closed.abort(new Error('another client is tried'));
    this.#session?.then((headers) => fetch(this.#path, {method: 'DELETE', headers: {...headers, ...keyHeader()}, keepalive: true})).catch(() => {});
    this.#session = undefined;
  }

  #round(method, params, told, headers) {
    const own = {[`${meta}protocolVersion`]: this.#revision, [`${meta}clientInfo`]: info, [`${meta}clientCapabilities`]: capabilities};
    const name = params[named[method]];
    return this.#post({method, params: {...params, _meta: {...params._meta, ...own}}}, {
      'MCP-Protocol-Version': this.#revision, 'Mcp-Method': method, ...(name !== undefined && {'Mcp-Name': headerValue(name)}), ...headers,
    }, told);
  }

  async #legacy(method, params, told) {
    this.#session ??= this.#open();
    let headers;
    try {
      headers = await this.#session;
    } catch (err) {
      this.#session = undefined;
      throw err;
    }
    try {
      return await this.#post({method, params}, headers, told);
    } catch (err) {
      if (err.status === 404) this.#session = undefined; // it has ended: the next request opens another
      throw err;
    }
  }

  // open opens a session, and returns the headers of its messages.
  async #open() {
    let id;
    const got = await this.#post({method: 'initialize', params: {protocolVersion: this.#revision, capabilities, clientInfo: info}}, {}, {opens: true, head: (h) => {
      id = h.get('Mcp-Session-Id');
    }});
    const headers = {'MCP-Protocol-Version': got.protocolVersion, ...(id && {'Mcp-Session-Id': id})};
    await this.#send({method: 'notifications/initialized'}, headers);
    return headers;
  }

  // post sends a request, and returns its result.
  async #post(message, headers, told) {
    const id = ++this.#last;
    const res = await this.#send({id, ...message}, headers, told.opens ? undefined : this.#until(told.signal));
    told.head?.(res.headers);
    const stream = (res.headers.get('Content-Type') ?? '').startsWith('text/event-stream');
    for await (const m of stream ? messages(res.body) : [await res.json()]) {
      if (m.method) this.#hear(m, headers, told);
      else if (m.error) throw Object.assign(new Error(m.error.message), {code: m.error.code});
      else if (m.id === id) return m.result;
    }
    throw new Error('the stream has ended without the response');
  }

  // hear hears what comes before the response.
  async #hear(m, headers, told) {
    if (m.id === undefined) {
      told.note?.(m.method, m.params ?? {});
      return;
    }
    let answer;
    try {
      answer = {result: m.method === 'ping' ? {} : await told.ask(m.method, m.params ?? {})};
    } catch (err) {
      answer = {error: {code: -1, message: err.message}};
    }
    await this.#send({id: m.id, ...answer}, headers, this.#until(told.signal)).catch(() => {}); // the call says why
  }

  // until returns a signal that ends with another, or with the client.
  #until(signal) {
    return signal ? AbortSignal.any([signal, this.#closed.signal]) : this.#closed.signal;
  }

  async #send(message, headers, signal) {
    const res = await fetch(this.#path, {
      method: 'POST', signal, body: JSON.stringify({jsonrpc: '2.0', ...message}),
      headers: {'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers, ...keyHeader()},
    });
    if (!res.ok) throw await problem(res);
    return res;
  }
}

// problem returns the error of a response: the server's own, or that of the admin address.
async function problem(res) {
  const text = await res.text();
  let error;
  try {
    error = JSON.parse(text).error;
  } catch {
    if (res.status === 401) login();
  }
  return Object.assign(new Error(error?.message ?? (text.trim() || res.statusText)), {status: res.status, code: error?.code});
}

// messages are those of an event stream.
//
// Spec: WHATWG HTML, 9.2.6.
async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      text = (text + value);
      if (text.length > mostText) throw new Error('a message is too long for this page');
      const events = text.split(/\r\n\r\n|\n\n|\r\r/);
      text = events.pop();
      for (const e of events) {
        const data = e.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:')).map((line) => line.slice(5).replace(/^ /, '')).join('\n');
        if (data) yield JSON.parse(data);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// headerValue returns a value as a header has it.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Value Encoding.
export function headerValue(value) {
  const text = String(value);
  if (/^[!-~]([ -~]*[!-~])?$/.test(text) && !/^=\?base64\?/i.test(text)) return text;
  return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
}

// mirrors returns the headers of a call's arguments that the schema of the tool wants.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Schema Extension.
export function mirrors(schema, args) {
  const out = {};
  for (const [name, p] of Object.entries(schema?.properties ?? {})) {
    const value = args?.[name];
    if (value === undefined || value === null) continue;
    if (typeof p?.['x-mcp-header'] === 'string') out[`Mcp-Param-${p['x-mcp-header']}`] = headerValue(value);
    else if (p?.properties) Object.assign(out, mirrors(p, value));
  }
  return out;
}
