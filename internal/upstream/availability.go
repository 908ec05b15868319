package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// reachPauses are the pauses between attempts to reach a server.
var reachPauses = backoff.Backoff{Min: time.Second, Max: 30 * time.Second}

// A State says whether a server is there.
type State uint8

// The states of a server.
const (
	Starting State = iota // nothing is known yet
	Up                    // the last attempt to reach it succeeded
	Down                  // it failed
)

// An Availability knows whether a server is there, logs each change, and has a server
// tried again that is not. It is safe for concurrent use.
type Availability struct {
	log    *slog.Logger
	fell   wake.Signal // the server went down
	wanted wake.Signal // somebody asks for a server that is down

	running sync.WaitGroup // what Start has started

	// mu guards the fields below.
	mu     sync.Mutex
	state  State
	err    error              // of the last attempt
	stop   context.CancelFunc // nil before Start
	closed bool
}

// NewAvailability returns the Availability of a server of which nothing is known.
func NewAvailability(log *slog.Logger) *Availability {
	return &Availability{log: log, fell: wake.NewSignal(), wanted: wake.NewSignal()}
}

// Report takes the outcome of an attempt to reach the server. One that refuses a caller is
// there.
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
	a.fell.Send() // unless nobody has heard of the last time yet
}

// Note takes the outcome of a request, under ctx. Only that it could not be sent says
// that the server is down, or nothing at all if the session has ended.
func (a *Availability) Note(ctx context.Context, err error) {
	f := AsFailure(err)
	switch {
	case err == nil:
		a.Report(nil)
	case f != nil && f.Fate == NotSent && !f.Lost && ctx.Err() == nil:
		a.Report(f)
	}
}

// become reports whether the state is another than before.
func (a *Availability) become(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.state
	a.state, a.err = Up, err
	if err != nil {
		a.state = Down
	}
	return a.state != before
}

// trouble says in a few words why a server can't be used. It follows the word server.
func trouble(err error) string {
	var status *StatusError
	var page *transport.KindError
	var credential *CredentialError
	isStatus := errors.As(err, &status)
	switch {
	case errors.As(err, &credential):
		return "wants credentials"
	case transport.NotStarted(err):
		return "can't start"
	case isStatus && status.AboutCredentials():
		return "wants credentials"
	case isStatus && status.Code >= 400 && status.Code <= 499 && status.Code != http.StatusTooManyRequests, errors.As(err, &page):
		return "is not an MCP server"
	}
	return "is down"
}

// State returns whether the server is there, and why it is not.
func (a *Availability) State() (State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, a.err
}

// Err returns nil if the last attempt to reach the server succeeded, else why it failed:
// [mcp.ErrStarting] before the first has ended.
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

// Want has a server that is down tried soon. It reports false if nobody does so, since
// Start was not called.
func (a *Availability) Want() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		a.wanted.Send()
	}
	return a.stop != nil
}

// Supervise tries to reach the server, now and whenever it is down, until ctx ends. A
// server that is away is so reported before anybody asks for it.
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

// reach tries again and again until it succeeds: ever more seldom, unless the server is
// wanted.
func (a *Availability) reach(ctx context.Context, try func(context.Context) error) {
	for pause := reachPauses.Min; ctx.Err() == nil; pause = reachPauses.Next(pause) {
		if err := try(ctx); err == nil || aboutCaller(err) || backoff.Wait(ctx, reachPauses.Min) != nil {
			return
		}
		t := time.NewTimer(backoff.Jitter(pause) - reachPauses.Min)
		select {
		case <-t.C:
		case <-a.wanted:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// Close ends what Start has started, and waits for it.
func (a *Availability) Close() {
	a.mu.Lock()
	a.closed = true
	if a.stop != nil {
		a.stop()
	}
	a.mu.Unlock()
	a.running.Wait()
}
