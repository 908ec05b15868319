package options

import (
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// ModernNotebook is the builtin that speaks 2026-07-28 alone.
const ModernNotebook = "modern-notebook"

// Server returns the options of one server.
func Server(s *config.Server) gateway.ServerOptions {
	o := gateway.ServerOptions{
		Name:              s.Name,
		URL:               s.URL,
		Header:            Header(s),
		UpstreamAuth:      UpstreamAuth(s.UpstreamAuth),
		Transport:         transport(s),
		Dir:               s.Cwd,
		Env:               s.Env,
		Remember:          s.Remember,
		Era:               era(s),
		Isolation:         gateway.Isolation(s.Isolation),
		ForwardClientInfo: s.ClientInfo == "client",
		Experimental:      s.Experimental,
		HideExtensions:    s.Hidden(),
		LogLevel:          strings.TrimPrefix(s.LogLevel, "none"),
		Subresources:      gateway.Subresources(s.Subresources),
		Replicas:          placement(s),
		Lanes:             int(s.Lanes.Stdio),
		Gather:            s.Gather,
		ParkedTTL:         s.ParkedTTL,
		Roots:             s.Roots,
		Idle:              s.Idle,
		Linger:            s.Linger,
		Synthesize:        gateway.Synthesize(s.Synthesize),
		Timeouts:          gateway.Timeouts(s.Timeouts),
		Cache:             cacheHints(s),
		Auth:              authentication(s.Auth),
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

// Header returns the server's own headers, for one that is a URL.
func Header(s *config.Server) http.Header {
	h := make(http.Header)
	for name, value := range s.Headers {
		h.Set(name, value)
	}
	return h
}

// transport names the transport over HTTP; empty for one that the server decides.
func transport(s *config.Server) gateway.Transport {
	switch s.Type {
	case "sse":
		return gateway.TransportSSE
	case "http":
		return gateway.TransportHTTP
	}
	return ""
}

// era is empty for a server that is to be asked.
func era(s *config.Server) gateway.Era {
	switch {
	case s.Builtin == ModernNotebook, s.Era == string(gateway.Modern):
		return gateway.Modern
	case s.Builtin != "", s.Era == string(gateway.Legacy):
		return gateway.Legacy
	}
	return ""
}

func cacheHints(s *config.Server) map[string]gateway.CacheHint {
	hints := make(map[string]gateway.CacheHint, len(s.Cache))
	for method, h := range s.Cache {
		hints[method] = gateway.CacheHint{TTL: h.TTL, Public: h.Scope == spec.ScopePublic}
	}
	for _, method := range s.Kept() {
		h := hints[method]
		h.Keep = true
		hints[method] = h
	}
	return hints
}

// placement returns which replica serves the calls of a profile. A builtin server keeps what it
// has in the process, as a command does.
func placement(s *config.Server) gateway.Placement {
	if s.Builtin != "" {
		return gateway.PlaceOne
	}
	return gateway.Placement(s.Replicas)
}
