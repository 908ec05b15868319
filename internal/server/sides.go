package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// lookPauses are the pauses before a server is asked again that opened no session. They grow,
// since a command has another process for each attempt.
var lookPauses = wake.Backoff{Min: 10 * time.Second, Max: detect.DefaultHorizon}

// sides is the back of a server that speaks the modern era, and serves each client in the
// client's own if it speaks both. Sessions of legacy clients are relayed to its legacy side,
// which has connections and processes of its own. All else goes to the modern side: modern
// clients, and legacy ones without a relay, which come while there is no legacy side.
type sides struct {
	mcp.Back // the modern side
	legacy   mcp.Back
	greet    func(ctx context.Context) (mcp.Verdict, error) // opens and closes a legacy session
	name     string
	log      *slog.Logger
	stop     context.CancelFunc // ends run
	running  sync.WaitGroup     // run
	doubts   wake.Signal        // the legacy side behaves like a modern one
	decided  chan struct{}      // closed once the legacy side has been asked for

	// mu guards the fields below.
	mu     sync.Mutex
	why    string // there is no legacy side; empty if there is one
	closed bool
}

// undecided is why there is no legacy side before it has been asked for.
const undecided = "it was not asked yet"

// byClient reports whether each client is served in its own era. A command with one client is
// of that client's era anyway.
func (s *Server) byClient() bool {
	return s.opts.Settings.ByClient() && !s.opts.followsClient()
}

// openSides returns the back of a server that speaks the modern era, by modern, and maybe the
// legacy one as well. What is stored of a command is about its modern side.
func (s *Server) openSides(modern mcp.Back, changes mcp.Changes) (mcp.Back, error) {
	o := s.opts
	o.Settings.Era, o.StateDir, o.Logger = spec.Legacy.String(), "", s.opts.Logger.With("side", spec.Legacy.String())
	o.Records = nil
	o.Losses = nil // its sessions are one client's each, and know when they end; those of the modern side stay
	other := New(o)
	b := &sides{
		Back: modern, name: s.opts.Name, log: s.opts.Logger.With("upstream", s.opts.Name), stop: func() {},
		doubts: wake.NewSignal(), decided: make(chan struct{}), why: undecided,
		greet: func(ctx context.Context) (mcp.Verdict, error) {
			return other.Initialize(ctx, o.Settings.Timeouts.Connect, mcp.Probing{})
		},
	}
	var err error
	b.legacy, err = other.open(changes, func(string) { b.doubts.Send() })
	if err != nil {
		other.Close()
		return nil, errors.Join(err, modern.Close(context.Background()))
	}
	return b, nil
}

// Start implements [mcp.Back].
func (b *sides) Start() {
	b.Back.Start()
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.running.Go(func() { b.run(ctx) }) // ends with stop, called by Close
}

// run finds out whether there is a legacy side, and again when there is doubt or, if there was
// none, after a pause.
func (b *sides) run(ctx context.Context) {
	var started sync.Once
	defer b.settle(undecided) // nobody waits any longer
	for pause := lookPauses.Min; ; {
		v, err := b.greet(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := wake.Jitter(pause)
		switch {
		case err == nil && v.Era == spec.Legacy:
			started.Do(b.legacy.Start)
			b.settle("")
			pause = lookPauses.Min
		case v.Era == spec.Modern: // it has said that it is that alone
			b.settle(v.Reason)
			wait = lookPauses.Max
		default:
			b.settle(cmp.Or(v.Reason, errorText(err)))
			pause = lookPauses.Next(pause)
		}
		if wake.Wait(ctx, wait) != nil || !b.awaitDoubt(ctx) {
			return
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return "it opened no session"
	}
	return err.Error()
}

// awaitDoubt waits until the legacy side has to be asked for, and reports false if ctx ends.
func (b *sides) awaitDoubt(ctx context.Context) bool {
	if b.without() != "" {
		return true
	}
	select {
	case <-b.doubts:
		return true
	case <-ctx.Done():
		return false
	}
}

// settle sets why there is no legacy side; empty if there is one.
func (b *sides) settle(why string) {
	b.mu.Lock()
	was := b.why
	if why != undecided {
		b.why = why
	}
	select {
	case <-b.decided:
	default:
		close(b.decided)
	}
	b.mu.Unlock()
	switch {
	case why == "" && was != "":
		b.log.Info("server speaks both eras, and serves each client in its own")
	case why != "" && why != undecided && (was == "" || was == undecided):
		b.log.Warn("server has no legacy side, so its modern side serves all clients", "reason", why)
	}
}

// without returns why there is no legacy side; empty if there is one.
func (b *sides) without() string {
	why, _ := b.current()
	return why
}

// current returns why there is no legacy side, empty if there is one, and whether Close was called.
func (b *sides) current() (why string, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why, b.closed
}

// OpenRelay implements [mcp.Relayer].
func (b *sides) OpenRelay(ctx context.Context, req *mcp.Request, m *wire.Message, c mcp.RelayClient) (mcp.Relay, []byte, error) {
	select {
	case <-b.decided: // within timeouts.connect
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("server %q is still %w: it is being asked for a session; try again later", b.name, mcp.ErrStarting)
	}
	why, closed := b.current()
	if closed { // maybe before anybody knew which side serves whom
		return nil, nil, mcp.ErrShutdown
	}
	relayer, ok := b.legacy.(mcp.Relayer)
	if !ok || why != "" {
		return nil, nil, nil // the modern side then serves the client
	}
	r, answer, err := relayer.OpenRelay(ctx, req, m, c)
	if why = refusedAsModern(answer, err); why != "" {
		b.settle(why)
		b.doubts.Send()
		return nil, nil, nil
	}
	return r, answer, err
}

// refusedAsModern returns why a session was refused as only a modern server refuses it; empty if
// it was not.
func refusedAsModern(answer []byte, err error) string {
	if errors.Is(err, mcp.ErrOtherEra) {
		return err.Error()
	}
	if m, err := wire.Parse(answer, wire.Options{}); err == nil && m.Error != nil && spec.ModernError(m.Error.Code) {
		return "it refused " + spec.MethodInitialize + ": " + m.Error.Error()
	}
	return ""
}

// Err implements [mcp.Back]. It is that of the modern side, but the server is starting until it
// is known which side serves whom.
func (b *sides) Err() error {
	if err := b.Back.Err(); err != nil {
		return err
	}
	select {
	case <-b.decided:
		return nil
	default:
		return mcp.ErrStarting
	}
}

// Drain prevents further processes of the legacy side.
func (b *sides) Drain() {
	if d, ok := b.legacy.(interface{ Drain() }); ok {
		d.Drain()
	}
}

// Close implements [mcp.Back]. Both sides end at the same time.
func (b *sides) Close(ctx context.Context) error {
	b.Drain()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	ended := make(chan error, 1)
	go func() { ended <- b.legacy.Close(ctx) }() // ends by ctx
	err := b.Back.Close(ctx)
	b.running.Wait()
	return errors.Join(err, <-ended)
}

// Tell implements [status.Teller].
func (b *sides) Tell(u *status.Upstream) {
	var other status.Upstream
	if t, ok := b.Back.(status.Teller); ok {
		t.Tell(u)
	}
	if t, ok := b.legacy.(status.Teller); ok {
		t.Tell(&other)
	}
	u.Sessions += other.Sessions
	u.Processes, u.ProcessesLeft = append(u.Processes, other.Processes...), u.ProcessesLeft+other.ProcessesLeft
	if why := b.without(); why != "" {
		u.EraReason += "; its modern side serves all clients, since it has no legacy one: " + why
		return
	}
	u.EraReason += "; it speaks both eras, and serves each client in its own"
}

// alone is the back of a server that would serve each client in its own era, if it spoke both.
type alone struct{ *legacyback.Back }

// onlyLegacy returns the back of a server that was found to be legacy.
func (s *Server) onlyLegacy(back *legacyback.Back, why string) mcp.Back {
	s.opts.Logger.Warn("server has no modern side, so its legacy side serves all clients", "upstream", s.opts.Name, "reason", why)
	return alone{back}
}

// Tell implements [status.Teller].
func (b alone) Tell(u *status.Upstream) {
	b.Back.Tell(u)
	u.EraReason += "; its legacy side serves all clients, since it has no modern one"
}
