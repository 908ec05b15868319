// The servers, and how they are reached.
import {el, facts, sub, table} from './dom.js';
import {bytes, count, era, state, when} from './format.js';

const columns = [
  {title: 'Server', class: 'name', show: (s) => [s.name, s.members ? sub(el('a', {href: `#groups/${s.name}`}, 'a group'), ` of ${s.members.join(', ')}`) : sub(s.transport)]},
  {title: 'State', show: (s) => [state(s.state), s.since && sub('for ', when(s.since)), s.error && sub(el('span', {class: 'bad-text'}, s.error))]},
  {title: 'Era', show: (s) => [era(s.era), s.era_reason && sub(s.era_reason, s.era_since && ['; since ', when(s.era_since, '', ' ago')])]},
  {title: 'Sessions', class: 'num', show: (s) => s.sessions},
  {title: 'Topics', class: 'num', show: (s) => [s.topics, s.followers > 0 && sub(count(s.followers, 'follower'))]},
  {title: 'Questions', class: 'num', show: (s) => s.questions},
  {title: 'Processes', show: (s) => processes(s)},
  {title: 'Last error', show: (s) => s.last_error && [s.last_error === s.error ? 'the one that it is down for' : s.last_error, s.last_error_time && sub(when(s.last_error_time, '', ' ago'))]},
];

function processes(s) {
  const list = (s.processes ?? []).map((p) => el('div', {}, el('span', {class: 'mono'}, p.pid ? `pid ${p.pid}` : 'started'),
    p.memory ? `, ${bytes(p.memory)}` : '', p.children ? `, ${p.children} more below it` : ''));
  if (s.processes_left) list.push(el('div', {class: 'quiet'}, `and ${s.processes_left} more`));
  return list;
}

export const servers = {
  id: 'servers',
  title: 'Servers',
  count: (s) => s.servers.length,
  show: ({state: s}, {reload}) => [
    el('div', {class: 'head'}, el('h2', {}, 'Servers'), s.can_reload && el('button', {type: 'button', onclick: reload}, 'Read the configuration anew')),
    el('div', {class: 'panel'}, table('Servers', columns, s.servers ?? [], 'No servers are configured.')),
    s.replicas && replicas(s.replicas),
    s.reload && lastReload(s.reload),
  ],
};

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
