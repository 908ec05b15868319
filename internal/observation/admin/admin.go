package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/admin/live"
	"github.com/mcpbridge/mcpbridge/internal/status"
)

// Options configure a Handler. Source and Metrics are required.
type Options struct {
	Source  Source
	Metrics http.Handler // serves /metrics
	// Token is what requests have to send for more than whether the process is well, as
	// Authorization: Bearer. Empty means nothing.
	Token string
	// MetricsToken is another token, for /metrics alone. Empty means that there is none.
	MetricsToken string
	// Exposed says that other machines reach the address. Without a Token there is then no
	// page, and nothing that shows or does more than Metrics.
	Exposed bool
	// Counts counts the requests with a wrong token, Logger logs them, and Wrong is told of
	// each; nil for none of that.
	Counts mcp.Metrics
	Logger *slog.Logger
	Wrong  func(r *http.Request, from netip.Prefix)
	// Debug serves profiles of the process.
	Debug bool

	// Gateway is what the page shows. Nil means that there is no page.
	Gateway Gateway
	// Feed has the requests that pass. Required if there is a page.
	Feed *live.Feed
	// Logins are those of users at servers; nil if there can be none.
	Logins Logins
	// Rooms tell of single servers; nil for no rooms. Lines are what commands have written to their
	// standard error; nil if that is not kept.
	Rooms Rooms
	Lines *live.Lines
	// Version is that of the program.
	Version string
	// Reload serves POST /reload; nil if the configuration can't be read anew. LastReload
	// returns how that went last, as JSON is made of it; nil if nobody knows.
	Reload     http.Handler
	LastReload func() any
}

// A Gateway tells what it does, and sends requests for whoever uses the page.
type Gateway interface {
	// Status returns what the gateway holds.
	Status() *status.Snapshot
	// Room returns what is known of a group of servers; nil if there is none of that name. It
	// asks none of them.
	Room(group string) *status.Room
	// Ask sends tools/list or tools/call to a server. An error is for people.
	Ask(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error)
	// Try serves an HTTP request of whoever uses the page to the endpoint of a server, as a client
	// without a credential that may use it. It returns at the end of the response.
	Try(w http.ResponseWriter, r *http.Request, server string)
}

// Logins are those that users of a gateway have made at its servers.
type Logins interface {
	// Logins returns all, as JSON is made of them.
	Logins(context.Context) (any, error)
	// EndLogins ends those of a principal: at one server, or at all if server is empty.
	EndLogins(ctx context.Context, server, principal string) (any, error)
}

// NewHandler returns the handler of the admin address:
//
//   - /healthz is 200 for as long as the process serves at all: a restart
//     would not bring back a server that is down, so none of them counts.
//   - /readyz is 200 once each server has been tried, reached or not, and 503
//     before that and while the process drains. A server that is down does not
//     make the process unready: the others are served, and its own clients
//     get an error that says more than a refused connection. The body is
//     JSON and lists the servers, and how the configuration was reloaded last. Servers that
//     a reload has added don't make the process unready.
//   - /metrics is Options.Metrics.
//   - / is the page, /api/ what it shows, as JSON, and /reload reads the configuration anew.
//   - /debug/pprof/ has profiles of the process, with Options.Debug.
//   - POST /api/link is a link to the page that is good once, for a minute.
//
// Without Options.Token, where there is one, requests get /healthz, and of /readyz the
// status: who looks after processes often has no token for them. A page of another origin
// gets nothing. An address that sends many wrong tokens gets 429 for them. See also
// [Handler.Require].
func NewHandler(opts Options) (*Handler, error) {
	if opts.Source == nil || opts.Metrics == nil || opts.Gateway != nil && opts.Feed == nil {
		return nil, errors.New("admin: NewHandler: source and metrics are required, and a feed for a page")
	}
	g := newGuard(opts)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthz)
	mux.Handle("GET /readyz", readyz{opts.Source, g, opts.LastReload})
	mux.Handle("GET /metrics", g.metrics(opts.Metrics))
	if opts.Debug {
		profiles(mux, g)
	}
	if opts.Reload != nil {
		mux.Handle("POST /reload", g.data(opts.Reload))
	}
	if opts.Gateway != nil {
		a := newAPI(opts, g)
		a.route(mux)
		if opts.Rooms != nil {
			(&roomAPI{a, opts.Rooms, opts.Lines}).route(mux)
		}
		g.route(mux, pageFiles())
	}
	return &Handler{g.sameOrigin(g.wrong(mux)), g}, nil
}

// A Handler serves the admin address.
type Handler struct {
	http.Handler
	guard *guard
}

// Require has requests send a token from now on that was made for this run, because clients
// have to prove who they are: who may not call a tool as a client shall not call it here. It
// is what Options.Token is otherwise, except that /metrics stays open without it.
func (h *Handler) Require(made string) {
	t := token(made)
	h.guard.made.Store(&t)
}
