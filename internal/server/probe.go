package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

// Find finds the server's era for a Detector. current is the verdict so far.
func (s *Server) Find(ctx context.Context, current spec.Era) detect.Finding {
	if s.opts.isCommand() {
		return s.probeCommand(ctx, current)
	}
	v, err := s.Detect(ctx, current, mcp.Probing{})
	if err != nil {
		return failedFinding(err)
	}
	return s.finding(&v)
}

// failedFinding returns the finding if the server can't be probed.
func failedFinding(err error) detect.Finding {
	return detect.Finding{Why: err.Error(), Public: transport.Public(err) + moreInLog, Trouble: "can't be asked"}
}

// moreInLog is the end of an error for clients that has fewer details than the log.
const moreInLog = "; more is in the log of mcpbridge"

// finding converts a verdict to a Finding, with the next step if there is no era.
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
	f.Why += loginStep(v, &s.opts)
	if f.Public != f.Why {
		f.Public += moreInLog
	}
	return f
}

// publicReason returns the reason of a verdict for clients.
func publicReason(v *mcp.Verdict) string {
	var handshake *transport.HandshakeError // whose text is the status, and the page that came with it
	var status *upstream.StatusError
	switch {
	case errors.As(v.Cause, &handshake):
	case v.Starting:
		return notRead // without what it has printed
	case isAway(v):
		return v.Reason // which was for clients already
	case errors.As(v.Cause, &status) && status.Target != "":
		return strings.ReplaceAll(v.Reason, status.Target, redact.Hidden)
	case v.Cause == nil, v.Status > 0:
		return v.Reason
	case errors.Is(v.Cause, context.DeadlineExceeded):
		return "it did not answer in time"
	}
	return transport.Public(v.Cause)
}

// Detect finds the server's era, within timeouts.connect. Some servers decide by their
// first request which era a connection has. So a URL is probed on connections that don't
// serve clients, and a command in a process that is kept for the right back.
//
// If a URL fails at server/discover, or does not respond, Detect also tries to open a
// session: some legacy servers fail at all unknown requests. On a connection silence is
// evidence enough.
//
// A modern verdict changes only if there is a response: a command that crashes at its
// start, or the error page of a proxy while a server is replaced, must not end what
// clients have open. A server that has become legacy opens a session.
func (s *Server) Detect(ctx context.Context, current spec.Era, how mcp.Probing) (mcp.Verdict, error) {
	first, second := s.splitTimeout(current)
	v, err := s.discover(ctx, first, how)
	fallen := current == spec.Modern && v.Era == spec.Legacy && v.Cause != nil
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
		session.Reason = Both(&v, &session)
		session.Inconclusive = true
	}
	return session, nil
}

// Both returns the reason of two verdicts: that of server/discover, and of a session then, which could
// not be opened. A server that fails at both in the same way is said so once.
func Both(first, second *mcp.Verdict) string {
	var one, two *upstream.StatusError
	if errors.As(first.Cause, &one) && errors.As(second.Cause, &two) && *one == *two && one.Code >= 500 {
		return fmt.Sprintf("it answered server/discover and initialize with %v", one)
	}
	return first.Reason + "; opening a session failed: " + second.Reason
}

// discover sends server/discover.
func (s *Server) discover(ctx context.Context, within time.Duration, how mcp.Probing) (mcp.Verdict, error) {
	if s.opts.isCommand() {
		return s.discoverCommand(ctx, within, how)
	}
	o := s.modernOptions()
	o.Settings.Timeouts.Connect = within
	return modernback.Probe(ctx, o, how)
}

// splitTimeout divides timeouts.connect between the two requests; the second is zero if
// there is only one.
func (s *Server) splitTimeout(current spec.Era) (first, second time.Duration) {
	all := s.opts.Settings.Timeouts.Connect
	if s.OnConnection() && current != spec.Modern {
		return all, 0
	}
	second = all / 3
	return all - second, second
}

// Initialize opens and closes a legacy session with the server.
func (s *Server) Initialize(ctx context.Context, within time.Duration, how mcp.Probing) (mcp.Verdict, error) {
	o := s.legacyOptions()
	o.Settings.Timeouts.Connect = within
	return legacyback.Probe(ctx, o, how)
}

// Judge finds the server's era. If a server gave no response of MCP, so that it is at most
// legacy, Judge also tries to open a session.
func (s *Server) Judge(ctx context.Context) (mcp.Verdict, error) {
	v, err := s.Detect(ctx, spec.Unknown, mcp.Probing{})
	if err != nil || s.OnConnection() || v.Era != spec.Legacy || v.Cause == nil {
		return v, err
	}
	session, err := s.Initialize(ctx, s.opts.Settings.Timeouts.Connect, mcp.Probing{})
	if session.Era == spec.Unknown {
		session.Reason = Both(&v, &session)
		session.Status = max(session.Status, v.Status)
	}
	return session, err
}
