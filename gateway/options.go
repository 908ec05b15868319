package gateway

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
)

// Options configure a [Gateway]. The zero value of each field but Servers is useful.
type Options struct {
	// Servers are served at /mcp/NAME each. Their names differ.
	Servers []ServerOptions
	// Groups are groups of Servers, which are served at /mcp/NAME each, too.
	Groups []GroupOptions
	// Default is the name of the server or group that is also served at /mcp, without a name.
	// Empty means the only one, if there is no other.
	Default string

	// Authenticator says on whose behalf a request is. Nil means that all clients are
	// anonymous, and are told apart by their addresses where each may have only so much
	// of something.
	Authenticator Authenticator
	// Auth is an Authenticator that is built in, instead of one. Nil means none.
	Auth *Auth
	// PublicURL is what stands before /mcp/NAME in the URLs by which clients know the
	// endpoints, as in https://mcp.example.com. Empty if it is not known.
	PublicURL string

	// AllowedHosts are the names, without port, by which requests may address the
	// gateway, besides those of this machine: names of loopback on a listener there,
	// and elsewhere any IP address and MachineName. AllowedOrigins are the origins of
	// web pages that may send requests, besides those of loopback.
	AllowedHosts, AllowedOrigins []string
	// MachineName is the name of this machine in its network; empty if it has none.
	MachineName string
	// TrustedProxies are the networks of proxies whose X-Forwarded-For and Forwarded
	// headers are believed.
	TrustedProxies []netip.Prefix

	// StateKeys are secrets of at least 16 bytes, which protect the requestState that a
	// modern client carries from an input_required result to its retry: the first is
	// for new ones. Gateways that serve the same clients share them. Empty means a
	// random one.
	StateKeys []string
	// Replicas are other Gateways that serve the same clients. Nil means that there are none.
	Replicas *Replicas
	// Secrets are never repeated to clients in errors.
	Secrets []string
	// DebugErrors says that errors tell clients all that the log says: addresses, paths,
	// and what commands wrote to standard error.
	DebugErrors bool

	// BodyTimeout bounds how long a request's body may take to arrive. Zero means 30 s.
	BodyTimeout time.Duration
	// WriteTimeout bounds how long a client may leave a stream unread. Zero means 10 s.
	WriteTimeout time.Duration
	// KeepAlive is the pause between comments on open streams, and pings on WebSockets.
	// Zero means 15 s.
	KeepAlive time.Duration
	// SessionIdle is how long the session of a legacy client lasts unused. Zero means
	// 30 minutes.
	SessionIdle time.Duration
	// Drain is how long calls in flight are waited for when their WebSocket, HTTP+SSE
	// stream or standard input ends. Zero means 5 s.
	Drain time.Duration
	// CloseGrace is how long a command is waited for after its standard input was
	// closed, and again after SIGTERM. Zero means 2 s. [Gateway.ServeStdio] may shorten it.
	CloseGrace time.Duration

	// Limits bound what clients and servers can make the gateway hold. Their names are
	// the keys below limits in config.example.yaml, which has the defaults, too; errors
	// that tell of a limit name it. What is missing or zero has its default.
	Limits map[string]int64

	// StateDir is a directory in which it is kept from one run to the next what commands
	// said of themselves, so that clients are answered while a command still starts.
	// Empty means that nothing is kept.
	StateDir string
	// PinDir is a directory for the tools that were accepted of servers with a Pin. An Engine of
	// Replicas keeps them instead, and gets what is there when it has none of a server.
	PinDir string
	// Audit is the file of the audit log, which is appended to and made with mode 0600, or
	// "stdout". It has a line of JSON for each request: who did what, on which server, and
	// how it ended; when sessions have ended, and which credentials were refused. Empty means
	// none.
	Audit string
	// AuditRequired has requests refused while lines can't be written to Audit: after a write
	// that failed, or when too many lines wait, until a write succeeds. They get the status 503.
	AuditRequired bool
	// Logins say how the gateway logs in to servers.
	Logins Logins
	// Environ is the environment, as [os.Environ] returns it, of which commands get what
	// programs need to run: PATH, HOME and the like. Nil means this process's own.
	Environ []string
	// OneClient says that the gateway has a single client, as with
	// [Gateway.ServeStdio]: its first message decides how a command is asked.
	OneClient bool

	// Logger gets a line for each request, and warnings. Nil discards them.
	Logger *slog.Logger

	hooks cmdhook.Hooks
	made  *build // by hook.Servers; nil if New has to
}
