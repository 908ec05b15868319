package member

import (
	"context"
	"time"
)

// sweepEvery is how often one replica of all deletes claims of the dead.
const sweepEvery = time.Minute

// sweep deletes claims whose holders do not live, and those of this replica
// that it does not want, if it finds the same twice: a replica that was killed
// deletes nothing, and nobody else may want its names. One of all replicas
// does it, chosen by View.Pick.
func (m *Member) sweep(ctx context.Context) error {
	now := time.Now()
	m.mu.Lock()
	due := m.state == joined && !now.Before(m.clock.sweep)
	first := m.clock.sweep.IsZero()
	if due {
		m.clock.sweep = now.Add(sweepEvery)
	}
	m.mu.Unlock()
	if !due || first || m.View().Pick("sweep").Instance != m.View().Self.Instance {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := make(map[string]Entry)
	if err := m.store.Claims(ctx, func(key string, e Entry) {
		if m.stray(key, e) {
			found[key] = e
		}
	}); err != nil {
		return err
	}
	return m.deleteStrays(ctx, found)
}

// stray reports whether nobody stands for a claim.
func (m *Member) stray(key string, e Entry) bool {
	holder := parse(e.Value).holder
	m.mu.Lock()
	defer m.mu.Unlock()
	if holder == m.self.Instance {
		return m.wishes.all[key] == nil
	}
	lives, _ := m.livesLocked(holder)
	return !lives
}

// deleteStrays deletes those that the last sweep found as well, and remembers
// the others.
func (m *Member) deleteStrays(ctx context.Context, found map[string]Entry) error {
	var again []string
	for key, e := range found {
		if m.strays[key] == e {
			again = append(again, key)
		}
	}
	m.strays = found
	return each(ctx, again, func(ctx context.Context, key string) error {
		if !m.stray(key, found[key]) {
			return nil
		}
		_, err := m.store.Swap(ctx, key, found[key], "")
		return err
	})
}
