// Trades the admin token, or the code of a link, for a session: a cookie that scripts can't
// read, and a key that only this origin can.
const form = document.getElementById('login');
const field = document.getElementById('token');
const problem = document.getElementById('problem');

async function login(secret) {
  problem.textContent = '';
  try {
    const res = await fetch('/login', {
      method: 'POST',
      headers: {'Content-Type': 'application/json'},
      body: JSON.stringify(secret),
    });
    if (!res.ok) throw new Error((await res.text()).trim());
    localStorage.setItem('mcpbridge-key', (await res.json()).key);
    location.replace('/');
  } catch (err) {
    problem.textContent = err.message;
    field.select();
  }
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  login({token: field.value});
});

// follow uses the link by which the page was opened, if it has a code.
function follow() {
  const code = location.hash.slice(1);
  if (!code) return;
  history.replaceState(null, '', '/login');
  login({code});
}

window.addEventListener('hashchange', follow); // the page may be open already
follow();
