package link

import (
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// InputParams converts the params of a legacy input request to those of modern clients.
func InputParams(capabilities, params []byte) []byte {
	if params == nil {
		return nil
	}
	edits := []wire.Edit{{Name: "task"}, {Name: "elicitationId"}}
	if meta := wire.Get(params, "_meta"); wire.IsObject(meta) {
		edits = append(edits, wire.Edit{Name: "_meta", Value: wire.Without(meta, spec.MetaProgressToken, spec.MetaRelatedTask)})
	}
	if !mcp.Declares(wire.Get(capabilities, "sampling"), "context") {
		edits = append(edits, wire.Edit{Name: "includeContext"})
	}
	return wire.AppendEdited(nil, params, edits...)
}

// InputResponse converts a client's response to a revision. Before 2025-11-25 a sampled
// message has one content block.
func InputResponse(r spec.Revision, method string, a mcp.InputResponse) mcp.InputResponse {
	content := wire.Get(a.Result, "content")
	if method != spec.MethodSample || !wire.IsArray(content) || r >= spec.Rev20251125 {
		return a
	}
	var blocks [][]byte
	for e := range wire.Elements(content) {
		blocks = append(blocks, e)
	}
	if len(blocks) != 1 {
		return mcp.InputResponse{Err: wire.Errorf(spec.CodeInternal,
			"the client's message has %d blocks of content, revision %s knows messages of one", len(blocks), r)}
	}
	a.Result = wire.AppendEdited(nil, a.Result, wire.Edit{Name: "content", Value: blocks[0]})
	return a
}
