package projection

import (
	"bytes"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A resultList is the array that a result must have, and the members of its items
// that may be absent but not null.
type resultList struct {
	name    string
	nonNull []string
}

var (
	toolList     = resultList{"tools", []string{"_meta", "title", "description", "annotations", "icons"}}
	promptList   = resultList{"prompts", []string{"_meta", "title", "description", "arguments", "icons"}}
	resourceList = resultList{"resources", []string{"_meta", "title", "description", "mimeType", "annotations", "size", "icons"}}
	templateList = resultList{"resourceTemplates", []string{"_meta", "title", "description", "mimeType", "annotations", "icons"}}
	contentList  = resultList{"content", []string{"_meta", "annotations", "title", "description", "mimeType", "size", "icons"}}
	contentsList = resultList{"contents", []string{"_meta", "mimeType", "text", "blob"}}
	messageList  = resultList{"messages", []string{"_meta"}}
)

// listOf returns the list that results of method have, if there is one.
func listOf(method string) resultList {
	switch method {
	case spec.MethodToolsList:
		return toolList
	case spec.MethodToolsCall:
		return contentList
	case spec.MethodPromptsList:
		return promptList
	case spec.MethodPromptsGet:
		return messageList
	case spec.MethodResourcesList:
		return resourceList
	case spec.MethodResourcesTemplates:
		return templateList
	case spec.MethodResourcesRead:
		return contentsList
	}
	return resultList{}
}

// items copies the array of a result. Items are looked into only where there may
// be something to repair.
func (p *projector) items(dst, v []byte) []byte {
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
	for item := range wire.Elements(v) {
		dst = append(appendWithoutNulls(dst, item, p.list.nonNull), ',')
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
		dst = append(appendWithoutNulls(dst, msg, p.list.nonNull), ',')
	}
	return closed(dst, ']')
}

func mayHaveNulls(text []byte) bool { return bytes.Contains(text, []byte("null")) }

// appendWithoutNulls copies an object without those of the named members that are
// null.
func appendWithoutNulls(dst, item []byte, names []string) []byte {
	if !mayHaveNulls(item) || !wire.IsObject(item) {
		return append(dst, item...)
	}
	dst = append(dst, '{')
	for k, v := range wire.Members(item) {
		if wire.IsNull(v) && slices.Contains(names, k.String()) {
			continue
		}
		dst = append(append(dst, k...), ':')
		dst = append(append(dst, v...), ',')
	}
	return closed(dst, '}')
}
