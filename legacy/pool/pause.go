package pool

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A pause is the Pause of a scope.
type pause struct {
	upstream.Pause
	trial bool // an attempt is under way for all who ask
}

// allScopes is the scope of what is the server's, whoever asks: that it can't be reached,
// started or waited for.
const allScopes = ""

// pauseLocked notes that an attempt failed which began at a time.
func (p *Pool) pauseLocked(key string, begun time.Time, err error) {
	a, ok := p.pauses.Get(key)
	if !ok {
		a = &pause{}
		p.pauses.Add(key, a)
	}
	a.Note(begun, err)
	a.trial = false
}
