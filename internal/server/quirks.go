package server

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	modernfront "github.com/mcpbridge/mcpbridge/modern/front"
)

// Quirks returns what was met of the server, and what would be mended of the lists in v, whose
// own requests mend nothing.
func (s *Server) Quirks(v *mcp.Verdict) []quirks.Meeting {
	for i := range v.Lists {
		l := &v.Lists[i]
		for _, q := range modernfront.MendedOf(l) {
			s.opts.Quirks.Met(q, "")
		}
	}
	return s.opts.Quirks.Meetings()
}
