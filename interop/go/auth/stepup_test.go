package auth

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/remote"
)

// adminsOnly is a policy by which one tool needs a scope of its own, and Bob may do nothing.
const adminsOnly = `    policy:
      default: allow
      rules:
        - deny: {claims: {team: [blue]}}
        - allow: {tools: [test_image_content], scopes: [admin]}
        - deny: {tools: [test_image_content]}
`

var imageCall = map[string]any{"name": "test_image_content", "arguments": map[string]any{}}

// refreshesInstead is a client that refreshes its token when it has too few scopes, if it has a
// refresh token, and so gets no more of them.
const refreshesInstead = "typescript-1.32.2"

// TestClientsStepUp proves that each client gets the scopes that a tool needs: the challenge
// names all of them at once, the client asks for them, and the call goes through.
func TestClientsStepUp(t *testing.T) {
	takeTurn(t)
	as, b := newIssuer(t), newBrowser(t)
	audit := filepath.Join(t.TempDir(), "audit")
	bridge := protected(t, as, adminsOnly+"audit: "+audit)
	url := bridge.endpoint("modern")
	low := as.login(t, "alice", url, "mcp:use")
	refused := callTool(t, url, low.Access, "test_image_content")
	if refused.status != http.StatusForbidden || !strings.Contains(refused.challenge(), `error="insufficient_scope"`) || !namesScopes(refused.challenge(), "mcp:use", "admin") {
		t.Fatalf("without the scope: %d, %s, want 403 and both scopes", refused.status, refused.challenge())
	}
	for _, c := range eras {
		t.Run(c.name, func(t *testing.T) {
			before := len(as.events(t, "authorization.success", ""))
			s := c.begin(t)
			c.enter(t, s, url, &remote.Login{Browser: b.as("alice"), Redirect: redirect, Document: as.docs.id(c.name)})
			if c.name == refreshesInstead {
				if err := try(t.Context(), s, "tools/call", imageCall, nil); err == nil || !strings.Contains(err.Error(), "403 after trying upscoping") {
					t.Errorf("%v; does the client step up by now?", err)
				}
				return
			}
			var got struct{ Content []struct{ Type string } }
			request(t, s, "tools/call", imageCall, &got)
			if len(got.Content) != 1 || got.Content[0].Type != "image" {
				t.Errorf("the tool answered %+v, want an image", got)
			}
			asked := as.events(t, "authorization.success", "")[before:]
			if len(asked) != 2 || !slices.Contains(strings.Fields(asked[1].Scope), "mcp:use") || !slices.Contains(strings.Fields(asked[1].Scope), "admin") {
				t.Errorf("the client was authorized with %+v, want twice, and both scopes then", asked)
			}
		})
	}
	t.Run("a claim denies", func(t *testing.T) {
		bob := as.login(t, "bob", url, "mcp:use admin")
		if a := callTool(t, url, bob.Access, "test_simple_text"); a.status == http.StatusOK && strings.Contains(string(a.body), "a simple text") {
			t.Errorf("Bob was served: %d %s", a.status, a.body)
		}
	})
	t.Run("the audit log says who did what", func(t *testing.T) { audited(t, audit, as.url) })
}

func namesScopes(challenge string, want ...string) bool {
	_, rest, _ := strings.Cut(challenge, `scope="`)
	got, _, _ := strings.Cut(rest, `"`)
	return !slices.ContainsFunc(want, func(s string) bool { return !slices.Contains(strings.Fields(got), s) })
}

// audited reads the log: calls of Alice's were allowed and refused, Bob's refused, and nothing has arguments. Lines
// are written together, so that the last may take a moment.
func audited(t *testing.T, file, issuer string) {
	wants := []string{"alice test_image_content allow", "alice test_image_content deny", "alice test_simple_text allow", "bob test_simple_text deny"}
	var found map[string]int
	lacks := func(want string) bool { return found[want] == 0 }
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		found = decisions(t, file, issuer)
		if !slices.ContainsFunc(wants, lacks) {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	t.Errorf("the log lacks one of %q; the lines are %v", wants, found)
}

// decisions counts the lines of calls by principal, tool and decision. What is still being written is left out.
func decisions(t *testing.T, file, issuer string) map[string]int {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var entry struct{ Principal, Method, Name, Decision string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, who := range []string{"alice", "bob"} {
			if strings.Contains(entry.Principal, who) && strings.Contains(entry.Principal, issuer) && entry.Method == "tools/call" {
				found[who+" "+entry.Name+" "+entry.Decision]++
			}
		}
	}
	return found
}
