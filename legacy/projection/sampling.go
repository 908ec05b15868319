package projection

import (
	"bytes"
	"iter"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// blocksOf iterates over the content of a sampling message, which is one block or
// an array of them.
func blocksOf(message []byte) iter.Seq[[]byte] {
	content := wire.Get(message, "content")
	if wire.IsArray(content) {
		return wire.Elements(content)
	}
	return func(yield func([]byte) bool) {
		if content != nil {
			yield(content)
		}
	}
}

// eachBlock returns sampling messages with f's result for each block of content.
func eachBlock(messages []byte, f func(block []byte) []byte) []byte {
	out := []byte{'['}
	for m := range wire.Elements(messages) {
		content := []byte{'['}
		for b := range blocksOf(m) {
			content = append(append(content, f(b)...), ',')
		}
		content = closed(content, ']')
		if !wire.IsArray(wire.Get(m, "content")) {
			content = content[1 : len(content)-1]
		}
		if len(content) > 0 {
			m = wire.AppendEdited(nil, m, wire.Edit{Name: "content", Value: content})
		}
		out = append(append(out, m...), ',')
	}
	return closed(out, ']')
}

// hasBlock reports whether a block of the messages is of one of the types.
func hasBlock(messages []byte, types ...string) (string, bool) {
	for _, typ := range types {
		if !mentions(messages, typ) {
			continue
		}
		for m := range wire.Elements(messages) {
			for b := range blocksOf(m) {
				if is, _ := wire.GetString(b, "type"); is == typ {
					return typ, true
				}
			}
		}
	}
	return "", false
}

// mentions is a quick check: false means that no block has the type. It ignores types
// written with escapes, which no encoder does.
func mentions(messages []byte, typ string) bool {
	return bytes.Contains(messages, []byte(typ)) || bytes.Contains(messages, []byte(`\u`))
}
