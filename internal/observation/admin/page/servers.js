// The servers, and how they are reached: those that fail first. Each has a room.
import {ask} from './api.js';
import {el, facts, replace, sub, table} from './dom.js';
import {count, era, state, when} from './format.js';
import {brief} from './rates.js';
import {Room, processes} from './room.js';

const every = 4000; // ms between two requests for rates

const columns = (rates) => [
  {title: 'Server', class: 'name', show: (s) => [el('a', {href: `#${s.members ? 'groups' : 'servers'}/${s.name}`}, s.name), s.members ? sub(`a group of ${s.members.join(', ')}`) : sub(s.transport)]},
  {title: 'State', show: (s) => [state(s.state), s.since && sub('for ', when(s.since)), s.error && sub(el('span', {class: 'bad-text'}, s.error))]},
  {title: 'Last minute', show: (s) => brief(rates.get(s.name))},
  {title: 'Era', show: (s) => [era(s.era), s.era_reason && sub(s.era_reason, s.era_since && ['; since ', when(s.era_since, '', ' ago')])]},
  {title: 'Sessions', class: 'num', show: (s) => s.sessions},
  {title: 'Topics', class: 'num', show: (s) => [s.topics, s.followers > 0 && sub(count(s.followers, 'follower'))]},
  {title: 'Questions', class: 'num', show: (s) => s.questions},
  {title: 'Processes', show: (s) => processes(s)},
  {title: 'Last error', show: (s) => s.last_error && [s.last_error === s.error ? 'the one that it is down for' : s.last_error, s.last_error_time && sub(when(s.last_error_time, '', ' ago'))]},
];

class Servers {
  id = 'servers';
  title = 'Servers';
  keeps = true;
  #at;
  #room; // that is shown; undefined for the list of all
  #reload;
  #model;
  #rates = new Map();
  #timer;

  count(s) {
    return s.servers.length;
  }

  show(model, {reload}, name) {
    clearTimeout(this.#timer);
    this.#room?.leave();
    this.#at = el('div', {});
    this.#reload = reload;
    this.#room = name ? new Room(name) : undefined;
    this.update(model);
    if (!name) this.#follow(this.#at);
    return [this.#room ? this.#room.node : this.#at];
  }

  // update shows what has become of it.
  update(model) {
    this.#model = model;
    if (this.#room) {
      this.#room.update();
      return;
    }
    const s = model.state;
    replace(this.#at,
      el('div', {class: 'head'}, el('h2', {}, 'Servers'), s.can_reload && el('button', {type: 'button', onclick: () => this.#reload()}, 'Read the configuration anew')),
      el('div', {class: 'panel'}, table('Servers', columns(this.#rates), this.#inOrder(s.servers ?? []), 'No servers are configured.')),
      s.replicas && replicas(s.replicas),
      s.reload && lastReload(s.reload));
  }

  // follow asks for the rates now and then, while the list is shown.
  async #follow(at) {
    try {
      const got = await ask('/api/rates');
      this.#rates = new Map(got.servers.map((r) => [r.server, r]));
      if (this.#at === at && !this.#room) this.update(this.#model);
    } catch {
      // The page says that it is not connected.
    }
    if (this.#at !== at) return;
    this.#timer = setTimeout(() => at.isConnected && this.#follow(at), every);
  }

  // inOrder puts those that are down first, and then those with errors in the last minute.
  #inOrder(list) {
    const weight = (s) => (s.state === 'down' ? 2 : this.#rates.get(s.name)?.minute.errors > 0 ? 1 : 0);
    return list.map((s, i) => [s, i]).sort(([a, i], [b, j]) => weight(b) - weight(a) || i - j).map(([s]) => s);
  }
}

export const servers = new Servers();
// replicas shows the processes that serve the same clients.
function replicas(r) {
  const held = (m) => r.claims.filter((c) => c.holder === m.instance).length;
  const columns = [
    {title: 'Replica', class: 'name', show: (m) => [m.instance, m.instance === r.self && sub('this one')]},
    {title: 'Address', show: (m) => el('span', {class: 'mono'}, m.addr)},
    {title: 'Version', show: (m) => m.version},
    {title: 'State', show: (m) => (m.draining ? 'takes no new work' : 'serves')},
    {title: 'Profiles held', class: 'num', show: held},
  ];
  return el('section', {class: 'panel', 'aria-label': 'Replicas'},
    table('Replicas', columns, r.members, 'No replicas are known.'),
    r.away && el('p', {class: 'pad bad-text'}, 'The engine is away, for ', when(r.away), ': sessions and calls go on.'));
}

// lastReload shows how reading the configuration anew went.
function lastReload(r) {
  const list = (items) => (items && items.length > 0 ? items.join(', ') : '');
  return el('section', {class: 'panel pad stack', 'aria-label': 'The configuration'},
    el('h3', {}, 'The configuration'),
    facts([
      ['Last read', r.time && when(r.time, '', ' ago')],
      ['Because of', r.why],
      ['Outcome', r.ok ? 'in use' : el('span', {class: 'bad-text'}, 'refused: the former one stays in use')],
      ['File', r.file],
      ['Line', r.line],
      ['Added', list(r.added)],
      ['Changed', list(r.changed)],
      ['Removed', list(r.removed)],
      ['Other credentials', list(r.renewed)],
      ['Needs a restart', list(r.needs_restart)],
    ]),
    r.error && el('pre', {tabIndex: 0, role: 'region', 'aria-label': 'Error'}, r.error));
}
