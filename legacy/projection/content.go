package projection

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// content copies the content of a called tool: blocks that the revision knows, with
// a text where there is none but structured content.
//
// Spec: 2025-11-25, server/tools, Structured Content.
func (p *projector) content(dst, v []byte) []byte {
	dst, text := p.blocks(append(dst, '['), v)
	if text {
		return closed(dst, ']')
	}
	if structured := wire.Get(p.body, "structuredContent"); structured != nil {
		dst = append(dst, `{"type":"text","text":`...)
		dst = append(appendQuoted(dst, structured), "},"...)
	}
	return closed(dst, ']')
}

// object copies structuredContent as the tool's clients have to see it.
func (p *projector) object(dst, v []byte) []byte {
	if !p.wrapped(v) {
		return append(dst, v...)
	}
	dst = append(append(dst, `{"result":`...), v...)
	return append(dst, '}')
}

func (p *projector) wrapped(v []byte) bool {
	return !wire.IsObject(v) || p.tools.wraps(p.params)
}

// blocks copies content, each block with a comma behind it, and reports whether
// there was a text in what the server sent. What is no array counts as its only
// element.
func (p *projector) blocks(dst, content []byte) (_ []byte, text bool) {
	if wire.IsNull(content) {
		return dst, false
	}
	if !wire.IsArray(content) {
		dst, text = p.block(dst, content)
		return append(dst, ','), text
	}
	for b := range wire.Elements(content) {
		if wire.IsNull(b) {
			continue
		}
		var is bool
		dst, is = p.block(dst, b)
		dst, text = append(dst, ','), text || is
	}
	return dst, text
}

// block copies one block of content, or a text in place of one whose type the
// revision does not know, and reports whether it was a text from the start.
func (p *projector) block(dst, block []byte) (_ []byte, text bool) {
	if !wire.IsObject(block) {
		return appendText(dst, nil, block), true
	}
	typ := wire.Get(block, "type")
	if string(typ) == `"text"` { // most are
		return wire.AppendWithoutNulls(dst, block, itemsNonNull[spec.MethodToolsCall]), true
	}
	name := wire.Unquote(typ)
	for _, b := range crossed(p.rev) {
		if stand := b.blocks[name]; stand != nil {
			return appendText(dst, block, wire.Quote(stand(block))), false
		}
	}
	switch name {
	case "text", "image", "audio", "resource", "resource_link":
		return wire.AppendWithoutNulls(dst, block, itemsNonNull[spec.MethodToolsCall]), name == "text"
	}
	return appendText(dst, block, wire.Quote(leftOut(strconv.Quote(name), "no revision of the protocol"))), false
}

// leftOut is said in place of content that a client can't be given.
func leftOut(what, knownTo string) string {
	return fmt.Sprintf("[content of type %s was left out: it is known to %s]", what, knownTo)
}

// appendText appends a text block with the annotations and _meta of block, which may
// be nil. A text that is no JSON string is quoted.
func appendText(dst, block, text []byte) []byte {
	dst = append(dst, `{"type":"text","text":`...)
	if text[0] == '"' {
		dst = append(dst, text...)
	} else {
		dst = appendQuoted(dst, text)
	}
	for _, name := range []string{"annotations", "_meta"} {
		if v := wire.Get(block, name); wire.IsObject(v) {
			dst = append(append(append(dst, ',', '"'), name...), `":`...)
			dst = append(dst, v...)
		}
	}
	return append(dst, '}')
}

// appendQuoted appends JSON as a JSON string. Strings in JSON have no control
// characters, but the space between its tokens may be some.
func appendQuoted(dst, text []byte) []byte {
	dst = append(slices.Grow(dst, len(text)+len(text)/4+2), '"')
	for _, b := range text {
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b >= ' ':
			dst = append(dst, b)
		case b == '\n':
			dst = append(dst, '\\', 'n')
		case b == '\r':
			dst = append(dst, '\\', 'r')
		default: // the fourth kind of space
			dst = append(dst, '\\', 't')
		}
	}
	return append(dst, '"')
}
