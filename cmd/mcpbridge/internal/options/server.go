package options

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/gateway"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/settings"
)

// ModernNotebook is the builtin that speaks 2026-07-28 alone.
const ModernNotebook = "modern-notebook"

// Server returns the options of one server but for its [Settings].
func Server(s *config.Server) gateway.ServerOptions {
	o := gateway.ServerOptions{
		Name:         s.Name,
		URL:          s.URL,
		Header:       Header(s),
		UpstreamAuth: UpstreamAuth(s.UpstreamAuth),
		Transport:    transport(s),
		Dir:          s.Cwd,
		Env:          s.Env,
		Remember:     s.Remember,
		Auth:         authentication(s.Auth),
		PublicURL:    s.PublicURL,
	}
	if s.Command != "" {
		o.Command = append([]string{s.Command}, s.Args...)
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

// Settings returns what is to be heeded on the way to a server. A builtin server has one era, and
// keeps what it has in the process, as a command does.
func Settings(s *config.Server) settings.Server {
	set := s.Server
	if s.Builtin == "" {
		return set
	}
	set.Era, set.Replicas = string(gateway.Legacy), string(gateway.PlaceOne)
	if s.Builtin == ModernNotebook {
		set.Era = string(gateway.Modern)
	}
	return set
}
