package router

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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

// The bound is on the body alone: a stream and a slow call live on.
func TestBodyTimeoutEndsWithTheBody(t *testing.T) {
	t.Parallel()
	const bound = 50 * time.Millisecond
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
