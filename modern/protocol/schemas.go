package protocol

import (
	"bytes"
	"encoding/json"
	"math/big"
	"net/http"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxMirrored limits the tools whose header annotations are stored, over all profiles of
// one server.
const maxMirrored = 10_000

// HeaderAnnotation marks a parameter that a header mirrors.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Schema Extension.
const HeaderAnnotation = "x-mcp-header"

// A Mirror is one parameter that is mirrored in a header.
type Mirror struct {
	Header string   // canonical, with its prefix
	Path   []string // names from the arguments down
}

// A SchemaCache stores which parameters of tools are mirrored in headers, from tool lists.
// Unknown tools are not checked, because a refusal would be a guess. It is safe for
// concurrent use.
type SchemaCache struct {
	tools *lru.Cache[toolKey, []Mirror]
}

type toolKey struct{ scope, tool string }

func NewSchemaCache() (*SchemaCache, error) {
	tools, err := lru.New[toolKey, []Mirror](maxMirrored)
	return &SchemaCache{tools: tools}, err
}

// Learn stores the annotations in a page of tools/list.
func (c *SchemaCache) Learn(scope string, tools []byte) {
	some := bytes.Contains(tools, []byte(HeaderAnnotation))
	if !some && c.Empty() {
		return
	}
	for tool := range wire.Elements(tools) {
		key := toolKey{scope: scope}
		key.tool, _ = wire.GetString(tool, "name")
		mirrors := appendMirrors(nil, wire.Get(tool, "inputSchema"), nil)
		if len(mirrors) == 0 {
			c.tools.Remove(key)
		} else {
			c.tools.Add(key, mirrors)
		}
	}
}

// appendMirrors follows chains of properties. Annotations elsewhere make a tool invalid,
// and clients ignore it.
func appendMirrors(dst []Mirror, schema []byte, path []string) []Mirror {
	for name, prop := range wire.Members(wire.Get(schema, "properties")) {
		at := append(path[:len(path):len(path)], name.String())
		if h, ok := wire.GetString(prop, HeaderAnnotation); ok {
			dst = append(dst, Mirror{http.CanonicalHeaderKey(spec.HeaderParamPrefix + h), at})
		}
		dst = appendMirrors(dst, prop, at)
	}
	return dst
}

// Forget removes the tools of a scope.
func (c *SchemaCache) Forget(scope string) {
	if c.Empty() {
		return
	}
	for _, key := range c.tools.Keys() {
		if key.scope == scope {
			c.tools.Remove(key)
		}
	}
}

// Mirrors returns the mirrored parameters of a tool, as far as they are known.
func (c *SchemaCache) Mirrors(scope, tool string) []Mirror {
	mirrors, _ := c.tools.Get(toolKey{scope, tool})
	return mirrors
}

// Knows reports whether parameters of a tool are mirrored in headers.
func (c *SchemaCache) Knows(scope, tool string) bool {
	return c.tools.Contains(toolKey{scope, tool})
}

// Empty reports whether no tool is known.
func (c *SchemaCache) Empty() bool { return c.tools.Len() == 0 }

// ParseNumber reads a JSON number exactly. It does not expand large exponents: such a
// number equals only its own text.
func ParseNumber(s string) (*big.Rat, bool) {
	if len(s) > 64 || !json.Valid([]byte(s)) || bytes.ContainsAny([]byte(s), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// PlainText returns a JSON scalar as it is in a header before encoding: a string without its quotes.
func PlainText(value []byte) string {
	if len(value) > 0 && value[0] == '"' {
		return wire.Unquote(value)
	}
	return string(value)
}
