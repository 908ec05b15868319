// Package expiry ends streams and connections whose credentials have expired or are not
// accepted any more.
//
// The credential of a request is checked once, and the request ends soon. A stream or
// connection that stays open is ended when its credential expires, or when a later check
// refuses it: its token was revoked, or the key that signed it was withdrawn. One timer
// serves all, and no goroutine waits.
//
// The package does not know what a credential is, or how a stream ends.
package expiry
