// Package cmdhook lets cmd/mcpbridge, and the tests of this module, reach what package
// gateway does not export: its API names no internal type.
//
// Package gateway registers a [Hook] when it is initialized.
package cmdhook

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/status"
	"github.com/mcpbridge/mcpbridge/internal/transport"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/trust/pin"
)

// Hooks are options that only this module sets. The zero value changes nothing.
type Hooks struct {
	// Guard ends the commands of servers if the process is killed.
	Guard transport.Guard
	// Secrets are hidden from clients and logs, beside those of the options.
	Secrets *redact.Redactor
	// Settings are those of servers, by their names, in the place of what the options of
	// these servers say.
	Settings map[string]settings.Server
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
	// Browse leads a person to a URL, to log in where a server wants that, by the names of
	// servers. Nil means that nobody is there.
	Browse map[string]func(url string) error
	// FromFile says that the servers stand in a file: their errors say to log in by their names
	// there, and else by their URLs.
	FromFile bool
	// Observers are told of the requests of clients. Nil tells nobody.
	Observers *trace.Observers
	// Caller is the token of the only client, as if each request had brought it, for servers that
	// want a token of callers. Empty means that clients are who Auth says.
	Caller string
	// Listed is told of each definition of a tool that a server lists, as it is compared where
	// tools are pinned. It may not keep the definition. Nil tells nobody.
	Listed func(definition []byte)
	// Wrote is told of each line that the command of a server has written to its standard error,
	// with its secrets. It does not block. Nil tells nobody.
	Wrote func(server, line string)
	// QuietRequests leaves requests that did not fail out of the log.
	QuietRequests bool
}

// A Hook reaches what package gateway does not export, of its options O and its gateways G:
// this package can't name them.
type Hook[O, G any] interface {
	// Set adds hooks to options.
	Set(*O, Hooks)
	// Servers returns the servers of options, without a gateway.
	Servers(*O) ([]*server.Server, error)
	// Flow returns what logs in to a server of options, but for Browse; nil if there is no
	// such server.
	Flow(o *O, server string) *login.Flow
	// CompareReplicas asks the replicas of options whether a gateway of these could be one of
	// them, without being one. now is the clock of this machine.
	CompareReplicas(ctx context.Context, o *O, now func() time.Time) (replicas.Comparison, error)
	// PinStore returns what keeps the tools that were accepted, for a gateway of these options,
	// without one. Its end is called when it is used no more.
	PinStore(o *O) (store pin.Store, end func(context.Context) error, err error)
	// Inner returns what is behind a gateway.
	Inner(*G) Inner
}

// Inner is what is behind a gateway.
type Inner interface {
	// Ready has a person log in to the servers that want it, as far as Browse says how, beside the
	// first requests: a server that can't be asked holds up its own alone. What fails goes to log;
	// wait returns when all have ended, at the latest with ctx.
	Ready(ctx context.Context, log *slog.Logger) (wait func())
	// ServeConn serves one client, as gateway.ServeStdio does.
	ServeConn(ctx context.Context, conn transport.Conn, server string) error
	// Metrics returns what it counts with.
	Metrics() mcp.Metrics
	// Audit returns its audit log; nil if there is none.
	Audit() *audit.Log

	// Logins returns the logins of principals at servers, as JSON is made of them. EndLogins ends
	// those of a principal: at one server, or at all.
	Logins(ctx context.Context) (any, error)
	EndLogins(ctx context.Context, server, principal string) (any, error)

	// Status, Room, ServerRoom, Ask and WatchChanges are what the admin address asks for.
	Status(texts bool) *status.Snapshot
	Room(group string) *status.Room
	ServerRoom(name string) *status.ServerRoom
	Ask(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
	// Try serves a request to the endpoint of a server, as one of the principal
	// [mcp.AdminPrincipal], without a credential.
	Try(w http.ResponseWriter, r *http.Request, server string)
	// Tasks and CancelTask are about tasks of single servers that are held for clients.
	Tasks(server string) status.Tasks
	CancelTask(ctx context.Context, server, key string) error
	// Rates, Restart, ToolChanges, AcceptTools, LogIn and LogOut are so, too: they are about single servers.
	Rates(server string) *status.Rates
	Restart(server string) error
	ToolChanges(ctx context.Context, server string) ([]status.ToolChange, error)
	AcceptTools(ctx context.Context, server string, tools []status.AcceptedTool) (int, error)
	LogIn(ctx context.Context, server string) (url string, err error)
	LogOut(ctx context.Context, server string) (revoked, err error)
	WatchChanges(func(ev fanout.Event, followers int)) (stop func())
}

var registered any // a Hook; set when package gateway is initialized, read-only after

// Register is called by package gateway, with its own types.
func Register[O, G any](h Hook[O, G]) { registered = h }

// Of returns the Hook of package gateway, which the caller imports: O is gateway.Options, and
// G is gateway.Gateway. It panics for other types.
func Of[O, G any]() Hook[O, G] { return registered.(Hook[O, G]) }
