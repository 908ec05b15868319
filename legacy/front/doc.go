// Package front answers "what does a client that insists on a session see of a server
// that may have none?". A [Front] holds the session (downstream), serves its requests
// (incoming) from any mcp.Handler, puts questions to it on the stream of their
// call, and tells it of changes.
//
//	Front ── roll ── downstream ─┬─ incoming ── post ── eventStream ── writer (HTTP)
//	     └── Pipe ───────┘       │          └── pipeOutlet (a connection of messages)
//	                             └─ subscriptions ── mailbox ── GET stream, or the pipe
//
// A client on HTTP+SSE (EventSession) is a Pipe, too.
//
// Over HTTP a call outlives its connection: what is sent on a stream is kept for a
// client that comes back, within bounds. What of a modern server a client of an
// older revision does not take, package projection turns into what it takes.
package front
