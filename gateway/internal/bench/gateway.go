//go:build linux

package main

import (
	"context"
	"log/slog"
	"os"
	"runtime"

	"github.com/mcpbridge/mcpbridge/gateway/internal/router"
	"github.com/mcpbridge/mcpbridge/internal/clientconn"
	"github.com/mcpbridge/mcpbridge/internal/linebuffer"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/metrics"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	legacyback "github.com/mcpbridge/mcpbridge/legacy/back"
)

// ballast is the garbage that serve lets gather before it is collected, in bytes.
const ballast = 64 << 20

// runGateway is mcpbridge with three servers: the upstream over HTTP, the same
// answering with streams, and one over stdio.
func runGateway(c *control, o roleOptions) error {
	defer runtime.KeepAlive(make([]byte, ballast))
	r := &rig{metrics: metrics.New("bench")}
	var err error
	if r.log, err = newLog(o.log); err != nil {
		return err
	}
	if o.collector != "" {
		return r.serveObserved(c, o)
	}
	servers, err := r.guarded(o)
	if err != nil {
		return err
	}
	servers = append(servers,
		r.server("http", legacyback.Options{Options: upstream.Options{URL: "http://" + o.upstream + "/mcp"}}),
		r.server("stream", legacyback.Options{Options: upstream.Options{URL: "http://" + o.upstream + "/stream"}}),
		r.server("stdio", legacyback.Options{Dial: r.startStdio}))
	g, err := router.New(router.Options{Logger: r.log, Metrics: r.metrics, MaxStreams: 100_000, Servers: servers})
	if err != nil {
		return err
	}
	l, err := clientconn.Listen(context.Background(), "127.0.0.1:0", 0)
	if err != nil {
		return err
	}
	defer func() { _ = g.Close(context.Background()) }() // the child process ends with it
	return c.serve(l, g)
}

// A rig is what the gateway's backs have in common.
type rig struct {
	log     *slog.Logger
	metrics *metrics.Metrics
}

func (r *rig) server(name string, o legacyback.Options) router.ServerOptions {
	o.Name, o.Logger, o.Metrics = name, r.log, r.metrics
	o.ClientInfo = []byte(`{"name":"mcpbridge","version":"bench"}`)
	return router.ServerOptions{Name: name, Open: func(ch mcp.Changes) (mcp.Back, error) {
		o.Changes = ch
		b, err := legacyback.New(o)
		if err != nil {
			return nil, err // and no typed nil in the interface
		}
		return b, nil
	}}
}

func (r *rig) startStdio(context.Context) (transport.Conn, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	conn, err := transport.StartCommand(transport.CommandOptions{
		Argv: []string{self, "-role", "stdio"}, Environ: os.Environ(), Name: "stdio", Logger: r.log,
	})
	if err != nil {
		return nil, err // and no typed nil in the interface
	}
	return conn, nil
}

// newLog returns the log that serve writes where no person looks on.
func newLog(level string) (*slog.Logger, error) {
	if level == "off" {
		return slog.New(slog.DiscardHandler), nil
	}
	var l slog.Level
	err := l.UnmarshalText([]byte(level))
	lines := linebuffer.New(os.Stderr)
	return slog.New(lines.Handler(slog.NewJSONHandler(lines, &slog.HandlerOptions{Level: l}))), err
}
