package login

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Static returns credentials with a configured token.
func Static(token string) upstream.Credentials { return static(bearer(token)) }

type static string

// Authorization implements [upstream.Credentials].
func (s static) Authorization(context.Context, upstream.Behalf) (string, error) {
	return string(s), nil
}

// Renew implements [upstream.Credentials]: there is no other token.
func (s static) Renew(_ context.Context, r upstream.CredentialRefusal) (string, error) {
	if r.Status != http.StatusUnauthorized {
		return "", nil
	}
	return "", unusable(errors.New("does not accept the configured token"), "give it another one: upstream_auth.static.token")
}

// Passthrough returns credentials that are the caller's own: only for a server that is the
// same resource as the gateway.
//
// Spec: 2026-07-28, basic/authorization/security-considerations, Access Token Privilege
// Restriction.
func Passthrough() upstream.CallerCredentials { return &passthrough{callers: newCallers()} }

type passthrough struct{ *callers }

// Authorization implements [upstream.Credentials]. A request whose token has ended is not sent as
// one of nobody.
func (p *passthrough) Authorization(_ context.Context, b upstream.Behalf) (string, error) {
	token := p.token(b)
	if token == "" && b.Identity.Token() != "" {
		return "", missing(b)
	}
	return bearer(token), nil
}

// Renew implements [upstream.Credentials]. Only the caller can get another token, so it
// gets the server's refusal.
func (p *passthrough) Renew(_ context.Context, r upstream.CredentialRefusal) (string, error) {
	if p.identity(r.Behalf) == nil {
		return "", missing(r.Behalf)
	}
	c := ReadChallenge(r.Header)
	refusal := &mcp.Refusal{Status: r.Status, Err: wire.Errorf(spec.CodeInvalidRequest, "the server does not accept the credential of the request")}
	if r.Status == http.StatusForbidden {
		refusal.Err = wire.Errorf(spec.CodeInvalidRequest, "the server does not permit this to the credential of the request")
	}
	if c.Error == insufficientScope {
		refusal.Scopes = union(nil, c.Scopes())
	}
	return "", &upstream.CredentialError{Err: errors.New("refuses the caller's own token"), Step: "send requests with another one", Caller: true, Refusal: refusal}
}
