package member

import "time"

// A newcomer is what a replica heeds that has heard the engine first a moment ago. Others may serve
// without a claim what nobody holds until they hear that the engine is back, and have not asked this one
// whether it hears it: they don't know it. picture.mu guards it.
type newcomer struct {
	until    time.Time // zero before the engine was heard
	promised time.Time // until when this replica takes nothing, since others have promised that
}

// hear takes in that the engine was heard, and until when others take nothing by what they tell. It
// returns until when nobody claims what nobody holds; zero if this replica is no newcomer.
func (n *newcomer) hear(now, promised time.Time) (quiet time.Time) {
	switch {
	case n.until.IsZero():
		n.until = now.Add(grace(0)) // those for whom the engine is back ask it each second, whatever their pace
	case !now.Before(n.until):
		return time.Time{}
	}
	n.promised = later(n.promised, promised)
	n.until = later(n.until, n.promised)
	return n.until
}

// quietLocked is for how long this replica takes nothing, since others count on that. A round that
// has heard the engine for the first time begins to count after its heartbeat, which tells of it.
func (p *picture) quietLocked(now time.Time) time.Duration {
	c := &p.clock
	until := c.promised
	if c.failed && c.promises != c.kept {
		until = later(until, now.Add(p.view.Load().Slowest.Patience()))
	}
	return max(until.Sub(now), 0)
}
