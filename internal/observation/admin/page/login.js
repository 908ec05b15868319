// Trades the admin token for a session: a cookie that scripts can't read, and a key that
// only this origin can.
const form = document.getElementById('login');
const field = document.getElementById('token');
const problem = document.getElementById('problem');

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  problem.textContent = '';
  try {
    const res = await fetch('/login', {
      method: 'POST',
      headers: {'Content-Type': 'application/json'},
      body: JSON.stringify({token: field.value}),
    });
    if (!res.ok) throw new Error((await res.text()).trim());
    localStorage.setItem('mcpbridge-key', (await res.json()).key);
    location.replace('/');
  } catch (err) {
    problem.textContent = err.message;
    field.select();
  }
});
