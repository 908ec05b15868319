package back

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// probeProfile returns a profile that no client has.
func (b *Back) probeProfile() mcp.Profile {
	return mcp.Profile{Scope: b.opts.Name + "/probe", Single: true}
}

// Describe implements [mcp.Describer] with the response to initialize. It waits for a
// server that is starting. If the server is known to be down and there is an earlier
// description, it does not wait.
func (b *Back) Describe(ctx context.Context, req *mcp.Request) (*mcp.Description, error) {
	if ctx.Err() != nil {
		if d := b.known.Get(req.Profile.Scope); d != nil {
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

// describedByRelay returns the description that a command gave in a relayed session of the
// same principal, if otherwise a process would have to be started; else nil.
func (b *Back) describedByRelay(req *mcp.Request) *mcp.Description {
	if b.opts.Launcher == nil || b.opts.Launcher.HasKept() || len(b.sessions(req.Profile.Scope)) > 0 {
		return nil
	}
	if r := b.relays.Get(req.Principal); r != nil && r.Link().Alive() {
		return b.describeRelayed(r)
	}
	return nil
}

// describeContext bounds the wait for a server that is known to be down if there is an
// earlier description.
func (b *Back) describeContext(ctx context.Context, p mcp.Profile) (context.Context, context.CancelFunc) {
	if state, _ := b.availability.State(); state == upstream.Down && b.lastDescription(p) != nil {
		return context.WithTimeout(ctx, upstream.MaxWait)
	}
	return ctx, func() {}
}

// lastDescription returns the last description for a profile, or for the gateway; nil if
// there is none.
func (b *Back) lastDescription(p mcp.Profile) *mcp.Description {
	if d := b.known.Get(p.Scope); d != nil {
		return d
	}
	return b.known.Get(b.probeProfile().Scope)
}

// remember stores and returns the description that a scope's session got. Other scopes
// never get it, because it may depend on the client.
func (b *Back) remember(scope string, s *session) *mcp.Description {
	d := s.describe(&b.opts)
	b.known.Put(scope, d)
	return d
}
