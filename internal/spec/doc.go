// Package spec defines the names and constants of the Model Context Protocol: revisions,
// eras, methods, headers, reserved _meta keys and error codes.
//
// It covers both eras, so that no other package contains names of the protocol as
// literals. It has no message types and does no I/O.
package spec
