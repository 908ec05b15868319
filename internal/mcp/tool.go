package mcp

import (
	"bytes"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ErrToolFailed reports that the result that was passed on has isError.
var ErrToolFailed = errors.New("the tool failed")

var isError = []byte(`"isError"`)

// ToolFailed reports whether the result of a tools/call has isError. o is the result's
// outline, or nil. Without an outline, the result is scanned only if it contains the
// member's name.
//
// Spec: 2026-07-28, server/tools, Error Handling.
func ToolFailed(method string, result []byte, o *wire.Outline) bool {
	if method != spec.MethodToolsCall || o == nil && !bytes.Contains(result, isError) {
		return false
	}
	return string(o.Get(result, "isError")) == "true"
}
