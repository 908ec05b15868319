// Package spec is the vocabulary of the Model Context Protocol: revisions,
// eras, method and header names, reserved _meta keys, error codes.
//
// It answers "what is this called, and since when?" for both eras, so that no
// other package spells a protocol name. It refuses to know how anything is
// sent: it holds no message types and does no I/O.
package spec
