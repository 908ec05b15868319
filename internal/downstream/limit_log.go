package downstream

import (
	"log/slog"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// A LimitLog counts what a client is refused because of a limit. For each limit it logs one
// line in ten seconds at most, with how many there were, since clients may cause any number
// (CWE-779). Safe for concurrent use.
type LimitLog struct {
	server  string // empty for what is no server's
	metrics mcp.Metrics
	log     *slog.Logger

	// mu guards lines, and is held for map work only.
	mu    sync.Mutex
	lines map[string]*transport.WarnLimiter // by limit, of which there are few
}

// NewLimitLog returns a LimitLog of a server, for lines of log.
func NewLimitLog(server string, metrics mcp.Metrics, log *slog.Logger) *LimitLog {
	return &LimitLog{server: server, metrics: metrics, log: log, lines: make(map[string]*transport.WarnLimiter)}
}

// Hit takes what was refused because of the limit of a name, and the line about it.
func (l *LimitLog) Hit(limit, msg string, args ...any) {
	l.metrics.Limit(l.server, limit)
	l.mu.Lock()
	line, ok := l.lines[limit]
	if !ok {
		line = new(transport.WarnLimiter)
		l.lines[limit] = line
	}
	l.mu.Unlock()
	line.Warn(l.log, msg, args...)
}
