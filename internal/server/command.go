package server

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/detect"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	modernback "github.com/mcpbridge/mcpbridge/modern/back"
)

const (
	// silentTime is how long a command that has read server/discover may be silent before
	// it is assumed not to know the request.
	silentTime = 2 * time.Second
	// extraSilentTime is how much longer it may be silent if no client waits.
	extraSilentTime = 8 * time.Second
	// exitTime is how long a command may take to exit after its output has ended.
	exitTime = 500 * time.Millisecond
)

// probeCommand probes a command in the process that will also serve. A command with a
// verdict is probed in the process that is started next, unless a process has just refused
// to open a session.
func (s *Server) probeCommand(ctx context.Context, current spec.Era) detect.Finding {
	l := s.launcher
	if f := s.found.Swap(nil); f != nil { // by askProcess
		return *f
	}
	if proof := l.TakeProof(); proof != "" {
		return s.probeProven(ctx, proof)
	}
	switch {
	case current == spec.Legacy && !l.HasRefused():
		l.AskNext()
		return detect.Finding{Why: "it is asked when it is started next"}
	case current == spec.Unknown && l.First() == spec.MethodInitialize:
		return detect.Finding{Era: spec.Legacy, Why: "it exited, or did not respond, on " + spec.MethodDiscover}
	}
	refused := l.HasRefused()
	v, err := s.Detect(ctx, current, mcp.Probing{})
	if err == nil && refused && v.Era == spec.Legacy && !s.triedAfresh.Swap(true) {
		v, err = s.detectAfresh(ctx)
	}
	if err != nil {
		return failedFinding(err)
	}
	return s.finding(&v)
}

// probeProven probes a command that has refused to open a session in a way that proves the
// modern era. Its process may take as long to discovery as to its start, and is waited for
// there; or it serves only the era of its first request, and another process is asked.
func (s *Server) probeProven(ctx context.Context, proof string) detect.Finding {
	v, err := s.Detect(ctx, spec.Unknown, mcp.Probing{})
	if err == nil && v.Cause == nil && v.Era != spec.Modern && !s.triedAfresh.Swap(true) {
		v, err = s.detectAfresh(ctx)
	}
	switch {
	case err != nil:
		return failedFinding(err)
	case v.Era == spec.Modern:
		return s.finding(&v)
	}
	return detect.Finding{Era: spec.Modern, Why: proof}
}

// detectAfresh probes a new process of a command that has refused both eras: the first
// request may decide which era a process serves.
func (s *Server) detectAfresh(ctx context.Context) (mcp.Verdict, error) {
	if p, err := s.launcher.Dial(ctx); err == nil {
		_ = p.Close()
	}
	v, err := s.Detect(ctx, spec.Unknown, mcp.Probing{})
	if err == nil && v.Era == spec.Modern {
		s.launcher.SetFirst(spec.MethodDiscover)
	}
	return v, err
}

// askProcess probes a process that was started for a legacy back. If it is modern,
// askProcess returns an error, and the process stays for a modern back.
func (s *Server) askProcess(ctx context.Context, p *transport.Process) error {
	v, err := s.ask(ctx, p, mcp.Probing{})
	switch {
	case err != nil:
		return err
	case v.Era == spec.Modern:
		f := s.finding(&v)
		s.found.Store(&f)
		return mcp.ErrOtherEra
	case s.launcher.Take(p):
		return nil
	}
	return errors.New(v.Reason)
}

// discoverCommand probes a process of the command, and keeps it for the next use.
func (s *Server) discoverCommand(ctx context.Context, within time.Duration, how mcp.Probing) (mcp.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	p, err := s.launcher.Dial(ctx)
	if err != nil {
		return mcp.Verdict{Reason: transport.Cause(err).Error(), Cause: err}, nil
	}
	return s.ask(ctx, p, how)
}

// ask probes a process. It keeps the process unless that has exited.
func (s *Server) ask(ctx context.Context, p *transport.Process, how mcp.Probing) (mcp.Verdict, error) {
	p.SetQuiet(true)
	p.SetSilent(false)
	o := s.modernOptions()
	o.IDs = p.LastID()
	o.Dial = func(context.Context) (transport.Conn, error) { return p.Borrow(), nil }
	how.Silence = func(ctx context.Context) bool { return s.awaitSilence(ctx, p) }
	v, err := modernback.Probe(ctx, o, how)
	p.SetLastID(p.LastID() + int64(len(v.Steps)))
	if err != nil {
		_ = p.Close()
		return v, err
	}
	if v.Cause != nil {
		s.judgeSilence(p, &v)
		return v, nil
	}
	p.SetRefused(false)
	s.launcher.Keep(p)
	return v, nil
}

// awaitSilence returns true when the process has been silent for long enough. It waits
// longer if no client waits, because on a busy machine the response may be late.
func (s *Server) awaitSilence(ctx context.Context, p *transport.Process) bool {
	if !p.AwaitSilence(ctx, silentTime) {
		return false
	}
	if s.awaitClient != nil {
		late, cancel := context.WithTimeout(ctx, extraSilentTime)
		defer cancel()
		s.awaitClient(late)
	}
	return ctx.Err() == nil
}

// notRead is the reason of a verdict on a process that has not read what it was asked.
const notRead = "it has not read its first request within timeouts.connect"

// judgeSilence sets the verdict on a process that did not respond, by what it has read.
func (s *Server) judgeSilence(p *transport.Process, v *mcp.Verdict) {
	silent := errors.Is(v.Cause, mcp.ErrSilent) || errors.Is(v.Cause, context.DeadlineExceeded)
	switch {
	case !silent && p.EndsWithin(exitTime):
		v.Reason, v.Cause = p.Ending(), cmp.Or(p.Err(), v.Cause)
		if p.HasRead() {
			s.launcher.SetFirst(spec.MethodInitialize)
		} else {
			v.Era = spec.Unknown
		}
		_ = p.Close()
		return
	case !p.HasRead():
		v.Era, v.Starting = spec.Unknown, true
		v.Reason = notRead + p.Noise()
	}
	p.SetSilent(true)
	s.launcher.Keep(p)
}
