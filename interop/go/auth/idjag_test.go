package auth

import (
	"fmt"
	"strings"
	"testing"
)

// TestIDJAG has the calls of two users sent with tokens of the server's own authorization server,
// for grants that their identity provider issues in exchange for their tokens. Both are
// oidc-provider. What the provider does not grant, and grants of a provider that the other does not
// trust, end in an error; no other token is sent.
func TestIDJAG(t *testing.T) {
	takeTurn(t)
	idp, as := newIssuer(t), newIssuer(t)
	as.set(t, map[string]any{"trusts": idp.url})
	behind := newProtected(t, as)
	b := newBridge(t, fmt.Sprintf(`
public_url: "{base}"
auth: {jwt: {issuer: %[1]q, algorithms: [RS256], scopes: ["mcp:use"]}}
servers:
  modern: {url: %[2]q, era: modern, upstream_auth: &grants {token_exchange: {issuer: %[1]q, client_id: exchanger, client_secret: exchanger-secret, scopes: [read], id_jag: {issuer: %[3]q, client_id: granted, client_secret: granted-secret}}}}
  legacy: {url: %[2]q, era: legacy, upstream_auth: *grants}
`, idp.url, behind, as.url))
	for _, era := range []string{"modern", "legacy"} {
		url := b.endpoint(era)
		for _, user := range []string{"alice", "bob"} {
			token := idp.login(t, user, url, "mcp:use").Access
			for range 3 {
				if of, err := whoami(t.Context(), url, token); err != nil || of.Sub != user || of.Client != "granted" || of.Aud != behind {
					t.Errorf("%s's call at the %s server came with a token of %+v, %v", user, era, of, err)
				}
			}
		}
	}
	url := b.endpoint("modern")
	if _, err := whoami(t.Context(), url, idp.login(t, "mallory", url, "mcp:use").Access); err == nil || !strings.Contains(err.Error(), "-32603") {
		t.Errorf("a call of whom the provider grants nothing: %v", err)
	}
	as.set(t, map[string]any{"trusts": as.url})
	if _, err := whoami(t.Context(), url, idp.login(t, "alice", url, "mcp:use").Access); err == nil || !strings.Contains(err.Error(), "-32603") {
		t.Errorf("a call with a grant of a provider that is not trusted: %v", err)
	}
	for _, h := range came(t, behind) {
		if h.Sub != "" && (h.Client != "granted" || h.Aud != behind) {
			t.Errorf("the server was sent a token of %+v", h)
		}
	}
}
