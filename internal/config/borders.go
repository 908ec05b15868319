package config

import (
	"net"
	"net/url"
	"regexp"
	"runtime"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/certs"
	"github.com/mcpbridge/mcpbridge/internal/config/keypath"
	"github.com/mcpbridge/mcpbridge/internal/config/problem"
)

// TLS says with which certificate clients are served.
type TLS struct {
	Cert       string `koanf:"cert" secret:"no" doc:"file of the certificate in PEM, and those between it and its authority"`
	Key        string `koanf:"key" secret:"no" doc:"file of the certificate's private key, in PEM"`
	ClientCA   string `koanf:"client_ca" secret:"no" doc:"file of the authorities whose certificates clients may show"`
	ClientAuth string `koanf:"client_auth" default:"require" enum:"require optional" doc:"whether a client without a certificate is refused, where there is a client_ca"`
}

// Files returns the files; zero without TLS.
func (t *TLS) Files() certs.Files { return certs.Files{Cert: t.Cert, Key: t.Key, CA: t.ClientCA} }

// ServerTLS says how a server is known, and how it knows us.
type ServerTLS struct {
	CA         string `koanf:"ca" secret:"no" doc:"file of the authorities that its certificate may be of, instead of those that the system trusts"`
	Cert       string `koanf:"cert" secret:"no" doc:"file of the certificate to show it, in PEM"`
	Key        string `koanf:"key" secret:"no" doc:"file of the certificate's private key, in PEM"`
	ServerName string `koanf:"server_name" secret:"no" doc:"the name that its certificate is for, where that is not the host of the URL"`
}

// Files returns the files; zero if there are none.
func (t *ServerTLS) Files() certs.Files { return certs.Files{Cert: t.Cert, Key: t.Key, CA: t.CA} }

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
	return cfg.AdminSocket() == "" && (err != nil || !loopback(host))
}

// AdminTLS reports whether admin is served over TLS, as listen is: beyond this machine.
func (cfg *Config) AdminTLS() bool {
	host, _, err := net.SplitHostPort(cfg.Admin)
	return cfg.TLS.Cert != "" && cfg.AdminSocket() == "" && err == nil && !loopback(host)
}

// tlsPaths makes the paths of files ones that can be opened.
func (sc *scope) tlsPaths(cfg *Config, rep *problem.Report) {
	resolve := func(above string, files map[string]*string) {
		for name, file := range files {
			*file = sc.of(rep, keypath.Join(above, name)).path(*file)
		}
	}
	resolve("tls", map[string]*string{"cert": &cfg.TLS.Cert, "key": &cfg.TLS.Key, "client_ca": &cfg.TLS.ClientCA})
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		resolve(keypath.Join("servers", s.Name, "tls"), map[string]*string{"ca": &s.TLS.CA, "cert": &s.TLS.Cert, "key": &s.TLS.Key})
	}
}

// borders checks what stands between this machine and others.
func (c *checker) borders(cfg *Config) {
	t := &cfg.TLS
	if t.ClientCA != "" && t.Cert == "" {
		c.rep.Fail(keypath.Join("tls", "client_ca"), "has no effect without cert and key; set them, or remove it")
	}
	c.files("tls", t.Files())
	c.admin(cfg)
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		if s.Disabled {
			continue
		}
		c.serverTLS(s)
		if a := cfg.AuthOf(s); a != nil && a.MTLS != nil && t.ClientCA == "" {
			c.rep.Fail(keypath.Join("servers", s.Name, "auth"), "its clients show certificates, and nothing says whose are valid; write tls: {cert: cert.pem, key: key.pem, client_ca: ca.pem} at the top")
		}
	}
}

// files checks that certificates can be used, as far as they are named.
func (c *checker) files(path string, f certs.Files) {
	switch {
	case f.Cert != "" && f.Key == "":
		c.rep.Fail(keypath.Join(path, "key"), "is missing: a certificate is of no use without its private key; name its file")
		return
	case f.Key != "" && f.Cert == "":
		c.rep.Fail(keypath.Join(path, "cert"), "is missing: key is the private key of a certificate; name its file")
		return
	}
	if err := f.Check(); err != nil {
		c.rep.Fail(path, "%v", err)
		return
	}
	if f.Key != "" && othersRead(f.Key) {
		c.rep.Warn(keypath.Join(path, "key"), "can be read by every user of this machine; run chmod 600 %s", f.Key)
	}
}

var serverNameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

func (c *checker) serverTLS(s *Server) {
	if s.URL == "" || s.TLS == (ServerTLS{}) {
		return // that it is of a URL was checked
	}
	path := keypath.Join("servers", s.Name, "tls")
	if u, err := url.Parse(s.URL); err == nil && (u.Scheme == "http" || u.Scheme == "ws") {
		c.rep.Fail(path, "has no effect, since url is without TLS; write %ss://, or remove it", u.Scheme)
		return
	}
	if name := s.TLS.ServerName; name != "" && !serverNameForm.MatchString(name) {
		c.rep.Fail(keypath.Join(path, "server_name"), "%q is not a host name; write one such as mcp.internal.example, without a port", name)
	}
	c.files(path, s.TLS.Files())
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
		c.rep.Fail("admin", "a socket can't be kept from other users on Windows; write an address such as %s", onLoopback("2527"))
	case !strings.HasPrefix(path, "/") || len(path) > maxSocketPath:
		c.rep.Fail("admin", "%q is not a socket; write unix: and a path from the root of at most %d bytes, as in unix:/run/mcpbridge/admin.sock", cfg.Admin, maxSocketPath)
	}
}

func (c *checker) adminAddress(cfg *Config) {
	host, port, err := net.SplitHostPort(cfg.Admin)
	switch {
	case err != nil || !isPort(port):
		c.rep.Fail("admin", "%q is not an address; write host:port, as in %s, or unix: and the path of a socket", cfg.Admin, onLoopback("2527"))
	case cfg.Admin == cfg.Listen && !strings.HasSuffix(cfg.Admin, ":0"):
		c.rep.Fail("admin", "is the same address as listen; choose another port, or write off")
	case loopback(host):
	case cfg.AdminToken == "" && !cfg.AllowAnonymous:
		c.rep.Fail("admin", "%q can be reached from other machines; set admin_token, or write %s, or unix: and the path of a socket", cfg.Admin, onLoopback(port))
	case cfg.AdminToken != "" && !cfg.AdminTLS():
		c.rep.Warn("admin_token", "can be read on its way to admin, which is beyond this machine and without TLS; set tls")
	}
}
