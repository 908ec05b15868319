package back

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

func TestM2L04IdsAndTokensOnASharedConnection(t *testing.T) {
	b, peers := upLines(t, Options{})
	ask := func(who string, token string) (<-chan outcome, *backtest.Caller) {
		req := upRequest("tools/call", fmt.Sprintf(`{"name":%q,"_meta":{"progressToken":%s}}`, who, token))
		req.ProgressToken = json.RawMessage(token)
		x := &backtest.Caller{Told: make(chan string, 4)}
		return upServe(t.Context(), b, req, x), x
	}
	one, first := ask("one", `0`)
	p := <-peers
	m1 := p.Want("tools/call")
	two, second := ask("two", `0`)
	m2 := p.Want("tools/call")
	seen := make(map[string]bool)
	for _, m := range []wire.Message{m1, m2} {
		token := string(wire.Get(wire.Get(m.Params, "_meta"), "progressToken"))
		if n, ok := m.ID.Int(); !ok || n < 1 || n > 9 || token != m.ID.String() || seen[token] {
			t.Errorf("id %s and token %s, want small positive integers of its own", m.ID, token)
		}
		seen[token] = true
	}
	p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":2}}`, m2.ID)
	p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m1.ID)
	const want = `notifications/progress {"progressToken":0,"progress":%d}`
	if got := <-second.Told; got != fmt.Sprintf(want, 2) {
		t.Errorf("the second heard %s", got)
	}
	if got := <-first.Told; got != fmt.Sprintf(want, 1) {
		t.Errorf("the first heard %s", got)
	}
	p.Write(`{"jsonrpc":"2.0","id":"%s","result":{}}`, m1.ID) // a string: not the same id
	p.Result(m2.ID, said("2"))
	p.Result(m1.ID, said("1"))
	if out := <-one; out.body != said("1") || out.err != nil {
		t.Errorf("the first got %s, %v", out.body, out.err)
	}
	if out := <-two; out.body != said("2") || out.err != nil {
		t.Errorf("the second got %s, %v", out.body, out.err)
	}
}

// Once two principals have sent requests, a message that names none may be of a call that
// has ended, and tell the one what the other has said.
func TestM2L12MessagesOfSeveralPrincipals(t *testing.T) {
	drops := &backtest.Metrics{}
	b, peers := upLines(t, Options{Options: upstream.Options{Metrics: drops}})
	call := func(who mcp.Principal) (<-chan outcome, *backtest.Caller) {
		req := upRequest("tools/call", `{"name":"t"}`)
		req.LogLevel, req.Profile.Principal = "info", who
		x := &backtest.Caller{Told: make(chan string, 4)}
		return upServe(t.Context(), b, req, x), x
	}
	out, _ := call("alice")
	p := <-peers
	p.Result(p.Want("tools/call").ID, said("1"))
	<-out
	out, x := call("bob")
	m := p.Want("tools/call")
	p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"of alice"}}`)
	p.Result(m.ID, said("2"))
	if got := <-out; got.err != nil {
		t.Fatal(got.err)
	}
	if got := x.Heard(); len(got) > 0 {
		t.Errorf("bob heard %q, want nothing", got)
	}
	if n := drops.Count("log message"); n != 1 {
		t.Errorf("%d log messages were dropped, want 1", n)
	}
}

func TestM2L12MessagesThatNameNoRequest(t *testing.T) {
	drops := &backtest.Metrics{}
	b, peers := upLines(t, Options{Options: upstream.Options{Metrics: drops}})
	call := func() (<-chan outcome, *backtest.Caller) {
		req := upRequest("tools/call", `{"name":"t"}`)
		req.LogLevel = "info"
		x := &backtest.Caller{Told: make(chan string, 4)}
		return upServe(t.Context(), b, req, x), x
	}
	one, first := call()
	p := <-peers
	m1 := p.Want("tools/call")
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"data":%d}}`
	p.Write(log, "debug", 1)
	p.Write(log, "warning", 2)
	<-first.Told
	two, second := call()
	m2 := p.Want("tools/call")
	p.Write(log, "warning", 3) // whose is it?
	p.Result(m1.ID, said("1"))
	<-one
	p.Write(log, "warning", 4)
	p.Result(m2.ID, said("2"))
	<-two
	if got := strings.Join(first.Heard(), " "); got != `notifications/message {"level":"warning","data":2}` {
		t.Errorf("the first heard %s, want what came while it was alone", got)
	}
	if got := strings.Join(second.Heard(), " "); got != `notifications/message {"level":"warning","data":4}` {
		t.Errorf("the second heard %s, want what came while it was alone", got)
	}
	if n := drops.Count("log message"); n != 2 {
		t.Errorf("%d messages counted as dropped, want 2", n)
	}
}

func TestM2L12ListensDoNotCount(t *testing.T) {
	b, peers := upLines(t, Options{})
	opened := openingListen(t, b, upRequest("", "").Profile, mcp.Filter{Tools: true})
	p := <-peers
	m := p.Want("subscriptions/listen")
	p.Write(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID)
	s := <-opened
	defer s.Close()
	req := upRequest("tools/call", `{"name":"t"}`)
	req.LogLevel = "info"
	x := &backtest.Caller{}
	done := upServe(t.Context(), b, req, x)
	m = p.Want("tools/call")
	p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
	p.Result(m.ID, said("ok"))
	<-done
	if len(x.Heard()) != 1 {
		t.Errorf("heard %q, want the message: the listen stream is no request that has any", x.Heard())
	}
}

// A client's own listen request has a stream of its own: what names no request is none of its messages,
// also while it is alone, and belongs to the only call.
func TestM2L12ForwardedListensDoNotCount(t *testing.T) {
	b, peers := upLines(t, Options{})
	listener := &backtest.Caller{Told: make(chan string, 4)}
	listens := upServe(t.Context(), b, forwardedListen(), listener)
	p := <-peers
	m := p.Want("subscriptions/listen")
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}`
	p.Write(log, 1) // of a call that has ended, or of none
	p.Write(ackText, `{}`, m.ID)
	<-listener.Told
	req := upRequest("tools/call", `{"name":"t"}`)
	req.LogLevel = "info"
	x := &backtest.Caller{}
	done := upServe(t.Context(), b, req, x)
	call := p.Want("tools/call")
	p.Write(log, 2)
	p.Result(call.ID, said("ok"))
	<-done
	p.Result(m.ID, `{"resultType":"complete"}`)
	<-listens
	if got := x.Heard(); len(got) != 1 || !strings.Contains(got[0], `"data":2`) {
		t.Errorf("the call heard %q, want the message that came during it", got)
	}
	if got := listener.Heard(); len(got) != 1 || !strings.Contains(got[0], "acknowledged") {
		t.Errorf("the listen request heard %q, want its acknowledgment alone", got)
	}
}

func TestL2M15CancelOnAConnection(t *testing.T) {
	b, peers := upLines(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := upServe(ctx, b, upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})
	p := <-peers
	m := p.Want("tools/call")
	cancel()
	if out := <-done; !errors.Is(out.err, context.Canceled) {
		t.Errorf("Serve = %v, want the cancellation", out.err)
	}
	c := p.Want("notifications/cancelled")
	if got := string(wire.Get(c.Params, "requestId")); got != m.ID.String() {
		t.Errorf("cancelled %s, want %s", got, m.ID)
	}
	// A late answer harms nobody.
	p.Result(m.ID, said("late"))
	next := upServe(t.Context(), b, upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})
	p.Result(p.Want("tools/call").ID, said("next"))
	if out := <-next; out.body != said("next") {
		t.Errorf("the next call got %s, %v", out.body, out.err)
	}
}

func TestF07UnreadableMessagesOnAConnection(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		fails      bool
	}{
		{"its answer", `{"jsonrpc":"2.0","id":%s,"result":{},"error":7}`, true},
		{"no JSON", `{"jsonrpc":"2.0","id":%s,`, false},
		{"a batch", `[{"jsonrpc":"2.0","id":%s,"result":{}}]`, false},
		{"a request of the server", `{"jsonrpc":"2.0","id":%s,"method":"elicitation/create"}`, false},
		{"nothing known", `{"jsonrpc":"2.0","method":"vendor/%s"}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, peers := upLines(t, Options{})
			done := upServe(t.Context(), b, upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})
			p := <-peers
			m := p.Want("tools/call")
			p.Write(tt.line, m.ID)
			if !tt.fails {
				p.Result(m.ID, said("ok"))
			}
			out := <-done
			if tt.fails != (out.err != nil) || tt.fails && !strings.Contains(out.err.Error(), "can't be read") {
				t.Errorf("Serve = %s, %v, want a failure: %v", out.body, out.err, tt.fails)
			}
		})
	}
}

func TestLargeAnswerOnAConnection(t *testing.T) {
	err := &transport.TooLongError{Limit: 10, Start: []byte(`{"jsonrpc":"2.0","id":1,"result":{"a`)}
	near, far := newFaultyConn(err)
	b := newUpBack(t, Options{Dial: func(context.Context) (transport.Conn, error) { return near, nil }})
	done := upServe(t.Context(), b, upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})
	<-far
	if out := <-done; out.err == nil || !strings.Contains(out.err.Error(), "more than 10 bytes") {
		t.Errorf("Serve = %s, %v, want that the answer is too large", out.body, out.err)
	}
}

// A faultyConn gives one error once something was written.
type faultyConn struct {
	err     error
	wrote   chan struct{}
	told    chan struct{}
	closed  chan struct{}
	isClose chan struct{}
}

func newFaultyConn(err error) (*faultyConn, <-chan struct{}) {
	c := &faultyConn{err: err, wrote: make(chan struct{}, 8), told: make(chan struct{}), closed: make(chan struct{}), isClose: make(chan struct{}, 1)}
	return c, c.told
}

func (c *faultyConn) Read() ([]byte, error) {
	select {
	case <-c.wrote:
		close(c.told)
		return nil, c.err
	case <-c.closed:
		return nil, transport.ErrClosed
	}
}

func (c *faultyConn) Write([]byte) error { c.wrote <- struct{}{}; return nil }

func (c *faultyConn) Close() error {
	select {
	case c.isClose <- struct{}{}:
		close(c.closed)
	default:
	}
	return nil
}

// TestConnectionLost proves which requests are sent again to a server that was
// restarted, and that everybody shares the new connection.
func TestConnectionLost(t *testing.T) {
	for _, tt := range []struct {
		method string
		again  bool
	}{{"tools/call", false}, {"resources/read", true}, {"tools/list", true}} {
		t.Run(tt.method, func(t *testing.T) {
			b, peers := upLines(t, Options{})
			done := upServe(t.Context(), b, upRequest(tt.method, `{"name":"t","uri":"u:"}`), &backtest.Caller{})
			p := <-peers
			p.Want(tt.method)
			_ = p.Conn.Close()
			if !tt.again {
				if out := <-done; out.err == nil || !strings.Contains(out.err.Error(), "may have taken effect") {
					t.Errorf("Serve = %v, want that the call may have run", out.err)
				}
				done = upServe(t.Context(), b, upRequest(tt.method, `{"name":"t"}`), &backtest.Caller{})
			}
			p = <-peers
			p.Result(p.Want(tt.method).ID, said("again"))
			if out := <-done; out.body != said("again") {
				t.Errorf("Serve = %s, %v, want the answer of the new connection", out.body, out.err)
			}
		})
	}
}

func TestWriteFailsAndNothingRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		b := newUpBack(t, Options{Dial: func(context.Context) (transport.Conn, error) {
			if n.Add(1) == 1 {
				return &deafConn{closed: make(chan struct{})}, nil
			}
			near, far := transport.NewPipe()
			go func() { // ends with the answer
				p := backtest.NewPeer(t, far)
				p.Result(p.Want("tools/call").ID, said("ok"))
			}()
			return near, nil
		}})
		if body, err := upBody(b.Serve(t.Context(), upRequest("tools/call", `{"name":"t"}`), &backtest.Caller{})); err != nil || body != said("ok") {
			t.Errorf("Serve = %s, %v, want the answer: nothing was sent the first time", body, err)
		}
	})
}

// A deafConn takes nothing.
type deafConn struct{ closed chan struct{} }

func (c *deafConn) Read() ([]byte, error) { <-c.closed; return nil, transport.ErrClosed }
func (c *deafConn) Write([]byte) error    { return io.ErrClosedPipe }

func (c *deafConn) Close() error {
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return nil
}

// TestServerThatCannotStandRests proves that a command which exits at once is not
// started again and again, however many ask for it.
func TestServerThatCannotStandRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts atomic.Int32
		b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo)}, Dial: func(context.Context) (transport.Conn, error) {
			starts.Add(1)
			near, far := transport.NewPipe()
			_ = far.Close()
			return near, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for time.Since(begun) < time.Minute {
			if _, err := b.Serve(t.Context(), upRequest("tools/list", ""), &backtest.Caller{}); err == nil {
				t.Fatal("Serve succeeded")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := starts.Load(); n < 5 || n > 30 {
			t.Errorf("started %d times in a minute, want some", n)
		}
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close = %v", err)
		}
		if _, err := b.Serve(context.Background(), upRequest("tools/list", ""), &backtest.Caller{}); err == nil || !strings.Contains(err.Error(), "shutting down") {
			t.Errorf("Serve after Close = %v, want that it is over", err)
		}
	})
}

// A connection that starts nothing is opened for each request, also after failures.
func TestEagerDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := 0
		b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo)}, Eager: true, Dial: func(context.Context) (transport.Conn, error) {
			dials++
			return nil, errors.New("connection refused")
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close(t.Context())
		begun := time.Now()
		for n := range 20 {
			if _, err := b.Serve(t.Context(), upRequest("tools/list", ""), &backtest.Caller{}); err == nil || !strings.Contains(err.Error(), "connection refused") || dials != n+1 {
				t.Fatalf("request %d = %v after %d dials, want one for each", n, err, dials)
			}
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("20 requests took %v, want no pause", took)
		}
	})
}

func TestDialOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := New(Options{Options: upstream.Options{Name: "scripted", ClientInfo: json.RawMessage(upInfo)}, Dial: func(ctx context.Context) (transport.Conn, error) {
			if err := wake.Wait(ctx, 5*time.Second); err != nil {
				return nil, err
			}
			near, far := transport.NewPipe()
			go func() { // ends with the connection
				for {
					text, err := far.Read()
					if err != nil {
						return
					}
					if m, _ := wire.Parse(text, wire.Options{}); m.Method == "tools/list" {
						_ = far.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, m.ID))
					}
				}
			}()
			return near, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close(context.Background())
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Serve(short, upRequest("tools/list", ""), &backtest.Caller{}); err == nil {
			t.Error("Serve succeeded before the server started")
		}
		begun := time.Now()
		_, err = upBody(b.Serve(t.Context(), upRequest("tools/list", ""), &backtest.Caller{}))
		if took := time.Since(begun); err != nil || took != 4*time.Second {
			t.Errorf("Serve = %v after %v, want the answer as soon as the first dial is done", err, took)
		}
	})
}

// TestSlowCallerHoldsUpNobody proves that progress for one caller who does not take
// it neither stops the connection nor grows without bound.
func TestSlowCallerHoldsUpNobody(t *testing.T) {
	b, peers := upLines(t, Options{})
	req := upRequest("tools/call", `{"name":"slow"}`)
	req.ProgressToken = json.RawMessage(`1`)
	x := &backtest.Caller{Told: make(chan string)} // nobody reads
	slow := upServe(t.Context(), b, req, x)
	p := <-peers
	m := p.Want("tools/call")
	for i := range 2 * mcp.MaxBacklog {
		p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i+1)
	}
	quick := upServe(t.Context(), b, upRequest("tools/list", ""), &backtest.Caller{})
	p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
	if out := <-quick; out.err != nil {
		t.Errorf("another's request failed: %v", out.err)
	}
	p.Result(m.ID, said("ok"))
	var last string
	for i := 0; ; i++ {
		select {
		case last = <-x.Told:
			continue
		case out := <-slow:
			if out.err != nil || i > mcp.MaxBacklog+1 || !strings.Contains(last, fmt.Sprint(2*mcp.MaxBacklog)) {
				t.Errorf("Serve = %v after %d notes, the last %s; want at most %d and the newest last", out.err, i, last, mcp.MaxBacklog+1)
			}
			return
		}
	}
}
