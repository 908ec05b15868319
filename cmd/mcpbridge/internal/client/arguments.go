package client

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
	"github.com/mcpbridge/mcpbridge/modern/protocol"
)

// readArguments converts key=value and key:=JSON words to a tool's arguments, an object.
func readArguments(tool string, schema []byte, words []string) ([]byte, error) {
	var edits []wire.Edit
	for _, word := range words {
		key, text, ok := strings.Cut(word, "=")
		key, forced := strings.CutSuffix(key, ":")
		if !ok || key == "" {
			return nil, wrongWords("%q is not an argument; write key=value, or key:=JSON", word)
		}
		value, err := readValue(propertyType(schema, key), text, forced)
		if err != nil {
			return nil, wrongWords("%s: %s: %v", tool, key, err)
		}
		for _, e := range edits {
			if e.Name == key {
				return nil, wrongWords("%s: %s is given twice; remove one of them", tool, key)
			}
		}
		edits = append(edits, wire.Edit{Name: key, Value: value})
	}
	return wire.AppendEdited(nil, nil, edits...), nil
}

// readValue reads text as JSON if that is forced, or if the type requires it, and otherwise
// as a string.
func readValue(typ, text string, forced bool) ([]byte, error) {
	if !forced && typ == "string" {
		return wire.Quote(text), nil
	}
	if err := wire.Check([]byte(text), 0); err != nil {
		if forced {
			return nil, fmt.Errorf("%q is not JSON; quote it as JSON, or write key=value for a text", text)
		}
		return nil, fmt.Errorf("the tool wants %s, and %q is none; write it as JSON", typ, text)
	}
	return []byte(strings.TrimSpace(text)), nil
}

// propertyType returns the JSON type of a property in the schema, and "string" if strings
// are allowed or there is no type.
func propertyType(schema []byte, name string) string {
	typ := wire.Get(wire.Get(wire.Get(schema, "properties"), name), "type")
	if !wire.IsArray(typ) {
		if s := wire.Unquote(typ); s != "" {
			return s
		}
		return "string"
	}
	var words []string
	for t := range wire.Elements(typ) {
		if words = append(words, wire.Unquote(t)); words[len(words)-1] == "string" {
			return "string"
		}
	}
	return strings.Join(words, " or ")
}

// arguments describes a tool's arguments, one line each.
func arguments(tool []byte) []string {
	schema := wire.Get(tool, "inputSchema")
	required := make(map[string]bool)
	for r := range wire.Elements(wire.Get(schema, "required")) {
		required[wire.Unquote(r)] = true
	}
	var lines []string
	for k, p := range wire.Members(wire.Get(schema, "properties")) {
		line := fmt.Sprintf("%s: %s", k, propertyType(schema, k.String()))
		if !required[k.String()] {
			line += ", optional"
		}
		if text, ok := wire.GetString(p, "description"); ok {
			line += ". " + text
		}
		lines = append(lines, line)
	}
	return lines
}

// paramHeaders returns the headers that mirror arguments which the schema marks
// with x-mcp-header.
//
// Spec: 2026-07-28, basic/transports/streamable-http, Custom Headers from Tool
// Parameters.
func paramHeaders(schema, args []byte) http.Header {
	h := make(http.Header)
	mirror(h, schema, args)
	return h
}

func mirror(h http.Header, schema, args []byte) {
	for k, p := range wire.Members(wire.Get(schema, "properties")) {
		value := wire.Get(args, k.String())
		if value == nil || wire.IsNull(value) {
			continue
		}
		if wire.IsObject(value) {
			mirror(h, p, value)
			continue
		}
		if name, ok := wire.GetString(p, "x-mcp-header"); ok && name != "" {
			h.Set(spec.HeaderParamPrefix+name, spec.EncodeHeader(protocol.PlainText(value)))
		}
	}
}
