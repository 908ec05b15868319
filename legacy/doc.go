// Package legacy holds no code: it is the map of the packages that speak the revisions
// with sessions, 2024-11-05 to 2025-11-25.
//
//   - front serves legacy clients of one server: their sessions, requests and streams. A
//     session is bridged, each of its requests served by whatever server there is, or
//     relayed to one session of a legacy server.
//   - back serves requests that stand alone by a legacy server: it attributes what the
//     server asks during a call, and answers for roots and the log level.
//   - pool decides which session serves a request, link carries the messages of one
//     session, and relay passes a client's session on over one.
//   - watch keeps what is subscribed to at a server, and tasks the calls that run as tasks.
//   - poll finds out what a server does not announce.
//   - projection turns what a modern server says into what a client of an older revision
//     takes.
//   - eventstream has what a session's client has not read yet, and writes it.
//
// front and back don't import each other. Both speak package mcp: requests and results name
// the era that they come from.
package legacy
