package server

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// Open returns the back of the server's era, or a Detector if the era is not configured. A
// command always has a Detector, which keeps the number of processes small. It may be
// called once.
func (s *Server) Open(changes mcp.Changes) (mcp.Back, error) { return s.open(changes, nil) }

// open is Open. doubt, if it is not nil, is told what else the Detector would be: that the
// server behaves like one of the other era.
func (s *Server) open(changes mcp.Changes, doubt func(string)) (mcp.Back, error) {
	era := s.Era()
	if !s.opts.isCommand() && era != spec.Unknown {
		return s.openAs(detect.Finding{Era: era}, changes, doubt)
	}
	var d *detect.Detector
	if doubt == nil {
		doubt = func(why string) { d.Doubt(why) }
	}
	o := detect.Options{
		Name:        s.opts.Name,
		Era:         era,
		ClientFirst: s.opts.followsClient(),
		Launcher:    s.launcher,
		OnDemand:    s.opts.Records != nil,
		Memory:      s.remembered(),
		Changes:     changes,
		Open: func(f detect.Finding) (mcp.Back, error) {
			s.opts.Losses.Replaced(s.opts.Name) // if there was another verdict
			return s.openAs(f, changes, doubt)
		},
		Timeout:  s.opts.Settings.Timeouts.Connect,
		Patience: s.opts.Settings.Timeouts.Connect,
		Logger:   s.opts.Logger,
	}
	if era == spec.Unknown {
		s.awaitClient = func(ctx context.Context) { d.AwaitClient(ctx) }
		o.Probe = func(ctx context.Context) detect.Finding { return s.Find(ctx, d.Era()) } // within Timeout, whatever it takes
	}
	d, err := detect.New(o)
	return asBack(d, err)
}

// asBack returns a back, or the error, and no typed nil in the interface.
func asBack[B mcp.Back](back B, err error) (mcp.Back, error) {
	if err != nil {
		return nil, err
	}
	return back, nil
}

// openAs returns the back of an era. It calls doubt, which may be nil, if the server
// behaves like one of the other era.
func (s *Server) openAs(f detect.Finding, changes mcp.Changes, doubt func(string)) (mcp.Back, error) {
	if f.Era == spec.Modern {
		o := s.modernOptions()
		o.Changes, o.Doubt, o.Probed = changes, doubt, f.Description
		back, err := modernback.New(o)
		if err == nil && s.byClient() {
			return s.openSides(back, changes)
		}
		return asBack(back, err)
	}
	o := s.legacyOptions()
	o.Changes, o.Doubt = changes, doubt
	back, err := legacyback.New(o)
	if err == nil && s.byClient() {
		return s.onlyLegacy(back, f.Why), nil
	}
	return asBack(back, err)
}

// modernOptions returns the options of a modern back.
func (s *Server) modernOptions() modernback.Options {
	o := modernback.Options{Options: s.shared(), Dial: s.dial(), Eager: s.opts.overWebSocket()}
	if s.launcher != nil {
		o.Dial = func(ctx context.Context) (transport.Conn, error) { return launched(ctx, s.launcher) }
	}
	return o
}

// launched returns a process as the server's only connection.
func launched(ctx context.Context, l *transport.Launcher) (transport.Conn, error) {
	p, err := l.Dial(ctx)
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	p.SetQuiet(false)
	return p, nil
}
