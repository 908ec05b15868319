// Reads JSON without changing it, and tells two texts of it apart.

// parse returns the value of a JSON text as nodes, whose strings and numbers are as they were
// written; null if it is none.
export function parse(text) {
  try {
    JSON.parse(text);
    return new Reader(text).value();
  } catch {
    return null;
  }
}

// A Reader reads a text that is JSON.
class Reader {
  #text;
  #at = 0;

  constructor(text) {
    this.#text = text;
  }

  value() {
    this.#space();
    switch (this.#text[this.#at]) {
      case '{':
        return {kind: 'object', parts: this.#parts('}', () => {
          const name = this.#string();
          this.#space();
          this.#at++; // the colon
          return {name, value: this.value()};
        })};
      case '[':
        return {kind: 'array', parts: this.#parts(']', () => ({value: this.value()}))};
      case '"':
        return {kind: 'scalar', text: this.#string()};
    }
    return {kind: 'scalar', text: this.#word()};
  }

  #parts(end, part) {
    const parts = [];
    this.#at++;
    for (this.#space(); this.#text[this.#at] !== end; this.#space()) {
      if (this.#text[this.#at] === ',') {
        this.#at++;
        this.#space();
      }
      parts.push(part());
    }
    this.#at++;
    return parts;
  }

  #string() {
    const from = this.#at++;
    while (this.#text[this.#at] !== '"') this.#at += this.#text[this.#at] === '\\' ? 2 : 1;
    return this.#text.slice(from, ++this.#at);
  }

  #word() {
    const from = this.#at;
    while (/[^\s,\]}]/.test(this.#text[this.#at] ?? ',')) this.#at++;
    return this.#text.slice(from, this.#at);
  }

  #space() {
    while (/\s/.test(this.#text[this.#at] ?? 'x')) this.#at++;
  }
}

// member returns the value of an object's member; undefined if there is none.
export const member = (node, name) => (node?.kind === 'object' ? node.parts.find((p) => nameOf(p) === name)?.value : undefined);
export const nameOf = (part) => JSON.parse(part.name);
export const textOf = (node) => (node?.kind === 'scalar' && node.text.startsWith('"') ? JSON.parse(node.text) : undefined);

// compare marks what two values have in common: in marks both get "same", or "changed" for what
// has another value at the same place. What is in one alone gets no mark.
export function compare(a, b, marks) {
  if (a.kind !== b.kind || (a.kind === 'scalar' && a.text !== b.text && (textOf(a) === undefined || textOf(a) !== textOf(b)))) {
    marks.set(a, 'changed').set(b, 'changed');
    return;
  }
  marks.set(a, 'same').set(b, 'same');
  if (a.kind === 'scalar') return;
  const others = new Map((b.parts).map((p, i) => [a.kind === 'object' ? nameOf(p) : i, p.value]));
  a.parts.forEach((p, i) => {
    const other = others.get(a.kind === 'object' ? nameOf(p) : i);
    if (other) compare(p.value, other, marks);
  });
}

// lines lays a value out: the lines of its text, each with the node that it is of.
export function lines(node, depth = 0, name = '', after = '') {
  const pad = '  '.repeat(depth);
  const before = pad + (name && `${name}: `);
  if (node.kind === 'scalar') return [{text: before + node.text + after, node}];
  const [open, close] = node.kind === 'object' ? '{}' : '[]';
  if (node.parts.length === 0) return [{text: before + open + close + after, node}];
  const last = node.parts.length - 1;
  return [{text: before + open, node},
    ...node.parts.flatMap((p, i) => lines(p.value, depth + 1, p.name ?? '', i < last ? ',' : '')),
    {text: pad + close + after, node}];
}
