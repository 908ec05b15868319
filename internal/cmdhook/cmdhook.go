// Package cmdhook lets cmd/mcpbridge, and the tests of this module, reach what package
// gateway does not export: its API names no internal type.
//
// Package gateway sets the functions below when it is initialized.
package cmdhook

import (
	"context"
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
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
	// Backs stand in the place of servers that have neither, by their names.
	Backs map[string]func(mcp.Changes) (mcp.Back, error)
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

// Inner is what the admin address asks a gateway for.
type Inner interface {
	Status(texts bool) *status.Snapshot
	Ask(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
	WatchChanges(func(ev fanout.Event, followers int)) (stop func())
	ServeConn(ctx context.Context, conn transport.Conn, server string) error
}

var (
	// Set adds hooks to a *gateway.Options.
	Set func(options any, h Hooks)
	// Servers returns the servers of a *gateway.Options, without a gateway.
	Servers func(options any) ([]*server.Server, error)
	// Flow returns what logs in to a server of a *gateway.Options, but for Browse; nil if
	// there is no such server.
	Flow func(options any, server string) *login.Flow
	// Ready has a person log in to the servers of a *gateway.Gateway that want it, as
	// far as Browse says how.
	Ready func(ctx context.Context, g any) error
	// Gateway returns what is behind a *gateway.Gateway.
	Gateway func(g any) Inner
	// Metrics returns what a *gateway.Gateway counts with.
	Metrics func(g any) mcp.Metrics
	// Audit returns the audit log of a *gateway.Gateway; nil if there is none.
	Audit func(g any) *audit.Log
)
