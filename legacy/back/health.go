package back

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
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A State says whether a server is there.
type State string

// The states of a server.
const (
	StateStarting State = "starting" // nothing is known yet
	StateUp       State = "up"       // the last attempt to reach it succeeded
	StateDown     State = "down"     // it failed
)

// reachPauses are the pauses between attempts to reach a server.
var reachPauses = backoff.Backoff{Min: time.Second, Max: 30 * time.Second}

// health is the state of a server, reported once for each change.
type health struct {
	log  *slog.Logger
	fell chan struct{} // capacity 1: the server went down

	// mu guards the fields below.
	mu    sync.Mutex
	state State
	since time.Time
	err   error
}

func newHealth(log *slog.Logger) *health {
	return &health{log: log, fell: make(chan struct{}, 1), state: StateStarting, since: time.Now()}
}

// report takes the outcome of an attempt to reach the server.
func (h *health) report(err error) {
	state := StateUp
	if err != nil {
		state = StateDown
	}
	switch {
	case !h.become(state, err):
		return
	case err == nil:
		h.log.Info("server is up")
		return
	}
	h.log.Warn("server "+trouble(err)+", trying again", "error", err)
	select {
	case h.fell <- struct{}{}:
	default: // nobody has heard of the last time yet
	}
}

// trouble says in a few words why a server can't be used; it follows the word server.
func trouble(err error) string {
	var status *upstream.StatusError
	var page *transport.KindError
	isStatus := errors.As(err, &status)
	switch {
	case transport.NotStarted(err):
		return "can't start"
	case isStatus && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden):
		return "wants credentials"
	case isStatus && status.Code >= 400 && status.Code <= 499 && status.Code != http.StatusTooManyRequests, errors.As(err, &page):
		return "is not an MCP server"
	}
	return "is down"
}

// become reports whether state is another than before.
func (h *health) become(state State, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	if state == h.state {
		return false
	}
	h.state, h.since = state, time.Now()
	return true
}

func (h *health) read() (State, time.Time, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state, h.since, h.err
}

// Err returns nil if the last attempt to reach the server succeeded, else why it
// failed: [mcp.ErrStarting] before the first has ended.
func (b *Back) Err() error {
	switch state, _, err := b.health.read(); state {
	case StateStarting:
		return mcp.ErrStarting
	case StateDown:
		return cause(err)
	}
	return nil
}

// Start tries to reach the server in the background, now and whenever it is
// down, until Close. A server that is away so is reported before anybody asks
// for it. A command is started, unless it runs, for the first session that needs a
// process, and not greeted before. Start is called at most once.
func (b *Back) Start() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	if b.opts.Launcher != nil {
		b.running.Go(b.prestart)
		return
	}
	b.running.Go(func() { b.supervise(ctx) }) // ends with stop, called by Close
}

// prestart has the command started.
func (b *Back) prestart() {
	err := b.opts.Launcher.Prestart(func(err error) { b.health.report(err) })
	if err != nil {
		err = &unconnected{err}
	}
	b.health.report(err)
}

func (b *Back) supervise(ctx context.Context) {
	for {
		b.reach(ctx)
		for up := true; up; {
			select {
			case <-b.health.fell: // it may be up again by now
				state, _, _ := b.health.read()
				up = state == StateUp
			case <-ctx.Done():
				return
			}
		}
	}
}

// reach opens a session, and ends it, again and again until that succeeds.
func (b *Back) reach(ctx context.Context) {
	p := b.probeProfile()
	for pause := reachPauses.Min; ctx.Err() == nil; pause = reachPauses.Next(pause) {
		s, release, err := b.session(ctx, p, true)
		if err == nil {
			b.remember(p.Scope, s)
			release()
			return
		}
		if backoff.Wait(ctx, backoff.Jitter(pause)) != nil {
			return
		}
	}
}

// probeProfile is a profile that no client has.
func (b *Back) probeProfile() mcp.Profile {
	return mcp.Profile{Scope: b.opts.Name + "/probe", Single: true}
}
