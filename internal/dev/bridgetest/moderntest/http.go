package moderntest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Front serves the messages of modern clients over HTTP.
type Front interface {
	ServeMessage(w http.ResponseWriter, r *http.Request, m *wire.Message, sender mcp.Sender)
}

// OverHTTP has a message served over HTTP, as its client would send it.
func OverHTTP(t *testing.T, f Front, text string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	return OverHTTPWith(t, f, text, func(h http.Header) {
		for name, value := range header {
			h.Set(name, value)
		}
	})
}

// OverHTTPWith has a message served over HTTP with other headers.
func OverHTTPWith(t *testing.T, f Front, text string, change func(http.Header)) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	overHTTP(t, f, w, text, change)
	return w
}

// OverHTTPTo has a message served whose response goes to w.
func OverHTTPTo(t *testing.T, f Front, w http.ResponseWriter, text string) {
	t.Helper()
	overHTTP(t, f, w, text, func(http.Header) {})
}

func overHTTP(t *testing.T, f Front, w http.ResponseWriter, text string, change func(http.Header)) {
	t.Helper()
	m, err := wire.Parse([]byte(text), wire.Options{UniqueParams: true})
	if err != nil {
		t.Fatalf("Parse(%s) = %v", text, err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp/s", nil)
	r.Header.Set(spec.HeaderProtocolVersion, string(spec.Rev20260728))
	r.Header.Set(spec.HeaderMethod, m.Method)
	if name, ok := wire.GetString(m.Params, spec.Named(m.Method)); ok {
		r.Header.Set(spec.HeaderName, name)
	}
	change(r.Header)
	f.ServeMessage(w, r, &m, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
}

// A Follower reads a listen stream over a socket.
type Follower struct {
	t    *testing.T
	Body io.ReadCloser
	in   *bufio.Scanner
}

// Follow posts a listen request, and reads its stream. filter is a JSON object.
func Follow(t *testing.T, f Front, id, filter string) *Follower {
	t.Helper()
	return FollowRequest(t, f, spec.MethodListen, Request(id, spec.MethodListen, "{}", `,"notifications":`+filter))
}

// FollowRequest posts a request, and reads the stream that answers it.
func FollowRequest(t *testing.T, f Front, method, text string) *Follower {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		m, err := wire.Parse(text, wire.Options{UniqueParams: true})
		if err != nil {
			t.Errorf("Parse(%s) = %v", text, err)
			return
		}
		f.ServeMessage(w, r, &m, mcp.Sender{Share: mcp.Share{Principal: "ada"}})
	}))
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	late := time.AfterFunc(bridgetest.Patience, cancel)
	defer late.Stop()
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}, "Mcp-Name": {"x"}, "Accept": {"application/json, text/event-stream"}}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return &Follower{t, res.Body, bufio.NewScanner(res.Body)}
}

// Next returns the next message, empty at the end of the stream. The stream is closed if
// nothing comes.
func (f *Follower) Next() string {
	f.t.Helper()
	late := time.AfterFunc(bridgetest.Patience, func() { f.Body.Close() })
	text := f.next()
	if !late.Stop() && text == "" {
		f.t.Fatalf("no event came for %v", bridgetest.Patience)
	}
	return text
}

func (f *Follower) next() string {
	for f.in.Scan() {
		if data, ok := strings.CutPrefix(f.in.Text(), "data: "); ok {
			return data
		}
	}
	return ""
}

// Want reads the next message, which must be text.
func (f *Follower) Want(text string) {
	f.t.Helper()
	if got := f.Next(); got != text {
		f.t.Errorf("event = %s\nwant    %s", got, text)
	}
}

// Tagged is a notification, with what its params have and the id of a subscription.
func Tagged(method, params, id string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":{` + params + `"_meta":{"vendor/m":1.0,"` + spec.MetaSubscriptionID + `":` + id + `}}}`
}
