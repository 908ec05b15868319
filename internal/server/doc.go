// Package server connects to one MCP server: it finds its era, and opens the back of that
// era.
//
// [Options] describe a [Server]: a URL, a command, or a function that dials. [Server.Open]
// returns its back: that of the configured era, or a [detect.Detector]. [Server.Detect]
// probes it once, for people.
//
// The package knows both eras, and nothing of clients.
package server
