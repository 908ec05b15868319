package legacytest

import (
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Patience bounds the wait for what must come over a real socket: a busy machine may
// take seconds.
const Patience = 30 * time.Second

// Eventually waits for something that another goroutine over a real socket does.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for: %s", Patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// Metrics counts what a front dropped or refused.
type Metrics struct {
	mcp.NoMetrics

	mu sync.Mutex
	n  map[string]int
}

// Dropped counts a message that reached nobody.
func (m *Metrics) Dropped(_, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n == nil {
		m.n = make(map[string]int)
	}
	m.n[reason]++
}

// Limit counts what was refused at a limit.
func (m *Metrics) Limit(_, name string) { m.Dropped("", "limit "+name) }

// Drops returns how often something was dropped for reason.
func (m *Metrics) Drops(reason string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n[reason]
}
