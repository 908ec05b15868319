package main

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/httpserver"
)

const (
	// innerDrain bounds how long a gateway of ours waits for what is in flight.
	innerDrain = time.Second
	// innerEnd bounds how long it takes to end its only server.
	innerEnd = 5 * time.Second
)

// An innerGateway serves one server in this process, without sockets.
type innerGateway struct {
	transport *httpserver.InMemory
	end       func()
}

// url is that of the server's endpoint.
func (*innerGateway) url(server string) string { return "http://127.0.0.1/mcp/" + server }

// newInnerGateway starts a gateway. Who gets it calls end.
func newInnerGateway(o *gateway.Options) (*innerGateway, error) {
	g, err := gateway.New(*o)
	if err != nil {
		return nil, err
	}
	g.Start()
	m := httpserver.ServeInMemory(g)
	return &innerGateway{m, func() {
		g.EndStreams()
		m.Close()
		ctx, cancel := context.WithTimeout(context.Background(), innerEnd)
		defer cancel()
		_ = g.Shutdown(ctx) // nobody is left who could do anything about it
	}}, nil
}

// newInnerClient returns a client of a server behind a gateway in this process.
func newInnerClient(o *gateway.Options, server string) (*client.Client, error) {
	g, err := newInnerGateway(o)
	if err != nil {
		return nil, err
	}
	return client.New(g.url(server), client.Options{Info: implementation(), RoundTripper: g.transport, End: g.end}), nil
}
