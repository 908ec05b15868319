package mcp

import (
	"encoding/json"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// Crossing returns the part of a client's capabilities that changes what a server may do
// with it, in canonical form: roots, elicitation and its modes, sampling and its parts,
// and extensions. experimental says whether experimental capabilities belong to it, of
// which clients can invent any number. hide names what of both does not.
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

// shown returns a set of extensions without those that are hidden, or nil if nothing is
// left, or it is no set.
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

// Hiding returns the edits that take what is hidden out of the extensions and the
// experimental capabilities of a client or a server, and a set itself if that empties
// it; none if there is nothing to take out.
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
