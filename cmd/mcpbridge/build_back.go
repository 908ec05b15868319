package main

import (
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/legacy"
	"github.com/mcpbridge/mcpbridge/modern"
)

// open builds the back of the server's era, or one that finds the era out.
func (b *builder) open(changes exchange.Changes) (gateway.Back, error) {
	if era := b.era(); era != spec.Unknown {
		return b.openAs(era, changes, nil)
	}
	var d *gateway.Detector
	doubt := func(why string) { d.Doubt(why) }
	d, err := gateway.Detect(gateway.DetectOptions{
		Name:    b.server.Name,
		Probe:   b.probe, // within Timeout, whatever it takes
		Open:    func(era spec.Era) (gateway.Back, error) { return b.openAs(era, changes, doubt) },
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

// openAs builds the back of an era. doubt, which may be nil, hears of what only a
// server of the other one does.
func (b *builder) openAs(era spec.Era, changes exchange.Changes, doubt func(string)) (gateway.Back, error) {
	if era == spec.Modern {
		o := b.modernOptions()
		o.Changes, o.Doubt = changes, doubt
		back, err := modern.NewBack(o)
		if err != nil {
			return nil, err // and no typed nil in the interface
		}
		return back, nil
	}
	o := b.backOptions()
	o.Changes, o.Doubt = changes, doubt
	back, err := legacy.NewBack(o)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return back, nil
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
