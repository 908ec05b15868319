package gateway

import (
	"cmp"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// authenticate says whose request r is. As long as nothing verifies credentials
// it is nobody's; that is why a listener beyond loopback must be allowed by name
// in the configuration.
func (g *Gateway) authenticate(r *http.Request) mcp.Principal {
	if g.opts.Authenticate == nil {
		return mcp.Anonymous
	}
	return cmp.Or(g.opts.Authenticate(r), mcp.Anonymous)
}
