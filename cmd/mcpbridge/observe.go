package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/accesslog"
	"github.com/mcpbridge/mcpbridge/internal/observation/telemetry"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/release"
)

// An observing is who observes the requests of one run.
type observing struct {
	all     *trace.Observers
	log     *slog.Logger
	tracer  *telemetry.Tracer // nil if the environment asks for no traces
	access  *accesslog.Log    // nil if there is none
	metrics atomic.Pointer[mcp.Metrics]
}

// openObserving opens what the environment and the configuration ask for. After an error there
// are no traces. The caller calls close. When ctx ends, lines of the access log are written at once, since a second signal
// ends the process.
func (p process) openObserving(ctx context.Context, c config.Log, log *slog.Logger) (*observing, error) {
	o := &observing{all: trace.New(), log: log}
	var err error
	o.tracer, err = telemetry.Open(ctx, telemetry.Options{Version: release.Version(), Secrets: p.secrets, Logger: log, Lost: o.lost})
	if o.tracer != nil {
		o.all.Add(o.tracer)
	}
	if c.Access != "off" && c.Access != "" {
		o.access = accesslog.New(accesslog.Options{To: p.stderr, Format: accesslog.Format(c.Access), Secrets: p.secrets, Direct: !output.Gathers(p.stderr)})
		o.all.Add(o.access)
		context.AfterFunc(ctx, o.access.Close) // which may be called again
	}
	return o, err
}

// count has g count what is lost.
func (o *observing) count(g *gateway.Gateway) {
	m := hook.Inner(g).Metrics()
	o.metrics.Store(&m)
}

func (o *observing) lost(spans int) {
	if m := o.metrics.Load(); m != nil {
		(*m).SpansLost(spans)
	}
}

// flushTime is how long the last spans may take to be exported, within the drain.
const flushTime = 5 * time.Second

// close exports what waits. ctx bounds it, too. It may be called again, and of nil.
func (o *observing) close(ctx context.Context) {
	if o == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if err := o.tracer.Shutdown(ctx); err != nil {
		o.log.Warn("the last traces were not exported", "err", err)
	}
	o.access.Close()
}
