package mcp

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxClient bounds what logs have of a client's name, in bytes.
const maxClient = 128

// ClientName returns the name and version that a client declared, as logs have them.
func ClientName(info []byte) string {
	var name, version []byte
	for k, v := range wire.Members(info) {
		switch {
		case name == nil && k.Is("name"):
			name = unquoted(v)
		case version == nil && k.Is("version"):
			version = unquoted(v)
		}
	}
	if len(version) == 0 {
		return Truncate(string(name), maxClient)
	}
	return Truncate(string(name)+"/"+string(version), maxClient)
}

// ClientNames has the names of a few clients at hand. Its zero value has none. Safe for
// concurrent use.
type ClientNames [16]atomic.Pointer[clientName]

type clientName struct{ info, name string }

// maxClientInfo bounds the declarations whose names are at hand, in bytes.
const maxClientInfo = 512

// Of returns what [ClientName] does.
func (c *ClientNames) Of(info []byte) string {
	if len(info) == 0 || len(info) > maxClientInfo {
		return ClientName(info)
	}
	place := &c[(len(info)+int(info[len(info)/2]))%len(c)]
	known := place.Load()
	if known != nil && known.info == string(info) {
		return known.name
	}
	name := ClientName(info)
	if known == nil || rand.Uint32()%16 == 0 { // clients that share a place get it now and then
		place.Store(&clientName{string(info), name})
	}
	return name
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
