package config

import (
	"net"
	"runtime"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/value"
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
	return cfg.AdminSocket() == "" && (err != nil || !value.Loopback(host))
}

// AdminTLS reports whether admin is served over TLS, as listen is: beyond this machine.
func (cfg *Config) AdminTLS() bool {
	host, _, err := net.SplitHostPort(cfg.Admin)
	return cfg.TLS.Cert != "" && cfg.AdminSocket() == "" && err == nil && !value.Loopback(host)
}

const (
	// minAdminToken is the shortest admin_token, in bytes.
	minAdminToken = 16
	// maxSocketPath is how long the path of a socket may be on all systems, in bytes.
	maxSocketPath = 103
)

// admin never shows the token.
func (c checker) admin() {
	for key, t := range map[string]string{"admin_token": c.AdminToken, "metrics_token": c.MetricsToken} {
		if t != "" && (len(t) < minAdminToken || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' })) {
			c.rep.Fail(key, "is no token of at least %d characters without spaces; write a random one, as openssl rand -hex 32 prints one", minAdminToken)
		}
	}
	if c.MetricsToken != "" && c.MetricsToken == c.AdminToken {
		c.rep.Fail("metrics_token", "is the admin_token; write another one, or leave it out: admin_token opens /metrics, too")
	}
	switch path := c.AdminSocket(); {
	case c.Admin == "":
		return
	case !strings.HasPrefix(c.Admin, socketPrefix):
		c.adminAddress()
	case runtime.GOOS == "windows":
		c.rep.Fail("admin", "a socket can't be kept from other users on Windows; write an address such as %s", value.OnLoopback("2527"))
	case !strings.HasPrefix(path, "/") || len(path) > maxSocketPath:
		c.rep.Fail("admin", "%q is not a socket; write unix: and a path from the root of at most %d bytes, as in unix:/run/mcpbridge/admin.sock", c.Admin, maxSocketPath)
	}
}

func (c checker) adminAddress() {
	host, port, err := net.SplitHostPort(c.Admin)
	switch {
	case err != nil || !value.IsPort(port):
		c.rep.Fail("admin", "%q is not an address; write host:port, as in %s, or unix: and the path of a socket", c.Admin, value.OnLoopback("2527"))
	case c.Admin == c.Listen && !strings.HasSuffix(c.Admin, ":0"):
		c.rep.Fail("admin", "is the same address as listen; choose another port, or write off")
	case value.Loopback(host):
	case c.AdminToken == "" && !c.AllowAnonymous:
		c.rep.Fail("admin", "%q can be reached from other machines; set admin_token, or write %s, or unix: and the path of a socket", c.Admin, value.OnLoopback(port))
	case c.AdminToken != "" && !c.AdminTLS():
		c.rep.Warn("admin_token", "can be read on its way to admin, which is beyond this machine and without TLS; set tls")
	}
}
