package back

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// holdTimeout bounds how long an input request waits until its call is known.
	holdTimeout = 10 * time.Second
	// burstWindow is how long after an input request of a call another one may arrive in
	// the same burst. After that, the server is assumed to wait for the response.
	burstWindow = 20 * time.Millisecond
	// cancelGrace is how long after it has read the cancellation of a call the server may
	// still request input for it.
	cancelGrace = 250 * time.Millisecond
)

// findCandidatesLocked finds the calls that p may belong to: the call on whose stream it
// arrived or whose task it names, or else all running calls that may request input.
// roots/list belongs to no particular call, so any will do.
//
// A server that sends two input requests in one burst sends the second for a call that is
// already parked. So a parked call is a candidate until its burst is over, and if no call
// is running.
func (in *inputs) findCandidatesLocked(p *pendingInput, from *call) {
	if c, told := in.attributedLocked(p, from); told {
		p.attributed = true
		switch {
		case c != nil:
			p.candidates = []*call{c}
		case p.isRoots() && !p.announced:
			in.roots.noteProvisional(p)
		}
		return
	}
	running, parked := in.runningAndParked(p.receivedAt)
	if len(running) == 0 && (len(parked) == 1 || p.isRoots()) {
		running = parked
	}
	if p.isRoots() {
		p.candidates = running[:min(1, len(running))]
		if len(running) == 0 {
			in.roots.noteProvisional(p)
		}
		return
	}
	p.candidates = running
	p.cancelledRecently = in.cancelling > 0
	if len(running)+len(parked) > 0 && in.s.Attributes() {
		in.onAmbiguous() // its streams don't tell the call: from now on calls wait for lanes
	}
}

// attributedLocked returns the call that p is known to belong to, nil for none, and
// whether it is known.
func (in *inputs) attributedLocked(p *pendingInput, from *call) (*call, bool) {
	if host := in.tasks.Find(p.task); host != nil {
		return host.call, true
	}
	if p.isRoots() {
		if c, told := in.roots.attribute(p); told {
			return c, true
		}
	}
	if from != nil && from.mayBeAsked {
		return from, true
	}
	return nil, from != nil
}

// runningAndParked returns the calls whose input requests can't be distinguished, oldest first: those
// that may have sent an input request which arrived at the given time, and those that are parked.
func (in *inputs) runningAndParked(came time.Time) (running, parked []*call) {
	in.s.Calls.Each(func(w *upstream.Call) {
		switch c := clientCall(w); {
		case c == nil:
		case c.mayHaveAsked(came):
			running = append(running, c)
		case c.stage() == stageParked:
			parked = append(parked, c)
		}
	})
	byID := func(a, b *call) int { return int(a.ID - b.ID) }
	slices.SortFunc(running, byID)
	slices.SortFunc(parked, byID)
	return running, parked
}

// checkCandidates returns an error if p can't be passed to a client, whichever candidate it belongs to.
func (in *inputs) checkCandidates(p *pendingInput) error {
	switch {
	case len(p.candidates) == 0:
		return wire.Errorf(spec.CodeInvalidRequest,
			"%s: there is no call that the request could belong to; mcpbridge can forward it to a client only during a call", p.m.Method)
	case p.cancelledRecently:
		return in.refuseCancelled(p)
	}
	// All calls of a session are of one profile.
	if need := mcp.MissingCapability(p.candidates[0].capabilities(), p.m.Method, p.m.Params); need != nil {
		return p.undeclared(need)
	}
	return nil
}

// refuseCancelled returns the error for an input request that may belong to a cancelled call.
func (in *inputs) refuseCancelled(p *pendingInput) error {
	in.s.Drop("ambiguous question")
	return wire.Errorf(spec.CodeInternal, "%s: the request may belong to a call that was just cancelled; send it again", p.m.Method)
}

// attribute returns the call that p belongs to, parked. If there are several candidates,
// it waits until one is left: the others have ended or are parked.
func (in *inputs) attribute(ctx context.Context, p *pendingInput) (*call, error) {
	timeout := time.NewTimer(holdTimeout)
	defer timeout.Stop()
	for {
		changed := in.changed.Changed()
		owner, left, orphaned := in.ownerOf(p)
		switch {
		case owner != nil:
			return owner, nil
		case orphaned:
			return nil, in.refuseCancelled(p)
		case left == 0:
			return nil, wire.Errorf(spec.CodeInvalidRequest, "%s: the calls that the request could belong to have ended", p.m.Method)
		}
		select {
		case <-changed:
		case <-timeout.C:
			in.s.Drop("ambiguous question")
			in.s.log.Warn("input request refused: it may belong to several calls", "method", p.m.Method, "calls", left)
			return nil, wire.Errorf(spec.CodeInternal, "%s: %d calls are in flight, and nothing tells which one the request belongs to; run them one at a time", p.m.Method, left)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ownerOf returns the only candidate of p that is left, parked, or nil and the number of candidates.
// orphaned reports that one was cancelled: the server may have sent p before it knew.
func (in *inputs) ownerOf(p *pendingInput) (owner *call, left int, orphaned bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, c := range p.candidates {
		switch {
		case c.orphaned.Load():
			return nil, 0, true
		case c.mayHaveAsked(p.receivedAt):
			left++
			owner = c
		}
	}
	if left != 1 {
		return nil, left, false
	}
	in.assignLocked(p, owner)
	return owner, left, false
}

// assignLocked parks the call that p belongs to, if its client will be asked. For
// roots/list the call is any running one, so it is unknown which call waits.
func (in *inputs) assignLocked(p *pendingInput, c *call) {
	p.blocking = p.attributed || !p.isRoots()
	switch {
	case !c.mayBeAsked: // roots/list, because the server has the roots of another client than c's
	case mcp.MissingCapability(c.capabilities(), p.m.Method, p.m.Params) != nil:
	case p.isRoots() && len(in.s.opts.Settings.Roots) > 0:
	case c.park(p.blocking, p.receivedAt):
		p.parked, p.call = true, c
		in.changed.Fire()
	}
}

// freeLaneAfterBurst frees the lane of a parked call: at once, or when its server has had
// the time to send all input requests of the same burst. If the responses arrive earlier,
// the caller calls keep, and the call keeps its lane.
func (c *call) freeLaneAfterBurst(p *pendingInput) (keep func() bool) {
	if p.attributed {
		c.leaveLane()
		return func() bool { return false }
	}
	return time.AfterFunc(wake.Positive(burstWindow-time.Since(p.receivedAt)), c.leaveLane).Stop
}

func (in *inputs) unpark(p *pendingInput) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.unparkLocked(p)
}

// unparkLocked marks the call of p as running. It may be called again.
func (in *inputs) unparkLocked(p *pendingInput) {
	if p.call != nil {
		p.call.unpark(p.blocking)
		p.call = nil
		in.changed.Fire()
	}
}

// beginCancel records that c is being cancelled. Until endCancel, the server may still
// request input for c; see [session.leave].
func (in *inputs) beginCancel(c *call) {
	if !c.mayBeAsked {
		return
	}
	in.s.Calls.ExpectLate(&c.Call)
	c.orphaned.Store(true)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancelling++
}

// endCancel records that the server has nothing more to say of a cancelled call.
func (in *inputs) endCancel() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancelling--
}
