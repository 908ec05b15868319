// Package watch answers one question: how does a legacy server come to tell of the
// changes that somebody wants to hear of?
//
// For each profile there is a [Watch]: one loop that keeps what the server was asked for
// by resources/subscribe equal to what is wanted. It holds the profile's [Session] as long
// as it needs one, subscribes anew when that was lost, and tells afterwards what may have
// been missed. The server's notifications come in by [Watch.Changed]. The package knows
// nothing of links and messages.
package watch
