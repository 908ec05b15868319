package projection

import (
	"bytes"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// itemsNonNull has, for each method whose results must have an array, the optional
// members of its items that must not be null.
var itemsNonNull = map[string][]string{
	spec.MethodToolsList:          {"_meta", "title", "description", "annotations", "icons"},
	spec.MethodPromptsList:        {"_meta", "title", "description", "arguments", "icons"},
	spec.MethodResourcesList:      {"_meta", "title", "description", "mimeType", "annotations", "size", "icons"},
	spec.MethodResourcesTemplates: {"_meta", "title", "description", "mimeType", "annotations", "icons"},
	spec.MethodToolsCall:          {"_meta", "annotations", "title", "description", "mimeType", "size", "icons"},
	spec.MethodResourcesRead:      {"_meta", "mimeType", "text", "blob"},
	spec.MethodPromptsGet:         {"_meta"},
}

// items copies the array of a result. It scans items only if they may need a correction.
func (p *projector) items(dst, v []byte) []byte {
	if wire.IsNull(v) {
		p.mended.Add(quirks.ListMissing)
	}
	switch {
	case p.method == spec.MethodToolsCall:
		return p.content(dst, v)
	case wire.IsNull(v):
		return append(dst, "[]"...)
	case !wire.IsArray(v):
		return append(dst, v...)
	case p.method == spec.MethodToolsList:
		return p.listTools(dst, v)
	case p.method == spec.MethodPromptsGet:
		return p.messages(dst, v)
	case !mayHaveNulls(v):
		return append(dst, v...)
	}
	dst = append(dst, '[')
	for e := range wire.Elements(v) {
		dst = append(p.withoutNulls(dst, e, p.nonNull), ',')
	}
	return closed(dst, ']')
}

// messages copies the messages of a prompt. Each has one block of content.
func (p *projector) messages(dst, v []byte) []byte {
	dst = append(dst, '[')
	for msg := range wire.Elements(v) {
		if content := wire.Get(msg, "content"); wire.IsObject(content) {
			content, _ = p.block(nil, content)
			msg = wire.AppendEdited(nil, msg, wire.Edit{Name: "content", Value: content})
		}
		dst = append(p.withoutNulls(dst, msg, p.nonNull), ',')
	}
	return closed(dst, ']')
}

func mayHaveNulls(text []byte) bool { return bytes.Contains(text, []byte("null")) }
