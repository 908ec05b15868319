package back

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/upstream"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// mirrors returns the parameters that headers have to mirror in a request.
func (b *Back) mirrors(method, scope string, params []byte) []protocol.Mirror {
	if method != spec.MethodToolsCall || b.tools.Empty() {
		return nil
	}
	name, _ := wire.GetString(params, "name")
	return b.tools.Mirrors(scope, name)
}

// learn takes over what a page of tools/list says of headers. It returns the page
// without the tools whose annotations are invalid, which the revision demands of
// whoever speaks to the server over HTTP, and whether there were any.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Schema Extension.
func (b *Back) learn(scope string, page []byte) ([]byte, bool) {
	if !b.overHTTP() {
		return page, false
	}
	tools, some := wire.Get(page, "tools"), false
	if bytes.Contains(tools, []byte(protocol.HeaderAnnotation)) {
		tools, some = b.withoutInvalid(tools)
	}
	b.tools.Learn(scope, tools)
	if !some {
		return page, false
	}
	return wire.AppendEdited(nil, page, wire.Edit{Name: "tools", Value: tools}), true
}

// withoutInvalid returns the tools whose annotations are valid, and whether any is
// not.
func (b *Back) withoutInvalid(tools []byte) ([]byte, bool) {
	some, valid := false, []byte{'['}
	for tool := range wire.Elements(tools) {
		if reason := AnnotationFault(wire.Get(tool, "inputSchema")); reason != "" {
			name, _ := wire.GetString(tool, "name")
			b.log.Warn("tool left out of the list", "tool", name, "reason", reason)
			some = true
			continue
		}
		valid = append(append(valid, tool...), ',')
	}
	return wire.CloseArray(valid), some
}

// AnnotationFault returns what is wrong with the header annotations of a tool's input
// schema, or "". Over HTTP such a tool must be left out of the list.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Schema Extension.
func AnnotationFault(schema []byte) string {
	w := annotations{seen: make(map[string]bool)}
	w.schema(schema, "", true)
	return w.fault
}

// annotations walks a schema for header annotations.
type annotations struct {
	seen  map[string]bool // the names so far, in lower case
	fault string          // the first
}

// schema looks at a schema and those in it. at is its place, for people; reachable
// says that properties alone lead there.
func (w *annotations) schema(schema []byte, at string, reachable bool) {
	for k, v := range wire.Members(schema) {
		switch name := k.String(); name {
		case protocol.HeaderAnnotation:
			w.annotation(schema, v, at, reachable)
		case "properties":
			w.each(v, at, reachable)
		case "patternProperties", "$defs", "definitions", "dependentSchemas":
			w.each(v, at+"/"+name, false)
		case "items", "prefixItems", "additionalItems", "contains", "unevaluatedItems",
			"additionalProperties", "propertyNames", "unevaluatedProperties",
			"allOf", "anyOf", "oneOf", "not", "if", "then", "else":
			w.schema(v, at+"/"+name, false)
			for e := range wire.Elements(v) {
				w.schema(e, at+"/"+name, false)
			}
		}
	}
}

// each looks at the schemas that an object holds by name.
func (w *annotations) each(schemas []byte, at string, reachable bool) {
	for k, v := range wire.Members(schemas) {
		w.schema(v, at+"/"+k.String(), reachable)
	}
}

func (w *annotations) annotation(schema, v []byte, at string, reachable bool) {
	if w.fault != "" {
		return
	}
	name := wire.Unquote(v)
	typ, _ := wire.GetString(schema, "type")
	switch {
	case at == "" || !reachable:
		w.fault = fmt.Sprintf("%s at %q, where no chain of properties leads", protocol.HeaderAnnotation, at)
	case !isToken(name):
		w.fault = fmt.Sprintf("%s of %q is %s, which is no name of a header", protocol.HeaderAnnotation, at, upstream.Shorten(string(v)))
	case !slices.Contains([]string{"string", "integer", "boolean"}, typ):
		w.fault = fmt.Sprintf("%s of %q, whose type is neither string nor integer nor boolean", protocol.HeaderAnnotation, at)
	case w.seen[strings.ToLower(name)]:
		w.fault = fmt.Sprintf("%s %q stands twice", protocol.HeaderAnnotation, name)
	}
	w.seen[strings.ToLower(name)] = true
}

// isToken reports whether s can be a part of a header's name.
//
// Spec: RFC 9110, 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// maxPages bounds how far a list is followed to find one tool.
const maxPages = 64

// relist asks for the tools again, up to the one that is called, and reports
// whether other headers are known to be wanted for it than before.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Client Behavior.
func (b *Back) relist(ctx context.Context, p mcp.Profile, tool string) bool {
	before := b.tools.Mirrors(p.Scope, tool)
	b.tools.Forget(p.Scope)
	params := []byte(`{}`)
	for range maxPages {
		page, err := b.request(ctx, spec.MethodToolsList, params, p)
		if err != nil {
			b.log.Info("listing tools again", "error", err)
			return false
		}
		b.learn(p.Scope, page)
		if hasTool(page, tool) {
			return !slices.EqualFunc(before, b.tools.Mirrors(p.Scope, tool), sameMirror)
		}
		cursor := wire.Get(page, "nextCursor")
		if len(cursor) == 0 || cursor[0] != '"' {
			break
		}
		params = wire.AppendEdited(nil, nil, wire.Edit{Name: "cursor", Value: cursor})
	}
	return len(before) > 0
}

func hasTool(page []byte, name string) bool {
	for tool := range wire.Elements(wire.Get(page, "tools")) {
		if n, _ := wire.GetString(tool, "name"); n == name {
			return true
		}
	}
	return false
}

func sameMirror(a, b protocol.Mirror) bool {
	return a.Header == b.Header && slices.Equal(a.Path, b.Path)
}
