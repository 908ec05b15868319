// What passes: a line for each call, with what happened to it, and for each change.
import {el} from './dom.js';
import {clock, count, era, millis, outcome, topic} from './format.js';

const most = 300;
const mostSteps = 50; // of a line

// Stream keeps the last lines, and shows those that pass the filter.
export class Stream {
  id = 'live';
  title = 'Live';
  keeps = true;
  #lines = []; // the latest first
  #byCall = new Map();
  #held = 0; // came while paused
  #missed = 0;
  #paused = false;
  #words = '';
  #types = {call: true, change: true};
  #body;

  count() {
    return '';
  }

  // add adds events. servers are those of the state, whose eras are known before they are asked.
  add(events, missed, servers = []) {
    this.#missed += missed;
    if (this.#paused) {
      this.#held += events.length;
      return;
    }
    const eras = new Map(servers.map((s) => [s.name, s.era]));
    for (const e of events) this.#take(e, eras);
    for (const old of this.#lines.splice(most)) this.#byCall.delete(old.key);
    if (this.#body?.isConnected) this.#list();
  }

  // take adds an event to the line of its call, or a line for it.
  #take(e, eras) {
    const known = {...e, server_era: e.server_era || eras.get(e.member || e.server)};
    const key = e.type === 'change' ? '' : e.first || e.call;
    const line = this.#byCall.get(key);
    if (line) {
      line.add(known);
      return;
    }
    const fresh = new Line(known, key);
    this.#lines.unshift(fresh);
    if (key) this.#byCall.set(key, fresh);
  }

  show() {
    if (!this.#body) this.#build();
    this.#list();
    return [this.#body];
  }

  #build() {
    this.lines = el('ol', {class: 'lines panel', 'aria-label': 'What passed, the latest first'});
    this.note = el('p', {class: 'quiet', id: 'live-note'});
    this.pause = el('button', {type: 'button', id: 'pause', 'aria-pressed': 'false', onclick: () => this.#toggle()}, 'Pause');
    const words = el('input', {type: 'search', id: 'filter', placeholder: 'server, method, name, client …', oninput: (e) => {
      this.#words = e.target.value.toLowerCase();
      this.#list();
    }});
    const types = [['call', 'Calls'], ['change', 'Changes']].map(([type, text]) =>
      el('label', {class: 'check'}, el('input', {type: 'checkbox', checked: true, onchange: (e) => {
        this.#types[type] = e.target.checked;
        this.#list();
      }}), text));
    this.#body = el('div', {}, el('div', {class: 'head'}, el('h2', {}, 'Live'), el('label', {for: 'filter'}, 'Filter'), words, types, this.pause), this.note, this.lines);
  }

  #toggle() {
    this.#paused = !this.#paused;
    this.#held = 0;
    this.pause.setAttribute('aria-pressed', String(this.#paused));
    this.pause.textContent = this.#paused ? 'Go on' : 'Pause';
    this.#list();
  }

  #list() {
    const shown = this.#lines.filter((line) => this.#types[line.type] && line.has(this.#words)).map((line) => line.show());
    // Lines that are there stay where they are, with the focus and what is open.
    const stays = new Set(shown);
    for (const li of [...this.lines.children]) if (!stays.has(li)) li.remove();
    shown.forEach((li, i) => {
      if (this.lines.children[i] !== li) this.lines.insertBefore(li, this.lines.children[i] ?? null);
    });
    const parts = [];
    if (this.#paused) parts.push(`Paused; ${this.#held} passed since.`);
    if (this.#missed > 0) parts.push(`${this.#missed} were not shown: more passed than this page takes.`);
    if (shown.length === 0) parts.push(this.#lines.length > 0 ? 'Nothing of what passed fits the filter.' : 'Nothing has passed since this page was opened.');
    this.note.textContent = parts.join(' ');
    this.lines.hidden = shown.length === 0;
  }
}

const searched = ['server', 'member', 'own', 'method', 'name', 'client', 'principal', 'session', 'outcome', 'step', 'era', 'server_era', 'error'];

// A Line is that of a call, with its events, or of a change.
class Line {
  #events;
  #left = 0; // events that are not kept
  #node = el('li');
  #steps = el('ol', {class: 'inside'});
  #summary = el('summary');
  #inside = el('details', {}, this.#summary, this.#steps);
  #drawn = 0; // events

  constructor(e, key) {
    this.key = key;
    this.type = e.type === 'change' ? 'change' : 'call';
    this.#events = [e];
  }

  add(e) {
    if (this.#events.length >= mostSteps) {
      this.#events.splice(1, 1);
      this.#left++;
    }
    this.#events.push(e);
  }

  has(words) {
    return words === '' || this.#events.some((e) => searched.some((name) => e[name]?.toLowerCase().includes(words)));
  }

  // show returns the element of the line, as it is now.
  show() {
    const all = this.#events.length + this.#left;
    if (this.#drawn === all) return this.#node;
    this.#drawn = all;
    const focused = this.#node.contains(document.activeElement) && document.activeElement.tagName === 'A';
    this.#node.dataset.type = this.type;
    this.#node.replaceChildren(...this.#cells());
    if (focused) this.#node.querySelector('a')?.focus({preventScroll: true});
    const steps = this.#inner();
    if (steps.length > 0) {
      this.#summary.textContent = `${count(steps.length + this.#left, 'step')}: ${steps.at(-1).title}`;
      this.#steps.replaceChildren(...steps.map((s) => el('li', {}, el('time', {dateTime: s.time}, clock(s.time)), el('span', {}, s.title), el('span', {class: 'quiet'}, s.detail))));
      this.#node.append(this.#inside);
    }
    return this.#node;
  }

  #cells() {
    const e = this.#events.at(-1);
    const what = e.type === 'change' ? topic(e.method, e.name) : `${e.method} ${e.name ?? ''}`;
    const error = this.#events.findLast((one) => one.error)?.error;
    return [
      el('time', {dateTime: this.#events[0].time}, clock(this.#events[0].time)),
      el('span', {}, el('span', {class: 'quiet small'}, this.type), ' ', e.era && era(e.era), e.era && el('span', {class: 'quiet', title: 'from the client to the server'}, ' → '),
        known.has(e.server_era) ? era(e.server_era) : el('span', {class: 'quiet small'}, 'not asked')),
      el('span', {}, e.server, e.member && el('span', {class: 'quiet small'}, ` at ${e.member}`)),
      el('span', {}, this.key ? el('a', {href: `#call/${this.key}`}, what) : what,
        e.own && e.own !== e.name && el('span', {class: 'quiet small'}, ` there ${e.own}`),
        error && el('span', {class: 'bad-text small'}, ` ${error}`)),
      el('span', {}, e.client ?? '', e.principal && e.principal !== 'anonymous' && el('span', {class: 'quiet small'}, ` ${e.principal}`)),
      el('span', {class: 'end'}, this.#ending(e))];
  }

  #ending(e) {
    if (e.type === 'change') return el('span', {class: 'quiet'}, count(e.followers ?? 0, 'follower'));
    if (e.type === 'step') return el('span', {class: 'badge'}, e.step.replaceAll('_', ' '));
    return [outcome(e.outcome), el('span', {class: 'quiet small'}, ` ${millis(this.#took())}`)];
  }

  // took returns how long the call took: a client of 2026-07-28 that is asked sends it again.
  #took() {
    const ends = this.#events.filter((e) => e.type === 'call');
    const [first, last] = [ends[0], ends.at(-1)];
    return ends.length === 1 ? last.ms ?? 0 : Date.parse(last.time) - Date.parse(first.time) + (first.ms ?? 0);
  }

  // inner returns what happened within the call.
  #inner() {
    return this.#events.slice(0, -1).concat(this.#events.at(-1).type === 'step' ? [this.#events.at(-1)] : [])
      .filter((e) => e.type !== 'change').map((e) => (e.type === 'step' ?
        {time: e.time, title: e.step.replaceAll('_', ' '), detail: e.detail ?? ''} :
        {time: e.time, title: 'the client has the question', detail: 'and sends the call again with the answer'}));
  }
}

const known = new Set(['legacy', 'modern']);
