//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/linebuffer"
)

// hook reaches what package gateway does not export.
var hook = cmdhook.Of[gateway.Options, gateway.Gateway]()

// ballast is the garbage that serve lets gather before it is collected, in bytes.
const ballast = 18 << 20

// runGateway is mcpbridge with the upstream over HTTP, the same answering with streams, with tools, and
// as a server of 2026-07-28, and one over stdio.
func runGateway(c *control, o roleOptions) error {
	defer runtime.KeepAlive(make([]byte, ballast))
	if o.collector != "" {
		return serveObserved(c, o)
	}
	log, err := newLog(o.log)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	servers := append(guarded(o), httpServer("http", o.upstream, "/mcp"), httpServer("stream", o.upstream, "/stream"),
		httpServer("listed", o.upstream, listPath(listedTools)), gateway.ServerOptions{Name: "modern", URL: "http://" + o.upstream + modernPath, Era: gateway.Modern},
		gateway.ServerOptions{Name: "stdio", Command: []string{self, "-role", "stdio"}, Era: gateway.Legacy})
	g, err := gateway.New(gateway.Options{Logger: log, Limits: map[string]int64{"streams": 100_000}, Servers: servers, Audit: o.audit})
	if err != nil {
		return err
	}
	g.Start()
	defer func() { _ = g.Shutdown(context.Background()) }() // the child process ends with it
	return listenAndServe(c, g)
}

// listenAndServe serves h to clients on a listener of its own until the parent is gone.
func listenAndServe(c *control, h http.Handler) error {
	l, err := gateway.Listen(context.Background(), "127.0.0.1:0", 0)
	if err != nil {
		return fmt.Errorf("listening for clients: %w", err)
	}
	return c.serve(l, h)
}

// httpServer is the upstream, by one of its paths.
func httpServer(name, upstream, path string) gateway.ServerOptions {
	return gateway.ServerOptions{Name: name, URL: "http://" + upstream + path, Era: gateway.Legacy}
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
