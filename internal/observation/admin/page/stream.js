// What passes: calls, what happened to them, and changes.
import {el} from './dom.js';
import {clock, count, era, millis, outcome, topic} from './format.js';

const most = 300;

// Stream keeps the last events, and shows those that pass the filter.
export class Stream {
  id = 'live';
  title = 'Live';
  keeps = true;
  #events = [];
  #held = 0; // came while paused
  #missed = 0;
  #paused = false;
  #words = '';
  #types = {call: true, step: true, change: true};
  #body;

  count() {
    return '';
  }

  add(events, missed) {
    this.#missed += missed;
    if (this.#paused) {
      this.#held += events.length;
      return;
    }
    this.#events = events.slice().reverse().concat(this.#events).slice(0, most);
    if (this.#body?.isConnected) this.#list();
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
    const types = [['call', 'Calls'], ['step', 'Steps'], ['change', 'Changes']].map(([type, text]) =>
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

  #passes(e) {
    return this.#types[e.type] && (this.#words === '' || [e.server, e.member, e.own, e.method, e.name, e.client, e.principal, e.session, e.outcome, e.step, e.era]
      .some((text) => text?.toLowerCase().includes(this.#words)));
  }

  #list() {
    const shown = this.#events.filter((e) => this.#passes(e));
    // Lines never change: only those that are new are made.
    const old = new Map([...this.lines.children].map((li) => [li.dataset.seq, li]));
    this.lines.replaceChildren(...shown.map((e) => old.get(String(e.seq)) ?? line(e)));
    const parts = [];
    if (this.#paused) parts.push(`Paused; ${this.#held} passed since.`);
    if (this.#missed > 0) parts.push(`${this.#missed} were not shown: more passed than this page takes.`);
    if (shown.length === 0) parts.push(this.#events.length > 0 ? 'Nothing of what passed fits the filter.' : 'Nothing has passed since this page was opened.');
    this.note.textContent = parts.join(' ');
    this.lines.hidden = shown.length === 0;
  }
}

function line(e) {
  const what = e.type === 'change' ? topic(e.method, e.name) : `${e.method} ${e.name ?? ''}`;
  return el('li', {'data-seq': String(e.seq), 'data-type': e.type},
    el('time', {dateTime: e.time}, clock(e.time)),
    el('span', {class: 'quiet'}, e.type),
    el('span', {}, e.server, e.member && el('span', {class: 'quiet small'}, ` at ${e.member}`)),
    el('span', {}, e.call ? el('button', {type: 'button', class: 'plain', onclick: () => location.assign(`#call/${e.call}`)}, what) : what,
      e.own && e.own !== e.name && el('span', {class: 'quiet small'}, ` there ${e.own}`),
      e.error && el('span', {class: 'bad-text small'}, ` ${e.error}`)),
    el('span', {}, e.client ?? '', ' ', e.era && era(e.era), e.principal && e.principal !== 'anonymous' && el('span', {class: 'quiet small'}, ` ${e.principal}`)),
    el('span', {class: 'end'}, ending(e)));
}

function ending(e) {
  switch (e.type) {
    case 'change':
      return el('span', {class: 'quiet'}, count(e.followers ?? 0, 'follower'));
    case 'step':
      return el('span', {class: 'badge'}, e.step.replaceAll('_', ' '));
  }
  return [outcome(e.outcome), el('span', {class: 'quiet small'}, ` ${millis(e.ms ?? 0)}`)];
}
