package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// newProtected starts the server that takes tokens for itself alone, and returns its URL.
func newProtected(t testing.TB, as *issuer) (url string) {
	t.Helper()
	addr := rig.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	start(t, addr, nil, node("node/protected-server.mjs", port, as.url)...)
	return "http://" + addr + "/mcp"
}

// exchanging is mcpbridge in front of a protected server, with the caller's token exchanged
// for one of the server's, as a server of either era.
func exchanging(t testing.TB, as *issuer, behind string) *bridge {
	t.Helper()
	return newBridge(t, fmt.Sprintf(`
public_url: "{base}"
auth: {jwt: {issuer: %[1]q, algorithms: [RS256], scopes: ["mcp:use"]}}
servers:
  modern: {url: %[2]q, era: modern, upstream_auth: &exchange {token_exchange: {issuer: %[1]q, client_id: exchanger, client_secret: exchanger-secret, scopes: [read]}}}
  legacy: {url: %[2]q, era: legacy, upstream_auth: *exchange}
`, as.url, behind))
}

// A holder is what a token says, at the server or at the issuer.
type holder struct {
	Sub, Aud, Client, Jti string
	Had                   string // at the issuer: the id of the token that was exchanged
	Status                int    // at the server: what was answered
}

// whoami returns what the server says of the token that a call came with.
func whoami(ctx context.Context, url, token string) (of holder, err error) {
	res, err := send(ctx, url, token, "tools/call", `"name":"whoami","arguments":{},`, "Mcp-Name", "whoami")
	if err != nil {
		return of, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return of, err
	}
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal(body, &m); err != nil || len(m.Result.Content) != 1 {
		return of, fmt.Errorf("%s %s %s", res.Status, res.Header.Get("WWW-Authenticate"), body)
	}
	return of, json.Unmarshal([]byte(m.Result.Content[0].Text), &of)
}

// came returns the tokens that a protected server was sent.
func came(t *testing.T, url string) (all []holder) {
	t.Helper()
	res, err := http.Get(strings.TrimSuffix(url, "/mcp") + "/control")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read(t, res).body, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestExchange has the tokens of two callers exchanged by an issuer, and the server that they
// call say whose tokens it gets: each call is sent with what its own token was exchanged for,
// many at once, and the caller's own token reaches no server.
func TestExchange(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	behind := newProtected(t, as)
	b := exchanging(t, as, behind)
	for _, era := range []string{"modern", "legacy"} {
		t.Run(era, func(t *testing.T) {
			url := b.endpoint(era)
			own := make(map[string]string) // whose token, by its id
			tokens := []*tokens{as.login(t, "alice", url, "mcp:use"), as.login(t, "alice", url, "mcp:use"), as.login(t, "bob", url, "mcp:use")}
			users := []string{"alice", "alice", "bob"}
			for i, token := range tokens {
				own[claims(t, token.Access)["jti"].(string)] = users[i]
			}
			got := make([]map[string]holder, len(tokens)) // by the id of the token upstream
			var all sync.WaitGroup
			for i, token := range tokens {
				got[i] = make(map[string]holder)
				all.Go(func() {
					for range 20 {
						of, err := whoami(t.Context(), url, token.Access)
						if err != nil {
							t.Error(err)
							return
						}
						got[i][of.Jti] = of
					}
				})
			}
			all.Wait()
			seen := make(map[string]bool)
			for i, of := range got {
				if len(of) != 1 {
					t.Errorf("calls of one token were sent with %d tokens: %v", len(of), of)
				}
				for jti, h := range of {
					if h.Sub != users[i] || h.Aud != behind || h.Client != "exchanger" || own[jti] != "" || seen[jti] {
						t.Errorf("%s's call came with a token of %+v", users[i], h)
					}
					seen[jti] = true
				}
			}
			for _, h := range came(t, behind) {
				if own[h.Jti] != "" || h.Sub != "" && h.Aud != behind {
					t.Errorf("the server was sent %+v, a caller's own token", h)
				}
			}
			exchanged := make(map[string]string) // by the caller's token: the other's
			for _, e := range as.exchanges(t) {
				if own[e.Had] != "" && (exchanged[e.Had] != "" || e.Sub != own[e.Had]) {
					t.Errorf("the token of %s was exchanged again: %+v", own[e.Had], e)
				}
				exchanged[e.Had] = e.Jti
			}
			for jti, user := range own {
				if !seen[exchanged[jti]] {
					t.Errorf("%s's token was exchanged for %q, which the server has not seen", user, exchanged[jti])
				}
			}
		})
	}
}

// exchanges returns what was exchanged so far.
func (s *issuer) exchanges(t *testing.T) (all []holder) {
	t.Helper()
	res, err := http.Get(s.url + "/control")
	if err != nil {
		t.Fatal(err)
	}
	var events []struct {
		Kind string
		holder
	}
	if err := json.Unmarshal(read(t, res).body, &events); err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Kind == "exchange" {
			all = append(all, e.holder)
		}
	}
	return all
}

// TestExchangeRefused proves that a caller whose token the issuer does not exchange is told so,
// and nothing else is sent for it; others go on.
func TestExchangeRefused(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	behind := newProtected(t, as)
	b := exchanging(t, as, behind)
	url := b.endpoint("modern")
	alice, mallory := as.login(t, "alice", url, "mcp:use"), as.login(t, "mallory", url, "mcp:use")
	for range 3 {
		if _, err := whoami(t.Context(), url, alice.Access); err != nil {
			t.Error(err)
		}
		got := callTool(t, url, mallory.Access, "whoami")
		if !strings.Contains(string(got.body), "-32603") || got.challenge() != "" || strings.Contains(string(got.body), mallory.Access) {
			t.Errorf("the answer is %d %s %s, want an error of the gateway's", got.status, got.challenge(), got.body)
		}
	}
	for _, h := range came(t, behind) {
		if h.Sub == "mallory" || h.Aud == url {
			t.Errorf("the server was sent %+v", h)
		}
	}
	for _, secret := range []string{mallory.Access, alice.Access, "exchanger-secret"} {
		if strings.Contains(b.Log(), secret) {
			t.Errorf("the log has %.20s…", secret)
		}
	}
}

// TestExchangedTokensExpire proves that calls go on when tokens expire, each with a token in
// exchange for the caller's latest.
func TestExchangedTokensExpire(t *testing.T) {
	takeTurn(t)
	as := newIssuer(t)
	as.set(t, map[string]any{"ttl": 14}) // less the ten seconds before its end in which a token is not sent
	behind := newProtected(t, as)
	b := exchanging(t, as, behind)
	url := b.endpoint("modern")
	token := as.login(t, "alice", url, "mcp:use")
	first, err := whoami(t.Context(), url, token.Access)
	if err != nil {
		t.Fatal(err)
	}
	next := as.refresh(t, token)
	second, err := whoami(t.Context(), url, next.Access)
	if err != nil || second.Jti == first.Jti || second.Sub != "alice" {
		t.Errorf("with a refreshed token the call came with %+v, %v, and before with %+v; want another", second, err, first)
	}
	rig.Until(t, 12*time.Second, "another token", func() string {
		third, err := whoami(t.Context(), url, next.Access)
		if err != nil || third.Jti == second.Jti {
			return fmt.Sprint(third, err)
		}
		return ""
	})
}
