package back

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const testInfo = `{"name":"mcpbridge","version":"test"}`

// ask returns a request as the modern front would hand it to the back.
func ask(method, params string) *mcp.Request {
	r := &mcp.Request{
		Method:   method,
		Era:      spec.Modern,
		Revision: spec.Rev20260728,
		Profile:  mcp.Profile{Scope: "test/1", Capabilities: json.RawMessage(`{}`)},
	}
	if params != "" {
		r.Params = json.RawMessage(params)
	}
	return r
}

// A caller is who made a request: it records what it is told.
type caller struct {
	mu    sync.Mutex
	notes []string
	told  chan string // also gets every note, if not nil
	hold  chan struct{}
}

func (c *caller) Notify(ctx context.Context, n mcp.Notification) error {
	if c.hold != nil {
		select {
		case <-c.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	text := n.Method + " " + string(n.Params)
	c.mu.Lock()
	c.notes = append(c.notes, text)
	c.mu.Unlock()
	if c.told != nil {
		c.told <- text
	}
	return ctx.Err()
}

func (c *caller) RequestInput(context.Context, []mcp.InputRequest) ([]mcp.InputResponse, error) {
	return nil, mcp.ErrCannotAsk
}

func (c *caller) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.notes...)
}

// drops counts what a Back dropped.
type drops struct {
	noMetrics
	mu sync.Mutex
	n  map[string]int
}

func (d *drops) Dropped(_, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == nil {
		d.n = make(map[string]int)
	}
	d.n[what]++
}

func (d *drops) Limit(_, name string) { d.Dropped("", "limit "+name) }

func (d *drops) count(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n[what]
}

// newTestBack returns a Back that is closed with the test.
func newTestBack(t testing.TB, opts Options) *Back {
	t.Helper()
	opts.Name = "scripted"
	opts.ClientInfo = json.RawMessage(testInfo)
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return b
}

// body returns what Serve answered and releases it.
func body(res *mcp.Result, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer res.Release()
	return string(res.Body), nil
}

// A connPeer is the far end of a connection: a legacy server played by a test.
type connPeer struct{ *legacytest.ConnPeer }

func newConnPeer(t testing.TB, far transport.Conn) *connPeer {
	return &connPeer{&legacytest.ConnPeer{T: t, Conn: far}}
}

// pipeBack returns a Back over pipes, and the far end of each connection that it
// dials; the channel is closed after the Back is.
func pipeBack(t testing.TB, opts Options) (*Back, <-chan *connPeer) {
	peers := make(chan *connPeer, 16)
	t.Cleanup(func() { close(peers) }) // after the Back is closed
	opts.Dial = func(context.Context) (transport.Conn, error) {
		near, far := transport.NewPipe()
		t.Cleanup(func() { _ = far.Close() })
		peers <- newConnPeer(t, far)
		return near, nil
	}
	return newTestBack(t, opts), peers
}

// An httpPeer is a legacy server over Streamable HTTP, played by a test: it
// opens sessions and leaves the rest to on.
type httpPeer struct {
	*httptest.Server
	t testing.TB

	capabilities string
	revision     string
	session      string // given by initialize; empty for none

	// on serves a message other than initialize and notifications/initialized; a
	// missing method is accepted with 202.
	on map[string]func(w http.ResponseWriter, r *http.Request, m wire.Message)
	// get serves the GET stream; nil answers 405.
	get http.HandlerFunc

	quiet bool // remember nothing

	mu   sync.Mutex
	seen []seen
}

// seen is one request as it came.
type seen struct {
	verb   string
	host   string
	header http.Header
	body   string
	method string // of the message
}

func newHTTPPeer(t testing.TB) *httpPeer {
	p := &httpPeer{
		t:            t,
		capabilities: legacytest.Everything,
		revision:     "2025-11-25",
		session:      "sess-1",
		on:           make(map[string]func(http.ResponseWriter, *http.Request, wire.Message)),
	}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *httpPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // the back went away
	}
	m, _ := wire.Parse(data, wire.Options{})
	if !p.quiet {
		p.mu.Lock()
		p.seen = append(p.seen, seen{r.Method, r.Host, r.Header.Clone(), string(data), m.Method})
		p.mu.Unlock()
	}
	on := p.on[m.Method]
	switch {
	case r.Method == http.MethodGet && p.get != nil:
		p.get(w, r)
	case r.Method == http.MethodDelete && p.on["DELETE"] != nil:
		p.on["DELETE"](w, r, m)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case on != nil:
		on(w, r, m)
	case m.Method == spec.MethodInitialize:
		if p.session != "" {
			w.Header().Set("Mcp-Session-Id", p.session)
		}
		answerJSON(w, m.ID, legacytest.InitializeResult(p.revision, p.capabilities))
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// requests returns what came of a message method, or of a verb.
func (p *httpPeer) requests(name string) []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []seen
	for _, s := range p.seen {
		if s.method == name || s.verb == name {
			out = append(out, s)
		}
	}
	return out
}

// order returns everything that came, one word each.
func (p *httpPeer) order() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, s := range p.seen {
		word := s.verb
		if s.method != "" {
			word = s.method
		} else if s.verb == http.MethodPost {
			word = s.body
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func answerJSON(w http.ResponseWriter, id wire.ID, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// startSSE begins a stream and returns what writes one event's data to it.
func startSSE(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush(w)
	return func(format string, args ...any) {
		fmt.Fprintf(w, "event: message\ndata: "+format+"\n\n", args...)
		flush(w)
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
