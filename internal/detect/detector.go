package detect

import (
	"cmp"
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
)

// Defaults of Options.
const (
	DefaultProbeTimeout = 10 * time.Second
	DefaultHorizon      = 24 * time.Hour
)

// probePauses are the pauses after probes without evidence.
var probePauses = wake.Backoff{Min: time.Second, Max: 30 * time.Second}

// clientPause is the minimum pause between probes of a server that is down, if its clients
// send requests: all of them together ask it no more often.
const clientPause = 250 * time.Millisecond

// doubtPauses are the minimum pauses between probes because of doubts. They grow with each
// probe that changed nothing: some servers crash, and some modern ones respond like legacy
// ones.
var doubtPauses = wake.Backoff{Min: 10 * time.Second, Max: time.Minute}

const (
	// closeTimeout bounds the end of a back that was replaced.
	closeTimeout = 10 * time.Second
)

// A Finding is the outcome of one probe.
type Finding struct {
	Era spec.Era // spec.Unknown: no evidence
	Why string   // for people: the evidence
	// Public is Why for clients; empty if that is the same.
	Public string
	// Guess says that the server gave no response of MCP, so that it is legacy if it is an
	// MCP server at all.
	Guess bool
	// assumed says that it is the era of the first client, which replaces no verdict.
	assumed bool
	// Unsure says that the server is legacy by what it did, but has not answered what would
	// show that it is modern, too. It is asked again soon. A command is never unsure.
	Unsure bool
	// Trouble says in a few words, after the word server, what is wrong if there is no
	// evidence.
	Trouble string
	// Starting says, if there is no evidence, that the server has not read the request
	// yet, and the probe should be repeated.
	Starting bool
	// Description is the server's description; nil if there is none.
	Description *mcp.Description
}

// Options configure a Detector.
type Options struct {
	// Name is the server's name. Required.
	Name string
	// Era is the server's era if it is configured. Then there are no probes.
	Era spec.Era
	// Probe probes the server once. It closes what it opens, or leaves it to the Launcher.
	// Required, unless Era is set.
	Probe func(ctx context.Context) Finding
	// Open returns the back of an era. Required.
	Open func(f Finding) (mcp.Back, error)
	// ClientFirst says that the server has only one client, whose first request is the
	// probe: nothing is sent before it. The era of a legacy client is assumed to be the
	// server's, unless the server refuses to open a session.
	ClientFirst bool
	// Launcher starts the server's processes; nil unless it is a command. A command is
	// probed in processes that also serve: a verdict is checked when the next one is
	// started. The Detector closes the Launcher.
	Launcher *transport.Launcher
	// OnDemand has Start start nothing: the first request does. What Memory has of the era holds
	// until then; see Learn.
	OnDemand bool
	// Memory has descriptions of the server from earlier runs, or other replicas; nil for none.
	Memory Memory
	// Changes gets a change if a stored description is out of date. It may be nil.
	Changes mcp.Changes
	// Timeout bounds one probe. Zero means DefaultProbeTimeout.
	Timeout time.Duration
	// Patience bounds how long a request waits for the first verdict. Zero means twice
	// Timeout.
	Patience time.Duration
	// Horizon is how long a legacy verdict lasts before it is checked, because nothing
	// fails if it is out of date. Zero means DefaultHorizon.
	Horizon time.Duration
	// Logger logs verdicts; nil discards.
	Logger *slog.Logger
}

// A Detector is the back of a server whose era is detected by probes. It passes requests
// to the back of that era.
//
// Spec: 2026-07-28, basic/versioning, Backward Compatibility.
type Detector struct {
	opts   Options
	log    *slog.Logger
	recall *recall // nil if there are no stored descriptions
	lifetime

	sleep
	doubts   chan string // capacity 1
	requests wake.Signal // a request waits for a probe

	state
}

// A lifetime begins once and ends with Close.
type lifetime struct {
	begin   sync.Once
	live    context.Context // ends with Close
	stop    context.CancelFunc
	closing chan struct{}  // closed by Close
	running sync.WaitGroup // run, probes for clients that don't wait, and the ends of replaced backs
}

// New returns a Detector. It starts nothing before Start or the first request.
func New(o Options) (*Detector, error) {
	if o.Name == "" || o.Open == nil || o.Probe == nil && o.Era == spec.Unknown {
		return nil, errors.New("detect: New: Name, Open, and Probe or Era are required")
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultProbeTimeout)
	o.Patience = cmp.Or(o.Patience, 2*o.Timeout)
	o.Horizon = cmp.Or(o.Horizon, DefaultHorizon)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	d := &Detector{
		opts:     o,
		log:      o.Logger.With("upstream", o.Name),
		doubts:   make(chan string, 1),
		requests: wake.NewSignal(),
		state:    newState(),
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
	if d.opts.OnDemand {
		d.Learn()
		return
	}
	d.wake()
}

// wake begins all that a Detector does without being asked.
func (d *Detector) wake() {
	d.begin.Do(func() {
		if learned := d.awaken(); learned != nil {
			learned.Start()
		} else if known := d.knownEra(); known.Era != spec.Unknown {
			d.settle(known)
		} else if d.opts.ClientFirst && d.opts.Launcher != nil {
			d.prestart()
		}
		if d.opts.Probe != nil {
			d.running.Go(func() { d.run(d.live) }) // ends with stop, called by Close
		}
	})
}

// knownEra returns the era that is known without a probe. A modern server is probed
// anyway, which is cheap and gives its current description.
func (d *Detector) knownEra() Finding {
	switch {
	case d.opts.Era != spec.Unknown:
		return Finding{Era: d.opts.Era, Why: "the configuration says so"}
	case d.recall != nil && d.opts.Memory.Era() == spec.Legacy:
		return Finding{Era: spec.Legacy, Why: "it did when it was last asked"}
	}
	return Finding{}
}

// prestart starts the command before the client's first request.
func (d *Detector) prestart() {
	if err := d.opts.Launcher.Prestart(nil); err != nil {
		d.log.Debug("starting command ahead of the first request", "error", err)
	}
}

// Drain prevents further processes, because mcpbridge is shutting down.
func (d *Detector) Drain() {
	if d.opts.Launcher != nil {
		d.opts.Launcher.Drain()
	}
	if back, ok := d.current().(interface{ Drain() }); ok {
		back.Drain()
	}
}

// Doubt reports something that contradicts the verdict, so that the server is probed
// again. It does not block.
func (d *Detector) Doubt(why string) {
	select {
	case d.doubts <- why:
	default: // a probe follows anyway
	}
}

// Close implements [mcp.Back].
func (d *Detector) Close(ctx context.Context) error {
	d.begin.Do(func() {}) // nothing begins any more
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
	go func() { // ends with the goroutines and processes, which have time limits
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
