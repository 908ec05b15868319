package origin

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What stands on this machine alone is served under its names, and what others reach under every
// address: never under a name that somebody else has.
func TestHardeningGuard(t *testing.T) {
	loopback, everywhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7)}
	hosts := Hosts{Machine: "box.example.net", Allowed: []string{"mcp.example.com"}}
	guarded := hosts.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	for _, tt := range []struct {
		host        string
		here, there bool // is served by a listener on loopback, and by another one
	}{
		{"localhost:2527", true, true}, {"LOCALHOST", true, true}, {"127.0.0.1:2527", true, true}, {"[::1]:2527", true, true},
		{"mcp.example.com:443", true, true}, {"MCP.example.com", true, true},
		{"192.0.2.7", false, true}, {"[2001:db8::1]:80", false, true}, {"", false, true},
		{"box.example.net:2527", false, true}, {"box", false, true}, {"box.local", false, true},
		{"evil.example:2527", false, false}, {"box.example.com", false, false}, {"localhost.evil.example", false, false},
		{"mcp.example.com.evil.example", false, false}, {"127.0.0.1.evil.example", false, false},
	} {
		for local, want := range map[*net.TCPAddr]bool{loopback: tt.here, everywhere: tt.there} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = tt.host
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
			w := httptest.NewRecorder()
			guarded.ServeHTTP(w, r)
			switch body := w.Body.String(); {
			case want && (w.Code != http.StatusOK || body != "served"):
				t.Errorf("Host %q at %v = %d %s, want what is guarded", tt.host, local, w.Code, body)
			case !want && (w.Code != http.StatusForbidden || !strings.Contains(body, "add it to allowed_hosts")):
				t.Errorf("Host %q at %v = %d %s, want 403, and what to do", tt.host, local, w.Code, body)
			}
		}
	}
}

// Pages of this machine and of the configured origins may send requests. An origin that is written in
// two ways, or twice, may have been checked in the other one.
func TestHardeningOrigins(t *testing.T) {
	p := &Policy{Allowed: []string{"https://app.example.com"}}
	for _, tt := range []struct {
		origins []string
		want    bool
	}{
		{nil, true}, {[]string{"https://app.example.com"}, true}, {[]string{"http://localhost:6274"}, true}, {[]string{"https://127.0.0.1"}, true}, {[]string{"http://[::1]:80"}, true},
		{[]string{"https://app.example.com:444"}, false}, {[]string{"http://app.example.com"}, false}, {[]string{"https://evil.example"}, false},
		{[]string{"null"}, false}, {[]string{"http://localhost.evil.example"}, false}, {[]string{"http://localhost/"}, false}, {[]string{"http://x@localhost"}, false},
		{[]string{"ftp://localhost"}, false}, {[]string{"http://localhost", "https://evil.example"}, false}, {[]string{"http://localhost", "http://localhost"}, false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header["Origin"] = tt.origins
		if got := p.Allow(r); got != tt.want {
			t.Errorf("Allow(%q) = %v, want %v", tt.origins, got, tt.want)
		}
	}
}
