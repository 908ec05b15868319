package pin

import (
	"cmp"
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// A Change is the difference between a tool and its accepted definition.
type Change struct {
	Tool string
	// Was is the accepted definition, nil for a new tool; Is is that of the server, nil for
	// a removed tool.
	Was, Is []byte
}

// Compare returns the differences between a server's tools and the accepted ones, ordered
// by name.
func (f *File) Compare(definitions [][]byte) []Change {
	var changes []Change
	there := make(map[string]bool)
	for _, d := range definitions {
		name, _ := wire.GetString(d, "name")
		there[name] = true
		if t := f.Tools[name]; !slices.Contains(t.Digests, Digest(d)) {
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
	f.accept(c.Tool, Digest(c.Is), c.Is)
}
