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

// maxMirrored bounds how many tools' header annotations are remembered, over all
// profiles of one server.
const maxMirrored = 10_000

// HeaderAnnotation marks a parameter that a header mirrors.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Schema Extension.
const HeaderAnnotation = "x-mcp-header"

// A mirror is one parameter that a header repeats.
type Mirror struct {
	Header string   // canonical, with its prefix
	Path   []string // names from the arguments down
}

// A schemaCache remembers which parameters of which tools headers mirror, from
// the tool lists that passed. A tool that is not in it is not checked: to refuse
// what was never announced would be to guess. Safe for concurrent use.
type SchemaCache struct {
	tools *lru.Cache[toolKey, []Mirror]
}

type toolKey struct{ scope, tool string }

func NewSchemaCache() (*SchemaCache, error) {
	tools, err := lru.New[toolKey, []Mirror](maxMirrored)
	return &SchemaCache{tools: tools}, err
}

// Learn takes over what a page of tools/list says.
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

// appendMirrors walks the chain of properties; annotations anywhere else make a
// tool invalid, and clients leave it out.
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

// Forget drops what is known of a scope's tools.
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

// Mirrors returns the parameters of a tool that headers mirror, as far as is known.
func (c *SchemaCache) Mirrors(scope, tool string) []Mirror {
	mirrors, _ := c.tools.Get(toolKey{scope, tool})
	return mirrors
}

// Knows reports whether headers mirror parameters of a tool.
func (c *SchemaCache) Knows(scope, tool string) bool {
	return c.tools.Contains(toolKey{scope, tool})
}

// Empty reports whether nothing is known of any tool.
func (c *SchemaCache) Empty() bool { return c.tools.Len() == 0 }

// ParseNumber reads a JSON number exactly. Exponents that would take long to expand
// are left alone: such a number equals only its own spelling.
func ParseNumber(s string) (*big.Rat, bool) {
	if len(s) > 64 || !json.Valid([]byte(s)) || bytes.ContainsAny([]byte(s), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}
