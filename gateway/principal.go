package gateway

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
)

// authenticate says whose request r is. No credentials are verified, so it is
// nobody's; that is why a listener beyond loopback must be allowed by name in
// the configuration.
func authenticate(*http.Request) exchange.Principal { return exchange.Anonymous }
