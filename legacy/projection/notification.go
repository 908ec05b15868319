package projection

import (
	"github.com/mcpbridge/mcpbridge/internal/exchange"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// Notification returns n, which belongs to a request, as a client of rev gets it.
func Notification(rev spec.Revision, n exchange.Notification) exchange.Notification {
	return n
}
