// Package peer carries HTTP requests from one replica to another.
//
// A replica that gets a request for a session, stream or call of another replica forwards it
// there, to the other's peer listener. Each forwarded request has an [Envelope]: a header that
// says which replica sends it to which, and on behalf of whom, and that is signed with a key
// of all replicas. It is accepted once.
//
// The package does not know which replica holds what.
package peer
