package back

import (
	"context"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

const (
	// holdTimeout bounds how long an input waits until it is clear whose it is.
	holdTimeout = 10 * time.Second
	// burstWindow is how long after a call's input another may have come in the same
	// burst. After that the server is taken to wait for the answer.
	burstWindow = 20 * time.Millisecond
	// cancelGrace is how long after its cancellation a call's server may still ask on
	// behalf of it.
	cancelGrace = 250 * time.Millisecond
)

// findCandidatesLocked finds the calls that p may belong to: the one on whose stream it
// came or whose task it names, else those that run and may be asked. roots/list is not
// about a call: any will do.
//
// A server that asks twice in one burst asks the second time for a call that waits
// already. So a waiting call counts until its inputs have settled, and where nothing runs
// at all.
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
	p.cancelledRecently = in.cancelling > 0 || time.Now().Before(in.cancelledUntil)
	if len(running)+len(parked) > 0 && in.s.Attributes() {
		in.onAmbiguous() // its streams don't tell: from now on calls queue for lanes
	}
}

// attributedLocked returns the call that p belongs to, nil for none, and whether that is told
// at all.
func (in *inputs) attributedLocked(p *pendingInput, from *call) (*call, bool) {
	if t, c := in.tasks.Find(p.task); t != nil {
		return c, true
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

// runningAndParked returns the calls whose inputs can't be told apart, oldest first: those that may
// have asked for one which came at a time, and the others, which wait.
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

// checkCandidates says why p can't be put to anybody, whosever it may be.
func (in *inputs) checkCandidates(p *pendingInput) error {
	switch {
	case len(p.candidates) == 0:
		return wire.Errorf(spec.CodeInvalidRequest,
			"%s: no call is under way that the question could belong to; mcpbridge can ask a client only while it runs one", p.m.Method)
	case p.cancelledRecently:
		return in.refuseCancelled(p)
	}
	// All calls of a session are of one profile.
	if need := mcp.MissingCapability(p.candidates[0].capabilities(), p.m.Method, p.m.Params); need != nil {
		return p.undeclared(need)
	}
	return nil
}

// refuseCancelled is why p is refused that may be a cancelled call's.
func (in *inputs) refuseCancelled(p *pendingInput) error {
	in.s.Drop("ambiguous question")
	return wire.Errorf(spec.CodeInternal, "%s: a call was cancelled that the question may belong to; ask again", p.m.Method)
}

// attribute returns the call that p belongs to, parked. With several candidates it waits
// until one is left: the others have ended, or wait for their own clients' answers.
func (in *inputs) attribute(ctx context.Context, p *pendingInput) (*call, error) {
	timeout := time.NewTimer(holdTimeout)
	defer timeout.Stop()
	for {
		changed := in.changed.changed()
		owner, left, orphaned := in.ownerOf(p)
		switch {
		case owner != nil:
			return owner, nil
		case orphaned:
			return nil, in.refuseCancelled(p)
		case left == 0:
			return nil, wire.Errorf(spec.CodeInvalidRequest, "%s: the calls that the question could belong to have ended", p.m.Method)
		}
		select {
		case <-changed:
		case <-timeout.C:
			in.s.Drop("ambiguous question")
			in.s.log.Warn("question refused: it may belong to several calls", "method", p.m.Method, "calls", left)
			return nil, wire.Errorf(spec.CodeInternal, "%s: %d calls are under way and nothing tells which one asks; run them one at a time", p.m.Method, left)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ownerOf looks at the candidates of p and returns the one that is left, parked, or nil and
// how many are. orphaned says that one was cancelled: its server may have asked before it
// knew.
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

// assignLocked parks the call that p belongs to, if its caller is going to be asked. The
// caller of a call that runs may be asked for its roots, and who waits for them is not
// known.
func (in *inputs) assignLocked(p *pendingInput, c *call) {
	p.blocking = p.attributed || !p.isRoots()
	switch {
	case !c.mayBeAsked: // it is about roots, and c one that they were another client's for
	case mcp.MissingCapability(c.capabilities(), p.m.Method, p.m.Params) != nil:
	case p.isRoots() && in.s.opts.Roots != nil:
	case c.park(p.blocking, p.receivedAt):
		p.parked, p.call = true, c
		in.changed.fire()
	}
}

// freeLaneAfterBurst frees the lane of a call whose caller is asked, at once or when its
// server has had the time to ask all it has to ask in the same burst. An answer before that
// lets the call keep it: keep is called then.
func (c *call) freeLaneAfterBurst(p *pendingInput) (keep func() bool) {
	if p.attributed {
		c.freeLane()
		return func() bool { return false }
	}
	return time.AfterFunc(burstWindow-time.Since(p.receivedAt), c.freeLane).Stop
}

func (in *inputs) unpark(p *pendingInput) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.unparkLocked(p)
}

// unparkLocked marks the call of p as running, once.
func (in *inputs) unparkLocked(p *pendingInput) {
	if p.call != nil {
		p.call.unpark(p.blocking)
		p.call = nil
		in.changed.fire()
	}
}

// beginCancel says that c is being cancelled: until endCancel, its server may still ask on
// behalf of c.
func (in *inputs) beginCancel(c *call) {
	if !c.mayBeAsked {
		return
	}
	c.orphaned.Store(true)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancelling++
}

// endCancel says that the server was told of the cancellation of c, and opens a grace
// period in which it may not know yet.
func (in *inputs) endCancel(c *call) {
	if !c.mayBeAsked {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancelling--
	in.cancelledUntil = time.Now().Add(cancelGrace)
}
