package back

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// elicitationTimeout bounds how long after the user's word a call is sent again while
	// the server still demands the same visits.
	elicitationTimeout = 45 * time.Second
	// maxElicitations bounds how often one call can ask for visits.
	maxElicitations = 8
)

// elicitationDelays are the moments after the user's word at which a call is sent again
// to a server that has not said that the visit is done: many never do.
var elicitationDelays = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second}

// urlAttempts is what one client's call has been told to visit, over the attempts
// that it takes. Its owner calls end. The zero value is a call that was told of
// none.
type urlAttempts struct {
	lane int // of the last session that demanded visits; later attempts prefer it

	// sessions are the sessions that demanded visits, the last one last. They are kept:
	// the visit may be the session's, and the server says there that it is done.
	sessions []keptSession

	prompts    int              // how often the user was
	required   []urlElicitation // the last
	completion *completionWatch // of demand
	done       <-chan struct{}  // the watch's, until that was heeded
	acceptedAt time.Time        // when the user said that it will visit them
	delays     []time.Duration  // those of elicitationDelays still to come
}

type keptSession struct {
	*session
	release func()
}

// session returns the last one that demanded visits if it is alive, else nil.
func (v *urlAttempts) session() *session {
	if len(v.sessions) == 0 || !v.sessions[len(v.sessions)-1].Alive() {
		return nil
	}
	return v.sessions[len(v.sessions)-1].session
}

// keepSession keeps a session that demanded visits; release gives it back.
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
		s.completions.add(v.completion)
	}
}

func (v *urlAttempts) release() {
	for _, h := range v.sessions {
		h.completions.remove(v.completion)
		h.release()
	}
}

// elicit does what a demand takes: nil means that the call is to be sent anew. The
// user is asked, or, if it has agreed to that very visit, given some time.
func (v *urlAttempts) elicit(ctx context.Context, req *mcp.Request, x mcp.Caller, e *wire.Error) error {
	s, all := v.sessions[len(v.sessions)-1].session, urlElicitations(e)
	switch {
	case !mcp.Declares(wire.Get(req.Profile.Capabilities, "elicitation"), "url"):
		return missingCapability([]byte(`{"elicitation":{"url":{}}}`), e.Message)
	case len(all) == 0:
		return upstreamError(req, e, true)
	case v.prompts > 0 && sameElicitations(all, v.required):
		return v.awaitCompletion(ctx, s, e)
	case v.prompts == maxElicitations:
		return wire.Errorf(spec.CodeInternal, "server %q wants a URL visited for the %dth time", s.opts.Name, maxElicitations+1)
	}
	v.prompts++
	v.expectCompletion(all)
	if err := elicitURLs(ctx, s.opts.Name, x, all, e); err != nil {
		return err
	}
	v.acceptedAt, v.delays = time.Now(), elicitationDelays
	select {
	case <-v.done: // before the user's word: the call that is sent at once tells
		v.done = nil
	default:
	}
	return nil
}

// expectCompletion has all sessions tell when the visits of a new demand are done.
func (v *urlAttempts) expectCompletion(all []urlElicitation) {
	former := v.completion
	v.required, v.completion = all, newCompletionWatch(all)
	v.done = v.completion.done
	for _, h := range v.sessions {
		h.completions.remove(former)
		h.completions.add(v.completion)
	}
}

// elicitURLs has the caller's user say that it goes where the server wants.
func elicitURLs(ctx context.Context, server string, x mcp.Caller, all []urlElicitation, e *wire.Error) error {
	requests := make([]mcp.InputRequest, len(all))
	for i, v := range all {
		requests[i] = mcp.InputRequest{Method: spec.MethodElicit, Params: v.params}
	}
	answers, err := x.RequestInput(ctx, requests)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if action, _ := wire.GetString(a.Result, "action"); action != "accept" {
			return wire.Errorf(spec.CodeInternal, "server %q: %s; the user did not agree to it", server, e.Message)
		}
	}
	return nil
}

// awaitCompletion returns nil when the call is to be sent again: the server has said that the
// visits are done, or lost the session, or it is time to see whether it is content.
func (v *urlAttempts) awaitCompletion(ctx context.Context, s *session, e *wire.Error) error {
	next := elicitationTimeout
	if len(v.delays) > 0 {
		next = v.delays[0]
	}
	t := time.NewTimer(time.Until(v.acceptedAt.Add(next)))
	defer t.Stop()
	select {
	case <-v.done:
		v.done = nil
	case <-s.Done():
	case <-t.C:
		if len(v.delays) == 0 {
			return wire.Errorf(spec.CodeInternal, "server %q: %s; it still wants that %v after the user agreed to it: finish the visit, then make the call again",
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
