package upstream

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Options describe one server and how to treat it, as far as both eras need to know. The
// back of an era has checked them and filled in the defaults.
type Options struct {
	// Name is the server's name in the configuration. It stands in every message to
	// people and in every error.
	Name string
	// URL is the server's MCP endpoint; empty if it is not reached over HTTP.
	URL string
	// Headers go with every HTTP request, credentials among them.
	Headers http.Header
	// RoundTripper sends HTTP requests; nil means a transport made for the server.
	RoundTripper http.RoundTripper

	Timeouts Timeouts
	// MaxMessage bounds one message of the server, in bytes.
	MaxMessage int

	Logger  *slog.Logger
	Metrics Metrics
}

// Timeouts bound the waiting for a server. Zero means the default.
type Timeouts struct {
	Connect time.Duration // reaching the server, and its answer to the first request
	Request time.Duration // one request; progress starts it anew
	Max     time.Duration // one request, whatever progress it makes
}

// Metrics counts what comes of a server. Methods are quick and safe for concurrent use.
// server is Options.Name.
type Metrics interface {
	// Dropped counts a message of the server that reached nobody; what tells
	// which kind.
	Dropped(server, what string)
	// Limit counts what was refused or put off at a limit.
	Limit(server, name string)
}

// BaseHeader returns what goes with every request: the configured headers without those
// that the protocol defines, and over them what kinds of body are sent and taken.
//
// Spec: 2025-11-25, basic/transports, Sending Messages to the Server; 2026-07-28,
// basic/transports/streamable-http, Sending Messages.
func (o *Options) BaseHeader() http.Header {
	h := o.Headers.Clone()
	if h == nil {
		h = make(http.Header, 4)
	}
	for name := range h {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "Mcp-") {
			delete(h, name)
		}
	}
	for _, name := range []string{spec.HeaderLastEventID, "Host", "Content-Length", "Accept-Encoding"} {
		h.Del(name)
	}
	h.Set("Accept", spec.AcceptBoth)
	h.Set("Content-Type", spec.TypeJSON)
	return h
}

// Drop counts a message that reached nobody.
func (o *Options) Drop(what string) { o.Metrics.Dropped(o.Name, what) }

// BeyondLimit counts and logs a message that is not read.
func (o *Options) BeyondLimit(limit int) {
	o.Drop("too long")
	o.Metrics.Limit(o.Name, limits.UpstreamMessage.Key)
	o.Logger.Warn("skipping message of server beyond the limit", "bytes", limit)
}
