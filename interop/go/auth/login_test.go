package auth

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/steer"
	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// eras are the clients again, those of two eras as clients of each.
var eras = append(slices.Clone(clients),
	client{"typescript-2.4.0-legacy", func() []string { return node("node/remote-2.mjs", "legacy") }, "2025-11-25"},
	client{"python-2-legacy", func() []string {
		return []string{peer("bin/python-2/bin/python"), peer("python/client2.py"), "legacy"}
	}, "2025-11-25"},
)

// TestClientsLogIn takes each client, of both eras, to a server behind mcpbridge: it is
// refused, finds the authorization server by the metadata, becomes a client of it by its
// document or by registering, logs somebody in, and is served.
func TestClientsLogIn(t *testing.T) {
	takeTurn(t)
	as, b := newIssuer(t), newBrowser(t)
	bridge := protected(t, as)
	for _, c := range eras {
		for _, document := range []string{"", as.docs.id(c.name)} {
			way := "registers"
			if document != "" {
				way = "has a document"
			}
			t.Run(c.name+" "+way, func(t *testing.T) {
				before := len(as.events(t, "authorization.success", ""))
				s := c.begin(t)
				c.enter(t, s, bridge.endpoint("modern"), &remote.Login{Browser: b.as("alice"), Redirect: redirect, Document: document})
				got := as.events(t, "authorization.success", "")[before:]
				if len(got) != 1 {
					t.Fatalf("the client was authorized %d times, want once: %+v", len(got), got)
				}
				e := got[0]
				if e.Resource != bridge.endpoint("modern") || e.CodeChallengeMethod != "S256" || !slices.Contains(strings.Fields(e.Scope), "mcp:use") {
					t.Errorf("the client was authorized with %+v, want the resource %s, S256 and mcp:use", e, bridge.endpoint("modern"))
				}
				if (e.Client == document) != (document != "") {
					t.Errorf("the client is %s; its document is %q", e.Client, document)
				}
			})
		}
	}
}

// enter opens a session, and sees that the server is the one behind mcpbridge.
func (c *client) enter(t *testing.T, s *steer.Client, url string, l *remote.Login) {
	t.Helper()
	var hello struct {
		ProtocolVersion string
		Capabilities    struct{ Tools any }
	}
	request(t, s, "initialize", to(url, l), &hello)
	if hello.ProtocolVersion != c.revision || hello.Capabilities.Tools == nil {
		t.Errorf("the session is %+v, want revision %s and tools", hello, c.revision)
	}
	c.works(t, s)
}

var simpleCall = map[string]any{"name": "test_simple_text", "arguments": map[string]any{}}

// works calls a tool of modern-go.
func (c *client) works(t *testing.T, s *steer.Client) {
	t.Helper()
	var got called
	request(t, s, "tools/call", simpleCall, &got)
	if len(got.Content) != 1 || got.Content[0].Text != "a simple text" {
		t.Errorf("the tool answered %+v", got)
	}
}

// TestClientsStayOut proves that nobody is served without a login: a client that has none,
// and one whose user refuses.
func TestClientsStayOut(t *testing.T) {
	takeTurn(t)
	as, b := newIssuer(t), newBrowser(t)
	bridge := protected(t, as)
	for _, c := range clients {
		for name, l := range map[string]*remote.Login{"no login": nil, "the user refuses": {Browser: b.as("nobody"), Redirect: redirect}} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				if err := try(t.Context(), c.begin(t), "initialize", to(bridge.endpoint("modern"), l), nil); err == nil {
					t.Error("the client got in")
				}
			})
		}
	}
	if n := len(as.events(t, "grant.success", "")); n != 0 {
		t.Errorf("the authorization server gave %d tokens, want none", n)
	}
}

// TestResourceMetadata proves that the challenge leads to metadata whose resource is the
// endpoint's URL, byte for byte, and that the token is for that.
func TestResourceMetadata(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	bridge := protected(t, as)
	url := bridge.endpoint("modern")
	refused := callTool(t, url, "", "test_simple_text")
	want := bridge.base + "/.well-known/oauth-protected-resource/mcp/modern"
	if refused.status != http.StatusUnauthorized || !strings.Contains(refused.challenge(), `resource_metadata="`+want+`"`) || !strings.Contains(refused.challenge(), `scope="mcp:use"`) {
		t.Fatalf("without a token: %d, %s", refused.status, refused.challenge())
	}
	res, err := http.Get(want)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var m struct {
		Resource             string
		AuthorizationServers []string `json:"authorization_servers"`
		ScopesSupported      []string `json:"scopes_supported"`
	}
	if err := json.NewDecoder(res.Body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.Resource != url || !slices.Equal(m.AuthorizationServers, []string{as.url}) || !slices.Contains(m.ScopesSupported, "mcp:use") {
		t.Errorf("the metadata is %+v", m)
	}
	got := as.login(t, "alice", url, "mcp:use")
	if aud := claims(t, got.Access)["aud"]; aud != url {
		t.Errorf("the token is for %v, want %s", aud, url)
	}
	if a := callTool(t, url, got.Access, "test_simple_text"); a.status != http.StatusOK {
		t.Errorf("with a token: %d %s", a.status, a.body)
	}
	for name, tt := range map[string]struct {
		token  string
		status int
	}{
		"for another resource": {as.login(t, "alice", bridge.base+"/mcp/other", "mcp:use").Access, http.StatusUnauthorized},
		"without the scope":    {as.login(t, "alice", url, "read").Access, http.StatusForbidden},
		"opaque":               {"just-a-string", http.StatusUnauthorized},
	} {
		if a := callTool(t, url, tt.token, "test_simple_text"); a.status != tt.status {
			t.Errorf("a token %s: %d %s, want %d", name, a.status, a.challenge(), tt.status)
		}
	}
}

// skew is how long a token is accepted after its end.
const skew = time.Minute

// TestClientsRefresh proves that clients go on when their token has expired: each gets
// another with its refresh token, and a legacy session stays what it is.
func TestClientsRefresh(t *testing.T) {
	t.Parallel() // with others that wait
	as, b := newIssuer(t), newBrowser(t)
	as.set(t, map[string]any{"ttl": 4})
	bridge := protected(t, as)
	for _, c := range eras {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.begin(t)
			c.enter(t, s, bridge.endpoint("modern"), &remote.Login{Browser: b.as("alice"), Redirect: redirect, Document: as.docs.id(c.name)})
			time.Sleep(skew + 6*time.Second) // the token's life, which is 4 s, and what the clients' start took
			c.works(t, s)
			refreshed := 0
			for _, e := range as.events(t, "grant.success", "refresh_token") {
				if e.Client == as.docs.id(c.name) {
					refreshed++
				}
			}
			if refreshed == 0 {
				t.Error("nobody refreshed")
			}
		})
	}
}

// TestA03StreamEndsWithItsToken proves that a listen stream ends by itself, with its
// result, when its token expires, and that the next token opens another.
func TestA03StreamEndsWithItsToken(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	as.set(t, map[string]any{"ttl": 8}) // of which some may be over when the stream opens
	bridge := protected(t, as)
	url := bridge.endpoint("modern")
	got := as.login(t, "alice", url, "mcp:use")
	begun := time.Now()
	messages := listen(t, url, got.Access)
	last := lastOf(t, messages, 30*time.Second)
	if took := time.Since(begun); took < 3*time.Second {
		t.Errorf("the stream ended after %v, before the token expired", took)
	}
	if last["result"] == nil {
		t.Errorf("the last message is %v, want a result", last)
	}
	as.set(t, map[string]any{"ttl": 300})
	listen(t, url, as.refresh(t, got).Access)
}

// keysRest is how long the keys are not fetched again after they were.
const keysRest = 61 * time.Second

// TestKeysRotate proves that tokens of a new key are accepted at once, and those of
// a key that is gone no longer.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	as := newIssuer(t)
	bridge := protected(t, as)
	url := bridge.endpoint("modern")
	old := as.login(t, "alice", url, "mcp:use")
	if a := callTool(t, url, old.Access, "test_simple_text"); a.status != http.StatusOK {
		t.Fatalf("before: %d %s", a.status, a.body)
	}
	time.Sleep(keysRest)
	as.set(t, map[string]any{"rotate": true})
	if a := callTool(t, url, as.refresh(t, old).Access, "test_simple_text"); a.status != http.StatusOK {
		t.Errorf("a token of the new key: %d %s", a.status, a.challenge())
	}
	if a := callTool(t, url, old.Access, "test_simple_text"); a.status != http.StatusUnauthorized {
		t.Errorf("a token of the old key: %d, want 401", a.status)
	}
}
