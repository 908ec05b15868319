// Package admission answers four questions about a request, before anything else is known of it:
// who sent it, against whose share does it count, may one more of that share be served, and is
// its server still served?
//
// [Bodies] bound what is read of it. Its credential is checked once, and the request ends soon. A
// stream or connection that stays open is ended by an [Expirer] when its credential expires, or
// when a later check refuses it: its token was revoked, or the key that signed it was withdrawn.
//
// It knows credentials as internal/trust/auth has them, addresses, numbers and ends, and neither
// HTTP endpoints nor what a request asks for: whether a client may have that is for policy to say.
package admission
