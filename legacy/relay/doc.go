// Package relay answers "how does a session of a legacy client reach a legacy server
// unchanged?". A [Session] is the upstream session of one client: what the client and the
// server send passes as it was written, but for the ids of requests, which both sides
// choose by themselves.
//
// A Session is a [link.Sink]. It knows which call a message of the server belongs to, as
// far as the transport tells, and keeps the order of messages. It translates nothing, and
// knows nothing of other sessions.
package relay
