package member

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A claimer claims names for a Member, and gives them up.
type claimer struct {
	m      *Member
	taking int // claims that are being taken from others; m.mu guards it
}

// tries bounds how often one claim is raced for.
const tries = 4

var (
	errContended = errors.New("other replicas keep changing the claim")
	errEarly     = errors.New("the engine is back, and may have forgotten who holds the claim: that one comes first")
)

// early reports whether somebody else may have held a name of which the engine knows nothing: it
// is back since a moment, and may have lost what it knew.
func (cl *claimer) early(key string) bool {
	cl.m.mu.Lock()
	defer cl.m.mu.Unlock()
	return cl.m.now().Sub(cl.m.clock.back) < grace && cl.m.wishes.last(key).holder != cl.m.self.Instance
}

// Holder returns who holds a name, by what is known here.
func (m *Member) Holder(name string) (replicas.Claim, bool) {
	key := replicas.Key(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.wishes.all[key]
	if w == nil {
		return replicas.Claim{}, false
	}
	holder, lives := m.holderLocked(w.claim.holder)
	return replicas.Claim{Holder: holder, Epoch: w.claim.epoch}, lives
}

// Claims implements [replicas.Lister].
func (m *Member) Claims() []replicas.Named {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]replicas.Named, 0, len(m.wishes.all))
	for _, key := range slices.Sorted(maps.Keys(m.wishes.all)) {
		w := m.wishes.all[key]
		holder, _ := m.holderLocked(w.claim.holder)
		all = append(all, replicas.Named{Key: key, Claim: replicas.Claim{Holder: holder, Epoch: w.claim.epoch}})
	}
	return all
}

// Claim returns who holds name, and claims it if nobody living does.
func (m *Member) Claim(ctx context.Context, name string) (replicas.Claim, error) {
	return m.claims.claimNow(ctx, replicas.Key(name), claim{})
}

// Seize takes name from a holder that can't be reached.
func (m *Member) Seize(ctx context.Context, name string, from replicas.Claim) (replicas.Claim, error) {
	return m.claims.claimNow(ctx, replicas.Key(name), claim{holder: from.Holder.Instance, epoch: from.Epoch})
}

// Yield gives name to another replica, if this one or nobody living holds it.
func (m *Member) Yield(ctx context.Context, name string, to replicas.Replica) (c replicas.Claim, err error) {
	key := replicas.Key(name)
	err = m.ask(ctx, func(ctx context.Context) error {
		got, err := m.claims.give(ctx, key, to.Instance)
		m.mu.Lock()
		defer m.mu.Unlock()
		c.Holder, _ = m.holderLocked(got.holder)
		c.Epoch = got.epoch
		return err
	})
	return c, err
}

func (cl *claimer) give(ctx context.Context, key, to string) (claim, error) {
	for range tries {
		e, err := cl.m.store.Load(ctx, key)
		if err != nil {
			return claim{}, err
		}
		c := parse(e.Value)
		cl.m.mu.Lock()
		lives, _ := cl.m.keepsLocked(c.holder)
		next := claim{holder: to, epoch: max(c.epoch, cl.m.wishes.highest(key)) + 1}
		self := cl.m.self.Instance
		cl.m.mu.Unlock()
		if c.holder != self && lives {
			return cl.note(key, c), nil
		}
		done, err := cl.m.store.Swap(ctx, key, e, next.value())
		if err != nil {
			return claim{}, err
		}
		if done {
			return cl.note(key, next), nil
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
func (cl *claimer) claimNow(ctx context.Context, key string, from claim) (c replicas.Claim, err error) {
	cl.m.mu.Lock()
	cl.m.wishes.want(key)
	cl.m.mu.Unlock()
	err = cl.m.ask(ctx, func(ctx context.Context) error {
		got, err := cl.settle(ctx, key, from)
		if err != nil {
			return err
		}
		cl.m.mu.Lock()
		defer cl.m.mu.Unlock()
		c.Holder, _ = cl.m.holderLocked(got.holder)
		c.Epoch = got.epoch
		return nil
	})
	return c, err
}

// settle returns who holds key, after this replica has claimed it if nobody
// living does, or if it is from's still.
func (cl *claimer) settle(ctx context.Context, key string, from claim) (claim, error) {
	for range tries {
		e, err := cl.m.store.Load(ctx, key)
		if err != nil {
			return claim{}, err
		}
		c := parse(e.Value)
		if c != from || c.holder == "" {
			if keeps, err := cl.look(ctx, c.holder); err != nil || keeps {
				return cl.note(key, c), err
			}
		}
		if c.holder == "" && cl.early(key) {
			return claim{}, errEarly
		}
		next, err := cl.successor(key, c)
		if err != nil {
			return claim{}, err
		}
		done, err := cl.take(ctx, key, e, c, next)
		if err != nil {
			return claim{}, err // if it was done all the same, the next round hears of it
		}
		if done {
			cl.m.wishes.taken(key, c, next)
			return cl.note(key, next), nil
		}
	}
	return claim{}, errContended
}

// take replaces a claim by that of this replica.
func (cl *claimer) take(ctx context.Context, key string, e Entry, c, next claim) (bool, error) {
	if c.holder != "" && c.holder != next.holder {
		if !cl.beginTaking() {
			return false, errEarly
		}
		defer cl.endTaking()
	}
	return cl.m.store.Swap(ctx, key, e, next.value())
}

// look reports whether the holder keeps what it has: it lives, and is not about to end. One that
// nothing is known of may have joined a moment before: then the members are read.
func (cl *claimer) look(ctx context.Context, holder string) (bool, error) {
	cl.m.mu.Lock()
	lives, known := cl.m.keepsLocked(holder)
	keeps := lives && !cl.partingLocked(holder)
	cl.m.mu.Unlock()
	if known || holder == "" {
		return keeps, nil
	}
	snap, err := cl.m.store.Poll(ctx, nil, false)
	if err != nil {
		return false, err
	}
	cl.m.mu.Lock()
	defer cl.m.mu.Unlock()
	if data, kept := snap.Members[holder]; kept {
		cl.m.news = cl.m.peers.record(cl.m.now(), holder, data) || cl.m.news
		cl.m.publishLocked()
	}
	lives, _ = cl.m.keepsLocked(holder)
	return lives && !cl.partingLocked(holder), nil
}

// successor is the claim by which this replica follows c.
func (cl *claimer) successor(key string, c claim) (claim, error) {
	cl.m.mu.Lock()
	defer cl.m.mu.Unlock()
	if cl.m.state != joined {
		return claim{}, replicas.ErrClosed
	}
	return claim{holder: cl.m.self.Instance, epoch: max(c.epoch, cl.m.wishes.highest(key)) + 1}, nil
}

// note remembers who holds key, if it is wanted still. What this replica took while it left is
// given back.
func (cl *claimer) note(key string, c claim) claim {
	cl.m.mu.Lock()
	defer cl.m.mu.Unlock()
	late := cl.m.state == left && c.holder == cl.m.self.Instance
	if late {
		cl.m.wishes.resigns[key] = true
	}
	if cl.m.wishes.note(key, c, cl.m.self.Instance) || late {
		cl.m.kick.Send()
	}
	return c
}
