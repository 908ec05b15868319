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

// clock is when things were done, and are due. Member.mu guards it.
type clock struct {
	beats  uint64           // heartbeats of this replica
	wrote  time.Time        // when the last one was begun that this replica has written itself
	shown  bool             // the store has told of this replica
	told   replicas.Replica // this one, as the last heartbeat had it; zero if others may not know it
	beat   time.Time        // when the next one is due
	round  time.Time        // when the last round ended
	heard  time.Time        // when the store answered last
	polled time.Time        // until when all is known that it was told of others
	since  time.Time        // since when it tells of others without a gap
	quiet  time.Time        // until when nobody claims what nobody holds, since it answered again
	away   time.Time        // since when it does not
	failed bool             // the last round did, or others count on that
	// promises are how often they were told so, and kept how many of them the last round knew that
	// has heard the store.
	promises, kept uint64
	promised       time.Time // until when nothing is taken therefore, since it answered again
	hint           time.Time // when a hint is followed; zero if there is none
}

// run has a round at each heartbeat, hint and kick, until Close.
func (m *Member) run(ctx context.Context) {
	defer close(m.done)
	for {
		select { // a hint comes before a kick, whose round follows both
		case <-m.store.Changed():
			m.hinted(m.now())
		default:
		}
		t := time.NewTimer(m.pause(m.now()))
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

// hinted has the next round follow soon, but not at once if there was one just before.
func (m *Member) hinted(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.hint.IsZero() {
		m.clock.hint = later(now, m.clock.round.Add(hintGap))
	}
}

// pause is how long nothing is due.
func (m *Member) pause(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.clock.round.Add(m.self.Pace.Every())
	if m.state == joined {
		next = sooner(next, m.clock.beat)
	}
	next = sooner(next, m.clock.hint)
	if m.clock.failed {
		// What is due waits until the store is there.
		return max(m.clock.round.Add(retry).Sub(now), 0)
	}
	next = m.peers.nextSilent(now, next, m.self.Pace)
	if m.state == joined {
		next = m.wishes.nextDue(next)
	}
	return max(next.Sub(now), 0)
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
	m.mu.Lock()
	promises := m.clock.promises
	m.mu.Unlock()
	err := m.exchange(ctx)
	now := m.now()
	m.mu.Lock()
	if err == nil || m.ctx.Err() == nil { // not if Close has ended the round
		m.settleClockLocked(now, err, promises)
		m.answered(err, !m.clock.away.IsZero())
	}
	if now.Sub(began) > stall(m.self.Pace) {
		m.clock.round = began // this replica was stopped meanwhile: the next round is due
	}
	m.publishLocked()
	m.seen.Claims(m.wishes.own(m.self.Instance), len(m.wishes.all))
	m.mu.Unlock()
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
	m.mu.Lock()
	greet := m.hearLocked(asked, m.now(), snap, fresh)
	m.publishLocked()
	m.mu.Unlock()
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

// begin returns the wanted keys, and whether what the broker told may be too old.
func (m *Member) begin(now time.Time) (keys []string, fresh bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock.hint = time.Time{}
	stalled := now.Sub(m.clock.round) > stall(m.self.Pace)
	return m.wishes.keys(), stalled || m.clock.failed
}

// renew writes the heartbeat if it is due.
func (m *Member) renew(ctx context.Context) error {
	begun := m.now()
	m.mu.Lock()
	if m.state != joined || begun.Before(m.clock.beat) && !m.peers.unsure(begun, &m.clock, m.self.Pace) {
		m.mu.Unlock()
		return nil
	}
	m.clock.beats++
	m.clock.beat = begun.Add(m.self.Pace.Every())
	self, beat, news := m.self, m.clock.beats, m.clock.told != m.self
	m.mu.Unlock()
	data, err := encode(self, beat, false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := m.store.Beat(ctx, Beat{Instance: self.Instance, Record: data, Count: beat, Lasts: self.Pace.Patience(), News: news}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
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

// backLocked notes that the store is back, in a round that knew so many promises: nobody claims what
// nobody holds for a while, since a holder of which it knows no more claims that again. If others were
// told that it was away, or do not know this replica, one of them may serve without a claim for as long
// as that counts.
func (m *Member) backLocked(now time.Time, promises uint64) {
	c, slowest := &m.clock, m.view.Load().Slowest
	if promises != c.kept || m.neighbors != nil && c.heard.IsZero() {
		c.promised = later(c.promised, now.Add(slowest.Patience()))
	}
	c.quiet = later(later(c.quiet, now.Add(grace(slowest))), c.promised)
}

// settleClockLocked notes whether the store answered, in a round that knew so many promises. One that
// was made meanwhile is kept by the next round.
func (m *Member) settleClockLocked(now time.Time, err error, promises uint64) {
	c := &m.clock
	c.round = now
	if err == nil {
		if !c.away.IsZero() {
			m.logger.Info("the engine of the replicas is back", "away", now.Sub(c.away).Round(time.Millisecond))
			c.away, m.news = time.Time{}, true
			m.seen.Away(false)
		}
		if c.failed {
			m.backLocked(now, promises)
		}
		c.heard, c.failed, c.kept = now, c.promises != promises, promises
		return
	}
	c.failed, c.beat, c.told = true, time.Time{}, replicas.Replica{}
	m.seen.Failed()
	if c.away.IsZero() && now.Sub(c.heard) >= 2*m.self.Pace.Every() {
		c.away, m.news = now, true
		if !c.heard.IsZero() {
			c.away = c.heard
		}
		m.logger.Warn("the engine of the replicas is away: sessions and calls go on", "since", c.away, "error", err)
		m.seen.Away(true)
	}
}
