package projection

import (
	lru "github.com/hashicorp/golang-lru/v2"
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

	wrapped *lru.Cache[string, bool]
}

// NewTools returns Tools that remember nothing yet.
func NewTools() *Tools {
	wrapped, err := lru.New[string, bool](maxTools)
	if err != nil {
		panic(err) // only a size below one is refused
	}
	return &Tools{wrapped: wrapped}
}
