package transport

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// inBubble returns an accepted WebSocket and the client's end, in memory. The returned
// function closes both, before the bubble ends.
func inBubble(t *testing.T, o WebSocketOptions) (ws *websocket.Conn, c *WebSocket, end func()) {
	t.Helper()
	l := bridgetest.Listen()
	conns := make(chan *WebSocket, 1)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := AcceptWebSocket(w, r, AcceptOptions{WebSocketOptions: o})
		if err != nil {
			t.Error(err)
		}
		conns <- c
	})}
	go srv.Serve(l)
	d := websocket.Dialer{NetDialContext: l.DialContext}
	ws, _, err := d.DialContext(t.Context(), "ws://127.0.0.1", nil)
	if err != nil {
		t.Fatal(err)
	}
	c = <-conns
	return ws, c, func() { _ = ws.Close(); _ = c.Close(); _ = srv.Close() }
}

// The connection stays open as long as the peer answers pings, and else is closed after
// twice the interval.
func TestWebSocketLiveness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, c, end := inBubble(t, WebSocketOptions{KeepAlive: 10 * time.Second})
		defer end()
		read := make(chan error, 1)
		go func() { _, err := c.Read(); read <- err }()
		var pings atomic.Int32
		stop := make(chan struct{})
		ws.SetPingHandler(func(string) error {
			pings.Add(1)
			select {
			case <-stop:
				return nil
			default:
				return ws.WriteControl(websocket.PongMessage, nil, time.Time{})
			}
		})
		go func() { _, _, _ = ws.ReadMessage() }() // ends with the connection
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if len(read) > 0 {
			t.Fatalf("lost after an hour: %v", <-read)
		}
		if n := pings.Load(); n != 360 {
			t.Errorf("%d pings in an hour, want 360", n)
		}
		close(stop) // the last pong was a second ago
		begin := time.Now()
		if err := <-read; !errors.Is(err, ErrSilent) {
			t.Errorf("Read() = %v, want %v", err, ErrSilent)
		}
		if d := time.Since(begin); d != 19*time.Second {
			t.Errorf("lost after %v, want 19s", d)
		}
		if err := c.Write([]byte("{}")); !errors.Is(err, ErrSilent) {
			t.Errorf("Write() = %v, want %v", err, ErrSilent)
		}
	})
}

// A silent peer that reads receives the reason for the close.
func TestWebSocketSilenceHasACode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, c, end := inBubble(t, WebSocketOptions{})
		defer end()
		go c.Read()
		ws.SetPingHandler(func(string) error { return nil })
		if code, reason := closeOfSilent(t, ws); code != ClosePolicy || reason != "nothing was heard for 30s" {
			t.Errorf("closed with %d %q", code, reason)
		}
	})
}

func closeOfSilent(t *testing.T, ws *websocket.Conn) (int, string) {
	_, _, err := ws.ReadMessage()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		t.Fatalf("ReadMessage() = %v, want a close frame", err)
	}
	return closed.Code, closed.Text
}

// Each received byte is activity: a long message over a slow line is not silence.
func TestWebSocketSlowMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, c, end := inBubble(t, WebSocketOptions{})
		defer end()
		go func() { // no pongs; ends with the message
			w, _ := ws.NextWriter(websocket.TextMessage)
			for range 10 {
				time.Sleep(25 * time.Second)
				_, _ = w.Write([]byte(strings.Repeat("x", 5000)))
			}
			_ = w.Close()
		}()
		if msg, err := c.Read(); len(msg) != 50_000 || err != nil {
			t.Errorf("Read() = %d bytes, %v, want all", len(msg), err)
		}
	})
}

// Without a running Read nothing is received, so the peer does not count as silent.
func TestWebSocketUnreadIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, c, end := inBubble(t, WebSocketOptions{})
		defer end()
		go func() { _, _, _ = ws.ReadMessage() }()
		time.Sleep(time.Hour)
		if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
		if got := mustRead(t, c); got != `{"a":1}` {
			t.Errorf("Read() = %q", got)
		}
	})
}

// Close waits at most a second for the peer's close frame, and discards messages
// meanwhile.
func TestWebSocketCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, c, end := inBubble(t, WebSocketOptions{})
		defer end()
		read := make(chan error, 1)
		go func() { _, err := c.Read(); read <- err }()
		synctest.Wait()
		begin := time.Now()
		closed := make(chan struct{})
		go func() { _ = c.Close(); close(closed) }()
		synctest.Wait()
		if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"late":true}`)); err != nil {
			t.Fatal(err)
		}
		<-closed
		if d := time.Since(begin); d != closeTime {
			t.Errorf("Close took %v, want %v", d, closeTime)
		}
		if err := <-read; err != ErrClosed {
			t.Errorf("Read() = %v, want %v", err, ErrClosed)
		}
	})
}

// While a long message is sent over a slow line, the ping waits. That does not count as
// silence.
func TestWebSocketSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, c, end := inBubble(t, WebSocketOptions{KeepAlive: 5 * time.Second, WriteTimeout: time.Minute})
		defer end()
		read, wrote := make(chan error, 1), make(chan error, 1)
		go func() { _, err := c.Read(); read <- err }()
		go func() { wrote <- c.Write([]byte(strings.Repeat("x", 1<<20))) }()
		got := make(chan int, 1)
		go func() {
			_, r, err := ws.NextReader()
			n := 0
			for buf := make([]byte, 32<<10); err == nil; time.Sleep(time.Second) {
				var m int
				m, err = r.Read(buf)
				n += m
			}
			got <- n
			_, _, _ = ws.ReadMessage() // and answers pings; ends with the connection
		}()
		if err := <-wrote; err != nil {
			t.Errorf("Write() = %v", err)
		}
		if n := <-got; n != 1<<20 {
			t.Errorf("the peer got %d bytes, want all", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(read) > 0 {
			t.Errorf("lost although it reads: %v", <-read)
		}
	})
}

// Each byte is activity, but the part of a message is held in memory until its end: a
// message that arrives too slowly closes the connection, whole or in fragments.
func TestWebSocketTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, c, end := inBubble(t, WebSocketOptions{KeepAlive: 10 * time.Second, MessageTimeout: 30 * time.Second})
		defer end()
		begin := time.Now()
		if err := ws.WriteMessage(websocket.TextMessage, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // between messages there is no hurry
		ws.SetPingHandler(func(string) error { return nil })
		left := make(chan error, 1)
		go func() { _, _, err := ws.ReadMessage(); left <- err }()
		trickled := make(chan struct{})
		go func() { // ends with the connection
			defer close(trickled)
			w, _ := ws.NextWriter(websocket.TextMessage)
			for err := error(nil); err == nil; time.Sleep(5 * time.Second) {
				_, err = w.Write([]byte(strings.Repeat("x", 5000))) // a fragment or two
			}
		}()
		msg, err := c.Read()
		if took := time.Since(begin) - time.Minute; !errors.Is(err, ErrSlow) || took > 40*time.Second {
			t.Errorf("Read() = %d bytes, %v after %v, want %v after 30s to 40s", len(msg), err, took, ErrSlow)
		}
		var closed *websocket.CloseError
		if err := <-left; !errors.As(err, &closed) || closed.Code != ClosePolicy || closed.Text != "the message took longer than 30s" {
			t.Errorf("the peer read %v", err)
		}
		<-trickled
	})
}

// A server that is busy reads later. Until then it counts as silent only if it sends nothing, and
// what it sends is read; pings and pongs wait for nobody.
func TestWebSocketBusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws, c, end := dialedInBubble(t, WebSocketOptions{KeepAlive: 10 * time.Second})
		defer end()
		got := make(chan string, 10)
		read := make(chan error, 1)
		go func() { // ends with the connection
			for {
				msg, err := c.Read()
				if err != nil {
					read <- err
					return
				}
				got <- string(msg)
			}
		}()
		ctx, leave := context.WithCancel(t.Context())
		begun, behind, withdrawn := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { begun <- c.WriteUntil(ctx, []byte(strings.Repeat("x", 1<<20))) }()
		synctest.Wait()
		go func() { withdrawn <- c.WriteUntil(ctx, []byte("{}")) }()
		go func() { behind <- c.WriteUntil(t.Context(), []byte("{}")) }()
		for range 5 {
			time.Sleep(15 * time.Second)
			_ = ws.WriteControl(websocket.PingMessage, nil, time.Time{})
			_ = ws.WriteMessage(websocket.TextMessage, []byte("progress"))
		}
		leave()
		synctest.Wait()
		if err := <-withdrawn; !errors.Is(err, ErrUnwritten) {
			t.Errorf("the writer of a message that was not begun got %v", err)
		}
		if err := <-begun; err != nil || len(behind) > 0 || len(got) != 5 {
			t.Errorf("a begun message: %v; %d behind it ended, %d messages were read", err, len(behind), len(got))
		}
		if _, msg, err := ws.ReadMessage(); len(msg) != 1<<20 || err != nil {
			t.Fatalf("the server read %d bytes, %v, want all", len(msg), err)
		}
		if _, msg, err := ws.ReadMessage(); string(msg) != "{}" || err != nil {
			t.Fatalf("the server read %q, %v, want the message behind", msg, err)
		}
		if err := <-behind; err != nil {
			t.Error(err)
		}
		go func() { _ = c.Write([]byte(strings.Repeat("x", 1<<20))) }() // and nobody reads or sends any more
		if err := <-read; !errors.Is(err, ErrSilent) {
			t.Errorf("Read() = %v, want %v", err, ErrSilent)
		}
	})
}

// dialedInBubble is inBubble for a dialed WebSocket and the server's end.
func dialedInBubble(t *testing.T, o WebSocketOptions) (ws *websocket.Conn, c *WebSocket, end func()) {
	t.Helper()
	l := bridgetest.Listen()
	conns := make(chan *websocket.Conn, 1)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
		}
		conns <- ws
	})}
	go srv.Serve(l)
	c, err := DialWebSocket(t.Context(), DialOptions{WebSocketOptions: o, URL: "ws://127.0.0.1", Dial: l.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	ws = <-conns
	return ws, c, func() { _ = ws.Close(); _ = c.Close(); _ = srv.Close() }
}
