package modern

import (
	"bytes"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/exchange"
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
	if !some && c.tools.Len() == 0 {
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

// check holds the parameter headers of a tools/call against its arguments.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Behavior for Custom
// Headers.
func (c *schemaCache) check(h http.Header, req *exchange.Request) error {
	if req.Method != spec.MethodToolsCall || c.tools.Len() == 0 {
		return nil
	}
	name, _ := wire.GetString(req.Params, "name")
	mirrors, _ := c.tools.Get(toolKey{req.Profile.Scope, name})
	for _, m := range mirrors {
		if err := m.check(h, wire.Get(req.Params, "arguments")); err != nil {
			return err
		}
	}
	return nil
}

// unverified returns the parameter headers of a tools/call that nothing is known of.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Server Behavior for Custom
// Headers.
func (c *schemaCache) unverified(h http.Header, req *exchange.Request) (headers map[string][]string) {
	if req.Method != spec.MethodToolsCall {
		return nil
	}
	for name, values := range h {
		if !strings.HasPrefix(name, spec.HeaderParamPrefix) {
			continue
		}
		if tool, _ := wire.GetString(req.Params, "name"); c.tools.Contains(toolKey{req.Profile.Scope, tool}) {
			return nil // they are computed anew
		}
		if headers == nil {
			headers = make(map[string][]string)
		}
		headers[name] = values
	}
	return headers
}

func (m mirror) check(h http.Header, value []byte) error {
	for _, name := range m.path {
		if err := wire.CheckUnique(value); err != nil {
			return exchange.Refuse(spec.CodeInvalidRequest, "arguments: %v", err)
		}
		value = wire.Get(value, name)
	}
	if len(value) == 0 || wire.IsNull(value) {
		if len(h[m.header]) > 0 {
			return exchange.Refuse(spec.CodeHeaderMismatch, "header %s is there, its argument is not", m.header)
		}
		return nil
	}
	got, err := single(h, m.header)
	if err != nil {
		return err
	}
	text, ok := decode(got)
	if !ok || !sameValue(text, value) {
		return mismatch(m.header, got, plainText(value))
	}
	return nil
}

// plainText returns a JSON scalar as a header shows it before encoding.
func plainText(value []byte) string {
	if value[0] == '"' {
		return wire.Unquote(value)
	}
	return string(value)
}

// sameValue compares what a header says with an argument: numbers as numbers.
func sameValue(text string, value []byte) bool {
	if plainText(value) == text {
		return true
	}
	if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return false
	}
	return sameNumber(text, string(value))
}

func sameNumber(a, b string) bool {
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x.Cmp(y) == 0
}

// number reads a JSON number exactly. Exponents that would take long to expand
// are left alone: such a number equals only its own spelling.
func number(s string) (*big.Rat, bool) {
	if len(s) > 64 || !json.Valid([]byte(s)) || bytes.ContainsAny([]byte(s), "eE") {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}
