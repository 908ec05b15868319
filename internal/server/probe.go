package server

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// Find finds out which era the server is of, for a Detector. standing is the verdict so
// far.
func (s *Server) Find(ctx context.Context, standing spec.Era) detect.Finding {
	if s.opts.isCommand() {
		return s.probeCommand(ctx, standing)
	}
	v, err := s.Detect(ctx, standing, mcp.Probing{})
	if err != nil {
		return failedFinding(err)
	}
	return s.finding(&v)
}

// failedFinding says that the server can't be asked.
func failedFinding(err error) detect.Finding {
	return detect.Finding{Why: err.Error(), Public: transport.Public(err) + moreInLog, Trouble: "can't be asked"}
}

// moreInLog ends what clients are told of why a server can't be used.
const moreInLog = "; more is in the log of mcpbridge"

// finding is a verdict as the gateway wants it, with the next step where there is none.
func (s *Server) finding(v *mcp.Verdict) detect.Finding {
	f := detect.Finding{Era: v.Era, Why: v.Reason, Description: v.Description, Starting: v.Starting}
	f.Guess = v.Era == spec.Legacy && v.Cause != nil
	if v.Era != spec.Unknown {
		return f
	}
	f.Trouble, f.Public = s.Trouble(v), publicReason(v)
	if step := nextStep(v, &s.opts); step != "" {
		f.Why += "; " + step
		f.Public += "; " + step
	}
	if f.Public != f.Why {
		f.Public += moreInLog
	}
	return f
}

// publicReason is the reason of a verdict as clients are told it.
func publicReason(v *mcp.Verdict) string {
	var handshake *transport.HandshakeError // whose text is the status, and the page that came with it
	switch {
	case errors.As(v.Cause, &handshake):
	case v.Cause == nil, v.Status > 0, v.Starting:
		return v.Reason
	case errors.Is(v.Cause, context.DeadlineExceeded):
		return "it did not answer in time"
	}
	return transport.Public(v.Cause)
}

// Detect asks the server which era it is of, within timeouts.connect: some servers take
// their first request for what all others will be, so that a URL is asked in connections
// that serve nobody, and a command in a process that is left to who serves it.
//
// A URL that fails at server/discover, or says nothing to it, is asked for a session:
// some servers of the older era do so with whatever they don't know, and would never
// be served. Of a connection that is not said: its silence is evidence.
//
// A standing verdict of the newer era falls by an answer alone: a command that crashes at
// its start, and the page of a proxy whose server is being replaced, are no reason to end
// what clients have open. One that is of the older era by now opens a session.
func (s *Server) Detect(ctx context.Context, standing spec.Era, how mcp.Probing) (mcp.Verdict, error) {
	first, second := s.splitTimeout(standing)
	v, err := s.discover(ctx, first, how)
	fallen := standing == spec.Modern && v.Era == spec.Legacy && v.Cause != nil
	failed := v.Era == spec.Unknown && v.Inconclusive
	if err != nil || second == 0 || !fallen && !failed {
		return v, err
	}
	session, err := s.Initialize(ctx, second, how)
	if err != nil {
		return v, err
	}
	session.Steps = append(v.Steps, session.Steps...)
	session.Took += v.Took
	if session.Era == spec.Unknown {
		session.Reason = v.Reason + "; asked for a session: " + session.Reason
		session.Inconclusive = true
	}
	return session, nil
}

// discover sends server/discover, within a time.
func (s *Server) discover(ctx context.Context, within time.Duration, how mcp.Probing) (mcp.Verdict, error) {
	if s.opts.isCommand() {
		return s.discoverCommand(ctx, within, how)
	}
	o := s.modernOptions()
	o.Timeouts.Connect = within
	return modernback.Probe(ctx, o, how)
}

// splitTimeout divides timeouts.connect between the questions that an era may take; the
// second is zero where there is only one.
func (s *Server) splitTimeout(standing spec.Era) (first, second time.Duration) {
	all := s.opts.Timeouts.Connect
	if s.OnConnection() && standing != spec.Modern {
		return all, 0
	}
	second = all / 3
	return all - second, second
}

// Initialize opens a session of the older era with the server, and ends it.
func (s *Server) Initialize(ctx context.Context, within time.Duration, how mcp.Probing) (mcp.Verdict, error) {
	o := s.legacyOptions()
	o.Timeouts.Connect = within
	return legacyback.Probe(ctx, o, how)
}

// Judge asks which era the server is of. One that answers nothing of MCP, and so is legacy
// at most, is asked for a session.
func (s *Server) Judge(ctx context.Context) (mcp.Verdict, error) {
	v, err := s.Detect(ctx, spec.Unknown, mcp.Probing{})
	if err != nil || s.OnConnection() || v.Era != spec.Legacy || v.Cause == nil {
		return v, err
	}
	session, err := s.Initialize(ctx, s.opts.Timeouts.Connect, mcp.Probing{})
	if session.Era == spec.Unknown {
		session.Reason = v.Reason + "; asked for a session: " + session.Reason
		session.Status = max(session.Status, v.Status)
	}
	return session, err
}
