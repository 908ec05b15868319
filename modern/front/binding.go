package front

import (
	"crypto/sha256"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// binding is a digest of everything that a retry must have in common with the
// request it retries: who asks what of which server.
func binding(server string, req *mcp.Request) [sha256.Size]byte {
	params := wire.AppendEdited(nil, req.Params,
		wire.Edit{Name: "_meta"}, wire.Edit{Name: "inputResponses"}, wire.Edit{Name: "requestState"})
	h := sha256.New()
	for _, part := range []string{server, string(req.Principal), req.Method} {
		h.Write(wire.AppendString(nil, part)) // quotes keep the parts apart
	}
	h.Write(wire.AppendCanonical(nil, params))
	return [sha256.Size]byte(h.Sum(nil))
}

// stateRefusal is what a client is told of a requestState that can't be used:
// why not is nobody's business but the log's.
func stateRefusal(err error) error {
	if errors.Is(err, requeststate.ErrOtherInstance) {
		return mcp.Refuse(spec.CodeInvalidParams, "the gateway was restarted; send the request anew, without requestState and inputResponses")
	}
	return mcp.Refuse(spec.CodeInvalidParams, "%v; send the request anew, without requestState and inputResponses", requeststate.ErrInvalid)
}
