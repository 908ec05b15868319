package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
	"github.com/mcpbridge/mcpbridge/legacy/front"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
)

// What waits for a server that reads nothing, because it works on a call, holds up nothing else of
// its client: a call of which nothing was written is withdrawn when the client cancels it, the
// rest arrives in order, and the client can leave.
func TestS02BusyServer(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	l, p := welcomed(t, linkedTo(t, b), peers)
	l.Send(`{"jsonrpc":"2.0","id":"first","method":"tools/call","params":{}}`)
	first := p.Want("tools/call")
	const full = 64 // of the pipe
	for i := range full {
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":%d}}`, i))
	}
	l.Send(`{"jsonrpc":"2.0","id":"withdrawn","method":"tools/call","params":{}}`)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"withdrawn"}}`)
	l.Send(`{"jsonrpc":"2.0","id":"next","method":"ping"}`)
	l.Send(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":64}}`)
	for i := range full {
		if n := string(wire.Get(p.Want("notifications/vendor").Params, "n")); n != fmt.Sprint(i) {
			t.Fatalf("notification %s came when %d was due", n, i)
		}
	}
	p.Result(p.Want("ping").ID, `{}`)
	p.Want("notifications/vendor")
	p.Result(first.ID, `{"content":[]}`)
	l.Want(`{"jsonrpc":"2.0","id":"next","result":{}}`, `{"jsonrpc":"2.0","id":"first","result":{"content":[]}}`)

	for i := range full + 1 {
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":%d}}`, i))
	}
	l.Send(`{"jsonrpc":"2.0","id":"never","method":"tools/call","params":{}}`)
	l.Close()
	for range full {
		p.Want("notifications/vendor")
	}
	if text, err := p.Conn.Read(); err == nil {
		t.Errorf("the server got %s of a client that has left", text)
	}
}

// A quietFront is a front in a bubble, without a socket.
type quietFront struct {
	backtest.Metrics
	front   *front.Front
	logs    bridgetest.Logs
	session string // that post names; empty for none
}

func quietlyLinkedTo(t *testing.T, b mcp.Relayer, m mcp.Memory) *quietFront {
	st := &quietFront{}
	f, err := front.New(front.Options{Name: "docs", Handler: unlinked{}, Describer: unlinked{}, Subscriber: unlinked{}, Relayer: b,
		Metrics: st, Logger: slog.New(&st.logs), Admit: func(r *mcp.Request) error { r.Memory = m; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	st.front = f
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return st
}

// post posts a message. It fails the test if there is no response within ten minutes.
func (st *quietFront) post(t *testing.T, text string) *httptest.ResponseRecorder {
	t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{})
	if err != nil {
		t.Error(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
	if st.session != "" {
		r.Header.Set("Mcp-Session-Id", st.session)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		st.front.ServePost(w, r, []byte(text), &m, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
	}()
	select {
	case <-answered:
	case <-time.After(10 * time.Minute):
		t.Errorf("a POST of %s had no response", text)
	}
	return w
}

// vendor is a notification of nobody's.
func vendor(n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"n":%d}}`, n)
}

// wantVendors has the server read those notifications, in order.
func wantVendors(t *testing.T, p *legacytest.ConnPeer, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if n := string(wire.Get(p.Want("notifications/vendor").Params, "n")); n != fmt.Sprint(i) {
			t.Fatalf("notification %s came when %d was due", n, i)
		}
	}
}

// calledBusy opens a session over HTTP and calls a tool of its server, which asks for something, and
// reads no more.
func calledBusy(t *testing.T, d *backtest.Metrics, m mcp.Memory) (st *quietFront, p *legacytest.ConnPeer, call wire.Message, called <-chan *httptest.ResponseRecorder) {
	b, peers := pipeBack(t, back.Options{Options: upstream.Options{Metrics: d}})
	st = quietlyLinkedTo(t, b, m)
	opened := st.postAside(t, legacytest.Initialize("2025-06-18"))
	p = <-peers
	p.Result(p.Want("initialize").ID, legacytest.InitializeResult("2025-06-18", legacytest.Everything))
	st.session = (<-opened).Header().Get("Mcp-Session-Id")
	st.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.Want("notifications/initialized")
	called = st.postAside(t, `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`)
	call = p.Want("tools/call")
	p.Write(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
	synctest.Wait()
	return st, p, call, called
}

// postAside is post in the background.
func (st *quietFront) postAside(t *testing.T, text string) <-chan *httptest.ResponseRecorder {
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() { answered <- st.post(t, text) }()
	return answered
}

const (
	pipeHolds  = 64 // messages that the server has not read
	waitBehind = relay.MaxWaiting
)

// Who posts what is no request does not wait for a server that reads nothing: it is on its way, in
// order. There is a limit to that, which the client hears of, but for what requests wait for. The
// session ends when its client has left.
func TestS02PostsToABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &backtest.Metrics{}
		st, p, call, called := calledBusy(t, d, nil)
		for i := range pipeHolds + waitBehind {
			begun := time.Now()
			if w := st.post(t, vendor(i)); w.Code != http.StatusAccepted || time.Since(begun) > time.Second {
				t.Fatalf("notification %d = %d %s after %v, want 202", i, w.Code, w.Body, time.Since(begun))
			}
		}
		if w := st.post(t, vendor(-1)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "later") {
			t.Errorf("a notification more = %d %s, want 503 that says what to do", w.Code, w.Body)
		}
		if w := st.post(t, `{"jsonrpc":"2.0","id":"r","method":"ping"}`); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"id":"r","error"`) {
			t.Errorf("a request = %d %s, want an error", w.Code, w.Body)
		}
		if n := d.Count("limit unread_notifications"); n != 2 {
			t.Errorf("%d messages counted at the limit, want 2", n)
		}
		for _, text := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`} {
			if w := st.post(t, text); w.Code != http.StatusAccepted {
				t.Errorf("%s = %d %s, want 202", text, w.Code, w.Body)
			}
		}
		time.Sleep(5 * time.Second)
		if len(called) == 0 {
			t.Error("the call that was cancelled has no end")
		}

		wantVendors(t, p, 0, pipeHolds+waitBehind)
		if m := p.Read(); m.ID.String() != `"q"` || m.Result == nil {
			t.Errorf("the server got %s, want the answer to its question", m.Text)
		}
		if m := p.Want("notifications/cancelled"); string(wire.Get(m.Params, "requestId")) != call.ID.String() {
			t.Errorf("cancelled %s, want %s", m.Params, call.ID)
		}
		synctest.Wait()
		for i := range pipeHolds + 1 {
			if w := st.post(t, vendor(i)); w.Code != http.StatusAccepted {
				t.Fatalf("when the server has read, notification %d = %d %s, want 202", i, w.Code, w.Body)
			}
		}
		time.Sleep(2 * front.DefaultSessionIdle)
		if w := st.post(t, vendor(0)); w.Code != http.StatusNotFound {
			t.Errorf("a session that nobody uses = %d %s, want it ended", w.Code, w.Body)
		}
		wantVendors(t, p, 0, pipeHolds)
		if text, err := p.Conn.Read(); err == nil {
			t.Errorf("the server got %s of a session that has ended", text)
		}
	})
}

// A client on a connection is read on, too.
func TestS02ConnectionToABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &backtest.Metrics{}
		b, peers := pipeBack(t, back.Options{Options: upstream.Options{Metrics: d}})
		st := quietlyLinkedTo(t, b, nil)
		l := legacytest.NewLine(t, st.front.OpenConn)
		l.Send(legacytest.OddInitialize)
		p := <-peers
		p.Result(p.Want("initialize").ID, legacytest.OddResult)
		l.Next()
		l.Send(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`)
		call := p.Want("tools/call")
		synctest.Wait() // the handshake is over, and nothing queues behind it
		const lost = 3
		for i := range pipeHolds + waitBehind + lost {
			begun := time.Now()
			if l.Send(vendor(i)); time.Since(begun) > time.Second {
				t.Fatalf("the next message was read after %v", time.Since(begun))
			}
		}
		synctest.Wait()
		if n, m, lines := st.Count("client message"), d.Count("limit unread_notifications"), st.logs.Count("message of client was not delivered"); n != lost || m != lost || lines != lost {
			t.Errorf("%d notifications counted as dropped, %d at the limit, %d lines, want %d", n, m, lines, lost)
		}
		l.Send(`{"jsonrpc":"2.0","id":"r","method":"ping"}`)
		if got := l.Next(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"r","error"`) {
			t.Errorf("sent %s, want the request refused", got)
		}
		for range 2 { // the second one tells nothing new
			l.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`)
		}
		time.Sleep(5 * time.Second)
		if l.Pipe.(*front.Conn).Busy() {
			t.Error("the call that was cancelled has no end")
		}
		wantVendors(t, p, 0, pipeHolds+waitBehind)
		if m := p.Want("notifications/cancelled"); string(wire.Get(m.Params, "requestId")) != call.ID.String() {
			t.Errorf("cancelled %s, want %s", m.Params, call.ID)
		}
		l.Send(vendor(-1))
		wantVendors(t, p, -1, 0)
		for i := range pipeHolds + waitBehind {
			l.Send(vendor(i))
		}
		begun := time.Now()
		if l.Close(); time.Since(begun) > time.Second {
			t.Errorf("Close took %v", time.Since(begun))
		}
	})
}

// A call that waits until notifications before it may wait can be cancelled like any other.
func TestS02CancelledBeforeItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, p, _, _ := calledBusy(t, &backtest.Metrics{}, nil)
		for i := range pipeHolds + waitBehind {
			st.post(t, vendor(i))
		}
		called := st.postAside(t, `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{}}`)
		time.Sleep(100 * time.Millisecond)
		cancelled := st.postAside(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
		synctest.Wait()
		wantVendors(t, p, 0, pipeHolds+waitBehind)
		x := p.Want("tools/call")
		if m := p.Want("notifications/cancelled"); string(wire.Get(m.Params, "requestId")) != x.ID.String() {
			t.Errorf("cancelled %s, want %s", m.Params, x.ID)
		}
		if w := <-cancelled; w.Code != http.StatusAccepted {
			t.Errorf("the cancellation = %d %s, want 202", w.Code, w.Body)
		}
		<-called
	})
}

// What waits counts as memory. Without any, the server hears all the same that a call is cancelled, and
// that its question has no answer.
func TestS02NothingWaitsWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scarce{Budget: budget.New(1 << 20)}
		st, p, call, called := calledBusy(t, &backtest.Metrics{}, m)
		long := strings.Repeat("x", 2<<20)
		if w := st.post(t, `{"jsonrpc":"2.0","id":1,"result":{"long":"`+long+`"}}`); w.Code != http.StatusServiceUnavailable {
			t.Errorf("the answer to its question = %d %.200s, want 503", w.Code, w.Body)
		}
		if w := st.post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"`+long+`"}}`); w.Code != http.StatusAccepted {
			t.Errorf("the cancellation = %d %.200s, want 202", w.Code, w.Body)
		}
		if r := p.Read(); r.ID.String() != `"q"` || r.Error == nil {
			t.Errorf("the server got %.200s, want an error for its question", r.Text)
		}
		if r := p.Want("notifications/cancelled"); string(r.Params) != `{"requestId":`+call.ID.String()+`}` {
			t.Errorf("cancelled %.200s, want %s, and no more", r.Params, call.ID)
		}
		<-called
		synctest.Wait()
		if n := m.Used(); n > 128<<10 {
			t.Errorf("%d bytes are lent at the end", n)
		}
	})
}

// scarce is a small memory.
type scarce struct{ *budget.Budget }

// Account and Refuse implement [mcp.Memory].
func (m *scarce) Account(s mcp.Share) *budget.Account { return m.Budget.Account(s) }
func (*scarce) Refuse() error                         { return mcp.RefuseForNow("no memory") }

// A slowConn is a connection on which notifications/initialized is late, as on a busy machine.
type slowConn struct{ transport.Conn }

func (c slowConn) WriteUntil(ctx context.Context, msg []byte) error {
	if strings.Contains(string(msg), spec.NotifyInitialized) {
		time.Sleep(time.Second)
	}
	return transport.WriteUntil(ctx, c.Conn, msg)
}

// The first request of a client does not overtake its notifications/initialized, however late that
// is written: servers refuse what comes before it.
func TestS02NothingOvertakesInitialized(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, st *quietFront) (send func(text string)){
		"on a connection": func(t *testing.T, st *quietFront) func(string) {
			l := legacytest.NewLine(t, st.front.OpenConn)
			l.Send(legacytest.OddInitialize)
			return l.Send
		},
		"over HTTP": func(t *testing.T, st *quietFront) func(string) {
			st.session = st.post(t, legacytest.OddInitialize).Header().Get("Mcp-Session-Id")
			return func(text string) { st.post(t, text) }
		},
	} {
		bridgetest.RunBubble(t, name, func(t *testing.T) {
			dial, peers := legacytest.Pipes(t)
			b := newBack(t, back.Options{Dial: func(ctx context.Context) (transport.Conn, error) {
				conn, err := dial(ctx)
				return slowConn{conn}, err
			}})
			st := quietlyLinkedTo(t, b, nil)
			order := make(chan string, 2)
			go func() { // ends with the second message
				p := <-peers
				p.Result(p.Want("initialize").ID, legacytest.OddResult)
				for range 2 {
					m := p.Read()
					if order <- m.Method; !m.ID.IsZero() {
						p.Result(m.ID, `{"tools":[]}`)
					}
				}
			}()
			send := open(t, st)
			synctest.Wait()
			go func() { // ends with the answer
				send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				send(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
			}()
			if first, second := <-order, <-order; first != spec.NotifyInitialized || second != spec.MethodToolsList {
				t.Errorf("the server got %s, and then %s", first, second)
			}
			synctest.Wait()
		})
	}
}
