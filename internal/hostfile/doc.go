// Package hostfile reads and edits the configuration files of MCP hosts (Claude, VS Code,
// Cursor, Codex, …).
//
// [Parse] reads JSON with comments and trailing commas, and [ParseTOML] TOML; both keep the
// line numbers. [Host.Adapt] converts a host's file to the keys of mcpbridge, with a [Note] for each
// setting that has another meaning here, or none. [Edit] changes single servers of a
// host's file, and no other byte.
//
// The package opens no files and does not check values: internal/config does that.
package hostfile
