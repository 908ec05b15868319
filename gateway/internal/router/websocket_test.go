package router

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

func (r *rig) socketURL() string { return "ws" + strings.TrimPrefix(r.URL, "http") + "/mcp/peer" }

// socket opens a WebSocket to the gateway.
func (r *rig) socket(t *testing.T) *line {
	t.Helper()
	conn, err := transport.DialWebSocket(t.Context(), transport.DialOptions{URL: r.socketURL()})
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, conn: conn, read: make(chan string, 100)}
	go l.pour() // ends with the connection
	t.Cleanup(func() { _ = conn.Close() })
	return l
}

// raw opens a WebSocket with gorilla alone.
func (r *rig) raw(t *testing.T, header http.Header) (*websocket.Conn, *http.Response) {
	t.Helper()
	ws, resp, _ := websocket.DefaultDialer.DialContext(t.Context(), r.socketURL(), header)
	if resp == nil {
		t.Fatal("no answer to the handshake")
	}
	if ws != nil {
		t.Cleanup(func() { _ = ws.Close() })
	}
	return ws, resp
}

// closed wants nothing more but the close frame, and returns what it says.
func (l *line) closed() transport.CloseError {
	l.t.Helper()
	for {
		select {
		case msg, ok := <-l.read:
			if ok {
				l.t.Errorf("sent = %s, want the end", msg)
				continue
			}
			var closed *transport.CloseError
			if !errors.As(l.last, &closed) {
				l.t.Fatalf("Read() = %v, want a close frame", l.last)
			}
			return *closed
		case <-time.After(patience):
			l.t.Fatalf("not closed after %v", patience)
		}
	}
}

func (r *rig) wantNothingLeft(t *testing.T) {
	t.Helper()
	var s Snapshot
	r.eventually(t, "nothing left", func() bool {
		s = r.g.Snapshot()
		return s.Sockets == 0 && s.Streams == 0 && s.Members == 0 && s.Pairs == 0
	})
}

const goingAwayText = "mcpbridge is shutting down"

func TestF11EachEnvelopeDecidesOverWebSocket(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	eachEnvelopeDecides(t, r, r.socket(t))
}

// Both eras on one WebSocket, to the end in order: the listen stream gets its result,
// and what was cancelled stays unanswered.
func TestF11TwoErasOnOneWebSocket(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	l := r.socket(t)
	twoEras(t, r, l)
	if s := r.g.Snapshot(); s.Sockets != 1 || s.Streams != 1 {
		t.Errorf("snapshot = %+v, want a WebSocket with a stream", s)
	}
	if err := r.g.EndConnections(t.Context()); err != nil {
		t.Errorf("EndConnections() = %v", err)
	}
	l.want(`"id":3,"result":{"resultType":"complete"`)
	if got, want := l.closed(), (transport.CloseError{Code: 1001, Reason: goingAwayText}); got != want {
		t.Errorf("closed with %+v, want %+v", got, want)
	}
	r.wantNothingLeft(t)
}

const initializeText = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`

// shaken opens a WebSocket with a legacy session on it.
func (r *rig) shaken(t *testing.T) *line {
	t.Helper()
	l := r.socket(t)
	l.send(initializeText)
	l.want(`"id":0,"result":`)
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return l
}

// However a client leaves, its session ends with all it had, and its calls of either
// era are cancelled.
func TestF09LostWebSocketEndsItsSession(t *testing.T) {
	t.Parallel()
	closed := func(ws *websocket.Conn) error {
		return ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Time{})
	}
	for _, tt := range []struct {
		name    string
		leave   func(*websocket.Conn) error
		streams bool // there is a listen stream, whose result can't be sent
	}{
		{"F-09 closed", closed, true},
		{"F-09 closed with calls alone", closed, false},
		{"F-09 cut", (*websocket.Conn).Close, true},
		{"F-09 cut with calls alone", (*websocket.Conn).Close, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Drain = time.Hour }) // nobody is waited for
			r.peer.hold["tools/call"] = make(chan struct{})
			ws, _ := r.raw(t, nil)
			for i, text := range []string{
				initializeText,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`,
				modernBody("2", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`),
				`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","arguments":{}}}`,
				modernBody("4", "tools/call", `"name":"a"`),
			} {
				if i == 3 && !tt.streams {
					continue
				}
				if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
					t.Fatal(err)
				}
				if i == 0 || i == 2 || i == 3 { // answered, or acknowledged
					if _, msg, err := ws.ReadMessage(); err != nil || strings.Contains(string(msg), `"error"`) {
						t.Fatalf("ReadMessage() = %s, %v", msg, err)
					}
				}
			}
			r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 2 })
			if err := tt.leave(ws); err != nil {
				t.Fatal(err)
			}
			r.eventually(t, "both cancelled upstream", func() bool { return len(distinct(r.peer.sent("notifications/cancelled"))) == 2 })
			r.wantNothingLeft(t)
			r.eventually(t, "the server's session, and with it the subscription, is ended", func() bool { return r.peer.ended() > 0 })
		})
	}
}

// distinct leaves out what was said before.
func distinct(msgs []string) []string {
	slices.Sort(msgs)
	return slices.Compact(msgs)
}

func TestM2L40StreamsOnOneWebSocket(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	checkStreamsApart(t, r, r.socket(t))
}

// What is wrong with a handshake is said in words, before there is a connection.
func TestWebSocketHandshakeRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, tt := range []struct {
		name   string
		header http.Header
		path   string
		status int
		want   string
	}{
		{"F-08 a foreign Origin", http.Header{"Origin": {"https://evil.example"}}, "/mcp/peer", 403, "allowed_origins"},
		{"F-08 a foreign Host", http.Header{"Host": {"rebound.example"}}, "/mcp/peer", 403, "allowed_hosts"},
		{"another subprotocol", http.Header{"Sec-Websocket-Protocol": {"chat"}}, "/mcp/peer", 400, `offer "mcp"`},
		{"no such server", nil, "/mcp/nobody", 404, "the servers are"},
		{"nothing there", nil, "/elsewhere", 404, "/mcp/NAME"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(r.URL, "http")+tt.path, tt.header)
			if err == nil {
				_ = ws.Close()
				t.Fatal("it was accepted")
			}
			body, _ := io.ReadAll(resp.Body)
			var m struct{ Error struct{ Message string } }
			if jerr := json.Unmarshal(body, &m); jerr != nil || resp.StatusCode != tt.status || !strings.Contains(m.Error.Message, tt.want) {
				t.Errorf("answer = %d %s, want %d and %s", resp.StatusCode, body, tt.status, tt.want)
			}
		})
	}
	t.Run("an old version", func(t *testing.T) {
		got := r.send(t, http.MethodGet, "", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"8"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}})
		if got.status != 400 || got.header.Get("Sec-Websocket-Version") != "13" || got.code() != -32600 {
			t.Errorf("answer = %d %v %s, want 400 and the version that is served", got.status, got.header, got.body)
		}
	})
	if s := r.g.Snapshot(); s.Sockets != 0 {
		t.Errorf("%d WebSockets are open, want none", s.Sockets)
	}
}

// A page of this machine may connect, with a modern header or without, and where there
// is one server its name need not be said.
func TestWebSocketAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, tt := range []struct {
		name, path string
		header     http.Header
		chosen     string
	}{
		{"plain", "/mcp/peer", nil, ""},
		{"the only server", "/mcp", nil, ""},
		{"with the subprotocol", "/mcp/peer", http.Header{"Sec-Websocket-Protocol": {"mcp"}}, "mcp"},
		{"a page of this machine", "/mcp/peer", http.Header{"Origin": {"http://localhost:6274"}}, ""},
		{"with a modern header", "/mcp/peer", http.Header{"Mcp-Protocol-Version": {"2026-07-28"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(r.URL, "http")+tt.path, tt.header)
			if err != nil {
				t.Fatalf("handshake = %v, %v", resp, err)
			}
			defer ws.Close()
			if ws.Subprotocol() != tt.chosen {
				t.Errorf("subprotocol = %q, want %q", ws.Subprotocol(), tt.chosen)
			}
			if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err != nil {
				t.Fatal(err)
			}
			if kind, msg, err := ws.ReadMessage(); kind != websocket.TextMessage || string(msg) != `{"jsonrpc":"2.0","id":1,"result":{}}` {
				t.Errorf("ReadMessage() = %d %s %v", kind, msg, err)
			}
		})
	}
}

// counts notes the limits that were hit.
type counts struct {
	mcp.NoMetrics
	mu     sync.Mutex
	limits []string
	open   int // WebSockets
}

func (c *counts) Sockets(_ string, delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += delta
}

func (c *counts) Limit(server, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits = append(c.limits, server+" "+name)
}

func (c *counts) sockets() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

func (c *counts) hit(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(strings.Join(c.limits, ","), what)
}

// A message over the limit is answered, counted and logged, and ends the connection.
func TestF07WebSocketMessageTooLong(t *testing.T) {
	t.Parallel()
	limits := &counts{}
	r := newRig(t, func(o *Options) { o.Metrics = limits; o.bound("body", 2000) })
	l := r.shaken(t)
	go func() {
		_ = l.conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`))
	}()
	l.want(`"id":1,"error":{"code":-32600`, "limits.body")
	if got, want := l.closed(), (transport.CloseError{Code: 1009, Reason: "the message is over 2000 bytes"}); got != want {
		t.Errorf("closed with %+v, want %+v", got, want)
	}
	if !limits.hit("peer body") || !strings.Contains(r.logs.String(), "too large") {
		t.Errorf("limits hit = %q, log %s; want it counted and logged", limits.limits, r.logs)
	}
	r.wantNothingLeft(t)
}

// The bounds on open WebSockets, in all and for one principal: who meets one is told,
// and a place is free again when another leaves.
func TestWebSocketLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		max, each int
		opened    []string // principals, in turn
		refused   string
		limit     string
	}{
		{"in all", 2, 2, []string{"ada", "bob"}, "cyd", "websockets"},
		{"of one principal", 3, 1, []string{"ada", "bob"}, "ada", "websockets_each"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := &counts{}
			r := newRig(t, func(o *Options) {
				o.Metrics = limits
				o.bound("websockets", tt.max)
				o.bound("websockets_each", tt.each)
				o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get("X-Who")), nil })
			})
			var first *websocket.Conn
			for _, who := range tt.opened {
				ws, resp := r.raw(t, http.Header{"X-Who": {who}})
				if ws == nil {
					t.Fatalf("%s: %d, want a WebSocket", who, resp.StatusCode)
				}
				if first == nil {
					first = ws
				}
			}
			ws, resp := r.raw(t, http.Header{"X-Who": {tt.refused}})
			body, _ := io.ReadAll(resp.Body)
			if ws != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "limits."+tt.limit) {
				t.Fatalf("one too many = %d %s, want 503 that names the limit", resp.StatusCode, body)
			}
			r.eventually(t, "two counted", func() bool { return limits.sockets() == 2 && r.g.Snapshot().Sockets == 2 })
			if !limits.hit("peer "+tt.limit) || !strings.Contains(r.logs.String(), "too many are open") {
				t.Errorf("limits hit = %q, want it counted and logged", limits.limits)
			}
			_ = first.Close()
			r.eventually(t, "one left", func() bool { return limits.sockets() == 1 && r.g.Snapshot().Sockets == 1 })
			if ws, resp := r.raw(t, http.Header{"X-Who": {tt.refused}}); ws == nil {
				t.Errorf("after one has left = %d, want a WebSocket", resp.StatusCode)
			}
		})
	}
}

// The credentials of the handshake are those of every request on the connection.
func TestWebSocketPrincipal(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) {
		o.Auth = auth.Func(func(r *http.Request) (mcp.Principal, error) { return mcp.Principal(r.Header.Get("X-Who")), nil })
	})
	r.peer.answer("tools/call", say("done"))
	for i, who := range []string{"ada", "bob", "ada"} {
		ws, _ := r.raw(t, http.Header{"X-Who": {who}})
		if err := ws.WriteMessage(websocket.TextMessage, []byte(modernBody("1", "tools/call", `"name":"a"`))); err != nil {
			t.Fatal(err)
		}
		if _, msg, err := ws.ReadMessage(); err != nil || !strings.Contains(string(msg), "done") {
			t.Fatalf("ReadMessage() = %s, %v", msg, err)
		}
		if got, want := len(r.peer.sent("initialize")), []int{1, 2, 2}[i]; got != want {
			t.Errorf("after a call of %s: %d upstream sessions, want %d", who, got, want)
		}
	}
}

// A shutdown waits for calls, as long as it may, and then for nobody.
func TestWebSocketShutdown(t *testing.T) {
	t.Parallel()
	t.Run("calls are answered", func(t *testing.T) {
		r := newRig(t, nil)
		hold := make(chan struct{})
		r.peer.hold["tools/call"] = hold
		r.peer.answer("tools/call", say("done"))
		l := r.shaken(t)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`)
		r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 1 })
		r.g.EndStreams()
		if _, resp := r.raw(t, nil); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a new one = %d, want 503", resp.StatusCode)
		}
		ended := make(chan error, 1)
		go func() { ended <- r.g.EndConnections(t.Context()) }()
		close(hold)
		l.want(`"id":1,"result":`, "done")
		if got := l.closed(); got.Code != 1001 || got.Reason != goingAwayText {
			t.Errorf("closed with %+v", got)
		}
		if err := <-ended; err != nil {
			t.Errorf("EndConnections() = %v", err)
		}
	})
	t.Run("or cut off", func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Drain = time.Hour })
		r.peer.hold["tools/call"] = make(chan struct{})
		l := r.shaken(t)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}`)
		r.eventually(t, "called", func() bool { return len(r.peer.sent("tools/call")) == 1 })
		late := errors.New("late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
		defer cancel()
		if err := r.g.EndConnections(ctx); !errors.Is(err, late) {
			t.Errorf("EndConnections() = %v, want %v", err, late)
		}
		if got := l.closed(); got.Code != 1001 {
			t.Errorf("closed with %+v", got)
		}
		r.eventually(t, "cancelled upstream", func() bool { return len(distinct(r.peer.sent("notifications/cancelled"))) == 1 })
		r.wantNothingLeft(t)
	})
}

// A client that answers no pings is lost, and its session with it.
func TestF09SilentWebSocketIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.KeepAlive = 2 * time.Second }) // a busy machine answers within twice that
	ws, _ := r.raw(t, nil)
	ws.SetPingHandler(func(string) error { return nil })
	if err := ws.WriteMessage(websocket.TextMessage, []byte(initializeText)); err != nil {
		t.Fatal(err)
	}
	if _, msg, err := ws.ReadMessage(); err != nil {
		t.Fatalf("ReadMessage() = %s, %v", msg, err)
	}
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	_, _, err := ws.ReadMessage()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != 1008 {
		t.Errorf("ReadMessage() = %v, want code 1008", err)
	}
	r.wantNothingLeft(t)
}
