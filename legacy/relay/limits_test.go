package relay_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
	"github.com/mcpbridge/mcpbridge/legacy/front"
)

// A session in use is never ended to make room, and the limits of the back hold.
func TestS02Limits(t *testing.T) {
	t.Parallel()
	p := legacytest.NewHTTPServer(t)
	hold := make(chan struct{})
	p.On["tools/call"] = func(w http.ResponseWriter, r *http.Request, m wire.Message) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}
	defer close(hold)
	d, log := &backtest.Metrics{}, &bridgetest.Log{}
	b := newBack(t, back.Options{Options: upstream.Options{URL: p.URL, Logger: log.Logger(), Settings: settings.Server{Timeouts: settings.Timeouts{Connect: 3 * time.Second, Request: time.Millisecond, Max: 300 * time.Millisecond}}, Metrics: d}, MaxSessions: 1})
	st := linkedTo(t, b)
	g := st.Enter(t, "2025-03-26")
	// One that has a stream open is in use, one that has not makes room.
	get := legacytest.Read(t, st.Open(t, "GET", "", "Mcp-Session-Id", g.ID, "Accept", "text/event-stream"))
	if r := st.Send(t, "POST", legacytest.OddInitialize); r.Code() != -32603 || !strings.Contains(r.Body, "limits.sessions") || d.Count("limit sessions") != 1 {
		t.Errorf("initialize past the limit = %d %s, want an error that names it", r.Status, r.Body)
	}
	get.Response.Body.Close()
	former := g.ID
	bridgetest.Eventually(t, "the other is idle", func() bool {
		r := st.Send(t, "POST", legacytest.Initialize("2025-03-26"))
		g = &legacytest.Session{Endpoint: st.Endpoint, ID: r.Header.Get("Mcp-Session-Id"), Revision: "2025-03-26"}
		return g.ID != ""
	})
	bridgetest.Eventually(t, "the session that made room is gone", func() bool { // it may still be ending
		return st.Send(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", former).Status == 404
	})
	bridgetest.Eventually(t, "the log says that it had to yield", func() bool { return strings.Contains(log.String(), "one that nobody used has ended") })
	bridgetest.Eventually(t, "it ended upstream", func() bool { return len(p.Requests("DELETE")) == 1 })
	begin := time.Now()
	r := g.Call(t, "tools/call", `{}`)
	if took := time.Since(begin); r.Code() != -32603 || !strings.Contains(r.Body, "timeouts.max") || d.Count("time limit") != 1 || took < 300*time.Millisecond {
		t.Errorf("call = %d %s after %v, want an error that names timeouts.max", r.Status, r.Body, took)
	}
	bridgetest.Eventually(t, "cancelled upstream", func() bool { return len(p.Requests("notifications/cancelled")) == 1 })
}

const beyondLimit = "skipping message of server beyond the limit"

// dialLines returns a way to connect to a server over lines of at most limit bytes, and
// the server's ends.
func dialLines(t *testing.T, limit int) (func(context.Context) (transport.Conn, error), <-chan *legacytest.ConnPeer) {
	peers := make(chan *legacytest.ConnPeer, 1)
	return func(context.Context) (transport.Conn, error) {
		fromPeer, toBack, err := os.Pipe()
		fromBack, toPeer, err2 := os.Pipe()
		far, err3 := transport.OpenStdio(transport.StdioOptions{In: fromBack, Out: toBack})
		near, err4 := transport.OpenStdio(transport.StdioOptions{In: fromPeer, Out: toPeer, MaxMessage: limit})
		if err := errors.Join(err, err2, err3, err4, fromPeer.Close(), toBack.Close(), fromBack.Close(), toPeer.Close()); err != nil {
			t.Error(err)
			return nil, err
		}
		t.Cleanup(func() { _ = far.Close() })
		peers <- legacytest.NewConnPeer(t, far)
		return near, nil
	}, peers
}

// What a server sends beyond the limit over a connection costs that message alone, and
// whoever waits hears of it: the client of an answer, the server of a question.
func TestS02TooLongOverAConnection(t *testing.T) {
	d, logs := &backtest.Metrics{}, &bridgetest.Logs{}
	dial, peers := dialLines(t, 2000)
	b := newBack(t, back.Options{Options: upstream.Options{Metrics: d, Logger: slog.New(logs)}, Dial: dial})
	l, p := welcomed(t, linkedTo(t, b), peers)
	long := strings.Repeat("x", 3000)
	l.Send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}`)
	m := p.Want("tools/call")
	p.Write(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"text":"%s"}}`, long)
	if got := p.Read(); got.ID != wire.StringID("q") || got.Error == nil || !strings.Contains(got.Error.Message, "2000 bytes") {
		t.Errorf("the server got %s, want an error that names the limit", got.Text)
	}
	p.Write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}`, long)
	p.Write(`{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}`, m.ID, long)
	if got := l.Next(); !strings.Contains(got, `"id":7`) || !strings.Contains(got, "limits.upstream_message") {
		t.Errorf("the client got %s, want an error that names the limit", got)
	}
	l.Send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}`) // answered as the TypeScript SDK writes it
	m = p.Want("tools/call")
	p.Write(`{"method":"sampling/createMessage","params":{"text":"%s"},"jsonrpc":"2.0","id":%s}`, long, m.ID)
	if got := p.Read(); got.ID != m.ID || got.Error == nil || !strings.Contains(got.Error.Message, "2000 bytes") {
		t.Errorf("the server got %s, want an error that names the limit", got.Text)
	}
	p.Write(`{"result":{"text":"%s"},"jsonrpc":"2.0","id":%s}`, long, m.ID)
	if got := l.Next(); !strings.Contains(got, `"id":9`) || !strings.Contains(got, "limits.upstream_message") {
		t.Errorf("the client got %s, want an error that names the limit", got)
	}
	if n := d.Count("too long"); n != 5 || logs.Count(beyondLimit) != 5 {
		t.Errorf("%d messages counted as too long, want 5, and as many lines", n)
	}
	l.Send(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	p.Result(p.Want("ping").ID, `{}`)
	l.Want(`{"jsonrpc":"2.0","id":8,"result":{}}`)
}

// Over HTTP likewise; a stream of events can't be read on behind such a message, and the
// GET stream is asked for again.
func TestS02TooLongOverHTTP(t *testing.T) {
	t.Parallel()
	d, logs := &backtest.Metrics{}, &bridgetest.Logs{}
	p := legacytest.NewHTTPServer(t)
	long := `{"text":"` + strings.Repeat("x", 3000) + `"}`
	p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { legacytest.AnswerJSON(w, m.ID, long) }
	p.On["tools/list"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) {
		legacytest.StartSSE(w)(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, long)
	}
	const after = `{"jsonrpc":"2.0","method":"notifications/after"}`
	onGet := make(chan string, 2)
	onGet <- `{"jsonrpc":"2.0","method":"notifications/message","params":` + long + `}`
	onGet <- after // on another stream
	p.Get = func(w http.ResponseWriter, r *http.Request) {
		legacytest.StartSSE(w)("%s", <-onGet)
		<-r.Context().Done()
	}
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL, MaxMessage: 2000, Metrics: d, Logger: slog.New(logs)}})).Enter(t, "2025-11-25")
	for _, method := range []string{"tools/call", "tools/list"} {
		if r := g.Call(t, method, `{}`); r.Status != 200 || !strings.Contains(r.Body, "limits.upstream_message") || strings.Contains(r.Body, "was lost") {
			t.Errorf("%s = %d %s, want an error that names the limit", method, r.Status, r.Body)
		}
	}
	get := g.Listen(t)
	get.Want(after)
	if d.Count("too long") != 3 || logs.Count(beyondLimit) != 3 {
		t.Errorf("%d messages counted as too long, want 3, and as many lines", d.Count("too long"))
	}
	get.Response.Body.Close()
}

// Over HTTP+SSE it ends the session, as the stream's end does.
func TestS02TooLongOverHTTPSSE(t *testing.T) {
	d, logs := &backtest.Metrics{}, &bridgetest.Logs{}
	p := legacytest.NewEventServer(t)
	p.On["tools/call"] = legacytest.Result(`{"text":"` + strings.Repeat("x", 3000) + `"}`)
	g := linkedTo(t, newBack(t, back.Options{Options: upstream.Options{URL: p.URL + "/sse", MaxMessage: 2000, Metrics: d, Logger: slog.New(logs)}, Transport: back.TransportSSE})).Enter(t, "2025-11-25")
	if r := g.Call(t, "tools/call", `{}`); r.Status != 404 || !strings.Contains(r.Body, "limits.upstream_message") {
		t.Errorf("call = %d %s, want 404 and the limit's name", r.Status, r.Body)
	}
	if d.Count("too long") != 1 || logs.Count(beyondLimit) != 1 {
		t.Errorf("%d messages counted as too long, want 1, and a line", d.Count("too long"))
	}
}

// What waits for a GET stream that nobody opens is bounded, and that it is thrown away
// is told once.
func TestS02UnreadIsBounded(t *testing.T) {
	logs := &bridgetest.Logs{}
	b, peers := pipeBack(t, back.Options{})
	st := newLinkedFront(t, func(o *front.Options) {
		o.Relayer, o.Logger = b, slog.New(logs)
		o.Limits = limits.Set{"client_events": 2000}
	})
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		for range 100 {
			p.Write(`{"jsonrpc":"2.0","method":"notifications/vendor","params":{"data":"%s"}}`, strings.Repeat("x", 100))
		}
		p.Result(p.Want("ping").ID, `{}`)
	}()
	g := st.Enter(t, "2025-06-18")
	if r := g.Call(t, "ping", `{}`); r.Status != 200 || r.Code() != 0 { // after all of them
		t.Errorf("ping = %d %s", r.Status, r.Body)
	}
	const line = "messages to client dropped: too many are unread"
	if n := st.Count("limit client_events"); n < 80 || logs.Count(line) != 1 {
		t.Errorf("%d messages thrown away and %d lines about it, want most, and one", n, logs.Count(line))
	}
}
