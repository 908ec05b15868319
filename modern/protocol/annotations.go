package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// AnnotationFault returns what is wrong with the header annotations of a tool's input
// schema, or "". Over HTTP such a tool must be left out of the list.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Schema Extension.
func AnnotationFault(schema []byte) string {
	w := annotations{seen: make(map[string]bool)}
	w.schema(schema, "", true)
	return w.fault
}

// annotations searches a schema for header annotations.
type annotations struct {
	seen  map[string]bool // the names so far, in lower case
	fault string          // the first one
}

// schema checks a schema and its subschemas. at is its place, for people; reachable says
// that only properties lead there.
func (w *annotations) schema(schema []byte, at string, reachable bool) {
	for k, v := range wire.Members(schema) {
		switch name := k.String(); name {
		case HeaderAnnotation:
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

// each checks the schemas in an object.
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
		w.fault = fmt.Sprintf("%s at %q, where no chain of properties leads", HeaderAnnotation, at)
	case !isToken(name):
		w.fault = fmt.Sprintf("%s of %q is %s, which is no name of a header", HeaderAnnotation, at, mcp.Shorten(string(v)))
	case !slices.Contains([]string{"string", "integer", "boolean"}, typ):
		w.fault = fmt.Sprintf("%s of %q, whose type is neither string nor integer nor boolean", HeaderAnnotation, at)
	case w.seen[strings.ToLower(name)]:
		w.fault = fmt.Sprintf("%s %q stands twice", HeaderAnnotation, name)
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
