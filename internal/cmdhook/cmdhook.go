// Package cmdhook lets cmd/mcpbridge, and the tests of this module, reach what package
// mcpbridge does not export: its API names no internal type.
//
// Package mcpbridge sets the functions below when it is initialized.
package cmdhook

import (
	"context"

	"github.com/mcpbridge/mcpbridge/internal/audit"
	"github.com/mcpbridge/mcpbridge/internal/gateway"
	"github.com/mcpbridge/mcpbridge/internal/login"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/trace"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// Hooks are options that only this module sets. The zero value changes nothing.
type Hooks struct {
	// Guard ends the commands of servers if the process is killed.
	Guard transport.Guard
	// Secrets are hidden from clients and logs, beside those of the options.
	Secrets *redact.Redactor
	// Start starts commands in the place of [transport.StartCommand].
	Start func(transport.CommandOptions) (transport.Conn, error)
	// Dial connects to servers that have neither URL, Command nor Handler, by their
	// names.
	Dial map[string]func(context.Context) (transport.Conn, error)
	// Dialed is told of each attempt to open a WebSocket to a server, with nil if it
	// succeeds. It does not block.
	Dialed func(error)
	// Browse leads a person to a URL, to log in where a server wants that. Nil means that
	// nobody is there.
	Browse func(url string) error
	// Observers are told of the requests of clients. Nil tells nobody.
	Observers *trace.Observers
	// QuietRequests leaves requests that did not fail out of the log.
	QuietRequests bool
}

var (
	// Set adds hooks to a *mcpbridge.Options.
	Set func(options any, h Hooks)
	// Servers returns the servers of a *mcpbridge.Options, without a gateway.
	Servers func(options any) ([]*server.Server, error)
	// Flow returns what logs in to a server of a *mcpbridge.Options, but for Browse; nil if
	// there is no such server.
	Flow func(options any, server string) *login.Flow
	// Ready has a person log in to the servers of a *mcpbridge.Gateway that want it, as
	// far as Browse says how.
	Ready func(ctx context.Context, g any) error
	// Gateway returns what is behind a *mcpbridge.Gateway.
	Gateway func(g any) *gateway.Gateway
	// Metrics returns what a *mcpbridge.Gateway counts with.
	Metrics func(g any) mcp.Metrics
	// Audit returns the audit log of a *mcpbridge.Gateway; nil if there is none.
	Audit func(g any) *audit.Log
)
