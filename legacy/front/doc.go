// Package front serves legacy clients of a server that may have no sessions. A [Front] keeps
// a client's session, passes its requests to an mcp.Handler, sends input requests on the
// stream of the request that needs them, and reports changes.
//
//	Front ── sessions ── session ─┬─ request ── httpReply ── eventstream.Stream (HTTP)
//	     └── Conn ───────┘        │         └── connReply (a connection of messages)
//	                              └─ subscriptions ── mailbox ── GET stream, or the Conn
//
// A client on HTTP+SSE (EventSession) also has a Conn.
//
// A session is bridged or relayed. A bridged session makes independent requests. If the
// server is also legacy, a session is relayed: its messages are forwarded unchanged to an
// upstream session of its own.
//
// Over HTTP a call outlives its connection: package eventstream stores the events of its
// stream, within bounds, for a client that reconnects. Package projection converts what a
// modern server sends to the client's revision.
package front
