// Puts the page together: what is told by the WebSocket, and the view that shows it.
import {ask, follow, hasKey, logout} from './api.js';
import {showCall} from './call.js';
import {Passing, clients} from './clients.js';
import {el, replace} from './dom.js';
import {follows} from './follows.js';
import {Groups} from './groups.js';
import {Logins} from './logins.js';
import {questions} from './questions.js';
import {quirks} from './quirks.js';
import {servers} from './servers.js';
import {Stream} from './stream.js';
import {TryForm} from './try.js';

const stream = new Stream();
const tryForm = new TryForm();
const views = [servers, new Groups(), clients, follows, stream, questions, quirks, new Logins(), tryForm];
const model = {state: null, passing: new Passing(), changed: new Map()};
const main = document.getElementById('main');
const glow = 1500; // ms for which a topic that has changed is marked

const actions = {
  // How it went is in the state, which follows.
  reload: async () => {
    say('Reading the configuration.');
    try {
      await ask('/reload', {});
      say('The configuration was read, and is in use.');
    } catch (err) {
      say(err.status === 422 ? 'The configuration can\'t be used: the one before stays in use.' : `The configuration was not read: ${err.message}`);
    }
  },
};

// say tells what became of an action, until another view is opened.
function say(text) {
  document.getElementById('notice').textContent = text;
}

function chosen() {
  const [id, rest] = /^#([^/]*)\/?(.*)$/.exec(location.hash || '#').slice(1);
  if (id === 'call' && rest) return {call: rest};
  const view = views.find((v) => v.id === id) ?? servers;
  return {view, rest: view === tryForm ? rest : rest && decodeURIComponent(rest)};
}

// show shows the chosen view. A call stays as it was when it was opened, and a view that
// keeps its elements changes them itself, when it is told to or when it likes.
function show(opened) {
  if (!model.state) return;
  const {view, rest, call} = chosen();
  links(view);
  if (call) {
    if (opened) showCall(decodeURIComponent(call), main);
    return;
  }
  document.title = `mcpbridge: ${view.title}`;
  if (!opened && view.update) {
    view.update(model);
    return;
  }
  const shown = view.show(model, actions, rest);
  if (opened) main.replaceChildren(...shown.filter(Boolean));
  else if (!view.keeps) replace(main, ...shown);
}

function links(view) {
  const list = document.getElementById('views');
  replace(list, views.map((v) => el('li', {}, el('a', {href: `#${v.id}`, 'aria-current': v === view ? 'page' : undefined}, v.title, el('span', {class: 'pill'}, String(v.count(model.state)))))));
}

function header() {
  const s = model.state;
  document.getElementById('version').textContent = s.version;
  const counts = [['in flight', s.counts.requests], ['streams', s.counts.streams], ['sessions', s.counts.sessions], ['WebSockets', s.counts.sockets], ['subscriptions', s.counts.pairs]];
  if (s.replicas) counts.push(['replicas', s.replicas.members.length]);
  replace(document.getElementById('counts'), counts.map(([name, n]) => el('div', {}, el('dt', {}, name), el('dd', {}, String(n)))));
}

function told(message) {
  if (message.type === 'state') {
    const first = !model.state;
    model.state = message.state;
    header();
    show(first);
    if (model.state.draining) linked(true);
    return;
  }
  const events = message.events ?? [];
  for (const e of events) {
    model.passing.add(e);
    tryForm.passed(e);
    if (e.type === 'change') mark(`${e.server}\n${e.method}\n${e.method === 'resourceUpdated' ? e.name : ''}`);
  }
  stream.add(events, (message.skipped ?? 0) + (message.missed ?? 0), model.state?.servers);
  if (chosen().view === clients) show(false);
}

// mark marks a topic that has changed, for a moment.
function mark(key) {
  clearTimeout(model.changed.get(key));
  model.changed.set(key, setTimeout(() => {
    model.changed.delete(key);
    redraw();
  }, glow));
  redraw();
}

let drawing;
function redraw() {
  if (chosen().view !== follows) return;
  drawing ??= requestAnimationFrame(() => {
    drawing = undefined;
    show(false);
  });
}

function linked(on) {
  const at = document.getElementById('link');
  at.className = `link ${on ? 'on' : 'off'}`;
  at.textContent = on ? (model.state?.draining ? 'Live; the gateway is ending' : 'Live') : 'Not connected, trying again';
}

window.addEventListener('hashchange', () => {
  if (location.hash === '#main') return;
  say('');
  show(true);
  main.focus({preventScroll: true});
  window.scrollTo(0, 0);
});
window.addEventListener('resize', redraw);
const out = document.getElementById('logout');
out.hidden = !hasKey();
out.addEventListener('click', () => logout());
follow(told, linked);
setInterval(() => show(false), 30000); // times go on
