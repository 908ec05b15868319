package back

import (
	"bytes"
	"encoding/json"
)

// profileRoots are the last roots of a profile that has only one client, for all its
// sessions. Safe for concurrent use.
type profileRoots struct {
	b     *Back
	scope string
	lane  bool // the session is not the first of the profile
}

func (p profileRoots) last() json.RawMessage { return p.b.roots.get(p.scope) }

// put stores roots, and announces changed ones to the other sessions of the profile.
func (p profileRoots) put(from *roots, answer json.RawMessage) {
	if !p.b.opts.OneClient {
		return
	}
	answer = bytes.Clone(answer)
	before := p.b.roots.put(p.scope, answer)
	if before == nil || bytes.Equal(before, answer) {
		return
	}
	for _, s := range p.b.sessions(p.scope) {
		if s.roots != from && s.roots.declared {
			s.roots.announce()
		}
	}
}
