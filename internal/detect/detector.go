package detect

import (
	"cmp"
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
	"github.com/mcpbridge/mcpbridge/internal/wake"
)

// Defaults of Options.
const (
	DefaultProbeTimeout = 10 * time.Second
	DefaultHorizon      = 24 * time.Hour
)

// probePauses are the pauses after a probe without evidence.
var probePauses = backoff.Backoff{Min: time.Second, Max: 30 * time.Second}

// doubtPauses are the least pauses between two probes that doubts lead to. They grow
// with each that changed nothing: there are servers that crash, and modern ones that
// answer like legacy ones.
var doubtPauses = backoff.Backoff{Min: 10 * time.Second, Max: time.Minute}

const (
	// closeTimeout bounds how long the back of the wrong era takes to end.
	closeTimeout = 10 * time.Second
)

// A Finding is what one probe found.
type Finding struct {
	Era spec.Era // spec.Unknown: no evidence
	Why string   // for people: what the server answered
	// Public is what clients are told of Why; empty if that is all of it.
	Public string
	// Guess says that the server answered nothing of MCP, and so is of the older era if
	// it is an MCP server at all.
	Guess bool
	// Trouble says in a few words what is wrong where there is no evidence; it follows
	// the word server.
	Trouble string
	// Starting says of a Finding without evidence that the server has not read the
	// question yet, and is to be asked on.
	Starting bool
	// Description is the server's account of itself; nil if it gave none.
	Description *mcp.Description
}

// Options configure a Detector.
type Options struct {
	// Name is the server's. Required.
	Name string
	// Era is the server's where it is known; then nothing is probed.
	Era spec.Era
	// Probe asks the server once. What it opens it ends, or leaves to the Launcher.
	// Required, unless Era is known.
	Probe func(ctx context.Context) Finding
	// Open builds the back of the era that was found. Required.
	Open func(f Finding) (mcp.Back, error)
	// ClientFirst says that the server has one client, who decides what it is asked:
	// nothing is asked before that client asks, and the era of a legacy client is taken
	// for the server's, unless the server refuses to open a session.
	ClientFirst bool
	// Launcher starts the server's processes; nil unless it is a command. Detectors of
	// commands keep to the processes that serve: a verdict is looked into when one is
	// started. The Detector closes it.
	Launcher *transport.Launcher
	// Memory is what is known of the server from earlier runs; nil for nothing.
	Memory Memory
	// Changes hears that what was remembered of the server has changed. Nil means nobody.
	Changes mcp.Changes
	// Timeout bounds one probe. Zero means DefaultProbeTimeout.
	Timeout time.Duration
	// Patience bounds how long a request waits for the first verdict. Zero means
	// twice Timeout.
	Patience time.Duration
	// Horizon is how long a legacy verdict stands unchecked: nothing fails when it
	// is out of date. Zero means DefaultHorizon.
	Horizon time.Duration
	// Logger hears of verdicts; nil means nobody.
	Logger *slog.Logger
}

// A Detector is the back of a server whose era is found out by asking it.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility.
type Detector struct {
	opts   Options
	log    *slog.Logger
	recall *recall // nil if nothing is remembered
	lifetime

	doubts   chan string // capacity 1
	requests wake.Signal // somebody waits for a probe

	// mu guards the fields below.
	mu   sync.Mutex
	back mcp.Back // of the verdict; nil before there is one
	era  spec.Era
	err  error // why there is none; ErrStarting before the first probe has ended
	probeState
	waiting       int           // requests that wait for a verdict
	openingRelays int           // clients whose sessions are being linked
	changed       chan struct{} // closed when any of these become others
	onReplaced    func(error)
	closed        bool
}

// A lifetime begins once and ends with Close.
type lifetime struct {
	begin   sync.Once
	live    context.Context // ends with Close
	stop    context.CancelFunc
	closing chan struct{}  // closed by Close
	running sync.WaitGroup // run, what is asked for a client that does not wait, and the ends of backs that were wrong
}

// A probeState says what is known of probes.
type probeState struct {
	probing   bool      // a probe is under way
	probed    int       // probes that have ended
	guessed   bool      // the era is the first client's, or the server has not answered
	nextProbe time.Time // when a client may have a server asked again that failed
}

// Detect returns a Detector. Nothing is started before its Start, or the first
// request.
func New(o Options) (*Detector, error) {
	if o.Name == "" || o.Open == nil || o.Probe == nil && o.Era == spec.Unknown {
		return nil, errors.New("detect: New: name, open, and a probe or an era are required")
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultProbeTimeout)
	o.Patience = cmp.Or(o.Patience, 2*o.Timeout)
	o.Horizon = cmp.Or(o.Horizon, DefaultHorizon)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Detector{
		opts:       o,
		log:        o.Logger.With("upstream", o.Name),
		doubts:     make(chan string, 1),
		requests:   wake.NewSignal(),
		err:        mcp.ErrStarting,
		changed:    make(chan struct{}),
		onReplaced: func(error) {},
	}
	d.closing = make(chan struct{})
	d.live, d.stop = context.WithCancel(context.Background())
	if o.Memory != nil {
		recall, err := newRecall(d)
		if err != nil {
			return nil, fmt.Errorf("detect: New: server %q: %w", o.Name, err)
		}
		d.recall = recall
	}
	return d, nil
}

// Start implements [mcp.Back].
func (d *Detector) Start() {
	d.begin.Do(func() {
		if known := d.knownEra(); known.Era != spec.Unknown {
			d.settle(known)
		} else if d.opts.ClientFirst && d.opts.Launcher != nil {
			d.prestart()
		}
		if d.opts.Probe != nil {
			d.running.Go(func() { d.run(d.live) }) // ends with stop, called by Close
		}
	})
}

// knownEra returns what is known of the server before it is asked. A modern one is
// asked all the same: that costs nothing, and what it says counts.
func (d *Detector) knownEra() Finding {
	switch {
	case d.opts.Era != spec.Unknown:
		return Finding{Era: d.opts.Era, Why: "the configuration says so"}
	case d.recall != nil && d.opts.Memory.Era() == spec.Legacy:
		return Finding{Era: spec.Legacy, Why: "it did when it was last asked"}
	}
	return Finding{}
}

// prestart has the command started before the client says what it is to be asked.
func (d *Detector) prestart() {
	if err := d.opts.Launcher.Prestart(nil); err != nil {
		d.log.Debug("starting command ahead of the first request", "error", err)
	}
}

// Drain says that the process is shutting down: nothing is started any more.
func (d *Detector) Drain() {
	if d.opts.Launcher != nil {
		d.opts.Launcher.Drain()
	}
}

// Doubt says that something happened that the verdict does not explain: the
// server is asked again. It does not block.
func (d *Detector) Doubt(why string) {
	select {
	case d.doubts <- why:
	default: // it is about to be asked
	}
}

// Era returns the verdict, or spec.Unknown before there is one.
func (d *Detector) Era() spec.Era {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.era
}

// Err implements [mcp.Back].
func (d *Detector) Err() error {
	d.mu.Lock()
	back, err := d.back, d.err
	d.mu.Unlock()
	if back != nil {
		return back.Err()
	}
	return err
}

// Close implements [mcp.Back].
func (d *Detector) Close(ctx context.Context) error {
	d.begin.Do(func() {}) // and no start any more
	d.Drain()
	d.stop()
	d.mu.Lock()
	back := d.back
	if !d.closed {
		close(d.closing)
		d.closed = true
	}
	d.mu.Unlock()
	var err error
	if back != nil {
		err = back.Close(ctx)
	}
	done := make(chan struct{})
	go func() { // ends when what was started has, each of which is bounded
		defer close(done)
		d.running.Wait()
		if d.opts.Launcher != nil {
			d.opts.Launcher.Close()
		}
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
}
