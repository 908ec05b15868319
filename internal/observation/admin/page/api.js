// Asks the admin address. The key of the session is in this origin's storage: the cookie,
// which browsers send to other ports of the host too, is of no use without it.
const stored = () => localStorage.getItem('mcpbridge-key');

export const hasKey = () => Boolean(stored());

// keyHeader returns the header with the key, if there is one.
export const keyHeader = () => (stored() ? {'Mcpbridge-Key': stored()} : {});

// login leads to the login: the session has ended.
export function login() {
  location.assign('/login');
}

export async function ask(path, body) {
  const headers = keyHeader();
  const options = {headers};
  if (body !== undefined) {
    options.method = 'POST';
    options.body = JSON.stringify(body);
    headers['Content-Type'] = 'application/json';
  }
  const res = await fetch(path, options);
  if (res.status === 401) {
    login();
    throw new Error('the session has ended');
  }
  const text = await res.text();
  if (!res.ok) throw Object.assign(new Error(text.trim() || res.statusText), {status: res.status});
  return text ? JSON.parse(text) : undefined;
}

export async function logout() {
  await ask('/logout', {});
  localStorage.removeItem('mcpbridge-key');
  location.assign('/login');
}

// follow keeps a WebSocket open, and calls told with each message, and linked with whether
// it is open.
export function follow(told, linked) {
  let pause = 500;
  const open = () => {
    const protocols = ['mcpbridge.live'];
    if (stored()) protocols.push('key.' + stored());
    const ws = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live`, protocols);
    ws.addEventListener('open', () => {
      pause = 500;
      linked(true);
    });
    ws.addEventListener('message', (m) => told(JSON.parse(m.data)));
    ws.addEventListener('close', () => {
      linked(false);
      ask('/api/clients').catch(() => {}); // leads to the login if the session has ended
      setTimeout(open, pause);
      pause = Math.min(pause * 2, 10000);
    });
  };
  open();
}
