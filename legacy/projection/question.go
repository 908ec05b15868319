package projection

import (
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// InputRequest converts q, an input request of a modern server or of a later revision, for a client of
// rev with capabilities caps. What a legacy server has asked in a session of rev, or of an earlier
// revision, stays as it is without a gateway, too. It returns an error if q has something that the client supports
// neither by its revision nor by its capabilities. The caller must check that the client
// declared the capability for requests of this kind.
//
// Spec: 2026-07-28, client/elicitation; client/sampling; client/roots.
func InputRequest(rev spec.Revision, caps []byte, q mcp.InputRequest) (mcp.InputRequest, error) {
	switch q.Method {
	case spec.MethodElicit, spec.MethodSample, spec.MethodRootsList:
	default:
		return q, fmt.Errorf("no client knows %q", q.Method)
	}
	for _, b := range crossed(rev) {
		if b.question == nil || q.Revision != "" && b.since > q.Revision && b != &since20260728 {
			continue
		}
		var err error
		if q, err = b.question(caps, q); err != nil {
			return q, err
		}
	}
	return q, nil
}

// InputResponse converts a, the response of a client of rev to the input request q, to the
// modern form. An error stays an error.
//
// Spec: 2026-07-28, client/elicitation; client/sampling; client/roots.
func InputResponse(_ spec.Revision, q mcp.InputRequest, a mcp.InputResponse) mcp.InputResponse {
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

// elicited returns the response to an elicitation. It has content only if a form was
// accepted.
func elicited(params, result []byte) []byte {
	mode, _ := wire.GetString(params, "mode")
	action, _ := wire.GetString(result, "action")
	content := wire.Get(result, "content")
	if content == nil || mode != "url" && action == "accept" && !wire.IsNull(content) {
		return withoutNulls(result, "_meta")
	}
	return wire.AppendEdited(nil, withoutNulls(result, "_meta"), wire.Edit{Name: "content"})
}

// roots returns the response to roots/list. It replaces null by an empty list, because Go
// encodes an empty list as null.
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

// withoutNulls returns an object without those of the named members that are null, or
// text itself if there are none.
func withoutNulls(text []byte, names ...string) []byte {
	if !mayHaveNulls(text) {
		return text
	}
	return wire.AppendWithoutNulls(nil, text, names)
}
