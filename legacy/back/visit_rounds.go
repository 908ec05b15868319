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
	// visitTimeout bounds how long after the user's word a call is sent again while
	// the server still demands the same visits.
	visitTimeout = 45 * time.Second
	// maxVisits bounds how often one call can ask for visits.
	maxVisits = 8
)

// visitRetries are the moments after the user's word at which a call is sent again
// to a server that has not said that the visit is done: many never do.
var visitRetries = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second}

// visitRounds is what one client's call has been told to visit, over the attempts
// that it takes. Its owner calls end. The zero value is a call that was told of
// none.
type visitRounds struct {
	lane int // of the last session that demanded visits; later attempts prefer it

	// held are the sessions that demanded visits, the last one last. They are kept:
	// the visit may be the session's, and the server says there that it is done.
	held []heldSession

	asked   int             // how often the user was
	demand  []visit         // the last
	watch   *visitWatch     // of demand
	done    <-chan struct{} // the watch's, until that was heeded
	agreed  time.Time       // when the user said that it will visit them
	retries []time.Duration // those of visitRetries still to come
}

type heldSession struct {
	*session
	release func()
}

// session returns the last one that demanded visits if it is alive, else nil.
func (v *visitRounds) session() *session {
	if len(v.held) == 0 || !v.held[len(v.held)-1].Alive() {
		return nil
	}
	return v.held[len(v.held)-1].session
}

// hold keeps a session that demanded visits; release gives it back.
func (v *visitRounds) hold(s *session, lane int, release func()) {
	v.lane = lane
	h := heldSession{s, release}
	if i := slices.IndexFunc(v.held, func(h heldSession) bool { return h.session == s }); i >= 0 {
		release()
		h = v.held[i]
		v.held = slices.Delete(v.held, i, i+1)
	}
	v.held = append(v.held, h)
	if v.watch != nil {
		s.visits.add(v.watch)
	}
}

func (v *visitRounds) end() {
	for _, h := range v.held {
		h.visits.remove(v.watch)
		h.release()
	}
}

// meet does what a demand takes: nil means that the call is to be sent anew. The
// user is asked, or, if it has agreed to that very visit, given some time.
func (v *visitRounds) meet(ctx context.Context, req *mcp.Request, x mcp.Caller, e *wire.Error) error {
	s, all := v.held[len(v.held)-1].session, visits(e)
	switch {
	case !mcp.Declares(wire.Get(req.Profile.Capabilities, "elicitation"), "url"):
		return lacking([]byte(`{"elicitation":{"url":{}}}`), e.Message)
	case len(all) == 0:
		return upstreamError(req, e, true)
	case v.asked > 0 && sameVisits(all, v.demand):
		return v.await(ctx, s, e)
	case v.asked == maxVisits:
		return wire.Errorf(spec.CodeInternal, "server %q wants a URL visited for the %dth time", s.opts.Name, maxVisits+1)
	}
	v.asked++
	v.expect(all)
	if err := askForVisits(ctx, s.opts.Name, x, all, e); err != nil {
		return err
	}
	v.agreed, v.retries = time.Now(), visitRetries
	select {
	case <-v.done: // before the user's word: the call that is sent at once tells
		v.done = nil
	default:
	}
	return nil
}

// expect has all sessions tell when the visits of a new demand are done.
func (v *visitRounds) expect(all []visit) {
	former := v.watch
	v.demand, v.watch = all, newVisitWatch(all)
	v.done = v.watch.done
	for _, h := range v.held {
		h.visits.remove(former)
		h.visits.add(v.watch)
	}
}

// askForVisits has the caller's user say that it goes where the server wants.
func askForVisits(ctx context.Context, server string, x mcp.Caller, all []visit, e *wire.Error) error {
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

// await returns nil when the call is to be sent again: the server has said that the
// visits are done, or lost the session, or it is time to see whether it is content.
func (v *visitRounds) await(ctx context.Context, s *session, e *wire.Error) error {
	next := visitTimeout
	if len(v.retries) > 0 {
		next = v.retries[0]
	}
	t := time.NewTimer(time.Until(v.agreed.Add(next)))
	defer t.Stop()
	select {
	case <-v.done:
		v.done = nil
	case <-s.Done():
	case <-t.C:
		if len(v.retries) == 0 {
			return wire.Errorf(spec.CodeInternal, "server %q: %s; it still wants that %v after the user agreed to it: finish the visit, then make the call again",
				s.opts.Name, e.Message, visitTimeout)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for len(v.retries) > 0 && time.Since(v.agreed) >= v.retries[0] {
		v.retries = v.retries[1:]
	}
	return nil
}
