package member

import (
	"log/slog"
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

// peers are the other replicas that were heard. Member.mu guards the map.
type peers struct {
	all    map[string]*peer // by instance
	logger *slog.Logger
	seen   replicas.Observer
	warned time.Time // of a record that can't be read
}

// warnEvery is how often records that can't be read are logged as a warning.
const warnEvery = time.Minute

func newPeers(logger *slog.Logger, seen replicas.Observer) *peers {
	return &peers{all: make(map[string]*peer), logger: logger, seen: seen}
}

// hear takes in all records but that of self, and judges who is silent. If the
// records are fresh after an absence, nobody is judged. It reports whether
// there is news.
func (ps *peers) hear(now time.Time, records map[string][]byte, self string, fresh bool) (news bool) {
	for instance, data := range records {
		if instance != self {
			news = ps.record(now, instance, data) || news
		}
	}
	for instance, p := range ps.all {
		_, kept := records[instance]
		switch {
		case fresh && p.lives:
			p.seen = now
		case p.lives && now.Sub(p.seen) >= replicas.MemberTTL:
			p.lives, news = false, true
			ps.logger.Warn("a replica is silent", "replica", instance, "addr", p.Addr)
			ps.seen.Moved("silent")
		case !p.lives && !kept:
			delete(ps.all, instance)
		}
	}
	return news
}

// record takes in the record of one replica.
func (ps *peers) record(now time.Time, instance string, data []byte) (news bool) {
	r, rec, err := decode(instance, data)
	p := ps.all[instance]
	switch {
	case err != nil:
		ps.unread(now, err)
	case rec.Left:
		return ps.part(r, p, rec.Beat)
	case p == nil:
		ps.all[instance] = &peer{Replica: r, beat: rec.Beat, seen: now, lives: true}
		ps.logger.Info("a replica joined", "replica", instance, "addr", r.Addr, "version", r.Version)
		ps.seen.Moved("joined")
		return true
	case p.beat < rec.Beat: // others were overtaken, by the last one for example
		return ps.heardAgain(now, p, r, rec.Beat)
	}
	return false
}

// unread tells of a replica that does not count since its record can't be read.
func (ps *peers) unread(now time.Time, err error) {
	if now.Sub(ps.warned) >= warnEvery {
		ps.warned = now
		ps.logger.Warn("a replica does not count here; compare the versions of mcpbridge", "error", err)
	}
}

func (ps *peers) heardAgain(now time.Time, p *peer, r replicas.Replica, beat uint64) (news bool) {
	if !p.lives {
		ps.logger.Info("a replica is heard again", "replica", r.Instance, "addr", r.Addr)
		ps.seen.Moved("joined")
	}
	if r.Draining && !p.Draining {
		ps.logger.Info("a replica takes no new work", "replica", r.Instance)
		ps.seen.Moved("draining")
	}
	news = !p.lives || p.Replica != r
	p.Replica, p.beat, p.seen, p.lives = r, beat, now, true
	return news
}

// part takes in that a replica has ended in good order.
func (ps *peers) part(r replicas.Replica, p *peer, beat uint64) (news bool) {
	if p == nil {
		ps.all[r.Instance] = &peer{Replica: r, beat: beat} // a record that is heard later is no return
		return false
	}
	p.beat = max(p.beat, beat)
	if !p.lives {
		return false
	}
	p.lives = false
	ps.logger.Info("a replica left", "replica", r.Instance)
	ps.seen.Moved("left")
	return true
}

// living returns those that live, with room for this replica.
func (ps *peers) living() []replicas.Replica {
	all := make([]replicas.Replica, 0, len(ps.all)+1)
	for _, p := range ps.all {
		if p.lives {
			all = append(all, p.Replica)
		}
	}
	return all
}

// nextSilent is when the next counts as silent if it is not heard until then,
// if that is before t.
func (ps *peers) nextSilent(t time.Time) time.Time {
	for _, p := range ps.all {
		if p.lives {
			t = sooner(t, p.seen.Add(replicas.MemberTTL))
		}
	}
	return t
}
