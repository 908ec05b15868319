package gateway

import (
	"cmp"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
)

// authenticate says whose request r is. As long as nothing verifies credentials
// it is nobody's; that is why a listener beyond loopback must be allowed by name
// in the configuration.
func (g *Gateway) authenticate(r *http.Request) exchange.Principal {
	if g.opts.Authenticate == nil {
		return exchange.Anonymous
	}
	return cmp.Or(g.opts.Authenticate(r), exchange.Anonymous)
}
