package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	f.Unsure = v.Era == spec.Legacy && v.Inconclusive && !s.opts.isCommand() // which is asked where it is started next
	if f.Unsure {
		f.Why += "; it will be asked again whether it also speaks " + spec.Modern.Speaks()
	}
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
// A server of both eras that is slow opens a session, too. So server/discover is waited for
// meanwhile, and a legacy verdict is Inconclusive if it was not answered.
//
// A modern verdict changes only if there is a response: a command that crashes at its
// start, or the error page of a proxy while a server is replaced, must not end what
// clients have open. A server that has become legacy opens a session.
func (s *Server) Detect(ctx context.Context, current spec.Era, how mcp.Probing) (mcp.Verdict, error) {
	first, second := s.splitTimeout(current)
	if !s.OnConnection() {
		return s.detectURL(ctx, first, second, current, how)
	}
	v, err := s.discover(ctx, first, how)
	if err != nil || second == 0 || isEvidence(&v, current) {
		return v, err
	}
	session, err := s.Initialize(ctx, second, how)
	if err != nil {
		return v, err
	}
	return joined(v, session), nil
}

// isEvidence reports whether the outcome of server/discover is enough to keep or change the
// verdict so far.
func isEvidence(v *mcp.Verdict, current spec.Era) bool {
	fallen := current == spec.Modern && v.Era == spec.Legacy && v.Cause != nil
	failed := v.Era == spec.Unknown && v.Inconclusive
	return !fallen && !failed
}

// joined returns the verdict of a session that was tried because server/discover gave no
// evidence.
func joined(v, session mcp.Verdict) mcp.Verdict {
	session.Steps = append(v.Steps, session.Steps...)
	session.Took += v.Took
	session.Inconclusive = v.Era == spec.Unknown || session.Era == spec.Unknown
	if session.Era == spec.Unknown {
		session.Reason = Both(&v, &session)
	}
	return session
}

// A probed is what a probe returns.
type probed struct {
	mcp.Verdict
	err error
}

// probeAside runs a probe beside others. The channel has room for what it returns.
func probeAside(probe func() (mcp.Verdict, error)) <-chan probed {
	outcome := make(chan probed, 1)
	go func() { // ends with the probe
		v, err := probe()
		outcome <- probed{v, err}
	}()
	return outcome
}

// A trial finds the era of a server that has a connection for each request.
type trial struct {
	s       *Server
	second  time.Duration // for a session
	current spec.Era
	how     mcp.Probing

	enough, answered chan struct{} // ends the wait for server/discover; it was answered, of capacity 1
	once             sync.Once     // closes enough
	begun            time.Time
	before           time.Duration // from then to the attempt to open a session
	opened           <-chan probed // nil before that
	v, session       *probed       // what came of server/discover and of the session; nil before
}

// detectURL is Detect for a server that has a connection for each request. If there is no
// response to server/discover after first, it opens a session beside it, within second. A
// server that has not opened one in half of that may serve one request at a time, and is left
// alone with it.
func (s *Server) detectURL(ctx context.Context, first, second time.Duration, current spec.Era, how mcp.Probing) (mcp.Verdict, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	how.Begin = serialized(how.Begin)
	t := &trial{s: s, second: second, current: current, how: how, enough: make(chan struct{}), answered: make(chan struct{}, 1), begun: time.Now()}
	how.Silence = t.silence
	discovered := probeAside(func() (mcp.Verdict, error) { return s.discover(ctx, first+second, how) })
	late, answered := time.After(first), t.answered
	for t.v == nil || t.session == nil {
		select {
		case p := <-discovered:
			if p.err != nil || isEvidence(&p.Verdict, current) && (t.opened == nil || p.Cause == nil) {
				cancel()
				return t.decided(p)
			}
			if t.v, late = &p, nil; t.opened == nil {
				t.open(ctx)
			}
		case p := <-t.opened:
			if t.session, late = &p, nil; p.Era == spec.Legacy && current != spec.Legacy {
				late = time.After(max(answerTime, p.Took)) // it is awake: the other answer comes now, or never
			}
		case <-answered: // its lists may be on their way
			answered, late = nil, nil
		case <-late:
			if late = nil; t.opened != nil {
				t.once.Do(func() { close(t.enough) })
			} else {
				t.open(ctx)
				late = time.After(second / 2)
			}
		}
	}
	return t.verdict()
}

// open begins to open a session.
func (t *trial) open(ctx context.Context) {
	t.before = time.Since(t.begun)
	t.opened = probeAside(func() (mcp.Verdict, error) { return t.s.Initialize(ctx, t.second, t.how) })
}

// decided returns the verdict of server/discover, once the session has ended that nobody needs any
// more.
func (t *trial) decided(p probed) (mcp.Verdict, error) {
	switch {
	case t.session != nil:
		p.Steps = append(p.Steps, t.session.Steps...)
	case t.opened != nil:
		<-t.opened
	}
	return p.Verdict, p.err
}

// silence waits until server/discover need not be waited for any longer, or is answered; see
// mcp.Probing. It is called once for each attempt.
func (t *trial) silence(ctx context.Context) bool {
	select {
	case <-t.enough:
		return true
	case <-ctx.Done():
		select {
		case t.answered <- struct{}{}:
		default: // it is a second attempt
		}
		return false
	}
}

// verdict returns what follows from both.
func (t *trial) verdict() (mcp.Verdict, error) {
	if t.session.err != nil || t.session.Era == spec.Unknown && isEvidence(&t.v.Verdict, t.current) {
		return t.v.Verdict, t.session.err
	}
	both := joined(t.v.Verdict, t.session.Verdict)
	both.Took = max(t.v.Took, t.before+t.session.Took)
	return both, nil
}

// answerTime is how long server/discover is waited for at least after the same server has
// opened a session.
const answerTime = 300 * time.Millisecond

// serialized returns a function that may be called by several goroutines, or nil.
func serialized(begin func(string)) func(string) {
	if begin == nil {
		return nil
	}
	var mu sync.Mutex // held while begin is called
	return func(sent string) {
		mu.Lock()
		defer mu.Unlock()
		begin(sent)
	}
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
	all := cmp.Or(s.opts.Settings.Timeouts.Connect, detect.DefaultProbeTimeout)
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
