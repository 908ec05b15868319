package source

import (
	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
)

// Changes returns what the server's back reports its changes to.
func (s *Source) Changes() mcp.Changes { return &watched{s.opts.Changes, s, s.own} }

// watched has a target unsubscribe from what another one watches by now, though it has
// subscribers.
type watched struct {
	mcp.Changes
	s  *Source
	on *target
}

// Wanted implements [mcp.Changes].
func (w *watched) Wanted(t fanout.Topic) bool {
	switch {
	case w.on == w.s.own && w.s.opts.WantedByPeers(t):
		return true
	case !w.s.watches(t.Scope, w.on):
		return false
	}
	return w.s.opts.Local.Wanted(t)
}

// watches reports whether a target has something to watch for a scope. Scopes that are not
// shared are the server's back's.
func (s *Source) watches(scope string, t *target) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc := s.scopes[scope]
	return sc == nil || sc.uses[t] > 0
}
