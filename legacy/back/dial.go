package back

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
	"github.com/mcpbridge/mcpbridge/legacy/relay"
	"github.com/mcpbridge/mcpbridge/legacy/tasks"
	"github.com/mcpbridge/mcpbridge/legacy/watch"
)

// closeTimeout bounds the end of a session, and the sending of a message that nobody waits
// for.
const closeTimeout = 5 * time.Second

// A connector connects the Link of a session. ctx bounds the connecting, not the
// connection.
type connector func(ctx context.Context, l *link.Link) error

// An opener opens a session over a Link that connect connects. ctx bounds it. It may be
// called again after it has failed.
type opener func(ctx context.Context, connect connector) error

// open opens a session for a profile: the connection, initialize, the stream for messages
// outside of calls, and notifications/initialized. ctx bounds all of it; the session
// outlives ctx. If open fails, it closes everything.
//
// Spec: 2025-11-25, basic/lifecycle, Initialization.
func (b *Back) open(ctx context.Context, p mcp.Profile) (s *session, err error) {
	err = b.dial(ctx, p.Principal, pool.Newcomer{Share: p.Share}, func(ctx context.Context, connect connector) (err error) {
		s, err = b.openNaming(ctx, p, connect)
		return err
	})
	return s, err
}

// openOver opens a session over a Link that connect connects.
func (b *Back) openOver(ctx context.Context, p mcp.Profile, connect connector) (*session, error) {
	scope, lane := pool.CutLane(p.Scope)
	s := newSession(&b.opts, func() *watch.Watch { return b.watches.Of(scope) }, profileRoots{b, scope, lane}, mcp.Declares(p.Capabilities, "roots"))
	s.inputs.onAmbiguous = func() { b.lanes.Ambiguous(scope) }
	s.tools, s.holding, s.open = b.tools.GetOr(scope, tasks.NewTools), b.holding, b.session
	if p.Revision != "" {
		s.own, s.level.scope, s.level.kept = !lane, scope, b.levels
	}
	if err := connect(ctx, s.Link); err != nil {
		return nil, err
	}
	if err := s.handshake(ctx, p, b.namesLegacy.Load()); err != nil {
		why := connectError(ctx, s.Link, err)
		endSession(ctx, s)
		return nil, why
	}
	if s.caps.Logging {
		s.level.restore(ctx)
	}
	b.revision.Store(s.negotiated.revision)
	return s, nil
}

// dial calls open with a connector for the server's transport, on behalf of a principal
// and a client.
func (b *Back) dial(ctx context.Context, principal mcp.Principal, to pool.Newcomer, open opener) error {
	ctx, cancel := context.WithTimeout(ctx, b.opts.Settings.Timeouts.Connect)
	defer cancel()
	switch {
	case b.endpoint != nil:
		return b.dialHTTP(ctx, b.endpoint.As(principal), open)
	case b.opts.Launcher != nil:
		c := command{server: b.opts.Name, launcher: b.opts.Launcher, pool: b.pool, log: b.log}
		return c.open(ctx, to, open)
	}
	return open(ctx, b.dialConn)
}

// A dialError reports that a connection could not be opened, or a command not be started.
type dialError struct{ err error }

func (e *dialError) Error() string { return "connecting to it: " + e.err.Error() }

// Unwrap returns the cause.
func (e *dialError) Unwrap() error { return e.err }

// dialConn opens a connection for l. ctx bounds the opening; the connection outlives it.
func (b *Back) dialConn(ctx context.Context, l *link.Link) error {
	start := time.Now()
	conn, err := b.opts.Dial(ctx)
	if err != nil {
		return &dialError{err}
	}
	b.log.Debug("connected", "took", time.Since(start))
	l.OverConn(ctx, conn)
	return nil
}

// dialHTTP calls open with a connector for Streamable HTTP or, if the server refuses that
// like one which only has it, for HTTP+SSE. From then on the transport that worked is
// tried first.
func (b *Back) dialHTTP(ctx context.Context, at *link.Endpoint, open opener) error {
	overSSE := func(ctx context.Context, l *link.Link) error { return l.OverSSE(ctx, at) }
	if b.opts.Transport == TransportSSE {
		return open(ctx, overSSE)
	}
	if b.usesSSE.Load() {
		err := open(ctx, overSSE)
		var status *upstream.StatusError
		if err == nil || !errors.As(err, &status) || !upstream.LooksForeign(status.Code) {
			return err
		}
		b.setUsesSSE(false) // it was replaced by another server
	}
	var tried *link.Link
	err := open(ctx, func(_ context.Context, l *link.Link) error {
		tried = l
		l.OverHTTP(at)
		return nil
	})
	var no *relay.Refusal // the server has read the request
	if err == nil || b.opts.Transport == TransportHTTP || !upstream.LooksForeign(tried.Refusal()) || errors.As(err, &no) {
		return err
	}
	if older := open(ctx, overSSE); older != nil {
		return fmt.Errorf("%w; HTTP+SSE failed, too: %v", err, older)
	}
	b.setUsesSSE(true)
	b.log.Info("server uses HTTP+SSE, the transport of 2024-11-05", "reason", err)
	return nil
}

// setUsesSSE records whether the server uses HTTP+SSE. Its stream does not tell for which
// call the server requests input.
func (b *Back) setUsesSSE(older bool) {
	b.usesSSE.Store(older)
	b.lanes.Always.Store(older)
}
