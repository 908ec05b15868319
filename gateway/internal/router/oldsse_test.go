package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// numbers are counted by name.
type numbers struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *numbers) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[name]++
}

func (c *numbers) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// A tally counts the limits that were hit.
type tally struct {
	mcp.NoMetrics
	hits numbers
}

func (c *tally) Limit(_, name string)   { c.hits.add(name) }
func (c *tally) limits(name string) int { return c.hits.of(name) }

// An eventClient is a client on HTTP+SSE, over real sockets.
type eventClient struct {
	t        *testing.T
	r        *rig
	res      *http.Response
	in       *bufio.Reader
	messages string // the path of its endpoint event
	comments int
	header   http.Header
}

// openEvents opens a stream and reads where to post.
func (r *rig) openEvents(t *testing.T, path string, header http.Header) *eventClient {
	t.Helper()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Accept", "text/event-stream")
	res := r.openAt(t, http.MethodGet, path, "", header)
	t.Cleanup(func() { res.Body.Close() })
	if typ := res.Header.Get("Content-Type"); res.StatusCode != 200 || typ != "text/event-stream" {
		text, _ := io.ReadAll(res.Body)
		t.Fatalf("GET %s = %d %s %s, want a stream", path, res.StatusCode, typ, text)
	}
	c := &eventClient{t: t, r: r, res: res, in: bufio.NewReader(res.Body), header: header}
	typ, data := c.event()
	if typ != "endpoint" {
		t.Fatalf("the first event is %s %s, want endpoint", typ, data)
	}
	c.messages = data
	return c
}

// event returns the next event, or "" at the stream's end.
func (c *eventClient) event() (typ, data string) {
	c.t.Helper()
	for {
		line, err := c.in.ReadString('\n')
		switch {
		case err != nil:
			return "", ""
		case strings.HasPrefix(line, ":"):
			c.comments++
		case strings.HasPrefix(line, "event: "):
			typ = strings.TrimSpace(line[len("event: "):])
		case strings.HasPrefix(line, "data: "):
			data = strings.TrimSpace(line[len("data: "):])
		case strings.HasPrefix(line, "id:"), strings.HasPrefix(line, "retry:"):
			c.t.Errorf("%q on a stream that can't be resumed", line)
		case line == "\n" && data != "":
			return typ, data
		}
	}
}

func (c *eventClient) post(body string) answer {
	c.t.Helper()
	header := c.header.Clone()
	header.Set("Content-Type", "application/json")
	return c.r.sendTo(c.t, http.MethodPost, c.messages, body, "", header)
}

// send posts a message that has to be accepted.
func (c *eventClient) send(body string) {
	c.t.Helper()
	if got := c.post(body); got.status != http.StatusAccepted || got.body != "Accepted" {
		c.t.Fatalf("POST %s = %d %q, want 202 Accepted", body, got.status, got.body)
	}
}

// want reads the next message, and wants every part in it.
func (c *eventClient) want(parts ...string) string {
	c.t.Helper()
	typ, data := c.event()
	for _, part := range parts {
		if typ != "message" || !strings.Contains(data, part) {
			c.t.Errorf("event = %s %s, want a message with %s", typ, data, part)
		}
	}
	return data
}

func (c *eventClient) initialize(revision, capabilities string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"old","version":"1"}}}`, revision, capabilities))
	c.want(`"id":0,"result"`, `"protocolVersion":"`+revision+`"`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func TestU03HTTPSSEFront(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.peer.answer("tools/list", `{"tools":[]}`)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		return say(c.ask("elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`))
	}
	for _, path := range []string{"/sse/peer", "/sse"} {
		for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
			t.Run(path[1:]+" "+revision, func(t *testing.T) {
				c := r.openEvents(t, path, nil)
				if want := strings.Replace(path, "sse", "message", 1) + "?sessionId="; !strings.HasPrefix(c.messages, want) || len(c.messages) < len(want)+26 {
					t.Errorf("endpoint = %s, want %s and an id of 128 bits or more", c.messages, want)
				}
				c.send(`{"jsonrpc":"2.0","id":"early","method":"tools/list"}`)
				c.want(`"id":"early","error"`, "initialize first")
				c.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
				c.want(`"id":"p","result":{}`)
				c.initialize(revision, `{}`)
				c.send(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`)
				c.want(`"id":7,"result":{"tools":[]`)
			})
		}
	}
	t.Run("questions", func(t *testing.T) {
		c := r.openEvents(t, "/sse/peer", nil)
		c.initialize("2025-11-25", `{"elicitation":{}}`)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`)
		c.want(`"method":"elicitation/create"`, `"id":1,`, `"message":"who?"`)
		c.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"ada"}}}`)
		c.want(`"id":1,"result"`, "ada")
	})
	t.Run("batch", func(t *testing.T) {
		c := r.openEvents(t, "/sse/peer", nil)
		c.initialize("2025-03-26", `{}`)
		c.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
		c.want(`[{"jsonrpc":"2.0","id":`, `"id":1,"result":{}`, `"id":2,"result":{}`)
	})
}

func TestL2M25ChangesOverHTTPSSE(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.openEvents(t, "/sse/peer", nil)
	c.initialize("2024-11-05", `{}`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	c.want(`"id":1,"result":{}`)
	r.peer.push(updated("file:///a"))
	c.want("notifications/resources/updated", "file:///a")
	r.peer.push(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	c.want("notifications/tools/list_changed")
}

// The endpoint event names a path as the client has to send it.
func TestU03EndpointHasThePrefix(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	outer := httptest.NewServer(http.StripPrefix("/deep/down", r.g))
	t.Cleanup(outer.Close)
	inner := r.URL
	for _, tt := range []struct{ name, base, path, forwarded, want string }{
		{"none", inner, "/sse/peer", "", "/message/peer?sessionId="},
		{"taken off by a mux", outer.URL, "/deep/down/sse/peer", "", "/deep/down/message/peer?sessionId="},
		{"taken off by a mux, one server", outer.URL, "/deep/down/sse", "", "/deep/down/message?sessionId="},
		{"taken off by a proxy", inner, "/sse/peer", "/mcp bridge/", "/mcp%20bridge/message/peer?sessionId="},
		{"another origin", inner, "/sse/peer", "//evil.example", "/message/peer?sessionId="},
		{"another scheme", inner, "/sse/peer", "https://evil.example", "/message/peer?sessionId="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r.URL = tt.base
			defer func() { r.URL = inner }()
			h := http.Header{}
			if tt.forwarded != "" {
				h.Set("X-Forwarded-Prefix", tt.forwarded)
			}
			c := r.openEvents(t, tt.path, h)
			if !strings.HasPrefix(c.messages, tt.want) {
				t.Fatalf("endpoint = %s, want %s…", c.messages, tt.want)
			}
			if tt.forwarded != "" {
				return // there is no proxy to take it off
			}
			c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			c.want(`"id":1,"result":{}`)
		})
	}
	r.g.EndStreams() // outer waits for the streams
}

func TestHTTPSSERefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.bound("body", 4096)
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get("Authorization")), nil })
	})
	c := r.openEvents(t, "/sse/peer", http.Header{"Authorization": {"ada"}})
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, tt := range []struct {
		name, method, path, body string
		header                   http.Header

		status int
		code   int64
		text   string
	}{
		{"unknown session", "POST", "/message/peer?sessionId=1x", ping, nil, 404, -32001, "GET /sse/peer"},
		{"foreign principal", "POST", c.messages, ping, http.Header{"Authorization": {"eve"}}, 404, -32001, "no such session"},
		{"no session named", "POST", "/message/peer", ping, nil, 400, -32600, "sessionId"},
		{"no JSON", "POST", c.messages, "hello", nil, 400, -32700, "byte 0"},
		{"no message", "POST", c.messages, `{"jsonrpc":"2.0","id":5}`, nil, 400, -32600, "neither method"},
		{"F-07 too large", "POST", c.messages, `"` + strings.Repeat("x", 5000) + `"`, nil, 413, -32600, "4096 bytes"},
		{"F-08 text/plain", "POST", c.messages, ping, http.Header{"Content-Type": {"text/plain"}}, 415, -32600, "application/json"},
		{"F-08 foreign Origin", "POST", c.messages, ping, http.Header{"Origin": {"https://evil.example"}}, 403, -32600, "evil.example"},
		{"F-08 foreign Origin of a stream", "GET", "/sse/peer", "", http.Header{"Origin": {"https://evil.example"}}, 403, -32600, "evil.example"},
		{"F-08 Accept takes no stream", "GET", "/sse/peer", "", http.Header{"Accept": {"application/json"}}, 406, -32600, "text/event-stream"},
		{"modern batch", "POST", c.messages, "[" + modernBody("1", "tools/list", "") + "]", nil, 400, -32600, "2026-07-28"},
		{"modern stream", "GET", "/sse/peer", "", http.Header{"Mcp-Protocol-Version": {"2026-07-28"}}, 400, -32022, "/mcp/peer"},
		{"POST for a stream", "POST", "/sse/peer", ping, nil, 405, -32600, "/mcp/peer"},
		{"GET of messages", "GET", c.messages, "", nil, 405, -32600, "/sse/peer"},
		{"no such server", "GET", "/sse/other", "", nil, 404, -32600, "peer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{"Authorization": {"ada"}, "Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
			for name, values := range tt.header {
				h[name] = values
			}
			got := r.sendTo(t, tt.method, tt.path, tt.body, "", h)
			if got.status != tt.status || got.code() != tt.code || !strings.Contains(got.body, tt.text) {
				t.Errorf("%d %s, want %d, code %d and %q", got.status, got.body, tt.status, tt.code, tt.text)
			}
		})
	}
	// What asks in the modern way is answered where clients that probe wait for it.
	c.send(modernBody(`"m"`, "server/discover", ""))
	c.want(`"id":"m","error":{"code":-32022`, "/mcp/peer", `"supported":["2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2026-07-28"`)
	c.send(strings.Replace(modernBody("1", "notifications/cancelled", ""), `"id":1,`, "", 1))
	c.send(ping)
	c.want(`"id":1,"result":{}`)
}

func TestF09HTTPSSESessionEndsWithItsStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	heard := make(chan string, 1)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		heard <- c.ask("elicitation/create", `{"message":"who?","requestedSchema":{"type":"object","properties":{}}}`)
		return say("never heard")
	}
	c := r.openEvents(t, "/sse/peer", nil)
	c.initialize("2025-11-25", `{"elicitation":{}}`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`)
	c.want(`"id":1,"result":{}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}`)
	c.want("elicitation/create")
	if n := r.g.Snapshot().Sessions; n != 1 {
		t.Errorf("before: %d sessions, want 1", n)
	}
	c.res.Body.Close()
	r.eventually(t, "the call is cancelled", func() bool { return len(r.peer.sent("notifications/cancelled")) == 1 })
	r.eventually(t, "the server's session, and with it the subscription, is ended", func() bool { return r.peer.ended() == 1 })
	r.eventually(t, "nothing is left", func() bool {
		s := r.g.Snapshot()
		return s.Sessions == 0 && s.Members == 0 && s.Topics == 0 && s.Pairs == 0
	})
	select {
	case got := <-heard:
		if !strings.HasPrefix(got, "error ") && got != "gone" {
			t.Errorf("the question was answered with %s, want it withdrawn", got)
		}
	case <-time.After(patience):
		t.Error("the question is still open")
	}
	if got := c.post(`{"jsonrpc":"2.0","id":3,"method":"ping"}`); got.status != 404 || got.code() != -32001 {
		t.Errorf("POST after the end = %d %s, want 404", got.status, got.body)
	}
}

func TestL2M03HTTPSSESessionsAreBounded(t *testing.T) {
	t.Parallel()
	m := &tally{}
	r := newRig(t, func(o *Options) { o.Metrics = m; o.bound("client_sessions", 2) })
	one := r.openEvents(t, "/sse/peer", nil)
	r.openEvents(t, "/sse/peer", nil)
	got := r.sendTo(t, http.MethodGet, "/sse/peer", "", "", http.Header{"Accept": {"text/event-stream"}})
	if got.status != 503 || got.code() != -32603 || !strings.Contains(got.body, "limits.client_sessions") {
		t.Errorf("a third stream: %d %s, want 503 and the limit's name", got.status, got.body)
	}
	if n := m.limits("client_sessions"); n != 1 {
		t.Errorf("counted %d times, want once", n)
	}
	r.eventually(t, "logged", func() bool { return strings.Contains(r.logs.String(), "session refused") })
	one.res.Body.Close()
	r.eventually(t, "its place is free", func() bool { return r.g.Snapshot().Sessions == 1 })
	r.openEvents(t, "/sse/peer", nil).initialize("2024-11-05", `{}`)
}

func TestHTTPSSEKeepAlive(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.KeepAlive = 10 * time.Millisecond })
	c := r.openEvents(t, "/sse/peer", nil)
	for c.comments < 3 {
		if line, err := c.in.ReadString('\n'); err != nil {
			t.Fatalf("the stream ended with %v", err)
		} else if strings.HasPrefix(line, ":") {
			c.comments++
		}
	}
	c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	c.want(`"id":1,"result":{}`)
}

// A client that does not read loses its session after the write time-out.
func TestHTTPSSEStuckClient(t *testing.T) {
	t.Parallel()
	m := &tally{}
	r := newRig(t, func(o *Options) { o.WriteTimeout, o.Metrics = 200*time.Millisecond, m })
	r.peer.answer("tools/call", say(strings.Repeat("x", 1<<20)))
	conn, err := net.Dial("tcp", r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(conn, "GET /sse/peer HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", r.Listener.Addr())
	in := bufio.NewReaderSize(conn, 16)
	c := &eventClient{t: t, r: r, in: in, header: http.Header{}}
	_, c.messages = c.event()
	c.initialize("2024-11-05", `{}`)
	for i := range 10 {
		if got := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a","arguments":{}}}`, i+1)); got.status != 202 {
			break // it has ended
		}
	}
	r.eventually(t, "the session ended", func() bool { return r.g.Snapshot().Sessions == 0 })
	if n := m.limits("write_timeout"); n != 1 {
		t.Errorf("counted %d times, want once", n)
	}
}

// Shutting down ends a stream after the calls in flight have been answered on it, and
// not in the middle of a response.
func TestHTTPSSEDrains(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	hold := make(chan struct{})
	r.peer.hold["tools/call"] = hold
	r.peer.answer("tools/call", say("done"))
	c := r.openEvents(t, "/sse/peer", nil)
	c.initialize("2024-11-05", `{}`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`)
	r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 1 })
	r.g.EndStreams()
	close(hold)
	c.want(`"id":1,"result"`, "done")
	if rest, err := io.ReadAll(c.in); err != nil || len(strings.TrimSpace(string(rest))) > 0 {
		t.Errorf("the stream ended with %q, %v, want nothing more", rest, err)
	}
	r.eventually(t, "no session is left", func() bool { return r.g.Snapshot().Sessions == 0 })
	got := r.sendTo(t, http.MethodGet, "/sse/peer", "", "", http.Header{"Accept": {"text/event-stream"}})
	if got.status != 503 || !strings.Contains(got.body, "shutting down") {
		t.Errorf("a stream opened while draining: %d %s, want 503", got.status, got.body)
	}
	if err := r.g.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestHTTPSSEDrainIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Drain = 100 * time.Millisecond })
	r.peer.hold["tools/call"] = make(chan struct{})
	c := r.openEvents(t, "/sse/peer", nil)
	c.initialize("2024-11-05", `{}`)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`)
	r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 1 })
	r.g.EndStreams()
	c.want(`"id":1,"error"`)
	if typ, data := c.event(); typ != "" {
		t.Errorf("event = %s %s, want the end", typ, data)
	}
	r.eventually(t, "cancelled upstream", func() bool { return len(r.peer.sent("notifications/cancelled")) == 1 })
}
