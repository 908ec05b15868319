package projection

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Question returns q, a modern server's question, as a client of rev is asked that
// declared caps. The error says why it can't be: what it has that the client knows
// nothing of, neither by its revision nor by what it declared. That the client
// declared what every question of the kind needs is for the caller to see to.
//
// Spec: 2026-07-28, client/elicitation; client/sampling; client/roots.
func Question(rev spec.Revision, caps []byte, q mcp.InputRequest) (mcp.InputRequest, error) {
	switch q.Method {
	case spec.MethodElicit, spec.MethodSample, spec.MethodRootsList:
	default:
		return q, fmt.Errorf("no client knows %q", q.Method)
	}
	for _, b := range crossed(rev) {
		if b.question == nil {
			continue
		}
		var err error
		if q, err = b.question(caps, q); err != nil {
			return q, err
		}
	}
	return q, nil
}

// Answer returns the answer of a client of rev to q, the modern server's
// question, in the modern shape. Failures stay failures.
//
// Spec: 2026-07-28, client/elicitation; client/sampling; client/roots.
func Answer(_ spec.Revision, q mcp.InputRequest, a mcp.InputResponse) mcp.InputResponse {
	if a.Err != nil || !wire.IsObject(a.Result) {
		return a
	}
	switch q.Method {
	case spec.MethodElicit:
		a.Result = elicited(q.Params, a.Result)
	case spec.MethodSample:
		a.Result = withoutNulls(a.Result, "stopReason", "_meta")
	case spec.MethodRootsList:
		a.Result = roots(a.Result)
	}
	return a
}

// elicited returns the answer to an elicitation. There is content only where a form
// was accepted.
func elicited(params, result []byte) []byte {
	mode, _ := wire.GetString(params, "mode")
	action, _ := wire.GetString(result, "action")
	content := wire.Get(result, "content")
	if content == nil || mode != "url" && action == "accept" && !wire.IsNull(content) {
		return withoutNulls(result, "_meta")
	}
	return wire.AppendEdited(nil, withoutNulls(result, "_meta"), wire.Edit{Name: "content"})
}

// roots returns the answer to roots/list. Go's encoders write a list without
// elements as null.
func roots(result []byte) []byte {
	list := wire.Get(result, "roots")
	if wire.IsArray(list) && !mayHaveNulls(result) {
		return result
	}
	out := []byte{'['}
	for root := range wire.Elements(list) {
		out = append(wire.AppendWithoutNulls(out, root, rootMembers), ',')
	}
	return wire.AppendEdited(nil, withoutNulls(result, "_meta"), wire.Edit{Name: "roots", Value: closed(out, ']')})
}

var rootMembers = []string{"_meta", "name"}

// withoutNulls returns an object without those of the named members that are null:
// itself if there are none.
func withoutNulls(text []byte, names ...string) []byte {
	if !mayHaveNulls(text) {
		return text
	}
	return wire.AppendWithoutNulls(nil, text, names)
}
