// Package issuertest is an issuer of access tokens for tests: it publishes metadata and
// keys, and signs whatever a test wants.
package issuertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A Key is one of an issuer's.
type Key struct {
	ID, Algorithm string
	Private       crypto.Signer
}

// NewKey returns a new key for ES256 or RS256.
func NewKey(t testing.TB, id, algorithm string) Key {
	t.Helper()
	var private crypto.Signer
	var err error
	if algorithm == "RS256" {
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, algorithm, private}
}

// An Issuer is an issuer on loopback.
type Issuer struct {
	*httptest.Server
	t testing.TB

	// mu guards the fields below.
	mu       sync.Mutex
	keys     []Key
	override http.HandlerFunc
	fetched  map[string]int
	opaque   map[string]map[string]any
}

// New returns an issuer with one key, for ES256. It ends with the test.
func New(t testing.TB) *Issuer {
	i := &Issuer{t: t, keys: []Key{NewKey(t, "k1", "ES256")}, fetched: make(map[string]int), opaque: make(map[string]map[string]any)}
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

// SetKeys replaces the keys that are published; the first signs.
func (i *Issuer) SetKeys(keys ...Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// Key returns the key that signs.
func (i *Issuer) Key() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[0]
}

// Override has h answer everything; nil ends that.
func (i *Issuer) Override(h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.override = h
}

// Fetched returns how often a path was asked for.
func (i *Issuer) Fetched(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetched[path]
}

// SetOpaque sets what introspection says of a token; nil is that it is not active.
func (i *Issuer) SetOpaque(token string, claims map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opaque[token] = claims
}

// ServeHTTP implements [http.Handler].
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.fetched[r.URL.Path]++
	override := i.override
	claims := i.opaque[r.PostFormValue("token")]
	i.mu.Unlock()
	switch {
	case override != nil:
		override(w, r)
	case r.URL.Path == "/.well-known/openid-configuration":
		write(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "introspection_endpoint": i.URL + "/introspect"})
	case r.URL.Path == "/keys":
		i.ServeKeys(w, r)
	case r.URL.Path == "/introspect":
		i.introspect(w, r, claims)
	default:
		http.NotFound(w, r)
	}
}

// ServeKeys serves the keys.
func (i *Issuer) ServeKeys(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	write(w, public(i.keys))
}

// introspect answers clients that prove who they are.
func (i *Issuer) introspect(w http.ResponseWriter, r *http.Request, claims map[string]any) {
	if id, secret, ok := r.BasicAuth(); !ok || id != "gateway" || secret != "secret" || r.Header.Get("Accept") != "application/json" {
		http.Error(w, "who?", http.StatusUnauthorized)
		return
	}
	answer := map[string]any{"active": claims != nil}
	maps.Copy(answer, claims)
	write(w, answer)
}

func public(keys []Key) jose.JSONWebKeySet {
	var set jose.JSONWebKeySet
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: k.Algorithm, Use: "sig"})
	}
	return set
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who asked has gone if it fails
}

// Claims are those of a token of ada for a resource, for an hour, with changes; a nil one
// removes a claim.
func (i *Issuer) Claims(resource string, changes map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{"iss": i.URL, "sub": "ada", "aud": resource, "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "scope": "mcp:use"}
	for name, v := range changes {
		if c[name] = v; v == nil {
			delete(c, name)
		}
	}
	return c
}

// Token returns a token with those claims, signed by the first key.
func (i *Issuer) Token(resource string, changes map[string]any) string {
	i.t.Helper()
	return Sign(i.t, i.Key(), map[jose.HeaderKey]any{"typ": "at+jwt"}, i.Claims(resource, changes))
}

// Sign returns a token, signed by a key.
func Sign(t testing.TB, k Key, header map[jose.HeaderKey]any, claims map[string]any) string {
	t.Helper()
	o := &jose.SignerOptions{}
	for name, v := range header {
		o.WithHeader(name, v)
	}
	if k.ID != "" {
		o.WithHeader("kid", k.ID)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(k.Algorithm), Key: k.Private}, o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
