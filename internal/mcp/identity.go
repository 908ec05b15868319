package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
)

// An Identity is the sender of a request, as its verified credential says. It belongs to
// one request: the next request of the same session may have another credential of the
// same principal. It does not change; nil is the identity of anonymous clients.
type Identity struct {
	Principal Principal
	// Issuer and Subject name the principal where a token does; both are empty otherwise.
	Issuer, Subject string
	// Scopes are those of the credential.
	Scopes []string
	// Claims are the claims of a token that the configuration names, as JSON.
	Claims map[string]json.RawMessage
	// Expires is when the credential expires; zero means never.
	Expires time.Time

	token  string
	verify func(context.Context) error
}

// SetToken adds the caller's own token. It must be called before the identity is shared.
func (id *Identity) SetToken(token string) { id.token = token }

// SetVerify adds what [Identity.Verify] calls. It must be called before the identity is
// shared.
func (id *Identity) SetVerify(verify func(context.Context) error) { id.verify = verify }

// Token returns the caller's own token: for its exchange, or for a server that is the same
// resource as the gateway. It is empty for other credentials, and must not be logged.
func (id *Identity) Token() string {
	if id == nil {
		return ""
	}
	return id.token
}

// Verify verifies the credential again, for streams that outlive the check of their
// request. An error means that it has expired, was revoked, or that its key is no longer
// the issuer's, and not that the issuer can't be asked: what is open goes on then. Verify is cheap:
// results are kept as for requests.
func (id *Identity) Verify(ctx context.Context) error {
	if id == nil || id.verify == nil {
		return nil
	}
	return id.verify(ctx)
}

// ClockSkew is the allowed difference between the clocks of an issuer of tokens and of the
// gateway: requests with a token are accepted for that long after it has expired.
const ClockSkew = time.Minute

// Accepted returns until when requests with the credential are accepted; zero for ever.
func (id *Identity) Accepted() time.Time {
	if id.Issuer == "" || id.Expires.IsZero() {
		return id.Expires
	}
	return id.Expires.Add(ClockSkew)
}

// End returns when what is opened with the credential at a moment has to end: when that
// expires, or, if it has, when it is accepted no more. Otherwise a client whose clock is behind
// would open it again and again. Zero means never.
func (id *Identity) End(opened time.Time) time.Time {
	if id.Expires.After(opened) {
		return id.Expires
	}
	return id.Accepted()
}

// MayBeRefused reports whether Verify may refuse the credential before it expires.
func (id *Identity) MayBeRefused() bool { return id != nil && id.verify != nil }

// MayEnd reports whether the credential may expire or be refused.
func (id *Identity) MayEnd() bool {
	return id != nil && (id.verify != nil || !id.Expires.IsZero())
}

// HasScopes reports whether the credential has all of the scopes.
func (id *Identity) HasScopes(scopes ...string) bool {
	return !slices.ContainsFunc(scopes, func(scope string) bool { return id == nil || !slices.Contains(id.Scopes, scope) })
}

// LogValue implements [slog.LogValuer]: logs have the principal alone.
func (id *Identity) LogValue() slog.Value {
	if id == nil {
		return slog.StringValue(string(Anonymous))
	}
	return slog.StringValue(string(id.Principal))
}

// A Sender is who sent a request, or opened a connection.
type Sender struct {
	Share
	Identity *Identity
	// Arrival says how the messages arrive; nil while nobody observes, and there is no audit
	// log.
	Arrival *trace.Arrival
	// Via is the instance of the replica that has forwarded the request; empty if none has.
	Via string
}
