// Package link carries the messages of one session with a legacy server. A [Link] uses one
// of three transports:
//
//	OverHTTP  Streamable HTTP: a POST for each message, a GET stream, DELETE
//	OverSSE   HTTP+SSE of 2024-11-05: one event stream, POSTs
//	OverConn  a message connection: a child process, a WebSocket, a pipe
//
// A Link sets the ids of requests, passes each response to its [Call], and all other
// messages of the server to its [Sink]. It knows the meaning of messages only as far as
// the transports define it: initialize opens a session, ping checks whether it is alive,
// or has read what was sent before, and notifications/cancelled cancels a request.
//
// A Link has one handshake. If its session is lost, [Link.Done] is closed, and a new
// session needs another Link.
package link
