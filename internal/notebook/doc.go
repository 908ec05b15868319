// Package notebook answers one question: what does a server of either era do,
// when there is no other at hand to try?
//
// It keeps notes in memory. Each is a resource, note://NAME; the tool edit_note
// changes or adds one and tells those who follow it; enable_search adds a tool
// while clients look on; a prompt asks for a summary. Over any [transport.Conn] it
// speaks the revisions up to 2025-11-25 (Serve) or 2026-07-28 alone (ServeModern),
// with the manners of a strict server: nothing is served before the handshake or
// without an envelope, and nobody hears what they did not ask for.
//
// The package knows nothing of the bridge: it is reached like any other server,
// and neither of its two servers speaks the other era.
package notebook
