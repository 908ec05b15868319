package member

import (
	"log/slog"
	"maps"
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
	left  bool      // it has said that it ends

	greeted  time.Time // when it answered the last greeting since it is silent at the engine; zero if it was not greeted
	greeting bool      // a greeting is under way
}

// keeps reports whether others leave it what it has claimed: longer than it acts on that without
// being heard. polled is until when all is known that the engine was told, and pace that of this
// replica.
func (p *peer) keeps(polled time.Time, pace replicas.Pace) bool {
	return !p.left && polled.Sub(p.seen) < pace.Slower(p.Pace).Patience()
}

// peers are the other replicas that were heard. picture.mu guards the map.
type peers struct {
	all     map[string]*peer // by instance
	greets  int              // greetings under way
	journal *journal
	seen    replicas.Observer

	promised time.Time // until when one of them takes nothing, by what it tells; picture.mu guards it
}

// maxGreetings bounds the greetings under way: whoever else writes at the engine may have filled it
// with records.
const maxGreetings = 32

// forgetting is how long a silent replica is known at least. One that comes back later acts on nothing
// that it had before, until others have noticed: while the engine was away, they did not ask it.
func forgetting(pace replicas.Pace) time.Duration { return 2 * pace.TTL() }

func newPeers(j *journal, seen replicas.Observer) *peers {
	return &peers{all: make(map[string]*peer), journal: j, seen: seen}
}

// unsure reports whether somebody has to be judged, and what the engine has told is too old for
// that. A heartbeat of this replica, which it tells back, says that all before was told.
func (ps *peers) unsure(now time.Time, c *clock, pace replicas.Pace) bool {
	for _, p := range ps.all {
		if !p.left && !p.keeps(now, pace) && p.keeps(c.polled, pace) && p.keeps(c.wrote, pace) {
			return true
		}
	}
	return false
}

// hear takes in all records but that of self. If they are fresh after an absence, nobody was silent
// before. It reports whether there is news.
func (ps *peers) hear(now time.Time, snap Snapshot, self replicas.Replica, fresh bool) (news bool) {
	ps.journal.gather(now)
	skipped := snap.Skipped
	for _, instance := range slices.Sorted(maps.Keys(snap.Members)) {
		data := snap.Members[instance]
		switch {
		case instance == self.Instance:
		case ps.all[instance] == nil && len(ps.all) >= replicas.MaxMembers: // who is known keeps its place
			skipped.Add(1, "the record of replica "+instance)
		default:
			news = ps.record(now, instance, data) || news
		}
	}
	ps.skip(skipped)
	for instance, p := range ps.all {
		_, kept := snap.Members[instance]
		switch {
		case fresh && !p.left: // also one that was taken for dead keeps what it has claimed
			p.seen = now
		case !p.lives && !kept && (p.left || now.Sub(p.seen) >= forgetting(self.Pace.Slower(p.Pace))): // a dead holder is known for a while
			delete(ps.all, instance)
		}
	}
	return news
}

// judge returns those that are silent at the engine and have to be greeted. Without greetings
// they are dead.
func (ps *peers) judge(now time.Time, pace replicas.Pace, greets bool) (greet []*peer, news bool) {
	for _, instance := range slices.Sorted(maps.Keys(ps.all)) {
		p := ps.all[instance]
		switch {
		case !p.lives || p.greeting || now.Sub(later(p.seen, p.greeted)) < pace.Slower(p.Pace).TTL():
		case greets && ps.greets == maxGreetings: // another round follows each greeting
		case greets:
			ps.greets++
			p.greeting = true
			greet = append(greet, p)
		default:
			ps.silent(p)
			news = true
		}
	}
	return greet, news
}

// silent notes that a replica is dead.
func (ps *peers) silent(p *peer) {
	p.lives, p.greeted = false, time.Time{}
	ps.journal.log(changes, slog.LevelWarn, "a replica is silent", "replica", p.Instance, "addr", p.Addr)
	ps.seen.Moved("silent")
}

// record takes in the record of one replica.
func (ps *peers) record(now time.Time, instance string, data []byte) (news bool) {
	r, rec, err := decode(instance, data)
	p := ps.all[instance]
	if err == nil && (p == nil || p.beat < rec.Beat) {
		ps.promised = later(ps.promised, now.Add(time.Duration(rec.Quiet)*time.Millisecond))
	}
	switch {
	case err != nil:
		ps.journal.log(warnings, slog.LevelWarn, "a replica does not count here; compare the versions of mcpbridge", "error", err)
	case rec.Left:
		return ps.part(r, p, rec.Beat)
	case p == nil:
		ps.all[instance] = &peer{Replica: r, beat: rec.Beat, seen: now, lives: true}
		ps.journal.log(changes, slog.LevelInfo, "a replica joined", "replica", instance, "addr", r.Addr, "version", r.Version)
		ps.seen.Moved("joined")
		return true
	case p.beat < rec.Beat: // others were overtaken, by the last one for example
		return ps.heardAgain(now, p, r, rec.Beat)
	}
	return false
}

// skip tells of records that were skipped.
func (ps *peers) skip(s Skipped) {
	if s.Records > 0 {
		ps.seen.Skipped()
		ps.journal.log(warnings, slog.LevelWarn, "records at the engine are skipped: they are too large, or too many; see who else writes there, and give each deployment its own replicas.prefix",
			"records", s.Records, "one", s.Where)
	}
}

func (ps *peers) heardAgain(now time.Time, p *peer, r replicas.Replica, beat uint64) (news bool) {
	if !p.lives {
		ps.journal.log(changes, slog.LevelInfo, "a replica is heard again", "replica", r.Instance, "addr", r.Addr)
		ps.seen.Moved("joined")
	}
	if r.Draining && !p.Draining {
		ps.journal.log(changes, slog.LevelInfo, "a replica takes no new work", "replica", r.Instance)
		ps.seen.Moved("draining")
	}
	if !p.greeted.IsZero() {
		ps.journal.log(changes, slog.LevelInfo, "a replica is heard at the engine again", "replica", r.Instance, "addr", r.Addr)
	}
	news = !p.lives || p.Replica != r
	p.Replica, p.beat, p.seen, p.lives, p.left, p.greeted = r, beat, now, true, false, time.Time{}
	return news
}

// part takes in that a replica has ended in good order.
func (ps *peers) part(r replicas.Replica, p *peer, beat uint64) (news bool) {
	if p == nil {
		ps.all[r.Instance] = &peer{Replica: r, beat: beat, left: true} // a record that is heard later is no return
		return false
	}
	p.beat, p.left = max(p.beat, beat), true
	if !p.lives {
		return false
	}
	p.lives = false
	ps.journal.log(changes, slog.LevelInfo, "a replica left", "replica", r.Instance)
	ps.seen.Moved("left")
	return true
}

// silents returns those that are taken for dead, and have not left.
func (ps *peers) silents() []replicas.Replica {
	return ps.those(func(p *peer) bool { return !p.lives && !p.left })
}

// living returns those that live.
func (ps *peers) living() []replicas.Replica {
	return ps.those(func(p *peer) bool { return p.lives })
}

// those returns the replicas that are meant, in order, with room for this one.
func (ps *peers) those(meant func(*peer) bool) []replicas.Replica {
	all := make([]replicas.Replica, 0, len(ps.all)+1)
	for _, p := range ps.all {
		if meant(p) {
			all = append(all, p.Replica)
		}
	}
	slices.SortFunc(all, func(a, b replicas.Replica) int { return strings.Compare(a.Instance, b.Instance) })
	return all
}

// nextSilent is when the next has to be judged if it is not heard until then, if that is before
// t.
func (ps *peers) nextSilent(now, t time.Time, pace replicas.Pace) time.Time {
	for _, p := range ps.all {
		slower := pace.Slower(p.Pace)
		if p.lives && !p.greeting && ps.greets < maxGreetings {
			t = sooner(t, later(p.seen, p.greeted).Add(slower.TTL()))
		}
		if p.keeps(now, pace) {
			t = sooner(t, p.seen.Add(slower.Patience()))
		}
	}
	return t
}
