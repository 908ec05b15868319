package config

import (
	"net"
	"runtime"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/certificates"
	"github.com/mcpbridge/mcpbridge/internal/config/expand"
	"github.com/mcpbridge/mcpbridge/internal/config/form"
	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
)

// AdminSocket returns the path of the socket that admin is; empty if it is an address.
func (cfg *Config) AdminSocket() string {
	path, ok := strings.CutPrefix(cfg.Admin, socketPrefix)
	if !ok {
		return ""
	}
	return path
}

// socketPrefix precedes the path of a socket.
const socketPrefix = "unix:"

// AdminExposed reports whether other machines reach admin.
func (cfg *Config) AdminExposed() bool {
	host, _, err := net.SplitHostPort(cfg.Admin)
	return cfg.AdminSocket() == "" && (err != nil || !form.Loopback(host))
}

// AdminTLS reports whether admin is served over TLS, as listen is: beyond this machine.
func (cfg *Config) AdminTLS() bool {
	host, _, err := net.SplitHostPort(cfg.Admin)
	return cfg.TLS.Cert != "" && cfg.AdminSocket() == "" && err == nil && !form.Loopback(host)
}

// resolve makes the paths of files ones that can be opened, and reads those whose content is
// needed.
func (cfg *Config) resolve(sc *expand.Scope, rep *problem.Report) {
	cfg.TLS.Resolve(sc, rep, "tls")
	cfg.Replicas.Resolve(sc, rep)
	for i := range cfg.Servers {
		s, path := &cfg.Servers[i], keypath.Join("servers", cfg.Servers[i].Name)
		s.TLS.Resolve(sc, rep, keypath.Join(path, "tls"))
		if !s.Disabled {
			s.readEnvFile(sc, rep, keypath.Join(path, "env_file"))
			s.UpstreamAuth.readKeys(sc, rep, keypath.Join(path, "upstream_auth"))
		}
	}
}

// borders checks what stands between this machine and others.
func (c *checker) borders(cfg *Config) {
	t := &cfg.TLS
	if t.ClientCA != "" && t.Cert == "" {
		c.rep.Fail(keypath.Join("tls", "client_ca"), "has no effect without cert and key; set them, or remove it")
	}
	certificates.Check(c.rep, "tls", t.Files())
	c.admin(cfg)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		if s.Disabled {
			continue
		}
		s.TLS.Check(c.rep, keypath.Join("servers", s.Name, "tls"), s.URL)
		if a := cfg.AuthOf(s); a != nil && a.MTLS != nil && t.ClientCA == "" {
			c.rep.Fail(keypath.Join("servers", s.Name, "auth"), "its clients show certificates, and nothing says whose are valid; write tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem} at the top")
		}
	}
}

const (
	// minAdminToken is the shortest admin_token, in bytes.
	minAdminToken = 16
	// maxSocketPath is how long the path of a socket may be on all systems, in bytes.
	maxSocketPath = 103
)

// admin never shows the token.
func (c *checker) admin(cfg *Config) {
	for key, t := range map[string]string{"admin_token": cfg.AdminToken, "metrics_token": cfg.MetricsToken} {
		if t != "" && (len(t) < minAdminToken || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' })) {
			c.rep.Fail(key, "is no token of at least %d characters without spaces; write a random one, as openssl rand -hex 32 prints one", minAdminToken)
		}
	}
	if cfg.MetricsToken != "" && cfg.MetricsToken == cfg.AdminToken {
		c.rep.Fail("metrics_token", "is the admin_token; write another one, or leave it out: admin_token opens /metrics, too")
	}
	switch path := cfg.AdminSocket(); {
	case cfg.Admin == "":
		return
	case !strings.HasPrefix(cfg.Admin, socketPrefix):
		c.adminAddress(cfg)
	case runtime.GOOS == "windows":
		c.rep.Fail("admin", "a socket can't be kept from other users on Windows; write an address such as %s", form.OnLoopback("2527"))
	case !strings.HasPrefix(path, "/") || len(path) > maxSocketPath:
		c.rep.Fail("admin", "%q is not a socket; write unix: and a path from the root of at most %d bytes, as in unix:/run/mcpbridge/admin.sock", cfg.Admin, maxSocketPath)
	}
}

func (c *checker) adminAddress(cfg *Config) {
	host, port, err := net.SplitHostPort(cfg.Admin)
	switch {
	case err != nil || !form.IsPort(port):
		c.rep.Fail("admin", "%q is not an address; write host:port, as in %s, or unix: and the path of a socket", cfg.Admin, form.OnLoopback("2527"))
	case cfg.Admin == cfg.Listen && !strings.HasSuffix(cfg.Admin, ":0"):
		c.rep.Fail("admin", "is the same address as listen; choose another port, or write off")
	case form.Loopback(host):
	case cfg.AdminToken == "" && !cfg.AllowAnonymous:
		c.rep.Fail("admin", "%q can be reached from other machines; set admin_token, or write %s, or unix: and the path of a socket", cfg.Admin, form.OnLoopback(port))
	case cfg.AdminToken != "" && !cfg.AdminTLS():
		c.rep.Warn("admin_token", "can be read on its way to admin, which is beyond this machine and without TLS; set tls")
	}
}
