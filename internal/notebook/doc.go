// Package notebook is a small MCP server of either era, for trying out the bridge
// without another server.
//
// It keeps notes in memory. Each note is a resource, note://NAME. The tool edit_note
// changes or adds a note and notifies its subscribers, the tool enable_search adds a tool
// to the list, and a prompt asks for a summary. Over any [transport.Conn] it speaks the
// revisions up to 2025-11-25 (Serve) or only 2026-07-28 (ServeModern). It is as strict as
// the specification allows: it refuses requests before the handshake or without an
// envelope, and sends only the notifications that a client asked for.
//
// The package does not know the bridge, which connects to it as to any other server.
package notebook
