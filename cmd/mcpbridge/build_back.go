package main

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/legacy"
	"github.com/mcpbridge/mcpbridge/modern"
)

// parting is how long a server's process waits for the end of the one that was probed:
// two of them may be in each other's way. One that takes longer takes no notice of the
// end of its input, and is given seconds.
const parting = 200 * time.Millisecond

// open builds the back of the server's era, or one that finds the era out.
func (b *builder) open(changes exchange.Changes) (gateway.Back, error) {
	if era := b.era(); era != spec.Unknown {
		return b.openAs(gateway.Finding{Era: era}, nil, changes, nil)
	}
	var d *gateway.Detector
	doubt := func(why string) { d.Doubt(why) }
	d, err := gateway.Detect(gateway.DetectOptions{
		Name:  b.server.Name,
		Probe: func(ctx context.Context) gateway.Finding { return b.probe(ctx, d.Era()) }, // within Timeout, whatever it takes
		Open: func(f gateway.Finding, gone <-chan struct{}) (gateway.Back, error) {
			return b.openAs(f, gone, changes, doubt)
		},
		Timeout: b.server.Timeouts.Connect,
		Logger:  b.log,
	})
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return d, nil
}

// era returns what the configuration says, spec.Unknown for auto.
func (b *builder) era() spec.Era {
	switch {
	case b.server.Builtin == modernNotebook, b.server.Era == spec.Modern.String():
		return spec.Modern
	case b.server.Builtin != "", b.server.Era == spec.Legacy.String(), b.server.Type == string(legacy.TransportSSE):
		return spec.Legacy
	}
	return spec.Unknown
}

// openAs builds the back of the era that was found. gone, which may be nil, is closed
// when what the probe left has ended. doubt, which may be nil, hears of what only a
// server of the other era does.
func (b *builder) openAs(f gateway.Finding, gone <-chan struct{}, changes exchange.Changes, doubt func(string)) (gateway.Back, error) {
	if f.Era == spec.Modern {
		o := b.modernOptions()
		o.Changes, o.Doubt, o.Foretold = changes, doubt, f.Description
		o.Dial = after(gone, o.Dial)
		back, err := modern.NewBack(o)
		if err != nil {
			return nil, err // and no typed nil in the interface
		}
		return back, nil
	}
	o := b.backOptions()
	o.Changes, o.Doubt = changes, doubt
	o.Dial = after(gone, o.Dial)
	back, err := legacy.NewBack(o)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return back, nil
}

// after returns dial, which waits a little for what a probe left to end; nil for nil.
func after(gone <-chan struct{}, dial func(context.Context) (transport.Conn, error)) func(context.Context) (transport.Conn, error) {
	if gone == nil || dial == nil {
		return dial
	}
	return func(ctx context.Context) (transport.Conn, error) {
		late := time.NewTimer(parting)
		defer late.Stop()
		select {
		case <-gone:
		case <-late.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		return dial(ctx)
	}
}

func (b *builder) modernOptions() modern.BackOptions {
	s := b.server
	o := modern.BackOptions{
		Name:         s.Name,
		ClientInfo:   implementation(),
		Timeouts:     modern.Timeouts{Connect: s.Timeouts.Connect, Request: s.Timeouts.Request, Max: s.Timeouts.Max},
		Linger:       s.Linger,
		MaxMessage:   int(b.config.Limits.UpstreamMessage),
		Subresources: fanout.Subresources(s.Subresources),
		Logger:       b.log,
		Metrics:      b.metrics,
	}
	if o.Dial = b.dial(); o.Dial == nil {
		o.URL, o.Headers = s.URL, b.headers()
	}
	return o
}
