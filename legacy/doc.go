// Package legacy speaks the revisions of the Model Context Protocol that hold a
// session: 2024-11-05 to 2025-11-25.
//
// Its back answers "how does a request that stands alone get served by a server
// that insists on a session?". A [Back] is an [exchange.Upstream]: it opens
// sessions with one server by itself, keeps them in a pool, one profile per
// session, and gives every request the parts a legacy server expects: the
// session, ids and progress tokens unique on the connection, the log level in
// force. What the server sends meanwhile goes to the request it belongs to, or,
// if it tells of a change, to the watch of the profile.
//
//	Back ── pool ── session ─┬─ httpLink ── POST, GET stream, DELETE
//	     └─ watch (changes)  └─ connLink ── child process or in-memory pipe
//
// A session is one handshake: it is never revived. When the server has lost it,
// the pool opens another, and the Back repeats the request if that is safe.
//
// The package refuses to know what clients speak: results and errors leave it as
// the server wrote them, error codes aside whose meaning changed between eras.
package legacy
