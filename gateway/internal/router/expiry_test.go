package router

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// lastsHeader says how long the credential of a request lasts; without it for ever.
const lastsHeader = "Test-Lasts"

// shortLived are credentials that expire.
type shortLived struct{}

func (shortLived) Authenticate(r *http.Request, _ *auth.Endpoint) (*mcp.Identity, error) {
	id := &mcp.Identity{Principal: mcp.Principal(r.Header.Get(whoHeader))}
	if lasts, err := time.ParseDuration(r.Header.Get(lastsHeader)); err == nil {
		id.Expires = time.Now().Add(lasts)
	}
	return id, nil
}

// of adds the credential of a principal to headers.
func of(who, lasts string, h http.Header) http.Header {
	h.Set(whoHeader, who)
	if lasts != "" {
		h.Set(lastsHeader, lasts)
	}
	return h
}

func newShortLivedRig(t *testing.T) *rig {
	return newRig(t, func(o *Options) { o.Auth = shortLived{} })
}

func (r *rig) wantLogged(t *testing.T, text string) {
	t.Helper()
	r.eventually(t, text+" in the log", func() bool { return strings.Contains(r.logs.String(), text) })
}

// lasts is long enough for what is opened to be acknowledged under load.
const lasts = "3s"

func TestA03ListenStreamEndsWithItsResult(t *testing.T) {
	t.Parallel()
	r := newShortLivedRig(t)
	body := modernBody("7", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	l := newLines(t, r.open(t, http.MethodPost, body, of(alice, lasts, modernHeaders("subscriptions/listen", ""))))
	other := newLines(t, r.open(t, http.MethodPost, body, of(alice, "", modernHeaders("subscriptions/listen", ""))))
	l.want("acknowledged")
	other.want("acknowledged")
	l.want(`"id":7,"result":{"resultType":"complete"`)
	if _, open := <-l.data; open {
		t.Error("the stream goes on after its result")
	}
	r.eventually(t, "one stream left", func() bool { return r.g.Snapshot().Streams == 1 })
	r.peer.push(toolsChanged) // the other goes on
	other.want("list_changed")
	r.wantLogged(t, `reason="its credential has expired" principal=alice`)
}

// An extension's filter has a stream of its own upstream, which ends as others do.
func TestA03PassedStreamEndsWithItsResult(t *testing.T) {
	t.Parallel()
	p := newTaskPeer(t)
	w := newTaskRig(t, p)
	w.g.now().servers["peer"].guard.Auth = shortLived{}
	body := askableBody("5", "subscriptions/listen", withTasks, `"notifications":{"taskIds":["x"]}`)
	l := newLines(t, w.open(t, http.MethodPost, body, of(alice, lasts, modernHeaders("subscriptions/listen", ""))))
	l.want("acknowledged")
	l.want(`"id":5,"result":{"resultType":"complete"`)
}

// A GET stream ends, its session does not: the client resumes it with a fresh credential,
// and hears what has changed meanwhile. So it is where messages pass as they are, and where
// they are translated.
func TestA03GetStreamEndsAndResumes(t *testing.T) {
	t.Parallel()
	r := newShortLivedRig(t)
	got := r.send(t, http.MethodPost, hello, of(alice, lasts, legacyHeaders("")))
	session := got.header.Get("Mcp-Session-Id")
	r.send(t, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, of(alice, lasts, legacyHeaders(session)))
	l := newLines(t, r.open(t, http.MethodGet, "", of(alice, lasts, legacyHeaders(session))))
	r.eventually(t, "heard", func() bool { return r.peer.isListening() })
	r.peer.push(toolsChanged)
	l.want("list_changed")
	l.wantEnd()
	if _, err := l.res.Body.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("the stream was cut off: %v", err)
	}
	r.peer.push(updated("note://while-away"))
	h := of(alice, "", legacyHeaders(session))
	h.Set("Last-Event-ID", l.last)
	newLines(t, r.open(t, http.MethodGet, "", h)).want("note://while-away")
	if got := r.send(t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, of(alice, "", legacyHeaders(session))); got.status != 200 {
		t.Errorf("ping with a fresh credential = %d %s, want the session to go on", got.status, got.body)
	}
	if n := len(r.peer.sent("initialize")); n != 1 {
		t.Errorf("%d sessions upstream, want the first to go on", n)
	}
}

// A session of HTTP+SSE is its stream: it ends with the latest credential that its
// principal has posted with.
func TestA03EventStreamEndsWithItsLatestCredential(t *testing.T) {
	t.Parallel()
	r := newShortLivedRig(t)
	c := r.openEvents(t, "/sse/peer", of(alice, lasts, http.Header{}))
	begin := time.Now()
	c.header.Set(lastsHeader, "6s")
	c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	c.want(`"id":1,"result"`)
	c.header.Set(lastsHeader, "1ms") // an older one, sent late
	c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.want(`"id":2,"result"`)
	if typ, data := c.event(); typ != "" {
		t.Errorf("event = %s %s, want the end", typ, data)
	}
	if open := time.Since(begin); open < 6*time.Second-10*time.Millisecond {
		t.Errorf("the stream ended after %v, want it to last as the credential of the post", open)
	}
	c.header.Del(lastsHeader)
	r.eventually(t, "unknown", func() bool { return c.post(`{"jsonrpc":"2.0","id":3,"method":"ping"}`).status == 404 })
}

// A WebSocket ends in order, and its close code says that a fresh credential helps.
func TestA03WebSocketEnds(t *testing.T) {
	t.Parallel()
	r := newShortLivedRig(t)
	ws, _ := r.raw(t, of(alice, lasts, http.Header{}))
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	if err := ws.WriteMessage(websocket.TextMessage, []byte(modernBody("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))); err != nil {
		t.Fatal(err)
	}
	var said []string
	for {
		_, msg, err := ws.ReadMessage()
		if err == nil {
			said = append(said, string(msg))
			continue
		}
		var closed *websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != transport.CloseUnauthorized || closed.Text != "its credential has expired; connect again with another" {
			t.Errorf("ReadMessage() = %v, want code 3000 and why", err)
		}
		break
	}
	if len(said) != 2 || !strings.Contains(said[0], "acknowledged") || !strings.Contains(said[1], `"resultType":"complete"`) {
		t.Errorf("the client got %q, want the acknowledgment and the result", said)
	}
	r.wantNothingLeft(t)
	r.wantLogged(t, `reason="its credential has expired" principal=alice`)
}

// What a credential has begun is finished: it is streams and connections that end.
func TestA03CallOutlivesItsCredential(t *testing.T) {
	t.Parallel()
	r := newShortLivedRig(t)
	r.peer.handle["tools/call"] = func(c *peerCall) string {
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-c.ctx.Done():
		}
		return say("done")
	}
	got := r.send(t, http.MethodPost, modernBody("1", "tools/call", `"name":"a"`), of(alice, "100ms", modernHeaders("tools/call", "a")))
	if !strings.Contains(got.body, "done") {
		t.Errorf("the call = %d %s, want its result", got.status, got.body)
	}
}

// Nothing is watched any more once nothing is open.
func TestA03NothingIsWatchedForever(t *testing.T) {
	t.Parallel()
	r := newShortLivedRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	body := modernBody("7", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.URL+"/mcp/peer", strings.NewReader(body))
	req.Header = of(alice, "1h", modernHeaders("subscriptions/listen", ""))
	res, err := r.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	newLines(t, res).want("acknowledged")
	ws, _ := r.raw(t, of(alice, "1h", http.Header{}))
	c := r.openEvents(t, "/sse/peer", of(alice, "1h", http.Header{}))
	session := r.send(t, http.MethodPost, hello, of(alice, "1h", legacyHeaders(""))).header.Get("Mcp-Session-Id")
	get := r.open(t, http.MethodGet, "", of(alice, "1h", legacyHeaders(session)))
	r.eventually(t, "four are watched", func() bool { return r.g.expiry.Len() == 4 })
	cancel()
	_ = ws.Close()
	_ = c.res.Body.Close()
	_ = get.Body.Close()
	r.eventually(t, "nothing is watched", func() bool { return r.g.expiry.Len() == 0 })
}
