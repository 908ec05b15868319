package router

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// chrome is what a browser accepts of a page that a person opens.
const chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"

// Whoever opens an endpoint in a browser reads what it is, and what to put where.
func TestVisitPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for path, url := range map[string]string{"/mcp/peer": "/mcp/peer", "/mcp/peer/": "/mcp/peer", "/mcp": "/mcp", "/sse/peer": "/mcp/peer"} {
		got := r.sendTo(t, http.MethodGet, path, "", "", http.Header{"Accept": {chrome}})
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Fatalf("%s = %d %v %s, want a page", path, got.status, got.header, got.body)
		}
		for _, want := range []string{
			"<title>peer: an MCP endpoint of mcpbridge</title>", "mcpbridge serves the server peer here",
			"\n  " + r.URL + url + "\n", "mcpbridge ls " + r.URL + url + "\n", `"peer": {"type": "http", "url": "` + r.URL + url + `"}`,
			`{"command": "mcpbridge", "args": ["wrap", "` + r.URL + url + `"]}`, "\n  " + r.URL + "/sse/peer\n",
		} {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s = %s, want %q in it", path, got.body, want)
			}
		}
		csp := got.header.Get("Content-Security-Policy")
		if csp != "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" || strings.Contains(got.body, "<script") || got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, got.header)
		}
		if strings.Contains(got.body, "credentials") {
			t.Errorf("%s: nobody needs credentials: %s", path, got.body)
		}
		head := r.sendTo(t, http.MethodHead, path, "", "", http.Header{"Accept": {chrome}})
		if head.status != http.StatusOK || head.body != "" || head.header.Get("Content-Length") != got.header.Get("Content-Length") {
			t.Errorf("HEAD %s = %d %v %q", path, head.status, head.header, head.body)
		}
	}
	if got := r.sendTo(t, http.MethodGet, "/mcp/peer", "", "", http.Header{"Accept": {chrome}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Prefix": {"/<b>"}}); !strings.Contains(got.body, "https://"+strings.TrimPrefix(r.URL, "http://")+"/&lt;b&gt;/mcp/peer") || strings.Contains(got.body, "<b>") {
		t.Errorf("behind a proxy = %s", got.body)
	}
}

// What clients send is answered as ever: only the page is new.
func TestVisitIsNoClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for name, h := range map[string]http.Header{
		"no Accept": {}, "both": {"Accept": {"application/json, text/event-stream"}}, "a session": {"Accept": {chrome}, "Mcp-Session-Id": {"x"}},
		"a revision": {"Accept": {chrome}, "Mcp-Protocol-Version": {"2025-06-18"}}, "an event": {"Accept": {chrome}, "Last-Event-Id": {"1"}},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			got := r.sendTo(t, method, "/mcp/peer", "", "", h.Clone())
			if got.status < 400 || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s = %d %v %s, want what clients get", method, name, got.status, got.header, got.body)
			}
		}
	}
	for method, path := range map[string]string{http.MethodPost: "/mcp/peer", http.MethodDelete: "/mcp/peer", http.MethodPut: "/mcp/peer", http.MethodGet: "/message/peer"} {
		if got := r.sendTo(t, method, path, "", "", http.Header{"Accept": {chrome}}); got.status < 400 || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s = %d %v, want an error", method, path, got.status, got.header)
		}
	}
}

// The page tells nothing to who may not send requests, and names the URL by which clients know
// the endpoint.
func TestVisitAfterAuth(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	got := g.sendTo(t, http.MethodGet, "/mcp/peer", "", "", http.Header{"Accept": {chrome}})
	if got.status != http.StatusUnauthorized || got.header.Get("Content-Type") != "application/json" || strings.Contains(got.body, "peer") {
		t.Errorf("without a credential = %d %v %s, want 401", got.status, got.header, got.body)
	}
	got = g.sendTo(t, http.MethodGet, "/mcp/peer", "", "", http.Header{"Accept": {chrome}, "Authorization": {"Bearer " + g.issuer.Token(resource, nil)}})
	if got.status != http.StatusOK || !strings.Contains(got.body, "\n  "+resource+"\n") || !strings.Contains(got.body, "Requests need credentials") || strings.Contains(got.body, "HTTP+SSE") {
		t.Errorf("with one = %d %s, want a page with %s", got.status, got.body, resource)
	}
	evil := newRig(t, func(o *Options) { o.Auth = auth.None })
	if got := evil.sendTo(t, http.MethodGet, "/mcp/peer", "", "evil.example", http.Header{"Accept": {chrome}}); got.status != http.StatusForbidden || strings.Contains(got.body, "peer") {
		t.Errorf("under a foreign Host = %d %s, want 403", got.status, got.body)
	}
}
