package auth

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxPrincipal limits a principal, in bytes, because it is part of many keys.
const maxPrincipal = 1 << 10

// claims are the claims of a token, or of its introspection.
type claims struct {
	jwt.Claims
	Scope string `json:"scope"`

	payload   []byte // all claims, a JSON object
	forAccess bool   // what has the claims says that the token is for access
}

// identify returns the identity of a token with the claims c, or refuses it at e.
//
// Spec: 2026-07-28, basic/authorization, Token Audience Binding and Validation.
func (j *JWT) identify(c *claims, e *Endpoint) (*mcp.Identity, error) {
	audiences := append(jwt.Audience{e.Resource}, j.opts.Audiences...)
	switch err := c.ValidateWithLeeway(jwt.Expected{Issuer: j.opts.Issuer, AnyAudience: audiences}, mcp.ClockSkew); {
	case err != nil: // one of a few texts, each a cause of its own
		return nil, j.invalid(err.Error()+"; want iss %s, aud %s, and the present between nbf and exp", j.opts.Issuer, strings.Join(audiences, " or "))
	case c.Expiry == nil:
		return nil, j.invalid("it does not say when it expires")
	case c.Subject == "":
		return nil, j.invalid("it has no subject")
	}
	if err := j.checkKind(c, e); err != nil {
		return nil, err
	}
	principal, err := j.principal(c)
	if err != nil {
		return nil, err
	}
	id := &mcp.Identity{Principal: principal, Issuer: c.Issuer, Subject: c.Subject, Scopes: c.scopes(), Claims: j.claimsOf(c), Expires: c.Expiry.Time()}
	if !j.hasScopes(id, audiences) {
		return nil, &Refusal{Status: http.StatusForbidden, Code: CodeInsufficientScope, Scopes: j.opts.Scopes,
			Reason: "the token has not all of the scopes " + strings.Join(j.opts.Scopes, " ")}
	}
	return id, nil
}

// hasScopes reports whether a token has the scopes that every request needs. Microsoft Entra
// ID is asked for a scope by the name of the resource and that of the scope, and writes the
// latter alone into the token, which is of no other resource.
func (j *JWT) hasScopes(id *mcp.Identity, audiences []string) bool {
	for _, scope := range j.opts.Scopes {
		has := id.HasScopes(scope)
		for _, resource := range audiences {
			short, begins := strings.CutPrefix(scope, resource+"/")
			has = has || begins && id.HasScopes(short)
		}
		if !has {
			return false
		}
	}
	return true
}

// principal returns issuer, subject, and the further claims as one name, which is different
// for different values.
func (j *JWT) principal(c *claims) (mcp.Principal, error) {
	text := append(append([]byte(c.Issuer), ' '), escape(c.Subject)...)
	for _, name := range j.opts.PrincipalClaims {
		value := wire.Unquote(c.get(name))
		if value == "" {
			return "", j.invalid("it lacks the claim %s, a string", name)
		}
		text = append(append(append(append(text, ' '), name...), '='), escape(value)...)
	}
	if len(text) > maxPrincipal {
		return "", j.invalid("its subject is too long")
	}
	return mcp.Principal(text), nil
}

// escape escapes separators, and characters that would be lost in a log.
func escape(text string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c == '%' || c >= 0x7f {
			out.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

// scopes returns the scopes in scope, or in scp, which some issuers use instead, as a list.
//
// Spec: RFC 9068, 2.2.3; RFC 8693, 4.2.
func (c *claims) scopes() []string {
	if c.Scope != "" {
		return strings.Fields(c.Scope)
	}
	scp := wire.Get(c.payload, "scp")
	if text, ok := wire.GetString(c.payload, "scp"); ok {
		return strings.Fields(text)
	}
	var list []string
	if json.Unmarshal(scp, &list) != nil {
		return nil
	}
	return list
}

// get returns a claim: that of exactly the name, or the one to which the name is the path, as
// in realm_access.roles. Nil means that there is none.
func (c *claims) get(name string) []byte { return claimAt(c.payload, name) }

func claimAt(object []byte, name string) []byte {
	if value := wire.Get(object, name); value != nil {
		return value
	}
	for i := range len(name) { // what stands between dots may have some, too
		if name[i] != '.' {
			continue
		}
		if below := wire.Get(object, name[:i]); wire.IsObject(below) {
			if value := claimAt(below, name[i+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}

// claimsOf returns the claims that the options name.
func (j *JWT) claimsOf(c *claims) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage)
	for _, name := range append(j.opts.Claims, j.opts.PrincipalClaims...) {
		if value := c.get(name); value != nil {
			out[name] = append(json.RawMessage(nil), value...)
		}
	}
	return out
}
