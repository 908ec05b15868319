// Shows images and audio of results: without a URL, which the policy of the page allows to no
// content.
import {el} from './dom.js';
import {bytes} from './format.js';

const mostParts = 20;
const mostBytes = 8 << 20; // of one image or sound
const mostText = 256 << 10; // characters of a result that are shown
const longData = 200; // characters of data that are shown in the text of a result

// partsOf returns the contents of a result of whichever method.
function partsOf(result) {
  const messages = (result.messages ?? []).flatMap((m) => [m.content].flat());
  return [...(Array.isArray(result.content) ? result.content : []), ...messages, ...(result.contents ?? [])].filter(Boolean).slice(0, mostParts);
}

// media returns elements for the images and sounds of a result.
export function media(result) {
  return partsOf(result).map((part) => {
    const {mimeType, data} = part.type === 'resource' ? {mimeType: part.resource?.mimeType, data: part.resource?.blob} : {mimeType: part.mimeType, data: part.data ?? part.blob};
    if (typeof data !== 'string' || typeof mimeType !== 'string') return null;
    if (mimeType.startsWith('image/')) return image(mimeType, data);
    if (mimeType.startsWith('audio/')) return sound(mimeType, data);
    return null;
  }).filter(Boolean);
}

// blob returns the bytes of base64; null if they are too many, or none.
function blob(type, data) {
  if (data.length > mostBytes * 4 / 3) return null;
  try {
    return new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], {type});
  } catch {
    return null;
  }
}

function image(type, data) {
  const canvas = el('canvas', {role: 'img', 'aria-label': `An image of the result, ${type}`, width: 1, height: 1});
  const caption = el('figcaption', {class: 'quiet small'}, type);
  const figure = el('figure', {class: 'media'}, canvas, caption);
  const failed = (why) => {
    canvas.remove();
    caption.textContent = `${type}: ${why}`;
  };
  const content = blob(type, data);
  if (!content) {
    failed('it is no image, or too large to be shown');
    return figure;
  }
  createImageBitmap(content).then((bitmap) => {
    Object.assign(canvas, {width: bitmap.width, height: bitmap.height});
    canvas.getContext('2d').drawImage(bitmap, 0, 0);
    caption.textContent = `${type}, ${bitmap.width} × ${bitmap.height}, ${bytes(content.size)}`;
    bitmap.close();
  }).catch(() => failed('this browser can\'t show it'));
  return figure;
}

function sound(type, data) {
  const about = el('span', {class: 'quiet small'}, ` ${type}`);
  const content = blob(type, data);
  let playing;
  const play = el('button', {type: 'button', disabled: !content, onclick: async () => {
    if (playing) {
      playing.close();
      playing = undefined;
      play.textContent = 'Play';
      return;
    }
    try {
      const context = playing = new AudioContext();
      const buffer = await context.decodeAudioData(await content.arrayBuffer());
      const source = new AudioBufferSourceNode(context, {buffer});
      source.connect(context.destination);
      source.addEventListener('ended', () => playing === context && play.click());
      source.start();
      play.textContent = 'Stop';
      about.textContent = ` ${type}, ${buffer.duration.toFixed(1)} s`;
    } catch {
      playing = undefined;
      about.textContent = ` ${type}: this browser can't play it`;
    }
  }}, 'Play');
  return el('p', {class: 'media'}, play, about);
}

// written returns the text of a result, in which long data is cut.
export function written(result) {
  const text = JSON.stringify(result, (name, v) => (['data', 'blob'].includes(name) && typeof v === 'string' && v.length > longData ? `${v.slice(0, 40)}… (${v.length} characters)` : v), 2);
  return text.length > mostText ? `${text.slice(0, mostText)}\n… (${text.length} characters)` : text;
}
