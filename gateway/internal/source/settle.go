package source

import (
	"context"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

var (
	errUnasked   = errors.New("the engine of the replicas is away, and not all of them have answered whether another one serves this")
	errUnclaimed = errors.New("it is not known yet which replica serves this")
)

// settle finds out who owns a scope that this replica may not watch by what it knows, as calls of its
// principal do: it asks the engine once more or, while that is away, all other replicas.
func (s *Source) settle(ctx context.Context, sc *scope) {
	if !s.isUnowned(sc) {
		return
	}
	engine := s.group.opts.Engine
	view := engine.View()
	ctx, cancel := context.WithTimeout(ctx, view.Slowest.Takeover())
	defer cancel()
	var err error
	if view.Away.IsZero() {
		_, err = engine.Claim(ctx, sc.name) // it is wanted already
	} else if _, there := engine.Teller(); !there {
		err = engine.Inquire(ctx, sc.name)
	}
	if err != nil {
		s.group.opts.Logger.Debug("it is not known which replica serves a principal", "upstream", s.opts.Name, "claim", replicas.Key(sc.name), "err", err)
	}
	s.lookAt(sc)
}

// settleAll does so for those who follow already while the engine is away, one scope after the other,
// in the background.
func (s *Source) settleAll(scopes []*scope) {
	if !s.opts.Claims.Whole || s.group.opts.Engine.View().Away.IsZero() {
		return
	}
	var unowned []*scope
	s.mu.Lock()
	for _, sc := range scopes {
		if sc.unowned && len(sc.follows) > 0 {
			unowned = append(unowned, sc)
		}
	}
	s.mu.Unlock()
	if len(unowned) == 0 || s.settling.Swap(true) {
		return
	}
	s.group.running.Go(func() { // ends with the Group
		defer s.settling.Store(false)
		for _, sc := range unowned {
			if s.settle(s.group.live, sc); s.isUnowned(sc) {
				return // so is the next one: another look follows within a second
			}
		}
	})
}

func (s *Source) isUnowned(sc *scope) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sc.unowned
}

func (s *Source) isBarred(sc *scope) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sc.barred
}

// refuse returns the error for whoever wants to follow what this replica may not watch.
func (s *Source) refuse() error {
	why := errUnclaimed
	if !s.group.opts.Engine.View().Away.IsZero() {
		why = errUnasked
	}
	return mcp.RefuseForNow("server %q: %v; try again", s.opts.Name, why)
}
