package auth

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// notFound is what SDKs show of the answer: its status or its error.
var notFound = regexp.MustCompile(`404|Not Found|there is no server named`)

// TestF13WrongNamesNeedNoLogin takes each client, with a user who would log in, to URLs that
// are no server's: it fails at once, and nobody is sent to a browser.
func TestF13WrongNamesNeedNoLogin(t *testing.T) {
	takeTurn(t)
	as, b := newIssuer(t), newBrowser(t)
	bridge := protected(t, as)
	for n, c := range eras {
		paths := []string{"/mcp/modem", "/mcp/Modern", "/MCP/modern", "/mcp/modern/more"}
		if n > 0 {
			paths = paths[:2]
		}
		for _, path := range paths {
			t.Run(c.name+" "+strings.ReplaceAll(path[1:], "/", " "), func(t *testing.T) {
				s, begun := c.begin(t), time.Now()
				err := try(t.Context(), s, "initialize", to(bridge.base+path, &remote.Login{Browser: b.as("alice"), Redirect: redirect}), nil)
				if took := time.Since(begun); err == nil || took > 20*time.Second || !notFound.MatchString(err.Error()) {
					t.Errorf("after %v the client has %v, want an error at once that says so", took, err)
				}
			})
		}
	}
	good := as.login(t, "alice", bridge.endpoint("modern"), "mcp:use")
	for _, path := range []string{"/mcp/modem", "/mcp/Modern", "/MCP/modern"} {
		if a := callTool(t, bridge.base+path, good.Access, "test_simple_text"); a.status != http.StatusNotFound {
			t.Errorf("%s with a token of the server beside it = %d %s, want 404", path, a.status, a.body)
		}
	}
	if n := b.visits.Load(); n != 0 {
		t.Errorf("users were sent to a browser %d times, want never", n)
	}
	if got := as.events(t, "registration_create.success", ""); len(got) != 0 {
		t.Errorf("clients were registered: %+v", got)
	}
}

// comparesBytes is a client that takes no metadata whose resource is not its URL, byte for
// byte, as RFC 9728 wants it.
const comparesBytes = "go-1.8.0"

// TestF13SlashAtTheEnd logs each client in at a URL with a slash at the end: the resource that
// it gets a token for is the endpoint's, without the slash.
func TestF13SlashAtTheEnd(t *testing.T) {
	takeTurn(t)
	as, b := newIssuer(t), newBrowser(t)
	bridge := protected(t, as)
	for _, c := range eras {
		t.Run(c.name, func(t *testing.T) {
			before := len(as.events(t, "authorization.success", ""))
			url, login := bridge.endpoint("modern")+"/", &remote.Login{Browser: b.as("alice"), Redirect: redirect}
			if c.name == comparesBytes {
				if err := try(t.Context(), c.begin(t), "initialize", to(url, login), nil); err == nil {
					t.Error("it got in; does it take the metadata of the endpoint by now?")
				}
				return
			}
			c.enter(t, c.begin(t), url, login)
			got := as.events(t, "authorization.success", "")[before:]
			if len(got) != 1 || got[0].Resource != bridge.endpoint("modern") {
				t.Errorf("the client was authorized with %+v, want once, for %s", got, bridge.endpoint("modern"))
			}
		})
	}
}
