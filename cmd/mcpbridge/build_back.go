package main

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// open builds the back of the server's era, or one that finds the era out. That of a
// command does both: it is also what keeps its processes few.
func (b *builder) open(changes mcp.Changes) (mcp.Back, error) {
	era := b.era()
	if b.server.Command == "" && era != spec.Unknown {
		return b.openAs(detect.Finding{Era: era}, changes, nil)
	}
	var d *detect.Detector
	doubt := func(why string) { d.Doubt(why) }
	o := detect.Options{
		Name:        b.server.Name,
		Era:         era,
		ClientFirst: b.clientFirst && b.server.Command != "",
		Launcher:    b.processes(),
		Memory:      b.remembered(),
		Changes:     changes,
		Open:        func(f detect.Finding) (mcp.Back, error) { return b.openAs(f, changes, doubt) },
		Timeout:     b.server.Timeouts.Connect,
		Patience:    b.server.Timeouts.Connect,
		Logger:      b.log,
	}
	if era == spec.Unknown {
		b.awaitClient = func(ctx context.Context) { d.AwaitClient(ctx) }
		o.Probe = func(ctx context.Context) detect.Finding { return b.probe(ctx, d.Era()) } // within Timeout, whatever it takes
	}
	d, err := detect.New(o)
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
	case b.server.Builtin != "", b.server.Era == spec.Legacy.String(), b.server.Type == string(legacyback.TransportSSE):
		return spec.Legacy
	}
	return spec.Unknown
}

// openAs builds the back of the era that was found. doubt, which may be nil, hears of
// what only a server of the other era does.
func (b *builder) openAs(f detect.Finding, changes mcp.Changes, doubt func(string)) (mcp.Back, error) {
	if f.Era == spec.Modern {
		o := b.modernOptions()
		o.Changes, o.Doubt, o.Foretold = changes, doubt, f.Description
		back, err := modernback.New(o)
		if err != nil {
			return nil, err // and no typed nil in the interface
		}
		return back, nil
	}
	o := b.backOptions()
	o.Changes, o.Doubt = changes, doubt
	back, err := legacyback.New(o)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return back, nil
}

func (b *builder) modernOptions() modernback.Options {
	s := b.server
	o := modernback.Options{
		Name:           s.Name,
		ClientInfo:     implementation(),
		HideExtensions: s.Hidden(),
		Timeouts:       modernback.Timeouts{Connect: s.Timeouts.Connect, Request: s.Timeouts.Request, Max: s.Timeouts.Max},
		Linger:         s.Linger,
		Subscribes:     int(b.config.Limits.SubscribesEach),
		MaxMessage:     int(b.config.Limits.UpstreamMessage),
		Subresources:   fanout.Subresources(s.Subresources),
		Logger:         b.log,
		Metrics:        b.metrics,
	}
	switch l := b.processes(); {
	case l != nil:
		o.Dial = func(ctx context.Context) (transport.Conn, error) { return launched(ctx, l) }
	default:
		o.Dial = b.dial()
	}
	if o.Dial == nil {
		o.URL, o.Headers, o.RoundTripper = s.URL, b.headers(), b.upstream.http
	}
	return o
}

// launched takes a process for the server's only connection.
func launched(ctx context.Context, l *transport.Launcher) (transport.Conn, error) {
	p, err := l.Dial(ctx)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	p.SetQuiet(false)
	return p, nil
}
