package config

import (
	"reflect"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/config/server"
)

// A Config is a complete configuration, including defaults. After Load has returned it, it
// is read-only and may be used concurrently.
//
// The fields are the keys of the configuration, and their tags describe the keys: see
// package key.
type Config struct {
	// Include has the files themselves after Load, in the order in which they were read.
	Include []string `koanf:"include" single:"yes" secret:"no" doc:"files to read, too, relative to this one; the last part of a path may be a pattern: conf.d/*.yaml"`

	Listen         string       `koanf:"listen" default:"127.0.0.1:2526" secret:"no" doc:"host:port where MCP clients connect"`
	Admin          string       `koanf:"admin" default:"127.0.0.1:2527" secret:"no" doc:"host:port of metrics and health, or unix: and the path of a socket; off for none"` // empty for none
	AdminToken     string       `koanf:"admin_token" doc:"token of requests to admin, sent as Authorization: Bearer"`
	MetricsToken   string       `koanf:"metrics_token" doc:"token of requests to /metrics alone, instead of admin_token"`
	AdminBodies    bool         `koanf:"admin_bodies" default:"false" doc:"whether the admin page shows the messages and headers of calls, and questions, without secrets of the configuration"`
	AdminDebug     bool         `koanf:"admin_debug" default:"false" doc:"whether admin serves profiles of the process beyond loopback, too"`
	TLS            TLS          `koanf:"tls" doc:"certificates for https on listen, and on admin beyond loopback"`
	AllowAnonymous bool         `koanf:"allow_anonymous" default:"false" doc:"whether clients on other machines may be anonymous"`
	PublicURL      string       `koanf:"public_url" secret:"no" doc:"the URL by which clients reach the gateway, without /mcp/NAME"`
	Auth           *server.Auth `koanf:"auth" word:"none" doc:"how clients are authenticated: tokens, jwt, mtls, or several of them; none for anonymous clients, which is the default"`
	AllowedOrigins []string     `koanf:"allowed_origins" doc:"origins of browser pages that may send requests, as scheme://host[:port], in addition to loopback origins"`
	AllowedHosts   []string     `koanf:"allowed_hosts" doc:"Host names to accept, without port, in addition to the names and addresses of this machine"`
	TrustedProxies []string     `koanf:"trusted_proxies" doc:"addresses or networks (10.0.0.0/8) of reverse proxies whose X-Forwarded-For and Forwarded headers are trusted"`
	StateKeys      []string     `koanf:"state_keys" doc:"secrets that encrypt requestState: the first encrypts, all decrypt; by default derived from replicas.keys, or a random one for each run"`
	LoginKeys      []string     `koanf:"login_keys" doc:"secrets that encrypt the logins of users (upstream_auth.oauth.per): the first encrypts, all decrypt; by default derived from state_keys, or replicas.keys"`
	Replicas       *Replicas    `koanf:"replicas" doc:"several processes that serve the same clients"`
	DebugErrors    bool         `koanf:"debug_errors" default:"false" doc:"whether clients get errors with all details of the log, such as addresses and paths"`

	BodyTimeout  time.Duration `koanf:"body_timeout" default:"30s" min:"100ms" max:"1h" doc:"time limit for receiving a request body, or a message over a WebSocket"`
	WriteTimeout time.Duration `koanf:"write_timeout" default:"10s" min:"100ms" max:"1h" doc:"a stream is closed if its client reads nothing for this long"`
	KeepAlive    time.Duration `koanf:"keep_alive" default:"15s" min:"100ms" max:"1h" doc:"interval of comments on an open stream, and of pings on a WebSocket"`
	ClientIdle   time.Duration `koanf:"client_idle" default:"30m" min:"1s" max:"24h" doc:"a client's session ends after this time without use"`
	Drain        time.Duration `koanf:"drain" default:"10s" max:"1h" doc:"time limit for a shutdown"`
	DrainDelay   time.Duration `koanf:"drain_delay" default:"0s" max:"1h" doc:"how long requests are still served, and /readyz is 503, before a shutdown begins"`

	StateDir string `koanf:"state_dir" secret:"no" doc:"where it is kept what outlives the process, such as logins and pinned tools; the user's folder for that by default"`
	Audit    Audit  `koanf:"audit" short:"file" doc:"the audit log: a file with a line of JSON for each request, or keys"`
	Remember bool   `koanf:"remember" default:"true" doc:"whether descriptions of commands (era, capabilities) are stored for the next start"`

	Keyring           bool     `koanf:"keyring" default:"true" doc:"whether logins are stored in the system's keyring if there is one, and otherwise in state_dir"`
	ClientMetadataURL string   `koanf:"client_metadata_url" secret:"no" doc:"URL of the client ID metadata document that mcpbridge login uses as its client ID"`
	AllowHosts        []string `koanf:"allow_hosts" doc:"hosts with private addresses that logins may use although the server has a public address"`

	Limits Limits `koanf:"limits" doc:"limits on what clients and servers can make the process use"`
	Log    Log    `koanf:"log" doc:"what is logged, and in which format"`

	// Servers in the order of the file; disabled ones included.
	Servers []Server `koanf:"-"`
	// Groups are in the order of their names.
	Groups []Group `koanf:"-"`
	// File is the one that was read, as it was named; empty for none.
	File string `koanf:"-"`
	// Default is the name of the group that needs none in the URL; empty for none.
	Default string `koanf:"-"`
	// MakeToken says that a token has to be made: clients come from other machines, and
	// no authentication is configured.
	MakeToken bool `koanf:"-"`
	// AdminChosen says that Admin was configured, and is not a default.
	AdminChosen bool `koanf:"-"`

	// expanded contains the values of variables that may be secrets.
	expanded []string
	// variables are the names of the variables that values refer to.
	variables []string
	// files are those that were read.
	files []string
	// places has where each of Servers is, by its name; nil if they were never indexed.
	places map[string]int
}

// Files returns the files that were read: the configuration, those that it includes, and
// those that it names for values. Certificates are not among them, unless an [Error] is about
// them. Patterns of include are, since a file that matches one later belongs to the configuration,
// too: see Glob of package layer.
func (c *Config) Files() []string { return slices.Clone(c.files) }

// Secrets returns the values of the configuration that logs, errors and reports must not
// contain: tokens, client secrets, the values of headers, of the environment of commands,
// of state keys, of replicas and of expanded variables, user information and queries of URLs, and
// arguments after the name of a credential. Some may be harmless, or duplicates.
func (c *Config) Secrets() []string {
	out := slices.Concat([]string{c.AdminToken, c.MetricsToken}, c.StateKeys, c.LoginKeys, c.expanded, c.Auth.Secrets(), c.Replicas.Secrets())
	for i := range c.Servers {
		out = append(out, c.Servers[i].Secrets()...)
	}
	for i := range c.Groups {
		out = append(out, c.Groups[i].Auth.Secrets()...)
	}
	return out
}

// Parts of the configuration that stand in packages below.
type (
	Auth         = server.Auth
	Group        = server.Group
	IssuerClient = server.IssuerClient
	Policy       = server.Policy
	Rate         = server.Rate
	Rates        = server.Rates
	Server       = server.Options
	ServerTLS    = server.TLS
	StoredLogin  = server.StoredLogin
	Token        = server.Token
	UpstreamAuth = server.UpstreamAuth
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
	Tasks               int64 `koanf:"tasks"`
	TasksEach           int64 `koanf:"tasks_each"`
	TaskResults         int64 `koanf:"task_results"`
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

// Audit configures the audit log.
type Audit struct {
	File     string `koanf:"file" default:"off" secret:"no" doc:"a file with a line of JSON for each request: who did what, and how it ended; stdout, or off for none"`
	Required bool   `koanf:"required" default:"false" doc:"whether requests are refused while lines can't be written"`
}

// Path returns where the audit log is; empty for none.
func (a *Audit) Path() string {
	if a.File == "off" {
		return ""
	}
	return a.File
}

// Log configures the log.
type Log struct {
	Level  string `koanf:"level" default:"info" enum:"debug info warn error" doc:"the lowest level that is logged"`
	Format string `koanf:"format" default:"auto" enum:"auto text json" doc:"auto is text on a terminal, and json otherwise"`
	Access string `koanf:"access" default:"off" enum:"off text json" doc:"the access log: a line for each request, apart from the log"`
}
