package projection

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// content copies the content of a tool's result, with blocks that the revision has. If
// there is no text, but structured content, it adds a text block.
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

// object copies structuredContent, wrapped if the tool's output schema was.
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

// blocks copies content, each block followed by a comma, and reports whether the server
// sent a text block. A value that is not an array counts as its only element.
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
			p.mended.Add(quirks.NullMembers)
			continue
		}
		var is bool
		dst, is = p.block(dst, b)
		dst, text = append(dst, ','), text || is
	}
	return dst, text
}

// block copies one block of content, or appends a text block for a type that the revision
// does not have. It reports whether the server sent a text block.
func (p *projector) block(dst, block []byte) (_ []byte, text bool) {
	if !wire.IsObject(block) {
		return appendText(dst, nil, block), true
	}
	typ := wire.Get(block, "type")
	if string(typ) == `"text"` { // the usual case
		return p.withoutNulls(dst, block, itemsNonNull[spec.MethodToolsCall]), true
	}
	name := wire.Unquote(typ)
	for _, b := range crossed(p.rev) {
		if stand := b.blocks[name]; stand != nil {
			return appendText(dst, block, wire.Quote(stand(block))), false
		}
	}
	switch name {
	case "text", "image", "audio", "resource", "resource_link":
		return p.withoutNulls(dst, block, itemsNonNull[spec.MethodToolsCall]), name == "text"
	}
	return appendText(dst, block, wire.Quote(leftOut(strconv.Quote(name), "no revision of the protocol"))), false
}

// leftOut returns the text that replaces content of an unsupported type.
func leftOut(what, knownTo string) string {
	return fmt.Sprintf("[content of type %s was left out: it is known to %s]", what, knownTo)
}

// appendText appends a text block with the annotations and _meta of block, which may be
// nil. It quotes a text that is not a JSON string.
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

// appendQuoted appends JSON as a JSON string. The strings in JSON have no control
// characters, but the white space between its tokens may have some.
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
		default: // the fourth white space character
			dst = append(dst, '\\', 't')
		}
	}
	return append(dst, '"')
}
