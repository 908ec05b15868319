// One call: what the client sent, what the server got for it, and back.
import {ask} from './api.js';
import {el, facts, table} from './dom.js';
import {bytes, era, millis, outcome} from './format.js';
import {sides} from './sides.js';

export async function showCall(id, into) {
  let c;
  try {
    c = joined(await whole(id));
  } catch (err) {
    into.replaceChildren(back(), el('p', {class: 'panel note'}, err.message));
    return;
  }
  into.replaceChildren(...[back(),
    el('div', {class: 'head'}, el('h2', {}, `${c.method} ${c.name ?? ''}`), outcome(c.outcome)),
    el('div', {class: 'panel pad'}, about(c), c.error && el('p', {class: 'bad-text'}, c.error)),
    el('div', {class: 'head'}, el('h3', {}, 'Messages, side by side')),
    el('div', {class: 'panel'}, ...(c.bodies ? sides(c) : [el('p', {class: 'note'}, 'Messages and headers are not kept. With admin_bodies: true in the configuration they are, without its secrets.')])),
    el('div', {class: 'head'}, el('h3', {}, 'Requests to the server')),
    el('div', {class: 'panel'}, table('Requests to the server', columns, c.exchanges, 'Nothing was sent to the server.')),
    c.steps.length > 0 && el('div', {class: 'head'}, el('h3', {}, 'What happened')),
    c.steps.length > 0 && el('ol', {class: 'panel steps'}, c.steps.map((s) => el('li', {}, el('span', {class: 'mono quiet'}, `+${millis(s.at_ms)}`), el('span', {}, s.step.replaceAll('_', ' ')), el('span', {class: 'quiet'}, s.detail ?? '')))),
    c.left > 0 && el('p', {class: 'quiet'}, `${c.left} parts are not kept.`)].filter(Boolean));
}

// whole returns the requests that are one call to a person: a modern client answers
// questions by sending its request again. The first comes first.
async function whole(id) {
  const get = (one) => ask(`/api/calls/${encodeURIComponent(one)}`);
  const all = [await get(id)];
  while (all[0].former && all.length < mostParts) all.unshift(await get(all[0].former));
  while (all.at(-1).next && all.length < mostParts) all.push(await get(all.at(-1).next));
  return all;
}

const mostParts = 20;

// joined returns them as one call, whose times count from the first.
function joined(all) {
  const [first, last] = [all[0], all.at(-1)];
  const shifted = (name) => all.flatMap((c) => (c[name] ?? []).map((x) => ({...x, at_ms: x.at_ms + Date.parse(c.time) - Date.parse(first.time)}))).sort((a, b) => a.at_ms - b.at_ms);
  const sum = (name) => all.reduce((n, c) => n + (c[name] ?? 0), 0);
  return {
    ...first, outcome: last.outcome, error: last.error, parts: all.length, exchanges: shifted('exchanges'), steps: shifted('steps'), messages: shifted('messages'), heads: shifted('heads'),
    left: sum('left'), bytes_received: sum('bytes_received'), bytes_sent: sum('bytes_sent'),
    ms: last.outcome ? Date.parse(last.time) - Date.parse(first.time) + last.ms : undefined,
  };
}

const back = () => el('p', {}, el('a', {href: '#live'}, '← Live'));

const about = (c) => facts([
  [c.member ? 'Group' : 'Server', c.server], ['Server', c.member], ['Name there', c.own], ['Client', c.client], ['Era of the client', [era(c.era), ` ${c.revision ?? ''}`]], ['Principal', c.principal], ['Session', c.session],
  ['Began', new Date(c.time).toLocaleString()], ['Took', c.outcome ? millis(c.ms ?? 0) : 'it is running'], ['From the client', bytes(c.bytes_received)], ['To the client', bytes(c.bytes_sent)],
  ['Requests of the client', c.parts > 1 ? `${c.parts}: it answers questions by sending it again` : ''],
]);

const columns = [
  {title: 'At', show: (x) => `+${millis(x.at_ms)}`},
  {title: 'Method', show: (x) => x.method},
  {title: 'Era of the server', show: (x) => [era(x.era), ` ${x.revision ?? ''}`]},
  {title: 'Took', class: 'num', show: (x) => (x.open ? 'no answer yet' : millis(x.ms ?? 0))},
  {title: 'Error', show: (x) => x.error},
];
