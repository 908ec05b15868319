package back

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/legacy/link"
	"github.com/mcpbridge/mcpbridge/legacy/pool"
)

const (
	// silentTime is how long a process that was asked something before may be silent
	// once it has read initialize; unseenTime is how long where the system does not
	// tell what it has read.
	silentTime       = 5 * time.Second
	silentTimeUnseen = 30 * time.Second
	// exitTime is how long a process whose connection has ended may take to exit.
	exitTime = 500 * time.Millisecond
	// restartPause is the pause before a command is started again whose start was
	// disturbed.
	restartPause = 250 * time.Millisecond
	// othersTimeout is how long sessions whose clients have just left may take to
	// become idle.
	othersTimeout = 2 * time.Second
	// othersPoll is the time between two looks at that.
	othersPoll = 100 * time.Millisecond
)

// errUnresponsive says that a process does not answer after it was asked what it is.
var errUnresponsive = errors.New("it read initialize and stayed silent, after it had been asked what it is")

// A oneProcessError says that a process ended at its start while another of the same
// command was in use.
type oneProcessError struct {
	server string
	err    error
}

func (e *oneProcessError) Error() string {
	return e.because(cause(e.err).Error())
}

// Public returns what clients are told.
func (e *oneProcessError) Public() string { return e.because(transport.Public(e.err)) }

func (e *oneProcessError) because(why string) string {
	return fmt.Sprintf("server %q could not be started once more while another client uses it: %s; it seems to allow one process at a time: set isolation: shared for it, so that its clients share one, or try again when the other client has left",
		e.server, why)
}

// Unwrap returns how the process ended.
func (e *oneProcessError) Unwrap() error { return e.err }

// A command is a server that is started as a process.
type command struct {
	server   string // its name
	launcher *transport.Launcher
	pool     *pool.Pool
	log      *slog.Logger
}

// open opens a session in a process of the server's command: in the one that was
// started to ask what it is, if there is one. A process is started anew only in the place
// of one that has ended, or takes no more messages because of what it was asked.
func (c *command) open(ctx context.Context, share mcp.Share, open opener) error {
	for {
		if err := c.endIdle(ctx, share); err != nil {
			return err
		}
		p, err := c.launcher.Dial(ctx)
		if err != nil {
			return &dialError{err}
		}
		asked := p.LastID() > 0
		err = c.openIn(ctx, p, open)
		if err == nil {
			return nil
		}
		again, err := c.handleFailure(ctx, p, share, asked, err)
		if !again {
			return err
		}
		c.log.Info("starting the command again", "error", cause(err))
	}
}

// endIdle ends the sessions of a share that nobody uses, if a process has to be started
// for it: some servers allow one at a time. Those of others stay, whatever that means for
// the start: nobody ends another's state.
func (c *command) endIdle(ctx context.Context, share mcp.Share) error {
	if c.launcher.HasKept() {
		return nil
	}
	return c.pool.EndIdle(ctx, share)
}

// openIn opens a session in a process, which it leaves alive if that fails.
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

// silenceLimit is how long a process may be silent that was asked something before.
func silenceLimit(p *transport.Process) time.Duration {
	if _, known := p.Unread(); known {
		return silentTime
	}
	return silentTimeUnseen
}

// handleFailure decides what becomes of a process in which no session could be opened, and
// whether to try again in another. asked says that somebody had asked it something
// before.
func (c *command) handleFailure(ctx context.Context, p *transport.Process, share mcp.Share, asked bool, err error) (again bool, why error) {
	if ctx.Err() != nil {
		c.endLater(p)
		return false, err
	}
	switch {
	case isRefusal(err) && (!asked || p.IsSilent()): // it was only slow to answer, maybe
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
		return backoff.Wait(ctx, restartPause) == nil, err
	case beside > 0:
		if how := transport.Exited(p.Err()); how != nil {
			err = how
		}
		return c.awaitOthers(ctx, share), &oneProcessError{c.server, err}
	}
	return false, err
}

// awaitOthers waits a moment for the other sessions of the command to end, of which it ends
// the share's own, and reports whether they have.
func (c *command) awaitOthers(ctx context.Context, share mcp.Share) bool {
	ctx, cancel := context.WithTimeout(ctx, othersTimeout)
	defer cancel()
	for c.pool.EndIdle(ctx, share) == nil {
		if c.launcher.Alive() == 0 {
			return true
		}
		if backoff.Wait(ctx, othersPoll) != nil {
			break
		}
	}
	return false
}

// endLater ends a process in the background; the pool, whose dial this is, waits for it.
func (c *command) endLater(p *transport.Process) { c.pool.Go(func() { _ = p.Close() }) }

// An otherEraError says that a server refused the handshake, as one of the other era
// does.
type otherEraError struct{ err error }

func (e *otherEraError) Error() string { return e.err.Error() }

// Unwrap returns the refusal, and that the era is in doubt.
func (e *otherEraError) Unwrap() []error { return []error{e.err, mcp.ErrOtherEra} }
