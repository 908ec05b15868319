package back

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

const (
	// elicitationTimeout bounds how long after the user's consent a call is sent again
	// while the server still requires the same elicitations.
	elicitationTimeout = 45 * time.Second
	// maxElicitations bounds how often one call can require URL elicitations.
	maxElicitations = 8
)

// elicitationDelays are the times after the user's consent at which a call is sent again
// if the server does not report that the elicitation is complete: many servers never do.
var elicitationDelays = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second}

// An elicitationRequired is a server's URLElicitationRequiredError (-32042). The call has
// ended; it may succeed if it is sent again after the user has visited the URLs.
type elicitationRequired struct{ err *wire.Error }

func (e *elicitationRequired) Error() string { return e.err.Error() }

// urlAttempts is the state of a client's call whose server requires URL elicitations, over
// all attempts. The caller calls release. The zero value is a call without URL
// elicitations.
type urlAttempts struct {
	lane int // of the last session that required URL elicitations; later attempts prefer it

	// sessions are the sessions that required URL elicitations, the last one last. They
	// are kept, because the elicitation may be bound to the session, and its completion is
	// reported there.
	sessions []keptSession

	prompts    int                   // how often the user was asked
	required   []link.URLElicitation // the last required elicitations
	completion *link.Completion      // of required
	done       <-chan struct{}       // that of completion; nil once it was seen
	acceptedAt time.Time             // when the user consented
	delays     []time.Duration       // those of elicitationDelays that are left
}

type keptSession struct {
	*session
	release func()
}

// session returns the last session that required URL elicitations if it is alive, else
// nil.
func (v *urlAttempts) session() *session {
	if len(v.sessions) == 0 || !v.sessions[len(v.sessions)-1].Alive() {
		return nil
	}
	return v.sessions[len(v.sessions)-1].session
}

// keepSession keeps a session that required URL elicitations; release releases it.
func (v *urlAttempts) keepSession(s *session, lane int, release func()) {
	v.lane = lane
	h := keptSession{s, release}
	if i := slices.IndexFunc(v.sessions, func(h keptSession) bool { return h.session == s }); i >= 0 {
		release()
		h = v.sessions[i]
		v.sessions = slices.Delete(v.sessions, i, i+1)
	}
	v.sessions = append(v.sessions, h)
	if v.completion != nil {
		s.completions.Add(v.completion)
	}
}

func (v *urlAttempts) release() {
	for _, h := range v.sessions {
		h.completions.Remove(v.completion)
		h.release()
	}
}

// elicit handles required URL elicitations. It returns nil if the call is to be sent
// again. It asks the user or, if the user has consented to the same elicitations already,
// waits.
func (v *urlAttempts) elicit(ctx context.Context, req *mcp.Request, caller mcp.Caller, e *wire.Error) error {
	s, all := v.sessions[len(v.sessions)-1].session, link.URLElicitations(e)
	switch {
	case !mcp.Declares(wire.Get(req.Profile.Capabilities, "elicitation"), "url"):
		return mcp.LackedCapability([]byte(`{"elicitation":{"url":{}}}`), e.Message)
	case len(all) == 0:
		return link.ModernError(req, e, true)
	case v.prompts > 0 && link.SameElicitations(all, v.required):
		return v.awaitCompletion(ctx, s, e)
	case v.prompts == maxElicitations:
		return wire.Errorf(spec.CodeInternal, "server %q requires URL elicitations for the %dth time; it does not accept their completion", s.opts.Name, maxElicitations+1)
	}
	v.prompts++
	v.expectCompletion(all)
	if err := elicitURLs(ctx, s.opts.Name, caller, all, e); err != nil {
		return err
	}
	v.acceptedAt, v.delays = time.Now(), elicitationDelays
	select {
	case <-v.done: // completed before the user consented: the call is sent again at once
		v.done = nil
	default:
	}
	return nil
}

// expectCompletion registers for the completion of new elicitations in all sessions.
func (v *urlAttempts) expectCompletion(all []link.URLElicitation) {
	former := v.completion
	v.required, v.completion = all, link.NewCompletion(all)
	v.done = v.completion.Done()
	for _, h := range v.sessions {
		h.completions.Remove(former)
		h.completions.Add(v.completion)
	}
}

// elicitURLs passes the elicitations to the client, and returns an error unless the user
// accepts all.
func elicitURLs(ctx context.Context, server string, caller mcp.Caller, all []link.URLElicitation, e *wire.Error) error {
	requests := make([]mcp.InputRequest, len(all))
	for i, v := range all {
		requests[i] = mcp.InputRequest{Method: spec.MethodElicit, Params: v.Params}
	}
	answers, err := caller.RequestInput(ctx, requests)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if action, _ := wire.GetString(a.Result, "action"); action != "accept" {
			return wire.Errorf(spec.CodeInternal, "server %q: %s; the user declined", server, e.Message)
		}
	}
	return nil
}

// awaitCompletion returns nil when the call is to be sent again: the server has reported
// the elicitations as complete, or lost the session, or it is time for another attempt.
func (v *urlAttempts) awaitCompletion(ctx context.Context, s *session, e *wire.Error) error {
	next := elicitationTimeout
	if len(v.delays) > 0 {
		next = v.delays[0]
	}
	t := time.NewTimer(wake.Positive(time.Until(v.acceptedAt.Add(next))))
	defer t.Stop()
	select {
	case <-v.done:
		v.done = nil
	case <-s.Done():
	case <-t.C:
		if len(v.delays) == 0 {
			return wire.Errorf(spec.CodeInternal, "server %q: %s; it still requires this %v after the user accepted: complete it in the browser, then send the call again",
				s.opts.Name, e.Message, elicitationTimeout)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for len(v.delays) > 0 && time.Since(v.acceptedAt) >= v.delays[0] {
		v.delays = v.delays[1:]
	}
	return nil
}
