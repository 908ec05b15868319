package protocol

import (
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
