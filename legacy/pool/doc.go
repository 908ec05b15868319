// Package pool answers "which open session serves a request?". A [Pool] has the sessions of
// one server, one for each scope: it opens a session when the first request of a scope
// needs it, shares it between all requests of the scope, ends unused sessions, and pauses
// between attempts to start a server that keeps failing. [Lanes] reserve sessions of a
// scope for single calls.
//
// All that the package knows of a session is whether it has ended, and how to end it; of a client with a
// session of its own, whether it has left that.
package pool
