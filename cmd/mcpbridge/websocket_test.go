package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A socketServer is a notebook of one era behind WebSockets.
type socketServer struct {
	*httptest.Server
	book   *notebook.Notebook
	modern bool

	mu    sync.Mutex // guards the fields below
	got   []string   // what clients sent
	conns []*transport.WebSocket
}

func newSocketServer(t *testing.T, modern bool) *socketServer {
	s := &socketServer{book: notebook.New(notebook.Options{}), modern: modern}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); s.end() })
	return s
}

func (s *socketServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Key") != "open sesame" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	c, err := transport.AcceptWebSocket(w, r, transport.AcceptOptions{})
	if err != nil {
		return // the client sees it
	}
	s.mu.Lock()
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	serve := s.book.Serve
	if s.modern {
		serve = s.book.ServeModern
	}
	_ = serve(context.WithoutCancel(r.Context()), &tapped{c, s}) // until its client leaves, or end
	_ = c.Close()
}

// A tapped notes what its server reads.
type tapped struct {
	transport.Conn
	s *socketServer
}

func (c *tapped) Read() ([]byte, error) {
	msg, err := c.Conn.Read()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.got = append(c.s.got, string(msg))
	return msg, err
}

// asked counts the requests of a method.
func (s *socketServer) asked(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, msg := range s.got {
		if strings.Contains(msg, `"method":"`+method+`"`) {
			n++
		}
	}
	return n
}

// end ends all connections, as a server does that is restarted.
func (s *socketServer) end() {
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.End(transport.CloseGoingAway, "restarting")
	}
}

// url is the server's, with a query that is nobody's business.
func (s *socketServer) url() string { return "ws" + strings.TrimPrefix(s.URL, "http") + "/?q=s3cret" }

// A socketClient is a client of both eras on one WebSocket.
type socketClient struct {
	t    *testing.T
	conn *transport.WebSocket
	read chan string // closed at the end
}

func dialSocket(t *testing.T, endpoint string) *socketClient {
	t.Helper()
	conn, err := transport.DialWebSocket(t.Context(), transport.DialOptions{URL: "ws" + strings.TrimPrefix(endpoint, "http")})
	if err != nil {
		t.Fatal(err)
	}
	c := &socketClient{t, conn, make(chan string, 100)}
	go c.pour() // ends with the connection
	t.Cleanup(func() { _ = conn.Close() })
	return c
}

func (c *socketClient) pour() {
	defer close(c.read)
	for {
		msg, err := c.conn.Read()
		if err != nil {
			return
		}
		c.read <- string(msg)
	}
}

func (c *socketClient) send(text string) {
	c.t.Helper()
	if err := c.conn.Write([]byte(text)); err != nil {
		c.t.Fatalf("Write(%s) = %v", text, err)
	}
}

// until reads to the first message that has all the parts, and returns it.
func (c *socketClient) until(parts ...string) string {
	c.t.Helper()
	late := time.After(bridgetest.Patience)
	for {
		select {
		case msg, ok := <-c.read:
			missing := func(part string) bool { return !strings.Contains(msg, part) }
			if !ok {
				c.t.Fatalf("the connection ended before %q", parts)
			}
			if !slices.ContainsFunc(parts, missing) {
				return msg
			}
		case <-late:
			c.t.Fatalf("no %q within %v", parts, bridgetest.Patience)
		}
	}
}

// all reads until each of the texts has stood in a message, in any order.
func (c *socketClient) all(texts ...string) {
	c.t.Helper()
	for len(texts) > 0 {
		msg := c.until()
		texts = slices.DeleteFunc(texts, func(text string) bool { return strings.Contains(msg, text) })
	}
}

// pass reads what is on its way.
func (c *socketClient) pass() {
	c.t.Helper()
	for {
		select {
		case _, ok := <-c.read:
			if !ok {
				c.t.Fatal("the connection ended")
			}
		case <-time.After(100 * time.Millisecond):
			return
		}
	}
}

// enter opens a legacy session that follows note://todo.
func (c *socketClient) enter() {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
	c.until(`"id":2,"result":`, `"protocolVersion":"2025-11-25"`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	c.until(`"id":3,"result":`, `"edit_note"`)
	c.send(`{"jsonrpc":"2.0","id":6,"method":"resources/subscribe","params":{"uri":"note://todo"}}`)
	c.until(`"id":6,"result":`)
}

// What clients that follow note://todo hear of a change: a session, and the listen
// stream 5.
const (
	plainUpdate  = `"method":"notifications/resources/updated","params":{"uri":"note://todo"}`
	taggedUpdate = `"io.modelcontextprotocol/subscriptionId":5`
)

// edit changes note://todo in c's session. It waits for the answer, and until c's
// session and the listen stream on l, which may be c, have heard of it.
func (c *socketClient) edit(l *socketClient, id, text string) {
	c.t.Helper()
	l.pass()
	c.pass()
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"edit_note","arguments":{"name":"todo","text":"` + text + `"}}}`)
	saved := `"id":` + id + `,"result":{"content":[{"type":"text","text":"saved"}]`
	if c == l {
		c.all(saved, plainUpdate, taggedUpdate)
		return
	}
	c.all(saved, plainUpdate)
	l.all(taggedUpdate)
}

// wantClosed reads to the end of the connection.
func (c *socketClient) wantClosed(code int, reason string) {
	c.t.Helper()
	for range c.read {
	}
	var closed *transport.CloseError
	if _, err := c.conn.Read(); !errors.As(err, &closed) || closed.Code != code || !strings.Contains(closed.Reason, reason) {
		c.t.Errorf("Read() = %v, want code %d and %q", err, code, reason)
	}
}

// WebSockets on both sides, with a server of either era that is found out. What a
// modern client follows survives the server's restart, and so does the session of a
// legacy one with a modern server; with a legacy server it has a session of its own,
// and ends with that.
func TestU03WebSocketOnBothSides(t *testing.T) {
	for _, tt := range []struct {
		era       string
		modern    bool
		subscribe string // the request upstream that keeps a topic
	}{
		{"legacy", false, "resources/subscribe"},
		{"modern", true, "subscriptions/listen"},
	} {
		t.Run(tt.era, func(t *testing.T) {
			server := newSocketServer(t, tt.modern)
			s := serve(t, nil, "-c", configFile(t, "servers: {notes: {url: '"+server.url()+"', type: ws, headers: {X-Key: open sesame}}}\n"))
			c := dialSocket(t, s.Endpoints[0].URL)
			c.send(modernRequest("1", "server/discover", ""))
			c.until(`"id":1,"result":`, `"supportedVersions":["2026-07-28"`)
			if !strings.Contains(s.log.String(), `"era":"`+tt.era+`"`) {
				t.Errorf("log = %s, want the era found out", s.log)
			}

			c.send(modernRequest("4", "resources/read", `,"uri":"note://todo"`))
			c.until(`"id":4,"result":`, `"uri":"note://todo"`)
			c.send(modernRequest("5", "subscriptions/listen", `,"notifications":{"resourceSubscriptions":["note://todo"]}`))
			c.until("acknowledged", "note://todo")
			l := c
			if !tt.modern {
				l = dialSocket(t, s.Endpoints[0].URL)
			}
			l.enter()
			l.edit(c, "7", "one")
			before := server.asked(tt.subscribe)
			server.end()
			if !tt.modern {
				l.wantClosed(transport.CloseRestart, `server "notes" ended the session of this client`)
				l = dialSocket(t, s.Endpoints[0].URL)
				l.enter()
			}
			bridgetest.Eventually(t, "subscribed again", func() bool { return server.asked(tt.subscribe) > before })
			l.edit(c, "8", "two")
			l.edit(c, "9", "three")
			c.send(modernRequest("10", "resources/read", `,"uri":"note://todo"`))
			c.until(`"id":10,"result":`, "three")

			if code := s.stop(); code != 0 {
				t.Errorf("serve = %d, want 0; it logged %s", code, s.log)
			}
			c.until(`"id":5,"result":{"resultType":"complete"`)
			if _, ok := <-c.read; ok {
				t.Error("a message came after the last result")
			}
			c.wantClosed(transport.CloseGoingAway, "")
			if strings.Contains(s.log.String(), "s3cret") {
				t.Errorf("log = %s, want nothing of the query", s.log)
			}
		})
	}
}

// A server that can't be reached, or will not have us, is named with the cause.
func TestServeWebSocketThatIsDown(t *testing.T) {
	server := newSocketServer(t, false)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			s := serve(t, nil, "-c", configFile(t, "servers:\n"+
				"  gone: {url: 'ws://127.0.0.1:1/s3cret', era: "+era+"}\n"+ // where nobody listens
				"  shut: {url: '"+server.url()+"', era: "+era+"}\n"))
			for i, want := range [][]string{
				{`server \"gone\" can't be reached`, "connection refused"},
				{`server \"shut\" can't be reached`, "HTTP 401 Unauthorized; check the credentials in the server's headers"},
			} {
				c := dialSocket(t, s.Endpoints[i].URL)
				c.send(modernRequest("1", "tools/call", `,"name":"x"`))
				if got := c.until(append(want, `"id":1,"error":`)...); strings.Contains(got, "s3cret") {
					t.Errorf("answer = %s, want nothing of the URL", got)
				}
			}
			if strings.Contains(s.log.String(), "s3cret") {
				t.Errorf("log = %s, want nothing of the URLs", s.log)
			}
		})
	}
}

// wrap goes with a WebSocket, too.
func TestWrapWebSocket(t *testing.T) {
	server := newSocketServer(t, false)
	w := wrap(t, []string{"MCPBRIDGE_SERVERS__127_0_0_1__HEADERS__X-KEY=open sesame"}, server.url())
	w.send(modernRequest("1", "tools/call", `,"name":"edit_note","arguments":{"name":"todo","text":"x"}`))
	w.want(`"id":1,"result":`, "saved")
	_ = w.in.Close()
	if err := w.end(); err != nil {
		t.Errorf("wrap ended with %v, want 0; it logged %s", err, w.log)
	}
}
