package auth

import (
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// notForAccess are claims that access tokens do not have, but other tokens of the same
// issuer: ID tokens and logout tokens. The last one means that a token is valid only with a
// key, which is not checked here.
//
// Spec: OpenID Connect Core, 2; Back-Channel Logout, 2.4; RFC 7800, 3.1.
var notForAccess = []string{"nonce", "at_hash", "c_hash", "events", "cnf"}

// otherKinds are what issuers write into a token that is not for access: Amazon Cognito in
// token_use, Keycloak in typ.
var otherKinds = map[string][]string{
	"token_use": {"id", "refresh"},
	"typ":       {"ID", "Refresh", "Offline", "Logout"},
}

// onlyForAccess are claims of which each access token has one, and no ID token: scopes, the
// client as RFC 9068 names it, and how it has authenticated, in both versions of Microsoft Entra
// ID, whose tokens for applications have nothing else.
//
// Spec: RFC 9068, 2.2; RFC 8693, 4.2.
var onlyForAccess = []string{"scope", "scp", "client_id", "azpacr", "appidacr"}

// checkKind refuses what is not an access token. ID tokens have a client for an audience: if
// that is what the configuration has, too, the token has to say what it is for.
//
// Spec: RFC 8725, 3.11 and 3.12.
func (j *JWT) checkKind(c *claims, e *Endpoint) error {
	for _, name := range notForAccess {
		if wire.Get(c.payload, name) != nil {
			return j.invalid("it has the claim %s, which access tokens do not have", name)
		}
	}
	for name, kinds := range otherKinds {
		is, _ := wire.GetString(c.payload, name)
		if slices.ContainsFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, is) }) {
			return j.invalid("its %s is %s, so that it is not for access", name, is)
		}
	}
	if c.forAccess || c.Audience.Contains(e.Resource) {
		return nil
	}
	if !slices.ContainsFunc(onlyForAccess, func(name string) bool { return wire.Get(c.payload, name) != nil }) {
		return j.invalid("nothing in it says that it is an access token: neither typ nor one of the claims %s", strings.Join(onlyForAccess, ", "))
	}
	return nil
}

// checkType refuses a type that is not accepted, and reports whether it is that of access
// tokens. Types are media types; the prefix application/ may be missing. Only what is not
// there at all is Untyped.
//
// Spec: RFC 7515, 4.1.9.
func (j *JWT) checkType(h jose.Header) (forAccess bool, err error) {
	const prefix = "application/"
	value, has := h.ExtraHeaders[jose.HeaderType]
	if !has && slices.Contains(j.opts.Types, Untyped) {
		return false, nil
	}
	if !has {
		return false, j.invalid("its header has no typ, want one of %q; auth.jwt.types has %s for issuers that write none", j.opts.Types, Untyped)
	}
	typ, _ := value.(string)
	if len(typ) > len(prefix) && strings.EqualFold(typ[:len(prefix)], prefix) {
		typ = typ[len(prefix):]
	}
	accepts := func(t string) bool { return t != Untyped && strings.EqualFold(t, typ) }
	if !slices.ContainsFunc(j.opts.Types, accepts) {
		return false, j.invalid("its typ is %q, want one of %q; auth.jwt.types has JWT for issuers that know no other", mcp.Shorten(typ), j.opts.Types)
	}
	return strings.EqualFold(typ, AccessToken), nil
}
