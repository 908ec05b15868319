package back

import (
	"encoding/json"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
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

// newTestBack returns a Back that is closed with the test.
func newTestBack(t testing.TB, opts Options) *Back {
	t.Helper()
	opts.Name = "scripted"
	opts.ClientInfo = json.RawMessage(testInfo)
	b, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	backtest.CloseAfter(t, b)
	return b
}

var body = backtest.Body

// pipeBack returns a Back over pipes, and the far end of each connection that it
// dials; the channel is closed after the Back is.
func pipeBack(t testing.TB, opts Options) (*Back, <-chan *legacytest.ConnPeer) {
	var peers <-chan *legacytest.ConnPeer
	opts.Dial, peers = legacytest.Pipes(t)
	return newTestBack(t, opts), peers
}
