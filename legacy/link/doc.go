// Package link answers "how do the messages of one session travel to a legacy server?".
// A [Link] carries them over one of three transports:
//
//	OverHTTP  Streamable HTTP: a POST for each message, a GET stream, DELETE
//	OverSSE   HTTP+SSE of 2024-11-05: one stream of events, POSTs
//	OverConn  a connection of messages: a child process, a WebSocket, a pipe
//
// A Link gives requests their ids, hands each response to the [Call] that waits for it,
// and everything else that the server sends to its [Sink]. It knows nothing of what
// messages mean, but for what the transports define: initialize opens a session, ping
// shows that one is alive, and notifications/cancelled tells that nobody waits any more.
//
// A session is one handshake: it is never revived. Once it is lost, [Link.Done] is closed,
// and whoever needs another session makes another Link.
package link
