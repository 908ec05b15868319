package router

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// An attacker speaks HTTP to a gateway byte by byte.
type attacker struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (r *rig) attack(t *testing.T) *attacker {
	t.Helper()
	c, err := net.Dial("tcp", r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &attacker{t, c, bufio.NewReader(c)}
}

// answer reads the next response, or returns the error of there being none.
func (a *attacker) answer() (answer, error) {
	res, err := http.ReadResponse(a.r, nil)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.Close {
		res.Header.Set("Connection", "close") // which net/http takes away
	}
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(text)}, err
}

// post returns a modern request as it is sent. headers go before the usual ones.
func post(headers, body string) string {
	h := "POST /mcp/peer HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers
	for name, values := range modernHeaders("tools/list", "") {
		h += name + ": " + values[0] + "\r\n"
	}
	return h + "\r\n" + body
}

func chunked(body string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body) }

// A proxy in front that goes by Content-Length takes for a body what the gateway
// takes for the next request: somebody else's answer comes back for it, or headers
// that the proxy would have checked are not (CWE-444). net/http does not tell that
// there were both, so every chunked request ends its connection.
//
// Spec: RFC 9112, 6.3.
func TestChunkedRequestEndsItsConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	body := modernBody("1", "tools/list", "")
	for _, tt := range []struct{ name, headers string }{
		{"with Content-Length", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"},
		{"behind Content-Length", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"},
		{"alone", "Transfer-Encoding: chunked\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := r.attack(t)
			behind := modernBody("2", "tools/list", "")
			_, _ = io.WriteString(a, post(tt.headers, chunked(body))+post(fmt.Sprintf("Content-Length: %d\r\n", len(behind)), behind))
			got, err := a.answer()
			if err != nil || got.status != http.StatusOK || got.header.Get("Connection") != "close" {
				t.Errorf("answer = %d %v, %v, want 200 and Connection: close", got.status, got.header, err)
			}
			if got, err := a.answer(); err == nil {
				t.Errorf("the request behind it was served: %d %s", got.status, got.body)
			}
		})
	}
}

// A request of known length leaves its connection open for the next one.
func TestRequestKeepsItsConnection(t *testing.T) {
	t.Parallel()
	a := newRig(t, nil).attack(t)
	for id := range 3 {
		body := modernBody(fmt.Sprint(id), "tools/list", "")
		_, _ = io.WriteString(a, post(fmt.Sprintf("Content-Length: %d\r\n", len(body)), body))
		if got, err := a.answer(); err != nil || got.status != http.StatusOK {
			t.Fatalf("answer %d = %d, %v, want 200", id, got.status, err)
		}
	}
}

// A header that is there twice is read in one way here and in another elsewhere.
func TestTwoOriginsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.AllowedOrigins = []string{"https://app.example"} })
	for _, origins := range [][2]string{
		{"https://app.example", "https://evil.example"},
		{"http://localhost", "http://localhost"},
		{"", "https://evil.example"},
	} {
		h := modernHeaders("tools/list", "")
		h["Origin"] = origins[:]
		if got := r.send(t, http.MethodPost, modernBody("1", "tools/list", ""), h); got.status != http.StatusForbidden || got.code() != -32600 {
			t.Errorf("Origins %q: %d %s, want 403 with -32600", origins, got.status, got.body)
		}
	}
}

// A distantListener's connections seem to have come in beyond loopback.
type distantListener struct{ net.Listener }

func (l distantListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return distantConn{c}, err
}

type distantConn struct{ net.Conn }

func (distantConn) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 2526}
}

func newDistantRig(t *testing.T, change func(*Options)) *rig {
	r := newRig(t, change)
	s := httptest.NewUnstartedServer(r.g)
	s.Listener = distantListener{s.Listener}
	s.Start()
	r.Server.Close()
	r.Server = s
	return r
}

// A name that leads to a machine of the network can be rebound to it as well as to
// loopback, by a page that its people visit (CWE-350).
func TestHostIsCheckedBeyondLoopback(t *testing.T) {
	t.Parallel()
	r := newDistantRig(t, func(o *Options) {
		o.MachineName, o.AllowedHosts = "box.corp.example", []string{"mcp.example.com"}
	})
	for _, tt := range []struct {
		host   string
		status int
	}{
		{"192.0.2.7:2526", 200},
		{"203.0.113.9", 200}, // behind a translation of addresses
		{"[2001:db8::1]:2526", 200},
		{"[fe80::1%25eth0]:2526", 200},
		{"box.corp.example:2526", 200},
		{"BOX.corp.example", 200},
		{"box", 200},
		{"box.local:2526", 200}, // by multicast DNS
		{"mcp.example.com", 200},
		{"MCP.example.com:443", 200},
		{"localhost:8080", 200}, // by a port of this machine that is forwarded
		{"evil.example", 403},
		{"box.evil.example", 403},
		{"192.0.2.7.evil.example", 403},
		{"mcp.example.com.evil.example", 403},
	} {
		got := r.sendTo(t, http.MethodPost, "/mcp/peer", modernBody("1", "tools/list", ""), tt.host, modernHeaders("tools/list", ""))
		if got.status != tt.status {
			t.Errorf("Host %s: %d %s, want %d", tt.host, got.status, got.body, tt.status)
		}
		if tt.status == 403 && (got.code() != -32600 || !strings.Contains(got.body, "allowed_hosts")) {
			t.Errorf("Host %s: %s, want -32600 and the key that allows it", tt.host, got.body)
		}
	}
}

// Where a listener is beyond loopback, connections from the machine itself are not.
func TestHostOnLoopback(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.MachineName, o.AllowedHosts = "box", []string{"mcp.example.com"} })
	for host, want := range map[string]int{"localhost": 200, "127.0.0.1:1": 200, "[::1]": 200, "MCP.example.com": 200, "box": 403, "192.0.2.7": 403, "evil.example": 403} {
		if got := r.sendTo(t, http.MethodPost, "/mcp/peer", modernBody("1", "tools/list", ""), host, modernHeaders("tools/list", "")); got.status != want {
			t.Errorf("Host %s: %d, want %d", host, got.status, want)
		}
	}
}

// A client can't read an answer with an escape that does not exist in it. It has to be
// told, and not to be left waiting: as much of the answer can be read as tells whose it is.
func TestF07BadEscapeOfServerIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, escape := range []string{`\q`, `\u12`, `\u12g4`, strings.Repeat("x", 300) + `\N` + strings.Repeat("x", 300)} {
		for _, stream := range []bool{false, true} {
			r.peer.mu.Lock()
			r.peer.before["tools/call"] = nil
			if stream {
				r.peer.before["tools/call"] = []string{`{"jsonrpc":"2.0","method":"notifications/x"}`}
			}
			r.peer.mu.Unlock()
			r.peer.answer("tools/call", `{"content":[{"type":"text","text":"`+escape+`"}]}`)
			got := r.call(t, "1", "tools/call", "a", `"name":"a"`)
			if !json.Valid([]byte(got.body)) || got.code() != -32603 || !strings.Contains(got.body, "can't be read") {
				t.Errorf("escape %.10s, stream %v: %d %.300s, want an error that says why", escape, stream, got.status, got.body)
			}
		}
	}
}

// from returns a client at an address of loopback; forwarded, if not empty, is whom it
// says it speaks for. It has one connection: the gateway is done with a request before it
// reads the next.
func (r *rig) from(t *testing.T, addr, forwarded string) func(method, body string, h http.Header) answer {
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	c := &http.Client{Transport: &http.Transport{DialContext: d.DialContext, MaxConnsPerHost: 1}}
	t.Cleanup(c.CloseIdleConnections)
	return func(method, body string, h http.Header) answer {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, r.URL+"/mcp/peer", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if req.Header = h.Clone(); forwarded != "" {
			req.Header.Set("X-Forwarded-For", forwarded)
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() }) // a WebSocket stays open until then
		if res.StatusCode == http.StatusSwitchingProtocols {
			return answer{status: res.StatusCode}
		}
		text, _ := io.ReadAll(res.Body)
		return answer{res.StatusCode, res.Header, string(text)}
	}
}

// As long as everybody is anonymous, one client could take the sessions of all: what
// each may have is by address, and whoever needs room takes it from their own.
func TestSharesOfAnonymousAreByAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.bound("client_sessions", 4)
		o.bound("client_sessions_each", 3)
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}
	})
	hello := func(c func(string, string, http.Header) answer) string {
		t.Helper()
		got := c(http.MethodPost, initializeText, http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}})
		return got.header.Get("Mcp-Session-Id")
	}
	alive := func(c func(string, string, http.Header) answer, id string) bool {
		t.Helper()
		return c(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, http.Header{"Content-Type": {"application/json"},
			"Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {id}}).status == http.StatusOK
	}
	good, bad := r.from(t, "127.0.0.2", ""), r.from(t, "127.0.0.3", "127.0.0.2")
	id := hello(good)
	for range 10 {
		if hello(bad) == "" {
			t.Fatal("the attacker was refused, want its own sessions to end")
		}
	}
	if !alive(good, id) {
		t.Error("a session ended for those of another address")
	}
	proxied := r.from(t, "127.0.0.9", "203.0.113.9")
	first := hello(proxied) // in all there are too many: one of those who have idled longest
	for range 3 {
		last := hello(proxied) // which is not used, or it could not make room for a moment
		if alive(proxied, first) {
			t.Error("want the own session to end for a new one when there are too many in all")
		}
		first = last
	}
	if !alive(proxied, first) {
		t.Error("the last session of its own has ended, too")
	}
}

// WebSockets and calls that wait are counted as sessions are.
func TestSocketsAndParkedCallsAreByAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.bound("websockets_each", 1); o.bound("parked_each", 1) })
	upgrade := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"mcp"}}
	r.peer.mu.Lock()
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		c.ask("elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`)
		return `{"content":[]}`
	}
	r.peer.mu.Unlock()
	asked := strings.Replace(modernBody("1", "tools/call", `"name":"a"`), `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{"form":{}}}`, 1)
	for _, addr := range []string{"127.0.0.2", "127.0.0.3"} {
		for i, want := range []int{http.StatusSwitchingProtocols, http.StatusServiceUnavailable} {
			if got := r.from(t, addr, "")(http.MethodGet, "", upgrade); got.status != want {
				t.Errorf("WebSocket %d of %s: %d %s, want %d", i, addr, got.status, got.body, want)
			}
		}
		for i, want := range []string{`"resultType":"input_required"`, `"content":[]`} { // the second question is refused
			if got := r.from(t, addr, "")(http.MethodPost, asked, modernHeaders("tools/call", "a")); !strings.Contains(got.body, want) {
				t.Errorf("call %d of %s: %d %s, want %s", i, addr, got.status, got.body, want)
			}
		}
	}
}
