// Inputs for the arguments of a tool, by its schema: flat objects of strings, numbers,
// booleans and choices have one for each property. Everything else is written as JSON.
import {el} from './dom.js';

const mostFields = 40;
const mostChoices = 300;
const complex = ['$ref', 'anyOf', 'oneOf', 'allOf', 'not', 'if', 'patternProperties', 'dependentRequired', 'dependentSchemas'];
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);

// fieldsOf returns the fields of a schema; null if it has other than simple ones.
export function fieldsOf(schema) {
  const s = schema ?? {};
  const properties = Object.entries(isObject(s.properties) ? s.properties : {});
  const required = Array.isArray(s.required) ? s.required : [];
  if ((s.type ?? 'object') !== 'object' || complex.some((key) => key in s) || isObject(s.additionalProperties) || properties.length > mostFields) return null;
  if (required.some((name) => !properties.some(([own]) => own === name))) return null;
  const fields = properties.map(([name, p]) => fieldOf(name, p, required.includes(name)));
  return fields.every(Boolean) ? fields : null;
}

function fieldOf(name, schema, required) {
  if (!isObject(schema)) return null;
  const p = withoutNull(schema);
  const field = {name, required, title: text(p.title), about: text(p.description), preset: p.default};
  const choices = choicesOf(p);
  if (choices) return {...field, kind: 'choice', choices};
  if (p.enum !== undefined) return null;
  if (complex.some((key) => p[key] !== undefined)) return null;
  const several = p.type === 'array' && isObject(p.items) ? choicesOf(p.items) : null;
  if (several) return {...field, kind: 'choices', choices: several};
  switch (p.type) {
    case 'string':
      return {...field, kind: 'string'};
    case 'number':
    case 'integer':
      return {...field, kind: 'number', whole: p.type === 'integer', min: p.minimum, max: p.maximum};
    case 'boolean':
      return {...field, kind: 'choice', choices: [{value: false, title: 'false'}, {value: true, title: 'true'}]};
  }
  return null;
}

// withoutNull returns the schema of what may also be null, as libraries write what is
// optional, but for that.
function withoutNull(p) {
  const rest = (list) => (Array.isArray(list) ? list.filter((one) => one !== 'null' && one?.type !== 'null') : []);
  if (rest(p.type).length === 1) return {...p, type: rest(p.type)[0]};
  if (p.anyOf?.length === 2 && rest(p.anyOf).length === 1 && isObject(rest(p.anyOf)[0])) return {...p, anyOf: undefined, ...rest(p.anyOf)[0]};
  return p;
}

// choicesOf returns the values of an enum, or of constants with titles.
function choicesOf(p) {
  const plain = (v) => !isObject(v) && !Array.isArray(v);
  const oneOf = p.oneOf ?? p.anyOf; // items of several have the latter
  if ([p.enum, oneOf].some((list) => list?.length > mostChoices)) return null;
  if (Array.isArray(p.enum) && p.enum.length > 0 && p.enum.every(plain)) return p.enum.map((value, i) => ({value, title: text(p.enumNames?.[i]) || String(value)}));
  if (Array.isArray(oneOf) && oneOf.length > 0 && oneOf.every((o) => isObject(o) && 'const' in o && plain(o.const))) {
    return oneOf.map((o) => ({value: o.const, title: text(o.title) || String(o.const)}));
  }
  return null;
}

const text = (v) => (typeof v === 'string' ? v : '');

// Inputs are the inputs of fields. Their ids begin with prefix.
export class Inputs {
  #inputs = [];

  constructor(label = 'Arguments', prefix = 'try-argument', none = 'This tool takes no arguments.') {
    this.node = el('fieldset', {class: 'fields', 'aria-label': label});
    this.prefix = prefix;
    this.none = none;
  }

  // show replaces them by those of fields, with their defaults.
  show(fields) {
    this.#inputs = fields.map((f, i) => new Input(f, `${this.prefix}-${i}`));
    this.node.replaceChildren(...this.#inputs.flatMap((one) => one.nodes));
    if (fields.length === 0) this.node.append(el('p', {class: 'quiet small'}, this.none));
  }

  // value returns the arguments.
  value() {
    return Object.fromEntries(this.#inputs.map((one) => [one.field.name, one.value()]).filter(([, v]) => v !== undefined));
  }

  // set shows arguments, unless they don't fit: then it returns why.
  set(args) {
    if (!isObject(args)) return 'they are not an object';
    for (const [name, v] of Object.entries(args)) {
      const one = this.#inputs.find((input) => input.field.name === name);
      if (!one) return `there is no argument ${name}`;
      if (!one.fits(v)) return `${name} has no such value`;
    }
    for (const one of this.#inputs) one.set(Object.hasOwn(args, one.field.name) ? args[one.field.name] : undefined);
    return '';
  }
}

// An Input is the one of a field, with its label and description.
class Input {
  constructor(field, id) {
    this.field = field;
    const about = field.about && el('p', {class: 'quiet small', id: `${id}-about`}, field.about);
    const props = {id, 'aria-describedby': about ? about.id : undefined};
    this.input = this[field.kind](props);
    const label = field.title && field.title !== field.name ? `${field.title} (${field.name})` : field.name;
    this.nodes = [el('label', {for: id}, label, field.required && el('span', {class: 'quiet'}, ', required')), about, this.input].filter(Boolean);
    if (this.fits(field.preset)) this.set(field.preset);
  }

  string(props) {
    return el('input', {...props, type: 'text', autocomplete: 'off'});
  }

  number(props) {
    const f = this.field;
    const bound = (n) => (typeof n === 'number' ? n : undefined);
    return el('input', {...props, type: 'number', step: f.whole ? '1' : 'any', min: bound(f.min), max: bound(f.max), required: f.required});
  }

  // A choice that is not required has an option for none.
  choice(props) {
    const none = this.field.required ? [] : [el('option', {value: ''}, 'not set')];
    return el('select', props, none, this.field.choices.map((c, i) => el('option', {value: String(i)}, c.title)));
  }

  choices(props) {
    return el('select', {...props, multiple: true, required: this.field.required}, this.field.choices.map((c, i) => el('option', {value: String(i)}, c.title)));
  }

  // value returns the argument; undefined if it is not to be sent.
  value() {
    const {kind, required, choices} = this.field;
    const v = this.input.value;
    if (kind === 'choice') return choices[v]?.value;
    if (kind === 'choices') return this.#chosen();
    if (kind === 'number') return v === '' ? undefined : Number(v);
    return v === '' && !required ? undefined : v;
  }

  #chosen() {
    const all = [...this.input.selectedOptions].map((o) => this.field.choices[o.value].value);
    return all.length === 0 && !this.field.required ? undefined : all;
  }

  fits(v) {
    const {kind, whole, choices} = this.field;
    if (kind === 'choices') return Array.isArray(v) && v.every((one) => choices.some((c) => c.value === one));
    if (kind === 'choice') return choices.some((c) => c.value === v);
    if (kind === 'number') return typeof v === 'number' && (!whole || Number.isInteger(v));
    return typeof v === 'string' && !/[\r\n]/.test(v);
  }

  set(v) {
    const {kind, required, choices} = this.field;
    if (kind === 'choices') for (const o of this.input.options) o.selected = v?.includes(choices[o.value].value) ?? false;
    else if (kind !== 'choice') this.input.value = v === undefined ? '' : String(v);
    else this.input.value = v === undefined && !required ? '' : String(Math.max(0, choices.findIndex((c) => c.value === v)));
  }
}
