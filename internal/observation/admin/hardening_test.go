package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whoever has not exactly the token learns whether the process is well, and nothing else.
func TestHardeningToken(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "counted") })
	source := fixed{Servers: []Server{{Name: "a", State: Down, Reason: "10.1.2.3: connection refused"}}}
	h, err := NewHandler(Options{Source: source, Metrics: metrics, Token: "the-admin-token-1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		headers []string
		allowed bool
	}{
		{"the token", []string{"Bearer the-admin-token-1"}, true},
		{"the scheme in lower case", []string{"bearer the-admin-token-1"}, true},
		{"none", nil, false},
		{"empty", []string{""}, false},
		{"empty token", []string{"Bearer "}, false},
		{"a prefix", []string{"Bearer the-admin-token-"}, false},
		{"more", []string{"Bearer the-admin-token-11"}, false},
		{"another scheme", []string{"Basic the-admin-token-1"}, false},
		{"no scheme", []string{"the-admin-token-1"}, false},
		{"two headers", []string{"Bearer the-admin-token-1", "Bearer the-admin-token-1"}, false},
		{"two tokens", []string{"Bearer the-admin-token-1, Bearer x"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			get := func(path string) (int, string) {
				r := httptest.NewRequest("GET", path, nil)
				r.Header["Authorization"] = tt.headers
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Code, w.Body.String()
			}
			if code, body := get("/metrics"); (code == 200) != tt.allowed || (code == 401) == tt.allowed || !tt.allowed && strings.Contains(body, "counted") {
				t.Errorf("/metrics = %d %q, want it allowed: %v", code, body, tt.allowed)
			}
			if code, body := get("/readyz"); code != 200 || strings.Contains(body, "10.1.2.3") != tt.allowed {
				t.Errorf("/readyz = %d %s, want the servers in it: %v", code, body, tt.allowed)
			}
			if code, body := get("/healthz"); code != 200 || body != "{\"status\":\"ok\"}\n" {
				t.Errorf("/healthz = %d %s", code, body)
			}
		})
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics?access_token=the-admin-token-1", nil))
	if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("a token in the query = %d, %v, want 401 with a challenge", w.Code, w.Header())
	}
}
