// The tools of a server that differ from what was accepted, with what is different, to accept.
import {ask} from './api.js';
import {el} from './dom.js';
import {count} from './format.js';

// What becomes of tools that differ from what was accepted, by the server's pin.
const modes = {
  refuse: 'Tools that differ from what was accepted are hidden and refused.',
  warn: 'Tools that differ from what was accepted are logged.',
  off: 'Tools are not compared with what was accepted before.',
};
const mostLines = 400; // of a member that is compared line by line

export class ToolChanges {
  #server;
  #list = el('div', {});
  #said = el('p', {class: 'quiet', role: 'status'});

  constructor(server, pin) {
    this.#server = server;
    this.#said.textContent = modes[pin];
    const others = Object.keys(modes).filter((mode) => mode !== pin);
    this.node = el('section', {'aria-label': 'Changed tools'},
      el('div', {class: 'head'}, el('h3', {}, 'Changed tools'), el('span', {class: 'badge', id: 'pin'}, `pin: ${pin}`), this.#said,
        pin !== 'off' && el('button', {type: 'button', id: 'compare', onclick: () => this.#compare()}, 'Compare with what was accepted')),
      el('p', {class: 'quiet small'}, 'For another mode, write ', el('code', {}, `pin: ${others[0]}`), ' or ', el('code', {}, `pin: ${others[1]}`), ` below ${server} in the configuration; it is in use when that is read again.`),
      this.#list);
  }

  async #compare(before = '') {
    this.#said.textContent = 'The server is asked for its tools.';
    try {
      const {changes} = await ask(`/api/servers/${encodeURIComponent(this.#server)}/changes`);
      this.#said.textContent = before + (changes.length === 0 ? 'Nothing differs from what was accepted.' : `${count(changes.length, 'tool')} to look at.`);
      this.#list.replaceChildren(...changes.map((c) => this.#change(c)));
    } catch (err) {
      this.#said.textContent = err.message;
    }
  }

  #change(c) {
    const button = el('button', {type: 'button', class: 'main', 'data-tool': c.tool, onclick: () => this.#accept(c, button)}, `Accept ${c.tool}`);
    return el('article', {class: 'panel pad stack change', 'aria-label': c.tool}, el('div', {class: 'head'}, el('h4', {class: 'mono'}, c.tool), el('span', {class: 'badge warn'}, c.new ? 'new' : 'changed'), button),
      c.new || c.was ? members(c).map(([name, lines]) => el('div', {}, el('p', {class: 'quiet small'}, name), diff(name, lines))) : [el('p', {class: 'quiet'}, 'The accepted definition was too large to keep: this is the one that the server has.'), diff('definition', pretty(c.is).map((l) => ['+', l]))]);
  }

  async #accept(c, button) {
    button.disabled = true;
    try {
      await ask(`/api/servers/${encodeURIComponent(this.#server)}/accept`, {tools: [{tool: c.tool, digest: c.digest}]});
      await this.#compare(`${c.tool} is accepted. `);
    } catch (err) {
      this.#said.textContent = err.message;
      button.disabled = false;
    }
  }
}

// members returns the members of a definition that differ, and their lines.
function members(c) {
  const was = c.was ?? {};
  const names = [...new Set([...Object.keys(was), ...Object.keys(c.is)])].filter((name) => JSON.stringify(was[name]) !== JSON.stringify(c.is[name]));
  return names.map((name) => [name, compared(pretty(was[name]), pretty(c.is[name]))]);
}

function pretty(v) {
  if (v === undefined) return [];
  return (typeof v === 'string' ? v : JSON.stringify(v, null, 2)).split('\n');
}

// compared returns the lines of two texts: those of both, and those of one.
function compared(a, b) {
  if (a.length > mostLines || b.length > mostLines) return [...a.map((l) => ['-', l]), ...b.map((l) => ['+', l])];
  const common = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const out = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push([' ', a[i++]]);
      j++;
    } else if (i < a.length && (j === b.length || common[i + 1][j] >= common[i][j + 1])) out.push(['-', a[i++]]);
    else out.push(['+', b[j++]]);
  }
  return out;
}

function diff(name, lines) {
  const tags = {'-': 'del', '+': 'ins', ' ': 'span'};
  return el('pre', {class: 'diff', tabIndex: 0, role: 'region', 'aria-label': `What differs in ${name}`}, lines.map(([sign, text]) => el(tags[sign], {}, `${sign} ${text}\n`)));
}
