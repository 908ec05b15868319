package link

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// nobody needs nothing that a server sends.
type nobody struct{}

func (nobody) Receive(context.Context, *wire.Message, *upstream.Call) {}
func (nobody) ListenChanged(bool, bool)                               {}

// A notebook notes the methods of what a server sends.
type notebook struct {
	nobody
	mu    sync.Mutex
	lines []string
}

func (n *notebook) Receive(_ context.Context, m *wire.Message, _ *upstream.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, m.Method)
}

// heard returns what was noted.
func (n *notebook) heard() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lines
}

func testOptions(url string) *upstream.Options {
	o := &upstream.Options{Name: "scripted", URL: url, MaxMessage: 1 << 20}
	o.Fill(spec.Legacy)
	return o
}

// A rig is a Link to a server played by the test.
type rig struct {
	*Link
	notebook
	opts     *upstream.Options
	endpoint *Endpoint
	gaps     atomic.Int32 // how often the stream was opened after messages may have been missed
	closing  sync.Once
}

func newRig(t testing.TB, o *upstream.Options) *rig {
	t.Helper()
	r := &rig{opts: o, endpoint: NewEndpoint(o)}
	t.Cleanup(r.endpoint.Close)
	r.Link = New(o, r)
	return r
}

// Receive implements [Sink].
func (r *rig) Receive(ctx context.Context, m *wire.Message, from *upstream.Call) {
	r.notebook.Receive(ctx, m, from)
}

// ListenChanged implements [Sink].
func (r *rig) ListenChanged(_, missed bool) {
	if missed {
		r.gaps.Add(1)
	}
}

// newHTTPRig returns a rig over Streamable HTTP, which has sent nothing.
func newHTTPRig(t testing.TB, p *legacytest.HTTPServer) *rig {
	o := testOptions(p.URL)
	o.RoundTripper = p.RoundTripper
	r := newRig(t, o)
	r.OverHTTP(r.endpoint)
	r.closeAfter(t)
	return r
}

// openHTTP opens a session over Streamable HTTP.
func openHTTP(t testing.TB, p *legacytest.HTTPServer) *rig {
	r := newHTTPRig(t, p)
	r.handshake(t)
	return r
}

// openPipe opens a session over a connection, and returns the peer at its end.
func openPipe(t testing.TB) (*rig, *legacytest.ConnPeer) {
	near, far := transport.NewPipe()
	r := newRig(t, testOptions(""))
	r.OverConn(t.Context(), near)
	r.closeAfter(t)
	return r, legacytest.NewConnPeer(t, far)
}

func (r *rig) closeAfter(t testing.TB) { t.Cleanup(func() { r.Close(context.Background()) }) }

// Close closes the Link once.
func (r *rig) Close(ctx context.Context) { r.closing.Do(func() { r.Link.Close(ctx) }) }

// handshake does what opens a session.
func (r *rig) handshake(t testing.TB) {
	t.Helper()
	c := &Call{Call: upstream.Call{Method: spec.MethodInitialize}, Opens: true}
	if _, err := r.RoundTrip(t.Context(), c, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	r.UseRevision(spec.LatestLegacy)
	r.Listen(t.Context())
	if err := r.Notify(t.Context(), spec.NotifyInitialized, nil); err != nil {
		t.Fatal(err)
	}
	r.Initialized(t.Context())
}

// call sends a request and returns its result. The error is the one for the client.
func (r *rig) call(ctx context.Context, method string) (string, error) {
	result, err := r.Request(ctx, method, []byte(`{}`))
	if err != nil {
		return "", r.opts.ClientError(method, err)
	}
	return string(result), nil
}

// listOnce lists no tools.
func listOnce(w http.ResponseWriter, _ *http.Request, m wire.Message) {
	legacytest.AnswerJSON(w, m.ID, `{"tools":[]}`)
}
