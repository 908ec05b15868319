package back

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// reachPauses are the pauses between attempts to reach a server.
var reachPauses = backoff.Backoff{Min: time.Second, Max: 30 * time.Second}

// upState says whether a server is there.
type upState uint8

const (
	starting upState = iota // nothing is known yet
	up                      // it was heard of since it was last missed
	down                    // the last attempt to reach it failed
)

// upHealth is the state of a server, reported once for each change.
type upHealth struct {
	log  *slog.Logger
	fell chan struct{} // capacity 1: the server went down
	asks chan struct{} // capacity 1: somebody asks for a server that is down

	// mu guards the fields below.
	mu    sync.Mutex
	state upState
	err   error
}

func newUpHealth(log *slog.Logger) *upHealth {
	return &upHealth{log: log, fell: make(chan struct{}, 1), asks: make(chan struct{}, 1)}
}

// note takes the outcome of a request: only that the server could not be reached
// says that it is down.
func (h *upHealth) note(ctx context.Context, err error) {
	f := upstream.AsFailure(err)
	switch {
	case err == nil:
		h.report(nil)
	case f != nil && f.Fate == upstream.NotSent && ctx.Err() == nil:
		h.report(f)
	}
}

// report takes the outcome of an attempt to reach the server.
func (h *upHealth) report(err error) {
	state := up
	if err != nil {
		state = down
	}
	switch {
	case !h.become(state, err):
		return
	case err == nil:
		h.log.Info("server is up")
		return
	}
	what := "is down"
	if transport.NotStarted(err) {
		what = "can't start"
	}
	h.log.Warn("server "+what+", trying again", "error", transport.Cause(err))
	select {
	case h.fell <- struct{}{}:
	default: // nobody has heard of the last time yet
	}
}

// miss says that somebody asks for a server that is down: it is tried soon.
func (h *upHealth) miss() {
	select {
	case h.asks <- struct{}{}:
	default: // so did another
	}
}

// become reports whether state is another than before.
func (h *upHealth) become(state upState, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	changed := state != h.state
	h.state = state
	return changed
}

func (h *upHealth) read() (upState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state, h.err
}

// Err returns nil if the last attempt to reach the server succeeded, else why it
// failed: [mcp.ErrStarting] before the first has ended.
func (b *Back) Err() error {
	switch state, err := b.health.read(); state {
	case starting:
		return mcp.ErrStarting
	case down:
		return transport.Cause(err)
	}
	return nil
}

// Start tries to reach the server in the background, now and whenever it is down,
// until Close. A server that is away so is reported before anybody asks for it.
// Start is called at most once.
func (b *Back) Start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.running.Go(func() { b.supervise(ctx) }) // ends with stop, called by Close
}

// supervised reports whether somebody tries to reach the server by itself.
func (b *Back) supervised() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stop != nil
}

func (b *Back) supervise(ctx context.Context) {
	for {
		b.reach(ctx)
		for isUp := true; isUp; {
			select {
			case <-b.health.fell: // it may be up again by now
				state, _ := b.health.read()
				isUp = state == up
			case <-ctx.Done():
				return
			}
		}
	}
}

// reach asks the server what it is, again and again until it answers: ever more
// seldom, unless somebody wants it.
func (b *Back) reach(ctx context.Context) {
	p := b.probeProfile()
	for rest := reachPauses.Min; ctx.Err() == nil; rest = reachPauses.Next(rest) {
		if b.discover(ctx, p) == nil || backoff.Wait(ctx, reachPauses.Min) != nil {
			return
		}
		t := time.NewTimer(backoff.Jitter(rest) - reachPauses.Min)
		select {
		case <-t.C:
		case <-b.health.asks:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// probeProfile is a profile that no client has.
func (b *Back) probeProfile() mcp.Profile {
	return mcp.Profile{Scope: b.opts.Name + "/probe", Capabilities: []byte("{}")}
}
