package back

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A server says in several ways that it has lost a session, before it looks at
// the request: everything may be sent again, once, under a new session.
func TestM2L03LostSessionOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string // %s is the request's id
		lost   bool
	}{
		{"404", 404, `Not Found`, true},
		{"404 with a JSON-RPC error of no id", 404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, true},
		{"404 with a session error of the id", 404, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found"}}`, true},
		{"400 without an id", 400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`, true},
		{"400 of text", 400, `no session`, true},
		{"400 with the id", 400, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"bad argument"}}`, false},
		{"404 with the id", 404, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			var calls atomic.Int32
			p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
				if calls.Add(1) > 1 {
					legacytest.AnswerJSON(w, m.ID, `{"content":[]}`)
					return
				}
				text := tt.body
				if strings.Contains(text, "%s") {
					text = fmt.Sprintf(text, m.ID)
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, text)
			}
			p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(tt.status) }
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
			got, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{}))
			if tt.lost {
				if err != nil || got != `{"content":[]}` {
					t.Errorf("Serve = %s, %v, want the second answer", got, err)
				}
				if n := len(p.Requests("initialize")); n != 2 {
					t.Errorf("%d sessions, want 2", n)
				}
				return
			}
			if err == nil || calls.Load() != 1 || len(p.Requests("initialize")) != 1 {
				t.Errorf("Serve = %v after %d calls, want the server's error after 1", err, calls.Load())
			}
		})
	}
}

// Some servers say 400 of a method that they don't know. Nobody may end a session
// with that.
func TestM2L03RefusedMethodKeepsTheSession(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["no/such"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		http.Error(w, `JSON RPC not handled: "no/such" unsupported`, http.StatusBadRequest)
	}
	p.On["tools/call"] = p.On["no/such"]
	p.On["ping"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, `{}`) }
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	_, err := body(b.Serve(t.Context(), ask("no/such", ""), &backtest.Caller{}))
	var refusal *mcp.Refusal
	if !errors.As(err, &refusal) || refusal.Err.Code != -32601 || !strings.Contains(err.Error(), `"no/such"`) {
		t.Errorf("Serve(no/such) = %v, want -32601 that names the method", err)
	}
	_, err = body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{}))
	if err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("Serve(tools/call) = %v, want the status", err)
	}
	if n := len(p.Requests("initialize")); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

func TestM2L03LostTwiceIsAnError(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(404) }
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	_, err := body(b.Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{}))
	if err == nil || !strings.Contains(err.Error(), `server "scripted"`) || !strings.Contains(err.Error(), "404") {
		t.Errorf("Serve = %v, want an error naming the server and the status", err)
	}
	if n := len(p.Requests("tools/list")); n != 2 {
		t.Errorf("sent %d times, want 2", n)
	}
}

// Without Mcp-Session-Id there is no session to lose: a 404 is a 404.
func TestM2L02NoSessionNoLoss(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.Session = ""
	p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, _ wire.Message) { w.WriteHeader(404) }
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	if _, err := body(b.Serve(t.Context(), ask("tools/list", ""), &backtest.Caller{})); err == nil {
		t.Error("Serve = nil error for a 404")
	}
	if n, i := len(p.Requests("tools/list")), len(p.Requests("initialize")); n != 1 || i != 1 {
		t.Errorf("sent %d times in %d sessions, want 1 in 1", n, i)
	}
}

// cutAnswer ends the response without an answer and without an event id.
func cutAnswer(how string) func(http.ResponseWriter, *http.Request, wire.Message) {
	return func(w http.ResponseWriter, _ *http.Request, _ wire.Message) {
		switch how {
		case "stream ended":
			legacytest.StartSSE(w)(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		case "connection cut":
			panic(http.ErrAbortHandler)
		case "stream cut":
			legacytest.StartSSE(w)(`{"jsonrpc":"2.0","method":"notifications/x"}`)
			panic(http.ErrAbortHandler)
		case "body cut":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"jsonrpc":`)
			legacytest.Flush(w)
			panic(http.ErrAbortHandler)
		}
	}
}

func TestM2L03CallThatMayHaveRunIsNotRepeated(t *testing.T) {
	for _, how := range []string{"stream ended", "connection cut", "stream cut", "body cut"} {
		t.Run(how, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			p.On["tools/call"] = cutAnswer(how)
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
			_, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{}))
			for _, part := range []string{`server "scripted"`, "tools/call", "may have taken effect", "not repeated"} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("Serve = %v, want it to say %q", err, part)
				}
			}
			if n := len(p.Requests("tools/call")); n != 1 {
				t.Errorf("sent %d times, want once", n)
			}
			for _, get := range p.Requests("GET") { // there is no event to resume behind
				if v := get.Header.Values("Last-Event-Id"); v != nil {
					t.Errorf("resumed behind %q", v)
				}
			}
		})
	}
}

func TestM2L03ReadsAreRepeatedOnce(t *testing.T) {
	for _, how := range []string{"stream ended", "connection cut", "stream cut", "body cut"} {
		t.Run(how, func(t *testing.T) {
			p := legacytest.NewHTTPServer(t)
			var calls atomic.Int32
			cut := cutAnswer(how)
			p.On["resources/read"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
				if calls.Add(1) == 1 {
					cut(w, r, m)
					return
				}
				legacytest.AnswerJSON(w, m.ID, `{"contents":[]}`)
			}
			b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
			got, err := body(b.Serve(t.Context(), ask("resources/read", `{"uri":"a:b"}`), &backtest.Caller{}))
			if err != nil || got != `{"contents":[]}` || calls.Load() != 2 {
				t.Errorf("Serve = %s, %v after %d calls, want the second answer", got, err, calls.Load())
			}
		})
	}
}

func TestM2L03NothingSentIsAClearError(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	p.On["tools/list"] = listOnce
	b := newTestBack(t, Options{Options: upstream.Options{URL: p.URL}})
	if err := serveOne(t, b, "test/1"); err != nil {
		t.Fatal(err)
	}
	p.Close()
	b.endpoint.Close() // or the request may meet the end of a connection
	_, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{}))
	for _, part := range []string{`server "scripted"`, "can't be reached", "connection refused"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("Serve = %v, want it to say %q", err, part)
		}
	}
	if err != nil && strings.Contains(err.Error(), "may have taken effect") {
		t.Errorf("Serve = %v: nothing was sent", err)
	}
	if s := b.Snapshot(); s.State != upstream.Down || !strings.Contains(s.Err, "refused") {
		t.Errorf("Snapshot = %+v, want it down", s)
	}
}

func TestM2L03ChildExited(t *testing.T) {
	for _, tt := range []struct {
		method, params string
		repeated       bool
	}{
		{"tools/call", `{"name":"x"}`, false},
		{"tools/list", `{}`, true},
		{"prompts/get", `{"name":"x"}`, true},
		{"completion/complete", `{}`, true},
		{"x/extension", `{}`, false},
	} {
		bridgetest.RunBubble(t, tt.method, func(t *testing.T) {
			b, peers := pipeBack(t, Options{})
			sent := 0
			go func() {
				for p := range peers {
					p.Handshake(legacytest.Everything)
					m := p.Want(tt.method)
					if sent++; sent == 1 {
						_ = p.Conn.Close()
						continue
					}
					p.Result(m.ID, `{"ok":true}`)
				}
			}()
			got, err := body(b.Serve(t.Context(), ask(tt.method, tt.params), &backtest.Caller{}))
			if tt.repeated {
				if err != nil || got != `{"ok":true}` || sent != 2 {
					t.Errorf("Serve = %s, %v after %d requests, want the second answer", got, err, sent)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "may have taken effect") || sent != 1 {
				t.Errorf("Serve = %v after %d requests, want an error that says what may have happened", err, sent)
			}
		})
	}
}

// A connection found closed before anything was written is no reason to fail: a
// fresh child has not seen the call.
func TestM2L03CallAfterTheChildExited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, Options{})
		go func() {
			p := <-peers
			p.Handshake(legacytest.Everything)
			p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
			_ = p.Conn.Close()
			p = <-peers
			p.Handshake(legacytest.Everything)
			p.Result(p.Want("tools/call").ID, `{"content":[]}`)
		}()
		if err := serveOne(t, b, "test/1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{})); err != nil {
			t.Errorf("Serve after the child exited = %v", err)
		}
	})
}

// A deafConn is the near end of a connection whose peer stopped taking anything,
// which shows in writing before it shows in reading.
type deafConn struct {
	transport.Conn
	deaf atomic.Bool
	held chan struct{} // what has come while it is deaf is read when this is closed; nil: at once
}

func (c *deafConn) Read() ([]byte, error) {
	text, err := c.Conn.Read()
	if c.held != nil && c.deaf.Load() {
		<-c.held
	}
	return text, err
}

func (c *deafConn) Write(msg []byte) error {
	if c.deaf.Load() {
		return io.ErrClosedPipe
	}
	return c.Conn.Write(msg)
}

// Half a line reached nobody: even tools/call goes to the next child.
func TestM2L03FailedWriteWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []*deafConn
		b := newTestBack(t, Options{Dial: func(context.Context) (transport.Conn, error) {
			near, far := transport.NewPipe()
			conns = append(conns, &deafConn{Conn: near})
			go func() { // ends with the connection
				p := legacytest.NewConnPeer(t, far)
				p.Handshake(legacytest.Everything)
				for text, err := far.Read(); err == nil; text, err = far.Read() {
					m, _ := wire.Parse(text, wire.Options{})
					p.Result(m.ID, `{"content":[]}`)
				}
			}()
			return conns[len(conns)-1], nil
		}})
		for range 2 {
			if _, err := body(b.Serve(t.Context(), ask("tools/call", `{"name":"x"}`), &backtest.Caller{})); err != nil {
				t.Fatal(err)
			}
			conns[0].deaf.Store(true)
		}
		if len(conns) != 2 {
			t.Errorf("%d connections, want 2", len(conns))
		}
	})
}

// What a server has answered before a write to it failed is an answer, also if that is known first: no call
// that it has run fails, and the other one goes to the next child.
func TestM2L03AnswersBeforeAFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conns []*deafConn
		peers := make(chan *legacytest.ConnPeer, 2)
		b := newTestBack(t, Options{Dial: func(context.Context) (transport.Conn, error) {
			near, far := transport.NewPipe()
			t.Cleanup(func() { _ = far.Close() })
			conns = append(conns, &deafConn{Conn: near, held: make(chan struct{})})
			peers <- legacytest.NewConnPeer(t, far)
			return conns[len(conns)-1], nil
		}})
		first := serve(t.Context(), b, ask("tools/call", `{"name":"x"}`))
		p := <-peers
		p.Handshake(legacytest.Everything)
		m := p.Want("tools/call")
		conns[0].deaf.Store(true)
		p.Result(m.ID, `{"content":[]}`)
		second := serve(t.Context(), b, ask("tools/call", `{"name":"y"}`))
		time.Sleep(time.Second)
		_ = p.Conn.Close()
		close(conns[0].held)
		if <-first.done; first.err != nil {
			t.Errorf("the call that was answered = %v, want its result", first.err)
		}
		p = <-peers
		p.Handshake(legacytest.Everything)
		p.Result(p.Want("tools/call").ID, `{"content":[]}`)
		if <-second.done; second.err != nil {
			t.Errorf("the call that was not written = %v, want the result of the next child", second.err)
		}
	})
}
