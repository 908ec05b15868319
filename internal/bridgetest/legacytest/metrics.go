package legacytest

import (
	"github.com/mcpbridge/mcpbridge/internal/bridgetest"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Metrics counts what a front dropped or refused.
type Metrics struct {
	mcp.NoMetrics
	counts bridgetest.Counts
}

// Dropped counts a message that reached nobody.
func (m *Metrics) Dropped(_, reason string) { m.counts.Add(reason) }

// Limit counts what was refused at a limit.
func (m *Metrics) Limit(_, name string) { m.counts.Add("limit " + name) }

// Drops returns how often something was dropped for reason.
func (m *Metrics) Drops(reason string) int { return m.counts.Count(reason) }
