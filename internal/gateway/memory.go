package gateway

import (
	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// profileOwner is the owner of the account that profiles are paid from.
type profileOwner struct{}

// memoryUsedUp is what clients are told, and the log.
const memoryUsedUp = "the memory for clients' messages is used up"

// A clientMemory is what the clients of one server have kept. It is an [mcp.Memory].
type clientMemory struct {
	g      *Gateway
	server string
}

// Account implements [mcp.Memory].
func (m *clientMemory) Account(share mcp.Share) *budget.Account { return m.g.budget.Account(share) }

// Refuse implements [mcp.Memory].
func (m *clientMemory) Refuse() error {
	m.g.opts.Metrics.Limit(m.server, limits.Memory.Key)
	m.g.opts.Logger.Warn("no room: "+memoryUsedUp, "upstream", m.server, "limit", m.g.opts.Memory)
	return &mcp.Refusal{Later: true, Err: wire.Errorf(spec.CodeInternal, memoryUsedUp+"; try again in a moment, or %s", limits.Memory.Raise())}
}
