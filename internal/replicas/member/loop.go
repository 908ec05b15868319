package member

import (
	"context"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

const (
	// patience bounds one question to the store, and retry is how often one that failed is asked.
	patience = replicas.Heartbeat
	retry    = replicas.Heartbeat
	// hintGap is the least time between rounds that the broker's hints cause.
	hintGap = 20 * time.Millisecond
)

// run has a round at each heartbeat, hint and kick, until Close.
func (m *Member) run(ctx context.Context) {
	defer close(m.done)
	for {
		select { // a hint comes before a kick, whose round follows both
		case <-m.store.Changed():
			m.hinted(m.now())
		default:
		}
		pause := m.pause(m.now())
		if pause <= 0 && ctx.Err() == nil { // no timer of 0 s: two of one synctest bubble break -race (go.dev/issue/78156)
			m.round(ctx)
			continue
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-m.store.Changed():
			t.Stop()
			m.hinted(m.now())
			continue
		case <-m.kick:
			t.Stop()
		case <-t.C:
		}
		m.round(ctx)
	}
}

// sooner is the first of both; a zero b is none.
func sooner(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// round reads what others say, tells that this replica lives, and takes and
// gives up claims: in this order, so that a replica that wakes after a stall
// learns what it has lost before it renews.
func (m *Member) round(ctx context.Context) {
	began := m.now()
	m.picture.mu.Lock()
	promises := m.clock.promises
	m.picture.mu.Unlock()
	err := m.exchange(ctx)
	now := m.now()
	m.picture.mu.Lock()
	if err == nil || m.ctx.Err() == nil { // not if Close has ended the round
		m.settleClockLocked(now, err, promises, m.neighbors != nil)
		m.answered(err, !m.clock.away.IsZero())
	}
	if now.Sub(began) > stall(m.self.Pace) {
		m.clock.round = began // this replica was stopped meanwhile: the next round is due
	}
	m.publishLocked()
	m.seen.Claims(m.wishes.own(m.self.Instance), len(m.wishes.all))
	m.picture.mu.Unlock()
}

// stall is the time between rounds after which this replica was stopped, so that others may have
// taken it for dead.
func stall(pace replicas.Pace) time.Duration { return 2 * pace.Every() }

func (m *Member) exchange(ctx context.Context) error {
	asked := m.now()
	keys, fresh := m.begin(asked)
	poll, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	snap, err := m.store.Poll(poll, keys, fresh)
	if err != nil {
		return err
	}
	m.picture.mu.Lock()
	greet := m.hearLocked(asked, m.now(), snap, fresh)
	m.publishLocked()
	m.picture.mu.Unlock()
	for _, p := range greet {
		m.asking.Go(func() { m.greet(m.ctx, p) }) // ends within greetTimeout
	}
	if err := m.renew(ctx); err != nil {
		return err
	}
	if err := m.claims.takeOver(ctx); err != nil {
		return err
	}
	return m.claims.resign(ctx)
}

// hearLocked takes in what the store knows, which was asked before now. After a time without the
// store, or of this replica's own absence, nobody is judged by it. It returns whom to greet.
func (m *Member) hearLocked(asked, now time.Time, snap Snapshot, fresh bool) (greet []*peer) {
	m.hearMembersLocked(asked, now, snap, fresh, m.neighbors != nil)
	greet = m.judgeLocked(now, m.neighbors != nil)
	if m.news {
		m.publishLocked() // who takes a claim goes by who lives
	}
	m.claims.hearClaimsLocked(asked, now, snap.Claims)
	return greet
}

// renew writes the heartbeat if it is due.
func (m *Member) renew(ctx context.Context) error {
	begun := m.now()
	m.picture.mu.Lock()
	if m.state != joined || begun.Before(m.clock.beat) && !m.peers.unsure(begun, &m.clock, m.self.Pace) {
		m.picture.mu.Unlock()
		return nil
	}
	m.clock.beats++
	m.clock.beat = begun.Add(m.self.Pace.Every())
	self, beat, news, quiet := m.self, m.clock.beats, m.clock.told != m.self, m.quietLocked(begun)
	m.picture.mu.Unlock()
	data, err := encode(self, beat, false, quiet)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.store.Beat(ctx, Beat{Instance: self.Instance, Record: data, Count: beat, Lasts: self.Pace.Patience(), News: news}); err != nil {
		return err
	}
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	m.clock.told, m.clock.wrote = self, begun
	now := m.now()
	if !m.lease.holds(now) {
		forgotten := m.neighbors != nil && m.lease.absent(now) >= forgetting(self.Pace)
		if forgotten {
			m.clock.promised = later(m.clock.promised, now.Add(m.view.Load().Slowest.Patience()))
		}
		m.wishes.doubt(now, self.Instance, forgotten) // before the lease counts: others may be about to take what is held
	}
	m.lease.renew(now, begun, self.Pace)
	return nil
}
