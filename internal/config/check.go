package config

import (
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/config/server"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
)

// A checker finds mistakes that involve several keys, or the meaning of a value.
type checker struct {
	*Config
	rep *key.Report
	o   *Options

	suggested *int // how many servers that are not there were compared with those that are
}

// MinMemory is the least that limits.memory may be, in bytes.
const MinMemory = 64 << 20

// check reports the mistakes of the whole configuration.
func (c checker) check() {
	c.listen()
	c.origins()
	c.proxies()
	value.CheckSecrets(c.rep, "state_keys", c.StateKeys)
	value.CheckSecrets(c.rep, "login_keys", c.LoginKeys)
	c.clients()
	if c.StateDir != "" && !filepath.IsAbs(c.StateDir) {
		c.rep.Fail("state_dir", "%q is relative; write an absolute path, such as /var/lib/mcpbridge", c.StateDir)
	}
	if c.Audit.Required && c.Audit.Path() == "" {
		c.rep.Fail(key.Join("audit", "required"), "there is no audit log; write its file, too, as in audit: {file: /var/log/mcpbridge/audit.log, required: true}")
	}
	c.borders()
	c.Replicas.Check(c.rep, c.Listen, c.Admin)
	c.logins()
	if m := c.Limits.Memory; m != 0 && m < MinMemory {
		c.rep.Fail(key.Join("limits", "memory"), "is less than %s, which the process needs itself; write more, or 0 for half of what the machine has", key.SizeText(MinMemory))
	}
	c.servers()
	c.storedLogins()
	c.groups()
}

func (c checker) servers() {
	if len(c.Servers) == 0 && len(c.rep.Errors) == 0 {
		c.rep.Fail("servers", "no servers; add one, for example notebook: {builtin: notebook}")
	}
	enabled := 0
	for i := range c.Servers {
		s := &c.Servers[i]
		s.CheckName(c.rep)
		if !s.Disabled {
			enabled++
			c.server(s, key.Join("servers", s.Name))
		}
	}
	if enabled == 0 && len(c.Servers) > 0 {
		c.rep.Fail("servers", "every server is disabled; enable one")
	}
}

func (c checker) server(s *Server, path string) {
	clients := c.AuthOf(s)
	s.Check(c.rep, path, serverKey)
	s.UpstreamAuth.Check(c.rep, key.Join(path, "upstream_auth"), &server.Endpoint{
		Clients: clients, URL: s.URL, PublicURL: c.PublicURLOf(s), Isolation: s.Isolation, Era: s.Era,
		OverWebSocket: s.OverWebSocket(), HasAuthorization: s.HasHeader("Authorization"), OneUser: c.o.OneUser,
		Browsers: c.PublicURL, HasLoginKeys: len(c.LoginKeys) > 0 || len(c.StateKeys) > 0 || c.Replicas != nil && len(c.Replicas.Keys) > 0,
	})
	s.CheckNames(c.rep, path)
	s.Rate.Check(c.rep, key.Join(path, "rate"))
	s.Policy.Check(c.rep, key.Join(path, "policy"), clients)
}

// storedLogins refuses servers whose logins are stored in one place, and are of different people: the
// later login would replace the other, and be used for those whose it is not.
func (c checker) storedLogins() {
	first := make(map[string]*Server) // by what a login is stored by
	for i := range c.Servers {
		s := &c.Servers[i]
		path, by := key.Join("servers", s.Name, "upstream_auth", "oauth"), s.LoginStoredBy()
		if s.Disabled || by == "" || c.rep.Mistaken(path) {
			continue
		}
		other := first[by]
		switch {
		case other == nil || other.UpstreamAuth.OAuth.Principal == "": // everybody uses it, whoever has logged in
			first[by] = s
		case s.UpstreamAuth.OAuth.Principal != "" && s.UpstreamAuth.OAuth.Principal != other.UpstreamAuth.OAuth.Principal:
			c.rep.Fail(path, "its login is stored in the place of that of %s, since a login is stored by the URL of its server, and it is another's: the last one would be sent for both; write the same principal for both, or per: principal for one, where each user logs in himself", other.Name)
		}
	}
}

// listen refuses an address that other machines can reach where nothing says who clients
// are. At a terminal a token is made instead.
func (c checker) listen() {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil || !value.IsPort(port) {
		c.rep.Fail("listen", "%q is not an address; write host:port, as in %s", c.Listen, value.OnLoopback(c.Listen))
		return
	}
	written, unsaid := c.anonymous()
	switch {
	case value.Loopback(host) || c.AllowAnonymous || !written && !unsaid:
		return
	case c.o.MayMakeToken && !written:
		c.MakeToken = true
		return
	}
	c.rep.Fail("listen", "%q can be reached from other machines, and nothing says who clients are; write a token that mcpbridge token makes below auth, or %s here, or set allow_anonymous: true", c.Listen, value.OnLoopback(port))
}

func (c checker) origins() {
	for i, o := range c.AllowedOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			c.rep.Fail(key.Join("allowed_origins", strconv.Itoa(i)), "%q is not an origin; write scheme://host, as in https://app.example.com", o)
		}
	}
	for i, h := range c.AllowedHosts {
		if !value.IsHost(h) {
			c.rep.Fail(key.Join("allowed_hosts", strconv.Itoa(i)), "%q is not a host name; write one such as mcp.example.com, without a port", h)
		}
	}
}

// proxies checks trusted_proxies, which are networks or single addresses.
func (c checker) proxies() {
	for i, p := range c.TrustedProxies {
		if _, err := value.Network(p); err != nil {
			c.rep.Fail(key.Join("trusted_proxies", strconv.Itoa(i)), "%q is neither a network nor an address; write one such as 10.0.0.0/8 or 192.0.2.7", p)
		}
	}
}

// borders checks what stands between this machine and others.
func (c checker) borders() {
	t := &c.TLS
	if t.ClientCA != "" && t.Cert == "" {
		c.rep.Fail(key.Join("tls", "client_ca"), "has no effect without cert and key; set them, or remove it")
	}
	server.CheckFiles(c.rep, "tls", t.Files())
	c.admin()
	required := t.ClientCA != "" && t.ClientAuth == "require"
	for i := range c.Servers {
		if s := &c.Servers[i]; !s.Disabled {
			s.TLS.Check(c.rep, key.Join("servers", s.Name, "tls"), s.URL)
		}
	}
	for _, e := range c.endpoints() {
		a := e.clients
		if required && a != nil && a.MTLS != nil && len(a.Tokens)+len(a.JWT) > 0 {
			required = false // it is said once
			c.rep.Warn(key.Join("tls", "client_auth"), "has every client show a certificate, also one with a token; write client_auth: optional if some have only that")
		}
		if a != nil && a.MTLS != nil && t.ClientCA == "" {
			c.rep.Fail(key.Join(e.path, "auth"), "its clients show certificates, and nothing says whose are valid; write tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem} at the top")
		}
	}
}

// logins checks what logins at servers have in common.
func (c checker) logins() {
	if u, err := url.Parse(c.ClientMetadataURL); c.ClientMetadataURL != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") == "" || u.Fragment != "" || !value.IsPrintable(c.ClientMetadataURL)) {
		c.rep.Fail("client_metadata_url", "is not the URL of a document; write one such as https://mcp.example.com/client.json, which begins with https:// and has a path")
	}
	for i, h := range c.AllowHosts {
		if !value.IsHost(h) {
			c.rep.Fail(key.Join("allow_hosts", strconv.Itoa(i)), "%q is not a host name; write one such as id.corp.example, without a port", h)
		}
	}
}
