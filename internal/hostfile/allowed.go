package hostfile

import (
	"slices"

	"github.com/tailscale/hujson"
)

// keptOut returns whether a setting of the host keeps it from starting a server.
func (g *Group) keptOut(root *hujson.Value) func(name string) bool {
	if g.Host != gemini {
		return func(string) bool { return false }
	}
	allowed, excluded := wordsOf(mcpList(root, "allowed")), wordsOf(mcpList(root, "excluded"))
	return func(name string) bool {
		return slices.Contains(excluded, name) || allowed != nil && !slices.Contains(allowed, name)
	}
}

// mcpList returns a list of Gemini CLI's settings for all servers, or nil.
func mcpList(root *hujson.Value, name string) *hujson.Array {
	for _, m := range members(root) {
		if nameOf(m) != "mcp" {
			continue
		}
		for _, m := range members(&m.Value) {
			if list, ok := m.Value.Value.(*hujson.Array); ok && nameOf(m) == name {
				return list
			}
		}
	}
	return nil
}

func wordsOf(list *hujson.Array) (words []string) {
	for i := 0; list != nil && i < len(list.Elements); i++ {
		words = append(words, textOf(&list.Elements[i]))
	}
	return words
}

// disallow takes the one entry out of the list of servers that Gemini CLI may start, unless it was
// there before.
func disallow(data, before []byte, name string) []byte {
	v, err := parse(data)
	w, was := parse(before)
	if err != nil || was != nil || slices.Contains(wordsOf(mcpList(&w, "allowed")), name) {
		return data
	}
	list := mcpList(&v, "allowed")
	at := slices.Index(wordsOf(list), name)
	if at < 1 {
		return data
	}
	return slices.Concat(data[:list.Elements[at-1].EndOffset], data[list.Elements[at].EndOffset:])
}
