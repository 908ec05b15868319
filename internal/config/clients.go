package config

import (
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/server"
)

// anonymous reports whether an endpoint serves anonymous clients: because that was written,
// or because nothing was.
func (cfg *Config) anonymous() (written, unsaid bool) {
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; !s.Disabled {
			a := cfg.AuthOf(s)
			written = written || a != nil && a.Word != ""
			unsaid = unsaid || a == nil
		}
	}
	return written, unsaid
}

// AuthOf returns how clients of a server prove who they are; nil for not at all.
func (cfg *Config) AuthOf(s *Server) *server.Auth {
	if s.Auth != nil {
		return s.Auth
	}
	return cfg.Auth
}

// PublicURLOf returns the URL by which clients know a server; empty if it is not known.
func (cfg *Config) PublicURLOf(s *Server) string {
	if s.PublicURL != "" || cfg.PublicURL == "" {
		return s.PublicURL
	}
	return strings.TrimSuffix(cfg.PublicURL, "/") + "/mcp/" + s.Name
}

// clients checks what says who clients are.
func (c checker) clients() {
	server.CheckPublicURL(c.rep, "public_url", c.PublicURL)
	c.Auth.Check(c.rep, "auth")
	for i := range c.Servers {
		s := &c.Servers[i]
		path := key.Join("servers", s.Name)
		if s.Disabled {
			continue
		}
		server.CheckPublicURL(c.rep, key.Join(path, "public_url"), s.PublicURL)
		s.Auth.Check(c.rep, key.Join(path, "auth"))
		if a := c.AuthOf(s); a != nil && len(a.JWT) > 0 && c.PublicURLOf(s) == "" {
			c.rep.Fail(path, "its clients send access tokens, which are for one URL, and nothing says which; write public_url: https://mcp.example.com, where clients find mcpbridge")
		}
		c.audiences(s)
	}
}

// audiences warns of tokens that are for one server, and open another one.
func (c checker) audiences(s *Server) {
	a, path := c.AuthOf(s), "auth"
	if s.Auth != nil {
		path = key.Join("servers", s.Name, "auth")
	}
	if a == nil {
		return
	}
	for i, j := range a.JWT {
		for n, audience := range j.Audience {
			for k := range c.Servers {
				if other := &c.Servers[k]; other.Name != s.Name && !other.Disabled && c.PublicURLOf(other) == audience {
					here := key.Join(a.PathOf(c.rep, key.Join(path, "jwt"), i), "audience", strconv.Itoa(n))
					c.rep.Warn(here, "is the public URL of the server %s, whose tokens open %s, too", other.Name, s.Name)
				}
			}
		}
	}
}
