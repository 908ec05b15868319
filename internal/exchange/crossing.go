package exchange

import (
	"encoding/json"

	"github.com/mcpbridge/mcpbridge/internal/spec"
	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Crossing returns the part of a client's capabilities that changes what a server may do
// with it, in canonical form: roots, elicitation and its modes, sampling and its parts,
// and extensions. experimental says whether experimental capabilities belong to it, of
// which clients can invent any number.
func Crossing(capabilities []byte, experimental bool) json.RawMessage {
	kept := []wire.Edit{
		{Name: "roots", Value: group(capabilities, "roots")},
		{Name: "elicitation", Value: group(capabilities, "elicitation", "form", "url")},
		{Name: "sampling", Value: group(capabilities, "sampling", "context", "tools")},
		{Name: "extensions", Value: extensions(capabilities, "extensions")},
	}
	if experimental {
		kept = append(kept, wire.Edit{Name: "experimental", Value: extensions(capabilities, "experimental")})
	}
	return wire.AppendCanonical(nil, wire.AppendEdited(nil, nil, kept...))
}

// group returns an object with those of the parts that a capability declares, or nil if
// it is not declared itself.
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

// extensions returns a set of extensions without the one that does not cross, or nil if
// nothing is left.
func extensions(capabilities []byte, name string) []byte {
	set := wire.Get(capabilities, name)
	for k := range wire.Members(set) {
		if !k.Is(spec.ExtensionTasks) {
			return wire.AppendEdited(nil, set, wire.Edit{Name: spec.ExtensionTasks})
		}
	}
	return nil
}
