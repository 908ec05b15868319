// Package auth runs mcpbridge between an authorization server, clients that log
// in, and servers that demand it, all of them programs that nobody here wrote, in
// processes of their own: the authorization server is oidc-provider
// (node/authorization-server.mjs), the clients are those of interop/remote, and the
// protected servers are the SDKs' own examples, and one that takes tokens for itself alone
// (node/protected-server.mjs).
//
// There is no browser: the tests follow authorization URLs themselves.
package auth
