package options

import (
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// ModernNotebook is the builtin that speaks 2026-07-28 alone.
const ModernNotebook = "modern-notebook"

// Server returns the options of one server.
func Server(s *config.Server) mcpbridge.ServerOptions {
	o := mcpbridge.ServerOptions{
		Name:              s.Name,
		URL:               s.URL,
		Header:            Header(s),
		UpstreamAuth:      UpstreamAuth(s.UpstreamAuth),
		Transport:         transport(s),
		Dir:               s.Cwd,
		Env:               s.Env,
		Remember:          s.Remember,
		Era:               era(s),
		Isolation:         mcpbridge.Isolation(s.Isolation),
		ForwardClientInfo: s.ClientInfo == "client",
		Experimental:      s.Experimental,
		HideExtensions:    s.Hidden(),
		LogLevel:          strings.TrimPrefix(s.LogLevel, "none"),
		Subresources:      mcpbridge.Subresources(s.Subresources),
		Replicas:          placement(s),
		Lanes:             int(s.Lanes.Stdio),
		Gather:            s.Gather,
		ParkedTTL:         s.ParkedTTL,
		Roots:             s.Roots,
		Idle:              s.Idle,
		Linger:            s.Linger,
		Synthesize:        mcpbridge.Synthesize(s.Synthesize),
		Timeouts:          mcpbridge.Timeouts(s.Timeouts),
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
func transport(s *config.Server) mcpbridge.Transport {
	switch s.Type {
	case "sse":
		return mcpbridge.TransportSSE
	case "http":
		return mcpbridge.TransportHTTP
	}
	return ""
}

// era is empty for a server that is to be asked.
func era(s *config.Server) mcpbridge.Era {
	switch {
	case s.Builtin == ModernNotebook, s.Era == string(mcpbridge.Modern):
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

// placement returns which replica serves the calls of a profile. A builtin server keeps what it
// has in the process, as a command does.
func placement(s *config.Server) mcpbridge.Placement {
	if s.Builtin != "" {
		return mcpbridge.PlaceOne
	}
	return mcpbridge.Placement(s.Replicas)
}
