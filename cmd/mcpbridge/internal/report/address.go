package report

import (
	"net"

	"github.com/mcpbridge/mcpbridge/internal/config"
)

// Endpoint returns the URL of the endpoint of a server or a group as a client on this machine
// reaches it.
func Endpoint(c *config.Config, addr, name string) string {
	at := scheme(c.TLS.Cert != "") + reachable(addr) + "/mcp"
	if name == c.Default && name != "" {
		return at
	}
	return at + "/" + name
}

// Admin returns where the admin address is, or its socket.
func Admin(c *config.Config, addr net.Addr) string {
	if c.AdminSocket() != "" {
		return c.Admin
	}
	return AdminURL(c, addr.String())
}

// AdminURL returns the URL of the admin address that is not a socket.
func AdminURL(c *config.Config, addr string) string {
	return scheme(c.AdminTLS()) + reachable(addr)
}

func scheme(secure bool) string {
	if secure {
		return "https://"
	}
	return "http://"
}

// reachable replaces the addresses that mean all interfaces: nobody can dial
// them everywhere.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}
