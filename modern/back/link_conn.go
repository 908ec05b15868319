package back

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// A connLink reaches a server over a connection that all requests share: the standard
// streams of a command, a WebSocket, a pipe. The first request opens it, and the first one
// after its end opens it again.
//
// Spec: 2026-07-28, basic/transports/stdio.
type connLink struct {
	opts      *Options
	unclaimed func(c *upstreamCall, m *wire.Message)
	lost      func(error) // called when the connection ends by itself
	// heeded is called when the server answers a listen request that was given up. It must not
	// block.
	heeded func(scope string)

	stop context.CancelCauseFunc
	live context.Context // ends with close

	running  sync.WaitGroup // dials, readers, and messages that are sent in the background
	farewell atomic.Int32   // what the server does about listen requests that are cancelled

	// mu guards the fields below.
	mu      sync.Mutex
	conn    *conn    // the last one, which may have ended; nil if there is none
	opening *opening // nil if no dial is in progress
	closed  bool
	pause   upstream.Pause
}

// An opening is a dial for which all requests wait.
type opening struct {
	done chan struct{} // closed when conn and err are set
	conn *conn
	err  error
}

func newConnLink(opts *Options, news func(*upstreamCall, *wire.Message), lost func(error), heeded func(string)) *connLink {
	l := &connLink{opts: opts, unclaimed: news, lost: lost, heeded: heeded}
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

// bind implements link: exchanges end with their connections.
func (l *connLink) bind(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(ctx)
}

// listen implements link.
func (l *connLink) listen(ctx context.Context, c *upstreamCall) (watch.Stream, error) {
	p, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return p.listen(ctx, c)
}

// get returns the connection, and opens one if there is none.
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
			if err := wake.Wait(ctx, pause); err != nil {
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

// connOrDial returns one of: the connection; the dial in progress, which it starts; the
// pause before the next attempt; the reason why there will be no connection.
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

// open dials for all waiting requests. The dial does not end with one of them.
func (l *connLink) open(op *opening) {
	defer close(op.done)
	ctx, cancel := context.WithTimeoutCause(l.live, l.opts.Settings.Timeouts.Connect, errors.New("it did not start within timeouts.connect"))
	defer cancel()
	begun := time.Now()
	l.forget()
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
		l.noteFailedLocked(begun, op.err)
	case l.closed:
		op.err = mcp.ErrShutdown
		l.running.Go(func() { _ = over.Close() })
	default:
		op.conn = newConn(l, over)
		l.conn = op.conn
		l.opts.Logger.Debug("connected", "took", time.Since(begun))
	}
}

// noteFailedLocked records an attempt that failed, or a connection that did not last.
func (l *connLink) noteFailedLocked(begun time.Time, err error) {
	if !l.opts.Eager {
		l.pause.Note(begun, err)
	}
}

// forget has recorded, before another connection is opened, what was lost with the last one.
func (l *connLink) forget() {
	l.mu.Lock()
	last := l.conn
	l.mu.Unlock()
	if last != nil {
		last.heldEnded()
	}
}

// connected reports whether there was ever a connection.
func (l *connLink) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil
}

// noise returns, after a semicolon, output on the last connection that is not a message.
func (l *connLink) noise() string {
	l.mu.Lock()
	p := l.conn
	l.mu.Unlock()
	if p == nil {
		return ""
	}
	return transport.Noise(p.Conn)
}

// ended records that a connection has ended by itself.
func (l *connLink) ended(p *conn, err error) {
	l.mu.Lock()
	if time.Since(p.born) < upstream.Stable {
		l.noteFailedLocked(p.born, err)
	}
	l.mu.Unlock()
	l.lost(err)
}

// close implements link. Closing a connection is always graceful: a command may exit by
// itself.
func (l *connLink) close(context.Context) error {
	l.mu.Lock()
	l.closed = true
	p := l.conn
	l.mu.Unlock()
	l.stop(mcp.ErrShutdown)
	var err error
	if p != nil {
		p.fail(mcp.ErrShutdown)
		p.held.Closed()()
		if err = p.Conn.Close(); errors.Is(err, transport.ErrClosed) {
			err = nil
		}
	}
	l.running.Wait()
	return err
}

var _ link = (*connLink)(nil)
