package replicas

import "time"

// A Comparison says how replicas that live take to a configuration, as one of them would be
// that has it.
type Comparison struct {
	// Away is why the engine, or the names of the replicas, could not be asked; nil if they were.
	Away error
	// Members are those that live, sorted by their addresses.
	Members []Compared
}

// A Compared is a replica that was asked.
type Compared struct {
	Replica
	// Clock is by how much its clock is ahead of the one here, to half a second; zero if it did
	// not answer.
	Clock time.Duration
	// Differs has what keeps it from accepting requests of this configuration, or the other way
	// round, or soon will. Empty if nothing does.
	Differs []Difference
}

// A Difference is one reason.
type Difference struct {
	What string // one of those below
	Text string // what is the case, and what to compare
}

// What differs.
const (
	DiffersAddress = "address" // somebody else answers there
	DiffersAnswer  = "answer"  // nobody does
	DiffersClock   = "clock"
	DiffersKeys    = "keys"
	DiffersTLS     = "tls"
	DiffersVersion = "version"
)

// ClockTolerance is by how much clocks may be apart before somebody is told: the envelopes of
// requests bear three times as much.
const ClockTolerance = 5 * time.Second
