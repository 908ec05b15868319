// Package server reaches one MCP server: it answers "how do I connect to it, which era
// does it speak, and what serves requests to it?".
//
// A [Server] is described by [Options]: a URL, a command, or a function that dials.
// [Server.Open] returns its back: that of the configured era, or a [detect.Detector] that
// asks the server. [Server.Detect] asks it once, for people who want to know.
//
// The package knows both eras and nothing of clients.
package server
