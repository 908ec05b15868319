package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/mcpbridge/mcpbridge"
	"github.com/mcpbridge/mcpbridge/internal/cmdhook"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/notebook"
	"github.com/mcpbridge/mcpbridge/internal/release"
	"github.com/mcpbridge/mcpbridge/internal/remember"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/transport"
)

// An upstream is how servers are reached. The zero value does it over the network and
// starts processes; a test has servers in memory.
type upstream struct {
	http  http.RoundTripper                                      // nil: each server has its own
	start func(transport.CommandOptions) (transport.Conn, error) // nil: transport.StartCommand
}

// payloadPart is the part of the memory, as a divisor, that payloads may take.
const payloadPart = 2

// newOptions turns a configuration into the options of a gateway, whose commands guard
// ends if the process is killed; nil for nobody. oneClient says that there is one client,
// who decides what a command is asked first.
func newOptions(c *config.Config, oneClient bool, p process, log *slog.Logger, guard transport.Guard) *mcpbridge.Options {
	o := gatewayOptions(c)
	o.MachineName, o.Environ, o.OneClient, o.Logger = machineName(), environOf(p), oneClient, log
	o.StateDir = remember.Dir(p.environ)
	o.PinDir, o.Audit = stateDir(c, p.environ), auditPath(c)
	o.Logins = loginOptions(c, p.environ)
	hooks := cmdhook.Hooks{Guard: guard, Secrets: p.secrets, Start: p.upstream.start, Dialed: p.dialed, Observers: p.observers, QuietRequests: p.accessLog, Dial: make(map[string]func(context.Context) (transport.Conn, error))}
	for i := range c.Servers {
		s := &c.Servers[i]
		if s.Disabled {
			continue
		}
		server := serverOptions(s)
		if oneClient {
			auth, browse := onDemand(p, s)
			server.UpstreamAuth, hooks.Browse = upstreamAuth(auth), browse
		}
		server.RoundTripper = p.upstream.http
		addAccess(&server, s)
		server.TLS = p.carried.ClientTLS(s, log.With("upstream", s.Name))
		o.Servers = append(o.Servers, server)
		if s.Builtin != "" {
			book := notebook.New(notebook.Options{Version: release.Version(), Logger: log.With("upstream", s.Name)})
			hooks.Dial[s.Name] = (&builtin{book: book, modern: s.Builtin == modernNotebook}).dial
		}
	}
	cmdhook.Set(o, hooks)
	return o
}

// environOf returns the environment of a process, which may be none.
func environOf(p process) []string {
	if p.environ == nil {
		return []string{}
	}
	return p.environ
}

// machineName returns what the machine is called, or nothing if it does not say.
func machineName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// gatewayOptions are what the servers have in common.
func gatewayOptions(c *config.Config) *mcpbridge.Options {
	limits := c.Limits
	limits.Memory /= payloadPart
	return &mcpbridge.Options{
		Limits:         limits.ByName(),
		StateKeys:      c.StateKeys,
		DebugErrors:    c.DebugErrors,
		BodyTimeout:    c.BodyTimeout,
		WriteTimeout:   c.WriteTimeout,
		KeepAlive:      c.KeepAlive,
		SessionIdle:    c.ClientIdle,
		Drain:          c.Drain - closing(c.Drain),
		CloseGrace:     closeGrace(c.Drain),
		AllowedHosts:   c.AllowedHosts,
		AllowedOrigins: c.AllowedOrigins,
		TrustedProxies: networks(c.TrustedProxies),
		Auth:           authOptions(c.Auth),
		PublicURL:      c.PublicURL,
	}
}

// networks trusts that texts were checked.
func networks(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if n, err := config.Network(text); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// serverOptions are those of one server.
func serverOptions(s *config.Server) mcpbridge.ServerOptions {
	o := mcpbridge.ServerOptions{
		Name:              s.Name,
		URL:               s.URL,
		Header:            headers(s),
		UpstreamAuth:      upstreamAuth(s.UpstreamAuth),
		Transport:         transportOption(s),
		Dir:               s.Cwd,
		Env:               s.Env,
		Remember:          s.Remember,
		Era:               eraOption(s),
		Isolation:         mcpbridge.Isolation(s.Isolation),
		ForwardClientInfo: s.ClientInfo == "client",
		Experimental:      s.Experimental,
		HideExtensions:    s.Hidden(),
		LogLevel:          strings.TrimPrefix(s.LogLevel, "none"),
		Subresources:      mcpbridge.Subresources(s.Subresources),
		Lanes:             int(s.Lanes.Stdio),
		Gather:            s.Gather,
		ParkedTTL:         s.ParkedTTL,
		Roots:             s.Roots,
		Idle:              s.Idle,
		Linger:            s.Linger,
		Synthesize:        mcpbridge.Synthesize(s.Synthesize),
		Timeouts:          mcpbridge.Timeouts(s.Timeouts),
		Cache:             cacheHints(s),
		Auth:              authOptions(s.Auth),
		PublicURL:         s.PublicURL,
	}
	if s.Command != "" {
		o.Command = append([]string{s.Command}, s.Args...)
	}
	if s.URL != "" {
		o.Lanes = int(s.Lanes.HTTP) // another connection finds the same server, another child is another one
	}
	return o
}

// headers are the server's own, for one that is a URL.
func headers(s *config.Server) http.Header {
	h := make(http.Header)
	for name, value := range s.Headers {
		h.Set(name, value)
	}
	return h
}

// transportOption names the transport over HTTP; empty for one that the server decides.
func transportOption(s *config.Server) mcpbridge.Transport {
	switch s.Type {
	case "sse":
		return mcpbridge.TransportSSE
	case "http":
		return mcpbridge.TransportHTTP
	}
	return ""
}

// eraOption is empty for a server that is to be asked.
func eraOption(s *config.Server) mcpbridge.Era {
	switch {
	case s.Builtin == modernNotebook, s.Era == string(mcpbridge.Modern):
		return mcpbridge.Modern
	case s.Builtin != "", s.Era == string(mcpbridge.Legacy):
		return mcpbridge.Legacy
	}
	return ""
}

func cacheHints(s *config.Server) map[string]mcpbridge.CacheHint {
	hints := make(map[string]mcpbridge.CacheHint, len(s.Cache))
	for method, h := range s.Cache {
		hints[method] = mcpbridge.CacheHint{TTL: h.TTL, Public: h.Scope == spec.ScopePublic}
	}
	for _, method := range s.Kept() {
		h := hints[method]
		h.Keep = true
		hints[method] = h
	}
	return hints
}
