// Package server has what the configuration says of one server: how it is reached, with which
// certificates and credentials, who may use it, and how requests to it are served. How clients
// prove who they are may also be said of all servers.
package server

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/names"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// Options are those of one upstream. Exactly one of Builtin, Command and URL is set.
type Options struct {
	Name     string `koanf:"-"`
	Disabled bool   `koanf:"disabled" default:"false" hosts:"yes" doc:"whether the server is ignored"`

	Builtin string            `koanf:"builtin" enum:"notebook modern-notebook" doc:"a small server that is part of mcpbridge"`
	Command string            `koanf:"command" hosts:"yes" doc:"command that runs the server, which uses stdin and stdout"`
	Args    []string          `koanf:"args" of:"command" hosts:"yes" doc:"arguments of the command"`
	Env     map[string]string `koanf:"env" of:"command" hosts:"yes" doc:"environment variables of the command, in addition to a minimal environment"` // including those of EnvFile
	// InheritEnv is for whoever starts the program for this server alone, and has chosen its
	// environment.
	InheritEnv bool   `koanf:"inherit_env" default:"false" of:"command" doc:"whether the command gets all environment variables of mcpbridge, but for MCPBRIDGE_… and those that ${…} refers to"`
	EnvFile    string `koanf:"env_file" also:"envFile" of:"command" doc:"file of NAME=value lines, relative to the configuration; env overrides it"`
	Cwd        string `koanf:"cwd" of:"command" hosts:"yes" doc:"working directory of the command; by default that of mcpbridge"`
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

	Tools     Shown          `koanf:"tools" doc:"which tools of the server clients see, and how"`
	Prompts   Shown          `koanf:"prompts" doc:"which prompts of the server clients see, and how"`
	Resources ShownResources `koanf:"resources" doc:"which resources of the server clients see"`

	Prefix string `koanf:"prefix" secret:"no" doc:"what names of tools and prompts begin with in groups, before two underscores; the name of the server by default"`

	Policy *Policy `koanf:"policy" doc:"who may do what with the server; without one everybody may do everything"`
	Rate   Rates   `koanf:"rate" doc:"how many requests the server gets, handshakes aside; 0 is no bound"`
	Pin    string  `koanf:"pin" default:"off" enum:"off warn refuse" doc:"what becomes of a tool whose definition is not the one that was accepted"`

	// What is to be heeded on the way to the server.
	settings.Server `koanf:",squash"`

	// written contains the command, the URL and the arguments as the user wrote them,
	// before the expansion of variables: these may be shown to people.
	written written
}

type written struct {
	command, url string
	args         []string
}

// Ways returns the keys and values that configure how the server is reached.
func (s *Options) Ways() [][2]string {
	all := [][2]string{{"builtin", s.Builtin}, {"command", s.Command}, {"url", s.URL}}
	return slices.DeleteFunc(all, func(kv [2]string) bool { return kv[1] == "" })
}

// NamePrefix returns what names of tools and prompts begin with in groups.
func (s *Options) NamePrefix() string { return cmp.Or(s.Prefix, names.Prefix(s.Name)) }

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
