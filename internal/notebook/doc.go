// Package notebook answers one question: what does a server of the legacy era
// do, when there is no other at hand to try?
//
// It keeps notes in memory. Each is a resource, note://NAME; the tool edit_note
// changes or adds one and tells the sessions subscribed to it; enable_search
// adds a tool while clients look on; a prompt asks for a summary. It speaks the
// revisions up to 2025-11-25 over any [transport.Conn], with the manners of a
// strict server: nothing is served before the handshake, and nobody hears what
// they did not ask for.
//
// The package knows nothing of the modern era or of the bridge: it is reached
// like any other server.
package notebook
