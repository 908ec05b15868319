// Package auth authenticates requests: it verifies the credential of each HTTP request and
// returns the sender's identity, or refuses the request.
//
// An [Authenticator] is one way to do that: static tokens, access tokens of an issuer,
// client certificates. The gateway is a resource server of OAuth: an [Endpoint] has its own
// metadata, and a [Refusal] becomes a challenge that names it.
//
// Credentials are only accepted in the Authorization header, or from the TLS connection.
// What can't be verified is refused.
//
// Spec: 2026-07-28 and 2025-11-25, basic/authorization; RFC 6750, RFC 9728.
package auth
