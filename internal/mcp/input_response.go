package mcp

import (
	"cmp"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// WellFormed reports whether text can be the response to an input request of method.
//
// Spec: 2026-07-28, schema, InputResponse.
func WellFormed(method string, text []byte) bool {
	if !wire.IsObject(text) {
		return false
	}
	switch method {
	case spec.MethodElicit:
		switch action, _ := wire.GetString(text, "action"); action {
		case "accept", "decline", "cancel":
			content := wire.Get(text, "content")
			return content == nil || wire.IsObject(content)
		}
		return false
	case spec.MethodSample:
		_, ok := wire.GetString(text, "role")
		content := wire.Get(text, "content")
		return ok && (wire.IsObject(content) || wire.IsArray(content))
	case spec.MethodRootsList:
		return wire.IsArray(wire.Get(text, "roots"))
	}
	return true
}

// Unanswered returns the response to an input request to which the client will not respond.
func Unanswered(method string, cause error) InputResponse {
	if method == spec.MethodElicit {
		return InputResponse{Result: []byte(`{"action":"cancel"}`)}
	}
	return InputResponse{Err: wire.Errorf(spec.CodeInternal, "no answer from the client: %v", cause)}
}

// AppendInput appends an input request with its key, as a member of inputRequests.
//
// Spec: 2026-07-28, basic/patterns/mrtr, InputRequiredResult.
func AppendInput(dst []byte, key string, q InputRequest) []byte {
	dst = append(wire.AppendString(dst, key), `:{"method":`...)
	dst = append(wire.AppendString(dst, q.Method), `,"params":`...)
	// TypeScript servers send roots/list without params, which are optional;
	// go-sdk v1.8.0's client can't read an input request without them.
	return append(append(dst, cmp.Or(string(q.Params), "{}")...), '}')
}
