package projection

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
)

// A boundary describes what one revision added that strict clients of earlier revisions
// refuse.
type boundary struct {
	since spec.Revision

	// blocks has the added types of content, and for each a function that returns the
	// text of a text block to replace such a block.
	blocks map[string]func(block []byte) string
	// question converts an input request for newer clients to one for older clients with
	// capabilities caps. It returns an error if that is impossible.
	question func(caps []byte, q mcp.InputRequest) (mcp.InputRequest, error)
}

// boundaries are the boundaries between the revisions, newest first: a message is
// converted in this order, down to the client's revision.
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
