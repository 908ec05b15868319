package member

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// tries bounds how often one claim is raced for.
const tries = 4

var errContended = errors.New("other replicas keep changing the claim")

// Holder returns who holds a name, by what is known here.
func (m *Member) Holder(name string) (replicas.Claim, bool) {
	key := replicas.Key(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.wishes.all[key]
	if w == nil {
		return replicas.Claim{}, false
	}
	holder, lives := m.replicaLocked(w.claim.holder)
	return replicas.Claim{Holder: holder, Epoch: w.claim.epoch}, lives
}

// Claims implements [replicas.Lister].
func (m *Member) Claims() []replicas.Named {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]replicas.Named, 0, len(m.wishes.all))
	for _, key := range slices.Sorted(maps.Keys(m.wishes.all)) {
		w := m.wishes.all[key]
		holder, _ := m.replicaLocked(w.claim.holder)
		all = append(all, replicas.Named{Key: key, Claim: replicas.Claim{Holder: holder, Epoch: w.claim.epoch}})
	}
	return all
}

// Claim returns who holds name, and claims it if nobody living does.
func (m *Member) Claim(ctx context.Context, name string) (replicas.Claim, error) {
	return m.claimNow(ctx, replicas.Key(name), claim{})
}

// Seize takes name from a holder that can't be reached.
func (m *Member) Seize(ctx context.Context, name string, from replicas.Claim) (replicas.Claim, error) {
	return m.claimNow(ctx, replicas.Key(name), claim{holder: from.Holder.Instance, epoch: from.Epoch})
}

// Yield gives name to another replica, if this one or nobody living holds it.
func (m *Member) Yield(ctx context.Context, name string, to replicas.Replica) (c replicas.Claim, err error) {
	key := replicas.Key(name)
	err = m.ask(ctx, func(ctx context.Context) error {
		got, err := m.give(ctx, key, to.Instance)
		m.mu.Lock()
		defer m.mu.Unlock()
		c.Holder, _ = m.replicaLocked(got.holder)
		c.Epoch = got.epoch
		return err
	})
	return c, err
}

func (m *Member) give(ctx context.Context, key, to string) (claim, error) {
	for range tries {
		e, err := m.store.Load(ctx, key)
		if err != nil {
			return claim{}, err
		}
		c := parse(e.Value)
		m.mu.Lock()
		lives, _ := m.livesLocked(c.holder)
		next := claim{holder: to, epoch: max(c.epoch, m.wishes.highest(key)) + 1}
		self := m.self.Instance
		m.mu.Unlock()
		if c.holder != self && lives {
			return m.note(key, c), nil
		}
		if done, err := m.store.Swap(ctx, key, e, next.value()); err != nil || done {
			return m.note(key, next), err
		}
	}
	return claim{}, errContended
}

// Release ends the wish for name.
func (m *Member) Release(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wishes.release(replicas.Key(name), m.self.Instance) {
		m.kick.Send()
	}
}

// claimNow wants key, and returns who holds it.
func (m *Member) claimNow(ctx context.Context, key string, from claim) (c replicas.Claim, err error) {
	m.mu.Lock()
	m.wishes.want(key)
	m.mu.Unlock()
	err = m.ask(ctx, func(ctx context.Context) error {
		got, err := m.settle(ctx, key, from)
		if err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		c.Holder, _ = m.replicaLocked(got.holder)
		c.Epoch = got.epoch
		return nil
	})
	return c, err
}

// settle returns who holds key, after this replica has claimed it if nobody
// living does, or if it is from's still.
func (m *Member) settle(ctx context.Context, key string, from claim) (claim, error) {
	for range tries {
		e, err := m.store.Load(ctx, key)
		if err != nil {
			return claim{}, err
		}
		c := parse(e.Value)
		if c != from || c.holder == "" {
			if keeps, err := m.look(ctx, c.holder); err != nil || keeps {
				return m.note(key, c), err
			}
		}
		next, err := m.successor(key, c)
		if err != nil {
			return claim{}, err
		}
		if done, err := m.store.Swap(ctx, key, e, next.value()); err != nil || done {
			if done {
				m.wishes.taken(key, c, next)
			}
			return m.note(key, next), err
		}
	}
	return claim{}, errContended
}

// look reports whether the holder keeps what it has: it lives, and is not about to end. One that
// nothing is known of may have joined a moment before: then the members are read.
func (m *Member) look(ctx context.Context, holder string) (bool, error) {
	m.mu.Lock()
	lives, known := m.livesLocked(holder)
	keeps := lives && !m.partingLocked(holder)
	m.mu.Unlock()
	if known || holder == "" {
		return keeps, nil
	}
	snap, err := m.store.Poll(ctx, nil, false)
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, kept := snap.Members[holder]; kept {
		m.news = m.peers.record(time.Now(), holder, data) || m.news
		m.publishLocked()
	}
	lives, _ = m.livesLocked(holder)
	return lives && !m.partingLocked(holder), nil
}

// successor is the claim by which this replica follows c.
func (m *Member) successor(key string, c claim) (claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != joined {
		return claim{}, replicas.ErrClosed
	}
	return claim{holder: m.self.Instance, epoch: max(c.epoch, m.wishes.highest(key)) + 1}, nil
}

// note remembers who holds key, if it is wanted still. What this replica took while it left is
// given back.
func (m *Member) note(key string, c claim) claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	late := m.state == left && c.holder == m.self.Instance
	if late {
		m.wishes.resigns[key] = true
	}
	if m.wishes.note(key, c, m.self.Instance) || late {
		m.kick.Send()
	}
	return c
}
