package router

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// followed is a server as the hub knows it.
type followed struct{ s *server }

// Name implements [hub.Server].
func (f followed) Name() string { return f.s.name }

// Scope implements [hub.Server].
func (f followed) Scope() string { return f.s.profiles.scope }

// Reason implements [hub.Server].
func (f followed) Reason() error { return f.s.life.Reason() }

// ForClient implements [hub.Server].
func (f followed) ForClient(err error) error { return f.s.forClient(err) }

// Watch implements [mcp.Source].
func (f followed) Watch(ctx context.Context, p mcp.Profile, want []fanout.Topic) ([]fanout.Topic, func(), error) {
	if shared := f.s.together.source; shared != nil {
		return shared.Watch(ctx, p, want)
	}
	return f.s.back.Watch(ctx, p, want)
}
