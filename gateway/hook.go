package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/metrics"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
)

func init() { cmdhook.Register(hook{}) }

// hook implements [cmdhook.Hook].
type hook struct{}

// Set implements [cmdhook.Hook].
func (hook) Set(o *Options, h cmdhook.Hooks) { o.hooks = h }

// Servers implements [cmdhook.Hook]. A Gateway of the options has the same servers.
func (hook) Servers(o *Options) ([]*server.Server, error) {
	b := newBuild(o, mcp.NoMetrics{})
	if err := b.addAll(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.opts.made = b
	return b.servers(), nil
}

// Flow implements [cmdhook.Hook].
func (hook) Flow(o *Options, server string) *login.Flow {
	b := newBuild(o, mcp.NoMetrics{})
	for i := range b.opts.Servers {
		if s := &b.opts.Servers[i]; s.Name == server {
			return b.of(s).loginFlow()
		}
	}
	return nil
}

// CompareReplicas implements [cmdhook.Hook].
func (hook) CompareReplicas(ctx context.Context, o *Options, now func() time.Time) (replicas.Comparison, error) {
	n, err := newNode(o, metrics.New(release.Version()))
	if n == nil {
		return replicas.Comparison{}, err
	}
	c := n.Compare(ctx, now)
	return c, n.Close(context.WithoutCancel(ctx)) // it has not joined, and waits for nobody
}

// PinStore implements [cmdhook.Hook].
func (hook) PinStore(o *Options) (pin.Store, func(context.Context) error, error) {
	n, err := newNode(o, metrics.New(release.Version()))
	if n == nil {
		return o.pinStore(nil), func(context.Context) error { return nil }, err
	}
	return o.pinStore(n), n.Close, nil
}

// Inner implements [cmdhook.Hook].
func (hook) Inner(g *Gateway) cmdhook.Inner { return inner{g.inner, g} }

// inner implements [cmdhook.Inner].
type inner struct {
	*router.Gateway
	outer *Gateway
}

// Ready implements [cmdhook.Inner].
func (g inner) Ready(ctx context.Context, log *slog.Logger) (wait func()) {
	var all sync.WaitGroup
	for _, p := range g.outer.current.parts {
		if p.login != nil {
			all.Go(func() {
				if err := p.login.Ready(ctx); err != nil && ctx.Err() == nil {
					log.Warn("logging in before the first request", "error", err)
				}
			})
		}
	}
	return all.Wait
}

// Metrics implements [cmdhook.Inner].
func (g inner) Metrics() mcp.Metrics { return g.outer.metrics }

// Try implements [cmdhook.Inner].
func (g inner) Try(w http.ResponseWriter, r *http.Request, server string) {
	router.Try(g.Gateway, w, r, server)
}

// Audit implements [cmdhook.Inner].
func (g inner) Audit() *audit.Log { return g.outer.audit() }
