package projection

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/mcpbridge/mcpbridge/internal/wire"
)

// maxTools is how many tools of one scope are remembered. A tool that was
// forgotten is treated like one that was never listed.
const maxTools = 4096

// Tools remembers which tools of one scope have an output schema that a legacy
// client is shown wrapped, so that their results are wrapped too. A scope is what
// may share tool lists: a profile, say. Safe for concurrent use.
type Tools struct {
	// LeftOut, unless nil, is told of every tool that [AppendResult] left out of a
	// list, and why. It is set before the first use and may be called concurrently.
	LeftOut func(tool, reason string)

	wrapped *lru.Cache[string, struct{}] // by name
}

// NewTools returns Tools that remember nothing yet.
func NewTools() *Tools {
	wrapped, err := lru.New[string, struct{}](maxTools)
	if err != nil {
		panic(err) // only a size below one is refused
	}
	return &Tools{wrapped: wrapped}
}

// listed notes a tool of a list.
func (t *Tools) listed(name string, wrapped bool) {
	switch {
	case t == nil:
	case wrapped:
		t.wrapped.Add(name, struct{}{})
	case t.wrapped.Len() > 0:
		t.wrapped.Remove(name)
	}
}

// wraps reports whether the output schema of the tool that is called with params
// was shown wrapped.
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
