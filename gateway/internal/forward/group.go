package forward

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/sockets"
	"github.com/mcpbridge/mcpbridge/internal/downstream"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// Options configure a Group. All are required but Handovers.
type Options struct {
	Peers *peer.Group
	// Claims are those of the engine of Peers, or what shares them with others.
	Claims Claims
	// Sockets has the WebSockets of clients, also of those that other replicas serve.
	Sockets *sockets.Set
	// Streams ends when the streams of all servers are to end.
	Streams context.Context
	// Timeouts returns how long a write to a client may take, and how often clients are
	// pinged. Zero means the defaults of those who do it here.
	Timeouts  func() (write, keepAlive time.Duration)
	Handovers handover.Metrics // nil counts nothing
	Logger    *slog.Logger
	Metrics   mcp.Metrics
}

// A Group is what all servers of a gateway have together with other replicas to find out where
// a request is answered. It is safe for concurrent use.
type Group struct {
	opts       Options
	instance   string // of this replica
	placement  *table
	drain      drain
	unanswered transport.WarnLimiter // of requests that other replicas have not answered
	absent     downstream.Streams    // of servers that this replica does not have
}

// New returns a Group. The caller must call Close.
func New(o Options) (*Group, error) {
	g := &Group{opts: o, instance: o.Peers.Self().Instance}
	var full transport.WarnLimiter
	var err error
	g.placement, err = newTable(tableOptions{Engine: o.Peers.Engine(), Claims: o.Claims, Logger: o.Logger, Reaches: o.Peers.Reaches, Full: func() {
		o.Metrics.Limit("", "placed_profiles")
		full.Warn(o.Logger, "too many profiles have a replica that serves them: the one that was not used for longest is forgotten, and claimed again at its next call")
	}})
	if err != nil {
		return nil, fmt.Errorf("forward: %w", err)
	}
	g.drain.group, err = handover.New(handover.Options{Engine: o.Peers.Engine(), URL: o.Peers.URL, RoundTripper: o.Peers.RoundTripper,
		Logger: o.Logger, Metrics: o.Handovers})
	if err != nil {
		g.placement.Close()
		return nil, fmt.Errorf("forward: %w", err)
	}
	return g, nil
}

// Close ends what the Group has. Call it after all requests have ended.
func (g *Group) Close() {
	g.placement.Close()
	g.drain.group.Close()
}

// writeTimeout bounds each write to a client.
func (g *Group) writeTimeout() time.Duration {
	write, _ := g.opts.Timeouts()
	return cmp.Or(write, legacyfront.DefaultWriteTimeout)
}

// quiet is how long a replica that serves a WebSocket may say nothing: it pings more often.
func (g *Group) quiet() time.Duration {
	_, keepAlive := g.opts.Timeouts()
	return 3 * cmp.Or(keepAlive, transport.DefaultKeepAlive)
}
