package forward

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// inPublic has a replica serve clients on loopback, and returns its URL.
func (r *replica) inPublic() string {
	s := httptest.NewServer(r)
	r.t.Cleanup(s.Close)
	return s.URL
}

// dial opens a WebSocket at the URL of a replica.
func dial(t *testing.T, url string) (*transport.WebSocket, error) {
	ws, err := transport.DialWebSocket(t.Context(), transport.DialOptions{URL: "ws" + strings.TrimPrefix(url, "http") + Streamable.Path(serverName)})
	if err == nil {
		t.Cleanup(func() { _ = ws.Close() })
	}
	return ws, err
}

func openSocket(t *testing.T, url string) *transport.WebSocket {
	t.Helper()
	ws, err := dial(t, url)
	if err != nil {
		t.Fatal(err)
	}
	wantEcho(t, ws)
	return ws
}

func wantEcho(t *testing.T, ws *transport.WebSocket) {
	t.Helper()
	if err := ws.Write([]byte(listTools)); err != nil {
		t.Fatal(err)
	}
	if text, err := ws.Read(); err != nil || string(text) != listTools {
		t.Fatalf("Read() = %s, %v, want %s", text, err, listTools)
	}
}

// wantSockets wants a number of WebSockets carried by one replica, and served by the other.
func wantSockets(t *testing.T, carrying, serving *replica, n int) {
	t.Helper()
	bridgetest.Eventually(t, "the WebSockets", func() bool { return carrying.sockets.Len() == n && serving.sockets.Lent() == n })
}

// wantRefused wants the status of a handshake that has failed.
func wantRefused(t *testing.T, what, url string, status int) {
	t.Helper()
	_, err := dial(t, url)
	if refused := (*transport.HandshakeError)(nil); !errors.As(err, &refused) || refused.Status != status {
		t.Errorf("%s: %v, want status %d", what, err, status)
	}
}

// A WebSocket is served by the replica that serves its principal. When its client leaves, nothing
// is left of it, at either replica.
func TestSocketIsCarried(t *testing.T) {
	all := placed(t, 2)
	holder, other := all[0], all[1]
	url := other.inPublic()
	for range 10 { // more than there is room for at once
		ws := openSocket(t, url)
		wantSockets(t, other, holder, 1)
		_ = ws.Close()
		wantSockets(t, other, holder, 0)
	}
	if !strings.Contains(other.logs.String(), "WebSocket closed that another replica has served") {
		t.Errorf("the log: %s", other.logs.String())
	}
}

// When a server is served no more where a WebSocket was opened, the replica that serves it is
// asked to end it.
func TestCarriedSocketEndsWithItsServer(t *testing.T) {
	all := placed(t, 2)
	holder, other := all[0], all[1]
	asked := make(chan string, 1)
	holder.serveBeside(func(req *http.Request) {
		if req.URL.Path == PartPath+serverName {
			asked <- req.URL.RawQuery
		}
	})
	ws := openSocket(t, other.inPublic())
	wantSockets(t, other, holder, 1)
	other.life.End(errors.New("reloaded"))
	if _, err := ws.Read(); err == nil {
		t.Error("the WebSocket goes on")
	}
	select {
	case query := <-asked:
		if !strings.HasPrefix(query, "opening=") {
			t.Errorf("the other replica was asked to end %q", query)
		}
	default:
		t.Error("the other replica was not asked to end it")
	}
	wantSockets(t, other, holder, 0)
	other.life.Wait(t.Context()) // it holds the server no more
}

// What a replica refuses, or does not answer, the client is told, and the room is given back.
func TestCarriedSocketIsRefused(t *testing.T) {
	all := placed(t, 2)
	holder, other := all[0], all[1]
	url := other.inPublic()
	for what, tt := range map[string]struct {
		serve  http.HandlerFunc
		status int
	}{
		"refused":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "full", http.StatusTeapot) }, http.StatusTeapot},
		"broken off": {breakOff, http.StatusServiceUnavailable},
	} {
		holder.serveInstead(tt.serve)
		for range 10 { // more than there is room for
			wantRefused(t, what, url, tt.status)
		}
	}
	holder.instead.Store(nil)
	openSocket(t, url)
	wantSockets(t, other, holder, 1)
	other.sockets.Bound(0, 0)
	wantRefused(t, "no room where it was opened", url, http.StatusServiceUnavailable)
	wantSockets(t, other, holder, 1)
}

// The replica that served a principal is gone: a WebSocket is served by the next one.
func TestSocketAfterItsReplica(t *testing.T) {
	all := placed(t, 2)
	all[0].kill()
	openSocket(t, all[1].inPublic())
	if n := all[1].sockets.Len(); n != 0 {
		t.Errorf("%d WebSockets are carried, want that it is served here", n)
	}
}

// Replicas of a version that opens no streams of HTTP+SSE or WebSockets for others are not asked
// to; their calls are forwarded.
func TestOpeningsOfAnOlderReplica(t *testing.T) {
	all := placed(t, 2, ofRevision(0))
	holder, other := all[0], all[1]
	wantServed(t, "a call", other.send(http.MethodPost, callTool, modern), holder, callTool)
	url := other.inPublic()
	openSocket(t, url)
	if n := holder.sockets.Lent() + other.sockets.Len(); n != 0 {
		t.Errorf("%d WebSockets are carried, want that it is served where it was opened", n)
	}
	if by, _ := openEvents(t, url); by != other.instance {
		t.Errorf("a stream is served by %q, want %s", by, other.instance)
	}
}

// openEvents opens an HTTP+SSE stream, and returns what follows its first event, and the replica
// that has it.
func openEvents(t *testing.T, url string) (by string, rest *bufio.Reader) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	ctx, cancel := context.WithTimeout(t.Context(), bridgetest.Patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+Events.Path(serverName), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close(); client.CloseIdleConnections() })
	rest = bufio.NewReader(res.Body)
	if line, err := rest.ReadString('\n'); err != nil || line != "event: endpoint\n" {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	return res.Header.Get(servedBy), rest
}

// The stream of an HTTP+SSE client is opened at the replica that serves its principal, and ends
// in order with its server where it was opened. A client with a session of its own is served
// where it asks.
func TestEventStreamIsForwarded(t *testing.T) {
	all := placed(t, 2)
	holder, other := all[0], all[1]
	url := other.inPublic()
	other.ownSessions.Store(true)
	if by, _ := openEvents(t, url); by != other.instance {
		t.Errorf("the stream of a client with a session of its own is at %q, want %s", by, other.instance)
	}
	other.ownSessions.Store(false)
	by, rest := openEvents(t, url)
	if by != holder.instance {
		t.Fatalf("the stream is at %q, want %s", by, holder.instance)
	}
	other.life.End(errors.New("reloaded"))
	if text, err := io.ReadAll(rest); err != nil {
		t.Errorf("the stream's end: %q, %v", text, err)
	}
}

// A replica that is asked to end what is not there, or what a server had that is not there any
// more, says so.
func TestPartOfNothing(t *testing.T) {
	_, all := newReplicas(t, 1)
	for what, s := range map[string]*Server{"an unknown stream": all[0].server, "an unknown server": nil} {
		w := httptest.NewRecorder()
		all[0].group.ServePart(w, request(t, http.MethodPost, PartPath+"docs?opening=x", "", nil), s)
		if w.Code != http.StatusNotFound {
			t.Errorf("%s = %d, want 404", what, w.Code)
		}
	}
}
