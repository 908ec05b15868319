// Package back sends requests of all clients to one legacy server. A [Back] is an
// [mcp.Upstream]: it opens sessions with the server, keeps them in a pool, one profile per
// session, and adds what a legacy server expects: the session, ids and progress tokens that
// are unique on the connection, and the log level. It passes the server's messages to the
// request that they belong to, or changes to the watch of the profile.
//
//	Back ── pool ─┬─ session ──────────┬─ link.Link
//	     └─ watch └─ relay.Session ────┘
//
// A session serves independent requests. A relay.Session is the upstream session of one
// legacy client, whose messages are forwarded unchanged. Both use a link.Link, which hides
// the differences of the transports.
//
// The Back passes an input request of the server to the client whose call it belongs to. If
// nothing tells which call that is, few calls run at the same time (lanes), and an input
// request that may belong to several calls waits or is refused: it never reaches the wrong
// client. While a client handles an input request, its call is parked: a goroutine waits in
// RequestInput of [mcp.Caller], the call's clock stops, and its lane is free.
//
// A session is never reopened after its end. If the server has lost it, the pool opens
// another one, and the Back repeats the request if that is safe.
package back
