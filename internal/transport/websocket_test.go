package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// accepting is a server that accepts WebSockets and passes them to the test.
type accepting struct {
	*httptest.Server
	conns chan *WebSocket
}

func accept(t *testing.T, o AcceptOptions) *accepting {
	a := &accepting{conns: make(chan *WebSocket, 10)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := AcceptWebSocket(w, r, o)
		var refused *HandshakeError
		if errors.As(err, &refused) {
			http.Error(w, refused.Reason, refused.Status)
		}
		if err == nil {
			a.conns <- c
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *accepting) url() string { return "ws" + strings.TrimPrefix(a.URL, "http") }

// raw dials with gorilla, and returns both ends.
func (a *accepting) raw(t *testing.T) (*websocket.Conn, *WebSocket) {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), a.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := <-a.conns
	t.Cleanup(func() { _ = ws.Close(); _ = c.Close() })
	return ws, c
}

// sockets returns both ends of a WebSocket, dialed and accepted.
func sockets(t *testing.T, o WebSocketOptions) (dialed, accepted *WebSocket) {
	t.Helper()
	a := accept(t, AcceptOptions{WebSocketOptions: o})
	dialed, err := DialWebSocket(t.Context(), DialOptions{WebSocketOptions: o, URL: a.url()})
	if err != nil {
		t.Fatal(err)
	}
	accepted = <-a.conns
	t.Cleanup(func() { _ = dialed.Close(); _ = accepted.Close() })
	return dialed, accepted
}

func TestWebSocketCarriesMessages(t *testing.T) {
	dialed, accepted := sockets(t, WebSocketOptions{MaxMessage: 2 << 20})
	long := `{"x":"` + strings.Repeat("grün ", 200_000) + `"}`
	for _, tt := range []struct{ name, sent, want string }{
		{"short", `{"a":1}`, `{"a":1}`},
		{"with line breaks", "\n {\"a\":\n1}\r\n", "{\"a\":\n1}"},
		{"a batch", `[{"a":1},{"b":2}]`, `[{"a":1},{"b":2}]`},
		{"long", long, long},
		{"nothing", "  ", ""},
		{"short again", `{"z":26}`, `{"z":26}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, way := range []struct {
				name     string
				from, to *WebSocket
			}{{"up", dialed, accepted}, {"down", accepted, dialed}} {
				sent := make(chan error, 1)
				go func() { sent <- way.from.Write([]byte(tt.sent)) }()
				if got := mustRead(t, way.to); got != tt.want {
					t.Errorf("%s: Read() = %.80q, want %.80q", way.name, got, tt.want)
				}
				if err := <-sent; err != nil {
					t.Errorf("%s: Write() = %v", way.name, err)
				}
			}
		})
	}
}

// Each message is one text message, even with concurrent writers.
func TestWebSocketOneMessageEach(t *testing.T) {
	ws, c := accept(t, AcceptOptions{}).raw(t)
	const writers, each = 8, 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				if err := c.Write(fmt.Appendf(nil, `{"by":%d,"n":%d,"x":%q}`, i, n, strings.Repeat("x", 3000*i))); err != nil {
					t.Errorf("Write() = %v", err)
				}
			}
		})
	}
	next := make(map[int]int)
	for range writers * each {
		kind, msg, err := ws.ReadMessage()
		var by, n int
		if _, serr := fmt.Sscanf(string(msg), `{"by":%d,"n":%d,`, &by, &n); err != nil || serr != nil || kind != websocket.TextMessage {
			t.Fatalf("ReadMessage() = %d %.60q %v", kind, msg, err)
		}
		if n != next[by] || msg[len(msg)-1] != '}' {
			t.Errorf("message %d of %d came when %d was due", n, by, next[by])
		}
		next[by]++
	}
	wg.Wait()
}

// closeOf reads until the close frame, and returns its code and reason.
func closeOf(t *testing.T, ws *websocket.Conn) (code int, reason string) {
	t.Helper()
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	for {
		if _, _, err := ws.ReadMessage(); err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) {
				t.Fatalf("ReadMessage() = %v, want a close frame", err)
			}
			return closed.Code, closed.Text
		}
	}
}

// A refused client receives the violated rule.
func TestWebSocketCloseCodes(t *testing.T) {
	text := func(ws *websocket.Conn, msg string) error { return ws.WriteMessage(websocket.TextMessage, []byte(msg)) }
	frames := func(ws *websocket.Conn, b ...byte) error { _, err := ws.NetConn().Write(b); return err }
	for _, tt := range []struct {
		name   string
		do     func(*websocket.Conn, *WebSocket) error
		code   int
		reason string
	}{
		{"closed", func(_ *websocket.Conn, c *WebSocket) error { return c.Close() }, 1000, ""},
		{"going away", func(_ *websocket.Conn, c *WebSocket) error { return c.End(CloseGoingAway, "we are closing") }, 1001, "we are closing"},
		{"a long reason", func(_ *websocket.Conn, c *WebSocket) error { return c.End(CloseInternal, strings.Repeat("é", 100)) }, 1011, strings.Repeat("é", 61)},
		{"no mask", func(ws *websocket.Conn, _ *WebSocket) error { return frames(ws, 0x81, 2, '{', '}') }, 1002, "bad MASK"},
		{"an unknown opcode", func(ws *websocket.Conn, _ *WebSocket) error { return frames(ws, 0x83, 0x80, 0, 0, 0, 0) }, 1002, "bad opcode 3"},
		{"a length beyond all", func(ws *websocket.Conn, _ *WebSocket) error {
			return frames(ws, 0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
		}, 1002, "the frames can't be read"},
		{"binary", func(ws *websocket.Conn, _ *WebSocket) error {
			return ws.WriteMessage(websocket.BinaryMessage, []byte(`{}`))
		}, 1003, "a message is text, not binary"},
		{"not UTF-8", func(ws *websocket.Conn, _ *WebSocket) error { return text(ws, "{\"a\":\"\xff\"}") }, 1007, "a message is UTF-8"},
		{"too long", func(ws *websocket.Conn, _ *WebSocket) error { return text(ws, strings.Repeat("x", 5000)) }, 1009, "the message is over 1000 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws, c := accept(t, AcceptOptions{WebSocketOptions: WebSocketOptions{MaxMessage: 1000}}).raw(t)
			read := make(chan error, 1)
			go func() {
				for {
					_, err := c.Read()
					if long := (*TooLongError)(nil); !errors.As(err, &long) {
						read <- err
						return
					}
				}
			}()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = tt.do(ws, c) // it may be refused before it is all written
			}()
			if code, reason := closeOf(t, ws); code != tt.code || reason != tt.reason {
				t.Errorf("closed with %d %q, want %d %q", code, reason, tt.code, tt.reason)
			}
			<-done
			if err := <-read; err == nil || err == io.EOF {
				t.Errorf("Read() = %v, want why", err)
			}
			if err := c.Write([]byte("{}")); err == nil {
				t.Error("Write() after the end = nil, want an error")
			}
		})
	}
}

// The error tells how the peer ended the connection.
func TestWebSocketPeerEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*websocket.Conn) error
		want func(error) bool
	}{
		{"closed with a reason", func(ws *websocket.Conn) error {
			return ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4001, "bye"), time.Time{})
		}, func(err error) bool {
			var closed *CloseError
			return errors.As(err, &closed) && *closed == CloseError{4001, "bye"}
		}},
		{"closed without a word", func(ws *websocket.Conn) error { return ws.WriteControl(websocket.CloseMessage, nil, time.Time{}) }, func(err error) bool {
			var closed *CloseError
			return errors.As(err, &closed) && closed.Code == 1005
		}},
		{"cut", func(ws *websocket.Conn) error { return ws.Close() }, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{"cut within a message", func(ws *websocket.Conn) error {
			_, err := ws.NetConn().Write([]byte{0x81, 0xfe, 1, 0, 0, 0, 0, 0, '{'})
			return errors.Join(err, ws.Close())
		}, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws, c := accept(t, AcceptOptions{}).raw(t)
			if err := tt.end(ws); err != nil {
				t.Fatal(err)
			}
			_, err := c.Read()
			if !tt.want(err) {
				t.Errorf("Read() = %v", err)
			}
			if _, again := c.Read(); again != err {
				t.Errorf("Read() again = %v, want the same", again)
			}
		})
	}
}

// A message that is too long does not close a connection to a server that many clients
// share.
func TestWebSocketDialedSkips(t *testing.T) {
	dialed, accepted := sockets(t, WebSocketOptions{MaxMessage: 1000})
	go func() {
		_ = accepted.Write([]byte(`{"id":7,"result":"` + strings.Repeat("x", 300_000) + `","end":1}`)) // read below, or not
		_ = accepted.Write([]byte(`{"id":8}`))
	}()
	var long *TooLongError
	if _, err := dialed.Read(); !errors.As(err, &long) || long.Limit != 1000 || !strings.HasPrefix(string(long.Start), `{"id":7,"result":"x`) {
		t.Errorf("Read() = %v, want a TooLongError with the message's start", err)
	} else if end := string(long.End); len(end) != longEdge || !strings.HasSuffix(end, `x","end":1}`) {
		t.Errorf("the message ends with %q", end)
	}
	if got := mustRead(t, dialed); got != `{"id":8}` {
		t.Errorf("Read() = %q, want the next message", got)
	}
}

// If a peer does not read, its connection is closed at the write time-out.
func TestWebSocketStuckReader(t *testing.T) {
	ws, c := accept(t, AcceptOptions{WebSocketOptions: WebSocketOptions{WriteTimeout: 100 * time.Millisecond}}).raw(t)
	_ = ws // it reads nothing
	read := make(chan error, 1)
	go func() { _, err := c.Read(); read <- err }()
	msg := []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			for {
				if err := c.Write(msg); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, ErrWriteTimeout) {
			t.Errorf("Write() = %v, want %v", err, ErrWriteTimeout)
		}
	}
	if err := <-read; !errors.Is(err, ErrWriteTimeout) {
		t.Errorf("Read() = %v, want %v", err, ErrWriteTimeout)
	}
}

// Close unblocks both sides, and may be called concurrently.
func TestWebSocketClose(t *testing.T) {
	dialed, accepted := sockets(t, WebSocketOptions{})
	read := make(chan error, 2)
	for _, c := range []*WebSocket{dialed, accepted} {
		go func() { _, err := c.Read(); read <- err }()
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := dialed.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
	wg.Wait()
	ended := []error{<-read, <-read}
	var closed *CloseError
	if err := errors.Join(ended...); !errors.Is(err, ErrClosed) || !errors.As(err, &closed) || closed.Code != CloseNormal {
		t.Errorf("Read() = %v, want %v on one side and code 1000 on the other", ended, ErrClosed)
	}
	if err := dialed.Write([]byte("{}")); err != ErrClosed {
		t.Errorf("Write() = %v, want %v", err, ErrClosed)
	}
	if _, err := dialed.Read(); err != ErrClosed {
		t.Errorf("Read() = %v, want %v", err, ErrClosed)
	}
}

func TestWebSocketOptionsChecked(t *testing.T) {
	for _, o := range []WebSocketOptions{{MaxMessage: -1}, {WriteTimeout: -1}, {KeepAlive: -1}} {
		if _, err := DialWebSocket(t.Context(), DialOptions{WebSocketOptions: o, URL: "ws://127.0.0.1:1"}); err == nil || errors.As(err, new(*net.OpError)) {
			t.Errorf("DialWebSocket(%+v) = %v, want the limit refused", o, err)
		}
	}
}

// A narrow Room has a size, and counts what it has given.
type narrowRoom struct{ size, taken, released int }

func (r *narrowRoom) Grow(n int) error {
	if r.taken+n > r.size {
		return errors.New("full; connect again in 1 second")
	}
	r.taken += n
	return nil
}

func (r *narrowRoom) Release() { r.released, r.taken = r.released+1, 0 }

// The buffer of a message doubles with what arrives; a message without room closes the
// connection with 1013, and none keeps any.
func TestWebSocketMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := &narrowRoom{size: 64 << 10}
		ws, c, end := inBubble(t, WebSocketOptions{Memory: room})
		defer end()
		left := make(chan error, 1)
		go func() { _, _, err := ws.ReadMessage(); left <- err }() // ends with the connection
		go func() {                                                // ends with the connection
			for _, n := range []int{10, 64<<10 - 1, 64 << 10, 10} {
				_ = ws.WriteMessage(websocket.TextMessage, []byte(strings.Repeat("x", n)))
			}
		}()
		for _, n := range []int{10, 64<<10 - 1} {
			if msg, err := c.Read(); len(msg) != n || err != nil || room.taken != 0 {
				t.Fatalf("Read() = %d bytes, %v, and keeps %d, want %d and none", len(msg), err, room.taken, n)
			}
		}
		if msg, err := c.Read(); err == nil || room.taken != 0 {
			t.Errorf("Read() = %d bytes, %v, and keeps %d, want an error", len(msg), err, room.taken)
		}
		var closed *websocket.CloseError
		if err := <-left; !errors.As(err, &closed) || closed.Code != CloseTryLater || closed.Text != "full; connect again in 1 second" {
			t.Errorf("the peer read %v", err)
		}
	})
}
