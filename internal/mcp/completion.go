package mcp

import "github.com/mcpbridge/mcpbridge/internal/wire"

// maxCompletions is the maximum of values of a completion.
//
// Spec: 2026-07-28 and 2025-11-25, server/utilities/completion.
const maxCompletions = 100

// CutCompletion returns completion with no more values than the specification allows. If
// it has more, CutCompletion returns a shortened copy with hasMore.
func CutCompletion(completion []byte) []byte {
	values := wire.Get(completion, "values")
	n := 0
	for range wire.Elements(values) {
		n++
	}
	if n <= maxCompletions {
		return completion
	}
	cut, left := []byte{'['}, maxCompletions
	for value := range wire.Elements(values) {
		if left--; left < 0 {
			break
		}
		cut = append(append(cut, value...), ',')
	}
	return wire.AppendEdited(nil, completion,
		wire.Edit{Name: "values", Value: wire.CloseArray(cut)},
		wire.Edit{Name: "hasMore", Value: []byte("true")})
}
