// Package front answers one question: what does a client that needs a session get from a
// server that may have none? A [Front] holds the session, serves its requests from any
// mcp.Handler, asks its client for input on the stream of the request that needs it,
// and tells it of changes.
//
//	Front ── sessions ── session ─┬─ request ── httpReply ── eventStream ── streamWriter (HTTP)
//	     └── Conn ───────┘        │         └── connReply (a connection of messages)
//	                              └─ subscriptions ── mailbox ── GET stream, or the Conn
//
// A client on HTTP+SSE (EventSession) has a Conn, too.
//
// A session is bridged or relayed. A bridged one makes requests that stand alone. Where the
// server is of the same era a session is relayed: its messages pass as they are, to a
// session upstream that is the client's own.
//
// Over HTTP a call outlives its connection: what is sent on a stream is kept for a
// client that comes back, within bounds. What of a modern server a client of an
// older revision does not take, package projection turns into what it takes.
package front
