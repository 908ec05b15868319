package upstream

import (
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Peer is another replica of the gateway that watches a server for this one, or serves what groups
// ask it.
type Peer struct {
	URL          string
	RoundTripper http.RoundTripper
	Credentials  Credentials // name the principal of each request to the RoundTripper
	// Meta returns what the _meta of a profile's requests has beside the envelope.
	Meta func(p mcp.Profile) []wire.Edit
	// Refused is called with the scope of a listen request that the peer has refused. It
	// must not block.
	Refused func(scope string, err error)
	Changes mcp.Changes
}
