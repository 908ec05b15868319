package member

import (
	"context"
	"errors"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A claimer claims names for a Member, and gives them up.
type claimer struct {
	m       *Member
	taking  int // claims that are being taken from others; the picture's mu guards it
	waiting int // calls of Claim that wait; the picture's mu guards it, too
}

// tries bounds how often one claim is raced for.
const tries = 4

var (
	errContended = errors.New("other replicas keep changing the claim")
	errEarly     = errors.New("the engine is back, and may have forgotten who holds the claim: that one comes first")
	errUnknown   = errors.New("nothing is known yet of the holder of the claim, which may live")
	errUnsure    = errors.New("the engine has to tell anew whether the holder of the claim is silent")
)

// Holder returns who holds a name, by what is known here.
func (m *Member) Holder(name string) (replicas.Claim, bool) {
	key := replicas.Key(name)
	m.picture.mu.Lock()
	w := m.wishes.all[key]
	known := w != nil && !w.doubted
	var c replicas.Claim
	if known {
		c.Holder, known = m.holderLocked(w.claim.holder)
		c.Epoch = w.claim.epoch
	}
	m.picture.mu.Unlock()
	if !known {
		return m.told(key)
	}
	return c, known
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
		m.picture.mu.Lock()
		defer m.picture.mu.Unlock()
		c = m.toldLocked(got)
		return err
	})
	return c, err
}

func (cl *claimer) give(ctx context.Context, key, to string) (claim, error) {
	for range tries {
		l, err := cl.load(ctx, key)
		if err != nil {
			return claim{}, err
		}
		cl.m.picture.mu.Lock()
		heir, _ := cl.m.holderLocked(to)
		next := claim{holder: to, epoch: max(l.claim.epoch, cl.m.wishes.highest(key)) + 1, pace: heir.Pace}
		own := l.claim.holder == cl.m.self.Instance
		lives, _ := cl.m.keepsLocked(l.claim)
		cl.m.picture.mu.Unlock()
		if !own && !lives {
			lives, err = cl.look(ctx, l)
		}
		if err != nil {
			return claim{}, err
		}
		if !own && lives {
			return cl.note(key, l.claim), nil
		}
		if l.claim.holder == "" && cl.early(key) {
			return claim{}, errEarly
		}
		done, err := cl.take(ctx, key, l, next)
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
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	if m.wishes.release(replicas.Key(name), m.self.Instance) {
		m.kick.Send()
	}
}

// A loaded claim is one that was read at the store.
type loaded struct {
	claim claim
	entry Entry
	since time.Time // when the store has told it first
	term  int       // of the lease at that moment
}

func (cl *claimer) load(ctx context.Context, key string) (l loaded, err error) {
	if l.entry, err = cl.m.store.Load(ctx, key); err != nil {
		return loaded{}, err
	}
	l.claim = parse(l.entry.Value)
	cl.m.picture.mu.Lock()
	defer cl.m.picture.mu.Unlock()
	l.since = cl.m.now()
	l.term, _ = cl.m.lease.term(l.since)
	if w := cl.m.wishes.all[key]; w != nil {
		l.since = w.tell(l.claim, l.since)
	}
	return l, nil
}

// settle returns who holds key, after this replica has claimed it if nobody
// living does, or if it is from's still.
func (cl *claimer) settle(ctx context.Context, key string, from claim) (claim, error) {
	for range tries {
		l, err := cl.load(ctx, key)
		if err != nil {
			return claim{}, err
		}
		keeps := false
		switch c := l.claim; {
		case c.holder == "":
			if cl.early(key) {
				return claim{}, errEarly
			}
		case c.holder == cl.m.View().Self.Instance:
			keeps = cl.confirmed(key, c)
		case c.holder != from.holder || c.epoch != from.epoch:
			keeps, err = cl.look(ctx, l)
		}
		if err != nil {
			return claim{}, err
		}
		if keeps {
			return cl.note(key, l.claim), nil
		}
		next, err := cl.successor(key, l.claim)
		if err != nil {
			return claim{}, err
		}
		done, err := cl.take(ctx, key, l, next)
		if err != nil {
			return claim{}, err // if it was done all the same, the next round hears of it
		}
		if done {
			cl.m.wishes.taken(key, l.claim, next)
			return cl.noteOwn(key, next, l.term), nil
		}
	}
	return claim{}, errContended
}

// confirmed reports whether this replica has claimed itself what it holds, in this term of its
// lease. What it was given, or has held before, is claimed anew: by that somebody who has judged it
// before learns that it is not silent any more.
func (cl *claimer) confirmed(key string, c claim) bool {
	cl.m.picture.mu.Lock()
	defer cl.m.picture.mu.Unlock()
	w := cl.m.wishes.all[key]
	return w != nil && w.claim == c && !w.doubted
}

// take replaces a claim, which may be this replica's own. One of which the engine has told first is
// not: it was given, or the answer was lost when it was claimed, and others may have been told since
// that this replica does not hold it.
func (cl *claimer) take(ctx context.Context, key string, l loaded, next claim) (bool, error) {
	held := cl.holds(key)
	if l.claim.holder != cl.m.View().Self.Instance || !held {
		if !cl.beginTaking(key, held && l.claim.holder == "") {
			return false, errEarly
		}
		defer cl.endTaking()
	}
	return cl.m.store.Swap(ctx, key, l.entry, next.value())
}

// holds reports whether this replica has held key itself, and is not forgotten.
func (cl *claimer) holds(key string) bool {
	cl.m.picture.mu.Lock()
	defer cl.m.picture.mu.Unlock()
	w := cl.m.wishes.all[key]
	return w != nil && w.claim.holder == cl.m.self.Instance && !w.found && !w.forgotten
}

// look reports whether another holder keeps what it has: it lives, and is not about to end. It is
// judged by what the engine was told after the claim was known here: one that was silent, and has
// come back, tells that it lives before it claims anew what it holds.
func (cl *claimer) look(ctx context.Context, l loaded) (bool, error) {
	m := cl.m
	m.picture.mu.Lock()
	keeps, sure := cl.judgeLocked(l)
	m.picture.mu.Unlock()
	if sure {
		return keeps, nil
	}
	asked := m.now()
	snap, err := m.store.Poll(ctx, nil, false)
	if err != nil {
		return false, err
	}
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	m.hearMembersLocked(asked, m.now(), snap, false, m.neighbors != nil)
	m.publishLocked()
	keeps, sure = cl.judgeLocked(l)
	switch {
	case sure:
		return keeps, nil
	case keeps:
		return false, errUnknown
	case m.clock.wrote.Before(l.since): // the next heartbeat makes it sure
		m.clock.beat = time.Time{}
		m.kick.Send()
	}
	return false, errUnsure
}

// judgeLocked reports whether the holder of a claim keeps it, and whether that is sure.
func (cl *claimer) judgeLocked(l loaded) (keeps, sure bool) {
	p := cl.m.peers.all[l.claim.holder]
	if lives, known := cl.m.keepsLocked(l.claim); lives {
		return !known || !cl.partingLocked(l.claim.holder), known
	}
	return false, p != nil && p.left || !cl.m.clock.polled.Before(l.since)
}

// successor is the claim by which this replica follows c.
func (cl *claimer) successor(key string, c claim) (claim, error) {
	cl.m.picture.mu.Lock()
	defer cl.m.picture.mu.Unlock()
	if cl.m.state != joined {
		return claim{}, replicas.ErrClosed
	}
	self, highest := cl.m.self, cl.m.wishes.highest(key)
	if w := cl.m.wishes.all[key]; c.holder == self.Instance && c.epoch >= highest && (w == nil || !w.forgotten) {
		return claim{holder: self.Instance, epoch: c.epoch, anew: c.anew + 1, pace: self.Pace}, nil
	}
	return claim{holder: self.Instance, epoch: max(c.epoch, highest) + 1, pace: self.Pace}, nil
}

// note remembers that another replica holds key, or this one still, if it is wanted still.
func (cl *claimer) note(key string, c claim) claim {
	cl.m.picture.mu.Lock()
	defer cl.m.picture.mu.Unlock()
	if cl.m.wishes.note(key, c, cl.m.self.Instance) {
		cl.m.kick.Send()
	}
	return c
}

// noteOwn remembers what this replica has claimed since a term of its lease. What it took while it
// left is given back. If the lease has run out meanwhile, others may have taken it already.
func (cl *claimer) noteOwn(key string, c claim, term int) claim {
	m := cl.m
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	late := m.state == left
	if late {
		m.wishes.resigns[key] = true
	}
	now := m.now()
	switch {
	case c.epoch < m.wishes.highest(key):
		m.wishes.postpone(key, now)
		return c
	case m.wishes.note(key, c, m.self.Instance) || late:
		m.kick.Send()
	}
	if n, holds := m.lease.term(now); n != term || !holds {
		m.wishes.doubtOne(key, now, c)
		m.kick.Send()
	}
	return c
}
