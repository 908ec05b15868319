package mcp

import (
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxQuestion and maxNamed bound what is told of an input request, in bytes.
const (
	maxQuestion = 300
	maxNamed    = 256
)

// QuestionText returns what an elicitation asks, as its user reads it; empty for other
// input requests.
func QuestionText(params []byte) string {
	text, _ := wire.GetString(params, "message")
	return Truncate(text, maxQuestion)
}

// Named returns the tool, prompt or resource that a request is for; empty if there is none.
func Named(method string, params []byte) string {
	member := spec.Named(method)
	if member == "" {
		return ""
	}
	name, _ := wire.GetString(params, member)
	return Truncate(name, maxNamed)
}
