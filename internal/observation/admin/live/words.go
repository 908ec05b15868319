package live

import (
	"bytes"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// words returns the texts of a result by which a tool reports an error; empty for every other
// message. message is one to the client.
func words(message []byte) string {
	if !bytes.Contains(message, []byte(`"isError"`)) { // most have none, and need not be read
		return ""
	}
	result := wire.Get(message, "result")
	if result == nil {
		result = message // of whoever asks without a message
	}
	if string(wire.Get(result, "isError")) != "true" {
		return ""
	}
	var all []string
	for part := range wire.Elements(wire.Get(result, "content")) {
		if text, ok := wire.GetString(part, "text"); ok && text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n")
}

// isNote reports whether a message is a notification, of which a call may have very many.
func isNote(message []byte) bool {
	return wire.Get(message, "method") != nil && wire.Get(message, "id") == nil
}
