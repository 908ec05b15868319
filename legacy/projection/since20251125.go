package projection

import (
	"errors"
	"fmt"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// since20251125 removes elicitation by URL, choices with titles, multiple choices,
// defaults, and sampling with tools or with several blocks in a message.
//
// Spec: 2025-11-25, changelog.
var since20251125 = boundary{
	since: spec.Rev20251125,
	question: func(caps []byte, q mcp.InputRequest) (mcp.InputRequest, error) {
		var err error
		switch q.Method {
		case spec.MethodElicit:
			q.Params, err = plainForm(caps, q.Params)
		case spec.MethodSample:
			q.Params, err = plainSampling(caps, q.Params)
		}
		return q, err
	},
}

// errURL is the error for elicitation by URL.
var errURL = errors.New("it sends the person to a URL, which clients do since revision 2025-11-25")

// plainForm returns the params of an elicitation with a form that every client with forms
// can show. Elicitation by URL has only one form.
//
// Spec: 2025-06-18, client/elicitation, Requested Schema.
func plainForm(caps, params []byte) ([]byte, error) {
	if mode, _ := wire.GetString(params, "mode"); mode == "url" {
		if declares(wire.Get(caps, "elicitation"), "url") {
			return params, nil
		}
		return params, errURL
	}
	schema := wire.Get(params, "requestedSchema")
	fields := []byte{'{'}
	for k, field := range wire.Members(wire.Get(schema, "properties")) {
		plain, err := plainField(k.String(), field)
		if err != nil {
			return params, err
		}
		fields = append(append(fields, k...), ':')
		fields = append(append(fields, plain...), ',')
	}
	if len(fields) == 1 {
		return params, nil
	}
	schema = wire.AppendEdited(nil, schema, wire.Edit{Name: "properties", Value: closed(fields, '}')})
	return wire.AppendEdited(nil, params, wire.Edit{Name: "requestedSchema", Value: schema}), nil
}

// plainField returns a field of a form: with a default only for a boolean, and with
// titles of choices in enumNames.
func plainField(name string, field []byte) ([]byte, error) {
	typ, _ := wire.GetString(field, "type")
	if typ == "array" {
		return nil, fmt.Errorf("its form lets the person choose several values of %q, which clients know since revision 2025-11-25", name)
	}
	var edits []wire.Edit
	if typ != "boolean" {
		edits = append(edits, wire.Edit{Name: "default"})
	}
	if choices := wire.Get(field, "oneOf"); wire.IsArray(choices) {
		edits = append(edits, namedChoices(choices)...)
	}
	return wire.AppendEdited(nil, field, edits...), nil
}

// namedChoices returns the edits that replace choices with titles by enum and enumNames.
func namedChoices(choices []byte) []wire.Edit {
	values, names := []byte{'['}, []byte{'['}
	for c := range wire.Elements(choices) {
		value := wire.Get(c, "const")
		if value == nil {
			continue
		}
		name := wire.Get(c, "title")
		if name == nil || wire.IsNull(name) {
			name = value
		}
		values = append(append(values, value...), ',')
		names = append(append(names, name...), ',')
	}
	return []wire.Edit{
		{Name: "oneOf"},
		{Name: "enum", Value: closed(values, ']')},
		{Name: "enumNames", Value: closed(names, ']')},
	}
}

// plainSampling returns the params of a sampling request whose messages have one block of
// content each. A client that declared tools supports everything that was added with
// them.
//
// Spec: 2025-06-18, client/sampling, Message Content.
func plainSampling(caps, params []byte) ([]byte, error) {
	if declares(wire.Get(caps, "sampling"), "tools") {
		return params, nil
	}
	for _, name := range []string{"tools", "toolChoice"} {
		if wire.Get(params, name) != nil {
			return params, errors.New("it lets the model call tools, which clients do since revision 2025-11-25")
		}
	}
	messages := wire.Get(params, "messages")
	if typ, ok := hasBlock(messages, "tool_use", "tool_result"); ok {
		return params, fmt.Errorf("its messages have content of type %q, which clients know since revision 2025-11-25", typ)
	}
	if !wire.IsArray(messages) {
		return params, nil
	}
	return wire.AppendEdited(nil, params, wire.Edit{Name: "messages", Value: singleBlocks(messages)}), nil
}

// singleBlocks returns messages with one block of content each. It splits a message with
// several blocks into messages of the same role.
func singleBlocks(messages []byte) []byte {
	out := []byte{'['}
	for m := range wire.Elements(messages) {
		content := wire.Get(m, "content")
		if !wire.IsArray(content) {
			out = append(append(out, m...), ',')
			continue
		}
		for block := range wire.Elements(content) {
			out = append(wire.AppendEdited(out, m, wire.Edit{Name: "content", Value: block}), ',')
		}
	}
	return closed(out, ']')
}

func declares(caps []byte, name string) bool {
	v := wire.Get(caps, name)
	return v != nil && !wire.IsNull(v)
}
