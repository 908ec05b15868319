package pin

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Change is the difference between a tool and its accepted definition.
type Change struct {
	Tool string `json:"tool"`
	// Was is the accepted definition, nil for a new tool; Is is that of the server, nil for
	// a removed tool.
	Was json.RawMessage `json:"was,omitempty"`
	Is  json.RawMessage `json:"is,omitempty"`
}

// Compare returns the differences between a server's tools and the accepted ones, ordered
// by name. A tool may have several definitions.
func (f *File) Compare(definitions [][]byte) []Change {
	var changes []Change
	there := make(map[string]bool)
	for _, d := range definitions {
		name, _ := wire.GetString(d, "name")
		there[name] = true
		m, t := formOf(d), f.Tools[name]
		same := func(c Change) bool { return c.Tool == name && Digest(c.Is) == m.said }
		if !t.accepts(&m) && !slices.ContainsFunc(changes, same) {
			changes = append(changes, Change{name, t.Definition, d})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Tools)) {
		if !there[name] {
			changes = append(changes, Change{Tool: name, Was: f.Tools[name].Definition})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Tool, b.Tool) })
	return changes
}

// Accept accepts a change. It removes a tool that the server has removed.
func (f *File) Accept(c Change) {
	if c.Is == nil {
		delete(f.Tools, c.Tool)
		return
	}
	f.accept(c.Tool, formOf(c.Is))
}

// Renew keeps the digests of what the server said of tools that were accepted as they were
// shown, so that a change of what was not shown is one, too.
func (f *File) Renew(definitions [][]byte) {
	for _, d := range definitions {
		name, _ := wire.GetString(d, "name")
		m, t := formOf(d), f.Tools[name]
		if len(t.Older) > 0 && t.accepts(&m) {
			f.accept(name, m)
		}
	}
}
