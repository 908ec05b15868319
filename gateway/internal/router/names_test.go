package router

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// at posts to a path, with an Authorization header unless it is empty.
func (r *rig) at(t *testing.T, path, authorization string) answer {
	t.Helper()
	h := modernHeaders("tools/call", "a")
	if authorization != "" {
		h.Set("Authorization", authorization)
	}
	return r.sendTo(t, http.MethodPost, path, modernBody("1", "tools/call", `"name":"a"`), "", h)
}

// Where servers have metadata an unknown name is told at once, with and without a token: a
// client that got a 401 would log in to hear of a misspelling, and one that got a 503 would
// come again for ever. No server is named, and the issuer is not asked.
func TestF13UnknownNames(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	for _, path := range []string{
		"/mcp/other", "/mcp/other/", "/mcp/Peer", "/MCP/peer", "/mcp/peer%2F", "/mcp/peer/x", "/sse/other", "/message/other?sessionId=x", "/", "/favicon.ico",
	} {
		for _, authorization := range []string{"", "Bearer " + g.issuer.Token(resource, nil), "Bearer x"} {
			got := g.at(t, path, authorization)
			if got.status != http.StatusNotFound || got.code() != -32600 || got.header.Get("WWW-Authenticate") != "" || strings.Contains(got.body, "the servers are") {
				t.Errorf("%s with %.8q = %d %v %s, want 404 without a challenge that lists no servers", path, authorization, got.status, got.header, got.body)
			}
		}
	}
	if got := g.at(t, "/mcp/Peer", ""); !strings.Contains(got.body, `there is no server named \"Peer\"; check the name in the URL, in which capital letters count`) {
		t.Errorf("another case = %s, want what to check", got.body)
	}
	if n := g.issuer.Fetched("/keys"); n != 0 {
		t.Errorf("the issuer's keys were fetched %d times, want never", n)
	}
}

// A server that was removed is an unknown name, and so are all while there are several and
// none is named.
func TestF13RemovedServer(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	token := "Bearer " + g.issuer.Token(resource, nil)
	if got := g.at(t, "/mcp/peer", token); got.status != http.StatusOK {
		t.Fatalf("before = %d %s", got.status, got.body)
	}
	others := []ServerOptions{opened("a", "https://mcp.example.com/mcp/a"), opened("b", "https://mcp.example.com/mcp/b")}
	g.reload(t, Options{Auth: g.jwt, Servers: others})
	for _, path := range []string{"/mcp/peer", "/mcp", "/mcp/"} {
		for _, authorization := range []string{"", token} {
			if got := g.at(t, path, authorization); got.status != http.StatusNotFound || strings.Contains(got.body, "the servers are") {
				t.Errorf("%s with %.8q = %d %s, want 404 that lists no servers", path, authorization, got.status, got.body)
			}
		}
	}
}

// Where no metadata tells them, names are for those alone who may send requests.
func TestF13UnknownNamesWithoutMetadata(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewTokens([]auth.StaticToken{{Name: "alice", Token: "correct-horse-battery"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name          string
		auth          auth.Authenticator
		authorization string
		status        int
	}{
		{"tokens, and none", tokens, "", 401},
		{"tokens, and another", tokens, "Bearer wrong-horse-battery", 401},
		{"tokens, and one of them", tokens, "Bearer correct-horse-battery", 404},
		{"certificates, and none", auth.MTLS{}, "", 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Auth = tt.auth })
			for _, path := range []string{"/mcp/other", "/mcp/other/", "/mcp/Peer", "/"} {
				got := r.at(t, path, tt.authorization)
				if got.status != tt.status || strings.Contains(got.body, "the servers are [peer]") != (tt.status == 404) {
					t.Errorf("%s = %d %s, want %d", path, got.status, got.body, tt.status)
				}
			}
		})
	}
}

// A slash at the end is the endpoint: what is demanded there, and its metadata, are those of
// the endpoint, so that a token for it opens both.
func TestF13SlashAtTheEnd(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	g.peer.answer("tools/call", say("done"))
	token := "Bearer " + g.issuer.Token(resource, nil)
	for _, path := range []string{"/mcp/peer", "/mcp/peer/", "/mcp/p%65er/", "/mcp/"} {
		if got := g.at(t, path, token); got.status != http.StatusOK || !strings.Contains(got.body, "done") {
			t.Errorf("%s = %d %s, want the endpoint", path, got.status, got.body)
		}
		const where = `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp/peer"`
		if got := g.at(t, path, ""); got.status != http.StatusUnauthorized || !strings.Contains(got.header.Get("WWW-Authenticate"), where) {
			t.Errorf("%s without a token = %d %q, want 401 and %s", path, got.status, got.header.Get("WWW-Authenticate"), where)
		}
	}
	plain := g.sendTo(t, http.MethodGet, auth.WellKnown+"/mcp/peer", "", "", http.Header{})
	if got := g.sendTo(t, http.MethodGet, auth.WellKnown+"/mcp/peer/", "", "", http.Header{}); got.status != http.StatusOK || got.body != plain.body || !strings.Contains(got.body, `"`+resource+`"`) {
		t.Errorf("metadata with a slash = %d %s, want %s", got.status, got.body, plain.body)
	}
	c := g.openEvents(t, "/sse/peer/", http.Header{"Authorization": {token}})
	if got := c.post(hello); got.status != http.StatusAccepted {
		t.Errorf("a post to %s = %d %s, want 202", c.messages, got.status, got.body)
	}
}
