package config

import (
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/secret"
)

// Secrets returns the values of the configuration that logs, errors and reports must not
// contain: tokens, client secrets, the values of headers, of the environment of commands,
// of state keys, of replicas and of expanded variables, user information and queries of URLs, and
// arguments after the name of a credential. Some may be harmless, or duplicates.
func (c *Config) Secrets() []string {
	out := slices.Concat([]string{c.AdminToken, c.MetricsToken}, c.StateKeys, c.expanded, c.Auth.secrets(), c.Replicas.Secrets())
	for i := range c.Servers {
		out = append(out, c.Servers[i].secrets()...)
	}
	return out
}

func (s *Server) secrets() []string {
	out := slices.Concat(secret.InURL(s.URL), s.Auth.secrets(), s.UpstreamAuth.secrets())
	for _, value := range s.Headers {
		out = append(out, secret.InHeader(value)...)
	}
	for _, value := range s.Env {
		out = append(append(out, value), secret.InURL(value)...)
	}
	for i, from := range s.credentials() {
		out = append(out, secret.InURL(s.Args[i])...)
		if from >= 0 {
			out = append(out, secret.InHeader(strings.TrimSpace(s.Args[i][from:]))...)
		}
	}
	return out
}
