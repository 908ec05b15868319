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
	for _, e := range cfg.endpoints() {
		written = written || e.clients != nil && e.clients.Word != ""
		unsaid = unsaid || e.clients == nil
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
func (cfg *Config) PublicURLOf(s *Server) string { return cfg.publicURL(s.PublicURL, s.Name) }

// publicURL returns the URL by which clients know an endpoint, which may have one of its own.
func (cfg *Config) publicURL(own, name string) string {
	if own != "" || cfg.PublicURL == "" {
		return own
	}
	return strings.TrimSuffix(cfg.PublicURL, "/") + "/mcp/" + name
}

// clients checks what says who clients are.
func (c checker) clients() {
	server.CheckPublicURL(c.rep, "public_url", c.PublicURL)
	c.Auth.Check(c.rep, "auth")
	all := c.endpoints()
	at := make(map[string][]*endpoint) // by their public URLs
	for i := range all {
		at[all[i].publicURL] = append(at[all[i].publicURL], &all[i])
	}
	for i := range all {
		e := &all[i]
		server.CheckPublicURL(c.rep, key.Join(e.path, "public_url"), e.ownURL)
		e.own.Check(c.rep, key.Join(e.path, "auth"))
		if a := e.clients; a != nil && len(a.JWT) > 0 && e.publicURL == "" {
			c.rep.Fail(e.path, "its clients send access tokens, which are for one URL, and nothing says which; write public_url: https://mcp.example.com, where clients find mcpbridge")
		}
		c.audiences(e, at)
	}
}

// audiences warns of tokens that are for one endpoint, and open another one. at has endpoints by
// their public URLs.
func (c checker) audiences(e *endpoint, at map[string][]*endpoint) {
	a, path := e.clients, "auth"
	if e.own != nil {
		path = key.Join(e.path, "auth")
	}
	if a == nil {
		return
	}
	for i, j := range a.JWT {
		for n, audience := range j.Audience {
			for _, other := range at[audience] {
				if other.path != e.path {
					here := key.Join(a.PathOf(c.rep, key.Join(path, "jwt"), i), "audience", strconv.Itoa(n))
					c.rep.Warn(here, "is the public URL of %s, whose tokens open %s, too", other.what(), e.name)
				}
			}
		}
	}
}
