package projection

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxTools is the maximum of tools kept per scope. A tool that was evicted is treated
// like one that was never listed.
const maxTools = 4096

// Tools keeps which tools of one scope have a wrapped output schema, so that their
// results are wrapped, too. Clients of one scope, for example a profile, share tool
// lists. Safe for concurrent use.
type Tools struct {
	// LeftOut, if not nil, is called for every tool that [AppendResult] leaves out of a
	// list, with the reason. Set it before the first use. It may be called concurrently.
	LeftOut func(tool, reason string)
	// Marked keeps execution of the tools of a list, since whoever answers has written it for a client
	// that holds tasks. Set it before the first use.
	Marked bool

	wrapped *lru.Cache[string, struct{}] // by name
}

// NewTools returns empty Tools.
func NewTools() *Tools {
	wrapped, err := lru.New[string, struct{}](maxTools)
	if err != nil {
		panic(err) // only a size below one is refused
	}
	return &Tools{wrapped: wrapped}
}

// listed records a tool of a list.
func (t *Tools) listed(name string, wrapped bool) {
	switch {
	case t == nil:
	case wrapped:
		t.wrapped.Add(name, struct{}{})
	case t.wrapped.Len() > 0:
		t.wrapped.Remove(name)
	}
}

// wraps reports whether the output schema of the tool called with params was wrapped.
func (t *Tools) wraps(params []byte) bool {
	if t == nil || t.wrapped.Len() == 0 {
		return false
	}
	name, ok := wire.GetString(params, "name")
	if !ok {
		return false
	}
	_, ok = t.wrapped.Get(name)
	return ok
}

func (t *Tools) leftOut(name, reason string) {
	if t != nil && t.LeftOut != nil {
		t.LeftOut(name, reason)
	}
}
