// The groups, and the room of each: its members, what each gives, and what is hidden and why. A room
// is what is known: looking asks no server.
import {ask} from './api.js';
import {el, facts, replace, sub, table} from './dom.js';
import {count, era, state, when} from './format.js';

const groupsOf = (s) => s.servers.filter((one) => one.members);

const columns = [
  {title: 'Group', class: 'name', show: (g) => el('a', {href: `#groups/${g.name}`}, g.name)},
  {title: 'State', show: (g) => [state(g.state), g.error && sub(el('span', {class: 'bad-text'}, g.error))]},
  {title: 'Members', show: (g) => g.members.join(', ')},
  {title: 'Topics', class: 'num', show: (g) => [g.topics, g.followers > 0 && sub(count(g.followers, 'follower'))]},
  {title: 'Questions', class: 'num', show: (g) => g.questions},
];

// given returns what is known of a list of a member.
function given(g) {
  if (!g.known) return [el('span', {class: 'quiet'}, 'not listed yet'), g.hidden > 0 && sub(`${g.hidden} hidden`)];
  return [`${g.shown}${g.more ? ' and more' : ''}`, g.hidden > 0 && sub(`${g.hidden} hidden`)];
}

const members = [
  {title: 'Server', class: 'name', show: (m) => [m.name, m.prefix && sub(el('span', {class: 'mono'}, `${m.prefix}__…`))]},
  {title: 'State', show: (m) => [state(m.state), m.since && sub('for ', when(m.since)), m.state === 'down' && m.failed && sub('last tried ', when(m.failed, '', ' ago')), m.error && sub(el('span', {class: 'bad-text'}, m.error))]},
  {title: 'Era', show: (m) => [era(m.era), m.revision && sub(m.revision)]},
  {title: 'Tools', class: 'num', show: (m) => given(m.tools)},
  {title: 'Prompts', class: 'num', show: (m) => given(m.prompts)},
  {title: 'Resources', class: 'num', show: (m) => given(m.resources)},
  {title: 'Templates', class: 'num', show: (m) => given(m.templates)},
];

const shown = [
  {title: 'Name', class: 'name', show: (n) => [el('span', {class: 'mono'}, n.name), n.cut && sub('cut: it is too long, or has characters that not all clients take')]},
  {title: 'Kind', show: (n) => n.kind},
  {title: 'Server', show: (n) => n.server},
  {title: 'Own name', show: (n) => el('span', {class: 'mono'}, n.own)},
];

const hidden = [
  {title: 'Own name', class: 'name', show: (n) => el('span', {class: 'mono'}, n.own)},
  {title: 'Kind', show: (n) => n.kind},
  {title: 'Server', show: (n) => n.server},
  {title: 'Why', show: (n) => n.why},
];

export class Groups {
  id = 'groups';
  title = 'Groups';
  keeps = true;
  #at;
  #name; // of the room that is shown; undefined for the list of all
  #turn = 0; // counts what was asked for

  count(s) {
    return groupsOf(s).length;
  }

  show(model, _, name) {
    this.#at = el('div', {});
    this.#name = name;
    this.update(model);
    return [this.#at];
  }

  // update shows what has become of it.
  async update({state: s}) {
    if (!this.#name) {
      replace(this.#at, el('div', {class: 'head'}, el('h2', {}, 'Groups')), el('div', {class: 'panel'}, table('Groups', columns, groupsOf(s), 'No groups are configured.')));
      return;
    }
    const turn = ++this.#turn;
    const at = this.#at;
    let drawn;
    try {
      drawn = room(await ask(`/api/groups/${encodeURIComponent(this.#name)}`));
    } catch (err) {
      drawn = [back(), el('p', {class: 'panel note'}, err.message)];
    }
    if (turn === this.#turn) replace(at, ...drawn);
  }
}

const back = () => el('p', {}, el('a', {href: '#groups'}, '← Groups'));

function room(r) {
  const names = r.members.flatMap((m) => m.names.map((n) => ({...n, server: m.name})));
  const left = r.members.reduce((n, m) => n + (m.left ?? 0), 0);
  return [back(),
    el('div', {class: 'head'}, el('h2', {}, `Group ${r.name}`), state(r.state)),
    el('div', {class: 'panel pad stack'}, endpoint(r.endpoint), facts([
      ['prefix', r.prefix], ['name_max', String(r.name_max)], ['on_missing', r.on_missing], ['patience', r.patience], ['start_patience', r.start_patience],
    ])),
    el('div', {class: 'head'}, el('h3', {}, 'Members, in the order of the lists'), el('p', {class: 'quiet'}, 'As clients listed them last: looking asks no server.')),
    el('div', {class: 'panel'}, table('Members', members, r.members, 'The group has no members.')),
    el('div', {class: 'head'}, el('h3', {}, 'Hidden')),
    el('div', {class: 'panel'}, table('Hidden', hidden, names.filter((n) => n.why), 'Nothing that is known is hidden.')),
    el('div', {class: 'head'}, el('h3', {}, 'Names that clients see, policies aside'), left > 0 && el('p', {class: 'quiet'}, `${left} more are not listed.`)),
    el('div', {class: 'panel'}, table('Names', shown, names.filter((n) => !n.why), 'No client has listed the group yet.')),
  ].filter(Boolean);
}

// endpoint shows the URL for clients, to copy.
function endpoint(url) {
  const field = el('textarea', {id: 'endpoint', class: 'mono', rows: 1, spellcheck: false, readOnly: true, value: url}) // which wraps a long URL;
  const button = el('button', {type: 'button', onclick: async () => {
    field.select(); // for browsers that let no page write the clipboard
    try {
      await navigator.clipboard.writeText(url);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Selected: copy it';
    }
  }}, 'Copy');
  return el('div', {class: 'endpoint'}, el('label', {for: 'endpoint'}, 'Endpoint'), field, button);
}
