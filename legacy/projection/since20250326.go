package projection

import (
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// since20250326 removes audio. In a result a text replaces it. An input request with
// audio is refused, because a model would guess at audio that it does not get.
//
// Spec: 2025-03-26, changelog.
var since20250326 = boundary{
	since: spec.Rev20250326,
	blocks: map[string]func([]byte) string{"audio": func(block []byte) string {
		what := "audio"
		if typ, _ := wire.GetString(block, "mimeType"); typ != "" {
			what = typ
		}
		return leftOut(what, "clients since revision 2025-03-26")
	}},
	question: func(_ []byte, q mcp.InputRequest) (mcp.InputRequest, error) {
		if _, ok := hasBlock(wire.Get(q.Params, "messages"), "audio"); ok && q.Method == spec.MethodSample {
			return q, errors.New("its messages have audio in them, which clients know since revision 2025-03-26")
		}
		return q, nil
	},
}
