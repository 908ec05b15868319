package member

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// clock is when things were done, and are due. picture.mu guards it.
type clock struct {
	beats    uint64 // heartbeats of this replica
	newcomer newcomer
	wrote    time.Time        // when the last one was begun that this replica has written itself
	shown    bool             // the store has told of this replica
	told     replicas.Replica // this one, as the last heartbeat had it; zero if others may not know it
	beat     time.Time        // when the next one is due
	round    time.Time        // when the last round ended
	heard    time.Time        // when the store answered last
	polled   time.Time        // until when all is known that it was told of others
	since    time.Time        // since when it tells of others without a gap
	quiet    time.Time        // until when nobody claims what nobody holds, since it answered again
	gathered time.Time        // until when others tell it again that they live, since it may have forgotten them
	away     time.Time        // since when it does not
	failed   bool             // the last round did, or others count on that
	// promises are how often they were told so, and kept how many of them the last round knew that
	// has heard the store.
	promises, kept uint64
	promised       time.Time // until when nothing is taken therefore, since it answered again
	hint           time.Time // when a hint is followed; zero if there is none
}

// unknownUntil is until when a claim is left to a holder of which nothing is known.
func (c *clock) unknownUntil(slower replicas.Pace) time.Time {
	return c.since.Add(slower.Patience())
}

// A picture is what this replica knows: of itself and the others, of who holds what, and since when. It
// is safe for concurrent use.
type picture struct {
	logger *slog.Logger
	seen   replicas.Observer
	now    func() time.Time
	lease  lease
	view   atomic.Pointer[replicas.View] // of what is below, as it was published last

	// mu guards the fields below. It is held for map work only, never while the store is
	// asked.
	mu      sync.Mutex
	state   phase
	self    replicas.Replica
	peers   *peers
	wishes  *wishes
	clock   clock
	changed chan struct{} // of the view
	news    bool          // the next view differs
}

// phase is where a Member is in its life.
type phase int

const (
	created phase = iota
	joined
	left
	closed
)

func newPicture(o Options, j *journal) *picture {
	p := &picture{logger: o.Logger, seen: o.Observer, now: o.Now, peers: newPeers(j, o.Observer), wishes: newWishes(o.Logger, o.Observer), changed: make(chan struct{})}
	p.view.Store(&replicas.View{Changed: p.changed})
	return p
}

// View is what was last heard.
func (p *picture) View() *replicas.View { return p.view.Load() }

// Claims implements [replicas.Lister].
func (p *picture) Claims() []replicas.Named {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]replicas.Named, 0, len(p.wishes.all))
	for _, key := range slices.Sorted(maps.Keys(p.wishes.all)) {
		w := p.wishes.all[key]
		holder, _ := p.holderLocked(w.claim.holder)
		all = append(all, replicas.Named{Key: key, Claim: replicas.Claim{Holder: holder, Epoch: w.claim.epoch}})
	}
	return all
}

// Leased implements [replicas.Engine].
func (p *picture) Leased() bool { return p.lease.holds(p.now()) }

// Teller implements [replicas.Engine].
func (p *picture) Teller() (replicas.Replica, bool) {
	p.lease.mu.Lock()
	defer p.lease.mu.Unlock()
	return p.lease.by, p.lease.by.Instance != ""
}

// outage is which one lasts, if this replica knows still those among whom it does, and had heard the
// engine for the whole time before: else it may not know all. Otherwise it is zero.
func (p *picture) outage() uint64 {
	n, among := p.lease.outage(p.now())
	if n == 0 || !p.knowsAll() || !slices.EqualFunc(p.View().Members, among, func(r replicas.Replica, instance string) bool { return r.Instance == instance }) {
		return 0
	}
	return n
}

// knowsAll reports whether the engine was heard without a gap for as long as anybody may be silent.
func (p *picture) knowsAll() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock.heard.Sub(p.clock.since) >= p.view.Load().Slowest.Patience()
}

// begin returns the wanted keys, and whether what the broker told may be too old.
func (p *picture) begin(now time.Time) (keys []string, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock.hint = time.Time{}
	stalled := now.Sub(p.clock.round) > stall(p.self.Pace)
	return p.wishes.keys(), stalled || p.clock.failed
}

// hinted has the next round follow soon, but not at once if there was one just before.
func (p *picture) hinted(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clock.hint.IsZero() {
		p.clock.hint = later(now, p.clock.round.Add(hintGap))
	}
}

// pause is how long nothing is due.
func (p *picture) pause(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.clock.round.Add(p.self.Pace.Every())
	if p.state == joined {
		next = sooner(next, p.clock.beat)
	}
	next = sooner(next, p.clock.hint)
	if p.clock.failed {
		// What is due waits until the store is there.
		return max(p.clock.round.Add(retry).Sub(now), 0)
	}
	next = p.peers.nextSilent(now, next, p.self.Pace)
	if p.state == joined {
		next = p.wishes.nextDue(next)
	}
	return max(next.Sub(now), 0)
}

// nextBeat returns the next heartbeat of this replica, and to whom it may be told; nil if this
// replica has not joined, or has left.
func (p *picture) nextBeat() (to []replicas.Replica, text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != joined {
		return nil, nil
	}
	p.clock.beats++
	text, err := encode(p.self, p.clock.beats, false, 0)
	if err != nil {
		return nil, nil // as the loop says
	}
	return p.peers.living(), text
}

// hearMembersLocked takes in who lives. Who is heard was heard when the answer came, but who was
// not heard may have been, since the store was asked. reaches says that others are reached without it.
func (p *picture) hearMembersLocked(asked, now time.Time, snap Snapshot, fresh, reaches bool) {
	p.clock.polled = later(p.clock.polled, asked.Add(-snap.Age))
	p.news = p.peers.hear(now, snap, p.self, fresh) || p.news
	if reaches {
		p.clock.quiet = later(p.clock.quiet, p.clock.newcomer.hear(now, p.peers.promised))
	}
	if fresh || p.clock.since.IsZero() {
		p.clock.since = now
	}
	_, kept := snap.Members[p.self.Instance]
	if p.clock.shown && !kept && snap.Skipped.Records == 0 && p.lease.holds(now) && p.state == joined {
		p.logger.Warn("the engine of the replicas has forgotten this one, and may have forgotten all: who holds something claims it again")
		p.clock.since, p.clock.quiet = now, later(p.clock.quiet, now.Add(grace(p.view.Load().Slowest)))
		p.clock.gathered = p.clock.quiet
	}
	p.clock.shown = kept
}

// judgeLocked finds out who is silent at the engine, and returns whom to greet, if others are reached
// without it: who answers has its sessions still.
func (p *picture) judgeLocked(now time.Time, reaches bool) (greet []*peer) {
	greet, news := p.peers.judge(now, p.self.Pace, reaches && p.state == joined)
	p.news = p.news || news
	return greet
}

// keepsLocked reports whether the holder of a claim keeps it, and whether anything is known of that
// replica. The engine alone decides that, by what it has told: who answers a greeting may be unable
// to hear of others' claims. One that the engine does not know may live all the same, if the engine
// was away: it has as much time to be heard as one that was known before.
func (p *picture) keepsLocked(c claim) (keeps, known bool) {
	if c.holder == p.self.Instance {
		return p.state == joined, true
	}
	if other := p.peers.all[c.holder]; other != nil {
		return other.keeps(p.clock.polled, p.self.Pace), true
	}
	return c.holder != "" && p.clock.polled.Before(p.clock.unknownUntil(p.self.Pace.Slower(c.pace))), false
}

// holderLocked returns a replica that keeps what it has claimed.
func (p *picture) holderLocked(instance string) (replicas.Replica, bool) {
	if instance == p.self.Instance {
		return p.self, p.state == joined
	}
	if other := p.peers.all[instance]; other != nil && other.keeps(p.clock.polled, p.self.Pace) {
		return other.Replica, true
	}
	return replicas.Replica{}, false
}

// toldLocked is a claim as it is told others.
func (p *picture) toldLocked(c claim) replicas.Claim {
	holder, _ := p.holderLocked(c.holder)
	return replicas.Claim{Holder: holder, Epoch: c.epoch}
}

// stray reports whether nobody stands for a claim.
func (p *picture) stray(key string, e Entry) bool {
	c := parse(e.Value)
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.holder == p.self.Instance {
		return p.wishes.all[key] == nil
	}
	lives, _ := p.keepsLocked(c)
	return !lives
}

// settleClockLocked notes whether the store answered, in a round that knew so many promises. One that
// was made meanwhile is kept by the next round.
func (p *picture) settleClockLocked(now time.Time, err error, promises uint64, reaches bool) {
	c := &p.clock
	c.round = now
	if err == nil {
		if !c.away.IsZero() {
			p.logger.Info("the engine of the replicas is back", "away", now.Sub(c.away).Round(time.Millisecond))
			c.away, p.news = time.Time{}, true
			p.seen.Away(false)
		}
		if c.failed {
			p.backLocked(now, promises, reaches)
		}
		c.heard, c.failed, c.kept = now, c.promises != promises, promises
		return
	}
	c.failed, c.beat, c.told = true, time.Time{}, replicas.Replica{}
	p.seen.Failed()
	if c.away.IsZero() && now.Sub(c.heard) >= 2*p.self.Pace.Every() {
		c.away, p.news = now, true
		if !c.heard.IsZero() {
			c.away = c.heard
		}
		p.logger.Warn("the engine of the replicas is away: sessions and calls go on", "since", c.away, "error", err)
		p.seen.Away(true)
	}
}

// backLocked notes that the store is back, in a round that knew so many promises: nobody claims what
// nobody holds for a while, since a holder of which it knows no more claims that again. If others were
// told that it was away, or do not know this replica, one of them may serve without a claim for as long
// as that counts.
func (p *picture) backLocked(now time.Time, promises uint64, reaches bool) {
	c, slowest := &p.clock, p.view.Load().Slowest
	if promises != c.kept || reaches && c.heard.IsZero() {
		c.promised = later(c.promised, now.Add(slowest.Patience()))
	}
	c.quiet = later(later(c.quiet, now.Add(grace(slowest))), c.promised)
	c.gathered = c.quiet
}

// publishLocked replaces the view, and closes the last one's Changed if there
// is news.
func (p *picture) publishLocked() {
	v := *p.view.Load()
	v.Heard, v.Away, v.Gathered = p.clock.heard, p.clock.away, p.clock.gathered
	last := p.changed
	if p.news {
		p.changed = make(chan struct{})
		v.Self, v.Members, v.Slowest = p.self, p.membersLocked(), p.self.Pace
		for _, r := range v.Members {
			v.Slowest = v.Slowest.Slower(r.Pace)
		}
		p.seen.Members(len(v.Members))
	}
	p.seen.Claims(p.wishes.own(p.self.Instance), len(p.wishes.all)) // a name that this replica has claimed or let go is no news
	v.Changed = p.changed
	p.view.Store(&v)
	if p.news {
		p.news = false
		close(last)
	}
}

func (p *picture) membersLocked() []replicas.Replica {
	all := p.peers.living()
	if p.state == joined || p.state == left {
		all = append(all, p.self)
	}
	slices.SortFunc(all, func(a, b replicas.Replica) int { return strings.Compare(a.Instance, b.Instance) })
	return all
}
