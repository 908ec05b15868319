package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Whoever may reload has the token, and is no page of another origin.
func TestHardeningReload(t *testing.T) {
	reloads := 0
	h, err := NewHandler(Options{
		Source: fixed{}, Metrics: http.NotFoundHandler(), Token: "the-admin-token-1",
		Reload:     http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reloads++; _, _ = io.WriteString(w, "done") }),
		LastReload: func() any { return map[string]bool{"ok": false} },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, method, token, origin, site string
		code                              int
	}{
		{"with the token", "POST", "the-admin-token-1", "", "", 200},
		{"from the page", "POST", "the-admin-token-1", "http://127.0.0.1:2527", "same-origin", 200},
		{"without it", "POST", "", "", "", 401},
		{"another one", "POST", "the-admin-token-2", "", "", 401},
		{"from another site", "POST", "the-admin-token-1", "https://evil.example", "cross-site", 403},
		{"from another site, by an old browser", "POST", "the-admin-token-1", "https://evil.example", "", 403},
		{"GET", "GET", "the-admin-token-1", "", "", 405},
	} {
		before := reloads
		r := httptest.NewRequest(tt.method, "http://127.0.0.1:2527/reload", nil)
		for name, value := range map[string]string{"Authorization": "Bearer " + tt.token, "Origin": tt.origin, "Sec-Fetch-Site": tt.site} {
			if value != "" && value != "Bearer " {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != tt.code || (reloads > before) != (tt.code == 200) {
			t.Errorf("%s: %d, %d reloads, want %d", tt.name, w.Code, reloads-before, tt.code)
		}
	}
	for token, want := range map[string]bool{"the-admin-token-1": true, "": false} {
		r := httptest.NewRequest("GET", "/readyz", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); strings.Contains(w.Body.String(), `"reload":{"ok":false}`) != want {
			t.Errorf("/readyz with token %q = %s, want the last reload in it: %v", token, w.Body, want)
		}
	}
}
