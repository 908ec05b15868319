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

// Account implements [mcp.Memory].
func (s *server) Account(share mcp.Share) *budget.Account { return s.g.budget.Account(share) }

// Refuse implements [mcp.Memory].
func (s *server) Refuse() error {
	s.g.opts.Metrics.Limit(s.name, limits.Memory.Key)
	s.g.opts.Logger.Warn("no room: "+memoryUsedUp, "upstream", s.name, "limit", s.g.opts.Memory)
	return &mcp.Refusal{Later: true, Err: wire.Errorf(spec.CodeInternal, memoryUsedUp+"; try again in a moment, or %s", limits.Memory.Raise())}
}
