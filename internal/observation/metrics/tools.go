package metrics

import (
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// tools are the names of tools that are labels. They are bounded, because clients and servers
// can invent any number, and each is kept for the life of the process (CWE-770).
type tools struct {
	most int64
	log  *slog.Logger
	all  atomic.Pointer[map[string]bool]
	mu   sync.Mutex // is held while all is replaced
	full transport.WarnLimiter
}

// NameTools has the metrics name up to most tools; zero means none. It is called before there
// are requests. log is told that there are more tools, or more
// clients than have rates of their own.
func (m *Metrics) NameTools(most int, log *slog.Logger) {
	m.requests.tools.most, m.requests.tools.log, m.requests.rates.log = int64(most), log, log
}

// toolOf returns the label of the tool of a request, empty if it has none. A tool becomes one
// when it has answered: names of tools that do not exist are none.
func (m *Metrics) toolOf(s *mcp.Served) string {
	t := &m.requests.tools
	if s.Tool == "" || t.most == 0 {
		return ""
	}
	if all := t.all.Load(); all != nil && (*all)[s.Tool] {
		return s.Tool
	}
	if s.Outcome != "ok" && s.Outcome != "tool_error" {
		return Other
	}
	if !t.add(s.Tool) {
		m.Limit(s.Server, limits.MetricTools.Key)
		t.full.Warn(t.log, "tool is called other in metrics: the number of tools with a name there is reached; "+limits.MetricTools.Raise()+" if these are to have one, too", "upstream", s.Server, "limit", t.most)
		return Other
	}
	return s.Tool
}

// add reports false if there is no room for another tool.
func (t *tools) add(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[string]bool{}
	if all := t.all.Load(); all != nil {
		if int64(len(*all)) >= t.most {
			return (*all)[name] // somebody else may have added it
		}
		maps.Copy(next, *all)
	}
	next[strings.Clone(name)] = true
	t.all.Store(&next)
	return true
}
