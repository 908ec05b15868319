package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Config is everything that was configured, defaults filled in. It is read
// only once Load has returned it, and may be shared between goroutines.
type Config struct {
	// Listen is the host:port of the endpoints.
	Listen string `koanf:"listen"`
	// Admin is the host:port of metrics and health; empty switches them off.
	Admin string `koanf:"admin"`
	// AdminChosen says that Admin was configured, and is not the default.
	AdminChosen bool `koanf:"-"`
	// AllowAnonymous lets Listen and Admin be reached from beyond this
	// machine although clients are not authenticated.
	AllowAnonymous bool `koanf:"allow_anonymous"`
	// AllowedOrigins are the Origin headers that browsers may send, beyond
	// the loopback ones; each is scheme://host[:port].
	AllowedOrigins []string `koanf:"allowed_origins"`
	// AllowedHosts are Host headers, without port, accepted beyond the loopback
	// names, and on a listener beyond loopback beyond IP addresses and the
	// machine's name.
	AllowedHosts []string `koanf:"allowed_hosts"`
	// TrustedProxies are addresses, or networks as in 10.0.0.0/8, of proxies that say
	// whom they forward requests for.
	TrustedProxies []string `koanf:"trusted_proxies"`

	// StateKeys are the secrets that protect requestState: the first seals, all
	// open. Empty means a random one for the life of the process.
	StateKeys []string `koanf:"state_keys"`

	// DebugErrors has errors tell clients all that the log says.
	DebugErrors bool `koanf:"debug_errors"`

	// BodyTimeout bounds the time in which a request's body arrives.
	BodyTimeout time.Duration `koanf:"body_timeout"`
	// WriteTimeout is how long a stream may refuse to take bytes before it
	// counts as stale. KeepAlive is the pause between comments on an open
	// stream. Drain bounds the shutdown.
	WriteTimeout time.Duration `koanf:"write_timeout"`
	KeepAlive    time.Duration `koanf:"keep_alive"`
	Drain        time.Duration `koanf:"drain"`
	// ClientIdle is how long the session of a legacy client lasts unused.
	ClientIdle time.Duration `koanf:"client_idle"`

	// Remember says to keep what commands said of themselves for the next run.
	Remember bool `koanf:"remember"`

	Limits Limits `koanf:"limits"`
	Log    Log    `koanf:"log"`

	// Servers in the order of the file; disabled ones included.
	Servers []Server `koanf:"-"`

	// expanded holds the values of variables that may be secrets.
	expanded []string
}

// Limits bound what clients and servers can make the process hold. All are
// positive.
type Limits struct {
	Memory              int64 `koanf:"memory"`                // bytes of the process; 0 for a part of what the machine has
	Body                int64 `koanf:"body"`                  // bytes of a client's request
	Depth               int64 `koanf:"depth"`                 // nested objects and arrays in a message
	ID                  int64 `koanf:"id"`                    // bytes of a request's id, as those below as it is written
	ProgressToken       int64 `koanf:"progress_token"`        // bytes of one
	Method              int64 `koanf:"method"`                // bytes of its name
	URI                 int64 `koanf:"uri"`                   // bytes of a resource's
	Filter              int64 `koanf:"filter"`                // bytes of what a listen stream is about
	ClientInfo          int64 `koanf:"client_info"`           // bytes of what a client says of itself
	Capabilities        int64 `koanf:"capabilities"`          // bytes of what a client can do
	Requests            int64 `koanf:"requests"`              // over HTTP in flight
	RequestsEach        int64 `koanf:"requests_each"`         // of them, those of one share
	UpstreamMessage     int64 `koanf:"upstream_message"`      // bytes of one message of a server
	Sessions            int64 `koanf:"sessions"`              // sessions per server, all profiles together
	CommandSessions     int64 `koanf:"command_sessions"`      // processes of one command
	CommandSessionsEach int64 `koanf:"command_sessions_each"` // of them, those of one share
	ClientSessions      int64 `koanf:"client_sessions"`       // of legacy clients, per server
	ClientSessionsEach  int64 `koanf:"client_sessions_each"`  // of them, those of one share
	ClientEvents        int64 `koanf:"client_events"`         // bytes of events that one of them keeps
	WebSockets          int64 `koanf:"websockets"`            // open ones of clients in all
	WebSocketsEach      int64 `koanf:"websockets_each"`       // of them, those of one share
	Streams             int64 `koanf:"streams"`               // open subscriptions/listen requests in all
	ListenTopics        int64 `koanf:"listen_topics"`         // resources one listen stream may name, or one session follow
	SubscribesEach      int64 `koanf:"subscribes_each"`       // a second, at one server, that one share causes
	Parked              int64 `koanf:"parked"`                // calls of one server that wait for answers
	ParkedEach          int64 `koanf:"parked_each"`           // of them, those of one share
	Cache               int64 `koanf:"cache"`                 // bytes of results that are kept, over all servers
	CacheEntries        int64 `koanf:"cache_entries"`         // results that are kept
}

// Log says what is logged and for whom.
type Log struct {
	Level  string `koanf:"level"`  // debug, info, warn or error
	Format string `koanf:"format"` // auto, text or json
}

// A Server is one upstream. Exactly one of Builtin, Command and URL is set.
type Server struct {
	Name     string `koanf:"-"`
	Disabled bool   `koanf:"disabled"`

	Builtin string            `koanf:"builtin"`
	Command string            `koanf:"command"`
	Args    []string          `koanf:"args"`
	Env     map[string]string `koanf:"env"`
	// EnvFile names a file of NAME=value lines, which Load has put into Env where
	// Env had nothing of the name.
	EnvFile string `koanf:"env_file"`
	Cwd     string `koanf:"cwd"`
	// Remember is Config.Remember where the server has none of its own.
	Remember bool              `koanf:"remember"`
	URL      string            `koanf:"url"`
	Headers  map[string]string `koanf:"headers"`
	// Type is stdio, http, sse or ws where the user wrote it, and has been found to
	// agree with the rest. A URL of HTTP without one may be of Streamable HTTP or
	// HTTP+SSE.
	Type string `koanf:"type"`

	Era          string               `koanf:"era"`          // auto, legacy or modern
	Isolation    string               `koanf:"isolation"`    // principal, shared or request
	LogLevel     string               `koanf:"log_level"`    // of legacy clients that set none; none for no messages
	Experimental bool                 `koanf:"experimental"` // what clients have of experimental capabilities crosses
	Extensions   Extensions           `koanf:"extensions"`
	Tasks        string               `koanf:"tasks"`        // on or off
	ClientInfo   string               `koanf:"client_info"`  // gateway or client
	Subresources string               `koanf:"subresources"` // parent, as-sent or off
	Lanes        Lanes                `koanf:"lanes"`        // sessions of one profile for calls that may ask
	Gather       time.Duration        `koanf:"gather"`       // questions of a server are collected this long
	ParkedTTL    time.Duration        `koanf:"parked_ttl"`   // a call waits for its client's answers this long
	Roots        []string             `koanf:"roots"`        // file URIs; empty means each client's own
	Idle         time.Duration        `koanf:"idle"`         // a session unused this long is ended
	Linger       time.Duration        `koanf:"linger"`       // a topic nobody wants is kept this long
	Synthesize   Synthesize           `koanf:"synthesize"`
	Timeouts     Timeouts             `koanf:"timeouts"`
	Cache        map[string]CacheHint `koanf:"cache"` // by method

	// written holds the command, the URL and the arguments as the user wrote them,
	// before variables were expanded: what may be shown to people.
	written written
}

type written struct {
	command, url string
	args         []string
}

// Extensions say which extensions of the protocol cross.
type Extensions struct {
	// Hide names extensions and experimental capabilities that clients and the server
	// are not told of each other.
	Hide []string `koanf:"hide"`
}

// Hidden returns the names of extensions and experimental capabilities that do not cross,
// that of tasks among them if these are off.
func (s *Server) Hidden() []string {
	hidden := append([]string(nil), s.Extensions.Hide...)
	if s.Tasks == "off" {
		hidden = append(hidden, spec.ExtensionTasks)
	}
	return hidden
}

// OverWebSocket reports whether the server is reached over a WebSocket.
func (s *Server) OverWebSocket() bool {
	scheme, _, _ := strings.Cut(s.URL, "://")
	return strings.EqualFold(scheme, "ws") || strings.EqualFold(scheme, "wss")
}

// Lanes are the sessions of one profile for calls that may ask their client
// something, by how the server is reached.
type Lanes struct {
	Stdio int64 `koanf:"stdio"`
	HTTP  int64 `koanf:"http"`
}

// Synthesize says how often the gateway looks for changes by itself. Zero means
// never.
type Synthesize struct {
	Tools     time.Duration `koanf:"tools"`     // the list of tools
	Prompts   time.Duration `koanf:"prompts"`   // the list of prompts
	Resources time.Duration `koanf:"resources"` // the list of resources
	Updates   time.Duration `koanf:"updates"`   // each resource that a client follows
}

// Timeouts of one server's requests.
type Timeouts struct {
	Connect time.Duration `koanf:"connect"` // to open a session, or start a command
	Request time.Duration `koanf:"request"` // for an answer; progress restarts it
	Max     time.Duration `koanf:"max"`     // for an answer, whatever progress is made
}

// A CacheHint is what clients are told about keeping a method's results.
//
// Spec: 2026-07-28, schema, CacheableResult.
type CacheHint struct {
	TTL   time.Duration `koanf:"ttl"`
	Scope string        `koanf:"scope"` // private or public
	// Keep says whether the gateway keeps the results, too; nil is the default
	// of the method.
	Keep *bool `koanf:"keep"`
}

// kept reports whether the gateway keeps results of method. Those that may be
// are lists by default: reads go stale without a word unless somebody follows
// their resource. Discovery is answered from what is known anyway.
func (h CacheHint) kept(method string) bool {
	if !h.keepable(method) {
		return false
	}
	if h.Keep == nil {
		return method != spec.MethodResourcesRead
	}
	return *h.Keep
}

func (h CacheHint) keepable(method string) bool {
	return h.Scope == spec.ScopePublic && h.TTL > 0 && method != spec.MethodDiscover
}

// Kept returns the methods whose results the gateway keeps, in order.
func (s *Server) Kept() []string {
	var out []string
	for _, method := range slices.Sorted(maps.Keys(s.Cache)) {
		if s.Cache[method].kept(method) {
			out = append(out, method)
		}
	}
	return out
}
