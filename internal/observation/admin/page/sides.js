// The messages of a call, side by side, with what the translation has made of them.
import {el} from './dom.js';
import {bytes, millis, pretty} from './format.js';
import {compare, lines, member, parse, textOf} from './json.js';

const mostLines = 1500; // of a message: longer ones are not marked

// sides shows the client's messages on the left, and the server's on the right, in order, with
// their headers.
export function sides(c) {
  const messages = c.messages.map(read);
  const found = compareAll(messages);
  const raw = el('input', {type: 'checkbox', id: 'as-sent', onchange: () => show()});
  const place = el('div', {class: 'sides'});
  const shown = [...messages, ...(c.heads ?? []).map((h) => ({...h, head: true}))].sort((a, b) => a.at_ms - b.at_ms);
  const show = () => place.replaceChildren(el('h3', {}, `Client, ${c.era}`), el('h3', {}, `Server, ${c.exchanges[0]?.era ?? 'not asked'}`),
    ...shown.map((m) => (m.head ? head(m) : message(m, found, raw.checked))));
  show();
  return [el('div', {class: 'pad legend'}, el('p', {}, summary(found)), el('label', {class: 'check'}, raw, 'Messages as on the wire')), place];
}

// read returns a message with its value, if it is JSON, and what it is about.
function read(m) {
  const node = parse(m.text);
  const left = m.from === 'client' || m.to === 'client';
  const up = m.from === 'client' || m.to === 'server';
  return {...m, node, left, up, subjects: node ? (up ? asks(node) : tells(node)) : []};
}

// A subject has the value that is compared, and the whole message if that is within one.

// asks returns what a message towards the server is about: a request, or answers to questions,
// which modern clients send with the request again.
function asks(node) {
  const answers = member(member(node, 'params'), 'inputResponses');
  if (answers?.kind === 'object') return [{kind: 'retry', node}, ...answers.parts.map((p) => ({kind: 'answer', node: p.value}))];
  if (member(node, 'method') || !member(node, 'jsonrpc')) return [{kind: member(node, 'id') || !member(node, 'jsonrpc') ? 'request' : textOf(member(node, 'method')), node}];
  return [{kind: 'answer', node: member(node, 'result') ?? node, whole: node}];
}

// tells returns what a message towards the client is about: questions, a notification, or the
// result.
function tells(node) {
  const method = textOf(member(node, 'method'));
  if (method) return [{kind: member(node, 'id') ? 'question' : method, node}];
  const result = member(node, 'result');
  const questions = member(result, 'inputRequests');
  if (textOf(member(result, 'resultType')) === 'input_required' && questions?.kind === 'object') return questions.parts.map((p) => ({kind: 'question', node: p.value, whole: node}));
  return [{kind: 'result', node}];
}

// compareAll compares what the sides have of each kind, in order. It returns the marks of nodes,
// and the messages that were compared.
function compareAll(messages) {
  const marks = new Map();
  const compared = new Set();
  const of = (left) => messages.filter((m) => m.left === left).flatMap((m) => m.subjects.map((s) => ({...s, m})));
  const [client, server] = [of(true), of(false)];
  if (!client.some((s) => s.kind === 'retry')) { // it is made of the request
    const request = client.find((s) => s.kind === 'request');
    for (const s of server) if (s.kind === 'retry' && request) client.push({...request, kind: 'retry'});
  }
  for (const kind of new Set(client.map((s) => s.kind))) {
    const others = server.filter((s) => s.kind === kind);
    client.filter((s) => s.kind === kind).slice(0, others.length).forEach((s, i) => {
      const alike = s.whole && others[i].whole; // messages of one form
      compare(alike ? s.whole : s.node, alike ? others[i].whole : others[i].node, marks);
      compared.add(s.m).add(others[i].m);
    });
  }
  return {marks, compared, counts: count(messages, marks, compared)};
}

// count counts what was added, taken away and changed between the sides.
function count(messages, marks, compared) {
  const counts = {added: 0, gone: 0, changed: 0};
  const walk = (m, node) => {
    const kind = change(m, node, marks);
    if (kind === 'changed' && m.left) counts.changed++;
    if (kind === 'added' || kind === 'gone') counts[kind]++;
    if (kind !== 'added' && kind !== 'gone') node.parts?.forEach((p) => walk(m, p.value));
    else if (within(node, marks)) node.parts?.forEach((p) => walk(m, p.value));
  };
  for (const m of compared) walk(m, m.node);
  return counts;
}

// within reports whether part of a node has a counterpart.
const within = (node, marks) => node.parts?.some((p) => marks.has(p.value) || within(p.value, marks)) ?? false;

// change says what became of a node of a message: what the side that is told has alone was added,
// what the side that tells has alone was taken away.
function change(m, node, marks) {
  const mark = marks.get(node);
  if (mark) return mark;
  return m.left === m.up ? 'gone' : 'added';
}

function summary({compared, counts}) {
  if (compared.size === 0) return 'There is nothing to compare.';
  const all = [[counts.added, 'added'], [counts.gone, 'taken away'], [counts.changed, 'changed']].filter(([n]) => n > 0).map(([n, what]) => `${n} ${what}`);
  return all.length === 0 ? 'The messages of both sides are the same.' : `On the way between the sides: ${all.join(', ')}. Marked: + added, − taken away, ~ changed.`;
}

const marked = {added: ['ins', 'added on the way'], gone: ['del', 'taken away on the way'], changed: ['mark', 'changed on the way']};

function message(m, {marks, compared}, raw) {
  const cut = m.size > m.text.length + 64 ? ', the beginning' : '';
  const title = m.left ? (m.from === 'client' ? 'what the client sent' : 'what the client got') : (m.to === 'server' ? 'what the server got' : 'what the server sent');
  return el('figure', {class: `message ${m.left ? 'left' : 'right'}`},
    el('figcaption', {}, el('span', {}, title), el('span', {}, `+${millis(m.at_ms)}, ${bytes(m.size) || 'empty'}${cut}`)),
    el('pre', {tabIndex: 0, role: 'region', 'aria-label': title}, raw ? m.text : laidOut(m, marks, compared)));
}

function laidOut(m, marks, compared) {
  const all = m.node ? lines(m.node) : [];
  if (all.length === 0 || all.length > mostLines) return pretty(m.text);
  return all.flatMap((line, i) => {
    const [tag, title] = (compared.has(m) && marked[change(m, line.node, marks)]) || [];
    const end = i < all.length - 1 ? '\n' : '';
    return tag ? [el(tag, {title}, line.text), end] : [line.text + end];
  });
}

function head(h) {
  const left = h.from === 'client' || h.to === 'client';
  const title = h.status ? `status ${h.status}` : 'header';
  return el('figure', {class: `message ${left ? 'left' : 'right'}`}, el('details', {},
    el('summary', {}, `${h.status ? `HTTP status ${h.status}, header` : 'HTTP header'} ${h.from === 'client' || h.from === 'server' ? `of the ${h.from}` : `to the ${h.to}`}, ${h.fields.length} fields`),
    el('pre', {tabIndex: 0, role: 'region', 'aria-label': title}, h.fields.map((f) => `${f.name}: ${f.value}`).join('\n'))));
}
