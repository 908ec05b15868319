package router

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// A client that sends its body byte by byte would hold a connection and the
// buffer for its body for as long as it likes (CWE-400).
func TestSlowBodyIsRefused(t *testing.T) {
	t.Parallel()
	const bound = 100 * time.Millisecond
	for _, tt := range []struct {
		name, path, headers, sent string
		want                      int
	}{
		{"known length", "/mcp/peer", "Content-Type: application/json\r\nContent-Length: 1000\r\n", `{"jsonrpc"`, http.StatusRequestTimeout},
		{"chunked", "/mcp/peer", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n", "a\r\n{\"jsonrpc\"\r\n", http.StatusRequestTimeout},
		// net/http reads on for a while before it answers: that is bounded, too.
		{"refused before its body is read", "/mcp/peer", "Content-Type: text/plain\r\nContent-Length: 1000\r\n", "x", http.StatusUnsupportedMediaType},
		{"no such server", "/mcp/none", "Content-Type: application/json\r\nContent-Length: 1000\r\n", "x", http.StatusNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.BodyTimeout = bound })
			c, err := net.Dial("tcp", r.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			begin := time.Now()
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n%s", tt.path, tt.headers, tt.sent)
			_ = c.SetReadDeadline(begin.Add(10 * time.Second))
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("no answer within %v: %v", time.Since(begin), err)
			}
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != tt.want || !strings.Contains(string(text), `"error":{"code":-32600`) {
				t.Errorf("answer = %d %s, want %d", res.StatusCode, text, tt.want)
			}
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the connection after it: %v, want it closed", err)
			}
		})
	}
}

// A client whose message is on its way for longer than net/http waits until it closes a connection, and
// which reads nothing before all is sent, is told why it was refused.
func TestRefusalReachesASlowSender(t *testing.T) {
	t.Parallel()
	const pieces, piece, pause = 24, 256 << 10, 50 * time.Millisecond // longer than 500 ms
	for _, tt := range []struct {
		name, path, headers string
		chunked             bool
		change              func(*Options)
		want                int
	}{
		{name: "no such server", path: "/mcp/none", headers: "Content-Type: application/json\r\n", want: http.StatusNotFound},
		{name: "no such server, chunked", path: "/mcp/none", headers: "Content-Type: application/json\r\n", chunked: true, want: http.StatusNotFound},
		{name: "another type", path: "/mcp/peer", headers: "Content-Type: text/plain\r\n", want: http.StatusUnsupportedMediaType},
		{name: "without a credential", path: "/mcp/peer", headers: "Content-Type: application/json\r\n", want: http.StatusUnauthorized, change: func(o *Options) {
			o.Auth = auth.Func(func(*http.Request) (mcp.Principal, error) { return "", &auth.Refusal{} })
		}},
		{name: "too large", path: "/mcp/peer", headers: "Content-Type: application/json\r\n", want: http.StatusRequestEntityTooLarge, change: func(o *Options) { o.bound("body", 1<<20) }},
		{name: "too large, chunked", path: "/mcp/peer", headers: "Content-Type: application/json\r\n", chunked: true, want: http.StatusRequestEntityTooLarge, change: func(o *Options) { o.bound("body", 1<<20) }},
		{name: "no memory", path: "/mcp/peer", headers: "Content-Type: application/json\r\n", want: http.StatusServiceUnavailable, change: func(o *Options) { o.bound("memory", 1<<20) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(o *Options) {
				if tt.change != nil {
					tt.change(o)
				}
			})
			c, err := net.Dial("tcp", r.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			length := fmt.Sprint("Content-Length: ", pieces*piece)
			if tt.chunked {
				length = "Transfer-Encoding: chunked"
			}
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n%s%s\r\n\r\n", tt.path, tt.headers, length)
			body := strings.Repeat(" ", piece)
			if tt.chunked {
				body = fmt.Sprintf("%x\r\n%s\r\n", piece, body)
			}
			for i := range pieces {
				time.Sleep(pause)
				if _, err := io.WriteString(c, body); err != nil {
					t.Fatalf("piece %d: %v", i, err)
				}
			}
			_ = c.SetReadDeadline(time.Now().Add(bridgetest.Patience))
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != tt.want || !strings.Contains(string(text), `"error":{"code":-32`) {
				t.Errorf("answer = %d %s, want %d", res.StatusCode, text, tt.want)
			}
		})
	}
}

// A stream has taken its connection from net/http: nothing is left of its request to finish.
func TestStreamOfAChunkedRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	served := make(chan any, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer func() { served <- recover() }()
		r.g.ServeHTTP(w, req)
	}))
	var log bridgetest.Log
	s.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(&log, nil), slog.LevelError)
	s.Start()
	t.Cleanup(s.Close)
	for _, chunked := range []bool{true, false} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		body := modernBody("7", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["note://todo"]}`)
		length := fmt.Sprint("Content-Length: ", len(body))
		if chunked {
			length, body = "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		}
		fmt.Fprintf(c, "POST /mcp/peer HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", length)
		if err := modernHeaders("subscriptions/listen", "").Write(c); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "\r\n"+body)
		_ = c.SetReadDeadline(time.Now().Add(bridgetest.Patience))
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("chunked %v: listen = %v, %v", chunked, res, err)
		}
		_ = c.Close()
		if p := <-served; p != nil || strings.Contains(log.String(), "hijacked") {
			t.Errorf("chunked %v: the handler panicked: %v; the log: %s", chunked, p, log.String())
		}
	}
}

// The bound is on the body alone: a stream and a slow call live on.
func TestBodyTimeoutEndsWithTheBody(t *testing.T) {
	t.Parallel()
	const bound = 500 * time.Millisecond // in which a body arrives, on a busy machine too
	r := newRig(t, func(o *Options) { o.BodyTimeout, o.KeepAlive = bound, bound })
	hold := make(chan struct{})
	r.peer.hold["tools/call"] = hold
	r.peer.answer("tools/call", `{"content":[]}`)
	called := make(chan answer, 1)
	go func() { called <- r.call(t, "1", "tools/call", "a", `"name":"a"`) }()
	f := r.listen(t, "7", `{"resourceSubscriptions":["note://todo"]}`)
	f.next()
	for comments := 0; comments < 5; { // five times the bound
		line, err := f.r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended after %d comments: %v", comments, err)
		}
		if line == ":\n" {
			comments++
		}
	}
	r.peer.push(updated("note://todo"))
	if got := f.next(); !strings.Contains(got, "note://todo") {
		t.Errorf("frame = %s", got)
	}
	close(hold)
	if got := <-called; !strings.Contains(got.body, `"id":1,"result"`) {
		t.Errorf("slow call = %d %s, want its result", got.status, got.body)
	}
	if n := len(r.peer.sent("notifications/cancelled")); n != 0 {
		t.Errorf("%d requests cancelled, want none", n)
	}
}

// A message over a WebSocket is held until its end, like a body, and as long.
func TestWebSocketMessageTooSlow(t *testing.T) {
	t.Parallel()
	limits := &tally{}
	r := newRig(t, func(o *Options) {
		o.BodyTimeout, o.KeepAlive, o.Metrics = 100*time.Millisecond, time.Second, limits // looked at once a second
	})
	ws, _ := r.raw(t, nil)
	// A text frame that is not the last one, of which nothing follows.
	if _, err := ws.NetConn().Write([]byte{0x01, 0x83, 0, 0, 0, 0, '{', ' ', ' '}); err != nil {
		t.Fatal(err)
	}
	go func() { // pings are answered; ends with the connection
		for err := error(nil); err == nil; {
			_, _, err = ws.NextReader()
		}
	}()
	r.eventually(t, "given up", func() bool {
		return limits.limits("body_timeout") == 1 && r.g.Snapshot().Sockets == 0
	})
	if logs := r.logs.String(); !strings.Contains(logs, "a message arrived too slowly") || !strings.Contains(logs, "a message took longer than 100ms") {
		t.Errorf("logs = %s, want the limit and why it was closed", logs)
	}
}
