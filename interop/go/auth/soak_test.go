package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/interop/internal/rig"
)

// TestSoak keeps all of it going at once, for AUTHSOAK (20 s unless set), over TLS: callers
// with static tokens, with certificates, and with tokens of an issuer, which expire and are
// refreshed, strangers of each kind, listen streams that end with their tokens, denied calls
// and calls too many, legacy sessions that come and go, keys that rotate, and servers that
// want credentials of the gateway's, or tokens in exchange for those of callers. After that
// mcpbridge has no more goroutines, descriptors and heap than after the first fifth.
func TestSoak(t *testing.T) {
	length := 20 * time.Second
	if text := os.Getenv("AUTHSOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newSoak(t)
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var all sync.WaitGroup
	for name, do := range s.works() {
		all.Go(func() { s.keepOn(ctx, name, do) })
	}
	used := s.watch(ctx, length)
	all.Wait()
	s.judge(used, length)
}

// A soak is what goes on at once.
type soak struct {
	t      *testing.T
	as     *issuer
	bridge *bridge

	// Clients with certificates: one that keeps connections, one that doesn't, and one whose
	// authority nobody trusts.
	certified, hasty, foreign *http.Client

	// mu guards the fields below.
	mu     sync.Mutex
	token  *tokens // Alice's, for the server jwt
	did    map[string]int
	failed map[string]int
	last   map[string]string // error
}

const soakToken = "a-static-token-of-the-soak"

func newSoak(t *testing.T) *soak {
	s := &soak{t: t, as: newIssuer(t), did: make(map[string]int), failed: make(map[string]int), last: make(map[string]string)}
	s.as.set(t, map[string]any{"ttl": 6})
	behind, server, exchanges, clients := exampleOf(t, s.as), newServer(t), newProtected(t, s.as), newAuthority(t)
	s.certified, s.hasty, s.foreign = clients.client(t, "laptop.example", true), clients.client(t, "desk.example", false), newAuthority(t).client(t, "laptop.example", false)
	s.bridge = newBridge(t, fmt.Sprintf(`
public_url: "{base}"
tls: {cert: %[7]q, key: %[8]q, client_ca: %[9]q, client_auth: optional}
auth: {jwt: {issuer: %[1]q, algorithms: [RS256], scopes: ["mcp:use"]}}
audit: %[4]s
servers:
  jwt:
    url: %[2]q
    rate: {principal: {per_second: 2000, burst: 200, concurrent: 100}, tools: {test_error_handling: {per_second: 2}}}
%[5]s
  tokens: {url: %[2]q, auth: {tokens: [{name: carol, token: %[6]q}]}}
  certs: {url: %[2]q, auth: {mtls: {principal: san}}, policy: {default: deny, rules: [{allow: {principals: ["dns:*.example"], tools: [test_simple_text]}}]}}
  exchanged: {url: %[10]q, era: modern, upstream_auth: {token_exchange: {issuer: %[1]q, client_id: exchanger, client_secret: exchanger-secret, scopes: [read]}}}
  own: {url: %[3]q, upstream_auth: {client_credentials: {issuer: %[1]q, client_id: service, client_secret: service-secret, scopes: [read]}}}
`, s.as.url, server, behind, filepath.Join(t.TempDir(), "audit"), strings.TrimRight(adminsOnly, "\n"), soakToken, s.as.docs.ca, s.as.docs.key, clients.file, exchanges))
	s.token = s.as.login(t, "alice", s.bridge.endpoint("jwt"), "mcp:use")
	return s
}

// works are what is done over and over.
func (s *soak) works() map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"a call with a static token": func(ctx context.Context) error {
			return s.call(ctx, "tokens", soakToken, "test_simple_text", http.StatusOK)
		},
		"a denied call": func(ctx context.Context) error {
			return s.call(ctx, "jwt", s.access(), "test_image_content", http.StatusForbidden)
		},
		"a stranger": func(ctx context.Context) error {
			return s.call(ctx, "jwt", "", "test_simple_text", http.StatusUnauthorized)
		},
		"an odd token": func(ctx context.Context) error {
			return s.call(ctx, "jwt", s.access()+"x", "test_simple_text", http.StatusUnauthorized)
		},
		"a call with a certificate": func(ctx context.Context) error {
			return s.callBy(ctx, s.certified, "test_simple_text", http.StatusOK)
		},
		"a handshake and a call": func(ctx context.Context) error {
			return s.callBy(ctx, s.hasty, "test_simple_text", http.StatusOK)
		},
		"a denied call with a certificate": func(ctx context.Context) error {
			return s.callBy(ctx, s.certified, "test_image_content", http.StatusOK) // with an error
		},
		"no certificate": func(ctx context.Context) error {
			return s.callBy(ctx, http.DefaultClient, "test_simple_text", http.StatusUnauthorized)
		},
		"a certificate of a stranger": s.strange,
		"a call too many":             s.tooMany,
		"a token in exchange":         s.exchanged,
		"refreshing":                  s.refresh,
		"logging in":                  s.logIn,
		"the own server":              s.callOwn,
		"a session":                   s.session,
		"rotating keys":               s.rotate,
	}
	for i := range 4 {
		all[fmt.Sprintf("a call, %d", i)] = func(ctx context.Context) error {
			return s.call(ctx, "jwt", s.access(), "test_simple_text", http.StatusOK)
		}
		all[fmt.Sprintf("a stream, %d", i)] = s.listen
	}
	return all
}

// keepOn does something until the time is over, twenty times a second at most, and counts.
func (s *soak) keepOn(ctx context.Context, name string, do func(context.Context) error) {
	for ctx.Err() == nil {
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.did[name]++
		if err != nil {
			s.failed[name]++
			s.last[name] = err.Error()
		}
		s.mu.Unlock()
		pause(ctx, 50*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (s *soak) access() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token.Access
}

func (s *soak) call(ctx context.Context, server, token, tool string, want int) error {
	res, err := send(ctx, s.bridge.endpoint(server), token, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{},`, tool), "Mcp-Name", tool)
	return drained(res, err, want)
}

// callBy calls the server that is for clients with certificates.
func (s *soak) callBy(ctx context.Context, c *http.Client, tool string, want int) error {
	res, err := sendBy(ctx, c, s.bridge.endpoint("certs"), "", "tools/call", fmt.Sprintf(`"name":%q,"arguments":{},`, tool), "Mcp-Name", tool)
	return drained(res, err, want)
}

// strange shows a certificate that nobody trusts, which ends the handshake.
func (s *soak) strange(ctx context.Context) error {
	if err := s.callBy(ctx, s.foreign, "test_simple_text", http.StatusOK); err == nil {
		return errors.New("it was served")
	}
	return nil
}

// tooMany calls a tool more often than it may be called.
func (s *soak) tooMany(ctx context.Context) error {
	err := s.call(ctx, "jwt", s.access(), "test_error_handling", http.StatusOK)
	if err != nil && strings.HasPrefix(err.Error(), "429 ") {
		return nil
	}
	return err
}

// exchanged calls a server that gets tokens in exchange for those of its callers, as somebody
// whom nobody has seen yet.
func (s *soak) exchanged(ctx context.Context) error {
	pause(ctx, 250*time.Millisecond)
	user, url := fmt.Sprintf("user-%d", time.Now().UnixNano()), s.bridge.endpoint("exchanged")
	got, err := s.as.loggedIn(user, url, "mcp:use")
	if err != nil {
		return err
	}
	of, err := whoami(ctx, url, got.Access)
	if err == nil && of.Sub != user {
		err = fmt.Errorf("it was sent with a token of %s", of.Sub)
	}
	return err
}

func (s *soak) callOwn(ctx context.Context) error {
	pause(ctx, 200*time.Millisecond)
	got, err := s.as.loggedIn("bob", s.bridge.endpoint("own"), "mcp:use")
	if err != nil {
		return err
	}
	for range 5 {
		res, err := send(ctx, s.bridge.endpoint("own"), got.Access, "tools/call", `"name":"echo","arguments":{"input":"hello"},`, "Mcp-Name", "echo")
		if err := drained(res, err, http.StatusOK); err != nil {
			return err
		}
	}
	return nil
}

func drained(res *http.Response, err error, want int) error {
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil && res.StatusCode != want {
		err = fmt.Errorf("%s, %s, want %d: %.200s", res.Status, res.Header.Get("WWW-Authenticate"), want, body)
	}
	return err
}

// refresh gets the next token before the last one expires.
func (s *soak) refresh(ctx context.Context) error {
	pause(ctx, 2*time.Second)
	s.mu.Lock()
	old := s.token
	s.mu.Unlock()
	got, err := s.as.refreshed(old)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = got
	return nil
}

// logIn makes a call as somebody whom nobody has seen yet.
func (s *soak) logIn(ctx context.Context) error {
	pause(ctx, 250*time.Millisecond)
	got, err := s.as.loggedIn(fmt.Sprintf("user-%d", time.Now().UnixNano()), s.bridge.endpoint("jwt"), "mcp:use")
	if err != nil {
		return err
	}
	return s.call(ctx, "jwt", got.Access, "test_simple_text", http.StatusOK)
}

// listen keeps a stream open until its token ends it.
func (s *soak) listen(ctx context.Context) error {
	res, err := send(ctx, s.bridge.endpoint("jwt"), s.access(), "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	return drained(res, err, http.StatusOK)
}

// session opens a legacy session, and ends it.
func (s *soak) session(ctx context.Context) error {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`
	headers := http.Header{"Authorization": {"Bearer " + s.access()}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	id, err := s.legacy(ctx, http.MethodPost, hello, headers)
	if err != nil {
		return err
	}
	headers.Set("Mcp-Session-Id", id)
	headers.Set("MCP-Protocol-Version", "2025-11-25")
	_, err = s.legacy(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, headers)
	_, err2 := s.legacy(ctx, http.MethodDelete, "", headers)
	return errors.Join(err, err2)
}

func (s *soak) legacy(ctx context.Context, method, body string, headers http.Header) (session string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, s.bridge.endpoint("jwt"), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header = headers
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	session = res.Header.Get("Mcp-Session-Id")
	if method == http.MethodDelete && res.StatusCode == http.StatusNoContent {
		return session, res.Body.Close()
	}
	return session, drained(res, nil, http.StatusOK)
}

// rotate changes the keys of the issuer, and not too often: an unknown one is looked for once a
// minute.
func (s *soak) rotate(ctx context.Context) error {
	pause(ctx, 2*keysRest)
	if ctx.Err() != nil {
		return nil
	}
	_, err := s.as.control(map[string]any{"rotate": true})
	return err
}

// collections is how long it takes until garbage has been collected often enough to say what
// the heap holds.
const collections = 5 * time.Minute

// A use is what mcpbridge had at a moment.
type use struct{ goroutines, descriptors, heap float64 }

// watch samples what mcpbridge has, a hundred times.
func (s *soak) watch(ctx context.Context, length time.Duration) (all []use) {
	for ctx.Err() == nil {
		g := rig.Gauges(s.t, http.DefaultClient, strings.TrimPrefix(s.bridge.admin, "http://"))
		all = append(all, use{g["go_goroutines"], g["process_open_fds"], g["go_memstats_heap_alloc_bytes"]})
		pause(ctx, length/100)
	}
	return all
}

// judge compares the second fifth with the last.
func (s *soak) judge(all []use, length time.Duration) {
	for name, n := range s.did {
		s.t.Logf("%6d %s, %d failed %s", n, name, s.failed[name], s.last[name])
		if s.failed[name] > n/10+1 {
			s.t.Errorf("%s failed %d times of %d; the last time: %s", name, s.failed[name], n, s.last[name])
		}
	}
	if len(all) < 20 {
		s.t.Fatalf("there are %d samples only", len(all))
	}
	n := len(all) / 5
	before, after := all[n:2*n], all[len(all)-n:]
	for _, of := range []struct {
		what  string
		get   func(use) float64
		slack float64
	}{
		{"goroutines", func(u use) float64 { return u.goroutines }, 20},
		{"descriptors", func(u use) float64 { return u.descriptors }, 10},
		{"bytes of heap", func(u use) float64 { return u.heap }, 4 << 20},
	} {
		was, is := least(before, of.get), least(after, of.get)
		s.t.Logf("%s: at least %.0f in the second fifth, %.0f in the last", of.what, was, is)
		if of.slack > 1000 && length < collections {
			continue
		}
		if is > was*1.1+of.slack {
			s.t.Errorf("%s grew from %.0f to %.0f", of.what, was, is)
		}
	}
}

func least(all []use, get func(use) float64) float64 {
	return get(slices.MinFunc(all, func(a, b use) int { return int(get(a) - get(b)) }))
}
