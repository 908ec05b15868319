// What servers ask clients, and have no answer to yet.
import {el, sub, table} from './dom.js';
import {era, when} from './format.js';

const columns = [
  {title: 'Server', class: 'name', show: (q) => q.server},
  {title: 'Asks', show: (q) => [q.method, q.text && sub(`“${q.text}”`)]},
  {title: 'During', show: (q) => [q.during, q.name && sub(q.name)]},
  {title: 'Client', show: (q) => [q.client || 'unnamed', ' ', era(q.era), q.principal && sub(q.principal)]},
  {title: 'Waits for', show: (q) => when(q.since)},
  {title: 'Until', show: (q) => q.until && new Date(q.until).toLocaleTimeString('en-GB')},
];

export const questions = {
  id: 'questions',
  title: 'Questions',
  count: (s) => s.counts.questions,
  show: ({state: s}) => [
    el('div', {class: 'head'}, el('h2', {}, 'Questions that wait for an answer'), s.questions.left > 0 && el('p', {class: 'quiet'}, `${s.questions.left} more are not listed.`)),
    el('div', {class: 'panel'}, table('Questions', columns, s.questions.list, 'No server waits for an answer of a client.')),
  ],
};
