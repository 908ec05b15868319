package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// The error of a failed handshake has the server's response, and what to do.
func TestDialWebSocketRefused(t *testing.T) {
	upgrade := func(u websocket.Upgrader) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if ws, err := u.Upgrade(w, r, nil); err == nil {
				_, _, _ = ws.ReadMessage()
				_ = ws.Close()
			}
		}
	}
	for _, tt := range []struct {
		name   string
		serve  http.HandlerFunc
		status int
		want   []string
	}{
		{"not found", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "<h1>\nno such page</h1>", http.StatusNotFound)
		}, 404, []string{"HTTP 404 Not Found; it said: <h1> no such page</h1>"}},
		{"no credentials", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "token=abc is wrong", http.StatusUnauthorized)
		}, 401, []string{"HTTP 401", "token=[hidden] is wrong", "check the credentials"}},
		{"moved", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/?k=secret", http.StatusTemporaryRedirect)
		}, 307, []string{"HTTP 307", "redirects are not followed"}},
		{"served as HTTP", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") }, 200, []string{"HTTP 200 OK; it said: hello"}},
		{"another subprotocol", func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Sec-Websocket-Protocol", "chat") // so that gorilla agrees with itself
			upgrade(websocket.Upgrader{Subprotocols: []string{"chat"}})(w, r)
		}, 101, []string{`"chat"`, `want "mcp"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(tt.serve)
			defer srv.Close()
			_, err := DialWebSocket(t.Context(), DialOptions{URL: "ws" + strings.TrimPrefix(srv.URL, "http") + "/?key=secret"})
			var refused *HandshakeError
			if !errors.As(err, &refused) || refused.Status != tt.status {
				t.Fatalf("DialWebSocket() = %v, want a HandshakeError with status %d", err, tt.status)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("DialWebSocket() = %v, want %s in it", err, part)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("DialWebSocket() = %v, want nothing of the query", err)
			}
		})
	}
}

// The handshake has the headers and the subprotocol. A server that chooses none is
// accepted.
func TestDialWebSocketOffers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		serves []string
	}{{"chosen", []string{"mcp"}}, {"none chosen", nil}} {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan http.Header, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got <- r.Header
				ws, err := (&websocket.Upgrader{Subprotocols: tt.serves}).Upgrade(w, r, nil)
				if err != nil {
					return
				}
				defer ws.Close()
				_ = ws.WriteMessage(websocket.TextMessage, []byte(`{"hello":1}`))
				_, _, _ = ws.ReadMessage()
			}))
			defer srv.Close()
			c, err := DialWebSocket(t.Context(), DialOptions{URL: "ws" + strings.TrimPrefix(srv.URL, "http"), Header: http.Header{"Authorization": {"Bearer x"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if h := <-got; h.Get("Authorization") != "Bearer x" || h.Get("Sec-WebSocket-Protocol") != "mcp" {
				t.Errorf("handshake = %v", h)
			}
			if msg := mustRead(t, c); msg != `{"hello":1}` {
				t.Errorf("Read() = %q", msg)
			}
		})
	}
}

// The handshake ends with its context, whatever the server does; the connection does not.
func TestDialWebSocketEndsWithContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Read(make([]byte, 1)) // the request is there
		cancel(why)
		_, _ = io.Copy(io.Discard, c) // ends when the client gives up
	}()
	if _, err := DialWebSocket(ctx, DialOptions{URL: "ws://" + l.Addr().String()}); !errors.Is(err, why) {
		t.Errorf("DialWebSocket() = %v, want %v", err, why)
	}

	a := accept(t, AcceptOptions{})
	ctx, cancelled := context.WithTimeout(t.Context(), time.Minute)
	c, err := DialWebSocket(ctx, DialOptions{URL: a.url()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cancelled()
	far := <-a.conns
	defer far.Close()
	if err := far.Write([]byte(`{"still":1}`)); err != nil {
		t.Fatal(err)
	}
	if msg := mustRead(t, c); msg != `{"still":1}` {
		t.Errorf("Read() = %q, want the connection to outlive the context", msg)
	}
}

func TestDialWebSocketUnreachable(t *testing.T) {
	if _, err := DialWebSocket(t.Context(), DialOptions{URL: "ws://127.0.0.1:1/secret"}); !Unsent(err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("DialWebSocket() = %v, want a failed dial, without the path", err)
	}
	for _, url := range []string{"", "http://127.0.0.1", "ws:///path", "ws://%zz"} {
		if _, err := DialWebSocket(t.Context(), DialOptions{URL: url}); err == nil || strings.Contains(err.Error(), "zz") {
			t.Errorf("DialWebSocket(%q) = %v, want the URL refused and not shown", url, err)
		}
	}
}

// A client that offers subprotocols must offer mcp.
func TestAcceptWebSocketSubprotocols(t *testing.T) {
	for _, tt := range []struct {
		name   string
		offers []string
		status int
		chosen string
	}{
		{"mcp", []string{"mcp"}, 101, "mcp"},
		{"none", nil, 101, ""},
		{"among others", []string{"chat, mcp"}, 101, "mcp"},
		{"on another line", []string{"chat", "mcp"}, 101, "mcp"},
		{"others", []string{"chat, graphql-ws"}, 400, ""},
		{"in capitals", []string{"MCP"}, 400, ""}, // RFC 6455, 11.3.4: compared as they are
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := accept(t, AcceptOptions{})
			ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), a.url(), http.Header{"Sec-Websocket-Protocol": tt.offers})
			if resp == nil || resp.StatusCode != tt.status {
				t.Fatalf("handshake = %v, %v, want status %d", resp, err, tt.status)
			}
			if err != nil {
				if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), `offer "mcp"`) {
					t.Errorf("body = %q, want advice", text)
				}
				return
			}
			c := <-a.conns
			if ws.Subprotocol() != tt.chosen {
				t.Errorf("subprotocol = %q, want %q", ws.Subprotocol(), tt.chosen)
			}
			_ = ws.Close()
			_ = c.Close()
		})
	}
}

// A page of another origin is refused, by CheckOrigin or by default.
func TestAcceptWebSocketOrigin(t *testing.T) {
	a := accept(t, AcceptOptions{CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "https://app.example" }})
	for origin, want := range map[string]int{"https://app.example": 101, "https://evil.example": 403} {
		ws, resp, _ := websocket.DefaultDialer.DialContext(t.Context(), a.url(), http.Header{"Origin": {origin}})
		if resp == nil || resp.StatusCode != want {
			t.Errorf("handshake from %s = %v, want %d", origin, resp, want)
		}
		if ws != nil {
			_ = ws.Close()
			_ = (<-a.conns).Close()
		}
	}
}
