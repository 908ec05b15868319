// A form to try a tool. The call is one of the principal admin: policies and the audit log
// have it.
import {ask} from './api.js';
import {Inputs, fieldsOf} from './arguments.js';
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
  #turn = 0; // counts loads
  #wantsRaw = false;

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
    this.inputs = new Inputs();
    this.args = el('textarea', {id: 'try-arguments', spellcheck: false, 'aria-describedby': 'try-about try-problem'});
    this.json = el('div', {class: 'fields'}, el('label', {for: 'try-arguments'}, 'Arguments, a JSON object'), this.args);
    this.raw = el('input', {type: 'checkbox', id: 'try-raw', onchange: () => this.#switch()});
    this.why = el('span', {class: 'quiet small'});
    this.problem = el('p', {class: 'problem', id: 'try-problem', role: 'alert'});
    this.send = el('button', {type: 'submit', class: 'main'}, 'Call');
    this.result = el('pre', {tabIndex: 0, role: 'region', id: 'try-result', 'aria-label': 'Result'});
    this.took = el('p', {class: 'quiet', role: 'status'});
    const form = el('form', {class: 'panel pad', onsubmit: (e) => {
      e.preventDefault();
      this.#call();
    }}, el('label', {for: 'try-server'}, 'Server'), this.server, el('label', {for: 'try-tool'}, 'Tool'), this.tool, this.about,
    this.inputs.node, this.json, el('div', {}, el('label', {class: 'check'}, this.raw, 'Write the arguments as JSON'), ' ', this.why), this.problem, el('div', {}, this.send));
    this.#body = el('div', {}, el('div', {class: 'head'}, el('h2', {}, 'Try a tool'), el('p', {class: 'quiet'}, 'As the principal admin: policies, rates and the audit log apply.')),
      el('div', {class: 'try'}, form, el('section', {class: 'panel pad stack', 'aria-label': 'Result'}, el('h3', {}, 'Result'), this.took, this.result)));
  }

  // load asks the server for its tools. What a former server answers late is of no use.
  async #load() {
    const server = this.server.value;
    const turn = ++this.#turn;
    this.#offer([]); // those of another server are none of this one's
    const tools = [];
    let problem = '';
    try {
      let cursor = '';
      for (let page = 0; page < mostPages; page++) {
        const got = await ask(`/api/tools?${new URLSearchParams({server, cursor})}`);
        if (got.error) throw new Error(got.error);
        tools.push(...(got.result.tools ?? []));
        cursor = got.result.nextCursor;
        if (!cursor) break;
      }
    } catch (err) {
      problem = err.message;
    }
    if (turn !== this.#turn) return;
    this.problem.textContent = problem;
    this.#offer(tools);
  }

  #offer(tools) {
    this.#tools = tools;
    this.tool.replaceChildren(...tools.map((t) => el('option', {value: t.name}, t.name)));
    this.send.disabled = tools.length === 0;
    this.#choose();
  }

  #choose() {
    const t = this.#tools.find((one) => one.name === this.tool.value);
    this.about.textContent = t?.description ?? '';
    this.args.value = JSON.stringify(example(t?.inputSchema), null, 2);
    this.fields = t ? fieldsOf(t.inputSchema) : [];
    this.why.textContent = this.fields ? '' : 'This tool has arguments for which there are no inputs.';
    this.raw.disabled = !this.fields;
    this.raw.checked = this.#wantsRaw || !this.fields;
    this.inputs.show(this.fields ?? []);
    this.#arrange();
  }

  // arrange shows the inputs, or the arguments as JSON. Inputs that are not shown are not
  // checked either.
  #arrange() {
    this.inputs.node.hidden = this.inputs.node.disabled = this.raw.checked || this.#tools.length === 0;
    this.json.hidden = !this.raw.checked;
  }

  // switch shows the arguments in the other way.
  #switch() {
    this.problem.textContent = '';
    if (this.raw.checked) {
      this.args.value = JSON.stringify(this.inputs.value(), null, 2);
    } else {
      const args = this.#parsed();
      const why = args === undefined ? 'they are not JSON' : this.inputs.set(args);
      if (why) {
        this.raw.checked = true;
        this.problem.textContent = `The inputs can't show these arguments: ${why}.`;
      }
    }
    this.#wantsRaw = this.raw.checked;
    this.#arrange();
  }

  // parsed returns the arguments that are written as JSON; undefined if they are not.
  #parsed() {
    try {
      return JSON.parse(this.args.value || '{}');
    } catch {
      return undefined;
    }
  }

  async #call() {
    const args = this.raw.checked ? this.#parsed() : this.inputs.value();
    if (args === undefined) {
      this.problem.textContent = 'The arguments are not JSON.';
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
