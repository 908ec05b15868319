package auth

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestServersCredentials takes callers with tokens for mcpbridge to a server that wants
// another: of the gateway's own client, and of a login that is stored.
func TestServersCredentials(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	behind := exampleOf(t, as)
	p := newPerson(t, "alice")
	p.login(t, "alice", behind)
	bridge := newBridge(t, fmt.Sprintf(`
public_url: "{base}"
state_dir: %q
auth: {jwt: {issuer: %[2]q, scopes: ["mcp:use"]}}
servers:
  own: {url: %[3]q, upstream_auth: {client_credentials: {issuer: %[2]q, client_id: service, client_secret: service-secret, scopes: [read]}}}
  shared: {url: %[3]q, upstream_auth: {oauth: {shared_identity: true}}}
  alices: {url: %[3]q, upstream_auth: {oauth: {principal: "%[2]s alice"}}}
  none: {url: %[3]q}
`, p.state, as.url, behind), "MCPBRIDGE_KEYRING=false")
	for _, tt := range []struct {
		server, user string
		served       bool
	}{{"own", "bob", true}, {"shared", "bob", true}, {"none", "bob", false}, {"alices", "bob", false}, {"alices", "alice", true}} {
		t.Run(tt.server+" for "+tt.user, func(t *testing.T) {
			url := bridge.endpoint(tt.server)
			got := callEcho(t, url, as.login(t, tt.user, url, "mcp:use").Access)
			if served := got.status == http.StatusOK && strings.Contains(string(got.body), `"hello"`); served != tt.served {
				t.Errorf("%d %s %s, want served: %v", got.status, got.challenge(), got.body, tt.served)
			}
			if got.challenge() != "" {
				t.Errorf("the caller got the challenge %s of a server that is none of its business", got.challenge())
			}
		})
	}
}

// callEcho calls the tool of go-sdk's example.
func callEcho(t *testing.T, url, token string) *answer {
	t.Helper()
	return read(t, post(t, url, token, "tools/call", `"name":"echo","arguments":{"input":"hello"},`, "Mcp-Name", "echo"))
}

// TestLoginsRevoked proves that wrap logs in again when its login is worth nothing any more.
func TestLoginsRevoked(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	url := exampleOf(t, as)
	p := newPerson(t, "alice")
	p.login(t, "alice", url)
	s := clients[3].begin(t)
	request(t, s, "initialize", p.wrap(url), nil)
	var got called
	request(t, s, "tools/call", examples[0].call, &got)
	as.set(t, map[string]any{"revoke": "all"})
	request(t, s, "tools/call", examples[0].call, &got)
	examples[0].judge(t, &got)
	if n := len(as.events(t, "authorization.success", "")); n != 2 {
		t.Errorf("somebody logged in %d times, want twice", n)
	}
}
