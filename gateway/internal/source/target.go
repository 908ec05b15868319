package source

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/fanout"
	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// closeTimeout bounds the end of a back that watches at another replica.
const closeTimeout = 5 * time.Second

// A target watches for scopes: the server's back, or one that watches at another replica.
type target struct {
	watch mcp.Source
	to    replicas.Replica // zero for the server's back
	back  mcp.Back         // nil for the server's back, which is somebody else's
	uses  int              // by scopes, see scope.uses; guarded by Source.mu
}

// peerLocked returns the target for another replica.
func (s *Source) peerLocked(to replicas.Replica) *target {
	if t := s.peers[to.Instance]; t != nil {
		return t
	}
	t := &target{to: to}
	back, err := s.opts.Open(s.peerOf(t))
	if err != nil {
		s.group.opts.Logger.Warn("watching at another replica", "upstream", s.opts.Name, "replica", to.Instance, "err", err)
		return s.own
	}
	t.watch, t.back = back, back
	s.peers[to.Instance] = t
	return t
}

// takeLocked uses a target for a scope.
func (s *Source) takeLocked(sc *scope, t *target) {
	sc.uses[t]++
	t.uses++
}

// dropLocked gives a target back.
func (s *Source) dropLocked(sc *scope, t *target) {
	if t == nil {
		return
	}
	if sc.uses[t]--; sc.uses[t] == 0 {
		delete(sc.uses, t)
	}
	t.uses--
	s.dropUnusedLocked(t)
}

// dropUnusedLocked closes the back of a target that is not used any more.
func (s *Source) dropUnusedLocked(t *target) {
	if t.uses > 0 || t.back == nil || s.peers[t.to.Instance] != t {
		return
	}
	delete(s.peers, t.to.Instance)
	s.closeSoon(t)
}

// closeSoon closes the back of a target that nobody uses any more.
func (s *Source) closeSoon(t *target) {
	s.group.running.Go(func() { // ends within closeTimeout
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = t.back.Close(ctx) // nobody uses it
	})
}

// topicsOf returns the distinct topics of follows.
func topicsOf(follows []*follow) []fanout.Topic {
	var out []fanout.Topic
	seen := make(map[fanout.Topic]bool)
	for _, f := range follows {
		for _, t := range f.topics {
			if !seen[t] {
				seen[t] = true
				out = append(out, t)
			}
		}
	}
	return out
}
