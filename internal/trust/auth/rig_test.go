package auth

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/issuertest"
	"github.com/mcpbridge/mcpbridge/internal/trust/fetch"
)

func TestMain(m *testing.M) { os.Exit(bridgetest.Main(m)) }

// endpoint returns the endpoint with a public URL.
func endpoint(t testing.TB, url string) *Endpoint {
	t.Helper()
	e, err := NewEndpoint(url)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const resource = "https://mcp.example.com/mcp/notes"

// newJWT returns an issuer, and what accepts its tokens.
func newJWT(t testing.TB, change func(*JWTOptions)) (*issuertest.Issuer, *JWT) {
	t.Helper()
	i := issuertest.New(t)
	o := JWTOptions{Issuer: i.URL, Client: fetch.New(fetch.Options{Near: []string{i.URL}})}
	if change != nil {
		change(&o)
	}
	j, err := NewJWT(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return i, j
}

// sending returns a request with a token.
func sending(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp/notes", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}
