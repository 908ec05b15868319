// Package legacytest plays both sides of the legacy revisions for tests: the HTTP
// client of a front, and the server at the far end of a back's connection.
package legacytest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Front is what serves the clients.
type Front interface {
	ServeGet(w http.ResponseWriter, r *http.Request, sender mcp.Sender)
	ServePost(w http.ResponseWriter, r *http.Request, body []byte, m *wire.Message, sender mcp.Sender)
	ServeDelete(w http.ResponseWriter, r *http.Request, sender mcp.Sender)
	EndStreams(why error)
	Close(ctx context.Context) error
}

// An Endpoint is a front on a real socket.
type Endpoint struct {
	*httptest.Server
	front Front
	who   func() mcp.Principal
}

// Serve serves f until the test ends, and closes it then. who returns the principal of
// a request.
func Serve(t testing.TB, f Front, who func() mcp.Principal) *Endpoint {
	e := &Endpoint{front: f, who: who}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serveHTTP))
	t.Cleanup(func() {
		f.EndStreams(mcp.ErrShutdown)
		e.CloseClientConnections()
		e.Server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), bridgetest.Patience)
		defer cancel()
		if err := f.Close(ctx); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return e
}

// serveHTTP does what stands before a front.
func (e *Endpoint) serveHTTP(w http.ResponseWriter, r *http.Request) {
	sender := mcp.Sender{Share: mcp.Share{Principal: e.who()}}
	switch r.Method {
	case http.MethodGet:
		e.front.ServeGet(w, r, sender)
		return
	case http.MethodDelete:
		e.front.ServeDelete(w, r, sender)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if wire.IsArray(body) {
		e.front.ServePost(w, r, body, nil, sender)
		return
	}
	m, err := wire.Parse(body, wire.Options{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.front.ServePost(w, r, body, &m, sender)
}

// Open sends one HTTP request; headers are name, value pairs, an empty value
// removes.
func (e *Endpoint) Open(t testing.TB, method, body string, headers ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	late := time.AfterFunc(bridgetest.Patience, func() { cancel(errLate) })
	defer late.Stop()
	req, err := http.NewRequestWithContext(ctx, method, e.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	res, err := e.Client().Do(req)
	if err != nil {
		t.Fatal(cmp.Or(context.Cause(ctx), err))
	}
	return res
}

// errLate says that a front took too long.
var errLate = fmt.Errorf("no answer came for %v", bridgetest.Patience)

// A Reply is what came back for one HTTP request, its body read to the end.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// Code returns the code of the error in the body, 0 if there is none.
func (r Reply) Code() int64 {
	var e struct{ Error struct{ Code int64 } }
	_ = json.Unmarshal([]byte(r.Body), &e)
	return e.Error.Code
}

// Send sends one HTTP request as Open does, and reads its answer.
func (e *Endpoint) Send(t testing.TB, method, body string, headers ...string) Reply {
	t.Helper()
	res := e.Open(t, method, body, headers...)
	defer res.Body.Close()
	late := time.AfterFunc(bridgetest.Patience, func() { res.Body.Close() })
	defer late.Stop()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return Reply{res.StatusCode, res.Header, string(text)}
}

// Initialize returns an initialize of a client of that revision.
func Initialize(revision string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{},"sampling":{},"roots":{"listChanged":true}},"clientInfo":{"name":"t","version":"0"}}}`, revision)
}

// Enter opens a session.
func (e *Endpoint) Enter(t testing.TB, revision string) *Session {
	t.Helper()
	r := e.Send(t, "POST", Initialize(revision))
	if r.Status != 200 || r.Header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize = %d %s", r.Status, r.Body)
	}
	s := &Session{Endpoint: e, ID: r.Header.Get("Mcp-Session-Id"), Revision: revision}
	if r := s.Post(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); r.Status != 202 || r.Body != "" {
		t.Fatalf("initialized = %d %q, want 202 and nothing", r.Status, r.Body)
	}
	return s
}

// A Session is a client's session with an endpoint.
type Session struct {
	Endpoint *Endpoint
	ID       string
	Revision string
	calls    int
}

// Post posts one message.
func (s *Session) Post(t testing.TB, body string) Reply {
	t.Helper()
	return s.Endpoint.Send(t, "POST", body, "Mcp-Session-Id", s.ID)
}

// Call posts a request. Ids count from 1.
func (s *Session) Call(t testing.TB, method, params string) Reply {
	t.Helper()
	s.calls++
	return s.Post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, s.calls, method, params))
}

// Listen opens the GET stream.
func (s *Session) Listen(t testing.TB, headers ...string) *Stream {
	t.Helper()
	return Read(t, s.Endpoint.Open(t, "GET", "", append([]string{"Mcp-Session-Id", s.ID, "Accept", "text/event-stream"}, headers...)...))
}
