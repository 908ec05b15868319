package auth

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

// twoIssuers returns two issuers, and what accepts the tokens of both.
func twoIssuers(t testing.TB, change func(a, b *JWTOptions)) (a, b *issuertest.Issuer, s *Issuers) {
	t.Helper()
	a, b = issuertest.New(t), issuertest.New(t)
	first := JWTOptions{Issuer: a.URL, Client: fetch.New(fetch.Options{Near: []string{a.URL}})}
	second := JWTOptions{Issuer: b.URL, Client: fetch.New(fetch.Options{Near: []string{b.URL}})}
	if change != nil {
		change(&first, &second)
	}
	j, err := NewJWT(first)
	k, err2 := NewJWT(second)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if s, err = NewIssuers(j, k); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return a, b, s
}

func accepted(t *testing.T, a Authenticator, r *http.Request) *mcp.Identity {
	t.Helper()
	id, err := a.Authenticate(r, endpoint(t, resource))
	if err != nil {
		t.Fatalf("Authenticate() = %v, want the request accepted", err)
	}
	return id
}

func refused(t *testing.T, a Authenticator, r *http.Request, reason string) *Refusal {
	t.Helper()
	id, err := a.Authenticate(r, endpoint(t, resource))
	var refusal *Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, reason) {
		t.Fatalf("Authenticate() = %+v, %v, want it refused: %s", id, err, reason)
	}
	return refusal
}

// The same subject of two issuers is two principals, and each token is what its issuer says.
func TestSubjectOfTwoIssuers(t *testing.T) {
	a, b, s := twoIssuers(t, nil)
	one, two := accepted(t, s, sending(a.Token(resource, nil))), accepted(t, s, sending(b.Token(resource, nil)))
	if one.Subject != two.Subject || one.Principal == two.Principal || one.Principal != mcp.Principal(a.URL+" ada") || two.Issuer != b.URL {
		t.Errorf("identities = %+v, %+v, want those of two principals", one, two)
	}
	token := a.Token(resource, map[string]any{"sub": "bob"})
	first := accepted(t, s, sending(token))
	if again := accepted(t, s, sending(token)); again != first {
		t.Error("a token is verified twice")
	}
}

// Confused deputy: an issuer that is trusted for its own users speaks for those of another, by
// any name, key or id of a key.
func TestIssuerSpeaksForAnother(t *testing.T) {
	a, b, s := twoIssuers(t, func(a, b *JWTOptions) { b.Introspection = &Introspection{"gateway", "secret"} })
	typ := map[jose.HeaderKey]any{"typ": "at+jwt"}
	sign := func(k issuertest.Key, claims map[string]any) string { return issuertest.Sign(t, k, typ, claims) }
	accepted(t, s, sending(a.Token(resource, nil)))
	accepted(t, s, sending(b.Token(resource, nil)))
	for name, token := range map[string]string{
		"B's key under the name of A, with the same id": sign(b.Key(), a.Claims(resource, nil)),
		"A's key under the name of B, with the same id": sign(a.Key(), b.Claims(resource, nil)),
		"B's key under the name of A, with its own id":  sign(issuertest.Key{ID: "b", Algorithm: "ES256", Private: b.Key().Private}, a.Claims(resource, nil)),
		"B's key under the name of A, without an id":    sign(issuertest.Key{Algorithm: "ES256", Private: b.Key().Private}, a.Claims(resource, nil)),
		"a third issuer":            issuertest.New(t).Token(resource, nil),
		"the name of neither":       sign(a.Key(), a.Claims(resource, map[string]any{"iss": "https://id.example.com"})),
		"no issuer":                 sign(a.Key(), a.Claims(resource, map[string]any{"iss": nil})),
		"both names":                sign(b.Key(), b.Claims(resource, map[string]any{"iss": []string{a.URL, b.URL}})),
		"A's name with a slash":     sign(a.Key(), a.Claims(resource, map[string]any{"iss": a.URL + "/"})),
		"A's name in another case":  sign(a.Key(), a.Claims(resource, map[string]any{"iss": strings.ToUpper(a.URL)})),
		"another spelling of iss":   sign(b.Key(), b.Claims(resource, map[string]any{"ISS": a.URL})),
		"no issuer but one in ISS":  sign(b.Key(), b.Claims(resource, map[string]any{"iss": nil, "ISS": b.URL})),
		"no claims":                 "a.b.c",
		"claims that are no object": "e30.W10.c",
	} {
		t.Run(name, func(t *testing.T) {
			id, err := s.Authenticate(sending(token), endpoint(t, resource))
			if name == "another spelling of iss" && err == nil && id.Issuer == b.URL {
				return // which is B's own
			}
			if !errors.As(err, new(*Refusal)) {
				t.Errorf("Authenticate() = %+v, %v, want it refused", id, err)
			}
		})
	}
	b.SetOpaque("of-a", inspected(map[string]any{"iss": a.URL}))
	refused(t, s, sending("of-a"), "issuer")
	b.SetOpaque("unnamed", inspected(nil))
	if id := accepted(t, s, sending("unnamed")); id.Principal != mcp.Principal(b.URL+" ada") {
		t.Errorf("what B says of a token without an issuer is of %q, want B's", id.Principal)
	}
}

// Two issuers with one key, as tenants of Microsoft Entra ID have, are two all the same, and a
// third with that key is nobody's.
func TestIssuersWithOneKey(t *testing.T) {
	a, b, s := twoIssuers(t, nil)
	b.SetKeys(a.Key())
	one, two := accepted(t, s, sending(a.Token(resource, nil))), accepted(t, s, sending(b.Token(resource, nil)))
	if one.Principal == two.Principal {
		t.Errorf("both are %s", one.Principal)
	}
	other := issuertest.New(t)
	other.SetKeys(a.Key())
	refused(t, s, sending(other.Token(resource, nil)), "issuer")
}

// An opaque token is sent to the one issuer that is asked about such, whatever it says, and a
// JWT to none.
func TestOpaqueTokenGoesToOneIssuer(t *testing.T) {
	a, b, s := twoIssuers(t, func(_, b *JWTOptions) { b.Introspection = &Introspection{"gateway", "secret"} })
	b.SetOpaque("t", inspected(nil))
	for _, token := range []string{"t", "invented"} {
		_, _ = s.Authenticate(sending(token), endpoint(t, resource))
	}
	accepted(t, s, sending(a.Token(resource, nil)))
	refused(t, s, sending("a.b.c"), "issuer")
	if asked := a.Fetched("/introspect"); asked != 0 || b.Fetched("/introspect") != 2 {
		t.Errorf("A was asked %d times, B %d times, want never and twice", asked, b.Fetched("/introspect"))
	}
	j, err := NewJWT(JWTOptions{Issuer: a.URL, Client: fetch.New(fetch.Options{Near: []string{a.URL}}), Introspection: &Introspection{"x", "y"}})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := NewIssuers(j, s.opaque); err == nil {
		t.Error("two issuers that are asked about tokens were taken")
	}
	if _, err := NewIssuers(j, j); err == nil {
		t.Error("an issuer was taken twice")
	}
	_, _, none := twoIssuers(t, nil)
	refused(t, none, sending("t"), "no introspection")
}

// What one issuer may write is nothing that another may: its algorithms, types, audiences and
// scopes are its own.
func TestOptionsAreOfOneIssuer(t *testing.T) {
	a, b, s := twoIssuers(t, func(a, b *JWTOptions) {
		a.Scopes, a.Algorithms = []string{"mcp:use"}, []string{"ES256"}
		b.Audiences, b.Types, b.Scopes, b.Algorithms = []string{"api"}, []string{"JWT", Untyped}, []string{"b:use"}, []string{"RS256"}
	})
	rsa := issuertest.NewKey(t, "r", "RS256")
	b.SetKeys(rsa)
	jwt := map[jose.HeaderKey]any{"typ": "JWT"}
	ofB := map[string]any{"scope": "b:use"}
	accepted(t, s, sending(issuertest.Sign(t, rsa, jwt, b.Claims("api", ofB))))
	accepted(t, s, sending(issuertest.Sign(t, rsa, nil, b.Claims("api", ofB))))
	refused(t, s, sending(a.Token("api", nil)), "aud")
	refused(t, s, sending(issuertest.Sign(t, a.Key(), jwt, a.Claims(resource, nil))), "typ")
	refused(t, s, sending(issuertest.Sign(t, a.Key(), nil, a.Claims(resource, nil))), "no typ")
	refused(t, s, sending(b.Token(resource, ofB)), `typ is "at+jwt"`)
	ec := issuertest.NewKey(t, "e", "ES256")
	b.SetKeys(rsa, ec)
	refused(t, s, sending(issuertest.Sign(t, ec, jwt, b.Claims("api", ofB))), "algorithms")
	if r := refused(t, s, sending(issuertest.Sign(t, rsa, jwt, b.Claims("api", nil))), "scopes"); len(r.Scopes) != 1 || r.Scopes[0] != "b:use" {
		t.Errorf("B's client is told to ask for %q, want B's scope", r.Scopes)
	}
	if r := refused(t, s, sending(""), "no credential"); len(r.Scopes) != 1 || r.Scopes[0] != "mcp:use" {
		t.Errorf("without a token the scopes are %q, want those of the first issuer", r.Scopes)
	}
	var m struct {
		Servers []string `json:"authorization_servers"`
		Scopes  []string `json:"scopes_supported"`
	}
	if err := json.Unmarshal(s.Metadata(endpoint(t, resource)), &m); err != nil || len(m.Servers) != 2 || m.Servers[0] != a.URL || m.Servers[1] != b.URL || m.Scopes[0] != "mcp:use" {
		t.Errorf("metadata = %+v, %v", m, err)
	}
}

// An issuer that is away takes nothing from the users of another.
func TestOneIssuerIsAway(t *testing.T) {
	a, b, s := twoIssuers(t, nil)
	b.Override(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	accepted(t, s, sending(a.Token(resource, nil)))
	if _, err := s.Authenticate(sending(b.Token(resource, nil)), endpoint(t, resource)); err == nil || errors.As(err, new(*Refusal)) {
		t.Errorf("B's token = %v, want what is no refusal", err)
	}
	accepted(t, s, sending(a.Token(resource, map[string]any{"jti": "2"})))
}

// What is open is verified by its own issuer alone.
func TestOpenStreamsOfTwoIssuers(t *testing.T) {
	a, b, s := twoIssuers(t, nil)
	one, two := accepted(t, s, sending(a.Token(resource, nil))), accepted(t, s, sending(b.Token(resource, nil)))
	b.SetKeys(issuertest.NewKey(t, "k2", "ES256"))
	s.all[1].keys.age(refreshAfter)
	accepted(t, s, sending(b.Token(resource, map[string]any{"jti": time.Now().String()})))
	if err := two.Verify(t.Context()); err == nil {
		t.Error("Verify() = nil, want B's withdrawn key to end what it has opened")
	}
	if err := one.Verify(t.Context()); err != nil {
		t.Errorf("A's = %v", err)
	}
}

// A name of an issuer that ends where a principal has its subject would make two principals one.
func TestIssuerWithASpace(t *testing.T) {
	for _, name := range []string{"https://id.example.com/a b", "https://id.example.com/ada\t", "https://id.example.com/ä"} {
		if j, err := NewJWT(JWTOptions{Issuer: name, Client: fetch.New(fetch.Options{})}); err == nil {
			j.Close()
			t.Errorf("the issuer %q was taken", name)
		}
	}
}
