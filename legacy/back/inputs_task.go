package back

import (
	"context"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wake"
	"github.com/mcpbridge/mcpbridge/legacy/link"
)

// creates notes that the server may be making a task of a call: input requests that name a task
// which is not known wait until it is. The returned function says that it is; it may be called
// again.
func (in *inputs) creates() (known func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.creating++
	return sync.OnceFunc(func() {
		in.mu.Lock()
		in.creating--
		in.mu.Unlock()
		in.changed.Fire()
	})
}

// placeLocked finds out to whom p belongs: a task that a client holds, or calls. It returns the call
// if there is only one.
func (in *inputs) placeLocked(p *pendingInput) *call {
	host := in.tasks.Find(p.task)
	if host != nil && host.held != nil {
		p.held = host.held
	}
	switch {
	case host != nil && host.call == nil && host.aside != nil && !p.isRoots():
		p.aside = host.aside
		fallthrough
	case p.held != nil:
		p.attributed = true
		return nil
	case host == nil && p.task != "" && in.creating > 0:
		p.early = true
		return nil
	}
	in.findCandidatesLocked(p, p.from)
	if len(p.candidates) != 1 || p.cancelledRecently {
		return nil
	}
	in.assignLocked(p, p.candidates[0])
	return p.candidates[0]
}

// awaitTask waits until the task that p names is known, or none is being made any more, and returns
// what placeLocked does then.
func (in *inputs) awaitTask(ctx context.Context, p *pendingInput) *call {
	bounded, cancel := context.WithTimeout(ctx, holdTimeout)
	defer cancel()
	for {
		changed := in.changed.Changed()
		if c, settled := in.placeAgain(p, bounded.Err() != nil); settled {
			return c
		}
		_ = wake.Await(bounded, changed) // its end is noticed above
	}
}

// placeAgain is placeLocked for an input request that came before its task was known. It reports
// whether that is so still; at the latest it is not.
func (in *inputs) placeAgain(p *pendingInput, latest bool) (c *call, settled bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !latest && in.creating > 0 && in.tasks.Find(p.task) == nil {
		return nil, false
	}
	p.early = false
	if latest {
		in.findCandidatesLocked(p, p.from)
		return nil, true
	}
	return in.placeLocked(p), true
}

// askHeld asks the client that holds the task of p, at its next look.
func (in *inputs) askHeld(ctx context.Context, p *pendingInput) (mcp.InputResponse, error) {
	capabilities := p.held.Capabilities()
	p.task = p.held.ID() // the server gets it back, named or not
	need := mcp.MissingCapability(capabilities, p.m.Method, p.m.Params)
	switch {
	case p.isRoots() && (len(in.s.opts.Settings.Roots) > 0 || need != nil):
		return in.answerRoots(ctx, p, nil)
	case need != nil:
		p.held.Refuse(need)
		return mcp.InputResponse{}, p.undeclared(need)
	}
	a, err := p.held.Ask(ctx, mcp.InputRequest{Method: p.m.Method, Params: link.InputParams(capabilities, p.m.Params), Revision: in.server.revision})
	if err != nil {
		return a, err
	}
	return link.InputResponse(in.server.revision, p.m.Method, a), nil
}

// askAside asks the client that holds the server's own task of p, outside of its requests.
func (in *inputs) askAside(ctx context.Context, p *pendingInput) (mcp.InputResponse, error) {
	answers, err := p.aside.RequestInput(ctx, []mcp.InputRequest{{Method: p.m.Method, Params: p.m.Params, Revision: in.server.revision}})
	if err != nil {
		return mcp.InputResponse{}, err
	}
	return answers[0], nil
}
