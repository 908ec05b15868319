package replicas

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A thief is a world in which alice has sessions and calls, and bob would like to have them.
type thief struct {
	*world
	alice, bob http.Header
}

func newThief(t *testing.T, engine string) *thief {
	return newThiefIn(t, setup{engine: engine, links: true})
}

func newThiefIn(t *testing.T, s setup) *thief {
	s.config = "auth:\n  tokens:\n    - {name: alice, token: alice-alice-alice-alice}\n    - {name: bob, token: bob-bob-bob-bob-bob-bob}"
	return &thief{
		world: newWorld(t, s),
		alice: http.Header{"Authorization": {"Bearer alice-alice-alice-alice"}},
		bob:   http.Header{"Authorization": {"Bearer bob-bob-bob-bob-bob-bob"}},
	}
}

// TestLine10Stolen: a session id, an event id or a requestState in the hands of another
// principal is refused on every replica, and on the peer port.
func TestLine10Stolen(t *testing.T) {
	beside(t)
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		beside(t)
		w := newThief(t, engine)
		a := w.replicas[0]
		for _, f := range []*fixture{w.legacy, w.modern} {
			t.Run(f.name, func(t *testing.T) { w.stealSession(t, f, a) })
		}
		t.Run("state", func(t *testing.T) { w.stealState(t, a) })
	})
}

func (w *thief) stealSession(t *testing.T, f *fixture, a *replica) {
	s := w.mustOpen(a, f.name, w.alice)
	events, err := s.follow(a, "")
	if err != nil {
		t.Fatal(err)
	}
	defer events.close()
	for _, r := range w.replicas {
		if got := s.subscribe(t.Context(), r, f.item(0)); got.problem() != "" {
			t.Fatalf("alice at %s: %s", r.name, got.problem())
		}
	}
	f.touch(f.item(0))
	e, err := events.find(recovery, f.item(0))
	if err != nil {
		t.Fatal(err)
	}
	old, err := w.openOld(t.Context(), a, f.name, w.alice)
	if err != nil {
		t.Fatal(err)
	}
	defer old.feed.close()
	for _, credential := range []http.Header{w.bob, {}, {"Authorization": {"Bearer nobody-nobody-nobody-nobody"}}} {
		stolen := &session{w: w.world, server: f.name, id: s.id, header: credential}
		oldStolen := &session{w: w.world, server: f.name, posts: old.posts, header: credential}
		for _, r := range w.replicas {
			for what, status := range map[string]int{
				"a call":                    stolen.mark(t.Context(), r, "stolen").status,
				"an answer":                 stolen.reply(t.Context(), r, []byte("1"), `{"action":"accept","content":{}}`),
				"DELETE":                    stolen.end(t.Context(), r),
				"a message over HTTP+SSE":   oldStolen.send(t.Context(), r, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mark","arguments":{"nonce":"stolen"}}}`),
				"GET":                       stolen.status(t, r, ""),
				"GET behind an event":       stolen.status(t, r, e.id),
				"a call, at the peer port":  stolen.peerStatus(t, r, http.MethodPost, credential),
				"DELETE, at the peer port":  stolen.peerStatus(t, r, http.MethodDelete, credential),
				"a GET, at the peer port":   stolen.peerStatus(t, r, http.MethodGet, credential),
				"alice, at the peer port":   stolen.peerStatus(t, r, http.MethodPost, w.alice),
				"nobody, at the peer port":  stolen.peerStatus(t, r, http.MethodPost, http.Header{}),
				"hello, at the peer port":   get(t, "http://"+r.peer+"/peer/hello"),
				"evict, at the peer port":   get(t, "http://"+r.peer+"/peer/evict"),
				"session, at the peer port": get(t, "http://"+r.peer+"/peer/session"),
			} {
				if status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusNotFound {
					t.Errorf("%s of alice's session in the hands of %q, at %s = %d, want 401, 403 or 404", what, credential, r.name, status)
				}
			}
		}
	}
	for _, e := range f.entries() {
		if e.Nonce == "stolen" {
			t.Error("a stolen session called the server")
		}
	}
	for _, r := range w.replicas {
		if got := s.mark(t.Context(), r, "hers"); got.problem() != "" {
			t.Errorf("alice at %s, after that: %s", r.name, got.problem())
		}
		if got := old.mark(t.Context(), r, "hers"); got.problem() != "" {
			t.Errorf("alice over HTTP+SSE at %s, after that: %s", r.name, got.problem())
		}
	}
}

// status opens the GET stream, and returns the status alone.
func (s *session) status(t *testing.T, r *replica, after string) int {
	t.Helper()
	req, err := s.request(t.Context(), r, http.MethodGet, "")
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	return statusOf(t, req)
}

// peerStatus sends a request of the session to the peer port of a replica, without an
// envelope.
func (s *session) peerStatus(t *testing.T, r *replica, method string, header http.Header) int {
	t.Helper()
	body := ""
	if method == http.MethodPost {
		body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mark","arguments":{"nonce":"stolen"}}}`
	}
	req, err := s.request(t.Context(), r, method, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Del("Authorization")
	for key, values := range header {
		req.Header[key] = values
	}
	req.URL.Host, req.Host = r.peer, r.peer
	return statusOf(t, req)
}

func statusOf(t *testing.T, req *http.Request) int {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close() // a stream may be open
	return res.StatusCode
}

func get(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return statusOf(t, req)
}

func (w *thief) stealState(t *testing.T, a *replica) {
	args := map[string]any{"nonce": "alice's"}
	parked := w.callTool(t.Context(), a.url("legacy"), "ask", args, "", w.alice)
	if parked.state == "" {
		t.Fatalf("a call that asks = %v %d %s", parked.err, parked.status, parked.text)
	}
	for _, r := range w.replicas {
		if got := w.callTool(t.Context(), r.url("legacy"), "ask", args, parked.retry(), w.bob); got.code != -32602 {
			t.Errorf("alice's state in bob's hands at %s = %v %d %s, want -32602", r.name, got.err, got.status, got.text)
		}
	}
	last := w.replicas[len(w.replicas)-1]
	if got := w.callTool(t.Context(), last.url("legacy"), "ask", args, parked.retry(), w.alice); got.problem() != "" {
		t.Errorf("alice's own retry at %s: %s", last.name, got.problem())
	}
}

// TestLine10Envelope: a replayed or altered envelope is refused, and that of a client is
// never believed.
func TestLine10Envelope(t *testing.T) {
	beside(t)
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		beside(t)
		w := newThief(t, engine)
		a, b, c := w.replicas[0], w.replicas[1], w.replicas[2]
		s := w.mustOpen(a, "legacy", w.alice)
		seen := w.capture(t, s, a, b, "seen", flows) // which A has served
		w.wantStatus(t, a, seen, "replayed", http.StatusUnauthorized)
		held := w.capture(t, s, a, b, "held", stalls) // which A has not seen
		w.wantStatus(t, c, held, "at another replica", http.StatusMisdirectedRequest)
		for what, bad := range alterations(t, held) {
			w.wantStatus(t, a, bad, what, http.StatusUnauthorized)
		}
		a.inbound.heal()
		for _, r := range w.replicas {
			until(t, "the session is served at "+r.name+" after that", func() bool { return fails(s.mark(t.Context(), r, "after that")) == nil })
		}
		for _, r := range w.replicas {
			w.believesNoClient(t, r, held, s)
		}
		for _, e := range w.legacy.entries() {
			if e.Nonce == "forged" || e.Nonce == "bob's" {
				t.Errorf("the server was called: %+v", e)
			}
		}
		if got := s.mark(t.Context(), b, "after that"); got.problem() != "" {
			t.Error(got.problem())
		}
	})
}

// capture has B forward a call of the session to A, and returns the bytes of the request. If
// the link to A is to hold them, A has not seen them. On a busy machine B may have taken A for
// gone, and has it called again once the session is served.
func (w *thief) capture(t *testing.T, s *session, a, b *replica, nonce string, to fault) []byte {
	t.Helper()
	var request []byte
	until(t, "the forwarded request is on the link", func() bool {
		a.inbound.heal()
		if fails(s.mark(t.Context(), b, "before "+nonce)) != nil {
			return false
		}
		a.inbound.listen()
		a.inbound.set("", to, flows)
		got := s.mark(t.Context(), b, nonce)
		if to == flows && got.problem() != "" {
			return false
		}
		sent := a.inbound.heard()
		if at := strings.Index(sent, `"`+nonce+`"`); at >= 0 {
			request = []byte(sent[max(0, strings.LastIndex(sent[:at], "POST /")):])
		}
		return request != nil
	})
	if !bytes.Contains(request, []byte("\r\nMcpbridge-Peer:")) && !bytes.Contains(request, []byte("\r\nMcpbridge-Peer: ")) {
		t.Fatalf("no envelope in %q", request)
	}
	return request
}

// alterations returns requests that differ from one in what its envelope vouches for.
func alterations(t *testing.T, request []byte) map[string][]byte {
	t.Helper()
	text := string(request)
	edit := func(pattern, with string) []byte {
		out := regexp.MustCompile(pattern).ReplaceAllString(text, with)
		if out == text {
			t.Fatalf("nothing to alter: %s in %s", pattern, text)
		}
		return []byte(out)
	}
	return map[string][]byte{
		"with another path":        edit(`POST /mcp/legacy`, `POST /mcp/modern`),
		"with a query":             edit(`POST /mcp/legacy`, `POST /mcp/legacy?x=1`),
		"with another method":      edit(`POST /mcp/legacy`, `PUT /mcp/legacy`),
		"with another session":     edit(`(Mcp-Session-Id: .*)..\r\n`, "${1}XX\r\n"),
		"with another sender":      edit(`;from=[^;]*`, ";from=AAAAAAAA"),
		"with another identity":    edit(`(;id=[^;]{8})....`, "${1}AAAA"),
		"with no identity":         edit(`;id=[^;]*`, ""),
		"with a later end":         edit(`;exp=1`, ";exp=2"),
		"with another nonce":       edit(`;nonce=`, ";nonce=9"),
		"with another signature":   edit(`;mac=....`, ";mac=AAAA"),
		"without a signature":      edit(`;mac=[^;\r]*`, ""),
		"without an envelope":      edit(`Mcpbridge-Peer: [^\r]*\r\n`, ""),
		"with bob's bearer token":  edit(`Bearer alice-alice-alice-alice`, "Bearer bob-bob-bob-bob-bob-bob"),
		"without the bearer token": edit(`Authorization: [^\r]*\r\n`, ""),
	}
}

// wantStatus sends bytes to the peer port of a replica.
func (w *thief) wantStatus(t *testing.T, r *replica, request []byte, what string, want int) {
	t.Helper()
	conn, err := net.Dial("tcp", r.peer)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // it is a TCP connection
	if _, err := conn.Write(request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("a request %s to %s: %v", what, r.name, err)
		return
	}
	defer res.Body.Close()
	if res.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		t.Errorf("a request %s to %s = %d %s, want %d", what, r.name, res.StatusCode, text, want)
	}
}

// believesNoClient has bob send alice's envelope to where clients connect, with her session.
func (w *thief) believesNoClient(t *testing.T, r *replica, request []byte, s *session) {
	t.Helper()
	envelope := regexp.MustCompile(`Mcpbridge-Peer: ([^\r]*)\r\n`).FindSubmatch(request)
	header := http.Header{"Mcpbridge-Peer": {string(envelope[1])}, "Authorization": w.bob["Authorization"]}
	stolen := &session{w: w.world, server: "legacy", id: s.id, header: header}
	if got := stolen.mark(t.Context(), r, "bob's"); got.status != http.StatusNotFound && got.status != http.StatusForbidden {
		t.Errorf("bob with alice's envelope at %s = %d %s, want 404 or 403", r.name, got.status, got.text)
	}
	stolen.header = http.Header{"Mcpbridge-Peer": {string(envelope[1])}}
	if got := stolen.mark(t.Context(), r, "bob's"); got.status != http.StatusUnauthorized {
		t.Errorf("nobody with alice's envelope at %s = %d %s, want 401", r.name, got.status, got.text)
	}
}

// TestLine10Expiry: the principal and the expiry of the credential decide at the holder.
func TestLine10Expiry(t *testing.T) {
	beside(t)
	over(t, []string{nats, redis, peers}, func(t *testing.T, engine string) {
		t.Parallel() // most of the time it waits
		i := newIssuer(t)
		w := newWorld(t, setup{engine: engine, config: fmt.Sprintf("public_url: %s\nauth: {jwt: {issuer: %q}}", publicURL, i.url)})
		a, b, c := w.replicas[0], w.replicas[1], w.replicas[2]
		s := w.mustOpen(a, "legacy", i.token("alice", "legacy", time.Hour))
		short := &session{w: w, server: "legacy", id: s.id, header: i.token("alice", "legacy", 4*time.Second)}
		events, err := short.follow(b, "")
		if err != nil {
			t.Fatal(err)
		}
		defer events.close()
		if got := short.mark(t.Context(), c, "in time"); got.problem() != "" {
			t.Error(got.problem())
		}
		mallory := &session{w: w, server: "legacy", id: s.id, header: i.token("mallory", "legacy", time.Hour)}
		if got := mallory.mark(t.Context(), b, "mallory's"); got.status != http.StatusNotFound && got.status != http.StatusForbidden {
			t.Errorf("the session in the hands of another subject = %d %s, want 404 or 403", got.status, got.text)
		}
		until(t, "the stream at B ends with the credential", func() bool { return !events.open() })
		late := &session{w: w, server: "legacy", id: s.id, header: i.token("alice", "legacy", -time.Hour)}
		for _, r := range w.replicas {
			if got := late.mark(t.Context(), r, "too late"); got.status != http.StatusUnauthorized {
				t.Errorf("a call with an expired token at %s = %d %s, want 401", r.name, got.status, got.text)
			}
		}
		if got := s.mark(t.Context(), c, "with another"); got.problem() != "" {
			t.Errorf("alice with another token: %s", got.problem())
		}
	})
}
