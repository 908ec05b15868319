package admin

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzOwnOrigin reads any Origin: what is taken for this origin names this host and nothing
// else, neither a user nor a path.
func FuzzOwnOrigin(f *testing.F) {
	for _, origin := range []string{"http://127.0.0.1:1", "http://127.0.0.1:1@evil.example", "http://user@127.0.0.1:1", "http://127.0.0.1:1/", "//127.0.0.1:1", "null", "http://127.0.0.1:1?#"} {
		f.Add(origin, "127.0.0.1:1")
	}
	f.Fuzz(func(t *testing.T, origin, host string) {
		r := &http.Request{Method: http.MethodPost, Host: host, Header: http.Header{"Origin": {origin}}}
		if !ownOrigin(r) {
			return
		}
		scheme, rest, ok := strings.Cut(origin, "://")
		if !ok || rest != host || host == "" || strings.ContainsAny(scheme+host, "@/?#\\ \t") {
			t.Errorf("Origin %q is taken for that of %q", origin, host)
		}
	})
}
