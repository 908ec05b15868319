package member

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// hearLocked takes in what the store knows. After a time without the store, or
// of this replica's own absence, nobody is judged by it.
func (m *Member) hearLocked(now time.Time, snap Snapshot, fresh bool) {
	m.news = m.peers.hear(now, snap, m.self.Instance, fresh) || m.news
	if m.news {
		m.publishLocked() // who takes a claim goes by who lives
	}
	m.hearClaimsLocked(now, snap.Claims)
}

// livesLocked reports whether the replica counts as living, and whether
// anything is known of it.
func (m *Member) livesLocked(instance string) (lives, known bool) {
	if instance == m.self.Instance {
		return m.state == joined, true
	}
	p := m.peers.all[instance]
	return p != nil && p.lives, p != nil
}

// replicaLocked returns a living replica.
func (m *Member) replicaLocked(instance string) (replicas.Replica, bool) {
	if instance == m.self.Instance {
		return m.self, m.state == joined
	}
	if p := m.peers.all[instance]; p != nil && p.lives {
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
