// Package expiry answers one question: until when may a stream, or a connection, go on that
// was opened with a credential?
//
// A request is checked once, and is over soon. What stays open is ended when its credential
// expires, and when a later check refuses the credential: its token was revoked, or the key
// that signed it. There is one timer for all, and no goroutine waits.
//
// The package refuses to know what a credential is, and how a stream ends.
package expiry
