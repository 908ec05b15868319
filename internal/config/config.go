package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config/certificates"
	"github.com/mcpbridge/mcpbridge/internal/config/replicas"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Config is a complete configuration, including defaults. After Load has returned it, it
// is read-only and may be used concurrently.
//
// The fields are the keys of the configuration, and their tags describe the keys: see
// package key.
type Config struct {
	// Include has the files themselves after Load, in the order in which they were read.
	Include []string `koanf:"include" single:"yes" secret:"no" doc:"files to read, too, relative to this one; the last part of a path may be a pattern: conf.d/*.yaml"`

	Listen         string                `koanf:"listen" default:"127.0.0.1:2526" secret:"no" doc:"host:port where MCP clients connect"`
	Admin          string                `koanf:"admin" default:"127.0.0.1:2527" secret:"no" doc:"host:port of metrics and health, or unix: and the path of a socket; off for none"` // empty for none
	AdminToken     string                `koanf:"admin_token" doc:"token of requests to admin, sent as Authorization: Bearer"`
	MetricsToken   string                `koanf:"metrics_token" doc:"token of requests to /metrics alone, instead of admin_token"`
	AdminBodies    bool                  `koanf:"admin_bodies" default:"false" doc:"whether the admin page shows the messages of calls and questions, without secrets of the configuration"`
	AdminDebug     bool                  `koanf:"admin_debug" default:"false" doc:"whether admin serves profiles of the process beyond loopback, too"`
	TLS            certificates.Listener `koanf:"tls" doc:"certificates for https on listen, and on admin beyond loopback"`
	AllowAnonymous bool                  `koanf:"allow_anonymous" default:"false" doc:"whether clients on other machines may be anonymous"`
	PublicURL      string                `koanf:"public_url" secret:"no" doc:"the URL by which clients reach the gateway, without /mcp/NAME"`
	Auth           *Auth                 `koanf:"auth" word:"none" doc:"how clients are authenticated: tokens, jwt or mtls; none for anonymous clients, which is the default"`
	AllowedOrigins []string              `koanf:"allowed_origins" doc:"origins of browser pages that may send requests, as scheme://host[:port], in addition to loopback origins"`
	AllowedHosts   []string              `koanf:"allowed_hosts" doc:"Host names to accept, without port, in addition to the names and addresses of this machine"`
	TrustedProxies []string              `koanf:"trusted_proxies" doc:"addresses or networks (10.0.0.0/8) of reverse proxies whose X-Forwarded-For and Forwarded headers are trusted"`
	StateKeys      []string              `koanf:"state_keys" doc:"secrets that encrypt requestState: the first encrypts, all decrypt; by default derived from replicas.keys, or a random one for each run"`
	Replicas       *replicas.Config      `koanf:"replicas" doc:"several processes that serve the same clients"`
	DebugErrors    bool                  `koanf:"debug_errors" default:"false" doc:"whether clients get errors with all details of the log, such as addresses and paths"`

	BodyTimeout  time.Duration `koanf:"body_timeout" default:"30s" min:"100ms" max:"1h" doc:"time limit for receiving a request body, or a message over a WebSocket"`
	WriteTimeout time.Duration `koanf:"write_timeout" default:"10s" min:"100ms" max:"1h" doc:"a stream is closed if its client reads nothing for this long"`
	KeepAlive    time.Duration `koanf:"keep_alive" default:"15s" min:"100ms" max:"1h" doc:"interval of comments on an open stream, and of pings on a WebSocket"`
	ClientIdle   time.Duration `koanf:"client_idle" default:"30m" min:"1s" max:"24h" doc:"a client's session ends after this time without use"`
	Drain        time.Duration `koanf:"drain" default:"10s" max:"1h" doc:"time limit for a shutdown"`
	DrainDelay   time.Duration `koanf:"drain_delay" default:"0s" max:"1h" doc:"how long requests are still served, and /readyz is 503, before a shutdown begins"`

	StateDir string `koanf:"state_dir" secret:"no" doc:"where it is kept what outlives the process, such as logins and pinned tools; the user's folder for that by default"`
	Audit    string `koanf:"audit" default:"off" secret:"no" doc:"a file with a line of JSON for each request: who did what, and how it ended; stdout, or off for none"`
	Remember bool   `koanf:"remember" default:"true" doc:"whether descriptions of commands (era, capabilities) are stored for the next start"`

	Keyring           bool     `koanf:"keyring" default:"true" doc:"whether logins are stored in the system's keyring if there is one, and otherwise in state_dir"`
	ClientMetadataURL string   `koanf:"client_metadata_url" secret:"no" doc:"URL of the client ID metadata document that mcpbridge login uses as its client ID"`
	AllowHosts        []string `koanf:"allow_hosts" doc:"hosts with private addresses that logins may use although the server has a public address"`

	Limits Limits `koanf:"limits" doc:"limits on what clients and servers can make the process use"`
	Log    Log    `koanf:"log" doc:"what is logged, and in which format"`

	// Servers in the order of the file; disabled ones included.
	Servers []Server `koanf:"-"`
	// MakeToken says that a token has to be made: clients come from other machines, and
	// no authentication is configured.
	MakeToken bool `koanf:"-"`
	// AdminChosen says that Admin was configured, and is not a default.
	AdminChosen bool `koanf:"-"`

	// expanded contains the values of variables that may be secrets.
	expanded []string
	// files are those that were read.
	files []string
}

// Files returns the files that were read: the configuration, those that it includes, and
// those that it names for values. Certificates are not among them. Patterns of include are,
// since a file that matches one later belongs to the configuration, too: see Glob of package layer.
func (c *Config) Files() []string { return slices.Clone(c.files) }

// Parts of the configuration, each with a package of its own.
type (
	Replicas  = replicas.Config
	TLS       = certificates.Listener
	ServerTLS = certificates.Server
)

// Limits bound what clients and servers can make the process use. All except Memory are
// positive. Package limits declares each of them under the name of its key.
type Limits struct {
	Memory              int64 `koanf:"memory"`
	Body                int64 `koanf:"body"`
	Depth               int64 `koanf:"depth"`
	ID                  int64 `koanf:"id"`
	ProgressToken       int64 `koanf:"progress_token"`
	Method              int64 `koanf:"method"`
	URI                 int64 `koanf:"uri"`
	Filter              int64 `koanf:"filter"`
	ClientInfo          int64 `koanf:"client_info"`
	Capabilities        int64 `koanf:"capabilities"`
	Requests            int64 `koanf:"requests"`
	RequestsEach        int64 `koanf:"requests_each"`
	NewConnections      int64 `koanf:"new_connections"`
	UpstreamMessage     int64 `koanf:"upstream_message"`
	Sessions            int64 `koanf:"sessions"`
	CommandSessions     int64 `koanf:"command_sessions"`
	CommandSessionsEach int64 `koanf:"command_sessions_each"`
	ClientSessions      int64 `koanf:"client_sessions"`
	ClientSessionsEach  int64 `koanf:"client_sessions_each"`
	ClientEvents        int64 `koanf:"client_events"`
	WebSockets          int64 `koanf:"websockets"`
	WebSocketsEach      int64 `koanf:"websockets_each"`
	Streams             int64 `koanf:"streams"`
	StreamsEach         int64 `koanf:"streams_each"`
	ListenTopics        int64 `koanf:"listen_topics"`
	SubscribesEach      int64 `koanf:"subscribes_each"`
	Parked              int64 `koanf:"parked"`
	ParkedEach          int64 `koanf:"parked_each"`
	Cache               int64 `koanf:"cache"`
	CacheEntries        int64 `koanf:"cache_entries"`
	MetricTools         int64 `koanf:"metric_tools"`
}

// ByName returns the limits by the names of their keys.
func (l *Limits) ByName() map[string]int64 {
	out := make(map[string]int64)
	v := reflect.ValueOf(l).Elem()
	for i := range v.NumField() {
		out[v.Type().Field(i).Tag.Get("koanf")] = v.Field(i).Int()
	}
	return out
}

// Log configures the log.
type Log struct {
	Level  string `koanf:"level" default:"info" enum:"debug info warn error" doc:"the lowest level that is logged"`
	Format string `koanf:"format" default:"auto" enum:"auto text json" doc:"auto is text on a terminal, and json otherwise"`
	Access string `koanf:"access" default:"off" enum:"off text json" doc:"the access log: a line for each request, apart from the log"`
}

// A Server is one upstream. Exactly one of Builtin, Command and URL is set.
type Server struct {
	Name     string `koanf:"-"`
	Disabled bool   `koanf:"disabled" default:"false" hosts:"yes" doc:"whether the server is ignored"`

	Builtin string            `koanf:"builtin" enum:"notebook modern-notebook" doc:"a small server that is part of mcpbridge"`
	Command string            `koanf:"command" hosts:"yes" doc:"command that runs the server, which uses stdin and stdout"`
	Args    []string          `koanf:"args" of:"command" hosts:"yes" doc:"arguments of the command"`
	Env     map[string]string `koanf:"env" of:"command" hosts:"yes" doc:"environment variables of the command, in addition to a minimal environment"` // including those of EnvFile
	EnvFile string            `koanf:"env_file" also:"envFile" of:"command" doc:"file of NAME=value lines, relative to the configuration; env overrides it"`
	Cwd     string            `koanf:"cwd" of:"command" hosts:"yes" doc:"working directory of the command; by default that of mcpbridge"`
	// Remember is Config.Remember if it is not set for the server.
	Remember bool                `koanf:"remember" inherits:"remember" of:"command" doc:"overrides remember of all servers"`
	URL      string              `koanf:"url" also:"serverUrl baseUrl" hosts:"yes" doc:"URL of the server: Streamable HTTP, or a WebSocket with ws:// or wss://"`
	Headers  map[string]string   `koanf:"headers" of:"url" hosts:"yes" doc:"headers of requests to the URL, such as credentials"`
	TLS      certificates.Server `koanf:"tls" of:"url" doc:"certificates for https and wss to the server"`
	// Type is stdio, http, sse or ws, or empty if the user did not set it. It agrees with
	// the other keys.
	Type string `koanf:"type" enum:"stdio http streamable-http streamableHttp sse ws" hosts:"yes" doc:"the transport; by default that of the command or URL: for an HTTP URL http is tried first, and then sse"`

	UpstreamAuth *UpstreamAuth `koanf:"upstream_auth" of:"url" doc:"credentials for requests to the URL: static, client_credentials, token_exchange, oauth or passthrough"`

	Auth      *Auth  `koanf:"auth" word:"none" doc:"overrides auth of all servers"`
	PublicURL string `koanf:"public_url" secret:"no" doc:"the URL of the endpoint for clients, byte for byte; the default is the common public_url, /mcp/ and the name"`

	Policy *Policy `koanf:"policy" doc:"who may do what with the server; without one everybody may do everything"`
	Rate   Rates   `koanf:"rate" doc:"how many requests the server gets, handshakes aside; 0 is no bound"`
	Pin    string  `koanf:"pin" default:"off" enum:"off warn refuse" doc:"what becomes of a tool whose definition is not the one that was accepted"`

	Era          string        `koanf:"era" default:"auto" enum:"auto legacy modern" doc:"legacy is 2025-11-25 and earlier, modern is 2026-07-28; auto detects it"`
	Isolation    string        `koanf:"isolation" default:"principal" enum:"principal shared request" doc:"which requests may share a session with the server: those of one principal, all, or none"`
	LogLevel     string        `koanf:"log_level" default:"none" enum:"none debug info notice warning error critical alert emergency" doc:"log level for legacy clients that set none"`
	Experimental bool          `koanf:"experimental" default:"false" doc:"whether clients' experimental capabilities are forwarded to the server"`
	Extensions   Extensions    `koanf:"extensions" doc:"which extensions of the protocol are forwarded"`
	Tasks        string        `koanf:"tasks" default:"on" enum:"on off" doc:"whether modern clients can use tasks of a modern server"`
	ClientInfo   string        `koanf:"client_info" default:"gateway" enum:"gateway client" doc:"whether the server gets the name of the gateway, or of the client"`
	Subresources string        `koanf:"subresources" default:"parent" enum:"parent as-sent off" doc:"how an update of a resource below a subscribed one is reported"`
	Replicas     string        `koanf:"replicas" default:"any" command:"one" enum:"any one" doc:"which replica serves the calls of a profile: one holds it, or the one that is asked"`
	Lanes        Lanes         `koanf:"lanes" doc:"how many sessions one profile has for calls that may request input, by transport"`
	Gather       time.Duration `koanf:"gather" default:"20ms" min:"1ms" max:"10s" doc:"input requests of a server that arrive within this time are sent together"`
	ParkedTTL    time.Duration `koanf:"parked_ttl" default:"10m" min:"1s" max:"24h" doc:"how long a call waits for the client's responses to its input requests"`
	Roots        []string      `koanf:"roots" doc:"file URIs of the roots for the server; by default those of each client"`
	Idle         time.Duration `koanf:"idle" default:"5m" min:"1s" max:"24h" doc:"a session with the server ends after this time without use"`
	Linger       time.Duration `koanf:"linger" default:"2s" min:"1ms" max:"1h" doc:"a resource stays subscribed this long after its last subscriber has left"`
	Synthesize   Synthesize    `koanf:"synthesize" doc:"how often a server is polled for changes that it does not report; 0s is never"`
	Timeouts     Timeouts      `koanf:"timeouts" doc:"time limits of requests to the server"`
	// Cache is by method: the names are those of methods whose results have cache hints.
	//
	// Spec: 2026-07-28, schema, CacheableResult.
	Cache map[string]CacheHint `koanf:"cache" names:"server/discover tools/list prompts/list resources/list resources/templates/list resources/read" doc:"cache hints of results for clients, by method"`

	// written contains the command, the URL and the arguments as the user wrote them,
	// before the expansion of variables: these may be shown to people.
	written written
}

type written struct {
	command, url string
	args         []string
}

// Extensions configure which extensions of the protocol are forwarded.
type Extensions struct {
	Hide []string `koanf:"hide" doc:"names of extensions and experimental capabilities that are not forwarded, in either direction"`
}

// Hidden returns the names of extensions and experimental capabilities that are not
// forwarded, including the tasks extension if tasks are off.
func (s *Server) Hidden() []string {
	hidden := append([]string(nil), s.Extensions.Hide...)
	if s.Tasks == "off" {
		hidden = append(hidden, spec.ExtensionTasks)
	}
	return hidden
}

// ways returns the keys and values that configure how the server is reached.
func (s *Server) ways() [][2]string {
	all := [][2]string{{"builtin", s.Builtin}, {"command", s.Command}, {"url", s.URL}}
	return slices.DeleteFunc(all, func(kv [2]string) bool { return kv[1] == "" })
}

// OverWebSocket reports whether the server is reached over a WebSocket.
func (s *Server) OverWebSocket() bool {
	scheme, _, _ := strings.Cut(s.URL, "://")
	return strings.EqualFold(scheme, "ws") || strings.EqualFold(scheme, "wss")
}

// Lanes are the numbers of sessions that one profile has for calls that may request input,
// by transport.
type Lanes struct {
	Stdio int64 `koanf:"stdio" default:"1" min:"1" max:"1000" doc:"for a command: each is a process with its own state"`
	HTTP  int64 `koanf:"http" default:"4" min:"1" max:"1000" doc:"for a URL, also that of a WebSocket"`
}

// Synthesize configures how often the gateway polls for changes. Zero means never.
type Synthesize struct {
	Tools     time.Duration `koanf:"tools" default:"0s" max:"24h" doc:"the list of tools"`
	Prompts   time.Duration `koanf:"prompts" default:"0s" max:"24h" doc:"the list of prompts"`
	Resources time.Duration `koanf:"resources" default:"0s" max:"24h" doc:"the list of resources"`
	Updates   time.Duration `koanf:"updates" default:"0s" max:"24h" doc:"each resource that a client subscribes to"`
}

// Timeouts are the time limits of requests to one server.
type Timeouts struct {
	// A command has more time, because it may have to download a package first. Clients
	// wait as long.
	Connect time.Duration `koanf:"connect" default:"10s" command:"60s" min:"100ms" max:"1h" doc:"to open a session, or to start a command"`
	Request time.Duration `koanf:"request" default:"60s" min:"100ms" max:"24h" doc:"for a response; progress restarts it"`
	Max     time.Duration `koanf:"max" default:"30m" min:"100ms" max:"24h" doc:"for a response, in spite of progress"`
}

// A CacheHint is the cache hint in the results of a method.
//
// Spec: 2026-07-28, schema, CacheableResult.
type CacheHint struct {
	TTL   time.Duration `koanf:"ttl" default:"0s" max:"8760h" doc:"how long a result may be cached"`
	Scope string        `koanf:"scope" default:"private" enum:"private public" doc:"public lets a cache share a result between users"`
	// Keep is nil for the default of the method: see kept.
	Keep *bool `koanf:"keep" doc:"whether the gateway also caches public results; the default is true for lists"`
}

// kept reports whether the gateway caches results of method. By default it caches lists
// only: a cached resource goes stale without notice unless a client subscribes to it.
// Discovery needs no cache, because the gateway answers it itself.
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

// Kept returns the methods whose results the gateway caches, in order.
func (s *Server) Kept() []string {
	var out []string
	for _, method := range slices.Sorted(maps.Keys(s.Cache)) {
		if s.Cache[method].kept(method) {
			out = append(out, method)
		}
	}
	return out
}
