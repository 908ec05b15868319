package router

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/gateway/internal/group"
	"github.com/mcpbridge/mcpbridge/gateway/internal/visit"
	"github.com/mcpbridge/mcpbridge/internal/limits"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/observation/trace"
	"github.com/mcpbridge/mcpbridge/internal/peer"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/redact"
	"github.com/mcpbridge/mcpbridge/internal/replicas/handover"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/settings"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// Defaults of Options.
const (
	DefaultMemory      = 1 << 30
	DefaultBodyTimeout = 30 * time.Second
)

// ServerOptions describe one server.
type ServerOptions struct {
	// Name is the endpoint's last path segment. Required.
	Name string
	// Open builds the back, which reports changes to c. Required, unless Group is set.
	Open func(c mcp.Changes) (mcp.Back, error)
	// Group says that this is no server, but a group of others. Its Name, and what a Gateway has
	// itself, need not be set. A group that is Kept goes on with these members.
	Group *group.Options
	// OpenPeer builds a back that watches the server at another replica. Nil means that each
	// replica watches by itself.
	OpenPeer func(upstream.Peer) (mcp.Back, error)
	// Settings are what is to be heeded on the way to the server. Of the methods of Cache, lists
	// and resources/read alone can be cached.
	Settings settings.Server
	// Quirks say what clients of the server may do against the protocol, and remember what they
	// and the server did. Nil tolerates it untold.
	Quirks *quirks.Recorder
	// Command says that each upstream session is a process. With [settings.IsolateNothing] all clients
	// then share one process, whatever their capabilities.
	Command bool
	// HoldFor has all calls of a principal served by one of several replicas, since the server
	// has a state of its own: the first one that is asked, for this long after the last call.
	// Zero means that each replica serves what it is asked.
	HoldFor time.Duration
	// Definition is a digest of what makes the server the one that it is. Replicas share what
	// is watched, and calls of HoldFor, with those that have the same. It is no secret.
	Definition string
	// Access says who may do what with the server. Its Server and Metrics need not be set.
	Access access.Options
	// Auth is Options.Auth for this server; nil for that.
	Auth auth.Authenticator
	// Saw is told of the credential of each request, before that is served. Nil means that
	// nobody wants to know.
	Saw func(*mcp.Identity)
	// Visit returns where a person can log in to the server, while requests have to wait for
	// that; nil for nowhere. Visit is nil where nobody can be asked.
	Visit func() *mcp.Visit
	// UserLogins are logins of each principal at the server, without which its requests are not
	// sent; nil if the server has none.
	UserLogins visit.Logins
	// OnlyFor is the one principal that may use the server, since its credential is that
	// principal's. Empty means all.
	OnlyFor mcp.Principal
	// PublicURL is the URL by which clients know the endpoint. Empty if it is not known:
	// the endpoint has no metadata then.
	PublicURL string
	// Kept says to [Gateway.Reload] that the server of this name goes on as it is. No other
	// field but Name and Group counts then.
	Kept bool
	// Ended, if it is not nil, is called once a server is closed that was served.
	Ended func()
}

// Options configure a Gateway.
type Options struct {
	Servers []ServerOptions
	// Default is the name of the server that is also served without a name. Empty means the
	// only one.
	Default string

	// Instance begins the ids of sessions, events and requestStates: eight characters of
	// [rand.Text], new with each start. Empty means that of Peers, or a random one.
	Instance string
	// Peers are the other replicas, to which requests of their sessions and calls are
	// forwarded. Nil means that there are none.
	Peers *peer.Group
	// Handovers count the sessions that are handed over to Peers. Nil counts nothing.
	Handovers handover.Metrics

	// Limits bound what clients can make the gateway use. That on memory is divided among shares;
	// 0 means DefaultMemory.
	Limits limits.Set
	// SessionIdle is how long an unused session lasts. Zero means the front's default.
	SessionIdle time.Duration
	// StateKeys are the secrets that encrypt requestStates. The first one encrypts; the
	// others decrypt only. Empty means a random one for the life of the Gateway.
	StateKeys []string
	// Sealer is of StateKeys, and names the Instance; nil means one that New makes.
	Sealer *requeststate.Sealer
	// BodyTimeout bounds the time for receiving a request body, or a message over a
	// WebSocket. Zero means DefaultBodyTimeout.
	BodyTimeout time.Duration
	// Drain bounds the wait for the calls in flight when a connection ends: one of
	// [Gateway.ServeConn], a WebSocket or HTTP+SSE. Zero means DefaultDrain.
	Drain time.Duration
	// WriteTimeout and KeepAlive are those of the fronts; zero means theirs.
	WriteTimeout, KeepAlive time.Duration

	// MachineName is the machine's name, which is an allowed Host on listeners beyond
	// loopback. Empty means that clients use the address, or an allowed name.
	MachineName string
	// AllowedHosts are further allowed Host names, without port. Loopback names are always
	// allowed, and on listeners beyond loopback also IP addresses and MachineName.
	// AllowedOrigins are further allowed Origins; loopback ones are always allowed. Pages
	// of all of them may read the responses.
	AllowedHosts, AllowedOrigins []string

	// TrustedProxies are the networks of trusted proxies. Their X-Forwarded-For and
	// Forwarded headers give the client's address, by which limits distinguish anonymous
	// clients.
	TrustedProxies []netip.Prefix

	// Auth says who sent a request; requests of different principals share nothing but
	// what the options say is shared. It is asked for each request, of servers that have
	// none of their own. Nil means that all clients are anonymous: that is why a listener
	// beyond loopback must be allowed by name in the configuration.
	Auth auth.Authenticator

	// Pages serves the requests below PagePaths, of browsers: it checks their Origin itself. Nil
	// means that there are none.
	Pages     http.Handler
	PagePaths []string

	// Audit is the audit log, which gets the credentials that are refused. What may be asked of
	// the servers has it in its Access. Nil means none.
	Audit *audit.Log

	// Anew is the server that a Reload replaces by one of the same options, since somebody wanted
	// that: its clients are told of a restart. Empty means none.
	Anew string

	// Secrets are removed from errors for clients; nil means none. The Logger's handler has
	// to remove them from the log.
	Secrets *redact.Redactor
	// DebugErrors sends clients errors as in the log: with addresses and paths of the
	// gateway's side, and what a server's process wrote.
	DebugErrors bool

	Logger  *slog.Logger // nil discards
	Metrics mcp.Metrics  // nil counts nothing
	// Losses are what the backs remember of clients' state that is lost; nil means that they
	// remember it themselves.
	Losses    *upstream.Losses
	Observers *trace.Observers // are told of requests; nil tells nobody
	// QuietRequests leaves requests that did not fail out of the log, since the access log
	// has them.
	QuietRequests bool
	// NameTools has Metrics told which tools are called.
	NameTools bool
}

// oneSession reports whether all clients share one upstream session: a shared command is one
// process.
func (so *ServerOptions) oneSession() bool {
	return so.Command && so.Settings.Isolation == settings.IsolateNothing
}

// memory is the memory for all clients of all servers, in bytes: messages and their responses,
// calls, sessions, subscriptions, and cached results.
func (opts *Options) memory() int64 { return cmp.Or(opts.Limits.Of(limits.Memory), DefaultMemory) }

// sealer returns what seals requestStates.
func (opts *Options) sealer() (*requeststate.Sealer, error) {
	if opts.Sealer != nil {
		return opts.Sealer, nil
	}
	return requeststate.NewSealerOf(opts.Instance, opts.StateKeys...)
}

// fill sets the defaults.
func (opts *Options) fill() {
	if opts.Peers != nil {
		opts.Instance = opts.Peers.Self().Instance
	}
	if opts.Sealer != nil {
		opts.Instance = cmp.Or(opts.Instance, opts.Sealer.Instance())
	}
	opts.Instance = cmp.Or(opts.Instance, rand.Text()[:8])
	opts.BodyTimeout = cmp.Or(opts.BodyTimeout, DefaultBodyTimeout)
	opts.Drain = cmp.Or(opts.Drain, DefaultDrain)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Metrics == nil {
		opts.Metrics = mcp.NoMetrics{}
	}
	if opts.Losses == nil {
		opts.Losses = upstream.NewLosses()
	}
}
