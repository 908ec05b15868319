package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Defaults of DetectOptions.
const (
	DefaultProbeTimeout = 10 * time.Second
	DefaultHorizon      = 24 * time.Hour
)

const (
	// describePatience is how long a client that asks what a server is waits for
	// the verdict: some give up at 5 s, and take the server for a legacy one.
	describePatience = 4 * time.Second
	// firstRetry is the time after a probe without evidence, which doubles up to
	// lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// minDoubt is the least time between two probes that doubts lead to. It doubles
	// with each that changed nothing, up to maxDoubt: there are servers that crash,
	// and modern ones that answer like legacy ones.
	minDoubt = 10 * time.Second
	maxDoubt = time.Minute
	// farewell bounds how long the back of the wrong era takes to end.
	farewell = 10 * time.Second
)

// A Finding is what one probe found.
type Finding struct {
	Era spec.Era // spec.Unknown: no evidence
	Why string   // for people: what the server answered
	// Description is the server's account of itself; nil if it gave none.
	Description *exchange.Description
	// End ends what the probe has left, a process say; nil if nothing is left. The
	// Detector calls it once, and goes on meanwhile.
	End func()
}

// DetectOptions configure a Detector.
type DetectOptions struct {
	// Name is the server's. Required.
	Name string
	// Probe asks the server once, in a connection of its own. Required.
	Probe func(ctx context.Context) Finding
	// Open builds the back of the era that was found. gone is closed when what the
	// probe left has ended. Required.
	Open func(f Finding, gone <-chan struct{}) (Back, error)
	// Timeout bounds one probe; a command that has said nothing by then is taken
	// for a legacy server. Zero means DefaultProbeTimeout.
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
	opts DetectOptions
	log  *slog.Logger

	begin   sync.Once
	stop    context.CancelFunc // set under begin
	closing chan struct{}      // closed by Close
	doubts  chan string        // capacity 1
	running sync.WaitGroup     // run, and the ends of probes and of backs that were wrong

	// mu guards the fields below.
	mu      sync.Mutex
	back    Back // of the verdict; nil before there is one
	era     spec.Era
	err     error         // why there is none; ErrStarting before the first probe has ended
	changed chan struct{} // closed when back or err become others
	onSwap  func(error)
	closed  bool
}

// Detect returns a Detector. Nothing is started before its Start, or the first
// request.
func Detect(o DetectOptions) (*Detector, error) {
	if o.Name == "" || o.Probe == nil || o.Open == nil {
		return nil, errors.New("gateway: Detect: name, probe and open are required")
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultProbeTimeout)
	o.Patience = cmp.Or(o.Patience, 2*o.Timeout)
	o.Horizon = cmp.Or(o.Horizon, DefaultHorizon)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Detector{
		opts:    o,
		log:     o.Logger.With("upstream", o.Name),
		closing: make(chan struct{}),
		doubts:  make(chan string, 1),
		err:     exchange.ErrStarting,
		changed: make(chan struct{}),
		onSwap:  func(error) {},
	}, nil
}

// Start implements [Back].
func (d *Detector) Start() {
	d.begin.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		d.stop = stop
		d.running.Go(func() { d.run(ctx) }) // ends with stop, called by Close
	})
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

// Err implements [Back].
func (d *Detector) Err() error {
	d.mu.Lock()
	back, err := d.back, d.err
	d.mu.Unlock()
	if back != nil {
		return back.Err()
	}
	return err
}

// Serve implements [exchange.Handler]. What a back was running when it was found to be
// of the wrong era is run again by the right one, if it can't do twice what was asked
// for once.
func (d *Detector) Serve(ctx context.Context, req *exchange.Request, x exchange.Exchange) (*exchange.Result, error) {
	for {
		back, err := d.await(ctx, d.opts.Patience)
		if err != nil {
			return nil, err
		}
		res, err := back.Serve(ctx, req, x)
		if err == nil || !errors.Is(err, exchange.ErrClosed) || !d.replaced(back) {
			return res, err
		}
		if !spec.Repeatable(req.Method) {
			return nil, wire.Errorf(spec.CodeInternal, "server %q was found to be %s while it ran %s; the request may have taken effect and was not repeated: check before sending it again",
				d.opts.Name, d.Era(), req.Method)
		}
	}
}

// replaced reports whether there is another back in the place of this one.
func (d *Detector) replaced(back Back) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.back != back && !d.closed
}

// Describe implements [exchange.Describer]. What the verdict took is no more left to the
// back.
func (d *Detector) Describe(ctx context.Context, req *exchange.Request) (*exchange.Description, error) {
	d.mu.Lock()
	back := d.back
	d.mu.Unlock()
	if back != nil {
		return back.Describe(ctx, req)
	}
	short, cancel := context.WithTimeoutCause(ctx, describePatience, d.stillStarting())
	defer cancel()
	back, err := d.await(short, describePatience)
	if err != nil {
		return nil, err
	}
	return back.Describe(short, req)
}

func (d *Detector) stillStarting() error {
	return fmt.Errorf("server %q is still %w; try again in a few seconds", d.opts.Name, exchange.ErrStarting)
}

// Watch implements [exchange.Source].
func (d *Detector) Watch(ctx context.Context, p exchange.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	back, err := d.await(ctx, d.opts.Patience)
	if err != nil {
		return nil, nil, err
	}
	return back.Watch(ctx, p, want)
}

// Link implements [exchange.Linker].
func (d *Detector) Link(ctx context.Context, req *exchange.Request, m *wire.Message, h exchange.Hearer) (exchange.Link, []byte, error) {
	back, err := d.await(ctx, describePatience)
	if err != nil {
		return nil, nil, err
	}
	if l, ok := back.(exchange.Linker); ok {
		return l.Link(ctx, req, m, h)
	}
	return nil, nil, nil
}

// Close implements [Back].
func (d *Detector) Close(ctx context.Context) error {
	d.begin.Do(func() { d.stop = func() {} }) // and no start any more
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
	d.running.Wait()
	return err
}

// await returns the back of the verdict. It waits as long as nothing is known of
// the server; when it is known to be away, it says so at once.
func (d *Detector) await(ctx context.Context, patience time.Duration) (Back, error) {
	d.mu.Lock()
	if back := d.back; back != nil {
		d.mu.Unlock()
		return back, nil
	}
	d.mu.Unlock()
	d.Start()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		d.mu.Lock()
		back, err, changed := d.back, d.err, d.changed
		d.mu.Unlock()
		switch {
		case back != nil:
			return back, nil
		case !errors.Is(err, exchange.ErrStarting):
			return nil, fmt.Errorf("server %q can't be used: %w", d.opts.Name, err)
		}
		select {
		case <-changed:
		case <-late.C:
			return nil, d.stillStarting()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-d.closing:
			return nil, ErrShutdown
		}
	}
}
