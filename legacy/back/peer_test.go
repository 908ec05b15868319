package back

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
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

// drops counts what a Back dropped.
type drops struct {
	mcp.NoMetrics
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
