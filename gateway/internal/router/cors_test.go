package router

import (
	"net/http"
	"strings"
	"testing"
)

// TestPreflight asks as browsers do. No credentials and no era are needed, and only
// pages that may be served learn more than that.
func TestPreflight(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.AllowedOrigins = []string{"https://app.example"} })
	all := "Content-Type, Accept, Authorization, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-Id"
	for _, tt := range []struct {
		name, path, origin, host, asked string

		status  int
		headers string // of Access-Control-Allow-Headers; empty if the page may read nothing
	}{
		{"loopback page", "/mcp/peer", "http://localhost:6274", "", "", 204, all},
		{"whatever the era", "/mcp/peer", "http://localhost:6274", "", "mcp-protocol-version", 204, "mcp-protocol-version"},
		{"IPv4", "/mcp/peer", "https://127.0.0.1", "", "content-type,mcp-method", 204, "content-type, mcp-method"},
		{"IPv6", "/mcp", "http://[::1]:80", "", "authorization, Mcp-Param-Region", 204, "authorization, Mcp-Param-Region"},
		{"no such server", "/mcp/other", "http://localhost:1", "", "accept", 204, "accept"},
		{"HTTP+SSE", "/message/peer", "http://localhost:1", "", "content-type", 204, "content-type"},
		{"configured origin", "/mcp/peer", "https://app.example", "", "accept", 204, "accept"},
		{"headers that do not fit are left out", "/mcp/peer", "http://localhost:1", "", "cookie, accept, mcp-param-a b, x-admin, mcp-session-id", 204, "accept, mcp-session-id"},
		{"no page", "/mcp/peer", "", "", "", 204, ""},
		{"F-08 foreign page", "/mcp/peer", "https://evil.example", "", "accept", 403, ""},
		{"F-08 a name that only looks like loopback", "/mcp/peer", "http://localhost.evil.example", "", "accept", 403, ""},
		{"F-08 Origin null", "/mcp/peer", "null", "", "accept", 403, ""},
		{"F-08 another scheme", "/mcp/peer", "file://localhost", "", "accept", 403, ""},
		{"F-08 name rebound to loopback", "/mcp/peer", "http://localhost:1", "evil.example", "accept", 403, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			for name, value := range map[string]string{"Origin": tt.origin, "Access-Control-Request-Headers": tt.asked, "Mcp-Protocol-Version": "2026-07-28"} {
				if value != "" {
					h.Set(name, value)
				}
			}
			got := r.sendTo(t, http.MethodOptions, tt.path, "", tt.host, h)
			if got.status != tt.status {
				t.Fatalf("%d %s, want %d", got.status, got.body, tt.status)
			}
			if allow := got.header.Get("Access-Control-Allow-Headers"); allow != tt.headers {
				t.Errorf("Access-Control-Allow-Headers = %q, want %q", allow, tt.headers)
			}
			if tt.headers != "" && got.header.Get("Access-Control-Allow-Methods") != "GET, POST, DELETE" {
				t.Errorf("Access-Control-Allow-Methods = %q", got.header.Get("Access-Control-Allow-Methods"))
			}
			wantShared(t, got, tt.origin, tt.headers != "")
		})
	}
}

// wantShared holds that a page of origin may read the response, or that none may.
func wantShared(t *testing.T, got answer, origin string, shared bool) {
	t.Helper()
	if !shared {
		if got.status == 204 && got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("Access-Control-Allow-Origin = %q, want none", got.header.Get("Access-Control-Allow-Origin"))
		}
		return
	}
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":   origin,
		"Access-Control-Expose-Headers": "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate",
	} {
		if v := got.header.Get(name); v != want {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
	if vary := strings.Join(got.header.Values("Vary"), ", "); !strings.Contains(vary, "Origin") {
		t.Errorf("Vary = %q, want Origin in it", vary)
	}
}

// TestPagesReadAnswers holds that a page may read what it is answered, refusals as
// well as results and streams, and a foreign one nothing.
func TestPagesReadAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.answer("tools/list", `{"tools":[]}`)
	page := func(h http.Header) http.Header { h.Set("Origin", "http://localhost:6274"); return h }
	legacy := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	initialize := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	for _, tt := range []struct {
		name, path, body string
		header           http.Header
		status           int
	}{
		{"result", "/mcp/peer", modernBody("1", "tools/list", ""), modernHeaders("tools/list", ""), 200},
		{"session", "/mcp/peer", initialize, legacy.Clone(), 200},
		{"refusal", "/mcp/peer", "hello", legacy.Clone(), 400},
		{"no such server", "/mcp/other", "{}", legacy.Clone(), 404},
		{"nothing there", "/elsewhere", "{}", legacy.Clone(), 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := r.sendTo(t, http.MethodPost, tt.path, tt.body, "", page(tt.header))
			if got.status != tt.status {
				t.Fatalf("%d %s, want %d", got.status, got.body, tt.status)
			}
			wantShared(t, got, "http://localhost:6274", true)
		})
	}
	foreign := modernHeaders("tools/list", "")
	foreign.Set("Origin", "https://evil.example")
	got := r.sendTo(t, http.MethodPost, "/mcp/peer", modernBody("1", "tools/list", ""), "", foreign)
	if origin := got.header.Get("Access-Control-Allow-Origin"); got.status != 403 || origin != "" {
		t.Errorf("foreign page: %d, Access-Control-Allow-Origin = %q, want 403 and none", got.status, origin)
	}
	plain := r.sendTo(t, http.MethodPost, "/mcp/peer", modernBody("1", "tools/list", ""), "", modernHeaders("tools/list", ""))
	if plain.status != 200 || plain.header.Get("Access-Control-Allow-Origin") != "" || plain.header.Get("Vary") != "" {
		t.Errorf("no page: %d %v, want 200 without a word about pages", plain.status, plain.header)
	}
}
