// Writes values for people.
import {el} from './dom.js';

const states = {
  ready: ['good', '●', 'ready'],
  starting: ['warn', '◌', 'starting'],
  idle: ['', '○', 'idle'],
  down: ['bad', '▲', 'down'],
  gone: ['', '–', 'not served'],
};

const outcomes = {
  ok: ['good', '✓', 'ok'],
  tool_error: ['warn', '!', 'tool error'],
  error: ['warn', '!', 'error'],
  refused: ['warn', '⊘', 'refused'],
  cancelled: ['', '–', 'cancelled'],
  failed: ['bad', '✕', 'failed'],
  input_required: ['', '?', 'asked'],
};

function badge([kind, sign, text]) {
  return el('span', {class: `badge ${kind}`}, el('span', {'aria-hidden': 'true'}, sign), text);
}

export const state = (name) => badge(states[name] ?? ['', '?', name]);
export const outcome = (name) => badge(outcomes[name] ?? ['', '…', name || 'running']);
export const era = (name) => el('span', {class: `badge era ${name}`}, name);

export function ago(time, now = Date.now()) {
  const s = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (!time || Number.isNaN(s)) return '';
  if (s < 60) return 'a moment';
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

// when returns how long ago a time was, with the time itself to be seen on it.
export function when(time, before = '', after = '') {
  if (!time) return '';
  return el('time', {dateTime: time, title: new Date(time).toLocaleString()}, before + ago(time) + after);
}

export function clock(time) {
  const d = new Date(time);
  return d.toLocaleTimeString('en-GB') + '.' + String(d.getMilliseconds()).padStart(3, '0');
}

export function bytes(n) {
  if (!n) return '';
  if (n < 1024) return `${n} B`;
  if (n < 1 << 20) return `${(n / 1024).toFixed(1)} KiB`;
  return `${(n / (1 << 20)).toFixed(1)} MiB`;
}

export function millis(n) {
  if (n === undefined) return '';
  if (n < 10) return `${n.toFixed(2)} ms`;
  if (n < 1000) return `${Math.round(n)} ms`;
  return `${(n / 1000).toFixed(1)} s`;
}

export const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + '…' : text);

const kinds = {toolsListChanged: 'list of tools', promptsListChanged: 'list of prompts', resourcesListChanged: 'list of resources'};
export const topic = (kind, uri) => kinds[kind] ?? uri;

// pretty lays JSON out, and leaves everything else as it is.
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export const count = (n, one) => `${n} ${one}${n === 1 ? '' : 's'}`;
