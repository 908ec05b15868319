package auth

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestRevocation proves that an opaque token is refused once its issuer has revoked it, and
// that a listen stream under it ends.
func TestRevocation(t *testing.T) {
	t.Parallel() // with others that wait
	as := newIssuer(t)
	bridge := newBridge(t, fmt.Sprintf(`
public_url: "{base}"
auth: {jwt: {issuer: %q, scopes: ["mcp:use"], introspection: {client_id: introspector, client_secret: introspector-secret}}}
servers: {modern: {url: %q}}
`, as.url, newServer(t)))
	url := bridge.endpoint("modern")
	as.set(t, map[string]any{"opaque": []string{url}})
	token := as.login(t, "alice", url, "mcp:use").Access
	if a := callTool(t, url, token, "test_simple_text"); a.status != http.StatusOK || strings.Contains(token, ".") {
		t.Fatalf("the opaque token %s: %d %s", token, a.status, a.challenge())
	}
	messages := listen(t, url, token)
	as.set(t, map[string]any{"revoke": "access"})
	rig.Until(t, 40*time.Second, "the revoked token is refused", func() string {
		if a := callTool(t, url, token, "test_simple_text"); a.status != http.StatusUnauthorized {
			return fmt.Sprint(a.status)
		}
		return ""
	})
	if last := lastOf(t, messages, 90*time.Second); last["result"] == nil {
		t.Errorf("the stream's last message is %v, want its result", last)
	}
}
