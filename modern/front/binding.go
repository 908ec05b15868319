package front

import (
	"crypto/sha256"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// binding returns a digest of everything that a retry must have in common with the
// original request: server, principal and request.
func binding(server string, req *mcp.Request) [sha256.Size]byte {
	params := wire.AppendEdited(nil, req.Params,
		wire.Edit{Name: "_meta"}, wire.Edit{Name: "inputResponses"}, wire.Edit{Name: "requestState"})
	h := sha256.New()
	for _, part := range []string{server, string(req.Principal), req.Method} {
		h.Write(wire.AppendString(nil, part)) // quotes separate the parts
	}
	h.Write(wire.AppendCanonical(nil, params))
	return [sha256.Size]byte(h.Sum(nil))
}

// stateRefusal returns the error for a client whose requestState can't be used. Only the
// log has the reason.
func (f *Front) stateRefusal(err error) error {
	if errors.Is(err, requeststate.ErrOtherInstance) && f.opts.Replicas {
		return mcp.Refuse(spec.CodeInvalidParams, "the replica that held this call is gone; send it anew, without requestState and inputResponses")
	}
	if errors.Is(err, requeststate.ErrOtherInstance) {
		return mcp.Refuse(spec.CodeInvalidParams, "the gateway was restarted; send the request again, without requestState and inputResponses")
	}
	return mcp.Refuse(spec.CodeInvalidParams, "%v; send the request again, without requestState and inputResponses", requeststate.ErrInvalid)
}
