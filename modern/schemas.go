package modern

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

// headerAnnotation marks a parameter that a header mirrors.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Schema Extension.
const headerAnnotation = "x-mcp-header"

// A mirror is one parameter that a header repeats.
type mirror struct {
	header string   // canonical, with its prefix
	path   []string // names from the arguments down
}

// A schemaCache remembers which parameters of which tools headers mirror, from
// the tool lists that passed. A tool that is not in it is not checked: to refuse
// what was never announced would be to guess. Safe for concurrent use.
type schemaCache struct {
	tools *lru.Cache[toolKey, []mirror]
}

type toolKey struct{ scope, tool string }

func newSchemaCache() (*schemaCache, error) {
	tools, err := lru.New[toolKey, []mirror](maxMirrored)
	return &schemaCache{tools: tools}, err
}

// learn takes over what a page of tools/list says.
func (c *schemaCache) learn(scope string, tools []byte) {
	some := bytes.Contains(tools, []byte(headerAnnotation))
	if !some && c.empty() {
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
func appendMirrors(dst []mirror, schema []byte, path []string) []mirror {
	for name, prop := range wire.Members(wire.Get(schema, "properties")) {
		at := append(path[:len(path):len(path)], name.String())
		if h, ok := wire.GetString(prop, headerAnnotation); ok {
			dst = append(dst, mirror{http.CanonicalHeaderKey(spec.HeaderParamPrefix + h), at})
		}
		dst = appendMirrors(dst, prop, at)
	}
	return dst
}

// forget drops what is known of a scope's tools.
func (c *schemaCache) forget(scope string) {
	if c.empty() {
		return
	}
	for _, key := range c.tools.Keys() {
		if key.scope == scope {
			c.tools.Remove(key)
		}
	}
}

// mirrors returns the parameters of a tool that headers mirror, as far as is known.
func (c *schemaCache) mirrors(scope, tool string) []mirror {
	mirrors, _ := c.tools.Get(toolKey{scope, tool})
	return mirrors
}

// knows reports whether headers mirror parameters of a tool.
func (c *schemaCache) knows(scope, tool string) bool {
	return c.tools.Contains(toolKey{scope, tool})
}

// empty reports whether nothing is known of any tool.
func (c *schemaCache) empty() bool { return c.tools.Len() == 0 }

// number reads a JSON number exactly. Exponents that would take long to expand
// are left alone: such a number equals only its own spelling.
func number(s string) (*big.Rat, bool) {
	if len(s) > 64 || !json.Valid([]byte(s)) || bytes.ContainsAny([]byte(s), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}
