package member

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// hearLocked takes in what the store knows. After a time without the store, or
// of this replica's own absence, nobody is judged by it.
// It returns whom to greet.
func (m *Member) hearLocked(now time.Time, snap Snapshot, fresh bool) (greet []*peer) {
	m.clock.polled = now
	m.news = m.peers.hear(now, snap, m.self.Instance, fresh) || m.news
	greet = m.judgeLocked(now)
	if m.news {
		m.publishLocked() // who takes a claim goes by who lives
	}
	m.claims.hearClaimsLocked(now, snap.Claims)
	return greet
}

// keepsLocked reports whether a replica keeps what it has claimed, and whether anything is known
// of it. The engine alone decides that, by what it has told: who answers a greeting may be unable
// to hear of others' claims.
func (m *Member) keepsLocked(instance string) (keeps, known bool) {
	if instance == m.self.Instance {
		return m.state == joined, true
	}
	p := m.peers.all[instance]
	return p != nil && p.keeps(m.clock.polled), p != nil
}

// holderLocked returns a replica that keeps what it has claimed.
func (m *Member) holderLocked(instance string) (replicas.Replica, bool) {
	if instance == m.self.Instance {
		return m.self, m.state == joined
	}
	if p := m.peers.all[instance]; p != nil && p.keeps(m.clock.polled) {
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
		v.Self, v.Members = m.self, m.membersLocked()
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
