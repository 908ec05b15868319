package access

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// maxHidden bounds the names of one list that are known to be hidden.
const maxHidden = 256

// hidden has the own names of what the configuration has hidden in lists of the server: of
// messages it keeps nothing else. Its zero value is empty, and it is safe for concurrent use.
type hidden struct {
	// mu guards names. It is held for map work only.
	mu    sync.Mutex
	names map[string]map[string]struct{} // by method
}

func (h *hidden) add(method, own string) {
	own = mcp.Shorten(own)
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.names[method]
	if _, has := of[own]; has || len(of) == maxHidden {
		return
	}
	if of == nil {
		if of = make(map[string]struct{}); h.names == nil {
			h.names = make(map[string]map[string]struct{})
		}
		h.names[strings.Clone(method)] = of
	}
	of[own] = struct{}{}
}

// Hidden returns the own names of what clients do not see, because the configuration hides it, of
// lists of a method that the server has given since it is served: at most 256, sorted.
func (c *Control) Hidden(method string) []string {
	if c == nil {
		return nil
	}
	c.hidden.mu.Lock()
	defer c.hidden.mu.Unlock()
	return slices.Sorted(maps.Keys(c.hidden.names[method]))
}
