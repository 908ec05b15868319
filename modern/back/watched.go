package back

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/modern/watch"
)

// A watched is a listen stream as the profile's watch uses it.
type watched struct{ listenStream }

func (s watched) Honored() mcp.Filter         { return s.honored() }
func (s watched) Next() (fanout.Event, error) { return s.next() }
func (s watched) Close()                      { s.close() }

// openWatched is openListen for a watch.
func (b *Back) openWatched(ctx context.Context, p mcp.Profile, want mcp.Filter) (watch.Stream, error) {
	s, err := b.openListen(ctx, p, want)
	if err != nil {
		return nil, err
	}
	return watched{s}, nil
}
