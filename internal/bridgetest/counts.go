package bridgetest

import (
	"context"
	"log/slog"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Counts counts things by name. The zero Counts is ready for use. Safe for concurrent use.
type Counts struct {
	mu sync.Mutex
	n  map[string]int
}

// Add counts one.
func (c *Counts) Add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[name]++
}

// Count returns how many there were.
func (c *Counts) Count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// Metrics counts what a back has dropped, by its name, and what it has refused or delayed
// at a limit: "limit " and that.
type Metrics struct {
	mcp.NoMetrics
	Counts
}

// Dropped implements [mcp.Metrics].
func (m *Metrics) Dropped(_, what string) { m.Add(what) }

// Limit implements [mcp.Metrics].
func (m *Metrics) Limit(_, name string) { m.Add("limit " + name) }

// Logs is a [slog.Handler] that counts records by their message.
type Logs struct {
	slog.Handler
	Counts
}

// Enabled implements [slog.Handler].
func (l *Logs) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements [slog.Handler].
func (l *Logs) WithAttrs([]slog.Attr) slog.Handler { return l }

// Handle implements [slog.Handler].
func (l *Logs) Handle(_ context.Context, r slog.Record) error {
	l.Add(r.Message)
	return nil
}
