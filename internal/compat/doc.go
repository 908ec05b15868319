// Package compat says what clients of the other era get of a server: which features pass,
// which take another form, and which they do not get, each with the rule of docs/rules.md
// that says so.
//
// It is a table about a [Server] that was probed. It does no I/O.
package compat
