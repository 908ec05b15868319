// Package inner has a command ask a server through a gateway of its own, in this process and
// without sockets.
package inner

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/httpserver"
)

const (
	// Drain bounds how long such a gateway waits for what is in flight.
	Drain = time.Second
	// end bounds how long it takes to end its servers.
	end = 5 * time.Second
)

// A Gateway serves servers in this process.
type Gateway struct {
	// RoundTripper sends requests to it.
	RoundTripper http.RoundTripper
	// Close ends it.
	Close func()
}

// URL is that of the endpoint of a server.
func (*Gateway) URL(server string) string { return "http://127.0.0.1/mcp/" + server }

// New starts a gateway. Who gets it calls Close.
func New(o *gateway.Options) (*Gateway, error) {
	g, err := gateway.New(*o)
	if err != nil {
		return nil, err
	}
	g.Start()
	m := httpserver.ServeInMemory(g)
	return &Gateway{m, func() {
		g.EndStreams()
		m.Close()
		ctx, cancel := context.WithTimeout(context.Background(), end)
		defer cancel()
		_ = g.Shutdown(ctx) // nobody is left who could do anything about it
	}}, nil
}

// NewClient returns a client of a server behind a gateway that ends with it. info is what it
// says of itself.
func NewClient(o *gateway.Options, server string, info []byte) (*client.Client, error) {
	g, err := New(o)
	if err != nil {
		return nil, err
	}
	return client.New(g.URL(server), client.Options{Info: info, RoundTripper: g.RoundTripper, End: g.Close}), nil
}
