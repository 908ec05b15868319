package replicas

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// publicURL is what clients would know the replicas by; access tokens are for it.
const publicURL = "https://mcp.example.com"

// An issuer signs access tokens.
type issuer struct {
	t   *testing.T
	url string
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	point, err := key.PublicKey.Bytes() // 4, X, Y
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	serve := func(path string, v any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v) // the replica is gone if this fails
		})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	i.url = s.URL
	serve("/.well-known/oauth-authorization-server", map[string]string{"issuer": i.url, "jwks_uri": i.url + "/keys"})
	serve("/keys", map[string]any{"keys": []any{map[string]string{
		"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1", "x": encode(point[1:33]), "y": encode(point[33:65]),
	}}})
	return i
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token returns an access token of a subject for a server, which expires after d, as the
// header of a request.
func (i *issuer) token(subject, server string, d time.Duration) http.Header {
	i.t.Helper()
	now := time.Now()
	head, err := json.Marshal(map[string]string{"alg": "ES256", "typ": "at+jwt", "kid": "1"})
	if err != nil {
		i.t.Fatal(err)
	}
	claims, err := json.Marshal(map[string]any{"iss": i.url, "sub": subject, "aud": publicURL + "/mcp/" + server, "client_id": "c",
		"iat": now.Unix(), "exp": now.Add(d).Unix(), "jti": rand.Text()})
	if err != nil {
		i.t.Fatal(err)
	}
	text := encode(head) + "." + encode(claims)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		i.t.Fatal(err)
	}
	var both [64]byte
	r.FillBytes(both[:32])
	s.FillBytes(both[32:])
	return http.Header{"Authorization": {"Bearer " + text + "." + encode(both[:])}}
}
