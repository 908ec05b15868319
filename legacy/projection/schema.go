package projection

import (
	"bytes"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A place says what stands behind a keyword of JSON Schema.
type place uint8

const (
	// open holds a schema or a list of them, whose truth values are known to all
	// drafts: they stay. Behind unknown keywords stands who knows what, perhaps
	// what a reference means.
	open  place = iota
	data        // values to compare with
	one         // a schema, or a list of them
	named       // schemas by names of the author's
)

// places says so of the keywords of drafts 7 and 2020-12. Truth values stay in
// additionalProperties and its like: they are common, draft 4 had them already, and
// model providers ask for them literally.
var places = map[string]place{
	"const": data, "enum": data, "default": data, "examples": data, "required": data,
	"type": data, "description": data, "title": data, "uniqueItems": data, "deprecated": data,
	"readOnly": data, "writeOnly": data,

	"items": one, "prefixItems": one, "contains": one, "propertyNames": one, "not": one,
	"if": one, "then": one, "else": one, "allOf": one, "anyOf": one, "oneOf": one,

	"properties": named, "patternProperties": named, "dependentSchemas": named,
	"$defs": named, "definitions": named,
}

// appendSchema copies a schema. Schemas in it that are just true or false become
// objects that mean the same. Where moved is not empty, references from the root
// are turned into ones from the root and moved.
func appendSchema(dst, schema []byte, moved string) []byte {
	if moved == "" && !bytes.Contains(schema, []byte("true")) && !bytes.Contains(schema, []byte("false")) {
		return append(dst, schema...)
	}
	c := schemaCopy{moved: moved}
	return c.schema(dst, schema)
}

type schemaCopy struct{ moved string }

// schema copies a schema that is an object.
func (c schemaCopy) schema(dst, v []byte) []byte {
	if c.moved != "" && hasID(v) {
		c.moved = ""
	}
	dst = append(dst, '{')
	for k, sub := range wire.Members(v) {
		dst = append(append(dst, k...), ':')
		switch name := plain(k); {
		case string(name) == "$ref" || string(name) == "$dynamicRef":
			dst = c.reference(dst, sub)
		default:
			dst = c.behind(dst, sub, places[string(name)])
		}
		dst = append(dst, ',')
	}
	return closed(dst, '}')
}

// behind copies what stands behind a keyword.
func (c schemaCopy) behind(dst, v []byte, at place) []byte {
	switch {
	case at == data:
		return append(dst, v...)
	case at == one && isBool(v):
		return appendBool(dst, v)
	case at == named && wire.IsObject(v):
		dst = append(dst, '{')
		for k, sub := range wire.Members(v) {
			dst = append(append(dst, k...), ':')
			dst = append(c.behind(dst, sub, one), ',')
		}
		return closed(dst, '}')
	case wire.IsObject(v):
		return c.schema(dst, v)
	case wire.IsArray(v):
		dst = append(dst, '[')
		for sub := range wire.Elements(v) {
			dst = append(c.behind(dst, sub, at), ',')
		}
		return closed(dst, ']')
	}
	return append(dst, v...)
}

// reference copies a reference. Those to anchors and to other documents stay. Some
// encoders write a slash as \/.
func (c schemaCopy) reference(dst, v []byte) []byte {
	if c.moved == "" || len(v) < 3 || v[0] != '"' || v[1] != '#' {
		return append(dst, v...)
	}
	if rest := v[2:]; rest[0] == '"' || rest[0] == '/' || bytes.HasPrefix(rest, []byte(`\/`)) {
		dst = append(append(dst, `"#`...), c.moved...)
		return append(dst, rest...)
	}
	return append(dst, v...)
}

// hasID reports whether references in a schema start from the schema itself.
func hasID(schema []byte) bool {
	id := wire.Get(schema, "$id")
	return len(id) > 2 && id[0] == '"' && id[1] != '#'
}

func isBool(v []byte) bool { return string(v) == "true" || string(v) == "false" }

// appendBool appends the object that means the same as a schema of true or false.
func appendBool(dst, v []byte) []byte {
	if v[0] == 't' {
		return append(dst, "{}"...)
	}
	return append(dst, `{"not":{}}`...)
}
