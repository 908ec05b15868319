package back

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// A connLink reaches a server over a connection of messages that all requests
// share: a child's standard streams, a WebSocket, a pipe. It is opened by the first request
// and opened anew by the first after its end.
//
// Spec: 2026-07-28, basic/transports/stdio.
type connLink struct {
	opts      *Options
	unclaimed func(c *upstreamCall, m *wire.Message)
	lost      func(error) // told when the connection ended by itself

	stop context.CancelCauseFunc
	live context.Context // ends with close

	running sync.WaitGroup // dials, readers, what is being sent that nobody waits for

	// mu guards the fields below.
	mu      sync.Mutex
	conn    *conn    // the last one opened, which may have ended; nil if none
	opening *opening // nil if no dial is under way
	closed  bool
	pause   upstream.Pause
}

// An opening is a dial that all share who need the connection.
type opening struct {
	done chan struct{} // closed when conn and err are set
	conn *conn
	err  error
}

func newConnLink(opts *Options, news func(*upstreamCall, *wire.Message), lost func(error)) *connLink {
	l := &connLink{opts: opts, unclaimed: news, lost: lost}
	l.live, l.stop = context.WithCancelCause(context.Background())
	return l
}

// exchange implements link.
func (l *connLink) exchange(ctx context.Context, c *upstreamCall) (upstream.Response, error) {
	p, err := l.get(ctx)
	if err != nil {
		return upstream.Response{}, err
	}
	return p.exchange(ctx, c)
}

// listen implements link.
func (l *connLink) listen(ctx context.Context, c *upstreamCall) (watch.Stream, error) {
	p, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return p.listen(ctx, c)
}

// get returns the connection, opening one if there is none.
func (l *connLink) get(ctx context.Context) (*conn, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		p, op, pause, err := l.connOrDial()
		switch {
		case err != nil:
			return nil, &upstream.Failure{Cause: err, Fate: upstream.NotSent}
		case p != nil:
			return p, nil
		case pause > 0:
			if err := backoff.Wait(ctx, pause); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-op.done:
			if op.err != nil {
				return nil, &upstream.Failure{Cause: op.err, Fate: upstream.NotSent}
			}
			return op.conn, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connOrDial returns one of: the connection; the dial under way, which it starts; how
// long to wait before the server is tried again; why there will be no connection.
func (l *connLink) connOrDial() (*conn, *opening, time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pause, err := l.pause.Left()
	switch {
	case l.closed:
		return nil, nil, 0, mcp.ErrShutdown
	case l.opening != nil:
		return nil, l.opening, 0, nil
	case l.conn != nil && l.conn.alive():
		return l.conn, nil, 0, nil
	case err != nil, pause > 0:
		return nil, nil, pause, err
	}
	op := &opening{done: make(chan struct{})}
	l.opening = op
	l.running.Go(func() { l.open(op) }) // ends by its time-out, or with close
	return nil, op, 0, nil
}

// open dials for all who wait. The dial does not die with one of them.
func (l *connLink) open(op *opening) {
	defer close(op.done)
	ctx, cancel := context.WithTimeoutCause(l.live, l.opts.Timeouts.Connect, errors.New("it did not start within timeouts.connect"))
	defer cancel()
	begun := time.Now()
	over, err := l.opts.Dial(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opening = nil
	switch {
	case err != nil:
		op.err = fmt.Errorf("connecting to it: %w", err)
		l.pause.Note(begun, op.err)
	case l.closed:
		op.err = mcp.ErrShutdown
		l.running.Go(func() { _ = over.Close() })
	default:
		op.conn = newConn(l, over)
		l.conn = op.conn
		l.opts.Logger.Debug("connected", "took", time.Since(begun))
	}
}

// connected reports whether a connection was ever had.
func (l *connLink) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil
}

// noise says, after a semicolon, what came on the last connection that is no message.
func (l *connLink) noise() string {
	l.mu.Lock()
	p := l.conn
	l.mu.Unlock()
	if p == nil {
		return ""
	}
	return transport.Noise(p.Conn)
}

// ended notes that a connection has ended by itself.
func (l *connLink) ended(p *conn, err error) {
	l.mu.Lock()
	if time.Since(p.born) < upstream.Stable {
		l.pause.Note(p.born, err)
	}
	l.mu.Unlock()
	l.lost(err)
}

// close implements link. A connection's Close is polite by itself: it lets a child
// exit before it makes it.
func (l *connLink) close(context.Context) error {
	l.mu.Lock()
	l.closed = true
	p := l.conn
	l.mu.Unlock()
	l.stop(mcp.ErrShutdown)
	var err error
	if p != nil {
		p.fail(mcp.ErrShutdown)
		if err = p.Conn.Close(); errors.Is(err, transport.ErrClosed) {
			err = nil
		}
	}
	l.running.Wait()
	return err
}

var _ link = (*connLink)(nil)
