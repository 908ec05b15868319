package back

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
)

const (
	// silentTime is how long a process that was probed before may be silent after it has
	// read initialize. silentTimeUnseen is the same if the system can't tell what the
	// process has read.
	silentTime       = 5 * time.Second
	silentTimeUnseen = 30 * time.Second
	// exitTime is how long a process may take to exit after its connection has ended.
	exitTime = 500 * time.Millisecond
	// restartPause is the pause before a command is started again if another process of it
	// ended during its start.
	restartPause = 250 * time.Millisecond
	// othersTimeout is how long the sessions of a command that locks may take until their
	// clients have left them.
	othersTimeout = 2 * time.Second
	// othersPoll is how often that is checked.
	othersPoll = 100 * time.Millisecond
)

// errUnresponsive reports that a process does not respond after it was probed.
var errUnresponsive = errors.New("it read initialize and did not respond, after it had been probed")

// A oneProcessError reports that a process exited at its start while another one of the
// same command was running.
type oneProcessError struct {
	server string
	err    error
}

func (e *oneProcessError) Error() string {
	return e.because(transport.Cause(e.err).Error())
}

// Public returns the text for clients.
func (e *oneProcessError) Public() string { return e.because(transport.Public(e.err)) }

func (e *oneProcessError) because(why string) string {
	return fmt.Sprintf("server %q could not be started a second time while another client uses it: %s; it seems to allow only one process at a time: set isolation: shared for it, so that its clients share one, or try again after the other client has left",
		e.server, why)
}

// Unwrap returns how the process exited.
func (e *oneProcessError) Unwrap() error { return e.err }

// A command opens sessions with a server that is started as a process.
type command struct {
	server   string // the server's name
	launcher *transport.Launcher
	pool     *pool.Pool
	log      *slog.Logger
}

// open opens a session in a process of the command: in the one that was started for the
// probe, if there is one. It starts another process only if that one has exited, or reads
// no more messages because of the probe.
func (c *command) open(ctx context.Context, to pool.Newcomer, open opener) error {
	waited := c.launcher.Locks()
	if waited {
		c.awaitOthers(ctx, to) // or it starts all the same: to refuse is up to the server
	}
	for {
		if err := c.pool.EndLeft(ctx, to, c.launcher.Locks()); err != nil {
			return err
		}
		p, err := c.launcher.DialBeside(ctx)
		if err != nil {
			return &dialError{err}
		}
		asked := p.LastID() > 0
		err = c.openIn(ctx, p, open)
		if err == nil {
			if p.Beside() > 0 {
				c.launcher.SetLocks(false)
			}
			return nil
		}
		again, err := c.handleFailure(ctx, p, asked, err)
		var alone *oneProcessError
		if errors.As(err, &alone) && !waited {
			waited, again = true, c.awaitOthers(ctx, to)
		}
		if !again {
			return err
		}
		c.log.Info("starting the command again", "error", transport.Cause(err))
	}
}

// openIn opens a session in a process. If that fails, the process keeps running.
func (c *command) openIn(ctx context.Context, p *transport.Process, open opener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if p.LastID() > 0 {
		var watching sync.WaitGroup
		defer watching.Wait()
		defer cancel(nil)
		watching.Go(func() { // ends with ctx
			if p.AwaitSilence(ctx, silenceLimit(p)) {
				cancel(errUnresponsive)
			}
		})
	}
	conn := p.Borrow()
	var tried *link.Link
	err := open(ctx, func(ctx context.Context, l *link.Link) error {
		l.Calls.SetLastID(p.LastID())
		tried = l
		l.OverConn(ctx, conn)
		return nil
	})
	if err != nil {
		if tried != nil {
			p.SetLastID(tried.Calls.LastID())
		}
		return err
	}
	conn.Adopt()
	p.SetQuiet(false)
	return nil
}

// silenceLimit returns how long a process that was probed before may be silent.
func silenceLimit(p *transport.Process) time.Duration {
	if _, known := p.Unread(); known {
		return silentTime
	}
	return silentTimeUnseen
}

// handleFailure decides what happens to a process in which no session could be opened, and
// whether to try again in another one. asked says that the process was probed before.
func (c *command) handleFailure(ctx context.Context, p *transport.Process, asked bool, err error) (again bool, why error) {
	if ctx.Err() != nil {
		c.endLater(p)
		return false, err
	}
	proof := provesModern(err)
	c.launcher.SetProof(proof)
	switch {
	case proof != "", isRefusal(err) && (!asked || p.IsSilent()): // it may only have been slow
		p.SetRefused(true)
		c.launcher.Keep(p)
		return false, &otherEraError{err}
	case isRefusal(err), errors.Is(err, errUnresponsive):
		c.launcher.SetFirst(spec.MethodInitialize)
		_ = p.Close()
		return true, err
	case !p.EndsWithin(exitTime):
		c.endLater(p)
		return false, err
	}
	read := p.HasRead()
	disturbed, beside := p.Disturbed(), p.Beside()
	_ = p.Close()
	switch {
	case asked && read:
		c.launcher.SetFirst(spec.MethodInitialize)
		return true, err
	case disturbed:
		c.launcher.SetLocks(true)
		return wake.Wait(ctx, restartPause) == nil, err
	case beside > 0:
		c.launcher.SetLocks(true)
		if how := transport.Exited(p.Err()); how != nil {
			err = how
		}
		return false, &oneProcessError{c.server, err}
	}
	return false, err
}

// awaitOthers waits briefly until the other sessions of a command that locks have been left,
// and for their end. It reports whether they have ended.
func (c *command) awaitOthers(ctx context.Context, to pool.Newcomer) bool {
	begun := time.Now()
	for c.pool.EndLeft(ctx, to, true) == nil {
		if c.launcher.Alive() == 0 {
			return true
		}
		if time.Since(begun) >= othersTimeout || wake.Wait(ctx, othersPoll) != nil {
			break
		}
	}
	return false
}

// endLater ends a process in the background; the pool waits for it.
func (c *command) endLater(p *transport.Process) { c.pool.Go(func() { _ = p.Close() }) }

// An otherEraError reports that a server refused the handshake like one of the other era.
type otherEraError struct{ err error }

func (e *otherEraError) Error() string { return e.err.Error() }

// Unwrap returns the refusal and [mcp.ErrOtherEra].
func (e *otherEraError) Unwrap() []error { return []error{e.err, mcp.ErrOtherEra} }
