package auth

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const staticToken = "mcpb_a-static-token"

// allWays returns an issuer that is also asked about tokens, and what accepts its tokens, a
// static one of alice, and certificates.
func allWays(t *testing.T) (*issuertest.Issuer, Authenticator) {
	t.Helper()
	i, j := newJWT(t, func(o *JWTOptions) {
		o.Introspection, o.Scopes = &Introspection{"gateway", "secret"}, []string{"mcp:use"}
	})
	tokens, err := NewTokens([]StaticToken{{Name: "alice", Token: staticToken}, {Name: "bob", Token: "one-of-another-form"}})
	if err != nil {
		t.Fatal(err)
	}
	return i, NewWays(WaysOptions{Tokens: tokens, Issuers: j, MTLS: &MTLS{}})
}

// showing adds a certificate for a name to a request, as the listener does.
func showing(r *http.Request, name string) *http.Request {
	cert := &x509.Certificate{DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	if name == "" {
		cert.DNSNames = nil
	}
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}}
	return r
}

// Each way has principals of its own. A token counts for more than the certificate of the
// connection, and one that is refused is not made up for by that.
func TestSeveralWays(t *testing.T) {
	i, a := allWays(t)
	i.SetOpaque("opaque", inspected(nil))
	good := i.Token(resource, nil)
	for _, tt := range []struct {
		name string
		r    *http.Request
		want mcp.Principal // empty if it is refused
	}{
		{"a static token", sending(staticToken), "alice"},
		{"one of another form", sending("one-of-another-form"), "bob"},
		{"a token of the issuer", sending(good), mcp.Principal(i.URL + " ada")},
		{"an opaque one", sending("opaque"), mcp.Principal(i.URL + " ada")},
		{"a certificate", showing(sending(""), "laptop.example.com"), "mtls:dns:laptop.example.com"},
		{"a certificate with the name of a token", showing(sending(""), "alice"), "mtls:dns:alice"},
		{"a static token and a certificate", showing(sending(staticToken), "eve"), "alice"},
		{"a token of the issuer and a certificate", showing(sending(good), "eve"), mcp.Principal(i.URL + " ada")},
		{"an invented token and a certificate", showing(sending("invented"), "eve"), ""},
		{"an invented token of ours and a certificate", showing(sending("mcpb_invented"), "eve"), ""},
		{"an expired token and a certificate", showing(sending(i.Token(resource, map[string]any{"exp": 1})), "eve"), ""},
		{"nothing", sending(""), ""},
		{"a certificate without a name", showing(sending(""), ""), ""},
	} {
		id, err := a.Authenticate(tt.r, endpoint(t, resource))
		switch {
		case tt.want == "" && err == nil:
			t.Errorf("%s = %+v, want it refused", tt.name, id)
		case tt.want != "" && (err != nil || id.Principal != tt.want):
			t.Errorf("%s = %+v, %v, want %s", tt.name, id, err, tt.want)
		}
	}
	basic := showing(sending(""), "eve")
	basic.Header.Set("Authorization", "Basic YTpi")
	refused(t, a, basic, "not Bearer")
	basic.Header["Authorization"] = []string{""}
	refused(t, a, basic, "not Bearer")
	query := showing(sending(""), "eve")
	query.URL.RawQuery = "access_token=x"
	refused(t, a, query, "query")
}

// A subject can't be chosen so that a principal of another way comes of it.
func TestPrincipalsOfWaysDiffer(t *testing.T) {
	i, a := allWays(t)
	for _, sub := range []string{"alice", "mtls:dns:alice", " mtls:dns:alice", "\nalice"} {
		id := accepted(t, a, sending(i.Token(resource, map[string]any{"sub": sub})))
		if !strings.HasPrefix(string(id.Principal), i.URL+" ") {
			t.Errorf("the subject %q is %q", sub, id.Principal)
		}
	}
}

// An issuer is not asked about tokens of the configuration, also if they are no more.
func TestStaticTokenGoesToNoIssuer(t *testing.T) {
	i, a := allWays(t)
	accepted(t, a, sending(staticToken))
	accepted(t, a, sending("one-of-another-form"))
	refused(t, a, sending("mcpb_removed"), "unknown token")
	if n := i.Fetched("/introspect"); n != 0 {
		t.Errorf("the issuer was asked %d times about tokens that are not its own", n)
	}
	if id := accepted(t, a, sending(staticToken)); id.Token() != "" {
		t.Error("a static token could be sent on")
	}
}

// Who has nothing is told how to get a token, where that is a way.
func TestChallengeOfSeveralWays(t *testing.T) {
	_, a := allWays(t)
	e := endpoint(t, resource)
	for _, r := range []*http.Request{sending(""), showing(sending(""), ""), sending("mcpb_x")} {
		_, err := a.Authenticate(r, e)
		refusal, ok := err.(*Refusal)
		if !ok || refusal.StatusCode() != http.StatusUnauthorized || !strings.Contains(refusal.Header(e), `scope="mcp:use", resource_metadata="https://`) {
			t.Errorf("challenge = %v %q, want one with the metadata", err, refusal.Header(e))
		}
	}
	if r, ok := a.(Resource); !ok || len(r.Metadata(e)) == 0 || r.Scopes()[0] != "mcp:use" {
		t.Errorf("%T has no metadata", a)
	}
	tokens, _ := NewTokens([]StaticToken{{Name: "alice", Token: staticToken}})
	without := NewWays(WaysOptions{Tokens: tokens, MTLS: &MTLS{}})
	if _, ok := without.(Resource); ok {
		t.Error("tokens and certificates have metadata, which names no issuer")
	}
	if r := refused(t, without, sending(""), "certificate"); r.Header(e) != "Bearer resource_metadata=\""+e.MetadataURL+"\"" {
		t.Errorf("challenge = %q", r.Header(e))
	}
	if id := accepted(t, without, showing(sending(""), "a")); id.Principal != "mtls:dns:a" {
		t.Errorf("principal = %s", id.Principal)
	}
}

// One way is as it is without others, and the tokens of several can be replaced.
func TestOneWay(t *testing.T) {
	tokens, _ := NewTokens([]StaticToken{{Name: "alice", Token: staticToken}})
	_, j := newJWT(t, nil)
	for _, tt := range []struct {
		o    WaysOptions
		want Authenticator
	}{{WaysOptions{}, None}, {WaysOptions{Tokens: tokens}, tokens}, {WaysOptions{Issuers: j}, j}, {WaysOptions{MTLS: &MTLS{SPIFFE: true}}, MTLS{SPIFFE: true}}} {
		if got := NewWays(tt.o); got != tt.want {
			t.Errorf("NewWays(%+v) = %T, want %T", tt.o, got, tt.want)
		}
	}
	_, a := allWays(t)
	if err := TokensOf(a).Replace([]StaticToken{{Name: "carol", Token: "another-static-token"}}); err != nil {
		t.Fatal(err)
	}
	refused(t, a, sending(staticToken), "unknown token")
	if id := accepted(t, a, sending("another-static-token")); id.Principal != "carol" {
		t.Errorf("principal = %s", id.Principal)
	}
	if TokensOf(j) != nil || TokensOf(MTLS{}) != nil {
		t.Error("what has no tokens has some")
	}
}

// Another replica is believed about a certificate alone, which it has seen on a connection, and
// never where there is a token that can be looked at here.
func TestVouchedFor(t *testing.T) {
	_, a := allWays(t)
	cert, user := &mcp.Identity{Principal: "mtls:dns:a"}, &mcp.Identity{Principal: "alice"}
	for _, tt := range []struct {
		name string
		a    Authenticator
		r    *http.Request
		id   *mcp.Identity
		want bool
	}{
		{"a certificate", a, sending(""), cert, true}, {"a certificate and a token", a, sending(staticToken), cert, false},
		{"a principal of another way", a, sending(""), user, false}, {"nobody", a, sending(""), nil, false},
		{"certificates alone", MTLS{}, sending(""), &mcp.Identity{Principal: "dns:a"}, true}, {"nobody where there are certificates alone", MTLS{}, sending(""), nil, false},
		{"no certificates", None, sending(""), cert, false},
	} {
		if got := MayBeVouchedFor(tt.a, tt.r, tt.id); got != tt.want {
			t.Errorf("%s = %v, want %v", tt.name, got, tt.want)
		}
	}
}
