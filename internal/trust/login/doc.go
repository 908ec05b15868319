// Package login provides the credentials of requests to servers.
//
// A [Flow] logs in to a server as the specification requires: it finds the authorization
// server in the server's metadata, registers a client there, opens a browser, and stores
// the tokens in a [Store]. Credentials provide the Authorization header of each request,
// and a new one if the server has refused it:
//
//	Static             a configured token
//	ClientCredentials  a token for the gateway itself
//	TokenExchange      a token of the server for each caller's token (RFC 8693)
//	Stored             the tokens of a Flow, refreshed by one process for all
//	Passthrough        the caller's own token, if server and gateway are the same resource
//
// Only package fetch fetches documents that others have written. The package does not know
// messages of MCP.
//
// Spec: 2026-07-28, basic/authorization.
package login
