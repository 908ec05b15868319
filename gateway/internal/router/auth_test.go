package router

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// The challenge says where the metadata is and which scopes are needed, and the metadata
// has the public URL, byte for byte.
func TestA02ChallengeAndMetadata(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	got := g.call(t)
	const where = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp/peer"
	if want := `Bearer scope="mcp:use", resource_metadata="` + where + `"`; got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != want {
		t.Errorf("without a credential = %d %q, want 401 %q", got.status, got.header.Get("WWW-Authenticate"), want)
	}
	if got.code() != int64(spec.CodeInvalidRequest) {
		t.Errorf("its body is %s, want a JSON-RPC error", got.body)
	}
	for _, h := range []http.Header{nil, {"Authorization": {"Bearer x"}}, {"Mcp-Protocol-Version": {"2026-07-28"}}, {"Mcp-Protocol-Version": {"1"}}} {
		doc := g.sendTo(t, http.MethodGet, strings.TrimPrefix(where, "https://mcp.example.com"), "", "", cloned(h))
		var m struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
			Methods  []string `json:"bearer_methods_supported"`
		}
		if err := json.Unmarshal([]byte(doc.body), &m); err != nil || doc.status != http.StatusOK {
			t.Fatalf("metadata with %v = %d %s", h, doc.status, doc.body)
		}
		if m.Resource != resource || len(m.Servers) != 1 || m.Servers[0] != g.issuer.URL || strings.Join(m.Scopes, " ") != "mcp:use" || m.Methods[0] != "header" {
			t.Errorf("metadata = %s", doc.body)
		}
	}
	if got := g.sendTo(t, http.MethodGet, auth.WellKnown+"/mcp/other", "", "", http.Header{}); got.status != http.StatusNotFound || strings.Contains(got.body, "peer") {
		t.Errorf("metadata of another path = %d %s, want 404", got.status, got.body)
	}
	if got := g.sendTo(t, http.MethodOptions, "/mcp/peer", "", "", http.Header{}); got.status != http.StatusNoContent {
		t.Errorf("OPTIONS = %d, want 204 without a credential", got.status)
	}
}

func cloned(h http.Header) http.Header {
	if h == nil {
		return http.Header{}
	}
	return h.Clone()
}

// The metadata is where the path of the public URL says, and here, too.
func TestMetadataBehindAPrefix(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	r := newRig(t, func(o *Options) { o.Auth = g.jwt; o.Servers[0].PublicURL = "https://example.com/tools/peer" })
	for _, path := range []string{"/tools/peer", "/mcp/peer"} {
		if got := r.sendTo(t, http.MethodGet, auth.WellKnown+path, "", "", http.Header{}); !strings.Contains(got.body, `"https://example.com/tools/peer"`) {
			t.Errorf("metadata at %s = %d %s", path, got.status, got.body)
		}
	}
	if _, err := New(Options{Auth: g.jwt, Servers: []ServerOptions{opened("a", "https://example.com/x"), opened("b", "https://example.com/x")}}); err == nil {
		t.Error("two servers with one public URL were taken")
	}
}

func opened(name, url string) ServerOptions {
	return ServerOptions{Name: name, PublicURL: url, Open: func(mcp.Changes) (mcp.Back, error) { return &scopedBack{}, nil }}
}

// A token without the scopes of every request is refused with all of them.
func TestInsufficientScope(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, func(o *auth.JWTOptions) { o.Scopes = []string{"mcp:use", "mcp:more"} })
	got := g.call(t, "Bearer "+g.issuer.Token(resource, nil))
	challenge := got.header.Get("WWW-Authenticate")
	if got.status != http.StatusForbidden || !strings.Contains(challenge, `error="insufficient_scope"`) || !strings.Contains(challenge, `scope="mcp:use mcp:more"`) || !strings.Contains(challenge, "resource_metadata=") {
		t.Errorf("answer = %d %q, want 403 that names both scopes and the metadata", got.status, challenge)
	}
	if got := g.call(t, "Bearer "+g.issuer.Token(resource, map[string]any{"scope": nil, "scp": []string{"mcp:more", "x", "mcp:use"}})); got.status != http.StatusOK {
		t.Errorf("with scp = %d %s, want 200", got.status, got.body)
	}
}

// A scopedBack refuses every request for want of scopes.
type scopedBack struct {
	mcp.Back
	got []*mcp.Request
}

func (b *scopedBack) Start()                      {}
func (b *scopedBack) Era() spec.Era               { return spec.Modern }
func (b *scopedBack) Err() error                  { return nil }
func (b *scopedBack) Close(context.Context) error { return nil }
func (b *scopedBack) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return &mcp.Description{Capabilities: []byte(`{"tools":{}}`)}, nil
}
func (b *scopedBack) Serve(_ context.Context, req *mcp.Request, _ mcp.Caller) (*mcp.Result, error) {
	b.got = append(b.got, req)
	return nil, &mcp.Refusal{Err: wire.Errorf(spec.CodeInvalidRequest, "the token has not the scopes"), Scopes: []string{"files:write"}}
}

// What is refused for want of scopes further in becomes a challenge, in both eras.
func TestScopesSteppedUp(t *testing.T) {
	t.Parallel()
	g := newGuardedRig(t, nil)
	back := &scopedBack{}
	so := opened("peer", resource)
	so.Open = func(mcp.Changes) (mcp.Back, error) { return back, nil }
	gw, err := New(Options{Auth: g.jwt, Servers: []ServerOptions{so}})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{g: gw, Server: httptest.NewServer(gw)}
	t.Cleanup(func() { r.Close(); _ = gw.Close(context.Background()) })
	token := "Bearer " + g.issuer.Token(resource, nil)
	check := func(era string, got answer) {
		t.Helper()
		want := `Bearer error="insufficient_scope", scope="mcp:use files:write", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp/peer"`
		if challenge := got.header.Get("WWW-Authenticate"); got.status != http.StatusForbidden || challenge != want || !strings.Contains(got.body, `"id":1`) {
			t.Errorf("%s: answer = %d %q %s, want 403 %q", era, got.status, challenge, got.body, want)
		}
	}
	h := modernHeaders("tools/call", "a")
	h.Set("Authorization", token)
	check("modern", r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"a"`), h))
	h = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {token}}
	init := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`, h)
	h.Set("Mcp-Session-Id", init.header.Get("Mcp-Session-Id"))
	check("legacy", r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, h))
	for _, req := range back.got {
		if id := req.Identity; id == nil || id.Subject != "ada" || !id.HasScopes("mcp:use") || id.Token() == "" || req.Principal != mcp.Principal(g.issuer.URL+" ada") {
			t.Errorf("the server's request is of %+v, want ada's identity", req.Identity)
		}
	}
}

// A server may have a way of its own, and a static token is a principal's.
func TestOwnAuthOfAServer(t *testing.T) {
	t.Parallel()
	tokens, err := auth.NewTokens([]auth.StaticToken{{Name: "alice", Token: "correct-horse-battery"}, {Name: "bob", SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}})
	if err != nil {
		t.Fatal(err)
	}
	g := newGuardedRig(t, nil)
	r := newRig(t, func(o *Options) {
		o.Auth = g.jwt
		own := o.Servers[0]
		own.Name, own.Auth, own.PublicURL = "own", tokens, "https://mcp.example.com/mcp/own"
		open := o.Servers[0]
		open.Name, open.Auth = "open", auth.None
		o.Servers[0].PublicURL = resource
		o.Servers = append(o.Servers, own, open)
	})
	r.peer.answer("tools/call", say("done"))
	ask := func(server, authorization string) answer {
		h := modernHeaders("tools/call", "a")
		if authorization != "" {
			h.Set("Authorization", authorization)
		}
		return r.sendTo(t, http.MethodPost, "/mcp/"+server, modernBody("1", "tools/call", `"name":"a"`), "", h)
	}
	for _, tt := range []struct {
		server, authorization string
		status                int
	}{
		{"own", "Bearer correct-horse-battery", 200}, {"own", "bearer test", 200}, {"own", "Bearer correct-horse-batter", 401}, {"own", "", 401},
		{"own", "Bearer " + g.issuer.Token(resource, nil), 401}, {"peer", "Bearer correct-horse-battery", 401},
		{"peer", "Bearer " + g.issuer.Token(resource, nil), 200}, {"open", "", 200},
	} {
		if got := ask(tt.server, tt.authorization); got.status != tt.status {
			t.Errorf("%s with %q = %d %s, want %d", tt.server, tt.authorization, got.status, got.body, tt.status)
		}
	}
	if got := ask("own", ""); got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("the challenge of static tokens is %q, want one without metadata", got.header.Get("WWW-Authenticate"))
	}
	if got := len(r.peer.sent("initialize")); got != 4 {
		t.Errorf("%d upstream sessions, want one for each principal and server", got)
	}
}
