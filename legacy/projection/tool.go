package projection

import (
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/quirks"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// listTools copies a list of tools. It leaves out a tool that can't be converted, because
// strict clients refuse a list with an invalid tool.
func (p *projector) listTools(dst, v []byte) []byte {
	dst = append(dst, '[')
	for tool := range wire.Elements(v) {
		from := len(dst)
		out, reason := p.tool(dst, tool)
		if reason != "" {
			name, _ := wire.GetString(tool, "name")
			p.tools.leftOut(name, reason)
			dst = dst[:from]
			continue
		}
		dst = append(out, ',')
	}
	return closed(dst, ']')
}

// tool copies a tool in the form of legacy revisions, or returns why that is impossible.
func (p *projector) tool(dst, tool []byte) (_ []byte, reason string) {
	if !wire.IsObject(tool) {
		return dst, "it is not an object"
	}
	name, ok := wire.GetString(tool, "name")
	if !ok {
		return dst, "it has no name"
	}
	dst = append(dst, '{')
	input, wrapped := false, false
	for k, v := range wire.Members(tool) {
		switch {
		case k.Is("inputSchema"):
			if !isObjectType(wire.Get(v, "type")) {
				p.mended.Add(quirks.ToolSchema)
			}
			if dst, reason = appendInput(append(dst, `"inputSchema":`...), v); reason != "" {
				return dst, reason
			}
			dst, input = append(dst, ','), true
		case k.Is("outputSchema"):
			dst, wrapped = appendOutput(dst, v)
		case k.Is("execution") && (p.tools == nil || !p.tools.Marked): // of the tasks of 2025-11-25; see WithTaskSupport
		case wire.IsNull(v) && slices.Contains(itemsNonNull[spec.MethodToolsList], k.String()):
			p.mended.Add(quirks.NullMembers)
		default:
			dst = append(append(dst, k...), ':')
			dst = append(append(dst, v...), ',')
		}
	}
	if !input {
		p.mended.Add(quirks.ToolSchema)
		dst = append(dst, `"inputSchema":{"type":"object"},`...)
	}
	p.tools.listed(name, wrapped)
	return closed(dst, '}'), ""
}

// WithTaskSupport returns the result of tools/list, as AppendResult writes it, for a client that holds
// tasks: it may call each tool as one. None has to be: TypeScript clients refuse to call those.
//
// Spec: 2025-11-25, basic/utilities/tasks, Tool-Level Negotiation.
func WithTaskSupport(result []byte) []byte {
	tools := []byte{'['}
	for tool := range wire.Elements(wire.Get(result, "tools")) {
		tools = wire.AppendEdited(tools, tool, mcp.MayBeTask)
		tools = append(tools, ',')
	}
	return wire.AppendEdited(nil, result, wire.Edit{Name: "tools", Value: closed(tools, ']')})
}

// appendInput appends the schema of a tool's arguments, or returns why that is
// impossible: arguments are an object, and legacy clients require the type object at the
// root of the schema.
//
// Spec: 2025-11-25, server/tools, Tool.
func appendInput(dst, schema []byte) (_ []byte, reason string) {
	if wire.IsNull(schema) {
		return append(dst, `{"type":"object"}`...), ""
	}
	if !wire.IsObject(schema) {
		return dst, "its inputSchema is not an object"
	}
	typ := wire.Get(schema, "type")
	switch {
	case isObjectType(typ):
		return appendSchema(dst, schema, ""), ""
	case typ == nil || listsObject(typ):
		typed := wire.AppendEdited(nil, schema, wire.Edit{Name: "type", Value: []byte(`"object"`)})
		return appendSchema(dst, typed, ""), ""
	}
	return dst, "the root of its inputSchema is not of type object"
}

func isObjectType(typ []byte) bool {
	return string(typ) == `"object"` || wire.Unquote(typ) == "object"
}

// listsObject reports whether typ is a list of types that contains object.
func listsObject(typ []byte) bool {
	for t := range wire.Elements(typ) {
		if isObjectType(t) {
			return true
		}
	}
	return false
}

// appendOutput appends the member outputSchema, followed by a comma. If the root of the
// schema does not have the type object, it wraps the schema and reports that. It leaves
// out an invalid schema.
//
// Spec: 2026-07-28, server/tools, Output Schema.
func appendOutput(dst, schema []byte) (_ []byte, wrapped bool) {
	switch {
	case wire.IsObject(schema) && isObjectType(wire.Get(schema, "type")):
		dst = appendSchema(append(dst, `"outputSchema":`...), schema, "")
		return append(dst, ','), false
	case wire.IsObject(schema) || isBool(schema):
		dst = appendWrapped(append(dst, `"outputSchema":`...), schema)
		return append(dst, ','), true
	}
	return dst, false
}

// appendWrapped appends the schema of an object with the member result, whose schema is
// schema. It adjusts references from the root, unless schema has an identifier, to which
// references are relative.
func appendWrapped(dst, schema []byte) []byte {
	dialect := wire.Get(schema, "$schema")
	dst = append(dst, `{"type":"object","properties":{"result":`...)
	if isBool(schema) {
		dst = appendBool(dst, schema)
	} else {
		bare := wire.AppendEdited(nil, schema, wire.Edit{Name: "$schema"})
		dst = appendSchema(dst, bare, "/properties/result")
	}
	dst = append(dst, `},"required":["result"]`...)
	if len(dialect) > 0 && dialect[0] == '"' {
		dst = append(append(dst, `,"$schema":`...), dialect...)
	}
	return append(dst, '}')
}
