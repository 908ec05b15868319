// The tasks of a server that mcpbridge holds for clients of the other era, and that are not over: whose
// they are, and what each waits for. They can be cancelled, as by their clients.
import {ask} from './api.js';
import {el, replace, sub, table} from './dom.js';
import {when} from './format.js';

export class Tasks {
  node = el('div', {hidden: true});
  #name;
  #left = el('p', {class: 'quiet'});
  #said = el('p', {class: 'notice-line', role: 'status'});
  #at = el('div', {class: 'panel'});

  constructor(name) {
    this.#name = name;
    this.node.append(el('div', {class: 'head'}, el('h3', {}, 'Live tasks'), this.#left), this.#said, this.#at);
  }

  #path(more) {
    return `/api/servers/${encodeURIComponent(this.#name)}/${more}`;
  }

  // update asks for the tasks, and shows them, if there are any.
  async update() {
    const {list, left = 0} = await ask(this.#path('tasks'));
    this.#left.textContent = left > 0 ? `${left} more are not listed.` : '';
    this.node.hidden = list.length === 0 && this.#said.textContent === '';
    replace(this.#at, table('Live tasks', this.#columns, list, 'It has no task that is not over.'));
  }

  #columns = [
    {title: 'Tool', class: 'name', show: (t) => [t.tool || 'unknown', sub(el('span', {class: 'mono'}, t.key))]},
    {title: 'Whose', show: (t) => t.principal || 'anonymous'},
    {title: 'Age', show: (t) => when(t.made)},
    {title: 'Looked at', show: (t) => (t.looked ? when(t.looked, '', ' ago') : 'never')},
    {title: 'Waits for', show: (t) => [waits(t), t.asks && sub(t.asks.join(', '))]},
    {title: 'Followed by', class: 'num', show: (t) => String(t.followers)},
    {title: 'Until', show: (t) => new Date(t.until).toLocaleTimeString('en-GB')},
    {title: '', show: (t) => el('button', {type: 'button', 'data-task': t.key, 'aria-label': `Cancel the task ${t.key} of ${t.principal || 'anonymous'}`, onclick: () => this.#cancel(t)}, 'Cancel')},
  ];

  async #cancel(t) {
    this.#said.textContent = 'It is asked for.';
    try {
      await ask(this.#path('cancel'), {task: t.key});
      this.#said.textContent = `The server was asked to cancel the task ${t.key}; the next look tells what became of it.`;
    } catch (err) {
      this.#said.textContent = err.message;
    }
    this.update().catch(() => {}); // the room says that there is no such server
  }
}

function waits(t) {
  return {working: 'the server', input_required: 'an answer of its client'}[t.status] ?? t.status;
}
