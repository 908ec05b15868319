package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// Asymmetric are the default algorithms: those with public keys, which an issuer can
// publish. With a symmetric algorithm, or none, anybody could sign.
var Asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// AccessToken is the type of access tokens that are JWTs.
//
// Spec: RFC 9068, 2.1.
const AccessToken = "at+jwt"

// Untyped is the name by which tokens without a type are accepted. As the type of a token it
// is one of many that are not.
const Untyped = "missing"

var errNoResource = errors.New("tokens are for one URL, and that of the endpoint is not known")

// JWTOptions configure a [JWT].
type JWTOptions struct {
	// Issuer is the issuer whose tokens are accepted, byte for byte. Required.
	Issuer string
	// Algorithms are the accepted signature algorithms. Empty means Asymmetric.
	Algorithms []string
	// Audiences are accepted besides the URL of the endpoint, for issuers that write no URLs.
	// A token of one of them is accepted at all endpoints that have it.
	Audiences []string
	// Types are the accepted types of tokens. Empty means AccessToken. JWT and Untyped are
	// for issuers that use no other.
	Types []string
	// Scopes are the scopes that every request needs, as clients ask for them. One that
	// begins with the URL of the endpoint or an audience, and a slash, may be in a token
	// without that.
	Scopes []string
	// PrincipalClaims are claims that are part of the principal, in addition to issuer and
	// subject. A token without one of them is refused.
	PrincipalClaims []string
	// Claims are further claims for [mcp.Identity].
	Claims []string
	// Introspection is for tokens that are not JWTs. Nil means that these are refused.
	Introspection *Introspection

	// Client fetches documents of the issuer. Required.
	Client *fetch.Client
	Logger *slog.Logger // nil discards
}

// A JWT accepts access tokens of an issuer at the endpoint for which they were issued. It
// sends requests to the issuer for unknown keys, and for tokens that are not JWTs. Its
// owner must close it.
//
// Spec: 2026-07-28, basic/authorization, Token Handling; RFC 9068, 4; RFC 8725, 3.
type JWT struct {
	opts       JWTOptions
	algorithms []jose.SignatureAlgorithm
	keys       *keySet
	verified   *verifiedTokens
	inspector  *inspector // nil if other tokens are refused
	ahead      *ahead
}

// NewJWT returns a JWT. It fetches nothing yet.
func NewJWT(o JWTOptions) (*JWT, error) {
	if o.Issuer == "" || o.Client == nil {
		return nil, errors.New("want an issuer and a client")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if len(o.Algorithms) == 0 {
		o.Algorithms = Asymmetric
	}
	if len(o.Types) == 0 {
		o.Types = []string{AccessToken}
	}
	from, err := newIssuer(o.Issuer, o.Client)
	if err != nil {
		return nil, err
	}
	j := &JWT{opts: o, keys: newKeySet(from, o.Logger), ahead: newAhead()}
	for _, name := range o.Algorithms {
		if !slices.Contains(Asymmetric, name) {
			return nil, fmt.Errorf("%q is not an algorithm with public keys", name)
		}
		j.algorithms = append(j.algorithms, jose.SignatureAlgorithm(name))
	}
	if o.Introspection != nil {
		if j.inspector, err = newInspector(from, *o.Introspection, j.ahead); err != nil {
			return nil, err
		}
	}
	j.verified, err = newVerifiedTokens()
	return j, err
}

// Start fetches the keys in the background, so that the first request does not have to
// wait.
func (j *JWT) Start() { j.keys.refresh() }

// Close stops fetches and questions, and waits for their end.
func (j *JWT) Close() {
	j.ahead.close()
	j.keys.close()
}

// Authenticate implements [Authenticator].
func (j *JWT) Authenticate(r *http.Request, e *Endpoint) (*mcp.Identity, error) {
	token, err := credential(r, j.opts.Scopes)
	if err != nil {
		return nil, err
	}
	return j.verify(r.Context(), r, token, e)
}

// verify returns the identity of a token. It does not verify a token again that was
// verified recently. r is the request that has it, or nil if it is verified anew.
func (j *JWT) verify(ctx context.Context, r *http.Request, token string, e *Endpoint) (*mcp.Identity, error) {
	if e == nil || e.Resource == "" {
		return nil, errNoResource
	}
	if id := j.recall(token, e, time.Now()); id != nil {
		return id, nil
	}
	if err := wellFormed(token); err != nil {
		return nil, err
	}
	return j.learn(ctx, r, token, e)
}

// recall returns the identity of a token that was verified recently; nil for others.
func (j *JWT) recall(token string, e *Endpoint, now time.Time) *mcp.Identity {
	v, ok := j.verified.find(token, e.Resource, now)
	if !ok {
		return nil
	}
	j.renew(v, e, now)
	return v.identity
}

// isJWT reports whether a token has the form of a signed one. What an issuer is asked about
// has another.
func isJWT(token string) bool { return strings.Count(token, ".") == 2 }

// check verifies a token.
func (j *JWT) check(ctx context.Context, r *http.Request, token string, e *Endpoint) (verifiedToken, error) {
	if isJWT(token) {
		return j.checkJWT(ctx, token, e)
	}
	if j.inspector == nil {
		return verifiedToken{}, j.invalid("the token is not a JWT, and no introspection is configured")
	}
	at := j.inspector.refused.of(token, e.Resource)
	if err := j.inspector.refused.find(at); err != nil {
		return verifiedToken{}, err
	}
	end, err := j.inspector.turns.take(e.shareOf(r))
	if err != nil {
		return verifiedToken{}, err
	}
	id, err := j.inspect(ctx, token, e)
	end(err)
	j.inspector.refused.keep(at, err)
	return verifiedToken{identity: id, most: maxInspected, renewal: new(renewal)}, err
}

// inspect asks the issuer about a token.
func (j *JWT) inspect(ctx context.Context, token string, e *Endpoint) (*mcp.Identity, error) {
	c, err := j.inspector.inspect(ctx, token)
	if err != nil {
		return nil, j.refused(err)
	}
	c.forAccess = true
	return j.identify(c, e)
}

// checkJWT verifies a signed token.
func (j *JWT) checkJWT(ctx context.Context, token string, e *Endpoint) (verifiedToken, error) {
	t, err := jwt.ParseSigned(token, j.algorithms)
	if err != nil {
		return verifiedToken{}, j.invalid("not a JWT that is signed with one of the algorithms %v", j.opts.Algorithms)
	}
	c := &claims{}
	if c.forAccess, err = j.checkHeader(t.Headers); err != nil {
		return verifiedToken{}, err
	}
	key, err := j.keys.find(ctx, t.Headers[0].KeyID, t.Headers[0].Algorithm)
	if err != nil {
		return verifiedToken{}, j.refused(err)
	}
	var payload json.RawMessage
	if err := t.Claims(key.Key, &payload, c); err != nil {
		return verifiedToken{}, j.invalid("the signature is not that of the key %q, or the claims can't be read", key.KeyID)
	}
	c.payload = payload
	id, err := j.identify(c, e)
	return verifiedToken{identity: id, key: key, most: maxKept}, err
}

// checkHeader checks the header of a JWT, except the algorithm, and reports whether it says
// that the token is for access. It refuses keys in the header, because whoever signed would
// choose the key, and critical extensions.
//
// Spec: RFC 8725, 3.10 and 3.11; RFC 7515, 4.1.11.
func (j *JWT) checkHeader(headers []jose.Header) (forAccess bool, err error) {
	if len(headers) != 1 {
		return false, j.invalid("the token does not have one signature")
	}
	h := headers[0]
	for _, name := range []jose.HeaderKey{"jku", "x5u", "crit"} {
		if _, has := h.ExtraHeaders[name]; has {
			return false, j.invalid("its header has %s", name)
		}
	}
	if h.JSONWebKey != nil {
		return false, j.invalid("its header has jwk")
	}
	return j.checkType(h)
}

// invalid refuses a token. Only the log gets the reason.
func (j *JWT) invalid(format string, args ...any) error {
	return invalid(j.opts.Scopes, format, args...)
}

// refused adds the scopes to a refusal. Other errors mean that the token can't be verified
// at the moment.
func (j *JWT) refused(err error) error {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		again := *r
		again.Scopes = j.opts.Scopes
		return &again
	}
	return err
}

// Metadata implements [Resource].
func (j *JWT) Metadata(e *Endpoint) []byte { return metadata(e, j.opts.Scopes, j.opts.Issuer) }

// metadata returns the metadata document of e.
//
// Spec: RFC 9728, 2.
func metadata(e *Endpoint, scopes []string, issuers ...string) []byte {
	doc, _ := json.Marshal(struct { // marshaling strings does not fail
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
	}{e.Resource, issuers, scopes, []string{"header"}})
	return doc
}

// Scopes implements [Resource].
func (j *JWT) Scopes() []string { return j.opts.Scopes }

var _ Resource = (*JWT)(nil)
