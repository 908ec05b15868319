package mcp

import (
	"encoding/json"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Crossing returns, in canonical form, the part of a client's capabilities that is
// forwarded to servers: roots, elicitation and its modes, sampling and its parts, and
// extensions. experimental says whether experimental capabilities are forwarded, which
// clients may choose freely. hide has the names of extensions and experimental
// capabilities that are not forwarded.
func Crossing(capabilities []byte, experimental bool, hide []string) json.RawMessage {
	kept := []wire.Edit{
		{Name: "roots", Value: group(capabilities, "roots")},
		{Name: "elicitation", Value: group(capabilities, "elicitation", "form", "url")},
		{Name: "sampling", Value: group(capabilities, "sampling", "context", "tools")},
		{Name: "extensions", Value: shown(wire.Get(capabilities, "extensions"), hide)},
	}
	if experimental {
		kept = append(kept, wire.Edit{Name: "experimental", Value: shown(wire.Get(capabilities, "experimental"), hide)})
	}
	return wire.AppendCanonical(nil, wire.AppendEdited(nil, nil, kept...))
}

// group returns an object with the declared ones of parts, or nil if the capability
// itself is not declared.
func group(capabilities []byte, name string, parts ...string) []byte {
	given := wire.Get(capabilities, name)
	if given == nil || wire.IsNull(given) {
		return nil
	}
	var kept []wire.Edit
	for _, part := range parts {
		if Declares(given, part) {
			kept = append(kept, wire.Edit{Name: part, Value: []byte("{}")})
		}
	}
	return wire.AppendEdited(nil, nil, kept...)
}

// shown returns a set of extensions without the hidden ones, or nil if none is left or
// set is not an object.
func shown(set []byte, hide []string) []byte {
	var edits []wire.Edit
	left := 0
	for k := range wire.Members(set) {
		if name := k.String(); slices.Contains(hide, name) {
			edits = append(edits, wire.Edit{Name: name})
		} else {
			left++
		}
	}
	switch {
	case left == 0:
		return nil
	case len(edits) == 0:
		return set
	}
	return wire.AppendEdited(nil, set, edits...)
}

// Hiding returns the edits that remove hidden extensions and experimental capabilities
// from the capabilities of a client or a server. They also remove a set that becomes
// empty.
func Hiding(capabilities []byte, hide []string) []wire.Edit {
	var edits []wire.Edit
	for _, name := range []string{"experimental", "extensions"} {
		set := wire.Get(capabilities, name)
		for k := range wire.Members(set) {
			if slices.Contains(hide, k.String()) {
				edits = append(edits, wire.Edit{Name: name, Value: shown(set, hide)})
				break
			}
		}
	}
	return edits
}

// WithoutTasks returns capabilities, an object or nil, with some edits, without the
// extensions that hide names, and without the tasks of 2025-11-25, which cross between the
// eras in neither direction.
func WithoutTasks(capabilities []byte, hide []string, edits ...wire.Edit) []byte {
	edits = append(edits, wire.Edit{Name: "tasks"})
	return wire.AppendEdited(nil, capabilities, append(edits, Hiding(capabilities, hide)...)...)
}

// WithTasks returns capabilities, an object or nil, with the tasks extension.
func WithTasks(capabilities []byte) []byte {
	extensions := wire.AppendEdited(nil, wire.Get(capabilities, "extensions"), wire.Edit{Name: spec.ExtensionTasks, Value: []byte("{}")})
	return wire.AppendEdited(nil, capabilities, wire.Edit{Name: "extensions", Value: extensions})
}
