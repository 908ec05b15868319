// Package pool answers "which open session serves a request?". A [Pool] keeps the sessions
// of one server, one for each scope that has asked: it opens one where there is none, shares
// it among all who ask, ends those that nobody uses, and pauses between attempts to reach a
// server that keeps failing. [Lanes] say which of a scope's sessions a call has for
// itself.
//
// It knows of a session only whether it has ended and how to end it.
package pool
