// Package wire reads and writes JSON-RPC 2.0 envelopes without retyping what
// they carry.
//
// It answers two questions: is this text one well-formed message, and which
// bytes of it are the id, the method, the params, the result? Ids, params and
// results stay the bytes the peer wrote, so numbers keep every digit, members
// their order, and members nobody here knows survive. A text is checked once,
// by [Check] or [Parse]; everything else in the package trusts that it was.
//
// The package refuses to know methods, eras and transports.
package wire
