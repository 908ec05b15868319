package client

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/config/key"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// An argumentCheck compares the names of arguments with the schema of a tool, as far as a person
// may have mistaken them. Whether their values fit is for the server to say.
type argumentCheck struct {
	tool          string
	schema, given []byte
	free          []string // names of properties that are not given
}

// checkArguments returns an error if required arguments are missing, or if the schema refuses one
// that is given. What looks mistaken, and is allowed, is in notes.
func checkArguments(tool string, schema, given []byte) (notes []string, err error) {
	c := argumentCheck{tool: tool, schema: schema, given: given}
	for k := range wire.Members(wire.Get(schema, "properties")) {
		if wire.Get(given, k.String()) == nil {
			c.free = append(c.free, k.String())
		}
	}
	unknown, meant := c.unknown()
	missing, lacks := c.missing(meant)
	if lacks || c.closed() && len(unknown) > 0 { // the one may be why the other is missing
		return nil, wrongWords("%s", strings.Join(append(unknown, missing...), "\n"))
	}
	return unknown, nil
}

// unknown names the arguments that the schema does not have, and the properties that were meant.
func (c *argumentCheck) unknown() (lines []string, meant map[string]bool) {
	meant = make(map[string]bool)
	if c.composed() {
		return nil, meant
	}
	for k := range wire.Members(c.given) {
		name := k.String()
		if wire.Get(wire.Get(c.schema, "properties"), name) != nil || c.matches(name) {
			continue
		}
		line := fmt.Sprintf("%s: unknown argument %q; ", c.tool, name)
		near, similar := key.Nearest(name, c.free)
		switch {
		case similar:
			meant[near] = true
			line += fmt.Sprintf("did you mean %q?", near)
		case c.open():
			continue // it is for such
		default:
			line += c.known()
		}
		lines = append(lines, line)
	}
	return lines, meant
}

// missing names the required arguments that are not given, but for those that were meant by
// another name. lacks reports whether there are any, those included.
func (c *argumentCheck) missing(meant map[string]bool) (lines []string, lacks bool) {
	for r := range wire.Elements(wire.Get(c.schema, "required")) {
		name := wire.Unquote(r)
		if wire.Get(c.given, name) != nil {
			continue
		}
		if lacks = true; meant[name] {
			continue
		}
		typ := propertyType(c.schema, name)
		how := name + "=VALUE"
		if strings.Contains(typ, "array") || strings.Contains(typ, "object") {
			how = name + ":=JSON"
		}
		lines = append(lines, fmt.Sprintf("%s: the argument %q is missing, which the tool requires (%s); write %s", c.tool, name, typ, how))
	}
	return lines, lacks
}

// known says which arguments the tool has.
func (c *argumentCheck) known() string {
	var names []string
	for k := range wire.Members(wire.Get(c.schema, "properties")) {
		names = append(names, k.String())
	}
	if len(names) == 0 {
		return "the tool has no arguments"
	}
	return "known here: " + strings.Join(names, ", ")
}

// closed reports whether the schema refuses other properties than those that it has.
func (c *argumentCheck) closed() bool {
	return string(wire.Get(c.schema, "additionalProperties")) == "false" || string(wire.Get(c.schema, "unevaluatedProperties")) == "false"
}

// open reports whether the schema says that there are other properties.
func (c *argumentCheck) open() bool {
	return wire.Get(c.schema, "additionalProperties") != nil && !c.closed()
}

// composed reports whether properties may stand in other places of the schema.
func (c *argumentCheck) composed() bool {
	for _, word := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "propertyNames"} {
		if wire.Get(c.schema, word) != nil {
			return true
		}
	}
	return !wire.IsObject(c.schema)
}

// matches reports whether a pattern of the schema is for the property.
func (c *argumentCheck) matches(name string) bool {
	for k := range wire.Members(wire.Get(c.schema, "patternProperties")) {
		if pattern, err := regexp.Compile(k.String()); err != nil || pattern.MatchString(name) { // ECMA's are not all Go's
			return true
		}
	}
	return false
}
