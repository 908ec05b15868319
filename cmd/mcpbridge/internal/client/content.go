package client

import (
	"fmt"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// contentText returns a tool's result as text: its text blocks, a line in brackets for each
// other block, and the structured content if there is no block.
func contentText(result []byte) string {
	var lines []string
	for block := range wire.Elements(wire.Get(result, "content")) {
		lines = append(lines, blockText(block))
	}
	if structured := wire.Get(result, "structuredContent"); len(lines) == 0 && structured != nil {
		lines = append(lines, string(structured))
	}
	return strings.Join(lines, "\n")
}

// blockText returns one content block as text.
//
// Spec: 2026-07-28, server/tools, Tool Result.
func blockText(block []byte) string {
	str := func(name string) string { s, _ := wire.GetString(block, name); return s }
	switch kind := str("type"); kind {
	case "text":
		return str("text")
	case "image", "audio":
		return fmt.Sprintf("[%s, %s, %d bytes of base64]", kind, str("mimeType"), len(str("data")))
	case "resource_link":
		return fmt.Sprintf("[link to %s]", str("uri"))
	case "resource":
		resource := wire.Get(block, "resource")
		if text, ok := wire.GetString(resource, "text"); ok {
			return text
		}
		uri, _ := wire.GetString(resource, "uri")
		return fmt.Sprintf("[resource %s]", uri)
	default:
		return fmt.Sprintf("[%s]", kind)
	}
}
