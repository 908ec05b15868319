package owner

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/requeststate"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// bind adds a tag with the principal to the requestState of a result.
func (h *handler) bind(req *mcp.Request, res *mcp.Result) {
	state, ok := wire.GetString(res.Body, memberState)
	if !ok {
		return
	}
	bound := h.sealer.Bind(state, h.binding(req.Principal))
	res.Body, res.Outline = wire.AppendEdited(nil, res.Body, wire.Edit{Name: memberState, Value: wire.Quote(bound)}), nil
}

// unbind returns a request with the requestState that the server has sent, or refuses one
// of another principal or server, or an invalid one.
//
// Spec: 2026-07-28, basic/patterns/mrtr, Server Requirements.
func (h *handler) unbind(req *mcp.Request) (*mcp.Request, error) {
	text, err := member(req.Params, memberState)
	if text == nil || err != nil {
		return req, err
	}
	state, err := h.sealer.Unbind(wire.Unquote(text), h.binding(req.Principal))
	if err != nil || text[0] != '"' {
		return nil, mcp.Refuse(spec.CodeInvalidParams, "%v; send the request again, without requestState and inputResponses", requeststate.ErrInvalid)
	}
	sent := *req
	sent.Params = wire.AppendEdited(nil, req.Params, wire.Edit{Name: memberState, Value: wire.Quote(state)})
	return &sent, nil
}

// binding identifies a principal of the server. The quotes separate the two.
func (h *handler) binding(p mcp.Principal) string {
	return string(wire.AppendString(wire.Quote(h.server), string(p)))
}
