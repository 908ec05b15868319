package member

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A lease is how long this replica may act on what it holds. It is safe for concurrent use.
type lease struct {
	mu    sync.Mutex       // guards the fields below; a leaf
	since time.Time        // when the last heartbeat was begun that others may have heard; zero if none was
	pace  replicas.Pace    // of this replica
	terms int              // how often it began anew, since it had run out
	asked time.Time        // when others were asked last to write one
	by    replicas.Replica // who has written the last one; zero if this replica has
	// severed are those that know each other, if none has written it since none hears the engine.
	severed []string
	outages uint64 // how often that has begun, or was among others
}

// renew records a heartbeat that was begun at a time, and is written now.
func (l *lease) renew(now, since time.Time, pace replicas.Pace) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.holdsLocked(now) {
		l.terms++
	}
	if since.After(l.since) {
		l.since, l.pace, l.by, l.severed = since, pace, replicas.Replica{}, nil
	}
}

// term is the same as long as the lease has not run out.
func (l *lease) term(now time.Time) (n int, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terms, l.holdsLocked(now)
}

// extend records one that another replica has written, or that none could. It does not renew a
// lease that has run out: others may have taken meanwhile what this replica holds by its own view.
func (l *lease) extend(now, since time.Time, by replicas.Replica, severed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !since.After(l.since) || !l.holdsLocked(now) {
		return
	}
	if len(severed) > 0 && !slices.Equal(severed, l.severed) {
		l.outages++
	}
	l.since, l.by, l.severed = since, by, severed
}

// outage is which one lasts, and among whom: the same number as long as no replica was heard to hear
// the engine, and all know the same ones. It is zero if none does.
func (l *lease) outage(now time.Time) (n uint64, among []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.severed) == 0 || !l.holdsLocked(now) {
		return 0, nil
	}
	return l.outages, l.severed
}

// holds reports whether the lease lasts. Both clocks count: that of the machine, and that of the
// wall, which goes on while a machine is suspended.
func (l *lease) holds(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holdsLocked(now)
}

// absent is for how long others have not heard this replica, by either clock; zero if they never have.
func (l *lease) absent(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		return 0
	}
	return max(now.Sub(l.since), now.Round(0).Sub(l.since.Round(0)))
}

func (l *lease) holdsLocked(now time.Time) bool {
	return !l.since.IsZero() && recent(now.Sub(l.since), now.Round(0).Sub(l.since.Round(0)), l.pace)
}

// recent reports whether a lease lasts since whose begin so much time has passed by the clock of the
// machine, and by that of the wall.
func recent(machine, wall time.Duration, pace replicas.Pace) bool {
	return machine < pace.TTL() && wall < pace.TTL()
}

// due reports whether others have to write the next heartbeat, and notes that they are asked.
func (l *lease) due(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	every := l.pace.Every()
	if l.since.IsZero() || now.Sub(l.since) < every*tellAfter/4 || now.Sub(l.asked) < every/tellOften {
		return false
	}
	l.asked = now
	return true
}

const (
	// tellAfter is how many quarters of a heartbeat's time this replica tries to write it by
	// itself, before it asks others, and tellOften is how often in that time it does.
	tellAfter = 5
	tellOften = 2
	// tellTimeout bounds the answer.
	tellTimeout = replicas.Heartbeat
)

// TellFor implements [replicas.Engine]. The record has to be of the replica that asks.
func (m *Member) TellFor(ctx context.Context, instance string, record []byte) error {
	r, rec, err := decode(instance, record)
	if err != nil {
		return err
	}
	if rec.Left {
		return errors.New("a replica that ends says so itself")
	}
	b := Beat{Instance: instance, Record: record, Count: rec.Beat, Lasts: r.Pace.Patience()}
	err = m.ask(ctx, func(ctx context.Context) error { return m.store.Beat(ctx, b) })
	if !errors.Is(err, replicas.ErrAway) {
		return err
	}
	if !m.claims.promise() {
		return errTaking
	}
	away := &replicas.AwayError{Err: err}
	for _, r := range m.View().Members {
		away.Knows = append(away.Knows, r.Instance)
	}
	return away
}

var errTaking = errors.New("this replica is about to claim something")

// promise has this replica take nothing before a round has begun and the engine has told in it who
// lives, and then only after the whole time: whoever hears that the engine is away counts on that, and
// may serve without a claim what nobody holds. It reports false if something is being taken.
func (cl *claimer) promise() bool {
	cl.m.picture.mu.Lock()
	defer cl.m.picture.mu.Unlock()
	return cl.promiseLocked()
}

func (cl *claimer) promiseLocked() bool {
	if cl.taking > 0 {
		return false
	}
	cl.m.clock.failed = true
	cl.m.clock.promises++
	return true
}

// beginTaking reports whether this replica may take what it does not hold, by what the engine told last
// and what it has promised: which is not about what the engine has forgotten that this replica held.
// Call endTaking after that.
func (cl *claimer) beginTaking(key string, forgotten bool) bool {
	m := cl.m
	m.picture.mu.Lock()
	defer m.picture.mu.Unlock()
	promised := later(m.clock.promised, m.clock.newcomer.promised)
	if now := m.now(); m.clock.failed || now.Before(promised) && !forgotten {
		if w := m.wishes.all[key]; w != nil {
			w.due = later(w.due, later(promised, now.Add(courtesy)))
		}
		return false
	}
	cl.taking++
	return true
}

func (cl *claimer) endTaking() {
	cl.m.picture.mu.Lock()
	defer cl.m.picture.mu.Unlock()
	cl.taking--
}

// tell has other replicas write the heartbeats of this one while it can't, until ctx ends.
func (m *Member) tell(ctx context.Context) {
	tick := time.NewTicker(replicas.Heartbeat / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if now := m.now(); m.lease.due(now) {
				m.neighborhood.asking.Go(func() { m.tellOthers(ctx, now) }) // ends within tellTimeout
			}
		case <-ctx.Done():
			return
		}
	}
}

// tellOthers asks all other replicas to write a heartbeat of this one. If none can, since none
// hears the engine, it counts as written: nobody can take what this replica holds.
func (m *Member) tellOthers(ctx context.Context, begun time.Time) {
	to, text := m.nextBeat()
	if text == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	errs := m.neighborhood.tellAll(ctx, to, text, func(by replicas.Replica) { m.lease.extend(m.now(), begun, by, nil) })
	if away, among := agreed(m.View().Self.Instance, to, errs); away {
		m.lease.extend(m.now(), begun, replicas.Replica{}, among)
	}
}
