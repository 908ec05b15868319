// Makes elements. Texts become text, never markup: names and errors come from clients and
// servers.

// el returns an element. Of props, class, data-… and aria-… and the like are attributes,
// on… are listeners, and the others are properties.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  return fill(node, props, children);
}

const svgSpace = 'http://www.w3.org/2000/svg';

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(svgSpace, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (node.namespaceURI === svgSpace || name.includes('-') || attributes.has(name)) node.setAttribute(name, value === true ? '' : value);
    else node[name] = value;
  }
  node.append(...children.flat(2).filter((c) => c !== undefined && c !== null && c !== false && c !== ''));
  return node;
}

const attributes = new Set(['class', 'role', 'for', 'href', 'id', 'scope', 'list']);

// table returns a table with a row for each item. A column has a title, what it shows of an
// item, and perhaps a class. On a phone a row is a card, whose cells have the titles.
export function table(label, columns, items, empty) {
  if (items.length === 0) return el('p', {class: 'note'}, empty);
  const head = el('tr', {role: 'row'}, columns.map((c) => el('th', {scope: 'col', role: 'columnheader', class: c.class}, c.title)));
  const rows = items.map((item) => el('tr', {role: 'row'}, columns.map((c) => {
    const shown = [c.show(item)].flat().filter((x) => x !== undefined && x !== null && x !== '');
    const inside = shown.length === 1 && typeof shown[0] !== 'object' ? shown : [el('div', {}, shown)];
    return el('td', {role: 'cell', class: [c.class, shown.length === 0 && 'none'].filter(Boolean).join(' '), 'data-label': c.title}, shown.length === 0 ? [] : inside);
  })));
  return el('table', {role: 'table', 'aria-label': label}, el('thead', {role: 'rowgroup'}, head), el('tbody', {role: 'rowgroup'}, rows));
}

// facts returns a list of names and values, without those that are empty.
export function facts(pairs) {
  return el('dl', {class: 'facts'}, pairs.filter(([, v]) => v !== undefined && v !== null && v !== '')
    .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

export function sub(...children) {
  return el('span', {class: 'sub'}, children);
}

// While something is pressed it stays, or the release would be no click: what is to be shown in its
// place is shown after it.
let pressed = null;
const waiting = new Map();
addEventListener('pointerdown', (e) => { pressed = e.target; }, true);
for (const type of ['pointerup', 'pointercancel']) addEventListener(type, () => setTimeout(release), true); // after the click
addEventListener('blur', release); // it is released where the page does not hear of it

function release() {
  pressed = null;
  const all = [...waiting];
  waiting.clear();
  for (const [node, children] of all) replace(node, ...children);
}

// replace shows children in node, unless they are shown already, so that the focus and
// what is selected stay.
export function replace(node, ...children) {
  if (pressed && node.contains(pressed)) {
    waiting.set(node, children);
    return;
  }
  waiting.delete(node);
  const fresh = document.createElement(node.tagName);
  fresh.append(...children.flat().filter(Boolean));
  if (fresh.isEqualNode(node.cloneNode(false)) || same(fresh, node)) return;
  const at = focusPath(node);
  node.replaceChildren(...fresh.childNodes);
  refocus(node, at);
}

function same(a, b) {
  if (a.childNodes.length !== b.childNodes.length) return false;
  for (let i = 0; i < a.childNodes.length; i++) if (!a.childNodes[i].isEqualNode(b.childNodes[i])) return false;
  return true;
}

// focusPath returns where in node the focus is, as the places of children.
function focusPath(node) {
  let at = document.activeElement;
  if (!at || !node.contains(at) || at === node) return null;
  const path = [];
  for (; at !== node; at = at.parentNode) path.unshift([...at.parentNode.children].indexOf(at));
  return path;
}

function refocus(node, path) {
  if (!path) return;
  for (const i of path) node = node?.children[i];
  node?.focus?.({preventScroll: true});
}
