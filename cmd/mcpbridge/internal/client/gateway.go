package client

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/httpserver"
)

const (
	// Drain bounds how long a Gateway waits for what is in flight.
	Drain = time.Second
	// endTime bounds how long it takes to end its servers.
	endTime = 5 * time.Second
)

// A Gateway serves servers in this process, without sockets.
type Gateway struct {
	// RoundTripper sends requests to it.
	RoundTripper http.RoundTripper
	// Close ends it.
	Close func()
}

// URL is that of the endpoint of a server.
func (*Gateway) URL(server string) string { return "http://127.0.0.1/mcp/" + server }

// NewGateway starts a gateway. Who gets it calls Close.
func NewGateway(o *gateway.Options) (*Gateway, error) {
	g, err := gateway.New(*o)
	if err != nil {
		return nil, err
	}
	g.Start()
	m := httpserver.ServeInMemory(g)
	return &Gateway{m, func() {
		g.EndStreams()
		m.Close()
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		_ = g.Shutdown(ctx) // nobody is left who could do anything about it
	}}, nil
}

// NewBehind returns a client of a server behind a gateway that ends with it. info is what it
// says of itself.
func NewBehind(o *gateway.Options, server string, info []byte) (*Client, error) {
	g, err := NewGateway(o)
	if err != nil {
		return nil, err
	}
	return New(g.URL(server), Options{Info: info, RoundTripper: g.RoundTripper, End: g.Close}), nil
}
