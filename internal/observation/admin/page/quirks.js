// What clients and servers do against the protocol, and is tolerated.
import {el, sub, table} from './dom.js';

const columns = [
  {title: 'Server', class: 'name', show: (q) => q.server},
  {title: 'Who', show: (q) => q.side === 'server' ? 'the server' : q.client},
  {title: 'Quirk', show: (q) => [q.name, sub(q.rule)]},
  {title: 'What is seen', show: (q) => q.seen.replaceAll('`', '')},
  {title: 'Times', class: 'num', show: (q) => q.count},
];

export const quirks = {
  id: 'quirks',
  title: 'Quirks',
  count: (s) => s.quirks.list.length + (s.quirks.left ?? 0),
  show: ({state: s}) => [
    el('div', {class: 'head'}, el('h2', {}, 'Deviations from the protocol that are tolerated'), s.quirks.left > 0 && el('p', {class: 'quiet'}, `${s.quirks.left} more are not listed.`)),
    el('div', {class: 'panel'}, table('Quirks', columns, s.quirks.list, 'No client and no server has deviated from the protocol.')),
  ],
};
