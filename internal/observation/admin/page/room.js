// The room of a server: how it is reached, how hosts reach it here, what it gives, how it does,
// what it writes, and what can be done about it. It is what is known: the server is asked for its
// lists, and for changed tools, only if somebody wants them.
import {ask} from './api.js';
import {ToolChanges} from './changes.js';
import {el, facts, replace, sub, table} from './dom.js';
import {bytes, clock, era, state, when} from './format.js';
import {Lists} from './lists.js';
import {all, clientRates} from './rates.js';
import {Tasks} from './tasks.js';

const every = 2000; // ms between two requests for lines
const mostLines = 200;

export class Room {
  node = el('div', {class: 'room'});
  #name;
  #head = el('div', {});
  #facts = el('div', {});
  #connect = el('div', {});
  #changes = el('div', {});
  #rates = el('div', {});
  #tasks;
  #met = el('div', {});
  #said = el('p', {class: 'notice-line', role: 'status'});
  #lines = el('pre', {tabIndex: 0, role: 'region', 'aria-label': 'Standard error', class: 'lines-of'});
  #wrote = el('div', {hidden: true});
  #last = 0;
  #host = 'claude';
  #room;
  #pin; // as it was shown last
  #shown = ''; // of what connects hosts
  #left = false;
  #timer;
  #turn = 0;

  constructor(name) {
    this.#name = name;
    this.#tasks = new Tasks(name);
    this.#wrote.append(el('div', {class: 'head'}, el('h3', {}, 'Standard error'), this.#kept), el('div', {class: 'panel'}, this.#lines));
    this.node.append(this.#head, this.#said, this.#facts, this.#connect, this.#changes, new Lists(name).node, this.#tasks.node, this.#rates, this.#wrote, this.#met);
    this.#follow();
  }

  #kept = el('p', {class: 'quiet'});

  #path(more = '') {
    return `/api/servers/${encodeURIComponent(this.#name)}${more}`;
  }

  // leave ends what the room asks for.
  leave() {
    this.#left = true;
    clearTimeout(this.#timer);
  }

  // update shows what has become of it.
  async update() {
    const turn = ++this.#turn;
    let room;
    try {
      room = await ask(this.#path());
    } catch (err) {
      if (turn === this.#turn) replace(this.#head, back(), el('p', {class: 'panel note'}, err.message));
      return;
    }
    if (turn !== this.#turn) return;
    this.#room = room;
    this.#draw();
  }

  #draw() {
    const r = this.#room;
    document.title = `mcpbridge: ${r.name}`;
    replace(this.#head, back(), el('div', {class: 'head'}, el('h2', {}, `Server ${r.name}`), state(r.state), era(r.era),
      r.can.includes('restart') && el('button', {type: 'button', id: 'restart', onclick: () => this.#act('restart', `${r.name} is restarted: calls in flight go on at the one before.`)}, 'Restart'),
      r.can.includes('login') && el('button', {type: 'button', id: 'login', onclick: () => this.#login()}, 'Log in'),
      r.can.includes('logout') && el('button', {type: 'button', id: 'logout-of', onclick: () => this.#act('logout', (got) => (got.revoked ? 'The login is revoked, and deleted.' : `The login is deleted, but was not revoked: ${got.why}`))}, 'Log out of it')),
    r.error && el('section', {class: 'panel pad stack why', 'aria-label': 'Why it is down'}, el('h3', {}, 'Why it is down'), el('p', {class: 'bad-text'}, r.error),
      r.last_error_time && el('p', {class: 'quiet small'}, 'Last tried ', when(r.last_error_time, '', ' ago'), '. It is tried again.')));
    replace(this.#facts, el('div', {class: 'panel pad stack'}, reached(r)));
    this.#connects(r);
    const pin = r.pin || 'off';
    if (pin !== this.#pin) replace(this.#changes, new ToolChanges(this.#name, pin).node);
    this.#pin = pin;
    replace(this.#met, ...met(r));
    this.#wrote.hidden = r.transport !== 'command';
    this.#lines.hidden = !r.lines;
    this.#kept.textContent = r.lines ? `The last ${mostLines} lines.` : 'Lines are not kept. With admin_bodies: true in the configuration they are, without its secrets.';
  }

  // act does something to the server.
  async #act(what, done) {
    this.#said.textContent = 'It is asked for.';
    try {
      const got = await ask(this.#path(`/${what}`), {});
      this.#said.textContent = typeof done === 'function' ? done(got) : done;
    } catch (err) {
      this.#said.textContent = err.message;
    }
    this.update();
  }

  // login begins a login, and shows where to go on: in a tab of its own.
  async #login() {
    this.#said.textContent = 'It is asked where to log in.';
    try {
      const {url} = await ask(this.#path('/login'), {});
      if (!/^https?:/.test(url)) throw new Error('It names no page to log in at.');
      this.#said.replaceChildren(el('a', {href: url, target: '_blank', rel: 'noopener noreferrer', id: 'login-at'}, `Log in at ${new URL(url).host}`),
        ' with a browser on the machine that mcpbridge runs on; it is stored then.');
    } catch (err) {
      this.#said.textContent = err.message;
    }
  }

  // connects shows how hosts reach the server here. What was selected stays.
  #connects(r) {
    const shown = JSON.stringify([this.#host, r.endpoint, r.snippets]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    replace(this.#connect, ...this.#snippets(r));
  }

  #snippets(r) {
    const s = r.snippets.find((one) => one.host === this.#host) ?? r.snippets[0];
    if (!s) return [];
    const choose = (one) => el('button', {type: 'button', 'data-host': one.host, 'aria-pressed': String(one === s), onclick: () => {
      this.#host = one.host;
      this.#connects(this.#room);
    }}, one.title);
    return [el('div', {class: 'head'}, el('h3', {}, 'Connect a host')),
      el('div', {class: 'panel pad stack'}, copied('Endpoint', 'endpoint', r.endpoint),
        el('div', {class: 'choices', role: 'group', 'aria-label': 'Host'}, r.snippets.map(choose)),
        el('p', {class: 'quiet small'}, `For ${s.title}, in `, s.files.map((f, i) => [i > 0 && ' or ', el('code', {}, f)]), '.', r.proof && ' Clients have to prove who they are: put your token in.'),
        el('pre', {tabIndex: 0, role: 'region', id: 'snippet', 'aria-label': `For ${s.title}`}, s.text),
        el('div', {}, copyButton(() => s.text, () => document.getElementById('snippet'))))];
  }

  // follow asks for rates and lines, until the room is left.
  async #follow() {
    try {
      const rates = await ask(`/api/rates?${new URLSearchParams({server: this.#name})}`);
      replace(this.#rates, el('div', {class: 'head'}, el('h3', {}, 'Rates')), el('div', {class: 'panel'}, all(rates.servers.find((one) => one.server === this.#name))),
        rates.clients.length > 0 && el('div', {class: 'head'}, el('h3', {}, 'Rates of its clients')), rates.clients.length > 0 && el('div', {class: 'panel'}, clientRates(rates.clients)));
      await this.#tasks.update();
      if (this.#room?.lines) this.#add((await ask(this.#path(`/lines?after=${this.#last}`))).lines);
    } catch {
      // The page says that it is not connected, or the room that there is no such server.
    }
    if (!this.#left) this.#timer = setTimeout(() => this.#follow(), every);
  }

  // add shows further lines. Whoever reads the last one goes on to read the last one.
  #add(lines) {
    if (lines.length === 0) return;
    const at = this.#lines;
    const atEnd = at.scrollHeight - at.scrollTop - at.clientHeight < 30;
    this.#last = lines.at(-1).seq;
    at.append(...lines.map((l) => el('div', {}, el('time', {class: 'quiet', dateTime: l.time}, clock(l.time)), ` ${l.text}`)));
    while (at.childElementCount > mostLines) at.firstElementChild.remove();
    if (atEnd) at.scrollTop = at.scrollHeight;
  }
}

export function processes(s) {
  const list = (s.processes ?? []).map((p) => el('div', {}, el('span', {class: 'mono'}, p.pid ? `pid ${p.pid}` : 'started'),
    p.memory ? `, ${bytes(p.memory)}` : '', p.children ? `, ${p.children} more below it` : ''));
  if (s.processes_left) list.push(el('div', {class: 'quiet'}, `and ${s.processes_left} more`));
  return list;
}

const back = () => el('p', {}, el('a', {href: '#servers'}, '← Servers'));

function reached(r) {
  const list = (names) => (names?.length > 0 ? names.join(', ') : '');
  return facts([
    [r.transport === 'command' ? 'Command' : 'URL', el('code', {}, r.reached)],
    ['Folder', r.dir && el('code', {}, r.dir)],
    ['Environment, values hidden', list(r.env)],
    ['Headers, values hidden', list(r.headers)],
    ['Credentials', r.credentials],
    ['Name', r.info?.title || r.info?.name],
    ['Version', r.info?.version],
    ['Era', [r.era, r.era_since && [', since ', when(r.era_since, '', ' ago')], r.era_reason && sub(r.era_reason)].flat().filter(Boolean)],
    ['Revision', r.revision],
    ['State', [r.state, r.since && [' for ', when(r.since)]].flat().filter(Boolean)],
    ['Sessions', String(r.sessions)],
    ['Processes', processes(r).length > 0 ? processes(r) : ''],
    ['Changed tools', {warn: 'are logged', refuse: 'are hidden and refused'}[r.pin]],
    ['Last error', r.last_error && r.last_error !== r.error && [r.last_error, r.last_error_time && sub(when(r.last_error_time, '', ' ago'))]],
    ['Instructions', r.instructions],
  ]);
}

const limitColumns = [
  {title: 'Limit', class: 'name', show: (l) => el('span', {class: 'mono'}, l.limit)},
  {title: 'Met', class: 'num', show: (l) => l.count},
];

const quirkColumns = [
  {title: 'Quirk', class: 'name', show: (q) => [q.name, sub(q.rule)]},
  {title: 'Of', show: (q) => [q.side, q.client && sub(q.client)]},
  {title: 'What was seen', show: (q) => q.seen},
  {title: 'Times', class: 'num', show: (q) => q.count},
];

function met(r) {
  return [
    el('div', {class: 'head'}, el('h3', {}, 'Limits met')),
    el('div', {class: 'panel'}, table('Limits', limitColumns, r.limits, 'No limit was met since it is served.')),
    el('div', {class: 'head'}, el('h3', {}, 'Quirks met')),
    el('div', {class: 'panel'}, table('Quirks', quirkColumns, r.quirks, 'Neither it nor its clients deviate from the protocol.')),
  ];
}

// copyButton copies a text. Where a page may not write the clipboard, it selects the text.
function copyButton(text, at) {
  const button = el('button', {type: 'button', onclick: async () => {
    const node = at();
    if (node.select) node.select();
    else getSelection().selectAllChildren(node);
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Selected: copy it';
    }
  }}, 'Copy');
  return button;
}

function copied(title, id, value) {
  const field = el('textarea', {id, class: 'mono', rows: 1, spellcheck: false, readOnly: true, value}) // which wraps a long URL;
  return el('div', {class: 'endpoint'}, el('label', {for: id}, title), field, copyButton(() => value, () => field));
}
