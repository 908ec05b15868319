package mcp

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxClient bounds what logs have of a client's name, in bytes.
const maxClient = 128

// ClientName returns the name and version that a client declared, as logs have them.
func ClientName(info []byte) string {
	var few [maxClient]byte
	return string(AppendClientName(few[:0], info))
}

// AppendClientName appends what ClientName returns.
func AppendClientName(dst, info []byte) []byte {
	var name, version []byte
	for k, v := range wire.Members(info) {
		switch {
		case name == nil && k.Is("name"):
			name = unquoted(v)
		case version == nil && k.Is("version"):
			version = unquoted(v)
		}
	}
	at := len(dst)
	if dst = append(dst, name...); len(version) > 0 {
		dst = append(append(dst, '/'), version...)
	}
	if len(dst)-at > maxClient {
		return append(dst[:at], Truncate(string(dst[at:]), maxClient)...)
	}
	return dst
}

// unquoted returns the text of a JSON string, without copying if it has no escapes. For any
// other value it returns an empty text.
func unquoted(v []byte) []byte {
	if len(v) > 1 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	return []byte(wire.Unquote(v))
}

// Truncate shortens text to at most most bytes. It copies a shortened text, so that the long
// one can be freed.
func Truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most--; !utf8.RuneStart(text[most]); {
		most--
	}
	return strings.Clone(text[:most]) + "…"
}
