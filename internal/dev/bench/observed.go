//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/observation/accesslog"
	"github.com/mcpbridge/mcpbridge/internal/observation/telemetry"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
)

// observedWays are gateways in one process of which something is observed, each beside one
// of which nothing is.
var observedWays = []struct {
	name, prefix string
	most, goal   float64
}{
	{"nobody observing", "/idle", 1.03, 1}, // nothing: the rest is noise
	{"the log of events", "/log", 1.05, 1.02},
	{"the access log", "/access", 1.05, 1.03},
	{"traces, none sampled", "/unsampled", 1.08, 1.02},
	{"traces, all sampled", "/sampled", 1.14, 1.08},
}

// observed measures what observing adds to a small call, in one process.
func (b *bench) observed() error {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })) // what it can't read is lost
	defer sink.Close()
	took := make([]pairs, len(observedWays))
	for range processes {
		if err := b.beside(func(c *callers) error { return b.observedOf(c, took) }, "-collector", sink.URL, "-log", "off"); err != nil {
			return err
		}
	}
	for i, a := range observedWays {
		b.table.add(row{what: "CPU of a small call with " + a.name, got: took[i].ratio(), unit: "×", most: a.most, goal: a.goal, detail: took[i].detail("the same request unobserved")})
	}
	return nil
}

// observedOf adds what the ways took in one process.
func (b *bench) observedOf(c *callers, took []pairs) error {
	const size, calls, conns = 100, 2500, 8
	for i, a := range observedWays {
		w := &way{name: a.name, ours: "/mcp/" + a.prefix[1:], took: took[i]}
		var err error
		if w.gateway, err = newTarget(c.gateway, c.gateway.addr, modernCall(c.gateway.addr, a.prefix+"/mcp/http", size), size, conns); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		defer w.gateway.close()
		if w.proxy, err = newTarget(c.gateway, c.gateway.addr, modernCall(c.gateway.addr, "/plain/mcp/http", size), size, conns); err != nil {
			return err
		}
		defer w.proxy.close()
		for round := -1; round < max(8*b.o.rounds/processes, 1); round++ { // the first one warms up; a round varies by more than what is measured
			if err := w.round(calls, round); err != nil {
				return err
			}
		}
		if err := b.profiled(c.gateway, "observed-"+a.prefix[1:], func() error { return w.profile(b, calls) }); err != nil {
			return err
		}
		took[i] = w.took
	}
	return nil
}

// observedGateways are the gateways of the ways, and the one beside them, by their prefixes.
// flush exports what waits, which is part of what calls cost.
func observedGateways(o roleOptions) (h http.Handler, flush func(), err error) {
	mux := http.NewServeMux()
	var tracers []*telemetry.Tracer
	for _, name := range []string{"plain", "idle", "log", "access", "unsampled", "sampled"} {
		log, observers := slog.New(slog.DiscardHandler), trace.New()
		switch name {
		case "plain":
			observers = nil
		case "log":
			log, err = newLog("info")
		case "access":
			observers.Add(accesslog.New(accesslog.Options{To: os.Stderr, Format: accesslog.JSON, Secrets: redact.New(staticToken)}))
		case "unsampled", "sampled":
			var t *telemetry.Tracer
			if t, err = openTracer(name, o.collector); err == nil {
				observers.Add(t)
				tracers = append(tracers, t)
			}
		}
		if err != nil {
			return nil, nil, err
		}
		opts := gateway.Options{Logger: log, Servers: []gateway.ServerOptions{httpServer("http", o.upstream, "/mcp")}}
		hook.Set(&opts, cmdhook.Hooks{Observers: observers})
		g, err := gateway.New(opts)
		if err != nil {
			return nil, nil, err
		}
		g.Start()
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, g)) // ends with the process
	}
	return mux, func() {
		for _, t := range tracers {
			_ = t.Flush(context.Background()) // what is lost costs, too
		}
	}, nil
}

// serveObserved serves the gateways of the ways.
func serveObserved(c *control, o roleOptions) error {
	h, flush, err := observedGateways(o)
	if err != nil {
		return err
	}
	c.commands["usage"] = func([]string) (any, error) { flush(); return readUsage() }
	return listenAndServe(c, h)
}

// openTracer returns a tracer that samples all, or none.
func openTracer(name, collector string) (*telemetry.Tracer, error) {
	sampler := map[string]string{"sampled": "always_on", "unsampled": "always_off"}[name]
	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_TRACES_SAMPLER": sampler, "OTEL_BSP_MAX_QUEUE_SIZE": "100000"} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	return telemetry.Open(context.Background(), telemetry.Options{Version: "bench", Secrets: redact.New(staticToken), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
}
