package router

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// A lockedPeer is a server of either era that wants credentials.
type lockedPeer struct {
	*httptest.Server
	accepts func(authorization string) (status int, challenge string) // 200 for yes

	mu   sync.Mutex
	seen []string // method and Authorization of each request
}

func newLockedPeer(t *testing.T, accepts func(string) (int, string)) *lockedPeer {
	p := &lockedPeer{accepts: accepts}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *lockedPeer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(body, wire.Options{}) // GET and DELETE have none
	p.mu.Lock()
	p.seen = append(p.seen, fmt.Sprintf("%s%s %s", r.Method, m.Method, strings.Join(r.Header.Values("Authorization"), "+")))
	p.mu.Unlock()
	if status, challenge := p.accepts(r.Header.Get("Authorization")); status != http.StatusOK {
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	result := map[string]string{
		"initialize":      `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}`,
		"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
		"tools/call":      `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`,
	}[m.Method]
	switch {
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Kind() != wire.Request:
		w.WriteHeader(http.StatusAccepted)
	default:
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
}

// authorizations returns the values that requests had, each once.
func (p *lockedPeer) authorizations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, s := range p.seen {
		_, value, _ := strings.Cut(s, " ")
		out = append(out, value)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// byToken authenticates clients by tokens that name them.
type byToken struct{}

func (byToken) Authenticate(r *http.Request, _ *auth.Endpoint) (*mcp.Identity, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, &auth.Refusal{Reason: "no token"}
	}
	name, _, _ := strings.Cut(token, "-")
	id := &mcp.Identity{Principal: mcp.Principal(name)}
	if strings.HasSuffix(token, "-late") { // it has expired, and is accepted for a while
		id.Issuer, id.Expires = "https://id.example.com", time.Now().Add(-5*time.Second)
	}
	id.SetToken(token)
	return id, nil
}

// Metadata and Scopes implement [auth.Resource].
func (byToken) Metadata(*auth.Endpoint) []byte { return []byte("{}") }
func (byToken) Scopes() []string               { return nil }

// eachEra runs a test with the backs of both eras.
func eachEra(t *testing.T, peer *lockedPeer, c upstream.Credentials, test func(*testing.T, *rig)) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			test(t, newRig(t, func(o *Options) {
				o.Auth = byToken{}
				s := &o.Servers[0]
				s.PublicURL = "https://mcp.example.com/mcp/peer"
				if callers, ok := c.(upstream.CallerCredentials); ok {
					s.Saw = callers.Saw
				}
				s.Open = func(ch mcp.Changes) (mcp.Back, error) {
					shared := upstream.Options{Name: "peer", URL: peer.URL, Changes: ch, Logger: o.Logger, Credentials: c, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)}
					if era == "legacy" {
						return legacyback.New(legacyback.Options{Options: shared})
					}
					return modernback.New(modernback.Options{Options: shared})
				}
			}))
		})
	}
}

// callAs calls a tool with a token.
func (r *rig) callAs(t *testing.T, token string) answer {
	t.Helper()
	h := modernHeaders("tools/call", "x")
	h.Set("Authorization", "Bearer "+token)
	return r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"x","arguments":{}`), h)
}

// openAs opens a session of the older era with a token, and calls a tool in it.
func (r *rig) openAs(t *testing.T, token string) answer {
	t.Helper()
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer " + token}}
	opened := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, h)
	if opened.status != http.StatusOK || opened.header.Get("Mcp-Session-Id") == "" {
		return opened
	}
	h.Set("Mcp-Session-Id", opened.header.Get("Mcp-Session-Id"))
	h.Set("Mcp-Protocol-Version", "2025-11-25")
	r.send(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)
	return r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{}}}`, h)
}

// A client's token is for the gateway: it is neither passed on, nor logged, nor put into
// an error. Every request has the gateway's own.
func TestA01ClientTokensStayHere(t *testing.T) {
	t.Parallel()
	peer := newLockedPeer(t, func(a string) (int, string) {
		if a != "Bearer gateway" {
			return http.StatusUnauthorized, ""
		}
		return http.StatusOK, ""
	})
	eachEra(t, peer, login.Static("gateway"), func(t *testing.T, r *rig) {
		for _, call := range []func(*testing.T, string) answer{r.callAs, r.openAs} {
			if got := call(t, "ada-secret"); got.status != http.StatusOK || !strings.Contains(got.body, "done") {
				t.Errorf("call = %d %s, want a result", got.status, got.body)
			}
		}
		if strings.Contains(r.logs.String(), "secret") {
			t.Errorf("the log has the client's token: %s", r.logs)
		}
	})
	if got := peer.authorizations(); !slices.Equal(got, []string{"Bearer gateway"}) {
		t.Errorf("the server got %q, want the gateway's token alone, with every request", got)
	}
}

// exchanging is a token exchange without an authorization server.
type exchanging struct{ upstream.CallerCredentials }

func (e exchanging) Authorization(ctx context.Context, b upstream.Behalf) (string, error) {
	if b.Principal == "ada" { // another request comes in just now
		other := &mcp.Identity{Principal: "ada"}
		other.SetToken("ada-other")
		e.Saw(other)
	}
	value, err := e.CallerCredentials.Authorization(ctx, b)
	if value == "" || err != nil {
		return value, err
	}
	return "Bearer for " + strings.TrimPrefix(value, "Bearer "), nil
}

// Each call has what belongs to its own caller's token, and not what another token of the
// same principal would give, even if both share a session upstream. Nothing is ever sent
// with another principal's.
func TestA01EachCallHasItsCallersToken(t *testing.T) {
	t.Parallel()
	peer := newLockedPeer(t, func(a string) (int, string) {
		if !strings.HasPrefix(a, "Bearer for ") {
			return http.StatusUnauthorized, ""
		}
		return http.StatusOK, ""
	})
	eachEra(t, peer, exchanging{login.Passthrough()}, func(t *testing.T, r *rig) {
		var all sync.WaitGroup
		for _, token := range []string{"ada-strong", "ada-weak", "bob-1"} {
			all.Go(func() {
				for range 3 {
					if got := r.callAs(t, token); !strings.Contains(got.body, "done") {
						t.Errorf("%s: %d %s", token, got.status, got.body)
					}
				}
				if got := r.openAs(t, token); !strings.Contains(got.body, "done") {
					t.Errorf("%s: %d %s", token, got.status, got.body)
				}
			})
		}
		all.Wait()
	})
	peer.mu.Lock()
	defer peer.mu.Unlock()
	calls := make(map[string]int)
	for _, s := range peer.seen {
		if rest, ok := strings.CutPrefix(s, "POSTtools/call Bearer for "); ok {
			calls[rest]++
		}
	}
	for _, token := range []string{"ada-strong", "ada-weak", "bob-1"} {
		if calls[token] != 8 || len(calls) != 3 {
			t.Errorf("calls by token: %v, want 8 with each", calls)
		}
	}
}

// With passthrough the server refuses the client's own token: the client has to get
// another, and is told so by the status and by where the gateway's metadata is.
func TestA02RefusalOfTheClientsToken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status    int
		challenge string
		want      string
	}{
		{http.StatusUnauthorized, `Bearer resource_metadata="https://inside.example/meta"`, `Bearer error="invalid_token", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp/peer"`},
		{http.StatusForbidden, `Bearer error="insufficient_scope", scope="write admin", resource_metadata="https://inside.example/meta"`,
			`Bearer error="insufficient_scope", scope="write admin", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp/peer"`},
		{http.StatusForbidden, "", ""},
	} {
		peer := newLockedPeer(t, func(a string) (int, string) {
			if a == "Bearer ada-old" {
				return tt.status, tt.challenge
			}
			return http.StatusOK, ""
		})
		eachEra(t, peer, login.Passthrough(), func(t *testing.T, r *rig) {
			for _, call := range []func(*testing.T, string) answer{r.callAs, r.openAs} {
				got := call(t, "ada-old")
				if got.status != tt.status || got.header.Get("WWW-Authenticate") != tt.want || got.code() == 0 {
					t.Errorf("answer = %d %q %s, want %d %q and a JSON-RPC error", got.status, got.header.Get("WWW-Authenticate"), got.body, tt.status, tt.want)
				}
				if slices.Contains(r.g.Snapshot().states(), "down") {
					t.Error("a client's token took the server down for all")
				}
				if strings.Contains(got.body, "inside") {
					t.Errorf("the client is told of the server's own metadata: %s", got.body)
				}
				if got := call(t, "ada-new"); !strings.Contains(got.body, "done") {
					t.Errorf("with another token: %d %s, want a result", got.status, got.body)
				}
			}
		})
	}
}

// With passthrough a token that has expired, and is accepted since clocks may differ, is sent to the
// server, whose refusal has the client get another. No call is sent as one of nobody.
func TestA02ExpiredTokenIsTheServersToRefuse(t *testing.T) {
	t.Parallel()
	peer := newLockedPeer(t, func(a string) (int, string) {
		if strings.HasSuffix(a, "-late") {
			return http.StatusUnauthorized, "Bearer"
		}
		return http.StatusOK, ""
	})
	eachEra(t, peer, login.Passthrough(), func(t *testing.T, r *rig) {
		for _, call := range []func(*testing.T, string) answer{r.callAs, r.openAs} {
			got := call(t, "ada-late")
			if got.status != http.StatusUnauthorized || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), `Bearer error="invalid_token"`) {
				t.Errorf("answer = %d %q %s, want 401 with a challenge", got.status, got.header.Get("WWW-Authenticate"), got.body)
			}
			if got := call(t, "ada-new"); !strings.Contains(got.body, "done") {
				t.Errorf("with another token: %d %s, want a result", got.status, got.body)
			}
		}
	})
	peer.mu.Lock()
	defer peer.mu.Unlock()
	for _, s := range peer.seen {
		if s == "POSTtools/call " || s == "POSTinitialize " {
			t.Errorf("the server got %q without a token", s)
		}
	}
}

func (s Snapshot) states() []string {
	var out []string
	for _, server := range s.Servers {
		out = append(out, string(server.State))
	}
	return out
}

// A server refuses the gateway's own token: a client can do nothing about it by logging in
// again, and is told what an operator has to do.
func TestA02RefusalOfTheGatewaysToken(t *testing.T) {
	t.Parallel()
	peer := newLockedPeer(t, func(string) (int, string) {
		return http.StatusUnauthorized, `Bearer resource_metadata="https://inside.example/meta"`
	})
	eachEra(t, peer, login.Static("gateway"), func(t *testing.T, r *rig) {
		for _, call := range []func(*testing.T, string) answer{r.callAs, r.openAs} {
			got := call(t, "ada-secret")
			if got.status != http.StatusOK || got.code() != -32603 || got.header.Get("WWW-Authenticate") != "" || !strings.Contains(got.body, "upstream_auth.static.token") {
				t.Errorf("answer = %d %q %s, want -32603 that says what to do", got.status, got.header.Get("WWW-Authenticate"), got.body)
			}
			if strings.Contains(got.body, "secret") || strings.Contains(got.body, "gateway") || strings.Contains(got.body, "inside") {
				t.Errorf("the error tells too much: %s", got.body)
			}
		}
	})
}
