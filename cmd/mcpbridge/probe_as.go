package main

import (
	"context"
	"io"
	"net/http"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/client"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/clients"
	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/options"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// playAs plays the openings of clients against the server, directly and through a gateway of
// its own, and prints what became of them.
func (p *prober) playAs(ctx context.Context, out io.Writer, as []clients.Client, asJSON bool) error {
	if p.server.OverWebSocket() || p.server.Type == "sse" {
		p.upstream.Close()
		return usageError("--as plays clients of Streamable HTTP; give an http URL instead of %s, or leave --as out", p.server.Target())
	}
	options.AsTheyAre(p.options) // as the server is asked directly
	g, err := client.NewGateway(p.options)
	if err != nil {
		return err
	}
	defer g.Close() // and of the server that the prober has
	network := transport.NewHTTP(p.server.Timeouts.Connect, p.options.Servers[0].TLS)
	defer network.CloseIdleConnections()
	contest := clients.Contest{
		Directly: func() (clients.Way, error) { return p.directly(network) },
		Bridged: func() (clients.Way, error) {
			return clients.OverHTTP(g.URL(p.server.Name), nil, g.RoundTripper), nil
		},
		Timeout: p.server.Timeouts.Connect,
		Began:   func(id string) { p.began("as " + id) },
	}
	results, err := contest.Run(ctx, as)
	if err != nil {
		return err
	}
	return clients.Tell(p.secrets.Writer(out), results, asJSON, p.server.URL == "")
}

// directly returns a way to the server, without mcpbridge.
func (p *prober) directly(network http.RoundTripper) (clients.Way, error) {
	if p.server.URL != "" {
		return clients.OverHTTP(p.server.URL, options.Header(p.server), network), nil
	}
	s := &p.options.Servers[0]
	conn, err := transport.StartCommand(transport.CommandOptions{
		Argv: s.Command, Dir: s.Dir, Environ: p.options.Environ, Env: s.Env, Name: s.Name, Guard: p.keep, Quiet: true,
	})
	if err != nil {
		return nil, err
	}
	return clients.OverPipe(conn), nil
}
