package member

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// peer is another replica.
type peer struct {
	replicas.Replica
	beat  uint64    // the last count it told
	seen  time.Time // when that was heard
	lives bool      // a dead one is kept while its record is, to know an old record from a return
}

// hearLocked takes in what the store knows. After a time without the store, or
// of this replica's own absence, nobody is judged by it.
func (m *Member) hearLocked(now time.Time, snap Snapshot, fresh bool) {
	for instance, data := range snap.Members {
		if instance != m.self.Instance {
			m.hearPeerLocked(now, instance, data)
		}
	}
	for instance, p := range m.peers {
		_, kept := snap.Members[instance]
		switch {
		case fresh && p.lives:
			p.seen = now
		case p.lives && now.Sub(p.seen) >= replicas.MemberTTL:
			p.lives, m.news = false, true
			m.logger.Warn("a replica is silent", "replica", instance, "addr", p.Addr)
			m.seen.Moved("silent")
		case !p.lives && !kept:
			delete(m.peers, instance)
		}
	}
	m.hearClaimsLocked(now, snap.Claims)
}

func (m *Member) hearPeerLocked(now time.Time, instance string, data []byte) {
	r, rec, err := decode(instance, data)
	p := m.peers[instance]
	switch {
	case err != nil:
		m.logger.Debug("a replica's record can't be read", "replica", instance, "error", err)
	case rec.Left:
		m.partLocked(instance, p, rec.Beat)
	case p == nil:
		m.peers[instance] = &peer{Replica: r, beat: rec.Beat, seen: now, lives: true}
		m.news = true
		m.logger.Info("a replica joined", "replica", instance, "addr", r.Addr, "version", r.Version)
		m.seen.Moved("joined")
	case p.beat != rec.Beat:
		m.heardAgainLocked(now, p, r, rec.Beat)
	}
}

func (m *Member) heardAgainLocked(now time.Time, p *peer, r replicas.Replica, beat uint64) {
	if !p.lives {
		m.logger.Info("a replica is heard again", "replica", r.Instance, "addr", r.Addr)
		m.seen.Moved("joined")
	}
	if r.Draining && !p.Draining {
		m.logger.Info("a replica takes no new work", "replica", r.Instance)
		m.seen.Moved("draining")
	}
	m.news = m.news || !p.lives || p.Replica != r
	p.Replica, p.beat, p.seen, p.lives = r, beat, now, true
}

// partLocked takes in that a replica has ended in good order.
func (m *Member) partLocked(instance string, p *peer, beat uint64) {
	if p == nil || !p.lives {
		return
	}
	p.lives, p.beat, m.news = false, beat, true
	m.logger.Info("a replica left", "replica", instance)
	m.seen.Moved("left")
}

// livesLocked reports whether the replica counts as living, and whether
// anything is known of it.
func (m *Member) livesLocked(instance string) (lives, known bool) {
	if instance == m.self.Instance {
		return m.state == joined, true
	}
	p := m.peers[instance]
	return p != nil && p.lives, p != nil
}

// replicaLocked returns a living replica.
func (m *Member) replicaLocked(instance string) (replicas.Replica, bool) {
	if instance == m.self.Instance {
		return m.self, m.state == joined
	}
	if p := m.peers[instance]; p != nil && p.lives {
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
	m.seen.Claims(m.ownLocked(), len(m.wishes)) // a name that this replica has claimed or let go is no news
	v.Changed = m.changed
	m.view.Store(&v)
	if m.news {
		m.news = false
		close(last)
	}
}

func (m *Member) membersLocked() []replicas.Replica {
	all := make([]replicas.Replica, 0, len(m.peers)+1)
	if m.state == joined || m.state == left {
		all = append(all, m.self)
	}
	for _, p := range m.peers {
		if p.lives {
			all = append(all, p.Replica)
		}
	}
	slices.SortFunc(all, func(a, b replicas.Replica) int { return strings.Compare(a.Instance, b.Instance) })
	return all
}
