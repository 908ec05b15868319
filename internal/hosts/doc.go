// Package hosts answers one question: what does the configuration file of
// another MCP host (Claude, VS Code, Cursor, …) say, in the keys of mcpbridge?
//
// [Parse] reads JSON with comments and trailing commas and keeps the lines.
// [Host.Adapt] turns what a host wrote into our own keys, with a [Note] for
// each thing that means something else here, or nothing. [Edit] goes the other
// way: it rewrites single servers of a host's file and leaves every other byte
// as it is.
//
// The package opens no files and knows nothing of what the values are for: the
// strict check of keys and values is that of internal/config.
package hosts
