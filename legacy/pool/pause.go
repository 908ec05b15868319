package pool

import (
	"time"

	"github.com/mcpbridge/mcpbridge/internal/upstream"
)

// A pause is the Pause of a scope or of the server.
type pause struct {
	upstream.Pause
	trial bool // an attempt is in progress, for all requests
}

// allScopes is the key of errors that concern the whole server: it can't be reached or
// started, or does not respond.
const allScopes = ""

// endTrialLocked records that an attempt has ended, whatever came of it.
func (p *Pool) endTrialLocked() {
	if a, ok := p.pauses.Peek(allScopes); ok {
		a.trial = false
	}
}

// pauseLocked records that an attempt, which began at a time, has failed.
func (p *Pool) pauseLocked(key string, begun time.Time, err error) {
	if p.opts.Eager {
		return
	}
	a, ok := p.pauses.Get(key)
	if !ok {
		a = &pause{}
		p.pauses.Add(key, a)
	}
	a.Note(begun, err)
}
