package member

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// hearLocked takes in what the store knows, which was asked before now. After a time without the
// store, or of this replica's own absence, nobody is judged by it. It returns whom to greet.
func (m *Member) hearLocked(asked, now time.Time, snap Snapshot, fresh bool) (greet []*peer) {
	m.hearMembersLocked(asked, now, snap, fresh)
	greet = m.judgeLocked(now)
	if m.news {
		m.publishLocked() // who takes a claim goes by who lives
	}
	m.claims.hearClaimsLocked(asked, now, snap.Claims)
	return greet
}

// hearMembersLocked takes in who lives. Who is heard was heard when the answer came, but who was
// not heard may have been, since the store was asked.
func (m *Member) hearMembersLocked(asked, now time.Time, snap Snapshot, fresh bool) {
	m.clock.polled = later(m.clock.polled, asked.Add(-snap.Age))
	m.news = m.peers.hear(now, snap, m.self, fresh) || m.news
	if fresh || m.clock.since.IsZero() {
		m.clock.since = now
	}
	_, kept := snap.Members[m.self.Instance]
	if m.clock.shown && !kept && snap.Skipped.Records == 0 && m.lease.holds(now) && m.state == joined {
		m.logger.Warn("the engine of the replicas has forgotten this one, and may have forgotten all: who holds something claims it again")
		m.clock.since, m.clock.quiet = now, later(m.clock.quiet, now.Add(grace(m.view.Load().Slowest)))
	}
	m.clock.shown = kept
}

// keepsLocked reports whether the holder of a claim keeps it, and whether anything is known of that
// replica. The engine alone decides that, by what it has told: who answers a greeting may be unable
// to hear of others' claims. One that the engine does not know may live all the same, if the engine
// was away: it has as much time to be heard as one that was known before.
func (m *Member) keepsLocked(c claim) (keeps, known bool) {
	if c.holder == m.self.Instance {
		return m.state == joined, true
	}
	if p := m.peers.all[c.holder]; p != nil {
		return p.keeps(m.clock.polled, m.self.Pace), true
	}
	return c.holder != "" && m.clock.polled.Before(m.clock.unknownUntil(m.self.Pace.Slower(c.pace))), false
}

// unknownUntil is until when a claim is left to a holder of which nothing is known.
func (c *clock) unknownUntil(slower replicas.Pace) time.Time {
	return c.since.Add(slower.Patience())
}

// holderLocked returns a replica that keeps what it has claimed.
func (m *Member) holderLocked(instance string) (replicas.Replica, bool) {
	if instance == m.self.Instance {
		return m.self, m.state == joined
	}
	if p := m.peers.all[instance]; p != nil && p.keeps(m.clock.polled, m.self.Pace) {
		return p.Replica, true
	}
	return replicas.Replica{}, false
}

// publishLocked replaces the view, and closes the last one's Changed if there
// is news.
func (m *Member) publishLocked() {
	v := *m.view.Load()
	v.Heard, v.Away = m.clock.heard, m.clock.away
	last := m.changed
	if m.news {
		m.changed = make(chan struct{})
		v.Self, v.Members, v.Slowest = m.self, m.membersLocked(), m.self.Pace
		for _, r := range v.Members {
			v.Slowest = v.Slowest.Slower(r.Pace)
		}
		m.seen.Members(len(v.Members))
	}
	m.seen.Claims(m.wishes.own(m.self.Instance), len(m.wishes.all)) // a name that this replica has claimed or let go is no news
	v.Changed = m.changed
	m.view.Store(&v)
	if m.news {
		m.news = false
		close(last)
	}
}

func (m *Member) membersLocked() []replicas.Replica {
	all := m.peers.living()
	if m.state == joined || m.state == left {
		all = append(all, m.self)
	}
	slices.SortFunc(all, func(a, b replicas.Replica) int { return strings.Compare(a.Instance, b.Instance) })
	return all
}
