package router

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A call costs no more because there could be other replicas: as many allocations as before
// there were any, the request and the recorder of the test included.
func TestCallAllocatesNoMore(t *testing.T) {
	g, err := New(Options{Servers: []ServerOptions{{Name: "peer", Open: func(mcp.Changes) (mcp.Back, error) { return echo{}, nil }}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(context.Background()) })
	post := func(body string, header http.Header) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp/peer", strings.NewReader(body))
		r.Header = header
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w
	}
	session := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	session.Set(spec.HeaderSession, post(initializeBody, session).Header().Get(spec.HeaderSession))
	for name, tc := range map[string]struct {
		body   string
		header http.Header
		most   float64
	}{
		"modern": {modernBody("1", spec.MethodToolsCall, `"name":"read","arguments":{}`), modernHeaders(spec.MethodToolsCall, "read"), 36},
		"legacy": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}`, session, 56},
	} {
		call := func() { post(tc.body, tc.header) }
		call()
		if got := testing.AllocsPerRun(1000, call); got > tc.most+forgotten() {
			t.Errorf("%s: %v allocations for a call, want %v at most", name, got, tc.most)
		}
	}
}

// A call through a group takes few allocations more than one at its server's own endpoint: its own
// request, name, params and way.
func TestG20CallThroughAGroupAllocatesLittleMore(t *testing.T) {
	echoed := func(mcp.Changes) (mcp.Back, error) { return echo{}, nil }
	g, err := New(Options{Servers: []ServerOptions{{Name: "a", Open: echoed}, {Name: "b", Open: echoed}, {Name: "all", Group: groupOf("a", "b")}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(context.Background()) })
	allocations := func(path, tool string) float64 {
		body, header := modernBody("1", spec.MethodToolsCall, `"name":"`+tool+`","arguments":{}`), modernHeaders(spec.MethodToolsCall, tool)
		call := func() {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
			r.Header = header
			w := httptest.NewRecorder()
			if g.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"content"`) {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
		call()
		return testing.AllocsPerRun(1000, call)
	}
	own, through := allocations("/mcp/a", "read"), allocations("/mcp/all", "a__read")
	if most := own + 5 + forgotten(); through > most {
		t.Errorf("%v allocations for a call through a group, want %v at most: it takes %v at its server's endpoint", through, most, own)
	}
}

// forgotten is how many allocations more a call has under the race detector, which has pools
// forget some of what they are given.
func forgotten() float64 {
	pool := sync.Pool{New: func() any { return new([64]byte) }}
	return testing.AllocsPerRun(1000, func() {
		for range 64 {
			pool.Put(pool.Get())
		}
	})
}

// echo is a server that gives every call the same result.
type echo struct{}

func (echo) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	res := mcp.NewResult([]byte(`{"content":[]}`), nil)
	res.Era = spec.Legacy
	return res, nil
}

func (echo) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return &mcp.Description{Capabilities: []byte(`{"tools":{}}`)}, nil
}

func (echo) Watch(_ context.Context, _ mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	return want, func() {}, nil
}

func (echo) Start()                      {}
func (echo) Era() spec.Era               { return spec.Legacy }
func (echo) Err() error                  { return nil }
func (echo) Close(context.Context) error { return nil }
