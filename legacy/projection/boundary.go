package projection

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A boundary is what came with one revision that strict clients of those before it
// would refuse.
type boundary struct {
	since spec.Revision

	// blocks names the types of content that came with it, and what stands for such
	// a block instead, as the text of a text block.
	blocks map[string]func(block []byte) string
	// question returns a question that newer clients can be asked as the older are
	// asked that declared caps, or why they can't be.
	question func(caps []byte, q mcp.InputRequest) (mcp.InputRequest, error)
}

// boundaries are those between the revisions, newest first: a message crosses them
// in this order, down to the client's revision.
var boundaries = []*boundary{&since20260728, &since20251125, &since20250618, &since20250326}

// crossed returns the boundaries between the modern revision and rev.
func crossed(rev spec.Revision) []*boundary {
	for i, b := range boundaries {
		if rev >= b.since {
			return boundaries[:i]
		}
	}
	return boundaries
}
