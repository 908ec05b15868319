package router

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// byBearer knows alice and bob by their tokens, which are their names.
var byBearer = auth.Func(func(r *http.Request) (mcp.Principal, error) {
	switch who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); who {
	case "alice", "bob":
		return mcp.Principal(who), nil
	}
	return "", &auth.Refusal{Reason: "no token"}
})

func withTokens(o *Options) { o.Auth = byBearer }

func as(who string, h http.Header) http.Header {
	h.Set("Authorization", "Bearer "+who)
	return h
}

// openAs opens a session of a principal.
func (r *replica) openAs(t *testing.T, who string) (session string) {
	t.Helper()
	a := r.send(t, http.MethodPost, initializeBody, as(who, sessionHeaders("")))
	if session = a.header.Get("Mcp-Session-Id"); session == "" {
		t.Fatalf("initialize = %+v", a)
	}
	r.send(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, as(who, sessionHeaders(session)))
	return session
}

const listTools = `{"jsonrpc":"2.0","id":9,"method":"tools/list"}`

// A session id or a requestState in the hands of another principal is worth nothing at any
// replica (CWE-639).
func TestForwardTheft(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 3, withTokens)
	a := all[0]
	a.peer.handle["tools/call"] = func(c *peerCall) string { return say(c.ask("roots/list", `{}`)) }
	session := a.openAs(t, "alice")
	body := askableBody("1", "tools/call", allQuestions, `"name":"a","arguments":{"n":1}`)
	rd := a.send(t, http.MethodPost, body, as("alice", modernHeaders("tools/call", "a"))).round(t)
	retry := askableBody("2", "tools/call", allQuestions, `"name":"a","arguments":{"n":1}`+rd.retry(map[string]string{"roots/list": someDir}))
	for i, r := range all {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			if got := r.send(t, method, listTools, as("bob", sessionHeaders(session))); got.status != http.StatusNotFound || got.code() != -32001 {
				t.Errorf("%s at %d with the session of another = %+v", method, i, got)
			}
		}
		if got := r.send(t, http.MethodPost, listTools, sessionHeaders(session)); got.status != http.StatusUnauthorized {
			t.Errorf("at %d without a token = %+v", i, got)
		}
		if got := r.send(t, http.MethodPost, retry, as("bob", modernHeaders("tools/call", "a"))); got.code() != -32602 {
			t.Errorf("at %d with the state of another = %+v", i, got)
		}
	}
	for i, r := range all {
		if got := r.send(t, http.MethodPost, listTools, as("alice", sessionHeaders(session))); got.status != 200 {
			t.Errorf("the session at %d = %+v", i, got)
		}
	}
	if got := all[2].send(t, http.MethodPost, retry, as("alice", modernHeaders("tools/call", "a"))); !strings.Contains(got.body, "file:///x") {
		t.Errorf("the retry = %+v", got)
	}
}

// sendAs sends a request to a port as a replica does, on behalf of a principal.
func (r *replica) sendAs(t *testing.T, to replicas.Replica, path, who string, h http.Header) (*http.Response, error) {
	t.Helper()
	rt := r.peers.RoundTripper(to, func(*http.Request) mcp.Sender {
		return mcp.Sender{Share: mcp.Share{Principal: mcp.Principal(who)}, Identity: &mcp.Identity{Principal: mcp.Principal(who)}}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(listTools))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = h
	res, err := rt.RoundTrip(req)
	if err == nil {
		t.Cleanup(func() { res.Body.Close() })
	}
	return res, err
}

// behindProof returns an address that passes requests on to the public listener, except for the
// question whether it is a replica's, without which nothing is sent there.
func (r *replica) behindProof(t *testing.T) string {
	t.Helper()
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		to := r.URL
		if p.In.Method == http.MethodGet && p.In.URL.Path == peer.HelloPath {
			to = r.listener.URL
		}
		p.Out.URL.Scheme, p.Out.URL.Host = "http", strings.TrimPrefix(to, "http://")
	}})
	t.Cleanup(proxy.Close)
	return proxy.Listener.Addr().String()
}

// An envelope says nothing on the public listener, even a signed one.
func TestForwardEnvelopeInPublic(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, withTokens)
	a, b := all[0], all[1]
	session := a.openAs(t, "alice")
	public := replicas.Replica{Instance: a.peers.Self().Instance, Addr: a.behindProof(t)}
	for who, want := range map[string]int{"bob": http.StatusNotFound, "": http.StatusUnauthorized} {
		h := sessionHeaders(session)
		if who != "" {
			h = as(who, h)
		}
		if res, err := b.sendAs(t, public, "/mcp/peer", "alice", h); err != nil || res.StatusCode != want {
			t.Errorf("token of %q, envelope of alice = %v, %v, want %d", who, res, err, want)
		}
	}
	for _, path := range []string{"/peer/hello", "/peer/watch/peer"} {
		if res, err := b.sendAs(t, public, path, "alice", as("alice", sessionHeaders(""))); err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%s on the public listener = %v, %v", path, res, err)
		}
	}
}

// The peer port serves nobody without an envelope, and of nobody else.
func TestForwardPeerPort(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, withTokens)
	a, b := all[0], all[1]
	session := a.openAs(t, "alice")
	port := a.peers.Self()
	foreign, err := peer.New(peer.Options{Engine: b.engine, Keys: []string{"a key of somebody else"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(foreign.Close)
	stranger := &replica{rig: b.rig, peers: foreign}
	t.Run("no envelope", func(t *testing.T) {
		for _, path := range []string{"/mcp/peer", "/message/peer?sessionId=" + session, "/peer/hello", "/", "/metrics"} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+port.Addr+path, strings.NewReader(listTools))
			req.Header = as("alice", sessionHeaders(session))
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s = %d", path, res.StatusCode)
			}
		}
	})
	t.Run("another key", func(t *testing.T) {
		if res, err := stranger.sendAs(t, port, "/mcp/peer", "alice", as("alice", sessionHeaders(session))); err == nil {
			t.Errorf("= %d", res.StatusCode)
		}
	})
	t.Run("for another replica", func(t *testing.T) {
		gone := (*peer.GoneError)(nil)
		if _, err := b.sendAs(t, replicas.Replica{Instance: "ZZZZZZZZ", Addr: port.Addr}, "/mcp/peer", "alice", as("alice", sessionHeaders(session))); !errors.As(err, &gone) {
			t.Errorf("= %v, want that the replica is gone", err)
		}
	})
	t.Run("the token of another", func(t *testing.T) {
		if res, err := b.sendAs(t, port, "/mcp/peer", "alice", as("bob", sessionHeaders(session))); err != nil || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("= %v, %v", res, err)
		}
	})
	t.Run("no token", func(t *testing.T) {
		if res, err := b.sendAs(t, port, "/mcp/peer", "alice", sessionHeaders(session)); err != nil || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("= %v, %v", res, err)
		}
	})
	t.Run("in order", func(t *testing.T) {
		if res, err := b.sendAs(t, port, "/mcp/peer", "alice", as("alice", sessionHeaders(session))); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("= %v, %v", res, err)
		}
	})
}

// A tap passes bytes on to an address, and keeps what was sent there.
type tap struct {
	net.Listener
	mu   sync.Mutex
	sent bytes.Buffer
}

func newTap(t *testing.T, to string) *tap {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tp := &tap{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).Dial("tcp", to)
			if err != nil {
				in.Close()
				return
			}
			t.Cleanup(func() { in.Close(); out.Close() })
			go func() { _, _ = io.Copy(in, out) }()
			go func() { _, _ = io.Copy(io.MultiWriter(out, tp), in) }()
		}
	}()
	return tp
}

func (tp *tap) Write(p []byte) (int, error) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return tp.sent.Write(p)
}

// Whoever reads the wire between replicas can neither send a request again, nor change it.
func TestForwardReplay(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, withTokens)
	a, b := all[0], all[1]
	mine, other := a.openAs(t, "alice"), a.openAs(t, "alice")
	self := a.peers.Self()
	wire := newTap(t, self.Addr)
	if res, err := b.sendAs(t, replicas.Replica{Instance: self.Instance, Addr: wire.Addr().String()}, "/mcp/peer", "alice", as("alice", sessionHeaders(mine))); err != nil || res.StatusCode != 200 {
		t.Fatalf("the request = %v, %v", res, err)
	}
	wire.mu.Lock()
	text := wire.sent.String()
	wire.mu.Unlock()
	for name, sent := range map[string]string{
		"again":           text,
		"another session": strings.Replace(text, mine, other, 1),
		"another method":  strings.Replace(text, "POST ", "DELETE ", 1),
		"another token":   strings.Replace(text, "Bearer alice", "Bearer bob", 1),
		"another body":    strings.Replace(text, "tools/list", "prompt/get", 1),
		"later":           strings.Replace(text, ";exp=1", ";exp=2", 1),
		"another nonce":   strings.Replace(text, ";nonce=", ";nonce=9", 1),
		"another path":    strings.Replace(text, "/mcp/peer", "/mcp/pee2", 1),
	} {
		if got := sendRaw(t, self.Addr, sent); got != http.StatusUnauthorized {
			t.Errorf("%s = %d, want 401", name, got)
		}
	}
	if got := a.send(t, http.MethodPost, listTools, as("alice", sessionHeaders(mine))); got.status != 200 {
		t.Errorf("after all that: %+v", got)
	}
}

// sendRaw sends bytes, and returns the status of the response.
func sendRaw(t *testing.T, addr, text string) int {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// A body that does not come is waited for at the edge, and no longer than elsewhere; a large
// one is bounded at the holder, which answers before it has come.
func TestForwardSlowBody(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, func(o *Options) { o.BodyTimeout = 2 * time.Second; o.bound("body", 100<<10) })
	a, b := all[0], all[1]
	session := a.initialize(t)
	for name, tc := range map[string]struct{ length, sent, want int }{"small": {1000, 1, 408}, "large": {90 << 10, 40 << 10, 408}, "too large": {400 << 10, 200 << 10, 413}} {
		head := fmt.Sprintf("POST /mcp/peer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s", session, tc.length, strings.Repeat("{", tc.sent))
		began := time.Now()
		if got := sendRaw(t, b.Listener.Addr().String(), head); got != tc.want {
			t.Errorf("%s = %d, want %d", name, got, tc.want)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	eventually(t, func() bool { return a.g.inflight.Len() == 0 && b.g.inflight.Len() == 0 })
}

// A long body may arrive after the time for it, if the response does: the deadline ends with
// the body.
func TestForwardLongCall(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, func(o *Options) { o.BodyTimeout = 4 * time.Second })
	session := all[0].initialize(t)
	all[0].peer.handle["tools/call"] = func(c *peerCall) string {
		time.Sleep(5 * time.Second)
		return say("done")
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"x":"` + strings.Repeat("x", 64<<10) + `"}}}`
	if got := all[1].send(t, http.MethodPost, call, sessionHeaders(session)); got.status != 200 || !strings.Contains(got.body, "done") {
		t.Errorf("call = %+v", got)
	}
}

// Headers that the peer listener does not take are refused, and hurt nobody else.
func TestForwardHugeHeaders(t *testing.T) {
	t.Parallel()
	all := newReplicas(t, 2, nil)
	session := all[0].initialize(t)
	h := sessionHeaders(session)
	h.Set("X-Huge", strings.Repeat("x", 300<<10))
	if got := all[1].send(t, http.MethodPost, listTools, h); got.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("huge = %d %.100s, want 431", got.status, got.body)
	}
	h.Set("X-Huge", strings.Repeat("x", 60<<10))
	if got := all[1].send(t, http.MethodPost, listTools, h); got.status != 200 {
		t.Errorf("large = %d %.100s", got.status, got.body)
	}
}

// A token that has expired is refused where the request is served as where it arrives: with
// the status that tells a client to get another.
func TestForwardExpired(t *testing.T) {
	t.Parallel()
	var expired atomic.Bool
	all := newReplicas(t, 2, func(o *Options) {
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) {
			if expired.Load() && r.Header.Get("Mcp-Session-Id") != "" {
				return "", &auth.Refusal{Code: auth.CodeInvalidToken, Reason: "it has expired"}
			}
			return byBearer(r)
		})
	})
	session := all[0].openAs(t, "alice")
	rt := all[1].peers.RoundTripper(all[0].peers.Self(), func(*http.Request) mcp.Sender {
		return mcp.Sender{Identity: &mcp.Identity{Principal: "alice", Expires: time.Now().Add(-time.Second)}}
	})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp/peer", strings.NewReader(listTools))
	req.Header = as("alice", sessionHeaders(session))
	res, err := rt.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Fatalf("an envelope with a credential that has expired = %v, %v", res, err)
	}
	res.Body.Close()
	expired.Store(true)
	if got := all[1].send(t, http.MethodPost, listTools, as("alice", sessionHeaders(session))); got.status != http.StatusUnauthorized || !strings.Contains(got.header.Get("WWW-Authenticate"), "invalid_token") {
		t.Errorf("a token that has expired = %+v", got)
	}
}
