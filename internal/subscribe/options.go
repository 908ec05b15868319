package subscribe

import (
	"log/slog"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/backoff"
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

const (
	// DefaultLinger is how long a topic is kept after the last who wanted it has left.
	DefaultLinger = 2 * time.Second
	// Patience is how long a Watch waits: what is not answered by then is left out of
	// the acknowledgment.
	Patience = 10 * time.Second
)

// Metrics counts, by the upstream's name, what was left out.
type Metrics interface {
	// Dropped counts a change that reaches nobody.
	Dropped(upstream, what string)
	// Limit counts what a limit, which has that name, put off or refused.
	Limit(upstream, name string)
}

// Options describe one upstream to its books. What has no default is required.
type Options struct {
	Name    string      // the upstream's, as people know it
	Changes mcp.Changes // is told of changes
	Metrics Metrics
	Logger  *slog.Logger

	// Subresources says what becomes of an update below a topic. Empty means
	// [fanout.SubresourcesParent].
	Subresources fanout.Subresources
	// Rate is how much one share may ask for, as [AllowanceOptions] has it.
	Rate int
	// Linger is how long a topic is kept after the last who wanted it has left. Zero
	// means DefaultLinger.
	Linger time.Duration
	Retry  backoff.Backoff // the pauses before another try
}
