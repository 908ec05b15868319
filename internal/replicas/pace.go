package replicas

import "time"

// A Pace is how often a replica tells that it lives. Zero means a [Heartbeat]. Who is judged, and
// who judges, may have different ones: what counts is the slower of both, so that neither a rare
// heartbeat nor a rare look is taken for a silence.
type Pace time.Duration

// SlowestHeartbeat is the slowest that a replica may be told.
const SlowestHeartbeat = 10 * time.Second

// Every is the time between two heartbeats.
func (p Pace) Every() time.Duration {
	return min(max(time.Duration(p), Heartbeat), SlowestHeartbeat)
}

// Bounded is the same pace as it is told: in whole milliseconds, and zero for the default.
func (p Pace) Bounded() Pace {
	every := p.Every().Truncate(time.Millisecond)
	if every == Heartbeat {
		return 0
	}
	return Pace(every)
}

// TTL is how long a replica counts as living after its last heartbeat, without being greeted, and
// how long it acts on its claims.
func (p Pace) TTL() time.Duration { return 3 * p.Every() }

// Margin is how much longer others wait before they take what a silent replica has claimed, than
// that replica acts on it: see Engine.Leased.
func (p Pace) Margin() time.Duration { return p.Every() / 2 }

// Patience is how long others leave a silent replica what it has claimed, and how long an engine
// keeps its record at least: who joins meanwhile has to find it.
func (p Pace) Patience() time.Duration { return p.TTL() + p.Margin() }

// Takeover is how long it takes until another replica has what a silent one had claimed, and how
// long a call waits for that at most.
func (p Pace) Takeover() time.Duration { return p.Patience() + p.Every() }

// Slower is the slower of both.
func (p Pace) Slower(q Pace) Pace { return Pace(max(p.Every(), q.Every())) }
