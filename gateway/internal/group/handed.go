package group

import (
	"bytes"
	"iter"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxNoted bounds the URIs of one result that are remembered, and maxURI their length.
const (
	maxNoted = 256
	maxURI   = 8 << 10
)

var uriMember = []byte(`"uri"`)

// noteResult remembers the URIs that a member has handed out in a result: in links and embedded
// resources.
func (b *Back) noteResult(i int, req *mcp.Request, res *mcp.Result) {
	if !bytes.Contains(res.Body, uriMember) {
		return // as in most results
	}
	left := maxNoted
	note := func(object []byte) {
		if uri, ok := wire.GetString(object, memberURI); ok && left > 0 {
			left--
			b.handedOut(&req.Profile, i, uri)
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

// handedOut remembers that a member has handed out a URI to a profile of the group.
func (b *Back) handedOut(p *mcp.Profile, i int, uri string) {
	if uri != "" && len(uri) <= maxURI {
		b.where.handOut(p, b.opts.Members[i].Name, uri)
	}
}
