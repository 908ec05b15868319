package relay_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/legacy/back"
	"github.com/mcpbridge/mcpbridge/legacy/front"
)

// A linkedFront is a front over a real socket whose sessions are linked with a server.
type linkedFront struct {
	*legacytest.Endpoint
	backtest.Metrics
	front *front.Front
}

// linkedTo returns a front whose sessions are linked with b's server.
func linkedTo(t *testing.T, b mcp.Relayer) *linkedFront {
	return newLinkedFront(t, func(o *front.Options) { o.Relayer = b })
}

func newLinkedFront(t *testing.T, change func(*front.Options)) *linkedFront {
	st := &linkedFront{}
	o := front.Options{Name: "docs", Handler: unlinked{}, Describer: unlinked{}, Subscriber: unlinked{}, Instance: "inst", Metrics: st,
		Admit: func(r *mcp.Request) error { r.Profile.Scope = "docs/" + r.Session; return nil }}
	change(&o)
	f, err := front.New(o)
	if err != nil {
		t.Fatal(err)
	}
	st.front, st.Endpoint = f, legacytest.Serve(t, f, func() mcp.Principal { return "ada" })
	return st
}

// unlinked refuses what a front asks for sessions that are not linked.
type unlinked struct{}

var errUnlinked = errors.New("the session is not linked")

func (unlinked) Serve(context.Context, *mcp.Request, mcp.Caller) (*mcp.Result, error) {
	return nil, errUnlinked
}

func (unlinked) Describe(context.Context, *mcp.Request) (*mcp.Description, error) {
	return nil, errUnlinked
}

func (unlinked) Subscribe(*mcp.Request, *fanout.Mailbox, mcp.SubscribeOptions) (mcp.Subscription, error) {
	return nil, errUnlinked
}

// line returns a client on a connection.
func (st *linkedFront) line(t *testing.T) *legacytest.Line {
	return legacytest.NewLine(t, st.front.OpenConn)
}

// newBack returns a Back that is closed with the test.
func newBack(t *testing.T, opts back.Options) *back.Back {
	t.Helper()
	opts.Name, opts.ClientInfo = "scripted", []byte(`{"name":"mcpbridge","version":"test"}`)
	b, err := back.New(opts)
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

// pipeBack returns a Back over pipes, and the far end of each connection that it dials;
// the channel is closed after the Back is.
func pipeBack(t *testing.T, opts back.Options) (*back.Back, <-chan *legacytest.ConnPeer) {
	var peers <-chan *legacytest.ConnPeer
	opts.Dial, peers = legacytest.Pipes(t)
	return newBack(t, opts), peers
}

// welcomed opens a session over a connection on either side.
func welcomed(t *testing.T, st *linkedFront, peers <-chan *legacytest.ConnPeer) (*legacytest.Line, *legacytest.ConnPeer) {
	l := st.line(t)
	l.Send(legacytest.OddInitialize)
	p := <-peers
	p.Result(p.Want("initialize").ID, legacytest.OddResult)
	l.Next()
	return l, p
}
