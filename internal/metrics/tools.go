package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// tools are the names of tools that are labels. They are bounded, because clients and servers
// can invent any number, and each is kept for the life of the process (CWE-770).
type tools struct {
	most int64
	all  atomic.Pointer[map[string]bool]
	mu   sync.Mutex // is held while all is replaced
}

// NameTools has the metrics name up to most tools. Zero means none.
func (m *Metrics) NameTools(most int) { atomic.StoreInt64(&m.requests.tools.most, int64(most)) }

// toolOf returns the label of the tool of a request, empty if it has none. A tool becomes one
// when it has answered: names of tools that do not exist are none.
func (m *Metrics) toolOf(s *mcp.Served) string {
	t := &m.requests.tools
	most := atomic.LoadInt64(&t.most)
	if s.Tool == "" || most == 0 {
		return ""
	}
	if all := t.all.Load(); all != nil && (*all)[s.Tool] {
		return s.Tool
	}
	if s.Outcome != "ok" && s.Outcome != "tool_error" {
		return Other
	}
	if !t.add(s.Tool, int(most)) {
		m.Limit(s.Server, limits.MetricTools.Key)
		return Other
	}
	return s.Tool
}

// add reports false if there is no room for another tool.
func (t *tools) add(name string, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[string]bool{strings.Clone(name): true}
	if all := t.all.Load(); all != nil {
		maps.Copy(next, *all)
	}
	if len(next) > most {
		return false
	}
	t.all.Store(&next)
	return true
}
