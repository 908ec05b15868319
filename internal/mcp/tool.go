package mcp

import (
	"bytes"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// ErrToolFailed reports that the result that was passed on has isError.
var ErrToolFailed = errors.New("the tool failed")

// errorMember ends the name of the member isError. It does not begin with a quote, since every
// string does, and a search stops at each.
var errorMember = []byte(`Error"`)

// ToolFailed reports whether the result of a tools/call has isError. o is the result's
// outline, or nil. Without an outline, the result is scanned only if it contains the
// member's name.
//
// Spec: 2026-07-28, server/tools, Error Handling.
func ToolFailed(method string, result []byte, o *wire.Outline) bool {
	if method != spec.MethodToolsCall || o == nil && !bytes.Contains(result, errorMember) {
		return false
	}
	return string(o.Get(result, "isError")) == "true"
}

// FailedText returns the text of a tool's result if it is an error, and whether it is one.
func FailedText(result []byte) (string, bool) {
	if string(wire.Get(result, "isError")) != "true" {
		return "", false
	}
	var text bytes.Buffer
	for block := range wire.Elements(wire.Get(result, "content")) {
		t, _ := wire.GetString(block, "text")
		text.WriteString(t)
	}
	return Shorten(text.String()), true
}

// ContentNonNull are the members of content that must not be null in results of tools/call.
var ContentNonNull = []string{"_meta", "type", "text", "data", "mimeType", "annotations", "resource", "uri", "name", "title", "description", "size", "icons"}
