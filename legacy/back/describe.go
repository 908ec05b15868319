package back

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// probeProfile is a profile that no client has.
func (b *Back) probeProfile() mcp.Profile {
	return mcp.Profile{Scope: b.opts.Name + "/probe", Single: true}
}

// Describe implements [mcp.Describer]: it tells what the server answered to
// initialize. It waits for a server that starts as long as opening a session may take,
// and for one that is known to be away not at all if there is an answer of earlier.
func (b *Back) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	if ctx.Err() != nil {
		if d := b.known.get(req.Profile.Scope); d != nil {
			return d, nil
		}
		return nil, context.Cause(ctx)
	}
	if d := b.describedByRelay(req); d != nil {
		return d, nil
	}
	wait, cancel := b.describeContext(ctx, req.Profile)
	defer cancel()
	s, release, err := b.session(wait, req.Profile, req.Profile.Single)
	if err == nil {
		defer release()
		return b.remember(req.Profile.Scope, s), nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if d := b.lastDescription(req.Profile); d != nil && !errors.Is(err, mcp.ErrOtherEra) {
		return d, nil
	}
	return nil, b.clientError(spec.MethodDiscover, err)
}

// describedByRelay returns what a command said of itself in a session that is linked for the
// same principal, if a process would have to be started to ask; else nil.
func (b *Back) describedByRelay(req *mcp.Request) *mcp.Description {
	if b.opts.Launcher == nil || b.opts.Launcher.HasKept() || len(b.sessions(req.Profile.Scope)) > 0 {
		return nil
	}
	r := b.relays.get(req.Principal)
	if r == nil || !r.Link().Alive() {
		return nil
	}
	return b.describeRelayed(r)
}

// describeContext bounds the wait for a server that is known to be away, where there is
// something to tell all the same.
func (b *Back) describeContext(ctx context.Context, p mcp.Profile) (context.Context, context.CancelFunc) {
	if state, _ := b.availability.State(); state == upstream.Down && b.lastDescription(p) != nil {
		return context.WithTimeout(ctx, upstream.MaxWait)
	}
	return ctx, func() {}
}

// lastDescription returns what the server said of itself last to a profile, or to the gateway;
// nil if nothing.
func (b *Back) lastDescription(p mcp.Profile) *mcp.Description {
	if d := b.known.get(p.Scope); d != nil {
		return d
	}
	return b.known.get(b.probeProfile().Scope)
}

// remember keeps and returns what a scope's session tells of the server. A scope is never
// told what another's session said: it may depend on who asked.
func (b *Back) remember(scope string, s *session) *mcp.Description {
	d := s.describe(&b.opts)
	b.known.put(scope, d)
	return d
}
