package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A Config is everything that was configured, defaults filled in. It is read
// only once Load has returned it, and may be shared between goroutines.
//
// The fields are the keys of the configuration, and their tags all that there is to
// know of these: see derive.
type Config struct {
	Listen         string   `koanf:"listen" default:"127.0.0.1:2526" secret:"no" doc:"host:port where MCP clients connect"`
	Admin          string   `koanf:"admin" default:"127.0.0.1:2527" secret:"no" doc:"host:port of metrics and health; off for none"` // empty for none
	AllowAnonymous bool     `koanf:"allow_anonymous" default:"false" doc:"whether listen and admin may be reached from beyond this machine although clients are not authenticated"`
	AllowedOrigins []string `koanf:"allowed_origins" doc:"origins of browser pages, as scheme://host[:port], that may call, beyond those of loopback"`
	AllowedHosts   []string `koanf:"allowed_hosts" doc:"Host headers to accept, without port, beyond the names and addresses of this machine"`
	TrustedProxies []string `koanf:"trusted_proxies" doc:"addresses, or networks as in 10.0.0.0/8, of proxies that say whom they forward requests for"`
	StateKeys      []string `koanf:"state_keys" doc:"secrets that protect requestState: the first seals, all open; with none a random one lasts as long as the process"`
	DebugErrors    bool     `koanf:"debug_errors" default:"false" doc:"whether errors tell clients all that the log says"`

	BodyTimeout  time.Duration `koanf:"body_timeout" default:"30s" min:"100ms" max:"1h" doc:"for the body of a request, or a message on a WebSocket, to arrive"`
	WriteTimeout time.Duration `koanf:"write_timeout" default:"10s" min:"100ms" max:"1h" doc:"a stream that takes no bytes for this long is given up"`
	KeepAlive    time.Duration `koanf:"keep_alive" default:"15s" min:"100ms" max:"1h" doc:"pause between comments on an open stream, or pings on a WebSocket"`
	ClientIdle   time.Duration `koanf:"client_idle" default:"30m" min:"1s" max:"24h" doc:"how long the session of a legacy client lasts unused"`
	Drain        time.Duration `koanf:"drain" default:"10s" max:"1h" doc:"how long a shutdown may take"`

	Remember bool `koanf:"remember" default:"true" doc:"whether what commands said of themselves is kept for the next run"`

	Limits Limits `koanf:"limits" doc:"what clients and servers can make the process hold"`
	Log    Log    `koanf:"log" doc:"what is logged, and how"`

	// Servers in the order of the file; disabled ones included.
	Servers []Server `koanf:"-"`
	// AdminChosen says that Admin was configured, and is not the default.
	AdminChosen bool `koanf:"-"`

	// expanded holds the values of variables that may be secrets.
	expanded []string
}

// Limits bound what clients and servers can make the process hold. All but Memory are
// positive. Package limits declares each, by the name of its key.
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
	ListenTopics        int64 `koanf:"listen_topics"`
	SubscribesEach      int64 `koanf:"subscribes_each"`
	Parked              int64 `koanf:"parked"`
	ParkedEach          int64 `koanf:"parked_each"`
	Cache               int64 `koanf:"cache"`
	CacheEntries        int64 `koanf:"cache_entries"`
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

// Log says what is logged and for whom.
type Log struct {
	Level  string `koanf:"level" default:"info" enum:"debug info warn error" doc:"the least severe that is logged"`
	Format string `koanf:"format" default:"auto" enum:"auto text json" doc:"auto is text on a terminal and json elsewhere"`
}

// A Server is one upstream. Exactly one of Builtin, Command and URL is set.
type Server struct {
	Name     string `koanf:"-"`
	Disabled bool   `koanf:"disabled" default:"false" hosts:"yes" doc:"whether the server is left out"`

	Builtin string            `koanf:"builtin" enum:"notebook modern-notebook" doc:"a small server that is part of mcpbridge"`
	Command string            `koanf:"command" hosts:"yes" doc:"the command that is the server, spoken to over its stdin and stdout"`
	Args    []string          `koanf:"args" of:"command" hosts:"yes" doc:"arguments of the command"`
	Env     map[string]string `koanf:"env" of:"command" hosts:"yes" doc:"environment of the command, beyond a minimal one"` // with what EnvFile has
	EnvFile string            `koanf:"env_file" also:"envFile" of:"command" doc:"a file of NAME=value lines that env wins over, relative to the configuration"`
	Cwd     string            `koanf:"cwd" of:"command" hosts:"yes" doc:"where the command runs; where mcpbridge was started by default"`
	// Remember is Config.Remember where the server has none of its own.
	Remember bool              `koanf:"remember" inherits:"remember" of:"command" doc:"overrides remember of all servers"`
	URL      string            `koanf:"url" also:"serverUrl baseUrl" hosts:"yes" doc:"where the server is: Streamable HTTP, or a WebSocket with ws:// or wss://"`
	Headers  map[string]string `koanf:"headers" of:"url" hosts:"yes" doc:"headers of requests to the URL, credentials among them"`
	// Type is stdio, http, sse or ws where the user wrote it, and has been found to
	// agree with the rest.
	Type string `koanf:"type" enum:"stdio http streamable-http streamableHttp sse ws" hosts:"yes" doc:"the transport; without it a URL of HTTP is taken for http, and for sse where http is refused"`

	Era          string        `koanf:"era" default:"auto" enum:"auto legacy modern" doc:"legacy is 2025-11-25 and before, modern 2026-07-28; auto asks the server"`
	Isolation    string        `koanf:"isolation" default:"principal" enum:"principal shared request" doc:"who shares a session with the server: the requests of one principal, of everybody, or none"`
	LogLevel     string        `koanf:"log_level" default:"none" enum:"none debug info notice warning error critical alert emergency" doc:"log messages that legacy clients get as long as they set no level"`
	Experimental bool          `koanf:"experimental" default:"false" doc:"whether experimental capabilities of clients are declared to the server"`
	Extensions   Extensions    `koanf:"extensions" doc:"which extensions of the protocol cross"`
	Tasks        string        `koanf:"tasks" default:"on" enum:"on off" doc:"whether tasks pass between modern clients and a modern server"`
	ClientInfo   string        `koanf:"client_info" default:"gateway" enum:"gateway client" doc:"who the server is told its client is"`
	Subresources string        `koanf:"subresources" default:"parent" enum:"parent as-sent off" doc:"how an update for a resource below a followed one is reported"`
	Lanes        Lanes         `koanf:"lanes" doc:"sessions of one profile for calls that may ask their client something, by transport"`
	Gather       time.Duration `koanf:"gather" default:"20ms" min:"1ms" max:"10s" doc:"questions of a server that arrive within this time go out together"`
	ParkedTTL    time.Duration `koanf:"parked_ttl" default:"10m" min:"1s" max:"24h" doc:"how long a call waits for its client's answers"`
	Roots        []string      `koanf:"roots" doc:"file URIs that the server is told are its roots; with none each client is asked"`
	Idle         time.Duration `koanf:"idle" default:"5m" min:"1s" max:"24h" doc:"a session with the server is ended after being unused this long"`
	Linger       time.Duration `koanf:"linger" default:"2s" min:"1ms" max:"1h" doc:"a resource that nobody follows any more stays subscribed this long"`
	Synthesize   Synthesize    `koanf:"synthesize" doc:"how often a server that can't tell of changes is looked at; 0s is never"`
	Timeouts     Timeouts      `koanf:"timeouts" doc:"of requests to the server"`
	// Cache is by method: the names are those whose results carry cache hints.
	//
	// Spec: 2026-07-28, schema, CacheableResult.
	Cache map[string]CacheHint `koanf:"cache" names:"server/discover tools/list prompts/list resources/list resources/templates/list resources/read" doc:"what clients are told about keeping results, by method"`

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
	Hide []string `koanf:"hide" doc:"names of extensions, and experimental capabilities, that clients and the server are not told of each other"`
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

// ways returns the keys, with their values, that say how the server is reached.
func (s *Server) ways() [][2]string {
	all := [][2]string{{"builtin", s.Builtin}, {"command", s.Command}, {"url", s.URL}}
	return slices.DeleteFunc(all, func(kv [2]string) bool { return kv[1] == "" })
}

// OverWebSocket reports whether the server is reached over a WebSocket.
func (s *Server) OverWebSocket() bool {
	scheme, _, _ := strings.Cut(s.URL, "://")
	return strings.EqualFold(scheme, "ws") || strings.EqualFold(scheme, "wss")
}

// Lanes are the sessions of one profile for calls that may ask their client
// something, by how the server is reached.
type Lanes struct {
	Stdio int64 `koanf:"stdio" default:"1" min:"1" max:"1000" doc:"with a command, each a process with a state of its own"`
	HTTP  int64 `koanf:"http" default:"4" min:"1" max:"1000" doc:"with a URL, WebSockets among them"`
}

// Synthesize says how often the gateway looks for changes by itself. Zero means
// never.
type Synthesize struct {
	Tools     time.Duration `koanf:"tools" default:"0s" max:"24h" doc:"the list of tools"`
	Prompts   time.Duration `koanf:"prompts" default:"0s" max:"24h" doc:"the list of prompts"`
	Resources time.Duration `koanf:"resources" default:"0s" max:"24h" doc:"the list of resources"`
	Updates   time.Duration `koanf:"updates" default:"0s" max:"24h" doc:"each resource that a client follows"`
}

// Timeouts of one server's requests.
type Timeouts struct {
	// Fetching a package and starting it takes what it takes; clients wait as long.
	Connect time.Duration `koanf:"connect" default:"10s" command:"60s" min:"100ms" max:"1h" doc:"to open a session, or to start a command"`
	Request time.Duration `koanf:"request" default:"60s" min:"100ms" max:"24h" doc:"for an answer; progress starts it anew"`
	Max     time.Duration `koanf:"max" default:"30m" min:"100ms" max:"24h" doc:"for an answer, whatever the progress"`
}

// A CacheHint is what clients are told about keeping a method's results.
//
// Spec: 2026-07-28, schema, CacheableResult.
type CacheHint struct {
	TTL   time.Duration `koanf:"ttl" default:"0s" max:"8760h" doc:"how long a result may be kept"`
	Scope string        `koanf:"scope" default:"private" enum:"private public" doc:"public lets caches share a result between users"`
	// Keep is nil for the default of the method: see kept.
	Keep *bool `koanf:"keep" doc:"whether the gateway keeps public results, too; the default is true for lists"`
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
