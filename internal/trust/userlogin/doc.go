// Package userlogin has logins of principals at servers: each request is sent with a login that
// its principal has made, in a browser, on pages that are served here.
//
// [Logins] keeps them, sealed, in a [Place]: a folder, or the engine of the replicas. A [Server]
// provides the credentials of the requests to one server. [Pages] are what a browser comes to: they
// find out that its user is the principal of a [Server.Link] before anything else, so that a link
// that was passed on to somebody else gets nobody's login.
//
// Nothing about a visit to the pages is kept here: it is in the link and in a cookie, both sealed,
// so that any replica serves the next step. docs/decisions/0014-logins-of-principals.md says what
// binds what.
//
// Spec: 2026-07-28, client/elicitation, URL Mode Elicitation for OAuth Flows.
package userlogin
