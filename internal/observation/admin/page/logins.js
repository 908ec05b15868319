// The logins that users have made at servers, and their end.
import {ask} from './api.js';
import {el, replace, sub, table} from './dom.js';
import {when} from './format.js';

export class Logins {
  id = 'logins';
  title = 'Logins';
  keeps = true;
  #list = [];
  #unread = 0;
  #at;

  count() {
    return this.#list.length;
  }

  show() {
    this.#at = el('div', {});
    this.#read();
    return [el('div', {class: 'head'}, el('h2', {}, 'Logins of users at servers'), el('button', {type: 'button', onclick: () => this.#read()}, 'Read them again')), el('div', {class: 'panel'}, this.#at)];
  }

  update() {} // who looks reads them again

  async #read(said) {
    try {
      const {logins, unread} = await ask('/api/logins');
      this.#list = logins;
      this.#unread = unread ?? 0;
      this.#draw(said);
    } catch (err) {
      replace(this.#at, el('p', {class: 'note bad-text'}, err.message));
    }
  }

  #draw(said) {
    const columns = [
      {title: 'Server', class: 'name', show: (l) => l.server},
      {title: 'Principal', show: (l) => el('span', {class: 'mono'}, l.principal)},
      {title: 'Issuer', show: (l) => l.issuer},
      {title: 'Since', show: (l) => when(l.since, '', ' ago')},
      {title: 'The token', show: (l) => [l.expires ? `until ${new Date(l.expires).toLocaleString()}` : 'has no end', l.refreshed && sub('and is refreshed then')]},
      {title: '', show: (l) => el('button', {type: 'button', 'aria-label': `End the login of ${l.principal} at ${l.server}`, onclick: () => this.#end(l)}, 'End')},
    ];
    this.#at.replaceChildren(...[
      said && el('p', {class: 'pad', role: 'status'}, said),
      this.#unread > 0 && el('p', {class: 'pad bad-text'}, `${this.#unread} more were encrypted with keys that are not configured any more.`),
      table('Logins', columns, this.#list, 'Nobody has logged in to a server.'),
    ].filter(Boolean));
  }

  async #end({server, principal}) {
    try {
      const {ended} = await ask('/api/logout', {server, principal});
      const lasting = ended.filter((e) => !e.revoked);
      await this.#read(lasting.length > 0 ? `The login was ended here; its issuer has not revoked it: ${lasting[0].why}` : 'The login was ended, and revoked.');
    } catch (err) {
      replace(this.#at, el('p', {class: 'note bad-text'}, err.message));
    }
  }
}
