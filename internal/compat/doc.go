// Package compat says what clients of the other era get of a server: which features they
// get unchanged, in another form, or not at all, with the rule in docs/rules.md for each.
//
// It evaluates tables for a [Server] that was probed. It does no I/O.
package compat
