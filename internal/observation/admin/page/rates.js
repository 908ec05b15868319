// Small pictures of how many calls there were, how many failed, and how long they took.
import {el, sub, svg, table} from './dom.js';
import {count, millis} from './format.js';

const wide = 120;
const high = 28;

export const perSecond = (n) => (n === 0 ? '0/s' : n < 0.1 ? '<0.1/s' : `${n < 10 ? n.toFixed(1) : Math.round(n)}/s`);

// rateOf returns the calls per second of a window, over the slots that have passed.
export const rateOf = (w) => w.calls / (w.seconds * w.slots.length);

// calls draws the calls of a window, and in each slot those that failed.
export function calls(w, label) {
  const most = Math.max(1, ...w.slots.map((s) => s[0]));
  const step = wide / w.slots.length;
  const bar = (name, n, i) => n > 0 && svg('rect', {class: name, x: i * step, y: high - Math.max(1, (n / most) * high), width: Math.max(1, step - 1), height: Math.max(1, (n / most) * high)});
  return picture(`${label}: ${count(w.calls, 'call')}, ${count(w.errors, 'error')}`, w.slots.flatMap((s, i) => [bar('calls', s[0], i), bar('errors', s[1], i)]));
}

// times draws the p50 and p99 of the slots of a window, on a scale of powers of ten.
export function times(w, label) {
  const most = Math.max(1, ...w.slots.map((s) => s[3]));
  const y = (ms) => high - 1 - (Math.log10(1 + ms) / Math.log10(1 + most)) * (high - 2);
  const step = wide / w.slots.length;
  const line = (at) => {
    const points = w.slots.map((s, i) => (s[0] > 0 ? [(i + 0.5) * step, y(s[at])] : null));
    return parts(points).map((part) => (part.length === 1
      ? svg('circle', {class: `p${at}`, cx: part[0][0], cy: part[0][1], r: 1.5})
      : svg('polyline', {class: `p${at}`, points: part.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(' ')})));
  };
  return picture(`${label}: p50 ${millis(w.p50)}, p99 ${millis(w.p99)}`, [...line(2), ...line(3)]);
}

// parts returns the runs of a list without its gaps.
function parts(points) {
  const out = [[]];
  for (const p of points) {
    if (p) out.at(-1).push(p);
    else if (out.at(-1).length > 0) out.push([]);
  }
  return out.filter((part) => part.length > 0);
}

function picture(label, children) {
  return svg('svg', {class: 'spark', viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: 'img', 'aria-label': label}, children.filter(Boolean));
}

const windows = [['minute', 'Last minute'], ['hour', 'Last hour'], ['day', 'Last day']];

// brief shows the last minute of a server in a cell.
export function brief(rate) {
  if (!rate) return [el('span', {class: 'quiet'}, 'no calls')];
  const w = rate.minute;
  return [calls(w, 'Last minute'), sub(`${perSecond(rateOf(w))}${w.calls > 0 ? `, p50 ${millis(w.p50)}` : ''}`), w.errors > 0 && sub(el('span', {class: 'bad-text'}, count(w.errors, 'error')))];
}

// all shows the windows of a server, a row each.
export function all(rate) {
  return table('Rates', [
    {title: 'Window', class: 'name', show: (r) => r.title},
    {title: 'Calls', show: (r) => [calls(r.w, r.title), sub(`${perSecond(rateOf(r.w))}, ${count(r.w.calls, 'call')}`)]},
    {title: 'Errors', class: 'num', show: (r) => (r.w.errors > 0 ? el('span', {class: 'bad-text'}, String(r.w.errors)) : '0')},
    {title: 'Times', show: (r) => [times(r.w, r.title)]},
    {title: 'p50', class: 'num', show: (r) => r.w.calls > 0 && millis(r.w.p50)},
    {title: 'p99', class: 'num', show: (r) => r.w.calls > 0 && millis(r.w.p99)},
  ], rate ? windows.map(([key, title]) => ({title, w: rate[key]})) : [], 'No call has come since the start.');
}

// clients shows the clients of a server.
export function clientRates(list) {
  const window = ([key, title]) => ({title, show: (r) => [calls(r[key], title), sub(`${count(r[key].calls, 'call')}${r[key].calls > 0 ? `, p50 ${millis(r[key].p50)}, p99 ${millis(r[key].p99)}` : ''}`),
    r[key].errors > 0 && sub(el('span', {class: 'bad-text'}, count(r[key].errors, 'error')))]});
  return table('Rates of clients', [
    {title: 'Client', class: 'name', show: (r) => (r.others ? 'all others' : r.client || 'unnamed')}, ...windows.map(window),
  ], list, 'No client has sent a request yet.');
}
