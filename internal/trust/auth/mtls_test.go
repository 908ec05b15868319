package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/url"
	"testing"
	"time"
)

func uri(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

// The principal of a certificate has the kind of its name, so that nobody takes a name of
// another kind for it.
func TestMTLSPrincipal(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	for _, tt := range []struct {
		name   string
		cert   x509.Certificate
		spiffe bool
		want   string
	}{
		{"DNS", x509.Certificate{DNSNames: []string{"a.example.com", "b"}, EmailAddresses: []string{"m@x"}}, false, "dns:a.example.com"},
		{"mail", x509.Certificate{EmailAddresses: []string{"ada@example.com"}, URIs: []*url.URL{uri("spiffe://x/y")}}, false, "email:ada@example.com"},
		{"URI", x509.Certificate{URIs: []*url.URL{uri("urn:a b")}}, false, "uri:urn:a%20b"},
		{"a common name alone", x509.Certificate{Subject: pkix.Name{CommonName: "ada"}}, false, ""},
		{"SPIFFE", x509.Certificate{URIs: []*url.URL{uri("spiffe://example.org/agents/ada")}, DNSNames: []string{"x"}}, true, "spiffe://example.org/agents/ada"},
		{"two SPIFFE IDs", x509.Certificate{URIs: []*url.URL{uri("spiffe://a/b"), uri("spiffe://a/c")}}, true, ""},
		{"a trust domain without a path", x509.Certificate{URIs: []*url.URL{uri("spiffe://example.org")}}, true, ""},
		{"a SPIFFE ID with a port", x509.Certificate{URIs: []*url.URL{uri("spiffe://example.org:1/x")}}, true, ""},
		{"a SPIFFE ID with a query", x509.Certificate{URIs: []*url.URL{uri("spiffe://example.org/x?y")}}, true, ""},
		{"https instead", x509.Certificate{URIs: []*url.URL{uri("https://example.org/x")}}, true, ""},
	} {
		r := sending("")
		tt.cert.NotAfter = soon.Add(time.Hour)
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{&tt.cert, {NotAfter: soon}}}}
		id, err := MTLS{SPIFFE: tt.spiffe}.Authenticate(r, nil)
		var refusal *Refusal
		switch {
		case tt.want == "" && !errors.As(err, &refusal):
			t.Errorf("%s = %+v, %v, want it refused", tt.name, id, err)
		case tt.want != "" && (err != nil || string(id.Principal) != tt.want || !id.Expires.Equal(soon)):
			t.Errorf("%s = %+v, %v, want %s until the first of the chain expires", tt.name, id, err, tt.want)
		}
	}
}

// A certificate that nobody has verified is none.
func TestUnverifiedCertificate(t *testing.T) {
	r := sending("")
	for _, state := range []*tls.ConnectionState{nil, {}, {PeerCertificates: []*x509.Certificate{{DNSNames: []string{"ada"}}}}, {VerifiedChains: [][]*x509.Certificate{{}}}} {
		r.TLS = state
		r.Header.Set("X-Client-Cert", "x")
		if id, err := (MTLS{}).Authenticate(r, nil); err == nil {
			t.Errorf("%+v = %+v, want it refused", state, id)
		}
	}
}
