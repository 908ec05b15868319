// Package interop runs mcpbridge between clients and servers that nobody here
// wrote, at pinned versions, and the official conformance suite on top.
//
// matrix.json, one folder up, is the table of what each server has and what it
// answers; both clients read it, so that they assert the same values. The
// tests start every peer and one mcpbridge, and leave no process behind.
//
// `make interop` fetches and builds what they need (interop/build).
package interop
