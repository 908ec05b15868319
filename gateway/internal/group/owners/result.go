package owners

import (
	"bytes"
	"iter"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxNoted bounds the URIs of one result that are remembered.
const maxNoted = 256

// uriMember ends the name of the member uri. It does not begin with a quote, since every string
// does, and a search stops at each.
var uriMember = []byte(`uri"`)

// NoteResult remembers the URIs that a member has handed out in the result of a request: in links
// and embedded resources.
func (m *URIs) NoteResult(req *mcp.Request, member string, res *mcp.Result) {
	if !bytes.Contains(res.Body, uriMember) {
		return // as in most results
	}
	left := maxNoted
	note := func(object []byte) {
		if uri, ok := wire.GetString(object, "uri"); ok && left > 0 {
			left--
			m.HandOut(&req.Profile, member, uri)
		}
	}
	for block := range blocksOf(req.Method, res) {
		note(block)
		note(wire.Get(block, "resource"))
	}
}

// blocksOf returns the blocks of content, or the contents of resources, in a result.
func blocksOf(method string, res *mcp.Result) iter.Seq[[]byte] {
	switch method {
	case spec.MethodToolsCall, spec.MethodResourcesRead:
		return wire.Elements(res.Outline.Get(res.Body, spec.Array(method)))
	case spec.MethodTaskGet:
		return wire.Elements(wire.Get(wire.Get(res.Body, "result"), "content"))
	case spec.MethodPromptsGet:
		messages := res.Outline.Get(res.Body, "messages")
		return func(yield func([]byte) bool) {
			for message := range wire.Elements(messages) {
				if !yield(wire.Get(message, "content")) {
					return
				}
			}
		}
	}
	return func(func([]byte) bool) {}
}
