// Questions of servers during a call of this page, which whoever uses it answers.
import {Inputs, fieldsOf} from './arguments.js';
import {el} from './dom.js';

let asked = 0; // counts questions, for the ids of their inputs

// question shows a question in a place, and returns a promise of the answer. It is rejected if
// whoever is asked refuses, or signal ends it.
export function question(method, params, place, signal) {
  const make = forms[method];
  if (!make) return Promise.reject(new Error(`this page can't answer ${method}`));
  return new Promise((resolve, reject) => {
    const done = (settle) => (value) => {
      node.remove();
      settle(value);
    };
    const node = make(params, `question-${++asked}`, done(resolve), done((why) => reject(new Error(why))));
    signal?.addEventListener('abort', () => done(reject)(signal.reason), {once: true});
    place.append(node);
    node.querySelector('input, select, textarea, button')?.focus();
  });
}

const forms = {'elicitation/create': elicitation, 'sampling/createMessage': sampling, 'roots/list': roots};

const button = (text, onclick, main) => el('button', {type: main ? 'submit' : 'button', class: main ? 'main' : undefined, onclick: main ? undefined : onclick}, text);

// form returns the form of a question: it ends with send, or with one of others.
function form(title, parts, send, others) {
  return el('form', {class: 'question panel pad', 'aria-label': title, onsubmit: (e) => {
    e.preventDefault();
    send();
  }}, el('h3', {}, title), ...parts, el('div', {class: 'buttons'}, button('Answer', undefined, true), ...others.map(([text, act]) => button(text, act))));
}

function elicitation(params, id, answer) {
  const others = [['Decline', () => answer({action: 'decline'})], ['Cancel', () => answer({action: 'cancel'})]];
  const text = el('p', {class: 'said'}, String(params.message ?? ''));
  if (params.mode === 'url') return form('The server wants you to visit a page', [text, page(params.url)], () => answer({action: 'accept'}), others);
  const fields = fieldsOf(params.requestedSchema ?? {});
  if (!fields) return written(text, id, answer, others);
  const inputs = new Inputs('Answer', id, 'It wants no more than your consent.');
  inputs.show(fields);
  return form('The server asks', [text, inputs.node], () => answer({action: 'accept', content: inputs.value()}), others);
}

// written is an elicitation whose answer is written as JSON.
function written(text, id, answer, others) {
  const area = el('textarea', {id, spellcheck: false}, '{}');
  const problem = el('p', {class: 'problem', role: 'alert'});
  return form('The server asks', [text, el('label', {for: id}, 'Answer, a JSON object'), area, problem], () => {
    try {
      answer({action: 'accept', content: JSON.parse(area.value)});
    } catch {
      problem.textContent = 'The answer is not JSON.';
    }
  }, others);
}

// page returns a link to a page that a server names: whoever is asked sees where it leads first.
function page(url) {
  let at;
  try {
    at = new URL(url);
  } catch {
    // it is shown as it is
  }
  const safe = at && ['http:', 'https:'].includes(at.protocol);
  return el('p', {}, safe ? el('a', {href: at.href, target: '_blank', rel: 'noopener noreferrer'}, at.href) : `${url} (no page of the web)`);
}

function sampling(params, id, answer, refuse) {
  const said = [['system', params.systemPrompt], ...(params.messages ?? []).map((m) => [m.role, texts(m.content)])].filter(([, text]) => text);
  const area = el('textarea', {id, required: true});
  return form('The server wants a model to write', [
    el('dl', {class: 'said'}, said.map(([role, text]) => el('div', {}, el('dt', {class: 'quiet small'}, String(role)), el('dd', {}, text)))),
    el('label', {for: id}, 'What the model says'), area],
  () => answer({role: 'assistant', content: {type: 'text', text: area.value}, model: 'a person', stopReason: 'endTurn'}), [['Refuse', () => refuse('the user refused')]]);
}

// texts returns the texts of the content of a message, and names what else there is.
function texts(content) {
  return [content].flat().map((part) => (part?.type === 'text' ? String(part.text) : `(${part?.type ?? 'nothing'})`)).join('\n');
}

function roots(params, id, answer) {
  const area = el('textarea', {id, spellcheck: false, placeholder: 'file:///home/me/project'});
  return form('The server wants to know the roots', [el('label', {for: id}, 'Roots, one file:// URI a line; none is an answer, too'), area],
    () => answer({roots: area.value.split('\n').map((line) => line.trim()).filter(Boolean).map((uri) => ({uri}))}), []);
}
