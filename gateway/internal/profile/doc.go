// Package profile says which requests to a server may share a session with it, its
// subscriptions, and cached results: those of one [mcp.Profile].
package profile
