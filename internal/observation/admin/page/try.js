// Tries what a server has: its tools, prompts and resources, as a client of either era. The calls
// are those of the principal admin: policies and the audit log have them.
import {Inputs, fieldsOf} from './arguments.js';
import {Client, info, mirrors, revisions} from './client.js';
import {media, written} from './content.js';
import {el} from './dom.js';
import {clock} from './format.js';
import {question} from './question.js';

const mostNotes = 50;
const settle = 300; // ms after the last letter until a completion is asked for

// kinds are what servers have: how it is listed and asked for.
const kinds = {
  tools: {title: 'Tools', lists: [['tools/list', 'tools']], one: 'Tool', method: 'tools/call', act: 'Call'},
  prompts: {title: 'Prompts', lists: [['prompts/list', 'prompts']], one: 'Prompt', method: 'prompts/get', act: 'Get'},
  resources: {title: 'Resources', lists: [['resources/list', 'resources'], ['resources/templates/list', 'resourceTemplates']], one: 'Resource', method: 'resources/read', act: 'Read'},
};

export class TryForm {
  id = 'try';
  title = 'Try it';
  keeps = true;
  #body;
  #items = [];
  #names = '';
  #turn = 0; // counts loads
  #wantsRaw = false;
  #client;
  #running; // an AbortController; undefined while nothing runs
  #linked = new Set(); // ids of calls that were linked before
  #wants; // the call in Live that is looked for

  count() {
    return '';
  }

  show({state: s}, _actions, rest) {
    if (!this.#body) this.#build();
    const wanted = (rest ?? '').split('/').map(decode);
    this.#serve(s.servers.filter((one) => one.state !== 'gone').map((one) => one.name), wanted);
    return [this.#body];
  }

  // update is told of the state while the view is shown: a result does not outlive its server.
  update({state: s}) {
    this.#serve(s.servers.filter((one) => one.state !== 'gone').map((one) => one.name), []);
  }

  // passed is told of what passes: the call that was tried is linked, and lists that have changed
  // are read again.
  passed(e) {
    if (this.#wants && e.client === `${info.name}/${info.version}` && e.method === this.#wants.method && e.server === this.#wants.server) this.#link(e.first || e.call);
    if (e.type === 'change' && e.server === this.server?.value && e.method === `${this.kind.value}ListChanged`) this.#load(this.item.value);
  }

  #build() {
    this.server = el('select', {id: 'try-server', onchange: () => this.#restart()});
    this.era = el('select', {id: 'try-era', onchange: () => this.#restart()}, revisions.map((r, i) => el('option', {value: r, title: r}, ['modern', 'legacy'][i])));
    this.kind = el('select', {id: 'try-kind', onchange: () => this.#load()}, Object.entries(kinds).map(([id, k]) => el('option', {value: id}, k.title)));
    this.item = el('select', {id: 'try-tool', onchange: () => this.#choose()});
    this.itemLabel = el('label', {for: 'try-tool'}, 'Tool');
    this.about = el('p', {class: 'quiet small', id: 'try-about'});
    this.inputs = new Inputs();
    this.args = el('textarea', {id: 'try-arguments', spellcheck: false, 'aria-describedby': 'try-about try-problem'});
    this.json = el('div', {class: 'fields'}, el('label', {for: 'try-arguments'}, 'Arguments, a JSON object'), this.args);
    this.raw = el('input', {type: 'checkbox', id: 'try-raw', onchange: () => this.#switch()});
    this.why = el('span', {class: 'quiet small'});
    this.rawLine = el('div', {}, el('label', {class: 'check'}, this.raw, 'Write the arguments as JSON'), ' ', this.why);
    this.problem = el('p', {class: 'problem', id: 'try-problem', role: 'alert'});
    this.send = el('button', {type: 'submit', class: 'main'}, 'Call');
    this.watch = el('button', {type: 'button', id: 'try-follow', hidden: true, onclick: () => this.#follow()}, 'Follow its changes');
    this.stop = el('button', {type: 'button', id: 'try-stop', hidden: true, onclick: () => this.#abort('stopped')}, 'Stop');
    const form = el('form', {class: 'panel pad', onsubmit: (e) => {
      e.preventDefault();
      this.#submit();
    }}, el('label', {for: 'try-server'}, 'Server'), this.server, el('div', {class: 'pair'}, el('div', {}, el('label', {for: 'try-kind'}, 'What'), this.kind), el('div', {}, el('label', {for: 'try-era'}, 'As a client'), this.era)),
    this.itemLabel, this.item, this.about, this.inputs.node, this.json, this.rawLine, this.problem, el('div', {class: 'buttons'}, this.send, this.watch, this.stop));
    this.#body = el('div', {}, el('div', {class: 'head'}, el('h2', {}, 'Try it'), el('p', {class: 'quiet'}, 'As the principal admin: policies, rates and the audit log apply.')),
      el('div', {class: 'try'}, form, this.#results()));
    window.addEventListener('pagehide', () => this.#client?.close());
  }

  // results is where the end of a call is shown. What comes by itself stands below the questions:
  // their buttons do not move from under a pointer.
  #results() {
    this.took = el('p', {class: 'quiet', role: 'status'});
    this.link = el('p', {id: 'try-link'});
    this.progress = el('progress', {'aria-label': 'Progress', hidden: true});
    this.questions = el('div', {class: 'stack', id: 'try-questions'});
    this.notes = el('ol', {class: 'notes small', 'aria-label': 'What the server said meanwhile'});
    this.media = el('div', {class: 'stack'});
    this.result = el('pre', {tabIndex: 0, role: 'region', id: 'try-result', 'aria-label': 'Result'});
    return el('section', {class: 'panel pad stack', 'aria-label': 'Result'}, el('h3', {}, 'Result'), this.took, this.questions, this.link, this.progress, this.notes, this.media, this.result);
  }

  // serve offers servers. The one that is chosen stays, with what was tried of it, unless it goes.
  #serve(names, [server, kind, item]) {
    if (server && names.includes(server)) {
      this.#offerServers(names, server);
      if (kinds[kind]) this.kind.value = kind;
      this.#restart(item);
      return;
    }
    if (names.join('\n') === this.#names) return;
    const before = this.server.value;
    this.#offerServers(names, names.includes(before) ? before : names[0]);
    if (this.server.value !== before) this.#restart();
  }

  #offerServers(names, chosen) {
    this.#names = names.join('\n');
    this.server.replaceChildren(...names.map((n) => el('option', {value: n}, n)));
    this.server.value = chosen ?? '';
  }

  // restart begins with another server, or as another client.
  #restart(item) {
    this.#client?.close();
    this.#client = this.server.value ? new Client(this.server.value, this.era.value) : undefined;
    this.#load(item);
  }

  // load asks the server for what it has. What a former one answers late is of no use. item is
  // chosen if it is there.
  async #load(item) {
    const turn = ++this.#turn;
    const kind = kinds[this.kind.value];
    const [client, stays] = [this.#client, item !== undefined && item === this.item.value];
    if (!stays) this.#offer([]); // what is of another server is none of this one's
    const items = [];
    let problem = '';
    try {
      for (const [method, member] of client ? kind.lists : []) items.push(...await client.list(method, member, {ask: () => Promise.reject(new Error('nobody is there'))}));
    } catch (err) {
      if (items.length === 0) problem = err.message;
    }
    if (turn !== this.#turn) return;
    this.problem.textContent = problem;
    if (stays && JSON.stringify(items.find((one) => idOf(one) === item)) === JSON.stringify(this.#chosen())) return; // it is the same still
    this.#offer(items, item);
  }

  #offer(items, item) {
    this.#items = items;
    this.item.replaceChildren(...items.map((one) => el('option', {value: idOf(one)}, idOf(one))));
    if (item !== undefined && items.some((one) => idOf(one) === item)) this.item.value = item;
    this.send.disabled = items.length === 0;
    this.#choose();
  }

  #chosen() {
    return this.#items.find((one) => idOf(one) === this.item.value);
  }

  // choose shows the inputs of what is chosen. What was tried before is none of its.
  #choose() {
    this.#clear();
    const [one, kind] = [this.#chosen(), kinds[this.kind.value]];
    this.itemLabel.textContent = kind.one;
    this.send.textContent = kind.act;
    this.about.textContent = one?.description ?? '';
    const schema = schemaOf(one, this.kind.value);
    this.args.value = JSON.stringify(example(schema), null, 2);
    this.fields = one ? fieldsOf(schema) : [];
    this.why.textContent = this.fields ? '' : 'This tool has arguments for which there are no inputs.';
    this.raw.disabled = !this.fields;
    this.raw.checked = this.kind.value === 'tools' && (this.#wantsRaw || !this.fields);
    this.rawLine.hidden = this.kind.value !== 'tools';
    this.watch.hidden = this.kind.value !== 'resources' || !one;
    this.inputs.none = `This ${kind.one.toLowerCase()} takes no arguments.`;
    this.inputs.show(this.fields ?? []);
    if (this.kind.value !== 'tools' && one) this.#complete(one);
    this.#arrange();
  }

  // complete has the inputs of a prompt or template offer what the server completes.
  #complete(one) {
    const ref = one.uriTemplate ? {type: 'ref/resource', uri: one.uriTemplate} : {type: 'ref/prompt', name: one.name};
    const client = this.#client;
    [...this.inputs.node.querySelectorAll('input')].forEach((input, i) => {
      const {name} = this.fields[i]; // all of them are texts
      const list = el('datalist', {id: `${input.id}-offers`});
      let timer;
      input.setAttribute('list', list.id);
      input.after(list);
      input.addEventListener('input', () => {
        clearTimeout(timer);
        timer = setTimeout(() => offerValues(client, {ref, argument: {name, value: input.value}}, list), settle);
      });
    });
  }

  // arrange shows the inputs, or the arguments as JSON. Inputs that are not shown are not
  // checked either.
  #arrange() {
    this.inputs.node.hidden = this.inputs.node.disabled = this.raw.checked || this.#items.length === 0;
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

  #submit() {
    const args = this.raw.checked ? this.#parsed() : this.inputs.value();
    if (args === undefined) {
      this.problem.textContent = 'The arguments are not JSON.';
      this.args.focus();
      return;
    }
    const one = this.#chosen();
    const {method} = kinds[this.kind.value];
    const params = method === 'resources/read' ? {uri: uriOf(one, args)} : {name: one.name, arguments: args};
    const headers = method === 'tools/call' ? mirrors(one.inputSchema, args) : {};
    this.#run(method, async (told) => {
      const got = await this.#client.request(method, {...params, _meta: {progressToken: `try-${this.#turn}`}}, told, headers);
      told.signal.throwIfAborted();
      this.result.textContent = written(got);
      this.media.replaceChildren(...media(got));
      return got.isError ? 'The tool reported an error' : 'Done';
    });
  }

  #follow() {
    const uri = uriOf(this.#chosen(), this.inputs.value());
    this.#run(this.era.value === revisions[0] ? 'subscriptions/listen' : 'resources/subscribe', async (told) => {
      this.took.textContent = `Changes of ${uri} are shown until you stop.`;
      await this.#client.follow(uri, told);
      return 'Ended';
    });
  }

  // run does something that may take long, and shows how it went, unless something else is
  // tried meanwhile.
  async #run(method, does) {
    this.#clear();
    const mine = this.#running = new AbortController();
    const {signal} = mine;
    this.problem.textContent = '';
    this.send.disabled = this.watch.disabled = true;
    this.stop.hidden = false;
    this.took.textContent = 'It is running.';
    this.#wants = {method, server: this.server.value};
    const began = performance.now();
    const told = {signal, ask: (m, params) => question(m, params, this.questions, signal), note: (m, params) => !signal.aborted && this.#note(m, params)};
    let end;
    try {
      end = await does(told);
    } catch (err) {
      if (!signal.aborted) this.result.textContent = err.message;
      end = signal.aborted ? 'Stopped' : 'Refused, or failed';
    }
    if (this.#running !== mine) return; // it was cleared
    this.#running = undefined;
    this.took.textContent = `${end} after ${Math.round(performance.now() - began)} ms.`;
    this.send.disabled = this.watch.disabled = false;
    this.stop.hidden = this.progress.hidden = true;
    this.questions.replaceChildren();
  }

  #abort(why) {
    this.#running?.abort(new Error(why));
  }

  // clear ends what runs, and forgets what was tried.
  #clear() {
    const running = this.#running;
    this.#running = this.#wants = undefined;
    running?.abort(new Error('something else is tried'));
    this.took.textContent = this.result.textContent = '';
    for (const place of [this.link, this.questions, this.notes, this.media]) place.replaceChildren();
    this.progress.hidden = this.stop.hidden = true;
    this.watch.disabled = false;
    this.send.disabled = this.#items.length === 0;
  }

  // link links both sides of the call in Live.
  #link(call) {
    if (!call || this.#linked.has(call)) return;
    this.#linked.add(call);
    this.#wants = undefined;
    this.link.replaceChildren(el('a', {href: `#call/${encodeURIComponent(call)}`}, 'Both sides of this call'));
  }

  #note(method, params) {
    if (method === 'notifications/progress') {
      this.progress.hidden = false;
      if (params.total > 0) Object.assign(this.progress, {max: params.total, value: params.progress});
      else this.progress.removeAttribute('value');
      if (!params.message) return;
    }
    if (method === 'notifications/subscriptions/acknowledged') return;
    const texts = {'notifications/progress': params.message, 'notifications/message': `${params.level}: ${typeof params.data === 'string' ? params.data : JSON.stringify(params.data)}`, 'notifications/resources/updated': `changed: ${params.uri}`};
    this.notes.prepend(el('li', {}, el('time', {class: 'quiet'}, clock(Date.now())), ' ', String(texts[method] ?? method).slice(0, 2000)));
    while (this.notes.children.length > mostNotes) this.notes.lastChild.remove();
  }
}

// offerValues has a list offer what a server completes. Many complete nothing.
async function offerValues(client, params, list) {
  const got = await client.request('completion/complete', params).catch(() => ({}));
  list.replaceChildren(...(got.completion?.values ?? []).map((value) => el('option', {value})));
}

const decode = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const idOf = (one) => one.uri ?? one.uriTemplate ?? one.name;

// variables are those of a template of URIs.
const variables = (template) => [...template.matchAll(/\{[+#./;?&]?([^}]+)\}/g)].flatMap((m) => m[1].split(',').map((v) => v.replace(/[*:].*$/, '')));

// schemaOf returns the schema of the arguments of a tool, prompt or template.
function schemaOf(one, kind) {
  if (kind === 'tools') return one?.inputSchema;
  const args = kind === 'prompts' ? (one?.arguments ?? []) : variables(one?.uriTemplate ?? '').map((name) => ({name, required: true}));
  return {
    type: 'object', required: args.filter((a) => a.required).map((a) => a.name),
    properties: Object.fromEntries(args.map((a) => [a.name, {type: 'string', title: a.title, description: a.description}])),
  };
}

// uriOf returns the URI of a resource, or of a template with the values of its variables.
//
// Spec: RFC 6570, 3.2.2 and 3.2.3: the simple expansions, as servers use them.
function uriOf(one, values) {
  if (one.uri) return one.uri;
  return one.uriTemplate.replace(/\{([+#./;?&]?)([^}]+)\}/g, (_, op, names) => names.split(',').map((name) => {
    const value = values[name.replace(/[*:].*$/, '')] ?? '';
    return op === '+' || op === '#' ? encodeURI(value) : encodeURIComponent(value);
  }).join(','));
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
