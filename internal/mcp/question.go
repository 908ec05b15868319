package mcp

import "github.com/mcpbridge/mcpbridge/internal/wire"

// maxQuestion bounds the text that is told of an input request, in bytes.
const maxQuestion = 300

// QuestionText returns what an elicitation asks, as its user reads it; empty for other
// input requests.
func QuestionText(params []byte) string {
	text, _ := wire.GetString(params, "message")
	return Truncate(text, maxQuestion)
}
