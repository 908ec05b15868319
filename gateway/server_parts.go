package gateway

import (
	"slices"
	"sync/atomic"

	"github.com/mcpbridge/mcpbridge/gateway/internal/access"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/server"
	"github.com/mcpbridge/mcpbridge/internal/trust/audit"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
	"github.com/mcpbridge/mcpbridge/internal/trust/userlogin"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// serverParts are what a Gateway has of one server.
type serverParts struct {
	identity identity
	common   *common
	server   *server.Server
	quirks   *quirks.Recorder
	access   access.Options

	auth        auth.Authenticator   // of the server alone; nil if it has none
	credentials upstream.Credentials // nil if it has none
	login       *login.Stored        // those; nil for others
	users       *userlogin.Server    // those, where each principal has a login; nil for others
	current     *login.Current       // those, where they may be replaced; nil for others

	renewed upstream.Renewed // values of headers
	ends    []func()         // end what was begun for it
}

// end ends what was begun for a server that is not served any more.
func (p *serverParts) end() {
	p.close()
	p.common.leave()
}

func (p *serverParts) close() {
	for _, end := range p.ends {
		end()
	}
	auth.Close(p.auth)
}

// start begins what a server that is served needs.
func (p *serverParts) start() { auth.Start(p.auth) }

// A common is what the servers of a Gateway were made with.
type common struct {
	identity commonIdentity
	auth     auth.Authenticator // of servers that have none of their own; nil if there is none
	audit    *audit.Log         // nil if there is none
	users    atomic.Int64       // parts that are served, and the Gateway itself
	err      error              // of its end
}

// leave counts a user out. The last one ends it.
func (c *common) leave() {
	if c.users.Add(-1) == 0 {
		c.err = c.close()
	}
}

func (c *common) close() error {
	auth.Close(c.auth)
	return c.audit.Close()
}

func (c *common) start() { auth.Start(c.auth) }

// current is what a Gateway is made of at one time.
type current struct {
	opts   Options
	common *common
	logins *userlogin.Logins // of principals; nil if no server has those
	parts  []*serverParts
	groups []*groupParts
}

// options returns the options of a server that there is.
func (c *current) options(name string) *ServerOptions {
	at := slices.IndexFunc(c.opts.Servers, func(o ServerOptions) bool { return o.Name == name })
	return &c.opts.Servers[at]
}

// findGroup returns the parts of a group; nil if there is none, or c is nil.
func (c *current) findGroup(name string) *groupParts {
	if c == nil {
		return nil
	}
	at := slices.IndexFunc(c.groups, func(p *groupParts) bool { return p.identity.Name == name })
	if at < 0 {
		return nil
	}
	return c.groups[at]
}

// find returns the parts of a server; nil if there is none.
func (c *current) find(name string) *serverParts {
	at := slices.IndexFunc(c.parts, func(p *serverParts) bool { return p.identity.Name == name })
	if at < 0 {
		return nil
	}
	return c.parts[at]
}
