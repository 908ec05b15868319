package member

import (
	"context"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/wake"
)

const (
	// sweepEvery is how often one replica of all deletes claims of the dead.
	sweepEvery = time.Minute
	// sweepTimeout bounds that: a broker that others use, too, may have millions of keys.
	sweepTimeout = 30 * time.Second
	// maxStrays bounds how many claims of the dead a sweep finds, besides those of the last one.
	maxStrays = 10_000
)

// A sweeper deletes claims of the dead for a Member, beside the loop, whose heartbeats do
// not wait for it.
type sweeper struct {
	m       *Member
	running sync.WaitGroup
	strays  map[string]Entry // what the last sweep found; of the one goroutine alone
}

// start sweeps now and then, until ctx ends.
func (s *sweeper) start(ctx context.Context) {
	s.running.Go(func() { s.run(ctx) })
}

func (s *sweeper) run(ctx context.Context) {
	for wake.Wait(ctx, sweepEvery) == nil {
		if view := s.m.View(); s.m.usable() != nil || view.Pick("sweep").Instance != view.Self.Instance {
			continue
		}
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.m.seen.Failed()
			s.m.logger.Warn("what replicas that are gone have claimed was not deleted; trying again", "in", sweepEvery, "error", err)
		}
	}
}

// sweep deletes claims whose holders do not live, and those of this replica
// that it does not want, if it finds the same twice: a replica that was killed
// deletes nothing, and nobody else may want its names. One of all replicas
// does it, chosen by View.Pick.
func (s *sweeper) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	found := make(map[string]Entry)
	if err := s.m.store.Claims(ctx, func(key string, e Entry) {
		if (len(found) < maxStrays || s.strays[key] == e) && s.m.stray(key, e) {
			found[key] = e
		}
	}); err != nil {
		return err
	}
	return s.deleteStrays(ctx, found)
}

// deleteStrays deletes those that the last sweep found as well, and remembers
// the others.
func (s *sweeper) deleteStrays(ctx context.Context, found map[string]Entry) error {
	var again []string
	for key, e := range found {
		if s.strays[key] == e {
			again = append(again, key)
		}
	}
	s.strays = found
	return each(ctx, again, func(ctx context.Context, key string) error {
		if !s.m.stray(key, found[key]) {
			return nil
		}
		_, err := s.m.store.Swap(ctx, key, found[key], "")
		return err
	})
}
