// The clients that are there.
import {el, sub, table} from './dom.js';
import {era, when} from './format.js';

const transports = {http: 'HTTP session', connection: 'connection', stream: 'listen stream'};

const columns = [
  {title: 'Client', class: 'name', show: (c) => c.name || 'unnamed'},
  {title: 'Era', show: (c) => [era(c.era), c.revision && sub(c.revision)]},
  {title: 'Server', show: (c) => c.server},
  {title: 'Principal', show: (c) => c.principal},
  {title: 'Session', show: (c) => [c.session && el('span', {class: 'mono'}, c.session), sub(transports[c.transport] ?? c.transport)]},
  {title: 'Streams', class: 'num', show: (c) => c.streams},
  {title: 'Topics', class: 'num', show: (c) => c.topics},
  {title: 'In flight', class: 'num', show: (c) => c.in_flight},
  {title: 'Since', show: (c) => c.since && when(c.since)},
];

export const clients = {
  id: 'clients',
  title: 'Clients',
  count: (s) => s.clients.list.length + (s.clients.left ?? 0),
  show: ({state: s, passing}) => [
    el('div', {class: 'head'}, el('h2', {}, 'Clients'),
      s.clients.left > 0 && el('p', {class: 'quiet'}, `${s.clients.left} more are not listed.`)),
    el('div', {class: 'panel'}, table('Clients with a session, a connection or a stream', columns, s.clients.list,
      'No client has a session, a connection or a listen stream.')),
    el('div', {class: 'head'}, el('h2', {}, 'Seen while this page is open'), el('p', {class: 'quiet'}, 'Clients of 2026-07-28 have no session: their requests show who they are.')),
    el('div', {class: 'panel'}, table('Clients whose requests passed', seen, passing.list(), 'No request has passed yet.')),
  ],
};

const seen = [
  {title: 'Client', class: 'name', show: (c) => c.client || 'unnamed'},
  {title: 'Era', show: (c) => era(c.era)},
  {title: 'Server', show: (c) => c.server},
  {title: 'Principal', show: (c) => c.principal},
  {title: 'Calls', class: 'num', show: (c) => c.calls},
  {title: 'Last', show: (c) => `${c.method} ${c.name ?? ''}`},
];

// Passing counts the calls of clients, the last of which are kept.
export class Passing {
  #byKey = new Map();

  add(e) {
    if (e.type !== 'call') return;
    const key = [e.server, e.era, e.client, e.principal].join('\n');
    const before = this.#byKey.get(key);
    this.#byKey.delete(key);
    this.#byKey.set(key, {...e, calls: (before?.calls ?? 0) + 1});
    if (this.#byKey.size > 100) this.#byKey.delete(this.#byKey.keys().next().value);
  }

  list() {
    return [...this.#byKey.values()].reverse();
  }
}
