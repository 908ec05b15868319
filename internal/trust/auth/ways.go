package auth

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// certificatePrefix begins the principals of certificates where clients have other ways, too:
// nothing else has such a principal.
const certificatePrefix = "mtls:"

// WaysOptions are several ways in which clients may prove who they are.
type WaysOptions struct {
	Tokens  *Tokens  // nil for none
	Issuers Resource // a [JWT] or [Issuers]; nil for none
	MTLS    *MTLS    // nil for none
}

// ways let each request in by one of several ways. A token counts if there is one, and a
// certificate if there is none: a token that is refused is never made up for.
type ways struct {
	WaysOptions
}

// waysWithIssuer are ways whose endpoints have metadata.
type waysWithIssuer struct{ *ways }

// NewWays returns an [Authenticator] for all the ways that there are; None for none. It owns
// what it is given.
func NewWays(o WaysOptions) Authenticator {
	w := &ways{o}
	switch {
	case o.Issuers == nil && o.MTLS == nil && o.Tokens == nil:
		return None
	case o.Issuers == nil && o.MTLS == nil:
		return o.Tokens
	case o.Tokens == nil && o.MTLS == nil:
		return o.Issuers
	case o.Tokens == nil && o.Issuers == nil:
		return *o.MTLS
	case o.Issuers == nil:
		return w
	}
	return waysWithIssuer{w}
}

// Authenticate implements [Authenticator].
func (w *ways) Authenticate(r *http.Request, e *Endpoint) (*mcp.Identity, error) {
	if w.byCertificate(r) {
		return w.certificate(r, e)
	}
	if w.Tokens == nil {
		return w.Issuers.Authenticate(r, e)
	}
	token, err := credential(r, w.scopes())
	switch {
	case err != nil:
		return nil, err
	case isToken68(token):
		if id := w.Tokens.set.Load().find(digest(token)); id != nil {
			return id, nil
		}
	}
	if w.Issuers == nil || strings.HasPrefix(token, tokenPrefix) { // an issuer is not asked about ours
		return nil, invalid(w.scopes(), "unknown token")
	}
	return w.Issuers.Authenticate(r, e)
}

// byCertificate reports whether a certificate counts.
func (w *ways) byCertificate(r *http.Request) bool {
	return w.MTLS != nil && len(r.Header["Authorization"]) == 0
}

// certificate returns the identity of a certificate. Who has none gets a challenge for a
// token.
func (w *ways) certificate(r *http.Request, e *Endpoint) (*mcp.Identity, error) {
	id, err := w.MTLS.Authenticate(r, e)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) && refusal.Verbatim {
		return nil, &Refusal{Scopes: w.scopes(), Reason: "no token, and " + refusal.Reason}
	}
	if err != nil {
		return nil, err
	}
	id.Principal = certificatePrefix + id.Principal
	return id, nil
}

func (w *ways) scopes() []string {
	if w.Issuers == nil {
		return nil
	}
	return w.Issuers.Scopes()
}

// Metadata implements [Resource].
func (w waysWithIssuer) Metadata(e *Endpoint) []byte { return w.Issuers.Metadata(e) }

// Scopes implements [Resource].
func (w waysWithIssuer) Scopes() []string { return w.scopes() }

var _ Resource = waysWithIssuer{}

// Start begins what a does in the background, if that is something.
func Start(a Authenticator) {
	if started, ok := a.(interface{ Start() }); ok {
		started.Start()
	}
}

// Close ends what a does in the background, and waits for that.
func Close(a Authenticator) {
	if closed, ok := a.(interface{ Close() }); ok {
		closed.Close()
	}
}

// Start begins what the issuers do in the background.
func (w *ways) Start() { Start(w.Issuers) }

// Close ends what the issuers do in the background.
func (w *ways) Close() { Close(w.Issuers) }

// TokensOf returns the static tokens that a accepts; nil if it accepts none.
func TokensOf(a Authenticator) *Tokens {
	switch a := a.(type) {
	case *Tokens:
		return a
	case *ways:
		return a.Tokens
	case waysWithIssuer:
		return a.Tokens
	}
	return nil
}

// ByCertificate reports whether a tells the sender of r by the certificate of a connection,
// if at all. Who gets the request from another replica does not see that connection.
func ByCertificate(a Authenticator, r *http.Request) bool {
	switch a := a.(type) {
	case MTLS:
		return true
	case interface{ byCertificate(*http.Request) bool }:
		return a.byCertificate(r)
	}
	return false
}

// MayBeVouchedFor reports whether id, which another replica has found out for r, is one that
// only a connection can show. Others have to be found here, too.
func MayBeVouchedFor(a Authenticator, r *http.Request, id *mcp.Identity) bool {
	if id == nil || !ByCertificate(a, r) {
		return false
	}
	_, alone := a.(MTLS)
	return alone || strings.HasPrefix(string(id.Principal), certificatePrefix)
}
