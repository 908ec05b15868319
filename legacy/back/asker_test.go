package back

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// newAsker returns a Back whose every connection leads to a server that a shares
// with the others: start says how to play it.
func newAsker(t testing.TB, opts Options, start func(a *legacytest.Server)) *Back {
	var running sync.WaitGroup
	t.Cleanup(running.Wait) // after the Back is closed
	opts.Dial = func(context.Context) (transport.Conn, error) {
		near, far := transport.NewPipe()
		a := legacytest.NewServer(t, far)
		start(a)
		running.Go(a.Serve)
		return near, nil
	}
	return newTestBack(t, opts)
}

const (
	canBeAsked = `{"elicitation":{},"sampling":{}}`
	hasRoots   = `{"elicitation":{},"roots":{},"sampling":{}}`
	accepted   = `{"action":"accept","content":{"me":"Ada"}}`
	adasRoots  = `{"roots":[{"uri":"file:///ada"}]}`
)

// askable returns a call of a client that can be asked.
func askable(who string) *mcp.Request {
	r := ask("tools/call", fmt.Sprintf(`{"name":"t","arguments":{"who":%q}}`, who))
	r.Profile.Capabilities = json.RawMessage(canBeAsked)
	return r
}

// said is a tool's result that holds text.
func said(text string) string { return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text) }
