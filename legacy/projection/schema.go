package projection

import (
	"bytes"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A valueKind is the kind of value of a keyword of JSON Schema.
type valueKind uint8

const (
	// open is a schema or a list of schemas in which all drafts allow booleans, so they
	// are kept. It is also the kind of unknown keywords, whose value may be the target of
	// a reference.
	open  valueKind = iota
	data            // data, not schemas
	one             // a schema, or a list of them
	named           // schemas by arbitrary names
)

// keywords has the kinds for drafts 7 and 2020-12. Booleans are kept in
// additionalProperties and the like: they are common, draft 4 already has them, and model
// providers require them literally.
var keywords = map[string]valueKind{
	"const": data, "enum": data, "default": data, "examples": data, "required": data,
	"type": data, "description": data, "title": data, "uniqueItems": data, "deprecated": data,
	"readOnly": data, "writeOnly": data,

	"items": one, "prefixItems": one, "contains": one, "propertyNames": one, "not": one,
	"if": one, "then": one, "else": one, "allOf": one, "anyOf": one, "oneOf": one,

	"properties": named, "patternProperties": named, "dependentSchemas": named,
	"$defs": named, "definitions": named,
}

// appendSchema copies a schema, and replaces the schemas true and false in it by
// equivalent objects. If moved is not empty, it inserts moved into references after the
// root.
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
			dst = c.value(dst, sub, keywords[string(name)])
		}
		dst = append(dst, ',')
	}
	return closed(dst, '}')
}

// value copies the value of a keyword.
func (c schemaCopy) value(dst, v []byte, at valueKind) []byte {
	switch {
	case at == data:
		return append(dst, v...)
	case at == one && isBool(v):
		return appendBool(dst, v)
	case at == named && wire.IsObject(v):
		dst = append(dst, '{')
		for k, sub := range wire.Members(v) {
			dst = append(append(dst, k...), ':')
			dst = append(c.value(dst, sub, one), ',')
		}
		return closed(dst, '}')
	case wire.IsObject(v):
		return c.schema(dst, v)
	case wire.IsArray(v):
		dst = append(dst, '[')
		for sub := range wire.Elements(v) {
			dst = append(c.value(dst, sub, at), ',')
		}
		return closed(dst, ']')
	}
	return append(dst, v...)
}

// reference copies a reference. It does not change references to anchors and to other
// documents. Some encoders write a slash as \/.
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

// hasID reports whether references in a schema are relative to the schema itself.
func hasID(schema []byte) bool {
	id := wire.Get(schema, "$id")
	return len(id) > 2 && id[0] == '"' && id[1] != '#'
}

func isBool(v []byte) bool { return string(v) == "true" || string(v) == "false" }

// appendBool appends the object that is equivalent to the schema true or false.
func appendBool(dst, v []byte) []byte {
	if v[0] == 't' {
		return append(dst, "{}"...)
	}
	return append(dst, `{"not":{}}`...)
}
