package router

import (
	"github.com/mcpbridge/mcpbridge/internal/budget"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// memoryUsedUp begins the error and the log line.
const memoryUsedUp = "the memory for clients' messages is used up"

// A clientMemory is the memory for the clients of one server. It is an [mcp.Memory].
type clientMemory struct {
	g      *Gateway
	limits *downstream.LimitLog
}

// Account implements [mcp.Memory].
func (m *clientMemory) Account(share mcp.Share) *budget.Account {
	if a := m.g.budget.Find(share); a != nil {
		return a
	}
	return m.g.budget.Account(share)
}

// Refuse implements [mcp.Memory].
func (m *clientMemory) Refuse() error {
	m.limits.Hit(limits.Memory.Key, "request refused: "+memoryUsedUp, "limit", m.g.now().opts.memory())
	return &mcp.Refusal{Later: true, Err: wire.Errorf(spec.CodeInternal, memoryUsedUp+"; try again in a moment, or %s", limits.Memory.Raise())}
}
