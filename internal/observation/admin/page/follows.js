// Who follows what: the gateway's index, drawn.
import {el, svg, table} from './dom.js';
import {era, short, topic} from './format.js';

const row = 30;
const box = 22;

export const follows = {
  id: 'follows',
  title: 'Follows',
  count: (s) => s.counts.topics,
  show: ({state: s, changed}) => {
    const f = s.follows;
    return [
      el('div', {class: 'head'}, el('h2', {}, 'Who follows what'), el('p', {class: 'quiet'}, summary(s))),
      el('div', {class: 'panel'}, f.topics.length === 0 ? el('p', {class: 'note'}, 'Nobody follows anything.') : el('div', {class: 'follows'}, draw(f, s.counts, changed))),
      f.topics.length > 0 && el('details', {class: 'panel pad'}, el('summary', {}, 'The same as a table'), table('Who follows what', columns(f), f.edges, '')),
    ];
  },
};

function summary(s) {
  const f = s.follows;
  const parts = [`${s.counts.pairs} subscriptions to ${s.counts.topics} topics.`];
  if (f.topics_left > 0) parts.push(`The ${f.topics.length} topics with the most followers are shown, ${f.topics_left} are not.`);
  if (f.followers_left > 0) parts.push(`${f.followers_left} groups of followers are not shown.`);
  if (f.sampled) parts.push('Numbers of followers by client are estimates from a sample.');
  return parts.join(' ');
}

function columns(f) {
  return [
    {title: 'Client', show: (e) => named(f.followers[e.follower])},
    {title: 'Era', show: (e) => era(f.followers[e.follower].era)},
    {title: 'Topic', show: (e) => topic(f.topics[e.topic].kind, f.topics[e.topic].uri)},
    {title: 'Server', show: (e) => f.topics[e.topic].server},
    {title: 'Subscribers', class: 'num', show: (e) => e.count},
  ];
}

const named = (c) => (c.name || 'unnamed') + (c.session ? ` ${c.session}` : '') + (c.principal && c.principal !== 'anonymous' ? ` (${c.principal})` : '');

// draw places clients, topics and servers in three columns, and a line for each pair.
function draw(f, counts, changed) {
  const wide = Math.max(320, Math.min(1440, document.getElementById('main').clientWidth - 26));
  const gap = Math.max(14, wide * 0.07);
  const width = (wide - 2 * gap) / 3;
  const servers = [...new Set(f.topics.map((t) => t.server))];
  const rows = Math.max(f.followers.length, f.topics.length, servers.length);
  const high = rows * row + 30;
  const place = (n, i) => 28 + (rows / n) * row * (i + 0.5) - box / 2;
  const x = [0, width + gap, 2 * (width + gap)];
  const letters = Math.floor(width / 7.2);
  const at = {
    client: (i) => place(f.followers.length, i), topic: (i) => place(f.topics.length, i), server: (i) => place(servers.length, i),
  };
  const line = (x1, y1, x2, y2, n, ids) => svg('path', {
    d: `M${x1} ${y1 + box / 2}C${x1 + gap / 2} ${y1 + box / 2} ${x2 - gap / 2} ${y2 + box / 2} ${x2} ${y2 + box / 2}`,
    'stroke-width': 1 + Math.min(7, Math.log2(Math.max(1, n))), 'data-ids': ids,
  });
  const node = (col, y, id, label, n, title, extra) => svg('g', {class: `node ${extra}`, 'data-id': id, transform: `translate(${x[col]} ${y})`},
    svg('title', {}, title), svg('rect', {width, height: box, rx: 5}),
    svg('text', {x: 8, y: 15}, short(label, n === '' ? letters - 2 : letters - 3 - n.length)),
    n !== '' && svg('text', {x: width - 8, y: 15, 'text-anchor': 'end', class: 'many'}, n));
  const drawing = svg('svg', {viewBox: `0 0 ${wide} ${high}`, height: high, role: 'img', 'aria-label': `${f.followers.length} clients or groups of clients follow ${f.topics.length} topics of ${servers.length} servers; the table below has the same`},
    ['Clients', 'Topics', 'Servers'].map((t, i) => svg('text', {x: x[i], y: 14, class: 'title'}, t)),
    f.edges.map((e) => line(x[0] + width, at.client(e.follower), x[1], at.topic(e.topic), e.count, `c${e.follower} t${e.topic}`)),
    f.topics.map((t, i) => line(x[1] + width, at.topic(i), x[2], at.server(servers.indexOf(t.server)), t.followers, `t${i} s${servers.indexOf(t.server)}`)),
    f.followers.map((c, i) => node(0, at.client(i), `c${i}`, named(c), c.count > 1 ? String(c.count) : '', `${named(c)}, ${c.era}: ${c.count} subscriptions`, c.era)),
    f.topics.map((t, i) => node(1, at.topic(i), `t${i}`, topic(t.kind, t.uri), t.followers > 1 ? String(t.followers) : '', `${topic(t.kind, t.uri)} of ${t.server}: ${t.followers} followers`,
      changed.has(`${t.server}\n${t.kind}\n${t.uri ?? ''}`) ? 'changed' : '')),
    servers.map((s, i) => node(2, at.server(i), `s${i}`, s, '', s, '')));
  drawing.addEventListener('pointerover', (e) => light(drawing, e.target.closest('.node')?.dataset.id));
  drawing.addEventListener('pointerleave', () => light(drawing, undefined));
  return drawing;
}

// light shows what a node is joined to.
function light(drawing, id) {
  const joined = new Set(id ? [id] : []);
  for (const path of drawing.querySelectorAll('path')) {
    const ids = path.dataset.ids.split(' ');
    const lit = id && ids.includes(id);
    path.classList.toggle('lit', Boolean(lit));
    path.classList.toggle('faint', Boolean(id) && !lit);
    if (lit) ids.forEach((i) => joined.add(i));
  }
  for (const node of drawing.querySelectorAll('.node')) node.classList.toggle('lit', joined.has(node.dataset.id));
}
