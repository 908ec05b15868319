package router

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
)

// A guest is a client on a WebSocket from an address.
type guest struct {
	*websocket.Conn
	heard  chan string               // what it is sent
	closed chan websocket.CloseError // how it ended
}

// openFrom opens a WebSocket from an address. status is that of the handshake.
func (r *rig) openFrom(t *testing.T, addr string) (g *guest, status int) {
	t.Helper()
	d := websocket.Dialer{NetDialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}).DialContext}
	ws, resp, err := d.DialContext(t.Context(), r.socketURL(), nil)
	if resp == nil {
		t.Fatalf("opening a WebSocket from %s: %v", addr, err)
	}
	if err != nil {
		return nil, resp.StatusCode
	}
	g = &guest{ws, make(chan string, 10), make(chan websocket.CloseError, 1)}
	go g.listen() // ends with the connection
	t.Cleanup(func() { _ = ws.Close() })
	return g, resp.StatusCode
}

func (g *guest) listen() {
	for {
		_, text, err := g.ReadMessage()
		if closed := (*websocket.CloseError)(nil); errors.As(err, &closed) {
			g.closed <- *closed
		}
		if err != nil {
			return
		}
		g.heard <- string(text)
	}
}

// ask sends a request, and waits for its result.
func (g *guest) ask(t *testing.T, text string) {
	t.Helper()
	g.tell(t, text)
	g.hears(t, `"result":`)
}

// hears wants a text in the next message.
func (g *guest) hears(t *testing.T, text string) {
	t.Helper()
	bridgetest.Eventually(t, text, func() bool { return len(g.heard) > 0 })
	if got := <-g.heard; !strings.Contains(got, text) {
		t.Errorf("heard %s, want %s", got, text)
	}
}

func (g *guest) tell(t *testing.T, text string) {
	t.Helper()
	if err := g.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// Two addresses that hold all WebSockets keep nobody out (CWE-770): of the bigger one the
// WebSocket ends that was idle for longest, and hears when to come again. One with a call in
// flight is not idle.
func TestHardeningWebSocketsOfTheBiggestYield(t *testing.T) {
	t.Parallel()
	hits := &tally{}
	r := newRig(t, func(o *Options) { o.Metrics = hits; o.bound("websockets", 7); o.bound("websockets_each", 5) })
	hold := make(chan struct{})
	r.peer.hold["tools/call"] = hold
	r.peer.answer("tools/call", `{"content":[]}`)
	r.peer.answer("tools/list", `{"tools":[]}`)
	open := func(addr string) *guest {
		t.Helper()
		g, status := r.openFrom(t, addr)
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("a WebSocket from %s: %d, want one", addr, status)
		}
		return g
	}
	full := func(addr string) {
		t.Helper()
		if _, status := r.openFrom(t, addr); status != http.StatusServiceUnavailable {
			t.Errorf("one more WebSocket from %s: %d, want 503", addr, status)
		}
	}
	other, list := []*guest{open("127.0.0.3"), open("127.0.0.3")}, modernBody("1", "tools/list", "")
	big := []*guest{open("127.0.0.2"), open("127.0.0.2")}
	big[0].tell(t, modernBody("7", "tools/call", `"name":"a"`))
	big[1].ask(t, initializeText)
	big[1].tell(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	big[1].tell(t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"b","arguments":{}}}`)
	r.eventually(t, "two calls in flight", func() bool { return len(r.peer.sent("tools/call")) == 2 })
	for n := range 3 {
		big = append(big, open("127.0.0.2"))
		r.eventually(t, "it is there", func() bool { return r.g.Snapshot().Sockets == 5+n })
	}
	big[2].ask(t, list)
	full("127.0.0.2")
	full("127.0.0.3")
	for i, yields := range []*guest{big[3], big[4], big[2]} {
		addr := fmt.Sprintf("127.0.0.%d", 4+i)
		open(addr).ask(t, list)
		full(addr) // has one
		bridgetest.Eventually(t, "the end of one", func() bool { return len(yields.closed) > 0 })
		if got := <-yields.closed; got.Code != websocket.CloseTryAgainLater || !strings.HasSuffix(got.Text, "in 1 second") || !strings.Contains(got.Text, "limits.websockets") {
			t.Errorf("closed with %d %q, want 1013, what to do, and when", got.Code, got.Text)
		}
	}
	r.eventually(t, "those that have not yielded", func() bool { return r.g.Snapshot().Sockets == 7 })
	full("127.0.0.9") // nobody has more than two
	close(hold)
	for _, g := range append(other, big[:2]...) {
		if g == big[0] || g == big[1] {
			g.hears(t, `"id":7,"result"`)
		}
		g.ask(t, strings.Replace(list, `"id":1`, `"id":8`, 1))
	}
	if n := hits.limits("websockets"); n != 8 {
		t.Errorf("%d hits of websockets, want 8", n)
	}
	if n := strings.Count(r.logs.String(), "WebSocket ended: "); n != 1 {
		t.Errorf("the log has %d lines about it, want one: %s", n, r.logs)
	}
}

// So do two that hold all listen streams: the oldest one ends with its result.
func TestHardeningStreamsOfTheBiggestYield(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.bound("streams", 6); o.bound("streams_each", 4) })
	listen := modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	open := func(addr string) *guest {
		t.Helper()
		g, status := r.openFrom(t, addr)
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("a WebSocket from %s: %d, want one", addr, status)
		}
		g.tell(t, listen)
		return g
	}
	var all []*guest
	for i := range 6 {
		g := open([]string{"127.0.0.2", "127.0.0.3"}[i/4])
		g.hears(t, "subscriptions/acknowledged")
		all = append(all, g)
	}
	open("127.0.0.3").hears(t, "limits.streams")
	open("127.0.0.4").hears(t, "subscriptions/acknowledged")
	all[0].hears(t, `"id":1,"result":{"resultType":"complete"`)
	r.eventually(t, "the stream upstream", r.peer.isListening)
	r.peer.push(toolsChanged)
	for _, g := range all[1:] {
		g.hears(t, "list_changed")
	}
}

// So does a WebSocket that another replica serves: that ends it, and says why.
func TestHardeningCarriedWebSocketYields(t *testing.T) {
	t.Parallel()
	d := newStateful(t, 2, nil)
	other, holder, _ := d.other(t)
	other.g.sockets.Bound(4, 3)
	var big []*guest
	for range 3 {
		g, _ := other.openFrom(t, "127.0.0.2")
		big = append(big, g)
		eventually(t, func() bool { return other.g.sockets.Len() == len(big) })
	}
	other.openFrom(t, "127.0.0.3")
	eventually(t, func() bool { return other.g.sockets.Len() == 4 })
	big[0].ask(t, modernBody("1", "tools/list", ""))
	if _, status := other.openFrom(t, "127.0.0.3"); status != http.StatusServiceUnavailable {
		t.Errorf("a second one of a client = %d, want 503", status)
	}
	poor, status := other.openFrom(t, "127.0.0.4")
	if status != http.StatusSwitchingProtocols {
		t.Fatalf("the first one of a client = %d, want a WebSocket", status)
	}
	poor.ask(t, modernBody("1", "tools/list", ""))
	bridgetest.Eventually(t, "the end of one", func() bool { return len(big[1].closed) > 0 })
	if got := <-big[1].closed; got.Code != websocket.CloseTryAgainLater || !strings.HasSuffix(got.Text, "in 1 second") {
		t.Errorf("closed with %d %q, want 1013, and when to come again", got.Code, got.Text)
	}
	eventually(t, func() bool { return other.g.sockets.Len() == 4 && holder.g.sockets.Lent() == 4 })
	big[0].ask(t, modernBody("1", "tools/list", ""))
}
