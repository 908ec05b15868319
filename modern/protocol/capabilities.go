package protocol

import "github.com/mcpbridge/mcpbridge/internal/wire"

// WithoutListChanged returns the edit that removes listChanged of roots from a client's
// capabilities, which modern roots don't have; nil if there is nothing to remove.
//
// Spec: 2026-07-28, schema, ClientCapabilities.
func WithoutListChanged(capabilities []byte) []wire.Edit {
	roots := wire.Get(capabilities, "roots")
	if wire.Get(roots, "listChanged") == nil {
		return nil
	}
	return []wire.Edit{{Name: "roots", Value: wire.AppendEdited(nil, roots, wire.Edit{Name: "listChanged"})}}
}
