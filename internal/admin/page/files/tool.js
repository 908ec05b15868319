// A form to try a tool. The call is one of the principal admin: policies and the audit log
// have it.
import {ask} from './api.js';
import {el} from './dom.js';
import {pretty} from './format.js';

const mostPages = 20;

export class ToolForm {
  id = 'try';
  title = 'Try a tool';
  keeps = true;
  #body;
  #tools = [];
  #names = '';

  count() {
    return '';
  }

  show({state: s}) {
    if (!this.#body) this.#build();
    const names = s.servers.map((one) => one.name);
    if (names.join('\n') !== this.#names) {
      this.#names = names.join('\n');
      this.server.replaceChildren(...names.map((n) => el('option', {value: n}, n)));
      this.#load();
    }
    return [this.#body];
  }

  #build() {
    this.server = el('select', {id: 'try-server', onchange: () => this.#load()});
    this.tool = el('select', {id: 'try-tool', onchange: () => this.#choose()});
    this.about = el('p', {class: 'quiet small', id: 'try-about'});
    this.args = el('textarea', {id: 'try-arguments', spellcheck: false, 'aria-describedby': 'try-about try-problem'});
    this.problem = el('p', {class: 'problem', id: 'try-problem', role: 'alert'});
    this.send = el('button', {type: 'submit', class: 'main'}, 'Call');
    this.result = el('pre', {tabIndex: 0, role: 'region', id: 'try-result', 'aria-label': 'Result'});
    this.took = el('p', {class: 'quiet', role: 'status'});
    const form = el('form', {class: 'panel pad', onsubmit: (e) => {
      e.preventDefault();
      this.#call();
    }}, el('label', {for: 'try-server'}, 'Server'), this.server, el('label', {for: 'try-tool'}, 'Tool'), this.tool, this.about,
    el('label', {for: 'try-arguments'}, 'Arguments, a JSON object'), this.args, this.problem, el('div', {}, this.send));
    this.#body = el('div', {}, el('div', {class: 'head'}, el('h2', {}, 'Try a tool'), el('p', {class: 'quiet'}, 'As the principal admin: policies, rates and the audit log apply.')),
      el('div', {class: 'try'}, form, el('section', {class: 'panel pad stack', 'aria-label': 'Result'}, el('h3', {}, 'Result'), this.took, this.result)));
  }

  // load asks the server for its tools.
  async #load() {
    const server = this.server.value;
    this.problem.textContent = '';
    this.#tools = [];
    try {
      let cursor = '';
      for (let page = 0; page < mostPages; page++) {
        const got = await ask(`/api/tools?${new URLSearchParams({server, cursor})}`);
        if (got.error) throw new Error(got.error);
        this.#tools.push(...(got.result.tools ?? []));
        cursor = got.result.nextCursor;
        if (!cursor) break;
      }
    } catch (err) {
      this.problem.textContent = err.message;
    }
    if (server !== this.server.value) return; // another was chosen meanwhile
    this.tool.replaceChildren(...this.#tools.map((t) => el('option', {value: t.name}, t.name)));
    this.send.disabled = this.#tools.length === 0;
    this.#choose();
  }

  #choose() {
    const t = this.#tools.find((one) => one.name === this.tool.value);
    this.about.textContent = t?.description ?? '';
    this.args.value = JSON.stringify(example(t?.inputSchema), null, 2);
  }

  async #call() {
    let args;
    try {
      args = JSON.parse(this.args.value || '{}');
    } catch (err) {
      this.problem.textContent = `The arguments are not JSON: ${err.message}`;
      this.args.focus();
      return;
    }
    this.problem.textContent = '';
    this.send.disabled = true;
    this.took.textContent = 'It is running.';
    const began = performance.now();
    try {
      const got = await ask('/api/call', {server: this.server.value, tool: this.tool.value, arguments: args});
      this.result.textContent = got.error ?? pretty(JSON.stringify(got.result));
      this.took.textContent = `${got.error ? 'Refused, or failed' : got.result.isError ? 'The tool reported an error' : 'Done'} after ${Math.round(performance.now() - began)} ms.`;
    } catch (err) {
      this.problem.textContent = err.message;
      this.took.textContent = '';
    }
    this.send.disabled = false;
  }
}

// example returns arguments of a schema: the required ones, each with its default or what
// its type begins with.
function example(schema) {
  const out = {};
  for (const name of schema?.required ?? []) {
    const p = schema.properties?.[name] ?? {};
    const empty = {string: '', number: 0, integer: 0, boolean: false, array: [], object: {}}[p.type] ?? '';
    Object.defineProperty(out, name, {value: p.default ?? p.enum?.[0] ?? empty, enumerable: true});
  }
  return out;
}
