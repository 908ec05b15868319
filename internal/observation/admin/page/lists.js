// What a server lists, with the schemas of its tools. It is asked when somebody wants it, as the
// principal admin.
import {ask} from './api.js';
import {el} from './dom.js';
import {count} from './format.js';

const mostPages = 20;
const kinds = [['tools', 'Tools'], ['prompts', 'Prompts'], ['resources', 'Resources'], ['templates', 'Resource templates']];
const arrays = {templates: 'resourceTemplates'};

export class Lists {
  #server;
  #at = el('div', {class: 'panel', hidden: true});
  #said = el('p', {class: 'quiet', role: 'status'}, 'The server is asked when you want one.');
  #buttons;
  #turn = 0;

  constructor(server) {
    this.#server = server;
    this.#buttons = kinds.map(([kind, title]) => el('button', {type: 'button', 'data-list': kind, 'aria-pressed': 'false', onclick: (e) => this.#show(kind, title, e.currentTarget)}, title));
    this.node = el('section', {'aria-label': 'What it lists'}, el('div', {class: 'head'}, el('h3', {}, 'What it lists'), this.#said, el('div', {class: 'choices'}, this.#buttons)), this.#at);
  }

  async #show(kind, title, button) {
    const turn = ++this.#turn;
    for (const b of this.#buttons) b.setAttribute('aria-pressed', String(b === button));
    this.#said.textContent = 'It is asked.';
    const found = [];
    let problem = '';
    let cursor = '';
    try {
      for (let page = 0; page < mostPages; page++) {
        const got = await ask(`/api/servers/${encodeURIComponent(this.#server)}/${kind}?${new URLSearchParams({cursor})}`);
        if (got.error) throw new Error(got.error);
        found.push(...(got.result[arrays[kind] ?? kind] ?? []));
        cursor = got.result.nextCursor;
        if (!cursor) break;
      }
    } catch (err) {
      problem = err.message;
    }
    if (turn !== this.#turn) return;
    this.#said.textContent = problem || `${title}: ${found.length}${cursor ? ' and more' : ''}`;
    this.#at.hidden = found.length === 0;
    this.#at.replaceChildren(...found.map((one) => item(one)));
  }
}

function item(one) {
  const schemas = [['Arguments', one.inputSchema ?? one.arguments], ['Result', one.outputSchema], ['Annotations', one.annotations]].filter(([, v]) => v !== undefined && v !== null);
  const name = one.uri ?? one.uriTemplate ?? one.name ?? '';
  return el('details', {class: 'item'}, el('summary', {}, el('span', {class: 'mono'}, String(name)), ' ', el('span', {class: 'quiet'}, brief(one, name))),
    el('div', {class: 'stack'}, one.description && el('p', {}, String(one.description)), one.mimeType && el('p', {class: 'quiet'}, String(one.mimeType)),
      schemas.map(([title, v]) => [el('h4', {}, title), el('pre', {tabIndex: 0, role: 'region', 'aria-label': `${title} of ${name}`}, JSON.stringify(v, null, 2))])));
}

// brief returns what follows the name in one line.
function brief(one, name) {
  const inputs = Object.keys(one.inputSchema?.properties ?? {}).length || (Array.isArray(one.arguments) ? one.arguments.length : 0);
  const title = one.title ?? (one.name !== name ? one.name : '');
  return [title, inputs > 0 && count(inputs, 'argument')].filter(Boolean).join(', ');
}
