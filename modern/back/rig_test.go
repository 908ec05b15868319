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

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

const (
	upInfo       = `{"name":"mcpbridge","version":"test"}`
	upClientInfo = `{"name":"old-client","version":"7"}`
	upServerInfo = `{"name":"scripted","version":"1"}`
	upCaps       = `{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"logging":{}}`
)

// upRequest returns a request of a legacy client, as its front hands it to the
// back.
func upRequest(method, params string) *mcp.Request {
	r := &mcp.Request{
		Method:       method,
		Era:          spec.Legacy,
		Revision:     spec.Rev20251125,
		Capabilities: json.RawMessage(`{}`),
		ClientInfo:   json.RawMessage(upClientInfo),
		Profile:      mcp.Profile{Scope: "scripted/1", Capabilities: json.RawMessage(`{}`)},
		Session:      "s1",
	}
	if params != "" {
		r.Params = json.RawMessage(params)
	}
	return r
}

// upModernRequest returns a request of a modern client.
func upModernRequest(method, params string) *mcp.Request {
	r := upRequest(method, params)
	r.Era, r.Revision, r.Session = spec.Modern, spec.Rev20260728, ""
	meta := wire.Get(r.Params, "_meta")
	if c := wire.Get(meta, spec.MetaClientCapabilities); c != nil {
		r.Capabilities = c
	}
	r.ClientInfo = wire.Get(meta, spec.MetaClientInfo)
	r.ProgressToken = wire.Get(meta, spec.MetaProgressToken)
	level, _ := wire.GetString(meta, spec.MetaLogLevel)
	r.LogLevel = spec.LogLevel(level)
	return r
}

// doubts collects why a Back doubts its server's era.
type doubts struct {
	mu  sync.Mutex
	all []string
}

func (d *doubts) take(why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, why)
}

func (d *doubts) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// newUpBack returns a Back that is closed with the test.
func newUpBack(t testing.TB, opts Options) *Back {
	t.Helper()
	opts.Name = "scripted"
	opts.ClientInfo = json.RawMessage(upInfo)
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	backtest.CloseAfter(t, b)
	return b
}

var upBody = backtest.Body

// wireErr returns the wire error that a client is told of err.
func wireErr(t testing.TB, err error) *wire.Error {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	return mcp.WireError(err)
}

// An upPeer is a modern server over Streamable HTTP, played by a test. It holds
// every request against the transport's rules.
type upPeer struct {
	*httptest.Server
	rt http.RoundTripper // reaches a server in memory; nil for one on a socket
	t  testing.TB
	// on serves a method; a missing one is -32601 with 404.
	on map[string]func(w http.ResponseWriter, r *http.Request, m wire.Message)
	// rawNames: Mcp-Name is compared as it is, as go-sdk does.
	rawNames bool
	// strict is whether a mismatch of headers fails the test.

	mu   sync.Mutex
	seen []upSeen
}

// upSeen is one request as it came.
type upSeen struct {
	method string
	id     string
	params string
	header http.Header
	body   string
}

func newUpPeer(t testing.TB) *upPeer {
	p := &upPeer{t: t, on: make(map[string]func(http.ResponseWriter, *http.Request, wire.Message))}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// newMemoryPeer returns a peer in memory, for a test in a bubble.
func newMemoryPeer(t testing.TB) *upPeer {
	p := &upPeer{t: t, on: make(map[string]func(http.ResponseWriter, *http.Request, wire.Message))}
	p.Server, p.rt = backtest.InMemory(t, p)
	return p
}

func (p *upPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // the back went away
	}
	m, err := wire.Parse(data, wire.Options{UniqueParams: true})
	if err != nil {
		p.t.Errorf("the back sent %s: %v", data, err)
	}
	p.mu.Lock()
	p.seen = append(p.seen, upSeen{m.Method, m.ID.String(), string(m.Params), r.Header.Clone(), string(data)})
	p.mu.Unlock()
	p.check(r, &m)
	on := p.on[m.Method]
	if on == nil {
		upFail(w, http.StatusNotFound, m.ID, spec.CodeMethodNotFound, "")
		return
	}
	on(w, r, m)
}

// check holds a request against what every server of the era demands.
func (p *upPeer) check(r *http.Request, m *wire.Message) {
	meta := wire.Get(m.Params, "_meta")
	version, _ := wire.GetString(meta, spec.MetaProtocolVersion)
	for name, want := range map[string]string{
		"Accept":               "application/json, text/event-stream",
		"Content-Type":         "application/json",
		"Mcp-Protocol-Version": version,
		"Mcp-Method":           m.Method,
		"Mcp-Session-Id":       "",
		"Last-Event-Id":        "",
		"X-Config":             r.Header.Get("X-Config"),
	} {
		if got := strings.Join(r.Header[name], "|"); got != want {
			p.t.Errorf("%s: header %s = %q, want %q", m.Method, name, got, want)
		}
	}
	if !wire.IsObject(wire.Get(meta, spec.MetaClientCapabilities)) || version == "" {
		p.t.Errorf("%s: _meta = %s, want an envelope", m.Method, meta)
	}
	if name, named := protocol.NameOf(m.Method, m.Params); named && !p.rawNames {
		if got, _ := spec.DecodeHeader(r.Header.Get("Mcp-Name")); got != name {
			p.t.Errorf("%s: Mcp-Name says %q, want %q", m.Method, got, name)
		}
	}
	if n, ok := m.ID.Int(); !ok || n <= 0 {
		p.t.Errorf("%s: id %s, want a positive integer", m.Method, m.ID)
	}
}

// requests returns what came of a method.
func (p *upPeer) requests(method string) []upSeen {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []upSeen
	for _, s := range p.seen {
		if s.method == method {
			out = append(out, s)
		}
	}
	return out
}

// back returns a Back of the peer.
func (p *upPeer) back(opts Options) *Back {
	p.t.Helper()
	opts.URL, opts.RoundTripper = p.URL, p.rt
	return newUpBack(p.t, opts)
}

// says makes the peer answer a method with one result, as JSON.
func (p *upPeer) says(method, result string) {
	p.on[method] = func(w http.ResponseWriter, _ *http.Request, m wire.Message) { upAnswer(w, m.ID, result) }
}

func upAnswer(w http.ResponseWriter, id wire.ID, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// upFail answers with an error.
func upFail(w http.ResponseWriter, status int, id wire.ID, code int64, data string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := wire.Errorf(code, "no %d", code)
	if data != "" {
		e.Data = json.RawMessage(data)
	}
	_, _ = w.Write(wire.AppendError(nil, id, e))
}

// upStream begins a stream and returns what writes one event's data to it.
func upStream(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	_ = rc.Flush()
	return func(format string, args ...any) {
		fmt.Fprintf(w, "event: message\ndata: "+format+"\n\n", args...)
		_ = rc.Flush()
	}
}

// said is a tool's result that holds text.
func said(text string) string {
	return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, text)
}

// upLines returns a Back over pipes, and the far end of each connection it dials.
func upLines(t testing.TB, opts Options) (*Back, <-chan *backtest.Peer) {
	var peers <-chan *backtest.Peer
	opts.Dial, peers = backtest.Pipes(t, backtest.NewPeer)
	return newUpBack(t, opts), peers
}

// An outcome is what a request that runs beside the test came to.
type outcome struct {
	body string
	err  error
}

// upServe runs a request beside the test.
func upServe(ctx context.Context, b *Back, req *mcp.Request, x mcp.Caller) <-chan outcome {
	done := make(chan outcome, 1)
	go func() { // ends with the request
		body, err := upBody(b.Serve(ctx, req, x))
		done <- outcome{body, err}
	}()
	return done
}
