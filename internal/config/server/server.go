// Package server has what the configuration says of one server: how it is reached, with which
// certificates and credentials, who may use it, and how requests to it are served. How clients
// prove who they are may also be said of all servers.
package server

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Options are those of one upstream. Exactly one of Builtin, Command and URL is set.
type Options struct {
	Name     string `koanf:"-"`
	Disabled bool   `koanf:"disabled" default:"false" hosts:"yes" doc:"whether the server is ignored"`

	Builtin string            `koanf:"builtin" enum:"notebook modern-notebook" doc:"a small server that is part of mcpbridge"`
	Command string            `koanf:"command" hosts:"yes" doc:"command that runs the server, which uses stdin and stdout"`
	Args    []string          `koanf:"args" of:"command" hosts:"yes" doc:"arguments of the command"`
	Env     map[string]string `koanf:"env" of:"command" hosts:"yes" doc:"environment variables of the command, in addition to a minimal environment"` // including those of EnvFile
	EnvFile string            `koanf:"env_file" also:"envFile" of:"command" doc:"file of NAME=value lines, relative to the configuration; env overrides it"`
	Cwd     string            `koanf:"cwd" of:"command" hosts:"yes" doc:"working directory of the command; by default that of mcpbridge"`
	// Remember is that of all servers if it is not set for the server.
	Remember bool              `koanf:"remember" inherits:"remember" of:"command" doc:"overrides remember of all servers"`
	URL      string            `koanf:"url" also:"serverUrl baseUrl" hosts:"yes" doc:"URL of the server: Streamable HTTP, or a WebSocket with ws:// or wss://"`
	Headers  map[string]string `koanf:"headers" of:"url" hosts:"yes" doc:"headers of requests to the URL, such as credentials"`
	TLS      TLS               `koanf:"tls" of:"url" doc:"certificates for https and wss to the server"`
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

// Hidden returns the names of extensions and experimental capabilities that are not
// forwarded, including the tasks extension if tasks are off.
func (s *Options) Hidden() []string {
	hidden := append([]string(nil), s.Extensions.Hide...)
	if s.Tasks == "off" {
		hidden = append(hidden, spec.ExtensionTasks)
	}
	return hidden
}

// Ways returns the keys and values that configure how the server is reached.
func (s *Options) Ways() [][2]string {
	all := [][2]string{{"builtin", s.Builtin}, {"command", s.Command}, {"url", s.URL}}
	return slices.DeleteFunc(all, func(kv [2]string) bool { return kv[1] == "" })
}

// OverWebSocket reports whether the server is reached over a WebSocket.
func (s *Options) OverWebSocket() bool {
	scheme, _, _ := strings.Cut(s.URL, "://")
	return strings.EqualFold(scheme, "ws") || strings.EqualFold(scheme, "wss")
}

// HasHeader reports whether a header is configured for a server.
func (s *Options) HasHeader(name string) bool {
	for h := range s.Headers {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}
