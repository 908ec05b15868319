package router

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// mortal answers the handshake, and asks a question once it has got calls requests, none
// of which it answers. It is to die then.
func mortal(t *testing.T, conn transport.Conn, calls int) {
	for calls > 0 {
		text, err := conn.Read()
		if err != nil {
			return
		}
		m, err := wire.Parse(text, wire.Options{})
		switch {
		case err != nil:
			t.Error(err)
		case m.Method == "initialize":
			_ = conn.Write(wire.AppendResult(nil, m.ID, []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"mortal","version":"0"}}`), nil))
		case m.Kind() == wire.Request:
			calls--
		}
	}
	_ = conn.Write([]byte(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`))
}

// An answer of a client that is over limits.body is not waited for: the server that asked
// gets an error in its place, and the client hears why.
func TestS02AnswerTooLong(t *testing.T) {
	t.Parallel()
	long := `{"text":"` + strings.Repeat("x", 1000) + `"}`
	for name, answer := range map[string]string{
		"S-02 id first": `{"jsonrpc":"2.0","id":1,"result":` + long + `}`,
		"S-02 id last":  `{"result":` + long + `,"jsonrpc":"2.0","id":1}`, // as the TypeScript SDK writes it
	} {
		t.Run(name, func(t *testing.T) { answerTooLong(t, answer) })
	}
}

func answerTooLong(t *testing.T, answer string) {
	got := make(chan string, 1)
	r := newRig(t, func(o *Options) {
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", Changes: c, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)},
				Dial: func(context.Context) (transport.Conn, error) {
					near, far := transport.NewPipe()
					t.Cleanup(func() { _ = far.Close() })
					go func() { // ends when it has the answer
						mortal(t, far, 1)
						text, _ := far.Read()
						got <- string(text)
					}()
					return near, nil
				}})
		}
	})
	near, far := newFiles(t, transport.StdioOptions{MaxMessage: 1000})
	l := r.connectOver(t, near, far)
	l.send(hello)
	l.want(`"id":0,"result":`)
	l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`)
	l.want(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create"`)
	l.send(answer)
	l.want(`"id":null,"error":`, "limits.body")
	if text := <-got; !strings.Contains(text, `"id":"q","error":`) || !strings.Contains(text, "1000 bytes") {
		t.Errorf("the server got %s, want an error that names the limit", text)
	}
}

// newMortalRig has a server that dies when it has got so many calls.
func newMortalRig(t *testing.T, calls int) *rig {
	return newRig(t, func(o *Options) {
		o.Servers[0].Open = func(c mcp.Changes) (mcp.Back, error) {
			return legacyback.New(legacyback.Options{Options: upstream.Options{Name: "peer", Changes: c, ClientInfo: []byte(`{"name":"mcpbridge","version":"test"}`)},
				Dial: func(context.Context) (transport.Conn, error) {
					near, far := transport.NewPipe()
					go func() { // ends with the connection, if not before
						mortal(t, far, calls)
						_ = far.Close()
					}()
					return near, nil
				}})
		}
	})
}

// Under a server that dies every call is answered, whatever its client came over, and
// the client then sees the end of the session.
func TestS02DeathIsToldEverywhere(t *testing.T) {
	t.Parallel()
	const calls = 5
	r := newMortalRig(t, calls)
	call := func(n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, n)
	}
	told := func(t *testing.T, next func() string) {
		t.Helper()
		answers := map[string]int{}
		for len(answers) < calls {
			text := next()
			m, err := wire.Parse([]byte(text), wire.Options{})
			switch {
			case err != nil:
				t.Fatalf("sent %q, want %d answers; there were %v", text, calls, answers)
			case m.Kind() == wire.Response && (m.Error == nil || m.Error.Code != -32001):
				t.Errorf("sent %s, want that the session is gone", text)
			case m.Kind() == wire.Response:
				answers[m.ID.String()]++
			}
		}
		for id, n := range answers {
			if n != 1 {
				t.Errorf("%d answers to %s", n, id)
			}
		}
	}
	for range 10 {
		t.Run("S-02 WebSocket", func(t *testing.T) {
			l := r.shaken(t)
			for n := range calls {
				l.send(call(n))
			}
			told(t, l.next)
			if got := l.closed(); !strings.Contains(got.Reason, "peer") {
				t.Errorf("closed with %v, want the server's name", got)
			}
		})
		t.Run("S-02 HTTP+SSE", func(t *testing.T) {
			c := r.openEvents(t, "/sse", nil)
			c.initialize("2025-06-18", `{}`)
			for n := range calls {
				c.send(call(n))
			}
			told(t, func() string { _, data := c.event(); return data })
			if typ, data := c.event(); typ != "" {
				t.Errorf("event = %s %s, want the end", typ, data)
			}
		})
		t.Run("S-02 stdio", func(t *testing.T) {
			near, far := newFiles(t, transport.StdioOptions{})
			l := r.connectOver(t, near, far)
			l.send(hello)
			l.want(`"id":0,"result":`)
			for n := range calls {
				l.send(call(n))
			}
			told(t, l.next)
			if err := l.end(); err == nil || !strings.Contains(err.Error(), "peer") {
				t.Errorf("ServeConn() = %v, want an error that names the server", err)
			}
		})
	}
}

// A slowWriter is a connection whose client takes its time over each message.
type slowWriter struct {
	transport.Conn
	mu sync.Mutex
}

func (c *slowWriter) Write(msg []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	time.Sleep(closeTime / 2)
	return c.Conn.Write(msg)
}

// A client that reads slowly gets all answers, too.
func TestS02DeathIsToldSlowly(t *testing.T) {
	t.Parallel()
	const calls = 6
	r := newMortalRig(t, calls)
	near, far := transport.NewPipe()
	l := r.connectOver(t, near, &slowWriter{Conn: far})
	l.send(hello)
	l.want(`"id":0,"result":`)
	for n := range calls {
		l.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, n+1))
	}
	for answers := 0; answers < calls; {
		if text := l.next(); text == "" {
			t.Fatalf("the connection ended after %d answers, want %d", answers, calls)
		} else if strings.Contains(text, `"error":{"code":-32001`) {
			answers++
		}
	}
}
