package mcp

import (
	"bytes"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ErrToolFailed says of a result that is passed on that its tool failed.
var ErrToolFailed = errors.New("the tool failed")

var isError = []byte(`"isError"`)

// ToolFailed reports whether the result of a request says that its tool failed. o, which
// may be nil, is the result's outline. A small result has none, and is only walked if the
// word is in it.
//
// Spec: 2026-07-28, server/tools, Error Handling.
func ToolFailed(method string, result []byte, o *wire.Outline) bool {
	if method != spec.MethodToolsCall || o == nil && !bytes.Contains(result, isError) {
		return false
	}
	return string(o.Get(result, "isError")) == "true"
}
