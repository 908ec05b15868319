package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// reachPauses are the pauses between attempts to reach a server.
var reachPauses = wake.Backoff{Min: time.Second, Max: 30 * time.Second}

// A State says whether a server can be reached.
type State uint8

// The states of a server.
const (
	Starting State = iota // nothing is known yet
	Up                    // the last attempt to reach it succeeded
	Down                  // it failed
)

// An Availability tracks whether a server can be reached, logs each change, and starts
// further attempts while it can't. It is safe for concurrent use.
type Availability struct {
	log    *slog.Logger
	fell   wake.Signal // the server went down
	wanted wake.Signal // a request needs a server that is down

	running sync.WaitGroup // what Start has started

	// mu guards the fields below.
	mu     sync.Mutex
	state  State
	err    error              // of the last attempt
	change change             // of state
	stop   context.CancelFunc // nil before Start
	closed bool
}

// NewAvailability returns an Availability in state Starting.
func NewAvailability(log *slog.Logger) *Availability {
	return &Availability{log: log, fell: wake.NewSignal(), wanted: wake.NewSignal()}
}

// Report records the outcome of an attempt to reach the server. A server that refuses one
// caller is up.
func (a *Availability) Report(err error) {
	if aboutCaller(err) {
		err = nil
	}
	switch {
	case !a.become(err):
		return
	case err == nil:
		a.log.Info("server is up")
		return
	}
	a.log.Warn("server "+trouble(err)+", trying again", "error", transport.Cause(err))
	a.fell.Send() // unless the last one has not been received yet
}

// Note records the outcome of a request, under ctx. The server is down only if the request
// could not be sent; if the session has ended, or the back was closed, nothing changes.
func (a *Availability) Note(ctx context.Context, err error) {
	f := AsFailure(err)
	switch {
	case err == nil:
		a.Report(nil)
	case f != nil && f.Fate == NotSent && !f.Lost && ctx.Err() == nil && !errors.Is(f, mcp.ErrShutdown):
		a.Report(f)
	}
}

// become reports whether the state has changed.
func (a *Availability) become(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.state
	a.state, a.err = Up, err
	if err != nil {
		a.state = Down
		a.change.err, a.change.failed = err, time.Now()
	}
	if a.state != before {
		a.change.since = time.Now()
	}
	return a.state != before
}

// A change says when the state of a server became another, and what went wrong last.
type change struct {
	since  time.Time
	err    error
	failed time.Time
}

// Tell implements [status.Teller].
func (a *Availability) Tell(u *status.Upstream) {
	a.mu.Lock()
	c := a.change
	a.mu.Unlock()
	u.Since = c.since
	if c.err != nil {
		u.LastError, u.LastErrorTime = transport.Cause(c.err).Error(), c.failed
	}
}

// trouble says in a few words why a server can't be used. They follow the word server.
func trouble(err error) string {
	var status *StatusError
	isStatus := errors.As(err, &status)
	switch {
	case errors.As(err, new(*CredentialError)):
		return "wants credentials"
	case transport.NotStarted(err):
		return "can't start"
	case isStatus && status.AboutCredentials():
		return "wants credentials"
	case isStatus && status.Code >= 400 && status.Code <= 499 && status.Code != http.StatusTooManyRequests, errors.As(err, new(*transport.KindError)):
		return "is not an MCP server"
	}
	return "is down"
}

// State returns whether the server can be reached, and if not, why.
func (a *Availability) State() (State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, a.err
}

// Err returns nil if the last attempt to reach the server succeeded, or else its error:
// [mcp.ErrStarting] before the first attempt has ended.
func (a *Availability) Err() error {
	switch state, err := a.State(); state {
	case Starting:
		return mcp.ErrStarting
	case Down:
		return transport.Cause(err)
	}
	return nil
}

// Start runs f in the background until Close, with a context that Close ends. It is called
// at most once, and does nothing after Close.
func (a *Availability) Start(f func(ctx context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.running.Go(func() { f(ctx) })
}

// Want requests an attempt soon if the server is down. It returns false if there will be
// none, because Start was not called.
func (a *Availability) Want() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		a.wanted.Send()
	}
	return a.stop != nil
}

// Supervise tries to reach the server, at once and whenever it is down, until ctx ends. So
// its state is known before a request needs it.
func (a *Availability) Supervise(ctx context.Context, try func(context.Context) error) {
	for {
		a.reach(ctx, try)
		for isUp := true; isUp; {
			select {
			case <-a.fell: // it may be up again already
				state, _ := a.State()
				isUp = state == Up
			case <-ctx.Done():
				return
			}
		}
	}
}

// reach tries until it succeeds, with growing pauses unless a request needs the server.
func (a *Availability) reach(ctx context.Context, try func(context.Context) error) {
	for pause := reachPauses.Min; ctx.Err() == nil; pause = reachPauses.Next(pause) {
		if err := try(ctx); err == nil || aboutCaller(err) || wake.Wait(ctx, reachPauses.Min) != nil {
			return
		}
		t := time.NewTimer(wake.Jitter(pause) - reachPauses.Min)
		select {
		case <-t.C:
		case <-a.wanted:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// Close stops what Start has started, and waits for its end.
func (a *Availability) Close() {
	a.mu.Lock()
	a.closed = true
	if a.stop != nil {
		a.stop()
	}
	a.mu.Unlock()
	a.running.Wait()
}
