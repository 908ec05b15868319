package auth

import (
	"crypto/x509"
	"net/http"
	"net/url"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// MTLS returns the principal of a client certificate, which the listener has verified.
type MTLS struct {
	SPIFFE bool // use the SPIFFE ID; otherwise the first subject alternative name
}

// Authenticate implements [Authenticator].
func (m MTLS) Authenticate(r *http.Request, _ *Endpoint) (*mcp.Identity, error) {
	if hasToken(r.URL.RawQuery) {
		return nil, malformed("the query has an access token")
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return nil, uncertified("no client certificate")
	}
	chain := r.TLS.VerifiedChains[0]
	name := alternativeName(chain[0])
	if m.SPIFFE {
		name = spiffeID(chain[0])
	}
	if name == "" || len(name) > maxPrincipal {
		return nil, uncertified("the client certificate has no name that can be a principal")
	}
	id := &mcp.Identity{Principal: mcp.Principal(name), Expires: chain[0].NotAfter}
	for _, c := range chain {
		if c.NotAfter.Before(id.Expires) {
			id.Expires = c.NotAfter
		}
	}
	return id, nil
}

// uncertified refuses a connection, to which no header could add what is missing.
func uncertified(why string) *Refusal { return &Refusal{Verbatim: true, Reason: why, Cause: why} }

// alternativeName returns a certificate's subject alternative name with its kind, so that
// names of different kinds are different: the first DNS name, or the first email address,
// or the first URI.
func alternativeName(c *x509.Certificate) string {
	switch {
	case len(c.DNSNames) > 0:
		return "dns:" + escape(c.DNSNames[0])
	case len(c.EmailAddresses) > 0:
		return "email:" + escape(c.EmailAddresses[0])
	case len(c.URIs) > 0:
		return "uri:" + escape(c.URIs[0].String())
	}
	return ""
}

// spiffeID returns a certificate's SPIFFE ID; empty if it has none, or also other names.
//
// Spec: SPIFFE X.509-SVID, 2 and 5.2; SPIFFE ID, 2.
func spiffeID(c *x509.Certificate) string {
	if len(c.URIs) != 1 || !isSPIFFE(c.URIs[0]) {
		return ""
	}
	return escape(c.URIs[0].String())
}

func isSPIFFE(u *url.URL) bool {
	return u.Scheme == "spiffe" && u.Hostname() != "" && u.Port() == "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && len(u.Path) > 1
}
