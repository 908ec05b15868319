package pool

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/backtest"
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest/legacytest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// A rig is a Pool whose sessions are Links to servers played by the test.
type rig struct {
	*Pool
	server *upstream.Options
}

// A connector connects the Link of a session.
type connector func(ctx context.Context, l *link.Link) error

// newRig returns a rig that is closed with the test.
func newRig(t testing.TB, opts Options, connect connector) *rig {
	t.Helper()
	r := &rig{server: &upstream.Options{Name: "scripted"}}
	r.server.Fill(spec.Legacy)
	opts.Name, opts.Logger, opts.Lost = r.server.Name, slog.New(slog.DiscardHandler), func() {}
	opts.Lingers = func(string) bool { return false }
	if opts.Unneeded == nil {
		opts.Unneeded = func(Session, json.RawMessage, time.Duration) bool { return true }
	}
	opts.MaxSessions = cmp.Or(opts.MaxSessions, 100)
	opts.Idle = cmp.Or(opts.Idle, 10*time.Minute)
	if opts.Metrics == nil {
		opts.Metrics = mcp.NoMetrics{}
	}
	p, err := New(opts, func(ctx context.Context, _ mcp.Profile) (Session, error) {
		l, err := r.open(ctx, connect)
		if err != nil {
			return nil, &upstream.Failure{Cause: err, Fate: upstream.NotSent}
		}
		return l, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Pool = p
	backtest.CloseAfter(t, p)
	return r
}

// pipeRig returns a rig over pipes, and the far end of each connection that it dials; the
// channel is closed after the Pool is.
func pipeRig(t testing.TB, opts Options) (*rig, <-chan *legacytest.ConnPeer) {
	dial, peers := legacytest.Pipes(t)
	return newRig(t, opts, over(dial)), peers
}

// over returns what connects a Link over a connection that dial opens.
func over(dial func(context.Context) (transport.Conn, error)) connector {
	return func(ctx context.Context, l *link.Link) error {
		conn, err := dial(ctx)
		if err != nil {
			return err
		}
		l.OverConn(ctx, conn)
		return nil
	}
}

// open opens a session.
func (r *rig) open(ctx context.Context, connect connector) (*link.Link, error) {
	ctx, cancel := context.WithTimeout(ctx, r.server.Settings.Timeouts.Connect)
	defer cancel()
	l := link.New(r.server, nobody{})
	if err := connect(ctx, l); err != nil {
		return nil, err
	}
	c := &link.Call{Call: upstream.Call{Method: spec.MethodInitialize}, Opens: true}
	_, err := l.RoundTrip(ctx, c, []byte(`{}`))
	if err == nil {
		err = l.Notify(ctx, spec.NotifyInitialized, nil)
	}
	if err != nil {
		l.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return l, nil
}

// nobody needs nothing that a server sends.
type nobody struct{}

func (nobody) Receive(context.Context, *wire.Message, *upstream.Call) {}
func (nobody) ListenChanged(bool, bool)                               {}

// of returns the profile of a scope.
func of(scope string) mcp.Profile { return mcp.Profile{Scope: scope} }

// hold takes a session of a scope into use.
func (r *rig) hold(t testing.TB, scope string) (Session, func()) {
	t.Helper()
	s, release, err := r.Get(t.Context(), of(scope), false)
	if err != nil {
		t.Fatal(err)
	}
	return s, release
}

// list lists the tools once, in a session of a scope. The error is the client's.
func (r *rig) list(ctx context.Context, scope string) error {
	return r.request(ctx, scope, spec.MethodToolsList, false)
}

// request sends a request in a session of a scope, or in one of its own.
func (r *rig) request(ctx context.Context, scope, method string, private bool) error {
	s, release, err := r.Get(ctx, of(scope), private)
	if err == nil {
		defer release()
		_, err = s.(*link.Link).Request(ctx, method, nil)
	}
	if err != nil {
		return r.server.ClientError(method, err)
	}
	return nil
}

// runNext plays the servers of the next n connections, each until it ends.
func runNext(peers <-chan *legacytest.ConnPeer, n int) {
	for range n {
		go (<-peers).Run()
	}
}

// settle has all servers read what they were sent: one that is cut off in the middle of a
// handshake fails its test.
func settle() { synctest.Wait() }
