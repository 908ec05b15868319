package projection

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// since20260728 removes what all legacy clients lack. In input requests these are output
// schemas other than objects, and elicitation by URL without an id. For results, see
// result.go, content.go and tool.go.
var since20260728 = boundary{
	since: spec.Rev20260728,
	question: func(_ []byte, q mcp.InputRequest) (mcp.InputRequest, error) {
		q.Params = questionParams(q.Params)
		switch q.Method {
		case spec.MethodElicit:
			q.Params = identified(q.Params)
		case spec.MethodSample:
			var err error
			q.Params, err = samplingTools(q.Params)
			return q, err
		}
		return q, nil
	},
}

// questionParams removes optional members that are null, and what would have a client make a task of
// the question: no modern server could look at that.
func questionParams(params []byte) []byte {
	if params == nil {
		return nil
	}
	if wire.Get(params, "task") != nil {
		params = wire.AppendEdited(nil, params, wire.Edit{Name: "task"})
	}
	return withoutNulls(params, "_meta", "mode", "modelPreferences", "systemPrompt", "includeContext",
		"temperature", "stopSequences", "metadata", "tools", "toolChoice")
}

// identified returns the params of an elicitation, with a random elicitationId for
// elicitation by URL.
//
// Spec: 2025-11-25, client/elicitation, URL Mode Elicitation Requests.
func identified(params []byte) []byte {
	if mode, _ := wire.GetString(params, "mode"); mode != "url" || wire.Get(params, "elicitationId") != nil {
		return params
	}
	return wire.AppendEdited(nil, params, wire.Edit{Name: "elicitationId", Value: wire.Quote(rand.Text())})
}

// samplingTools returns the params of a sampling request with tools and tool results in
// the form of 2025-11-25.
func samplingTools(params []byte) ([]byte, error) {
	var edits []wire.Edit
	if tools := wire.Get(params, "tools"); wire.IsArray(tools) {
		list, err := toolsToOffer(tools)
		if err != nil {
			return params, err
		}
		edits = append(edits, wire.Edit{Name: "tools", Value: list})
	}
	if messages := wire.Get(params, "messages"); mentions(messages, "tool_result") {
		edits = append(edits, wire.Edit{Name: "messages", Value: toolResults(messages)})
	}
	if edits == nil {
		return params, nil
	}
	return wire.AppendEdited(nil, params, edits...), nil
}

// toolsToOffer returns the tools for a model.
func toolsToOffer(tools []byte) ([]byte, error) {
	p := projector{rev: spec.Rev20251125}
	out := []byte{'['}
	for tool := range wire.Elements(tools) {
		var reason string
		if out, reason = p.tool(out, tool); reason != "" {
			name, _ := wire.GetString(tool, "name")
			return nil, fmt.Errorf("its tool %q can't be offered: %w", name, errors.New(reason))
		}
		out = append(out, ',')
	}
	return closed(out, ']'), nil
}

// toolResults returns messages whose tool results have objects as structuredContent.
func toolResults(messages []byte) []byte {
	return eachBlock(messages, func(block []byte) []byte {
		v := wire.Get(block, "structuredContent")
		if typ, _ := wire.GetString(block, "type"); typ != "tool_result" || v == nil || wire.IsObject(v) {
			return block
		}
		v = wire.AppendEdited(nil, nil, wire.Edit{Name: "result", Value: v})
		return wire.AppendEdited(nil, block, wire.Edit{Name: "structuredContent", Value: v})
	})
}
