package backtest

import (
	"github.com/mcpbridge/mcpbridge/internal/dev/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Metrics counts what a back or a front has dropped, by its name, and what it has refused or delayed
// at a limit: "limit " and that, and clients that have lost state: "lost " and the cause.
type Metrics struct {
	mcp.NoMetrics
	bridgetest.Counts
}

// Dropped implements [mcp.Metrics].
func (m *Metrics) Dropped(_, what string) { m.Add(what) }

// StateLost implements [mcp.Metrics].
func (m *Metrics) StateLost(_, cause string, clients int) {
	for range clients {
		m.Add("lost " + cause)
	}
}

// Limit implements [mcp.Metrics].
func (m *Metrics) Limit(_, name string) { m.Add("limit " + name) }
