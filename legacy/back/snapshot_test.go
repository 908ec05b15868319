package back

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A Snapshot is what a Back tells people and pages of its server.
type Snapshot struct {
	Server   string
	State    upstream.State
	Err      string // why it is down; empty otherwise
	Sessions int    // open
	// Description is the server's account of itself; nil if it was never reached.
	Description *mcp.Description
}

// Snapshot returns the state of the server at this moment.
func (b *Back) Snapshot() Snapshot {
	state, err := b.availability.State()
	snap := Snapshot{Server: b.opts.Name, State: state, Sessions: len(b.pool.Sessions(""))}
	if err != nil {
		snap.Err = transport.Cause(err).Error()
	}
	snap.Description = b.known.Get(b.probeProfile().Scope)
	return snap
}
