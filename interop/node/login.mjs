// Logs a client of a TypeScript SDK in, 1.x or 2.x, with no browser of its own: see
// Login in interop/remote.
import { randomUUID } from "node:crypto";

/** Login is what both SDKs call an OAuthClientProvider, which keeps everything in memory. */
export class Login {
  #verifier;
  #tokens;
  #client;
  #discovery;
  #state;
  #back; // what the user came back with, once

  constructor({ browser, redirect, document }) {
    this.browser = browser;
    this.redirectUrl = redirect;
    this.clientMetadataUrl = document;
  }

  get clientMetadata() {
    return {
      client_name: "interop-typescript",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
    };
  }

  state = () => (this.#state = randomUUID());
  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  discoveryState = () => this.#discovery;
  saveDiscoveryState = (found) => void (this.#discovery = found);

  invalidateCredentials(scope) {
    if (scope === "all" || scope === "tokens") this.#tokens = undefined;
    if (scope === "all" || scope === "client") this.#client = undefined;
    if (scope === "all" || scope === "discovery") this.#discovery = undefined;
  }

  async redirectToAuthorization(url) {
    const answer = await fetch(`${this.browser}?url=${encodeURIComponent(url)}`);
    const back = new URLSearchParams(await answer.json());
    if (back.get("error")) throw new Error(`the authorization server refused: ${back.get("error")}`);
    if (back.get("state") !== this.#state) throw new Error("the state that came back is another");
    this.#back = back;
  }

  /** during tries; if that took a login, it is finished, and tried again. */
  async during(finish, attempt) {
    try {
      return await attempt();
    } catch (e) {
      const back = this.#back;
      this.#back = undefined;
      if (!back) throw e;
      await finish(back);
      return await attempt();
    }
  }
}

/** loggingIn makes methods log in by login() where they must; finish ends a login of theirs. */
export const loggingIn = (methods, login, finish) =>
  Object.fromEntries(Object.entries(methods).map(([name, does]) => [name, (...args) => (login() ? login().during(finish, () => does(...args)) : does(...args))]));
