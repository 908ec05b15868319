// Package back answers "how does a request that stands alone get served by a server
// that insists on a session?". A [Back] is an [mcp.Upstream]: it opens
// sessions with one server by itself, keeps them in a pool, one profile per
// session, and gives every request the parts a legacy server expects: the
// session, ids and progress tokens unique on the connection, the log level in
// force. What the server sends meanwhile goes to the request it belongs to, or,
// if it tells of a change, to the watch of the profile.
//
//	Back ── pool ─┬─ session ──────────┬─ link.Link
//	     └─ watch └─ relay.Session ────┘
//
// A session serves requests that stand alone. A relay.Session is the own session of one
// legacy client, whose messages pass as they are. Both send over a link.Link, which knows
// the transports.
//
// What the server asks is put to the client whose call it asks for. Where nothing
// on the wire tells which call that is, few calls run at a time (lanes), and a
// request that may belong to several waits or is refused: it never reaches the
// wrong client. While a client is asked its call is parked: a goroutine waits in
// [mcp.Caller]'s RequestInput, the call's time stands still, its lane is free.
//
// A session is one handshake: it is never revived. When the server has lost it,
// the pool opens another, and the Back repeats the request if that is safe.
package back
