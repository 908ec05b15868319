package live

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"
)

// A state is computed at most once in leastPause, and such that computing it takes at most
// one part in shareOfTime of the time.
const (
	leastPause  = 1500 * time.Millisecond
	shareOfTime = 2000
)

// A State is what a gateway holds, as JSON, for all who look. Safe for concurrent use.
type State struct {
	get func() any

	// mu guards the fields below. It is held while the state is computed.
	mu      sync.Mutex
	text    []byte
	version uint64
	next    time.Time
	took    [3]time.Duration // by the last computations, the latest first; zero for none
}

// NewState returns a State that get computes. What get returns has no time in it that
// changes with nothing else.
func NewState(get func() any) *State { return &State{get: get} }

// Latest returns the state, which may be somewhat old, and its version: another one is
// another text.
func (s *State) Latest() (text []byte, version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if began.Before(s.next) {
		return s.text, s.version
	}
	text, err := json.Marshal(s.get())
	if err == nil && !bytes.Equal(text, s.text) {
		s.text = text
		s.version++
	}
	now := time.Now()
	s.took = [...]time.Duration{now.Sub(began), s.took[0], s.took[1]}
	s.next = now.Add(s.pauseLocked())
	return s.text, s.version
}

// pauseLocked returns how long the state may get old, by the least that one of the last
// computations took: what else the machine does only adds, and a single one that was held
// up for 50 ms would have nothing new shown for 100 s. The first one alone says nothing.
func (s *State) pauseLocked() time.Duration {
	if s.took[1] == 0 {
		return leastPause
	}
	least := min(s.took[0], s.took[1])
	if s.took[2] > 0 {
		least = min(least, s.took[2])
	}
	return max(leastPause, shareOfTime*least)
}
