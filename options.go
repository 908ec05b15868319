package mcpbridge

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/server"
)

// Options configure a [Gateway]. The zero value of each field but Servers is useful.
type Options struct {
	// Servers are served at /mcp/NAME each. Their names differ.
	Servers []Server

	// Authenticator says on whose behalf a request is. Nil means that all clients are
	// anonymous, and are told apart by their addresses where each may have only so much
	// of something.
	Authenticator Authenticator

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
	// closed, and again after SIGTERM. Zero means 2 s.
	CloseGrace time.Duration

	// Limits bound what clients and servers can make the gateway hold.
	Limits Limits

	// StateDir is a directory in which it is kept from one run to the next what commands
	// said of themselves, so that clients are answered while a command still starts.
	// Empty means that nothing is kept.
	StateDir string
	// Environ is the environment, as [os.Environ] returns it, of which commands get what
	// programs need to run: PATH, HOME and the like. Nil means this process's own.
	Environ []string
	// OneClient says that the gateway has a single client, as with
	// [Gateway.ServeStdio]: its first message decides how a command is asked.
	OneClient bool

	// Logger gets a line for each request, and warnings. Nil discards them.
	Logger *slog.Logger

	hooks   cmdhook.Hooks
	servers []*server.Server // made by cmdhook.Servers; nil if New has to
}

// Limits bound what clients and servers can make a gateway hold; those that end in Each
// are for one client. Zero means the default, which config.example.yaml names.
type Limits struct {
	Memory              int64 // bytes that are kept for clients
	Body                int64 // bytes of a client's request
	Depth               int64 // nested objects and arrays in a message
	ID                  int64 // bytes of a request's id
	ProgressToken       int64 // bytes of a progress token
	Method              int64 // bytes of a method's name
	URI                 int64 // bytes of a resource's URI
	Filter              int64 // bytes of the filter of a listen stream
	ClientInfo          int64 // bytes of a client's clientInfo
	Capabilities        int64 // bytes of a client's capabilities
	Requests            int64 // HTTP requests in flight
	RequestsEach        int64
	UpstreamMessage     int64 // bytes of a server's message
	Sessions            int64 // sessions with one server
	CommandSessions     int64 // sessions with a command, each of which is a process
	CommandSessionsEach int64
	ClientSessions      int64 // sessions of legacy clients with one server
	ClientSessionsEach  int64
	ClientEvents        int64 // bytes of events kept for a legacy client that comes back
	WebSockets          int64 // open WebSockets of clients
	WebSocketsEach      int64
	Streams             int64 // open listen streams
	ListenTopics        int64 // resources that one stream or session follows
	SubscribesEach      int64 // subscribes a second
	Parked              int64 // calls of one server that wait for input
	ParkedEach          int64
	Cache               int64 // bytes of results that are kept
	CacheEntries        int64 // results that are kept
}
