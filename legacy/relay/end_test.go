package relay_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/back"
	"github.com/mcpbridge/mcpbridge/legacy/front"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
)

// A session that its server has lost is lost to the client, too: what it stood for
// can't be had again.
func TestS02LostUpstream(t *testing.T) {
	t.Run("S-02 404 over HTTP", func(t *testing.T) {
		p := legacytest.NewHTTPServer(t)
		p.On["tools/call"] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { w.WriteHeader(http.StatusNotFound) }
		b := newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})
		st := linkedTo(t, b)
		g := st.Enter(t, "2025-11-25")
		get := g.Listen(t)
		if r := g.Call(t, "tools/call", `{}`); r.Status != 404 || r.Code() != -32001 {
			t.Errorf("call = %d %s, want 404", r.Status, r.Body)
		}
		get.Ends()
		if r := g.Call(t, "ping", `{}`); r.Status != 404 {
			t.Errorf("ping = %d %s, want 404", r.Status, r.Body)
		}
		if st.Enter(t, "2025-11-25").ID == g.ID {
			t.Error("the new session has the id of the old one")
		}
	})
	t.Run("S-02 a connection that ends", func(t *testing.T) {
		b, peers := pipeBack(t, back.Options{})
		st := linkedTo(t, b)
		go func() {
			p := <-peers
			p.Handshake(legacytest.Everything)
			p.Want("tools/call")
			_ = p.Conn.Close()
		}()
		g := st.Enter(t, "2025-11-25")
		if r := g.Call(t, "tools/call", `{}`); r.Status != 404 || r.Code() != -32001 {
			t.Errorf("call = %d %s, want 404", r.Status, r.Body)
		}
		if st.front.Sessions() != 0 {
			t.Error("the client's session goes on without the server's")
		}
	})
}

// An idle end is an end for the server, too.
func TestS02IdleEnd(t *testing.T) {
	p := legacytest.NewHTTPServer(t)
	b := newBack(t, back.Options{Options: upstream.Options{URL: p.URL}})
	st := newLinkedFront(t, func(o *front.Options) { o.Relayer, o.Idle = b, 10*time.Millisecond })
	if r := st.Send(t, "POST", legacytest.Initialize("2025-03-26")); r.Status != http.StatusOK {
		t.Errorf("initialize = %d %s", r.Status, r.Body)
	}
	bridgetest.Eventually(t, "ended upstream", func() bool { return len(p.Requests("DELETE")) == 1 && st.front.Sessions() == 0 })
}

// A relayRecorder passes on the relays that a Back opens.
type relayRecorder struct {
	*back.Back
	relays chan<- mcp.Relay
}

func (l relayRecorder) OpenRelay(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.RelayClient) (mcp.Relay, []byte, error) {
	r, answer, err := l.Back.OpenRelay(ctx, req, m, h)
	l.relays <- r
	return r, answer, err
}

// A lateRelayer opens sessions whose clients come back in the moment in which they are found to rest.
type lateRelayer struct {
	*back.Back
	comeBack func()
}

func (l *lateRelayer) OpenRelay(ctx context.Context, req *mcp.Request, m *wire.Message, h mcp.RelayClient) (mcp.Relay, []byte, error) {
	return l.Back.OpenRelay(ctx, req, m, &lateClient{h, l})
}

type lateClient struct {
	mcp.RelayClient
	l *lateRelayer
}

// Rest implements mcp.RelayClient. A session yields after two seconds.
func (c *lateClient) Rest() (d time.Duration, begun, ok bool) {
	if d, begun, ok = c.RelayClient.Rest(); ok && d >= 2*time.Second {
		c.l.comeBack()
	}
	return d, begun, ok
}

// A client that calls in the moment in which its session was about to yield keeps it, and its call is
// answered. When it rests again, the session is over for it as it yields.
func TestM2L02CallAsItsSessionWouldYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, peers := pipeBack(t, back.Options{MaxSessions: 1})
		late := &lateRelayer{Back: b}
		st := quietlyLinkedTo(t, late, nil)
		enter := func(opened <-chan *httptest.ResponseRecorder) (*legacytest.ConnPeer, string) {
			p := <-peers
			p.Result(p.Want("initialize").ID, legacytest.InitializeResult("2025-06-18", legacytest.Everything))
			return p, (<-opened).Header().Get("Mcp-Session-Id")
		}
		p, session := enter(st.postAside(t, legacytest.Initialize("2025-06-18")))
		st.session = session
		st.post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		p.Want("notifications/initialized")
		listed := st.postAside(t, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
		p.Result(p.Want("tools/list").ID, `{"tools":[]}`)
		<-listed

		called := make(chan *httptest.ResponseRecorder, 1)
		late.comeBack = sync.OnceFunc(func() {
			go func() { called <- st.post(t, `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`) }()
			m := p.Want("tools/call")
			time.AfterFunc(500*time.Millisecond, func() { p.Result(m.ID, `{"content":[]}`) })
		})
		other := st.postAside(t, legacytest.Initialize("2025-06-18"))
		if w := <-called; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"id":"c","result"`) {
			t.Errorf("the call = %d %s, want it answered", w.Code, w.Body)
		}
		if _, session := enter(other); session == "" {
			t.Error("who waited has no session, though the other client rests again")
		}
		if w := st.post(t, `{"jsonrpc":"2.0","id":"p","method":"ping"}`); w.Code != http.StatusNotFound {
			t.Errorf("ping in the session that has yielded = %d %s, want 404", w.Code, w.Body)
		}
		if !p.IsEnded() {
			t.Error("the session that has yielded is open at the server")
		}
	})
}

// Nothing is left of a session that ends with all under way.
func TestS02NothingIsLeft(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	relays, ended := make(chan mcp.Relay, 1), make(chan struct{})
	st := linkedTo(t, relayRecorder{b, relays})
	go func() {
		p := <-peers
		p.Handshake(legacytest.Everything)
		p.Want("tools/call")
		p.Write(`{"jsonrpc":"2.0","id":0,"method":"roots/list"}`)
		p.ServeLists() // until the connection ends
		close(ended)
	}()
	g := st.Enter(t, "2025-11-25")
	f := legacytest.Read(t, st.Open(t, "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "Mcp-Session-Id", g.ID))
	f.Want(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	st.Send(t, "DELETE", "", "Mcp-Session-Id", g.ID)
	<-ended
	r := (<-relays).(*relay.Session)
	bridgetest.Eventually(t, "no call is left", func() bool {
		left := 0
		r.Link().Calls.Each(func(*upstream.Call) { left++ })
		return left == 0
	})
	if got, ok := f.Next(); !ok || !strings.Contains(got, "-32001") {
		t.Errorf("event after the end = %q, %v; want an error", got, ok)
	}
	f.Ends()
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	defer cancel()
	if err := st.front.Close(ctx); err != nil {
		t.Errorf("Close() = %v", err)
	}
}

// A server that has ended is said to have, whoever notices first.
func TestS02DeadServer(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	st := linkedTo(t, b)
	for range 20 {
		l, p := welcomed(t, st, peers)
		_ = p.Conn.Close()
		l.Send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if got := l.Next(); !strings.Contains(got, "-32001") || strings.Contains(got, mcp.ErrShutdown.Error()) {
			t.Errorf("ping = %s, want an error about the server", got)
		}
	}
}

// Each call under which the server dies is answered, once.
func TestS02DeathAnswersEachOnce(t *testing.T) {
	b, peers := pipeBack(t, back.Options{})
	l, p := welcomed(t, linkedTo(t, b), peers)
	go func() {
		for range 10 {
			p.Want("tools/call")
		}
		_ = p.Conn.Close()
	}()
	for n := range 10 {
		l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, n))
	}
	seen := map[wire.ID]bool{}
	for range 10 {
		text := l.Next()
		m, err := wire.Parse([]byte(text), wire.Options{})
		if err != nil || m.Error == nil || seen[m.ID] {
			t.Errorf("sent %s, want an error for each call, once", text)
		}
		seen[m.ID] = true
	}
	<-l.Lost()
	l.Close()
	if len(l.Sent) > 0 {
		t.Errorf("sent %s, want no more", l.Next())
	}
}

// A server that dies leaves no call without a word: a call whose answer has become a
// stream hears on it that the session is gone, before the stream ends.
func TestS02LostUnderStreams(t *testing.T) {
	for range 30 {
		b, peers := pipeBack(t, back.Options{})
		st := linkedTo(t, b)
		peer := make(chan *legacytest.ConnPeer, 1)
		go func() {
			p := <-peers
			p.Handshake(legacytest.Everything)
			for range 3 {
				m := p.Want("tools/call")
				p.Write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
			}
			peer <- p
		}()
		g := st.Enter(t, "2025-11-25")
		var feeds []*legacytest.Stream
		for n := range 3 {
			f := legacytest.Read(t, st.Open(t, "POST", strings.ReplaceAll(`{"jsonrpc":"2.0","id":N,"method":"tools/call","params":{"_meta":{"progressToken":N}}}`, "N", string(rune('2'+n))), "Mcp-Session-Id", g.ID))
			f.Next()
			feeds = append(feeds, f)
		}
		_ = (<-peer).Conn.Close()
		var wg sync.WaitGroup
		for _, f := range feeds {
			wg.Go(func() {
				if got, ok := f.Next(); !ok || !strings.Contains(got, "-32001") {
					t.Errorf("event after the loss = %q, %v; want an error", got, ok)
				}
				f.Response.Body.Close()
			})
		}
		wg.Wait()
	}
}
