// Package login obtains the credentials with which mcpbridge sends requests to servers.
//
// A [Flow] logs in to a server as the specification says: it finds out by the server's
// metadata which authorization server issues tokens for it, becomes a client of that, sends
// a person's browser there, and stores the tokens in a [Store]. A [Source] has the value of
// the Authorization header for each request to a server, and a new one where the server
// has refused it:
//
//	Static             a token of the configuration
//	ClientCredentials  a token for the gateway itself
//	TokenExchange      a token of the server's for each caller's (RFC 8693)
//	Stored             the tokens of a Flow, refreshed by one process for all
//	Passthrough        the caller's own token, where server and gateway are one resource
//
// Documents that others have written are fetched by package fetch alone. The package knows
// no messages of MCP.
//
// Spec: 2026-07-28, basic/authorization.
package login
